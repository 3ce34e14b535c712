/* kube_api.c - receives calls to the API: authenticates and authorizes them, and hands them to the
 * function that serves them. */
#include "serve/kube_api.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "access/access.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/metric.h"
#include "base/str.h"
#include "resource/custom.h"
#include "resource/select.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/auth/auth_rules.h"
#include "serve/kube/kube_call.h"
#include "serve/node/node_feed.h"
#include "serve/openapi/kube_documents.h"
#include "vap/vap.h"

/* ---- life ---- */

static const char *const request_labels[] = {"verb",     "group",       "version",
                                             "resource", "subresource", "code"};
static const char *const duration_labels[] = {"verb", "resource"};
static const char *const watch_labels[] = {"resource"};

static void add_metrics(struct dv_kube *kube, struct dv_metrics *metrics)
{
    static const struct dv_family_spec requests = {
        .name = "apiserver_request_total",
        .help = "Requests to the API by verb, resource and code of the answer.",
        .labels = request_labels,
        .n_labels = DV_COUNT(request_labels),
        /* Verbs, resources and codes are ours, so no client can make more series. */
        .series_max = 1000,
    };
    static const struct dv_family_spec durations = {
        .name = "apiserver_request_duration_seconds",
        .help = "Time from a request's arrival to its answer; watches are not counted.",
        .labels = duration_labels,
        .n_labels = DV_COUNT(duration_labels),
        .series_max = 200,
    };
    static const struct dv_family_spec watches = {
        .name = "apiserver_longrunning_requests",
        .help = "Watches that are open.",
        .labels = watch_labels,
        .n_labels = DV_COUNT(watch_labels),
    };
    static const struct dv_family_spec refusals = {
        .name = "davit_quota_refusals_total",
        .help = "Writes of nodes and drivers that did not fit into their quotas.",
        .labels = watch_labels,
        .n_labels = DV_COUNT(watch_labels),
    };

    kube->requests = dv_metrics_add_counter(metrics, &requests);
    kube->durations =
        dv_metrics_add_histogram(metrics, &durations, dv_seconds_bounds, DV_SECONDS_BOUNDS);
    kube->open_watches = dv_metrics_add_gauge(metrics, &watches);
    kube->quota_refusals = dv_metrics_add_counter(metrics, &refusals);
}

static void make_secret(struct dv_kube *kube)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str secret = dv_rest_random_token(arena);

    assert(secret.n == sizeof(kube->peer_secret));
    memcpy(kube->peer_secret, secret.p, secret.n);
}

/* Texts of objects are kept for one to two of these periods: at the end of each, those go that
 * were there at its beginning. */
#define CACHE_AGE_MS 1000u

static void on_cache_age(struct dv_timer *timer)
{
    struct dv_kube *kube = DV_CONTAINER(timer, struct dv_kube, cache_age);

    if (dv_event_cache_age(kube->cache))
        dv_timer_start(timer, kube->options.loop, dv_loop_now_ms(kube->options.loop) + CACHE_AGE_MS,
                       on_cache_age);
}

struct dv_event_cache *dv_kube_cache(struct dv_kube *kube)
{
    struct dv_loop *loop = kube->options.loop;

    if (!dv_timer_is_set(&kube->cache_age))
        dv_timer_start(&kube->cache_age, loop, dv_loop_now_ms(loop) + CACHE_AGE_MS, on_cache_age);
    return kube->cache;
}

struct dv_kube *dv_kube_open(const struct dv_kube_options *options)
{
    struct dv_kube *kube = DV_ALLOC(struct dv_kube);

    kube->options = *options;
    dv_list_init(&kube->watches);
    dv_list_init(&kube->peer_calls);
    make_secret(kube);
    dv_watch_shares_init(&kube->watch_shares);
    kube->cache = dv_event_cache_new();
    kube->documents = dv_documents_new();
    if (options->metrics)
        add_metrics(kube, options->metrics);
    dv_kube_open_quota(kube);
    dv_kube_open_access(kube);
    dv_kube_open_policies(kube);
    dv_kube_open_webhooks(kube);
    dv_embedded_set_token_maker(options->embedded, dv_kube_make_own_token, kube);
    dv_embedded_set_reviewer(options->embedded, dv_kube_review_own, kube);
    return kube;
}

/* Frees the API once the last call is gone. It is a task, because a call is released in the midst
 * of its own end. */
static void close_if_idle(struct dv_task *task)
{
    struct dv_kube *kube = DV_CONTAINER(task, struct dv_kube, close_task);
    dv_closed_fn *closed = kube->closed;
    void *ctx = kube->closed_ctx;

    if (kube->n_calls)
        return;
    dv_quota_free(kube->quota);
    dv_access_free(kube->access);
    dv_vap_free(kube->vap);
    dv_kube_free_webhooks(kube);
    dv_watch_shares_fini(&kube->watch_shares);
    dv_timer_cancel(&kube->cache_age);
    dv_event_cache_free(kube->cache);
    dv_documents_free(kube->documents);
    free(kube);
    if (closed)
        closed(ctx);
}

void dv_kube_release(struct dv_kube *kube)
{
    kube->n_calls--;
    if (kube->is_closing && !kube->n_calls)
        dv_task_post(&kube->close_task, kube->options.loop, close_if_idle);
}

void dv_kube_close(struct dv_kube *kube, dv_closed_fn *closed, void *ctx)
{
    kube->closed = closed;
    kube->closed_ctx = ctx;
    kube->is_closing = true;
    dv_timer_cancel(&kube->own_again);
    dv_embedded_set_token_maker(kube->options.embedded, NULL, NULL);
    dv_embedded_set_reviewer(kube->options.embedded, NULL, NULL);
    dv_kube_end_watches(kube);
    dv_kube_end_peer_calls(kube);
    dv_kube_close_quota(kube);
    dv_kube_close_access(kube);
    dv_kube_close_policies(kube);
    dv_kube_close_webhooks(kube);
    if (!kube->n_calls)
        dv_task_post(&kube->close_task, kube->options.loop, close_if_idle);
}

/* ---- objects ---- */

/* Returns the methods that a path of objects has: those of a collection, of one object, or of a
 * subresource. */
static unsigned methods_of(const struct dv_route *route)
{
    unsigned collection = DV_CAN_LIST | DV_CAN_WATCH | DV_CAN_CREATE | DV_CAN_DELETE_COLLECTION;

    if (route->is_watch)
        return DV_CAN_WATCH | DV_CAN_LIST;
    if (route->is_empty)
        return route->name.n ? DV_CAN_GET : DV_CAN_WATCH | DV_CAN_LIST;
    switch (route->sub) {
    case DV_SUB_SCALE:
    case DV_SUB_STATUS:
        return DV_CAN_GET | DV_CAN_UPDATE | DV_CAN_PATCH;
    case DV_SUB_FINALIZE:
        return DV_CAN_UPDATE;
    case DV_SUB_BINDING:
    case DV_SUB_EVICTION:
    case DV_SUB_TOKEN: /* served as a review, before this is asked */
        return DV_CAN_CREATE;
    case DV_SUB_NONE:
        break;
    }
    if (route->name.n)
        return DV_CAN_GET | DV_CAN_UPDATE | DV_CAN_PATCH | DV_CAN_DELETE;
    /* Over all namespaces there is only reading. */
    if (route->kind->is_namespaced && !route->namespace.n)
        return DV_CAN_LIST | DV_CAN_WATCH;
    return route->kind->id == DV_KIND_NAMESPACE ? collection & ~(unsigned)DV_CAN_DELETE_COLLECTION
                                                : collection;
}

static const struct verb {
    dv_str method;
    unsigned flag;
    void (*serve)(struct dv_kube_call *call);
} verbs[] = {
    {DV_STR_INIT("GET"),    DV_CAN_GET,               dv_kube_get   },
    {DV_STR_INIT("GET"),    DV_CAN_LIST,              dv_kube_list  },
    {DV_STR_INIT("POST"),   DV_CAN_CREATE,            dv_kube_create},
    {DV_STR_INIT("PUT"),    DV_CAN_UPDATE,            dv_kube_update},
    {DV_STR_INIT("PATCH"),  DV_CAN_PATCH,             dv_kube_patch },
    {DV_STR_INIT("DELETE"), DV_CAN_DELETE,            dv_kube_delete},
    {DV_STR_INIT("DELETE"), DV_CAN_DELETE_COLLECTION, dv_kube_delete},
};

static const struct verb *find_verb(const struct dv_kube_call *call)
{
    unsigned methods = methods_of(&call->route);

    for (size_t i = 0; i < DV_COUNT(verbs); i++)
        if ((verbs[i].flag & methods) && dv_str_eq(verbs[i].method, call->request->method))
            return &verbs[i];
    return NULL;
}

/* Refuses a request before the resource itself is asked: such a Status has empty details. */
static bool refuse(struct dv_kube_call *call, struct dv_api_status *status)
{
    status->details = DV_NEW(call->arena, struct dv_api_status_details);
    dv_kube_reply_status(call, status);
    return false;
}

bool dv_kube_is_only_json(const struct dv_route *route)
{
    return route->what == DV_ROUTE_OBJECTS && route->sub != DV_SUB_SCALE &&
           (dv_kind_is_custom(route->kind) || route->kind->id == DV_KIND_CUSTOM_DEFINITION);
}

static enum dv_answer_kind answer_kind(const struct dv_route *route)
{
    bool is_kept =
        route->sub != DV_SUB_BINDING && route->sub != DV_SUB_EVICTION && route->sub != DV_SUB_SCALE;

    if (route->what == DV_ROUTE_CORE || route->what == DV_ROUTE_GROUPS)
        return DV_ANSWER_DISCOVERY;
    if (route->what == DV_ROUTE_OBJECTS && is_kept)
        return DV_ANSWER_OBJECTS;
    if (route->what == DV_ROUTE_OBJECTS || route->what == DV_ROUTE_REVIEW)
        return DV_ANSWER_REVIEW;
    return DV_ANSWER_PAGE;
}

/* Negotiates the form of the answer. Like the reference, it first ignores parameters and then
 * regards them, with a different answer for each. */
static bool negotiate(struct dv_kube_call *call)
{
    dv_str accept = dv_rest_request_field(call->request, DV_STR("Accept"));

    if (!dv_accept_has_ours(accept))
        return refuse(call, dv_status_new(406, DV_STR("NotAcceptable"), call->arena,
                                          "406: Not Acceptable\n\nAvailable "
                                          "representations: " DV_MEDIA_TYPES));
    if (dv_accept_negotiate(accept, answer_kind(&call->route), &call->render.rendering)) {
        if (dv_kube_is_only_json(&call->route) && call->render.rendering.form == DV_FORM_OBJECT &&
            call->render.rendering.media == DV_MEDIA_PROTOBUF)
            call->render.rendering.media = DV_MEDIA_JSON; /* clients read what the answer says */
        return true;
    }
    call->render.rendering = (struct dv_rendering){0};
    dv_kube_reply_status(call, dv_status_new(406, DV_STR("NotAcceptable"), call->arena,
                                             "only the following media types are "
                                             "accepted: " DV_MEDIA_TYPES));
    return false;
}

static bool check_include(struct dv_kube_call *call)
{
    dv_str include = call->query.include_object;

    call->render.include_object = include;
    if (call->render.rendering.form != DV_FORM_TABLE || !include.n ||
        dv_str_eq(include, DV_STR("Metadata")) || dv_str_eq(include, DV_STR("Object")) ||
        dv_str_eq(include, DV_STR("None")))
        return true;
    dv_kube_reply_status(call,
                         dv_status_bad_request(call->arena,
                                               "Unable to convert to Table as requested: "
                                               "includeObject: Invalid value: \"%.*s\": must be "
                                               "'Metadata', 'Object', 'None', or empty",
                                               DV_FMT(include)));
    return false;
}

/* Adds a warning to every answer when the version will be removed. */
static void warn_of_version(struct dv_kube_call *call)
{
    static const struct {
        dv_str version;
        bool is_rule; /* true: only for taint rules; false: only for all others */
        const char *since;
        const char *until;
    } ends[] = {
        {DV_STR_INIT("v1beta1"),  false, "v1.35", "v1.38"},
        {DV_STR_INIT("v1beta2"),  false, "v1.36", "v1.39"},
        {DV_STR_INIT("v1alpha3"), true,  "v1.36", "v1.39"},
    };
    const struct dv_route *route = &call->route;

    if (dv_kind_is_custom(route->kind)) {
        dv_str warning = dv_custom_version_of(route->api_version)->warning;

        if (warning.n)
            dv_kube_warn(call, dv_str_copy(warning, call->arena));
        return;
    }
    for (size_t i = 0; i < DV_COUNT(ends); i++)
        if (dv_str_eq(ends[i].version, route->version) &&
            ends[i].is_rule == (route->kind->id == DV_KIND_TAINT_RULE))
            dv_kube_warn(call,
                         dv_str_printf(call->arena,
                                       "%.*s/%.*s %.*s is deprecated in %s+, unavailable in "
                                       "%s+",
                                       DV_FMT(route->group), DV_FMT(route->version),
                                       DV_FMT(route->kind->name), ends[i].since, ends[i].until));
}

/* Says that the method is not there and, for a kind without objects, why. */
static void refuse_method(struct dv_kube_call *call)
{
    struct dv_api_status *status = dv_status_method_not_allowed(call->arena);
    const struct dv_route *route = &call->route;

    if (route->is_empty && dv_str_eq(route->group, DV_STR(DV_NETWORKING_GROUP)))
        status->message = dv_str_printf(
            call->arena,
            "%.*s: davit takes no %.*s: it has no network of pods in which they would have an "
            "effect; leave them out of the manifest, or switch them off in the chart's values",
            DV_FMT(status->message), DV_FMT(route->kind->plural));
    else if (route->is_empty)
        status->message = dv_str_printf(
            call->arena,
            "%.*s: davit has no %.*s, and takes none; their list is there, and empty, "
            "for clients that wait for it",
            DV_FMT(status->message), DV_FMT(route->kind->plural));
    dv_kube_reply_status(call, status);
}

static void serve_objects(struct dv_kube_call *call)
{
    const struct verb *verb = find_verb(call);
    dv_str type = dv_rest_request_field(call->request, DV_STR("Content-Type"));

    if (!verb) {
        refuse_method(call);
        return;
    }
    if (verb->flag == DV_CAN_PATCH &&
        (!dv_patch_type_parse(dv_media_bare(type), &call->reading.patch_type) ||
         (call->reading.patch_type == DV_PATCH_STRATEGIC && dv_kind_is_custom(call->route.kind)))) {
        (void)refuse(call, dv_status_new(415, DV_STR("UnsupportedMediaType"), call->arena,
                                         "415: Unsupported Media Type"));
        return;
    }
    call->render.kind = call->route.kind;
    call->render.version = call->route.api_version;
    call->render.now = dv_kube_now(call->kube);
    if (!negotiate(call) || !check_include(call))
        return;
    warn_of_version(call);
    verb->serve(call);
}

static void serve_review(struct dv_kube_call *call)
{
    if (!dv_str_eq(call->request->method, DV_STR("POST")) ||
        (call->route.review == DV_REVIEW_TOKEN_REQUEST && !call->route.name.n))
        dv_kube_reply_status(call, dv_status_method_not_allowed(call->arena));
    else if (negotiate(call))
        dv_kube_review(call);
}

static void serve_pages(struct dv_kube_call *call)
{
    bool is_get = dv_str_eq(call->request->method, DV_STR("GET"));

    switch (call->route.what) {
    case DV_ROUTE_CORE:
    case DV_ROUTE_GROUP:
    case DV_ROUTE_RESOURCES:
    case DV_ROUTE_VERSION_INFO:
        if (!is_get) {
            dv_kube_reply_status(call, dv_status_method_not_allowed(call->arena));
            return;
        }
        if (!negotiate(call))
            return;
        break;
    case DV_ROUTE_GROUPS: /* the reference's list of groups takes any method */
        if (!negotiate(call))
            return;
        break;
    case DV_ROUTE_NO_PAGE:
    case DV_ROUTE_NO_RESOURCE:
    case DV_ROUTE_ROOT:
    case DV_ROUTE_HEALTH:
    case DV_ROUTE_METRICS:
    case DV_ROUTE_OPENAPI_V2:
    case DV_ROUTE_OPENAPI_V3:
    case DV_ROUTE_OBJECTS:
    case DV_ROUTE_REVIEW:
    case DV_ROUTE_LOG:
    case DV_ROUTE_STREAM:
    case DV_ROUTE_ISSUER:
    case DV_ROUTE_KEYS:
    case DV_ROUTE_TOKENS:
    case DV_ROUTE_NODE:
    case DV_ROUTE_EXPLAIN:
        break;
    }
    dv_kube_serve_page(call);
}

/* ---- all calls ---- */

/* Refuses methods that have no meaning on any path: a page must not take TRACE for GET. */
static bool check_method(struct dv_kube_call *call)
{
    static const dv_str methods[] = {
        DV_STR_INIT("GET"),   DV_STR_INIT("HEAD"),   DV_STR_INIT("POST"),    DV_STR_INIT("PUT"),
        DV_STR_INIT("PATCH"), DV_STR_INIT("DELETE"), DV_STR_INIT("OPTIONS"),
    };

    for (size_t i = 0; i < DV_COUNT(methods); i++)
        if (dv_str_eq(methods[i], call->request->method))
            return true;
    dv_rest_call_add_field(call->rest, DV_STR("Allow"),
                           DV_STR("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
    dv_kube_reply_status(call, dv_status_method_not_allowed(call->arena));
    return false;
}

/* Refuses a `timeout` that is no duration, as the reference does even before it knows who asks.
 * What it says counts for webhooks alone: no other answer takes as long as anybody waits. A watch
 * has no such limit. */
static bool check_timeout(struct dv_kube_call *call)
{
    struct dv_api_status *failure;

    if (dv_query_is_true(call->query.watch) ||
        dv_query_check_timeout(&call->query, call->arena, &failure))
        return true;
    dv_kube_reply_status(call, failure);
    return false;
}

/* Returns the name that a field selector demands: a list of one name is authorized as a request for
 * that name. */
static dv_str name_of_selector(dv_str selector, struct dv_arena *arena)
{
    dv_str name;

    return dv_field_selector_text_demands(selector, DV_STR("metadata.name"), arena, &name)
               ? name
               : DV_STR_NONE;
}

static void set_auth_request(struct dv_kube_call *call)
{
    const struct dv_route *route = &call->route;
    struct dv_auth_request *asked = &call->auth;

    asked->verb = dv_route_verb(route, call->request->method, dv_query_is_true(call->query.watch),
                                call->arena);
    if (!route->is_resource) {
        asked->path = route->path;
        if (route->what == DV_ROUTE_NODE && call->kube->options.feed)
            asked->name = dv_node_feed_name(call->kube->options.feed);
        return;
    }
    asked->group = route->group;
    asked->resource = route->resource;
    asked->subresource = route->subresource;
    asked->namespace = route->namespace;
    asked->name = route->name;
    asked->field_selector = call->query.field_selector;
    if (!asked->name.n && (dv_auth_verb(asked->verb) & DV_MAY_MANY))
        asked->name = name_of_selector(call->query.field_selector, call->arena);
}

bool dv_kube_handle(struct dv_kube *kube, struct dv_rest_call *rest,
                    const struct dv_rest_request *request)
{
    struct dv_arena *arena = dv_rest_call_arena(rest);
    struct dv_kube_call *call = DV_NEW(arena, struct dv_kube_call);

    call->kube = kube;
    call->rest = rest;
    call->request = request;
    call->arena = arena;
    call->started_ns = dv_loop_now_ns(kube->options.loop);
    dv_route_parse(request->path, dv_embedded_customs(kube->options.embedded), arena, &call->route);
    if (call->route.kind && dv_kind_is_custom(call->route.kind))
        call->custom = dv_custom_ref(call->route.kind->custom);
    dv_query_parse(request->query, arena, &call->query);
    set_auth_request(call);
    kube->n_calls++;
    if (!check_timeout(call) || !dv_kube_authenticate(call) || !check_method(call) ||
        !dv_kube_authorize(call))
        return true;
    if (call->route.what == DV_ROUTE_METRICS && dv_str_eq(request->method, DV_STR("GET"))) {
        dv_kube_count(call, 200);
        dv_kube_release(kube);
        return false;
    }
    if (call->route.what == DV_ROUTE_OBJECTS)
        serve_objects(call);
    else if (call->route.what == DV_ROUTE_REVIEW)
        serve_review(call);
    else if (call->route.what == DV_ROUTE_LOG)
        dv_kube_log(call);
    else if (call->route.what == DV_ROUTE_STREAM)
        dv_kube_stream(call);
    else
        serve_pages(call);
    return true;
}
