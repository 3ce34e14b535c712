/* cluster.h - the seam to the API: objects read from views, changed by requests.
 *
 * Behind it is the embedded API of one machine (embedded.h: memory and the store) or a real
 * Kubernetes API server (remote.h). Who uses it does not know which.
 *
 * A view keeps the objects of one kind at hand and tells every change, in order; what it shows may
 * be older than what a request just did, never newer than what it has told. A request is answered
 * when its effect is durable. */
#ifndef DV_CLUSTER_H
#define DV_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "loop/loop.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_cluster;
struct dv_err;
struct dv_json;
struct dv_problems;
struct dv_view;

/* ---- views ---- */

struct dv_view_options {
    const struct dv_kind *kind;
    dv_str namespace; /* empty: all */
    dv_str label_selector;
    dv_str field_selector;
    dv_str annotation; /* only objects that have it, whatever its value; empty: all */
    /* An object came (old is NULL), changed, or went (now is NULL); both are borrowed for the call.
     * The view shows the change already. Runs first for all that is there, then `synced` once.
     * What changed has its UID and a higher version; when the database of an API server was
     * restored from a backup the version may be a lower one, or the same with other contents. */
    void (*changed)(void *ctx, struct dv_object *old, struct dv_object *now);
    void (*synced)(void *ctx); /* may be NULL */
    /* The connection was lost, or works again (err is NULL); may be NULL. What the view shows
     * stays; it goes on where it was, and tells what it missed as ordinary changes. */
    void (*disturbed)(void *ctx, const struct dv_err *err);
    void *ctx;
    /* A server that does not have the kind has no objects of it: the view is synced then, and looks
     * again now and then. */
    bool is_optional;
};

/* The options' texts are copied. No callback runs before this has returned, and none after close
 * has been called. DV_INVALID_ARGUMENT: a selector that cannot be. */
struct dv_view *dv_view_open(struct dv_cluster *cluster, const struct dv_view_options *options,
                             struct dv_err *err);
void dv_view_close(struct dv_view *view);
bool dv_view_is_synced(const struct dv_view *view);
size_t dv_view_n(const struct dv_view *view);
/* Borrowed until the next turn of the loop: take a reference to keep it. NULL when absent. */
struct dv_object *dv_view_get(const struct dv_view *view, dv_str namespace, dv_str name);
/* The same, and the object may be packed (resource/object_pool.h). */
struct dv_object *dv_view_get_packed(const struct dv_view *view, dv_str namespace, dv_str name);
/* The next object at or after *at, which is moved past it; NULL at the end. Start with 0. In no
 * particular order; the view must not change in between. */
struct dv_object *dv_view_next(const struct dv_view *view, size_t *at);

/* ---- requests ---- */

enum dv_verb {
    DV_VERB_GET,
    DV_VERB_CREATE,
    DV_VERB_UPDATE,
    DV_VERB_PATCH, /* apply too */
    DV_VERB_DELETE,
    DV_VERB_DELETE_COLLECTION,
};

enum dv_subresource {
    DV_SUB_NONE,
    DV_SUB_STATUS,
    DV_SUB_BINDING,  /* of pods, CREATE: `value` is struct dv_api_binding */
    DV_SUB_EVICTION, /* of pods, CREATE: `value` is struct dv_api_eviction */
    DV_SUB_FINALIZE, /* of namespaces, UPDATE */
    DV_SUB_SCALE,    /* of what has_scale, UPDATE with a struct dv_api_scale, PATCH of a Scale */
    DV_SUB_TOKEN,    /* of service accounts, CREATE: `value` is struct dv_api_token_request */
};

enum dv_patch_type {
    DV_PATCH_JSON,
    DV_PATCH_MERGE,
    DV_PATCH_STRATEGIC,
    DV_PATCH_APPLY,
};
/* The media type of such a patch, "application/merge-patch+json", and what one stands for. */
dv_str dv_patch_media_type(enum dv_patch_type type);
DV_CHECKED bool dv_patch_type_parse(dv_str media_type, enum dv_patch_type *type);

enum dv_field_validation {
    DV_VALIDATE_WARN,
    DV_VALIDATE_STRICT,
    DV_VALIDATE_IGNORE,
};

/* What is about to be written, for `mutate` and `judge` of a request. It is the engine's, and lent
 * until these have answered, or `settled` was called. */
struct dv_judging {
    struct dv_request *request;
    const struct dv_object *old; /* NULL: nothing is stored */
    const void *value;           /* as it will be stored; NULL: the object goes */
    struct dv_arena *arena;      /* lives as long as this */
    bool is_again; /* `mutate` is asked once more, about what has become of what it changed */
    void *ctx;     /* of who mutates, for the second time that it is asked */
    /* Set by who judges: why it is refused; NULL: it is not. */
    const struct dv_api_status *failure;
    /* Set by who mutates, in the arena: what is written instead of `value`; NULL: that. */
    void *changed;
    /* To be called once, in a later turn, after an answer of DV_JUDGED_LATER. */
    void (*settled)(struct dv_judging *judging);
};

enum dv_judged {
    DV_JUDGED_NOW,   /* `failure` says how */
    DV_JUDGED_LATER, /* it takes a while: `settled` will be called */
};

/* One request, embedded in what waits for it: zeroed, filled in, and lent with all it points to
 * until `done` has run. */
struct dv_request {
    enum dv_verb verb;
    enum dv_subresource subresource;
    const struct dv_kind *kind;
    const struct dv_api_version *version; /* that it is made in; NULL: the newest */
    dv_str namespace;
    dv_str name;       /* empty in CREATE: metadata.name or generateName of the value */
    const void *value; /* CREATE, UPDATE: the struct of the kind, or of the subresource */
    /* What the struct `value` refers to may be changed, because nobody looks at it again: a copy
     * less. */
    bool gives_value;
    enum dv_patch_type patch_type;
    const struct dv_json *patch; /* PATCH: the document, in `version` */
    /* PATCH of an embedded API by a part of this process, instead of a document: sets fields of
     * `value`, the struct of the kind. What is behind them is that of the stored object, and is not
     * changed in place; what is new lives in `arena`, or as long as the request. False: the object
     * is not as it was when the change was decided on, which is a conflict. Large objects are
     * changed on a worker. */
    bool (*change)(const struct dv_request *request, void *value, struct dv_arena *arena);
    /* UPDATE of the status in an embedded API: the finalizers are set too, in the same write. */
    bool sets_finalizers;
    const struct dv_api_delete_options *delete_options; /* DELETE...; may be NULL */
    dv_str label_selector;                              /* DELETE_COLLECTION */
    dv_str field_selector;
    dv_str field_manager;                      /* empty: "davit" */
    enum dv_field_validation field_validation; /* of what a patch brings in */
    bool is_forced;                            /* apply: take fields from other managers */
    bool is_dry_run;                           /* everything but the write */
    /* Who set which field is not kept of this write (but for an apply): for the controllers and
     * agents of this process, who write most and whose fields nobody else sets. The embedded API
     * only; a server keeps it. */
    bool is_untracked;
    /* Asked for a pod that may have come to this node a moment ago. A real server learns what a
     * node may read from the pods on it, a little later than the node learns of the pod: a 403 is
     * told only if it is still the answer after some seconds. */
    bool may_be_early;
    /* Asked by the embedded API only, with what is stored (NULL: nothing) and what is wanted (NULL:
     * it goes): may add problems, which then refuse it. As in the reference it is asked before the
     * value is validated and before fields that are not for this endpoint are set back. Runs before
     * `done`, also in the call that starts the request. May be NULL. */
    void (*admit)(struct dv_request *request, const struct dv_object *old, const void *value,
                  struct dv_problems *problems);
    /* Asked by the embedded API only, on the loop, of a value that is valid and as it will be
     * written, for each object of a DELETE_COLLECTION. May be NULL. Such a request is cancelled by
     * nobody. */
    enum dv_judged (*judge)(struct dv_judging *judging);
    /* Asked like `judge`, but of what `admit` had nothing against, before it is validated: it may
     * be changed. What was changed is held against `admit` again, and shown to `mutate` once more.
     * May be NULL. */
    enum dv_judged (*mutate)(struct dv_judging *judging);
    /* What `mutate` and `judge` do later may take long: other requests for the same name go on
     * meanwhile. When they have written, this one begins anew, a few times at most. */
    bool lets_others_pass;
    /* Asked once more when a worker has computed the write meanwhile, by the embedded API only:
     * false refuses it with 401. May be NULL. */
    bool (*is_authentic)(struct dv_request *request);
    void *ctx;           /* for `change`, `admit`, `judge` and `is_authentic` */
    uint64_t timeout_ms; /* of requests over a network; 0: 30 s */
    size_t size_bytes;   /* about what `value` or `patch` take, when known: what is large is done
                            on a worker, and `admit` then runs later than the start */

    /* failure: NULL on success; else a Status, borrowed. */
    void (*done)(struct dv_request *request, const struct dv_api_status *failure);
    /* Set before `done` runs; borrowed. For DELETE what was removed or is being removed. */
    struct dv_object *object;
    struct dv_object **objects; /* DELETE_COLLECTION: as they were before */
    size_t n_objects;
    const struct dv_api_token_request *token; /* DV_SUB_TOKEN: with its status, which is a secret */
    bool is_created;                          /* by an apply */
    bool is_removed; /* DELETE, or an UPDATE that took the last finalizer: it is gone */
    const dv_str *warnings;
    size_t n_warnings;

    void *priv; /* the engine's */
};

/* Starts it. `done` runs once, never before this has returned. */
void dv_request_start(struct dv_cluster *cluster, struct dv_request *request);
/* Gives up waiting: `done` still runs, with a failure of code 499. The effect may have happened or
 * still happen. */
void dv_request_cancel(struct dv_cluster *cluster, struct dv_request *request);

/* ---- reviews: what an API server says about others' users ---- */

/* One review, embedded in what waits for it: zeroed, filled in, and lent with all it points to
 * until `done` has run. Exactly one of `token` and `access` is set. */
struct dv_user_review {
    const struct dv_api_token_review_spec *token;           /* whose token is this? */
    const struct dv_api_subject_access_review_spec *access; /* may this user do that? */
    uint64_t timeout_ms;                                    /* over a network; 0: 10 s */
    /* err: NULL when there is an answer. DV_UNAVAILABLE: nobody could be asked.
     * DV_PERMISSION_DENIED: we may not ask. DV_CANCELLED: it was given up. */
    void (*done)(struct dv_user_review *review, const struct dv_err *err);
    /* The answer, set before `done` runs without an error; borrowed until it returns. */
    const struct dv_api_token_review_status *token_status;
    const struct dv_api_subject_access_review_status *access_status;

    void *priv; /* the engine's */
};

/* Starts it. `done` runs once, never before this has returned. */
void dv_user_review_start(struct dv_cluster *cluster, struct dv_user_review *review);
/* Gives up waiting: `done` still runs, with DV_CANCELLED. */
void dv_user_review_cancel(struct dv_cluster *cluster, struct dv_user_review *review);

/* ---- for engines ---- */

struct dv_cluster_engine {
    struct dv_view *(*view_open)(struct dv_cluster *cluster, const struct dv_view_options *options,
                                 struct dv_err *err);
    void (*view_close)(struct dv_view *view);
    void (*request_start)(struct dv_cluster *cluster, struct dv_request *request);
    void (*request_cancel)(struct dv_cluster *cluster, struct dv_request *request);
    void (*review_start)(struct dv_cluster *cluster, struct dv_user_review *review);
    void (*review_cancel)(struct dv_cluster *cluster, struct dv_user_review *review);
};

/* The first member of an engine. */
struct dv_cluster {
    const struct dv_cluster_engine *engine;
    struct dv_loop *loop;
    bool is_embedded; /* it takes what is said to be for an embedded API */
};

#endif
