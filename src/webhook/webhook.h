/* webhook.h - admission webhooks: which of them a write concerns, what they are sent, and what
 * their answers mean, as the reference decides it. Pure: who calls them is told what to send and
 * what to make of what comes back.
 *
 * An index holds the webhooks of all configurations, kept current change by change, and a table
 * that says which kinds any is about, so that all other writes cost one look. */
#ifndef DV_WEBHOOK_H
#define DV_WEBHOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"
#include "vap/vap_match.h"
/* IWYU pragma: no_include "number/number.h" */

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_json;
struct dv_vap_conditions;
struct dv_vap_write;

/* ---- webhooks ---- */

enum dv_webhook_phase {
    DV_WEBHOOK_MUTATES,
    DV_WEBHOOK_VALIDATES,
};
#define DV_WEBHOOK_N_PHASES 2u

/* Versions of the AdmissionReview. */
enum dv_review_version {
    DV_REVIEW_V1,
    DV_REVIEW_V1BETA1,
};

/* One webhook. It lives as long as the index or somebody else refers to it. */
struct dv_webhook {
    uint32_t n_refs;
    struct dv_arena *arena;               /* with this struct */
    struct dv_object *config;             /* a reference */
    struct dv_api_mutating_webhook value; /* as it stands in the configuration */
    size_t place;                         /* there */
    enum dv_webhook_phase phase;
    struct dv_vap_match match;
    struct dv_vap_conditions *conditions;
    enum dv_review_version review;
    bool is_fail;      /* failurePolicy: what cannot be asked refuses the write */
    bool is_reinvoked; /* reinvocationPolicy: it is called again when others changed the object */
    bool has_effects;  /* it must not be called for a dry run */
    uint64_t timeout_ms;
};

struct dv_webhook *dv_webhook_ref(struct dv_webhook *webhook);
void dv_webhook_unref(struct dv_webhook *webhook); /* NULL is fine */
/* Whether the write is meant; *version is the one in which the objects are to be shown. */
bool dv_webhook_matches(const struct dv_webhook *webhook, const struct dv_vap_write *write,
                        const struct dv_vap_labels *labels, const struct dv_api_version **version);

struct dv_webhooks;

struct dv_webhooks *dv_webhooks_new(void);
void dv_webhooks_free(struct dv_webhooks *webhooks); /* NULL is fine */
/* A configuration of either kind came (`old` is NULL), changed, or went (`now` is NULL). */
void dv_webhooks_changed(struct dv_webhooks *webhooks, const struct dv_object *old,
                         struct dv_object *now);
/* Whether a webhook may be about objects of the kind: false at the cost of a look into a table. */
bool dv_webhooks_are_about(const struct dv_webhooks *webhooks, enum dv_webhook_phase phase,
                           const struct dv_kind *kind);

struct dv_webhook_list {
    struct dv_webhook **v;
    size_t n;
};
/* Those of the phase in the order in which they are called: by the name of their configuration,
 * then as they stand there. Borrowed until the next change. */
struct dv_webhook_list dv_webhooks_of(const struct dv_webhooks *webhooks,
                                      enum dv_webhook_phase phase);

/* ---- reviews ---- */

/* Prints what the webhook is sent about the write: its objects are shown in `version`. */
void dv_review_print(const struct dv_vap_write *write, const struct dv_api_version *version,
                     enum dv_review_version review, dv_str uid, struct dv_arena *arena,
                     struct dv_buf *buf);

struct dv_webhook_answer {
    bool is_allowed;
    const struct dv_api_status *status; /* why not; NULL: it says nothing */
    const struct dv_json *patch;        /* a JSON patch; NULL: there is none, or it is empty */
    const dv_str *warnings;
    size_t n_warnings;
};

/* Reads the answer to the review of that uid, which came from a webhook of that phase; keeps
 * `text`. DV_INVALID_ARGUMENT, with the reference's words: it is none. */
DV_CHECKED bool dv_review_read(dv_str text, enum dv_review_version review, dv_str uid,
                               enum dv_webhook_phase phase, struct dv_arena *arena,
                               struct dv_webhook_answer *answer, struct dv_err *err);
/* The Status of a write that the webhook of that name does not allow. */
struct dv_api_status *dv_review_refusal(dv_str name, const struct dv_api_status *said,
                                        struct dv_arena *arena);

/* Applies a patch to an object as it reads in `version`, and fills in the defaults. NULL: it does
 * not apply, or what it makes is no such object, or one of another name. */
void *dv_review_patch(const struct dv_kind *kind, const struct dv_api_version *version,
                      const void *value, const struct dv_json *patch, struct dv_time now,
                      struct dv_arena *arena, struct dv_err *err);

#endif
