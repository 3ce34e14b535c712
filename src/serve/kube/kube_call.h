/* kube_call.h - one call to the API that is under way, which the files of kube/ share. */
#ifndef DV_SERVE_KUBE_CALL_H
#define DV_SERVE_KUBE_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "serve/auth.h"
#include "serve/auth/quota.h"
#include "serve/kube/kube_hook_call.h"
#include "serve/kube/kube_watch_share.h"
#include "serve/kube_api.h"
#include "serve/wire/kube_accept.h"
#include "serve/wire/kube_body.h"
#include "serve/wire/kube_query.h"
#include "serve/wire/kube_render.h"
#include "serve/wire/kube_route.h"
#include "webhook/webhook.h"

struct dv_access;
struct dv_api_resource_slice;
struct dv_api_status;
struct dv_arena;
struct dv_auth_change;
struct dv_body_kind;
struct dv_documents;
struct dv_embedded_token;
struct dv_event_cache;
struct dv_family;
struct dv_json;
struct dv_kube_call;
struct dv_kube_defaults;
struct dv_kube_own_service;
struct dv_pod_stream_options;
struct dv_rest_call;
struct dv_rest_client;
struct dv_rest_request;
struct dv_token;
struct dv_token_op;
struct dv_vap;

/* The number of kinds whose objects count for quotas. */
#define DV_KUBE_QUOTA_KINDS 3u

/* The number of kinds that say who may do what. */
#define DV_KUBE_ACCESS_KINDS 4u

/* The number of kinds of admission policies: policies, and what binds them. */
#define DV_KUBE_POLICY_KINDS 2u

/* The number of kinds of webhook configurations. */
#define DV_KUBE_WEBHOOK_KINDS 2u

/* The length of dv_rest_random_token. */
#define DV_KUBE_SECRET_BYTES 43u

struct dv_kube {
    struct dv_kube_options options;
    struct dv_list watches;
    struct dv_watch_shares watch_shares;
    size_t n_watches;
    size_t n_logs_of_others;   /* logs that users read who are no admins */
    struct dv_list peer_calls; /* those that nodes answer, struct dv_kube_peer_call */
    /* What proves to nodes that it is this API that asks, see kube_peer.c; made at the start. */
    char peer_secret[DV_KUBE_SECRET_BYTES];
    size_t n_calls; /* calls that are not answered yet, watches included */
    struct dv_event_cache *cache;
    struct dv_timer cache_age; /* is set while there are texts */
    struct dv_documents *documents;
    struct dv_family *requests; /* NULL: nothing is counted */
    struct dv_family *durations;
    struct dv_family *open_watches;
    struct dv_family *quota_refusals;
    struct dv_quota *quota;
    struct dv_view *quota_views[DV_KUBE_QUOTA_KINDS];
    struct dv_access *access; /* the roles and bindings that there are */
    struct dv_view *access_views[DV_KUBE_ACCESS_KINDS];
    struct dv_vap *vap; /* the admission policies that there are */
    struct dv_view *policy_views[DV_KUBE_POLICY_KINDS];
    struct dv_webhooks *webhooks; /* the admission webhooks that there are */
    struct dv_view *webhook_views[DV_KUBE_WEBHOOK_KINDS];
    struct dv_list chains; /* writes that wait for webhooks, and how many bytes they are */
    size_t n_chains;
    size_t chains_bytes;
    struct dv_hook_clients hook_clients;
    struct dv_kube_defaults *defaults; /* those that are being made; NULL: none */
    struct dv_timer defaults_again;
    bool has_defaults;  /* those that always exist have been made */
    dv_str own_address; /* where pods reach this API; empty: that is not known */
    int64_t own_port;
    struct dv_kube_own_service *own_service; /* its service is being looked at; NULL: it is not */
    struct dv_timer own_again;
    bool is_closing;
    struct dv_task close_task;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* A body that is being read, and what is done with it then. */
struct dv_kube_reading {
    struct dv_body_kind kind;
    struct dv_write_options options;
    enum dv_media media;
    enum dv_patch_type patch_type;
    void (*then)(struct dv_kube_call *call, void *value); /* runs with the object that was read */
    void *value;
    struct dv_json *patch;
    struct dv_decode_notes notes;
    struct dv_api_status *failure; /* NULL: there is none */
};

/* An answer that is being made. */
struct dv_kube_writing {
    unsigned code;
    struct dv_object *object; /* a reference; NULL: a list */
    struct dv_list_page page; /* references to its objects */
    enum dv_media media;
    struct dv_buf body;
};

/* A call; it is in the arena of the HTTP call. */
struct dv_kube_call {
    struct dv_kube *kube;
    struct dv_rest_call *rest; /* freed once it is answered, with the arena and this struct */
    const struct dv_rest_request *request;
    struct dv_arena *arena;
    uint64_t started_ns;
    struct dv_route route;
    struct dv_query query;
    /* Hash of the token that the client showed; empty: a certificate, or nothing. */
    dv_str token_hash;
    struct dv_api_user_info user;
    struct dv_auth_request auth; /* what it asks to be allowed */
    struct dv_render render;
    struct dv_decode_notes warnings;
    struct dv_request op;         /* the request to the engine */
    struct dv_auth_denial denial; /* why admission refuses the write; `reason` is not empty then */
    /* The quota that a node's or driver's write reserves until it is done. */
    struct dv_quota_hold hold;
    dv_str over_quota;        /* why the write does not fit the quota; empty: it does */
    bool is_revoked;          /* the token was revoked while the write waited for its turn */
    struct dv_custom *custom; /* the definition that made the kind; a reference, or NULL */
    struct dv_kube_reading reading;
    struct dv_kube_writing writing;
    struct dv_work work;
    void (*run)(struct dv_kube_call *call);
    void (*then)(struct dv_kube_call *call);
};

/* Calls `run`, then `then`: at once or, when about `n_bytes` have to be processed and that takes
 * long, `run` on a worker and `then` later. `run` may use nothing but the call and what it
 * holds. */
void dv_kube_work(struct dv_kube_call *call, size_t n_bytes, void (*run)(struct dv_kube_call *call),
                  void (*then)(struct dv_kube_call *call));

/* ---- answers: each ends the call ---- */

/* Answers with what admission said about the object. */
void dv_kube_reply_denial(struct dv_kube_call *call);
/* Answers with a body in JSON or protobuf, as the call's rendering says; YAML and indentation are
 * made here. */
void dv_kube_reply(struct dv_kube_call *call, unsigned code, struct dv_buf *body);
void dv_kube_reply_status(struct dv_kube_call *call, const struct dv_api_status *status);
void dv_kube_reply_text(struct dv_kube_call *call, unsigned code, dv_str text);
/* Answers with a document of ours, which is JSON text. */
void dv_kube_reply_document(struct dv_kube_call *call, dv_str content_type, dv_str text);
void dv_kube_reply_nothing(struct dv_kube_call *call, unsigned code);
void dv_kube_reply_object(struct dv_kube_call *call, unsigned code, struct dv_object *object);
/* Like dv_kube_reply_object, with an object that was just written, whose watchers get the same
 * text. */
void dv_kube_reply_written(struct dv_kube_call *call, unsigned code, struct dv_object *object);
/* Answers with a list; the objects of the page are borrowed. */
void dv_kube_reply_list(struct dv_kube_call *call, const struct dv_list_page *page);
/* Whether a list can be answered in parts, in the form that the client wants. */
bool dv_kube_can_stream(const struct dv_kube_call *call);
/* Like dv_kube_reply_list, in parts; takes the references to the objects. `n_bytes` is about how
 * long the list is. */
void dv_kube_stream_list(struct dv_kube_call *call, const struct dv_list_page *page,
                         size_t n_bytes);
/* Whether the answer is indented: programs whose output people read get that without asking. */
bool dv_kube_is_pretty(const struct dv_kube_call *call);
/* Adds the fields that every answer has: warnings, and that it must not be cached. */
void dv_kube_add_fields(struct dv_kube_call *call, const char *content_type);
void dv_kube_warn(struct dv_kube_call *call, dv_str text);
/* Counts the call with the code of its answer. dv_kube_release notes that there is one call less:
 * the last one lets a closing API end. */
void dv_kube_count(struct dv_kube_call *call, unsigned code);
void dv_kube_release(struct dv_kube *kube);

/* ---- who asks, and whether he may ---- */

/* Finds the user of the call. False: the call has been answered. */
bool dv_kube_authenticate(struct dv_kube_call *call);
/* Replaces the call's user by the one that its headers name, if that is allowed. False: the call
 * has been answered. */
bool dv_kube_impersonate(struct dv_kube_call *call);
bool dv_kube_authorize(struct dv_kube_call *call);
/* Whether the service account that a token was made for, and what it is bound to, still exist; true
 * for tokens of davit's own users. */
bool dv_kube_is_token_bound_there(const struct dv_kube *kube, const struct dv_token *token);
/* Returns the audiences of this API, borrowed. */
struct dv_strs dv_kube_audiences(const struct dv_kube *kube);
/* Returns which of the audiences in question a token is for, in the arena; without a question those
 * of this API. */
struct dv_strs dv_kube_shared_audiences(const struct dv_kube *kube, const struct dv_token *token,
                                        struct dv_strs asked, struct dv_arena *arena);
bool dv_kube_is_among(const struct dv_strs *texts, dv_str text);
/* Calls dv_tokens_create in that arena; tokens whose account or pod is gone make room. */
void dv_kube_make_token(struct dv_kube *kube, struct dv_arena *arena, struct dv_token_op *op);
/* Makes tokens for pods of this node: dv_embedded_make_token, whose `ctx` is the API. */
void dv_kube_make_own_token(void *ctx, struct dv_embedded_token *token);
/* Answers reviews of this process: dv_embedded_review, whose `ctx` is the API. */
void dv_kube_review_own(void *ctx, struct dv_user_review *review, struct dv_arena *arena);
/* Whether the call's token, if it has one, is still valid: a request that has waited asks again. */
bool dv_kube_is_request_authentic(struct dv_request *request);
/* Makes a 403 Status: the call's user may not do what it asks. `reason` may be empty. */
struct dv_api_status *dv_kube_forbidden(const struct dv_kube_call *call,
                                        const struct dv_auth_request *asked, dv_str reason);
/* Returns the relations that dv_auth_decide asks for, answered from what is stored. */
struct dv_auth_relations dv_kube_relations(struct dv_kube *kube);
/* Fills in what struct dv_auth_change says of a slice's pool; the struct is zeroed before. */
void dv_kube_look_at_pool(const struct dv_kube *kube, dv_str node,
                          const struct dv_api_resource_slice *slice, struct dv_auth_change *change);
/* Is `admit` of requests to the engine (cluster.h), whose `ctx` is the call. */
void dv_kube_admit(struct dv_request *request, const struct dv_object *old, const void *value,
                   struct dv_problems *problems);

/* ---- other nodes ---- */

/* A call that the node answers on which the pod is. */
struct dv_kube_peer_call {
    struct dv_link link; /* among those of the API */
    void (*cancel)(struct dv_kube_peer_call *peer_call);
};

/* Opens a client of the own API of that node, which knows only that node, and is known to it.
 * False: there is none, and the call has been answered. */
bool dv_kube_open_peer(struct dv_kube_call *call, dv_str node, struct dv_rest_client **client);
/* Whether a token is what this API shows to a node; *user, in the arena, is the API then. */
bool dv_kube_is_peer_token(const struct dv_kube *kube, dv_str token, struct dv_arena *arena,
                           struct dv_api_user_info *user);
/* Answers that the node refuses, with the code and text of its answer. */
void dv_kube_reply_peer_refusal(struct dv_kube_call *call, dv_str node, unsigned code, dv_str text);
/* Answers that the node could not be asked. */
void dv_kube_reply_peer_error(struct dv_kube_call *call, const char *what,
                              const struct dv_err *err);
/* Answer with what the node answers. `container` is empty for port-forward. */
void dv_kube_peer_log(struct dv_kube_call *call, dv_str node, dv_str container, bool is_admins);
void dv_kube_peer_stream(struct dv_kube_call *call, dv_str node, dv_str container,
                         const struct dv_pod_stream_options *options);
void dv_kube_end_peer_calls(struct dv_kube *kube);

/* ---- quotas ---- */

void dv_kube_open_quota(struct dv_kube *kube);
void dv_kube_close_quota(struct dv_kube *kube);
/* Reserves quota for a write of a node or a driver; false: the write is refused, and the call knows
 * why. */
bool dv_kube_admit_quota(struct dv_kube_call *call, const struct dv_object *old, const void *value,
                         dv_str node, dv_str driver);

/* ---- roles and bindings ---- */

/* Keeps the index of roles and bindings current, and makes those that always exist. */
void dv_kube_open_access(struct dv_kube *kube);
void dv_kube_close_access(struct dv_kube *kube);
/* Whether the call's user, whose rights are by roles, may make this change: nobody gives rights
 * that it does not have, and who makes an object by an update may create it. False: the call's
 * denial says why. */
bool dv_kube_admit_by_roles(struct dv_kube_call *call, const struct dv_object *old,
                            const void *value);

/* ---- admission policies ---- */

/* Keeps the index of policies and their bindings current. */
void dv_kube_open_policies(struct dv_kube *kube);
void dv_kube_close_policies(struct dv_kube *kube);
/* Whether all policies that there are have been seen. */
bool dv_kube_has_policies(const struct dv_kube *kube);

/* ---- admission webhooks ---- */

/* Keeps the index of webhooks current. */
void dv_kube_open_webhooks(struct dv_kube *kube);
/* Gives up the calls of webhooks that are under way. */
void dv_kube_close_webhooks(struct dv_kube *kube);
void dv_kube_free_webhooks(struct dv_kube *kube);
/* Whether all webhooks that there are have been seen. */
bool dv_kube_has_webhooks(const struct dv_kube *kube);
/* Whether a webhook of the phase may be about objects of the kind. */
bool dv_kube_has_webhooks_for(const struct dv_kube *kube, enum dv_webhook_phase phase,
                              const struct dv_kind *kind);

/* ---- who judges writes ---- */

/* Are `judge` and `mutate` of requests to the engine (cluster.h), whose `ctx` is the call. */
enum dv_judged dv_kube_judge(struct dv_judging *judging);
enum dv_judged dv_kube_mutate(struct dv_judging *judging);
/* Asks policies and webhooks about a connection to a subresource of a pod, with these options of
 * that kind, to which their kind is added; then goes on, now or later, or answers that it is
 * refused. */
void dv_kube_judge_connection(struct dv_kube_call *call, dv_str kind, struct dv_json *options,
                              void (*then)(struct dv_kube_call *call, void *ctx), void *ctx);

/* ---- what is done ---- */

/* Serves everything but objects and reviews. */
void dv_kube_serve_page(struct dv_kube_call *call);
void dv_kube_serve_explain(struct dv_kube_call *call); /* serves /davit/v1/explain/... */
void dv_kube_serve_tokens(struct dv_kube_call *call);  /* serves davit's own /davit/v1/tokens */
/* Serve who signs tokens, and the keys to verify them by. */
void dv_kube_serve_issuer(struct dv_kube_call *call);
void dv_kube_serve_keys(struct dv_kube_call *call);
void dv_kube_serve_node(struct dv_kube_call *call);
void dv_kube_log(struct dv_kube_call *call); /* serves pods/NAME/log */
/* Serves pods/NAME/exec, /attach and /portforward. */
void dv_kube_stream(struct dv_kube_call *call);
void dv_kube_get(struct dv_kube_call *call);
void dv_kube_list(struct dv_kube_call *call);
void dv_kube_watch(struct dv_kube_call *call, const struct dv_list_options *options);
void dv_kube_create(struct dv_kube_call *call);
void dv_kube_update(struct dv_kube_call *call);
void dv_kube_patch(struct dv_kube_call *call);
void dv_kube_delete(struct dv_kube_call *call);
void dv_kube_review(struct dv_kube_call *call);
void dv_kube_review_rules(struct dv_kube_call *call);
void dv_kube_request_token(struct dv_kube_call *call);
/* Reads the body of a review of `kind`; false: the call has been answered. The next function
 * answers it. */
bool dv_kube_read_review(struct dv_kube_call *call, const struct dv_body_kind *kind, void **value);
void dv_kube_reply_review(struct dv_kube_call *call, const struct dv_body_kind *kind,
                          const void *value);
/* How an object that has one is scaled: the body's kind, and the answer. */
extern const struct dv_body_kind dv_kube_scale_kind;
void dv_kube_reply_scale(struct dv_kube_call *call, struct dv_object *object);
/* Binds a pod by the posted Binding; the pod's name is in the path, or else in the body. */
void dv_kube_bind(struct dv_kube_call *call);

/* Checks that there is a body of an allowed size, in a form that is known; false: the call has been
 * answered. */
bool dv_kube_body_media(struct dv_kube_call *call, enum dv_media *media);
/* Whether the kind has no form in protobuf: schemas, and objects that follow them, are JSON. */
bool dv_kube_is_only_json(const struct dv_route *route);
struct dv_time dv_kube_now(const struct dv_kube *kube);

/* ---- watches ---- */

/* Keeps the texts of objects that were written, so that each is made once for all who watch the
 * same, and for who has written it. */
struct dv_event_cache *dv_event_cache_new(void);
void dv_event_cache_free(struct dv_event_cache *cache); /* NULL is fine */
/* Drops the texts that were there at the last call; true: there are others. */
bool dv_event_cache_age(struct dv_event_cache *cache);
/* Returns what dv_render_object prints, in another form than a table, borrowed until the next
 * call. */
dv_str dv_event_cache_object(struct dv_event_cache *cache, const struct dv_render *render,
                             struct dv_object *object);
/* Returns the bytes of the event, borrowed until the next call. */
dv_str dv_event_cache_get(struct dv_event_cache *cache, const struct dv_render *render,
                          const char *type, struct dv_object *object);
/* The cache, from which a text is about to be taken. */
struct dv_event_cache *dv_kube_cache(struct dv_kube *kube);
void dv_kube_end_watches(struct dv_kube *kube);

#endif
