/* trial_api.h - the API that a DRA driver sees: an embedded one over HTTP on the loopback, with a
 * Node, a class and a token for one driver on that node; it can be made to fail. */
#ifndef DV_VERIFY_TRIAL_API_H
#define DV_VERIFY_TRIAL_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "resource/resource.h"

struct dv_embedded;
struct dv_kube;
struct dv_metrics;
struct dv_rest_server;
struct dv_store;
struct dv_tokens;
struct dv_trial;

/* The namespace of claims; its label allows admin access. */
#define DV_CLAIM_NAMESPACE "verify"

struct dv_trial_api {
    struct dv_trial *trial;
    struct dv_store *store;
    struct dv_embedded *embedded;
    struct dv_tokens *tokens;
    struct dv_metrics *metrics;
    struct dv_kube *kube;
    struct dv_rest_server *server; /* NULL: it is away */
    uint16_t port;
    dv_str token;
    /* How it misbehaves. */
    unsigned n_conflicts;  /* the next writes of slices are answered with 409 */
    unsigned n_gone;       /* the next watches are answered with 410 */
    size_t n_slice_writes; /* that were asked for */
    size_t n_slice_watches;
    size_t n_claim_reads;
    size_t n_refused_versions; /* requests for versions that the release has not */
};

/* Opens it, and writes the kubeconfig; ends the trial when that fails. */
void dv_api_open(struct dv_trial *trial);
/* As when the server ends, and comes back at the same address. */
void dv_api_go_away(struct dv_trial *trial);
void dv_api_come_back(struct dv_trial *trial);
/* How many requests about slices, claims and classes were answered with this status. */
size_t dv_api_n_answers(struct dv_trial *trial, unsigned status);

/* Each waits for its end. Texts are JSON or YAML. NULL: `*failure` is the API's message. */
struct dv_object *dv_api_create(struct dv_trial *trial, enum dv_kind_id kind, dv_str text,
                                dv_str *failure);
struct dv_object *dv_api_make(struct dv_trial *trial, const struct dv_kind *kind, void *value,
                              dv_str *failure);
bool dv_api_set_status(struct dv_trial *trial, const struct dv_object *object, const void *value,
                       dv_str *failure);
bool dv_api_update(struct dv_trial *trial, const struct dv_object *object, const void *value,
                   dv_str *failure);
bool dv_api_delete(struct dv_trial *trial, enum dv_kind_id kind, dv_str name);

/* All of a kind, borrowed until the loop's next turn, in the arena. */
size_t dv_api_list(struct dv_trial *trial, enum dv_kind_id kind, struct dv_object ***objects);
/* The slices of the driver under test, borrowed until the loop's next turn, in the arena. */
size_t dv_api_slices(struct dv_trial *trial, struct dv_object ***slices);
/* Devices in them. */
size_t dv_api_n_devices(struct dv_trial *trial);

#endif
