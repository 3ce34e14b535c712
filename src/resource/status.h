/* status.h - the API's failures: Status objects with the reference's reasons and messages. */
#ifndef DV_RESOURCE_STATUS_H
#define DV_RESOURCE_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"

struct dv_api_status;
struct dv_api_version;
struct dv_apply_conflict;
struct dv_arena;
struct dv_kind;
struct dv_problems;

/* The object that a failure is about; texts may be empty. */
struct dv_status_about {
    const struct dv_kind *kind; /* NULL: nothing in particular */
    /* The version of the request. It does not show: the reference names the group that a kind is
     * stored in. */
    const struct dv_api_version *version;
    dv_str name;
    dv_str uid;
    dv_str what;  /* in place of the kind's plural: "pods/binding", "ResourceClaim" */
    dv_str group; /* where there is no kind: "meta.k8s.io" with what "DeleteOptions" */
};

/* All are made in `arena`, texts included. */
struct dv_api_status *dv_status_bad_request(struct dv_arena *arena, const char *fmt, ...)
    DV_PRINTF(2, 3);
struct dv_api_status *dv_status_unauthorized(struct dv_arena *arena);
struct dv_api_status *dv_status_forbidden(const struct dv_status_about *about,
                                          struct dv_arena *arena, const char *fmt, ...)
    DV_PRINTF(3, 4);
struct dv_api_status *dv_status_not_found(const struct dv_status_about *about,
                                          struct dv_arena *arena);
struct dv_api_status *dv_status_no_such_path(struct dv_arena *arena);
struct dv_api_status *dv_status_method_not_allowed(struct dv_arena *arena);
struct dv_api_status *dv_status_already_exists(const struct dv_status_about *about,
                                               struct dv_arena *arena);
struct dv_api_status *dv_status_conflict(const struct dv_status_about *about,
                                         struct dv_arena *arena, const char *fmt, ...)
    DV_PRINTF(3, 4);
/* A conflict about fields that an apply would take from other managers. */
struct dv_api_status *dv_status_apply_conflict(const struct dv_apply_conflict *conflicts,
                                               size_t n_conflicts, struct dv_arena *arena);
struct dv_api_status *dv_status_expired(struct dv_arena *arena, const char *fmt, ...)
    DV_PRINTF(2, 3);
/* 422 with a cause for each problem. */
struct dv_api_status *dv_status_invalid(const struct dv_status_about *about,
                                        const struct dv_problems *problems, struct dv_arena *arena);
/* 422 for a patch that cannot be applied to what is there: the reference does not say why. */
struct dv_api_status *dv_status_cannot_patch(struct dv_arena *arena);
struct dv_api_status *dv_status_too_large_version(uint64_t wanted, uint64_t current,
                                                  struct dv_arena *arena);
struct dv_api_status *dv_status_too_many_requests(int64_t retry_after_s, struct dv_arena *arena,
                                                  const char *fmt, ...) DV_PRINTF(3, 4);
/* Makes a Status of an error of our own: full disk and full queues are 503, a client's fault 4xx,
 * all else 500. */
struct dv_api_status *dv_status_from_err(const struct dv_err *err, struct dv_arena *arena);
/* Makes any other Status; the reason is as the API writes it ("NotAcceptable"). */
struct dv_api_status *dv_status_new(int code, dv_str reason, struct dv_arena *arena,
                                    const char *fmt, ...) DV_PRINTF(4, 5);
/* Adds a cause; `field` may be empty. */
void dv_status_add_cause(struct dv_api_status *status, dv_str reason, dv_str message, dv_str field,
                         struct dv_arena *arena);
/* Makes an error of a Status, for callers that only report: the code by the HTTP code, the message
 * as it is. */
void dv_status_to_err(const struct dv_api_status *status, struct dv_err *err);

#endif
