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
struct dv_orders;
struct dv_request;
struct dv_rest_server;
struct dv_store;
struct dv_tokens;
struct dv_trial;

/* The namespace of claims; its label allows admin access. */
#define DV_CLAIM_NAMESPACE "verify"

/* What the driver has asked for so far, and how many answers refused it. */
struct dv_api_counts {
    size_t n_slice_writes;
    size_t n_slice_watches;
    size_t n_claim_reads;
    size_t n_forbidden; /* about slices, claims and classes: 403 */
    size_t n_invalid;   /* the same: 400 and 422 */
};

struct dv_trial_api {
    struct dv_trial *trial;
    struct dv_store *store;
    struct dv_embedded *embedded;
    struct dv_tokens *tokens;
    struct dv_metrics *metrics;
    struct dv_kube *kube;
    struct dv_rest_server *server; /* NULL: it is away */
    struct dv_orders *orders; /* with --attach all is asked for here, and nothing else is set */
    uint16_t port;
    dv_str token;
    /* How it misbehaves. */
    unsigned n_conflicts;        /* the next writes of slices are answered with 409 */
    unsigned n_gone;             /* the next watches are answered with 410 */
    struct dv_api_counts counts; /* without those of answers */
};

/* Opens it, and writes the kubeconfig; ends the trial when that fails. With --attach the API is
 * that of the keeper's process, and what the case before did to it is over. */
void dv_api_open(struct dv_trial *trial);
/* As when the server ends, and comes back at the same address. */
void dv_api_go_away(struct dv_trial *trial);
void dv_api_come_back(struct dv_trial *trial);
struct dv_api_counts dv_api_counts(struct dv_trial *trial);
/* Answers the next writes of slices with 409, and the next watches with 410: so many each. */
void dv_api_disturb(struct dv_trial *trial, unsigned n_conflicts, unsigned n_gone);

/* For the keeper: the token is from now on for what the trial's facts say. Not while it serves. */
void dv_api_renew_token(struct dv_trial *trial);

/* Waits for the end of a request about an object, in the namespace of claims where it has one.
 * False: `failure` is the API's message. `object` is set, with a reference, where there is one. */
bool dv_api_ask(struct dv_trial *trial, const struct dv_request *request, struct dv_object **object,
                dv_str *failure);
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

/* All of a kind. They and the list are borrowed until the loop's next turn, or the next list. */
size_t dv_api_list(struct dv_trial *trial, enum dv_kind_id kind, struct dv_object ***objects);
/* The slices of the driver under test, borrowed as of dv_api_list. */
size_t dv_api_slices(struct dv_trial *trial, struct dv_object ***slices);
/* Keeps what was listed, with a reference each and the list in the arena: for who changes one after
 * the other. */
void dv_api_keep(struct dv_trial *trial, struct dv_object ***objects, size_t n);
/* Devices in them. */
size_t dv_api_n_devices(struct dv_trial *trial);

#endif
