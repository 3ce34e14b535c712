/* remote_request.c - one request over HTTP: encoded, sent, and tried again while the server says
 * that it is busy, or does not know yet what the node may read; in an older version of the API when
 * the server does not have the newest. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "cluster/remote/remote_engine.h"
#include "cluster/remote/remote_event.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "json/json.h"

#define TIMEOUT_MS 30000u
/* The ceiling of a body. The server's own limit is 3 MiB of its encoding; ours may be a little
 * larger. */
#define BODY_BYTES_MAX (8u << 20)
#define TARGET_BYTES_MAX 65536u
/* The shortest pause before a request is repeated, also when the server says "at once". */
#define RETRY_MS_MIN 100u
/* A request that may be early is repeated after a quarter of a second, and after pauses that
 * double: 7.75 s in all. The authorizer's graph follows its watch of pods, which is behind by a
 * fraction of a second as a rule, and by some seconds on a server under load. */
#define EARLY_MS 250u
#define N_EARLY_MAX 5u
#define EARLY_JITTER_PER_MILLE 100u
/* The code of a cancelled request. HTTP has none; nginx uses this one for a client that has
 * gone. */
#define CODE_CANCELLED 499

struct exchange {
    struct dv_remote *remote;
    struct dv_request *request;
    struct dv_link link;
    struct dv_arena *arena;
    struct dv_rest_fetch fetch;
    struct dv_rest_field fields[2];
    struct dv_buf target;
    struct dv_buf body;
    struct dv_timer timer;
    struct dv_task task;
    const struct dv_api_version *version; /* the version that the request is made in */
    uint64_t deadline_ms;
    unsigned n_early; /* how often it was repeated because it may have been early */
    bool is_fetching;
    bool is_cancelled;
    struct dv_object *object; /* what the server has answered */
    struct dv_object **objects;
    size_t n_objects;
    struct dv_api_status *failure; /* a failure that is told in the next turn */
};

static const struct {
    dv_str name;
    bool answers_status; /* the server answers with a Status instead of the object */
} subresources[] = {
    [DV_SUB_NONE] = {DV_STR_INIT(""),         false},
    [DV_SUB_STATUS] = {DV_STR_INIT("status"),   false},
    [DV_SUB_BINDING] = {DV_STR_INIT("binding"),  true },
    [DV_SUB_EVICTION] = {DV_STR_INIT("eviction"), true },
    [DV_SUB_FINALIZE] = {DV_STR_INIT("finalize"), false},
    [DV_SUB_SCALE] = {DV_STR_INIT("scale"),    false},
    [DV_SUB_TOKEN] = {DV_STR_INIT("token"),    false},
};

static const dv_str methods[] = {
    [DV_VERB_GET] = DV_STR_INIT("GET"),       [DV_VERB_CREATE] = DV_STR_INIT("POST"),
    [DV_VERB_UPDATE] = DV_STR_INIT("PUT"),    [DV_VERB_PATCH] = DV_STR_INIT("PATCH"),
    [DV_VERB_DELETE] = DV_STR_INIT("DELETE"), [DV_VERB_DELETE_COLLECTION] = DV_STR_INIT("DELETE"),
};

/* ---- the end ---- */

static void finish(struct exchange *exchange, const struct dv_api_status *failure)
{
    struct dv_remote *remote = exchange->remote;
    struct dv_request *request = exchange->request;

    dv_link_remove(&exchange->link);
    dv_timer_cancel(&exchange->timer);
    dv_task_cancel(&exchange->task);
    request->priv = NULL;
    if (!failure) {
        request->object = exchange->object;
        request->objects = exchange->objects;
        request->n_objects = exchange->n_objects;
    }
    request->done(request, failure); /* may free the request: nothing is touched afterwards */
    dv_object_unref(exchange->object);
    for (size_t i = 0; i < exchange->n_objects; i++)
        dv_object_unref(exchange->objects[i]);
    dv_buf_fini(&exchange->target);
    dv_buf_fini(&exchange->body);
    dv_arena_free(exchange->arena);
    free(exchange);
    dv_remote_free_if_done(remote);
}

static void fail(struct exchange *exchange, const struct dv_err *err)
{
    finish(exchange, dv_status_from_err(err, exchange->arena));
}

static struct dv_api_status *cancelled(struct exchange *exchange)
{
    return dv_status_new(CODE_CANCELLED, DV_STR("Cancelled"), exchange->arena,
                         exchange->remote->is_closing
                             ? "the connection to the API server is being closed"
                             : "nobody waits for it any more");
}

/* ---- answers ---- */

static bool read_list(struct exchange *exchange, const struct dv_json *doc, struct dv_err *err)
{
    const struct dv_json *items = dv_json_get(doc, DV_STR("items"));

    exchange->objects = DV_NEW_ARRAY(exchange->arena, struct dv_object *, dv_json_n(items));
    for (const struct dv_json *at = dv_json_first(items); at; at = dv_json_next(at)) {
        struct dv_object *object =
            dv_remote_object(exchange->request->kind, exchange->version, at, exchange->arena, err);

        if (!object)
            return false;
        exchange->objects[exchange->n_objects++] = object;
    }
    return true;
}

static void read_warnings(struct exchange *exchange)
{
    const struct dv_rest_fetch *fetch = &exchange->fetch;
    DV_VEC(dv_str) warnings = {0};

    for (size_t i = 0; i < fetch->n_answer_fields; i++)
        if (dv_str_eq_nocase(fetch->answer_fields[i].name, DV_STR("Warning")))
            *dv_vec_add_in(&warnings, exchange->arena) =
                dv_remote_warning(fetch->answer_fields[i].value, exchange->arena);
    exchange->request->warnings = warnings.v;
    exchange->request->n_warnings = warnings.n;
}

/* Whether an object that DELETE answered with is gone: one that no finalizer or grace period holds
 * back is. */
static bool is_gone(const struct dv_object *object)
{
    const struct dv_api_object_meta *meta = object->meta;

    if (!meta->deletion_timestamp.is_set || meta->n_finalizers > 0)
        return false;
    if (object->kind->id == DV_KIND_NAMESPACE)
        return ((const struct dv_api_namespace *)object->value)->spec.n_finalizers == 0;
    return meta->deletion_grace_period_seconds && *meta->deletion_grace_period_seconds == 0;
}

static bool read_object(struct exchange *exchange, const struct dv_json *doc, struct dv_err *err)
{
    struct dv_request *request = exchange->request;
    struct dv_object *object =
        dv_remote_object(request->kind, exchange->version, doc, exchange->arena, err);

    if (!object)
        return false;
    exchange->object = object;
    request->is_created = exchange->fetch.status == 201 && request->verb == DV_VERB_PATCH;
    request->is_removed =
        request->verb == DV_VERB_DELETE
            ? !object->meta->deletion_timestamp.is_set || is_gone(object)
            : (request->verb == DV_VERB_UPDATE || request->verb == DV_VERB_PATCH) &&
                  is_gone(object);
    return true;
}

static bool read_token(struct exchange *exchange, const struct dv_json *doc, struct dv_err *err)
{
    struct dv_api_token_request *token = DV_NEW(exchange->arena, struct dv_api_token_request);

    if (!dv_decode_json(&dv_message_token_request, doc, DV_UNKNOWN_DROP, exchange->arena, token,
                        NULL, err))
        return false;
    if (token->status.token.n == 0)
        return dv_fail(err, DV_INTERNAL, "it has no token");
    exchange->request->token = token;
    return true;
}

static bool read_answer(struct exchange *exchange, struct dv_err *err)
{
    struct dv_request *request = exchange->request;
    dv_str text = dv_str_copy(exchange->fetch.answer, exchange->arena);
    const struct dv_json *doc = dv_json_parse(text, NULL, exchange->arena, err);

    if (!doc)
        return dv_wrap(err, "the server's answer");
    read_warnings(exchange);
    if (request->verb == DV_VERB_DELETE_COLLECTION)
        return read_list(exchange, doc, err);
    if (subresources[request->subresource].answers_status)
        return true;
    if (request->subresource == DV_SUB_TOKEN)
        return read_token(exchange, doc, err) || dv_wrap(err, "the server's answer");
    if (request->verb == DV_VERB_DELETE &&
        dv_str_eq(dv_remote_text(doc, "kind"), DV_STR("Status"))) {
        request->is_removed = true;
        return true;
    }
    return read_object(exchange, doc, err);
}

static void attempt(struct exchange *exchange);

static void on_timer(struct dv_timer *timer)
{
    attempt(DV_CONTAINER(timer, struct exchange, timer));
}

/* Waits when the server is busy and says when to come again; it has not done anything yet. With
 * jitter, so that not all come back at once. False: the answer is another one. */
static bool waits(struct exchange *exchange)
{
    struct dv_loop *loop = exchange->remote->cluster.loop;
    unsigned status = exchange->fetch.status;
    uint64_t wait_ms;
    uint64_t at_ms;

    if ((status != 429 && status != 503) ||
        !dv_remote_retry_after(dv_rest_fetch_field(&exchange->fetch, DV_STR("Retry-After")),
                               &wait_ms))
        return false;
    wait_ms = dv_u64_max(wait_ms, RETRY_MS_MIN);
    at_ms = dv_loop_now_ms(loop) + wait_ms + dv_random_u64() % (wait_ms / 4);
    if (at_ms >= exchange->deadline_ms)
        return false;
    dv_timer_start(&exchange->timer, loop, at_ms, on_timer);
    return true;
}

/* Waits when the server may not know yet of the pod that the request is for. False: it is not so,
 * or has been so for too long. */
static bool is_early(struct exchange *exchange)
{
    struct dv_loop *loop = exchange->remote->cluster.loop;
    uint64_t wait_ms = (uint64_t)EARLY_MS << exchange->n_early;
    uint64_t at_ms = dv_loop_now_ms(loop) + dv_jitter(wait_ms, EARLY_JITTER_PER_MILLE);

    if (exchange->fetch.status != 403 || !exchange->request->may_be_early ||
        exchange->n_early == N_EARLY_MAX || at_ms >= exchange->deadline_ms)
        return false;
    exchange->n_early++;
    dv_timer_start(&exchange->timer, loop, at_ms, on_timer);
    return true;
}

static void print(struct exchange *exchange);

/* Tries an older version of the API when the server does not have the kind in this one. Not for a
 * patch: its document is written in one version. */
static bool tries_other_version(struct exchange *exchange, const struct dv_api_status *status)
{
    const struct dv_request *request = exchange->request;

    if (request->version || request->verb == DV_VERB_PATCH || !dv_remote_is_no_path(status) ||
        !dv_remote_version_refused(exchange->remote, request->kind, exchange->version))
        return false;
    exchange->version = dv_remote_version(exchange->remote, request->kind);
    print(exchange);
    attempt(exchange);
    return true;
}

static void on_refused(struct exchange *exchange)
{
    const struct dv_api_status *status =
        dv_remote_status(exchange->fetch.status,
                         dv_str_copy(exchange->fetch.answer, exchange->arena), exchange->arena);

    if (exchange->fetch.status == 401)
        dv_remote_token_doubt(exchange->remote->token);
    if (!waits(exchange) && !is_early(exchange) && !tries_other_version(exchange, status))
        finish(exchange, status);
}

static void on_fetched(struct dv_rest_fetch *fetch, const struct dv_err *failed)
{
    struct exchange *exchange = DV_CONTAINER(fetch, struct exchange, fetch);
    struct dv_err err;

    exchange->is_fetching = false;
    if (exchange->is_cancelled) {
        finish(exchange, cancelled(exchange));
    } else if (failed) {
        fail(exchange, failed);
    } else if (fetch->status / 100 != 2) {
        on_refused(exchange);
    } else if (read_answer(exchange, &err)) {
        finish(exchange, NULL);
    } else {
        /* The answer cannot be read, which is not the fault of whoever asked. */
        err.code = DV_INTERNAL;
        fail(exchange, &err);
    }
}

static void attempt(struct exchange *exchange)
{
    const struct dv_request *request = exchange->request;

    exchange->fetch = (struct dv_rest_fetch){
        .method = methods[request->verb],
        .target = dv_buf_str(&exchange->target),
        .fields = exchange->fields,
        .n_fields = exchange->body.n ? 2 : 1,
        .body = dv_buf_str(&exchange->body),
        .deadline_ms = exchange->deadline_ms,
        .done = on_fetched,
    };
    exchange->is_fetching = true;
    dv_rest_fetch_start(exchange->remote->client, &exchange->fetch);
}

/* ---- questions ---- */

static void print_target(struct exchange *exchange)
{
    const struct dv_request *request = exchange->request;
    bool writes = request->verb != DV_VERB_GET && request->verb != DV_VERB_DELETE &&
                  request->verb != DV_VERB_DELETE_COLLECTION;

    dv_remote_path(request->kind, exchange->version, request->namespace,
                   request->verb == DV_VERB_CREATE && request->subresource == DV_SUB_NONE
                       ? DV_STR_NONE
                       : request->name,
                   subresources[request->subresource].name, &exchange->target);
    if (writes)
        dv_remote_query(&exchange->target, "fieldManager",
                        request->field_manager.n ? request->field_manager : DV_STR("davit"));
    if (request->is_dry_run)
        dv_remote_query(&exchange->target, "dryRun", DV_STR("All"));
    if (request->verb == DV_VERB_PATCH && request->patch_type == DV_PATCH_APPLY &&
        request->is_forced)
        dv_remote_query(&exchange->target, "force", DV_STR("true"));
    if (writes && request->field_validation == DV_VALIDATE_STRICT)
        dv_remote_query(&exchange->target, "fieldValidation", DV_STR("Strict"));
    if (writes && request->field_validation == DV_VALIDATE_IGNORE)
        dv_remote_query(&exchange->target, "fieldValidation", DV_STR("Ignore"));
    dv_remote_query(&exchange->target, "labelSelector", request->label_selector);
    dv_remote_query(&exchange->target, "fieldSelector", request->field_selector);
}

static void print_value(struct exchange *exchange)
{
    static const struct dv_api_version core = {{0}, DV_STR_INIT("v1"), &dv_message_binding};
    static const struct dv_api_version policy = {DV_STR_INIT("policy"), DV_STR_INIT("v1"),
                                                 &dv_message_eviction};
    static const struct dv_api_version authentication = {
        DV_STR_INIT("authentication.k8s.io"), DV_STR_INIT("v1"), &dv_message_token_request};
    const struct dv_request *request = exchange->request;

    if (request->subresource == DV_SUB_TOKEN)
        dv_encode_json_text(authentication.message, request->value, &authentication,
                            DV_STR("TokenRequest"), &exchange->body);
    else if (request->subresource == DV_SUB_BINDING)
        dv_encode_json_text(core.message, request->value, &core, DV_STR("Binding"),
                            &exchange->body);
    else if (request->subresource == DV_SUB_EVICTION)
        dv_encode_json_text(policy.message, request->value, &policy, DV_STR("Eviction"),
                            &exchange->body);
    else
        dv_encode_json_text(exchange->version->message, request->value, exchange->version,
                            request->kind->name, &exchange->body);
}

static void print_body(struct exchange *exchange)
{
    static const struct dv_api_version meta = {{0}, DV_STR_INIT("v1"), &dv_message_delete_options};
    const struct dv_request *request = exchange->request;

    if (request->verb == DV_VERB_PATCH)
        dv_json_print(request->patch, NULL, &exchange->body);
    else if (request->value)
        print_value(exchange);
    else if (request->delete_options)
        dv_encode_json_text(meta.message, request->delete_options, &meta, DV_STR("DeleteOptions"),
                            &exchange->body);
    exchange->fields[0] = (struct dv_rest_field){DV_STR("Accept"), DV_STR("application/json")};
    exchange->fields[1] = (struct dv_rest_field){DV_STR("Content-Type"),
                                                 request->verb == DV_VERB_PATCH
                                                     ? dv_patch_media_type(request->patch_type)
                                                     : DV_STR("application/json")};
}

static void print(struct exchange *exchange)
{
    dv_buf_clear(&exchange->target);
    dv_buf_clear(&exchange->body);
    print_target(exchange);
    print_body(exchange);
}

static void on_task(struct dv_task *task)
{
    struct exchange *exchange = DV_CONTAINER(task, struct exchange, task);

    finish(exchange, exchange->failure);
}

/* `done` never runs before the start has returned. */
static void fail_later(struct exchange *exchange, struct dv_api_status *failure)
{
    exchange->failure = failure;
    dv_task_post(&exchange->task, exchange->remote->cluster.loop, on_task);
}

static struct exchange *exchange_new(struct dv_remote *remote, struct dv_request *request)
{
    struct exchange *exchange = DV_ALLOC(struct exchange);
    uint64_t now_ms = dv_loop_now_ms(remote->cluster.loop);

    exchange->remote = remote;
    exchange->request = request;
    exchange->arena = dv_arena_new();
    exchange->version =
        request->version ? request->version : dv_remote_version(remote, request->kind);
    exchange->deadline_ms =
        dv_u64_add_clamped(now_ms, request->timeout_ms ? request->timeout_ms : TIMEOUT_MS);
    dv_buf_init(&exchange->target, TARGET_BYTES_MAX);
    dv_buf_init(&exchange->body, BODY_BYTES_MAX);
    dv_list_push(&remote->requests, &exchange->link);
    request->priv = exchange;
    return exchange;
}

/* Clears the answer of an earlier use: the same request may be made again. */
static void forget_answer(struct dv_request *request)
{
    request->object = NULL;
    request->objects = NULL;
    request->n_objects = 0;
    request->token = NULL;
    request->is_created = request->is_removed = false;
    request->warnings = NULL;
    request->n_warnings = 0;
}

void dv_remote_request_start(struct dv_cluster *cluster, struct dv_request *request)
{
    struct dv_remote *remote = DV_CONTAINER(cluster, struct dv_remote, cluster);
    struct exchange *exchange = exchange_new(remote, request);
    struct dv_err err;

    forget_answer(request);
    print(exchange);
    if (remote->is_closing)
        fail_later(exchange, cancelled(exchange));
    else if (!dv_buf_check(&exchange->target, "the request's path", &err) ||
             !dv_buf_check(&exchange->body, "the request's body", &err))
        fail_later(exchange, dv_status_from_err(&err, exchange->arena));
    else
        attempt(exchange);
}

static void cancel(struct exchange *exchange)
{
    exchange->is_cancelled = true;
    if (exchange->is_fetching) {
        dv_rest_fetch_cancel(&exchange->fetch);
        return;
    }
    dv_timer_cancel(&exchange->timer);
    if (!exchange->failure)
        fail_later(exchange, cancelled(exchange));
}

void dv_remote_request_cancel(struct dv_cluster *cluster, struct dv_request *request)
{
    (void)cluster;
    if (request->priv)
        cancel(request->priv);
}

void dv_remote_requests_end(struct dv_remote *remote)
{
    struct dv_link *link;

    DV_LIST_EACH (&remote->requests, link)
        cancel(DV_CONTAINER(link, struct exchange, link));
}
