#include "serve/node_api.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/str.h"
#include "pod/runner.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "serve/auth.h"
#include "serve/auth/credentials.h"
#include "serve/kubelet/node_auth.h"
#include "serve/kubelet/node_command.h"
#include "serve/kubelet/node_logs.h"
#include "serve/kubelet/node_pages.h"
#include "serve/kubelet/node_route.h"
#include "serve/kubelet/node_streams.h"
#include "serve/node_usage.h"
#include "serve/serve.h"

/* The longest answer that is made at once: metrics, and the configuration. */
#define ANSWER_BYTES_MAX (64u << 20)
/* Requests have no bodies. */
#define BODY_BYTES_MAX 1024u
/* An API server, monitoring and a few people. */
#define CONNECTIONS_MAX 512u
#define HEALTH_CONNECTIONS_MAX 64u
/* How long calls may take to be answered when the server closes. */
#define CLOSE_GRACE_MS 500u
#define TEXT_BYTES_MAX 65536u
/* Pause between lines in the log about bad clients. */
#define COMPLAINT_MS 1000u

#define CLOSING "the node's API is being closed"

struct dv_node_api {
    struct dv_loop *loop;
    struct dv_node_api_options options;
    struct dv_node_logs logs;
    struct dv_node_commands commands;
    struct dv_node_auth *auth;     /* NULL: closed */
    struct dv_rest_server *server; /* NULL: not served, or closed */
    struct dv_rest_server *health;
    uint64_t complained_ms; /* 0: never */
    unsigned n_open;        /* parts that are not closed yet */
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* A request that is being looked at; in the arena of the call. */
struct node_call {
    struct dv_node_api *api;
    struct dv_rest_call *call;
    const struct dv_rest_request *request;
    struct dv_node_route route;
    struct dv_node_check check;
};

/* ---- answers ---- */

static void reply_text(struct dv_rest_call *call, unsigned status, dv_str text)
{
    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR("text/plain; charset=utf-8"));
    dv_rest_call_add_field(call, DV_STR("X-Content-Type-Options"), DV_STR("nosniff"));
    dv_rest_call_reply(call, status, text);
}

static void reply_buf(struct dv_rest_call *call, const char *type, struct dv_buf *body)
{
    struct dv_err err;

    if (!dv_buf_check(body, "the answer", &err)) {
        reply_text(call, 500, dv_str_from_c(err.msg));
        return;
    }
    dv_rest_call_add_field(call, DV_STR("Content-Type"), dv_str_from_c(type));
    dv_rest_call_reply_buf(call, 200, body);
}

static void answer_metrics(struct dv_node_api *api, struct dv_rest_call *call, struct dv_buf *body)
{
    struct dv_err err;

    /* On failure, what fits is still valid. */
    if (!dv_metrics_print(dv_node_metrics_registry(api->options.metrics), body, &err))
        dv_log(DV_LOG_WARN, "serve: not all metrics fit", DV_F_ERR(&err));
    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR(DV_METRICS_CONTENT_TYPE));
    dv_rest_call_reply_buf(call, 200, body);
}

/* Who wants CPU and memory alone says so, as to the reference. */
static void answer_summary(struct node_call *node_call)
{
    dv_str wanted;
    bool is_brief = dv_rest_query_get(node_call->request->query, DV_STR("only_cpu_and_memory"),
                                      dv_rest_call_arena(node_call->call), &wanted) &&
                    (dv_str_eq(wanted, DV_STR("true")) || dv_str_eq(wanted, DV_STR("1")));

    dv_node_usage_answer(node_call->api->options.usage, node_call->call,
                         is_brief ? DV_USAGE_BRIEF_SUMMARY : DV_USAGE_SUMMARY);
}

static void join(struct node_call *node_call, enum dv_pod_stream_verb verb)
{
    const struct dv_node_api_options *options = &node_call->api->options;

    dv_node_streams_answer(options->agent, options->streams, verb, &node_call->route,
                           node_call->call, node_call->request);
}

static void answer(struct node_call *node_call)
{
    struct dv_node_api *api = node_call->api;
    struct dv_rest_call *call = node_call->call;
    const struct dv_runner *runner = api->options.node->runner;
    DV_CLEANUP(dv_buf_fini) struct dv_buf body;

    dv_buf_init(&body, ANSWER_BYTES_MAX);
    if (node_call->route.id != DV_NODE_UNKNOWN && !node_call->route.is_allowed_method) {
        reply_text(call, 405, DV_STR("405: Method Not Allowed"));
        return;
    }
    switch (node_call->route.id) {
    case DV_NODE_UNKNOWN:
        reply_text(call, 404, DV_STR("404 page not found\n"));
        break;
    case DV_NODE_HEALTH:
        reply_text(call, 200, DV_STR("ok"));
        break;
    case DV_NODE_PODS:
        dv_node_answer_pods(api->options.agent, api->loop, call);
        break;
    case DV_NODE_RUNNING_PODS:
        dv_node_answer_running(runner ? dv_runner_cri(runner) : NULL, api->loop, call);
        break;
    case DV_NODE_METRICS:
        answer_metrics(api, call, &body);
        break;
    case DV_NODE_RESOURCE_METRICS:
        dv_node_usage_answer(api->options.usage, call, DV_USAGE_METRICS);
        break;
    case DV_NODE_SUMMARY:
        answer_summary(node_call);
        break;
    case DV_NODE_LOGS:
        dv_node_logs_answer(&api->logs, &node_call->route, call, node_call->request);
        break;
    case DV_NODE_EXEC:
        join(node_call, DV_POD_EXEC);
        break;
    case DV_NODE_ATTACH:
        join(node_call, DV_POD_ATTACH);
        break;
    case DV_NODE_RUN:
        dv_node_commands_answer(&api->commands, api->options.agent, runner, &node_call->route, call,
                                node_call->request);
        break;
    case DV_NODE_PORT_FORWARD:
        join(node_call, DV_POD_PORT_FORWARD);
        break;
    case DV_NODE_CONFIG:
        dv_buf_printf(&body, "{\"kubeletconfig\":%.*s}\n", DV_FMT(api->options.config));
        reply_buf(call, "application/json", &body);
        break;
    }
}

/* ---- who, and whether ---- */

static void reply_unauthorized(struct dv_rest_call *call)
{
    dv_rest_call_disown(call);
    reply_text(call, 401, DV_STR("Unauthorized"));
}

static void reply_refusal(struct node_call *node_call, unsigned status)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    dv_node_route_print_refusal(&node_call->route, node_call->check.user.username, status == 500,
                                &text);
    reply_text(node_call->call, status, dv_buf_str(&text));
}

/* The connection belongs to the user from now on. False: the user has too many, and the call has
 * been answered. */
static bool take_place(struct node_call *node_call)
{
    const struct dv_api_user_info *user = &node_call->check.user;
    struct dv_err err;

    if (dv_rest_call_vouch(node_call->call, user->username,
                           dv_auth_is_in(user, DV_STR(DV_GROUP_ADMINS)), &err))
        return true;
    dv_rest_call_add_field(node_call->call, DV_STR("Connection"), DV_STR("close"));
    reply_text(node_call->call, 429, dv_str_from_c(err.msg));
    return false;
}

static void on_checked(struct dv_node_check *check, enum dv_node_verdict verdict)
{
    struct node_call *node_call = DV_CONTAINER(check, struct node_call, check);

    if (node_call->api->is_closing) {
        reply_text(node_call->call, 503, DV_STR(CLOSING));
    } else if (verdict == DV_NODE_IS_NOBODY) {
        reply_unauthorized(node_call->call);
    } else if (verdict == DV_NODE_IS_BUSY) {
        dv_rest_call_add_field(node_call->call, DV_STR("Retry-After"), DV_STR("1"));
        reply_text(node_call->call, 503, DV_STR("too many clients wait to be recognized"));
    } else if (take_place(node_call)) {
        if (verdict == DV_NODE_MAY)
            answer(node_call);
        else
            reply_refusal(node_call, verdict == DV_NODE_MAY_NOT ? 403 : 500);
    }
}

static void handle(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct dv_node_api *api = ctx;
    struct dv_arena *arena = dv_rest_call_arena(call);
    struct node_call *node_call = DV_NEW(arena, struct node_call);
    struct dv_err err;

    if (api->is_closing) {
        reply_text(call, 503, DV_STR(CLOSING));
        return;
    }
    node_call->api = api;
    node_call->call = call;
    node_call->request = request;
    dv_node_route_parse(request->method, request->path, arena, &node_call->route);
    node_call->check.route = &node_call->route;
    node_call->check.arena = arena;
    node_call->check.done = on_checked;
    /* A certificate counts before a token. Who shows one of another CA may still have a token. */
    if (!dv_credentials_certificate(call, &node_call->check.user, &err) &&
        !dv_credentials_bearer(request, &node_call->check.token)) {
        reply_unauthorized(call);
        return;
    }
    dv_node_auth_start(api->auth, &node_call->check);
}

static void on_complaint(void *ctx, dv_str peer, const struct dv_err *err)
{
    struct dv_node_api *api = ctx;
    uint64_t now_ms = dv_loop_now_ms(api->loop);

    if (api->complained_ms > 0 && now_ms - api->complained_ms < COMPLAINT_MS)
        return;
    api->complained_ms = now_ms;
    dv_log(DV_LOG_WARN, "serve: bad client of the node's API", DV_F_STR("peer", peer),
           DV_F_CODE(err), DV_F_ERR(err));
}

static void handle_health(void *ctx, struct dv_rest_call *call,
                          const struct dv_rest_request *request)
{
    (void)ctx;
    if (!dv_str_eq(request->path, DV_STR("/healthz")))
        reply_text(call, 404, DV_STR("404 page not found\n"));
    else
        reply_text(call, 200, DV_STR("ok"));
}

/* ---- life ---- */

static bool open_servers(struct dv_node_api *api, struct dv_err *err)
{
    const struct dv_rest_server_options main = {
        .name = DV_STR("node"),
        .tls = api->options.tls,
        .handle = handle,
        .complaint = on_complaint,
        .ctx = api,
        .has_users = true,
        .body_bytes_max = BODY_BYTES_MAX,
        .connections_max = CONNECTIONS_MAX,
    };
    const struct dv_rest_server_options health = {
        .name = DV_STR("node-health"),
        .handle = handle_health,
        .ctx = api,
        .body_bytes_max = BODY_BYTES_MAX,
        .connections_max = HEALTH_CONNECTIONS_MAX,
    };

    if (api->options.address.n > 0) {
        api->server = dv_rest_server_open(api->loop, api->options.address, &main, err);
        if (!api->server)
            return dv_wrap(err, "--node-listen");
    }
    if (api->options.health_address.n > 0) {
        api->health = dv_rest_server_open(api->loop, api->options.health_address, &health, err);
        if (!api->health)
            return dv_wrap(err, "--node-healthz");
    }
    return true;
}

struct dv_node_api *dv_node_api_open(struct dv_loop *loop,
                                     const struct dv_node_api_options *options, struct dv_err *err)
{
    struct dv_node_api *api = DV_ALLOC(struct dv_node_api);

    api->loop = loop;
    api->options = *options;
    api->logs = (struct dv_node_logs){.loop = loop, .agent = options->agent, .logs = options->logs};
    dv_node_commands_init(&api->commands);
    api->auth = dv_node_auth_new(loop, options->cluster, options->node->name);
    if (open_servers(api, err)) {
        api->options.tls = NULL; /* it was lent */
        return api;
    }
    dv_node_api_close(api, NULL, NULL);
    return NULL;
}

bool dv_node_api_set_tls(struct dv_node_api *api, const struct dv_rest_tls *tls, struct dv_err *err)
{
    return !api->server || dv_rest_server_set_tls(api->server, tls, err);
}

uint16_t dv_node_api_port(const struct dv_node_api *api)
{
    return api->server ? dv_rest_server_port(api->server) : 0;
}

uint16_t dv_node_api_health_port(const struct dv_node_api *api)
{
    return api->health ? dv_rest_server_port(api->health) : 0;
}

static void on_part_closed(void *ctx)
{
    struct dv_node_api *api = ctx;
    dv_closed_fn *closed = api->closed;
    void *closed_ctx = api->closed_ctx;

    if (--api->n_open > 0)
        return;
    free(api);
    if (closed)
        closed(closed_ctx);
}

void dv_node_api_close(struct dv_node_api *api, dv_closed_fn *closed, void *ctx)
{
    api->closed = closed;
    api->closed_ctx = ctx;
    api->is_closing = true;
    api->n_open = 1u + (api->server ? 1u : 0u) + (api->health ? 1u : 0u);
    dv_node_commands_stop(&api->commands);
    if (api->server)
        dv_rest_server_close(api->server, CLOSE_GRACE_MS, on_part_closed, api);
    if (api->health)
        dv_rest_server_close(api->health, 0, on_part_closed, api);
    dv_node_auth_close(api->auth, on_part_closed, api);
}
