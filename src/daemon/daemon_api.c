#include "daemon/daemon_api.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "daemon/daemon_options.h"
#include "daemon/pki.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "serve/auth.h"
#include "serve/health.h"
#include "serve/kube_api.h"
#include "serve/serve.h"
#include "serve/tokens.h"

/* The server's certificate is valid for a year, and renewed well before its end, without a
 * restart. */
#define RENEW_MS (UINT64_C(90) * 24 * 3600 * 1000)
#define KUBECONFIG_BYTES_MAX (1u << 20)
/* The pause before admin.kubeconfig is written again: a full disk is often emptied within
 * minutes. */
#define KUBECONFIG_AGAIN_MS 2000u

struct dv_daemon_api {
    struct dv_loop *loop;
    const struct dv_options *options;
    struct dv_arena *arena;
    struct dv_node_metrics *metrics;
    struct dv_tokens *tokens;
    struct dv_embedded *embedded;
    struct dv_kube *kube;
    struct dv_http_server *server;
    struct dv_rest_cert ca;
    struct dv_timer renewal;
    struct dv_health *health;
    struct dv_timer kubeconfig; /* set when admin.kubeconfig could not be written */
    dv_str token;               /* the admin's token */
    unsigned n_fronts;          /* how many of the parts that hold calls are being closed */
    dv_closed_fn *closed;
    void *closed_ctx;
};

static uint64_t wall_ns(const struct dv_daemon_api *api)
{
    return dv_clock_wall_ns(dv_loop_clock(api->loop));
}

static bool is_served(const struct dv_options *options)
{
    return !dv_str_eq(options->listen, DV_STR("none"));
}

/* Pods use the API where there is one to be used, and somebody who makes what they need for it. */
static bool has_accounts(const struct dv_options *options)
{
    return is_served(options) && (options->roles & DV_ROLE_CONTROL);
}

static bool load_ca(struct dv_daemon_api *api, struct dv_err *err)
{
    if (!is_served(api->options) || api->options->insecure_http)
        return true;
    return dv_pki_load_ca(api->options->state_dir, wall_ns(api), api->arena, &api->ca, err);
}

/* Loads the keys of signed tokens. */
static bool load_token_keys(struct dv_daemon_api *api, struct dv_err *err)
{
    dv_str *pems;
    size_t n_pems;

    if (!is_served(api->options))
        return true;
    return dv_pki_load_token_keys(api->options->state_dir, api->arena, &pems, &n_pems, err) &&
           dv_tokens_set_keys(api->tokens, pems, n_pems, err);
}

struct dv_daemon_api *dv_daemon_api_open(struct dv_loop *loop, struct dv_store *store,
                                         const struct dv_options *options,
                                         struct dv_node_metrics *metrics, struct dv_health *health,
                                         struct dv_err *err)
{
    struct dv_daemon_api *api = DV_ALLOC(struct dv_daemon_api);
    struct dv_embedded_options embedded = {.table_objects = DV_TABLE_OBJECTS,
                                           .table_meta = DV_TABLE_META,
                                           .has_accounts = has_accounts(options)};

    api->loop = loop;
    api->options = options;
    api->metrics = metrics;
    api->health = health;
    api->arena = dv_arena_new();
    api->tokens = dv_tokens_open(loop, store, DV_TABLE_TOKENS, err);
    if (api->tokens && load_ca(api, err) && load_token_keys(api, err))
        api->embedded = dv_embedded_open(loop, store, &embedded, err);
    if (api->embedded)
        return api;
    dv_tokens_close(api->tokens);
    dv_arena_free(api->arena);
    free(api);
    return NULL;
}

bool dv_daemon_api_is_settled(const struct dv_daemon_api *api)
{
    static const dv_str namespaces[] = {DV_STR_INIT("default"), DV_STR_INIT("kube-system"),
                                        DV_STR_INIT("kube-node-lease"), DV_STR_INIT("kube-public")};

    for (size_t i = 0; i < DV_COUNT(namespaces); i++)
        if (!dv_embedded_get(api->embedded, dv_kind(DV_KIND_NAMESPACE), DV_STR_NONE, namespaces[i]))
            return false;
    return !api->kube || dv_kube_is_settled(api->kube);
}

bool dv_daemon_api_has_accounts(const struct dv_daemon_api *api)
{
    return has_accounts(api->options);
}

dv_str dv_daemon_api_root_ca(const struct dv_daemon_api *api)
{
    return api->ca.cert.n > 0 ? api->ca.cert : DV_STR("");
}

uint16_t dv_daemon_api_port(const struct dv_daemon_api *api, dv_str *address)
{
    *address = dv_pki_address(api->options->listen);
    return api->server ? dv_http_server_port(api->server) : 0;
}

struct dv_cluster *dv_daemon_api_cluster(struct dv_daemon_api *api)
{
    return dv_embedded_cluster(api->embedded);
}

void dv_daemon_api_rewrite(struct dv_daemon_api *api, void (*done)(void *ctx), void *ctx)
{
    dv_embedded_rewrite_all(api->embedded, done, ctx);
}

/* ---- certificates ---- */

static bool make_tls(struct dv_daemon_api *api, struct dv_arena *arena, struct dv_rest_tls *tls,
                     struct dv_err *err)
{
    struct dv_rest_cert cert;

    if (!dv_pki_make_server(&api->ca, api->options->node_name, api->options->listen, wall_ns(api),
                            arena, &cert, err))
        return false;
    *tls = (struct dv_rest_tls){.cert = cert.cert, .key = cert.key, .client_ca = api->ca.cert};
    return true;
}

static void on_renewal(struct dv_timer *timer)
{
    struct dv_daemon_api *api = DV_CONTAINER(timer, struct dv_daemon_api, renewal);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_rest_tls tls;
    struct dv_err err;

    if (make_tls(api, arena, &tls, &err) && dv_http_server_set_tls(api->server, &tls, &err))
        dv_log(DV_LOG_INFO, "daemon: the server's certificate is renewed");
    else
        dv_log(DV_LOG_ERROR, "daemon: cannot renew the server's certificate", DV_F_ERR(&err));
    dv_timer_start(timer, api->loop, dv_loop_now_ms(api->loop) + RENEW_MS, on_renewal);
}

/* ---- the admin ---- */

static bool has_text(dv_str path, dv_str text, struct dv_arena *arena)
{
    struct dv_err absent;
    dv_str found;

    return dv_file_read(path, KUBECONFIG_BYTES_MAX, arena, &found, &absent) &&
           dv_str_eq(found, text);
}

/* Writes admin.kubeconfig, whose reader is the admin: its token is kept nowhere else. */
static bool write_kubeconfig(struct dv_daemon_api *api, dv_str token, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_options *options = api->options;
    dv_str path = dv_str_printf(arena, "%.*s/admin.kubeconfig", DV_FMT(options->state_dir));
    dv_str server =
        dv_str_printf(arena, "%s://127.0.0.1:%u", options->insecure_http ? "http" : "https",
                      dv_http_server_port(api->server));
    dv_str text = dv_pki_print_kubeconfig(
        server, options->insecure_http ? DV_STR_NONE : api->ca.cert, DV_STR("admin"), token, arena);

    /* A file that is right already is not written, which a full disk would prevent. */
    return has_text(path, text, arena) || dv_file_replace(path, text, 0600, err);
}

/* Tries again to write the file. Nobody waits for it but the admin, who is told why it is not
 * there. */
static void on_kubeconfig(struct dv_timer *timer)
{
    struct dv_daemon_api *api = DV_CONTAINER(timer, struct dv_daemon_api, kubeconfig);
    struct dv_err err;
    bool is_written = write_kubeconfig(api, api->token, &err);

    dv_health_set(api->health, DV_HEALTH_KUBECONFIG, is_written ? NULL : &err);
    if (!is_written)
        dv_timer_start(timer, api->loop, dv_loop_now_ms(api->loop) + KUBECONFIG_AGAIN_MS,
                       on_kubeconfig);
}

static bool add_admin(struct dv_daemon_api *api, dv_str *token, struct dv_err *err)
{
    dv_str path =
        dv_str_printf(api->arena, "%.*s/admin.kubeconfig", DV_FMT(api->options->state_dir));
    struct dv_api_user_info admin = dv_auth_admin(DV_STR("admin"), api->arena);

    *token = dv_pki_read_token(path, api->arena);
    if (token->n == 0)
        *token = dv_rest_random_token(api->arena);
    return dv_tokens_add_fixed(api->tokens, *token, &admin, err);
}

/* ---- serving ---- */

static bool listen_now(struct dv_daemon_api *api, const struct dv_err *(*trouble)(void *ctx),
                       void *ctx, struct dv_err *err)
{
    struct dv_http_options http = {
        .address = api->options->listen, .kube = api->kube, .trouble = trouble, .ctx = ctx};
    struct dv_rest_tls tls;

    if (!api->options->insecure_http) {
        if (!make_tls(api, api->arena, &tls, err))
            return false;
        http.tls = &tls;
    }
    api->server = dv_http_server_open(api->loop, api->metrics, &http, err);
    if (!api->server)
        return dv_wrap(err, "--listen");
    if (http.tls)
        dv_timer_start(&api->renewal, api->loop, dv_loop_now_ms(api->loop) + RENEW_MS, on_renewal);
    dv_log(DV_LOG_INFO, http.tls ? "daemon: HTTPS serves" : "daemon: HTTP serves",
           DV_F_U64("port", dv_http_server_port(api->server)));
    return true;
}

bool dv_daemon_api_serve(struct dv_daemon_api *api, struct dv_node_feed *feed,
                         struct dv_pod_logs *logs, struct dv_pod_streams *streams,
                         struct dv_sched *const *sched, const struct dv_err *(*trouble)(void *ctx),
                         void *ctx, struct dv_err *err)
{
    const struct dv_options *options = api->options;
    struct dv_kube_options kube = {
        .loop = api->loop,
        .embedded = api->embedded,
        .tokens = api->tokens,
        .metrics = dv_node_metrics_registry(api->metrics),
        .feed = feed,
        .logs = logs,
        .streams = streams,
        .sched = sched,
        .anonymous = DV_ANONYMOUS_HEALTH,
        .trouble = trouble,
        .ctx = ctx,
    };

    if (!is_served(options))
        return true;
    api->kube = dv_kube_open(&kube);
    if (!add_admin(api, &api->token, err) || !listen_now(api, trouble, ctx, err))
        return false;
    on_kubeconfig(&api->kubeconfig);
    dv_kube_set_address(api->kube, dv_pki_reached_at(options->listen, api->arena),
                        dv_http_server_port(api->server));
    return true;
}

/* ---- the end: from the outside in ---- */

static void on_embedded_closed(void *ctx)
{
    struct dv_daemon_api *api = ctx;
    dv_closed_fn *closed = api->closed;
    void *closed_ctx = api->closed_ctx;

    dv_tokens_close(api->tokens);
    dv_arena_free(api->arena);
    free(api);
    if (closed)
        closed(closed_ctx);
}

/* One of the parts that hold calls is closed. What they use is closed when all of them are. */
static void on_front_closed(void *ctx)
{
    struct dv_daemon_api *api = ctx;

    if (--api->n_fronts == 0)
        dv_embedded_close(api->embedded, on_embedded_closed, api);
}

void dv_daemon_api_close(struct dv_daemon_api *api, dv_closed_fn *closed, void *ctx)
{
    api->closed = closed;
    api->closed_ctx = ctx;
    dv_timer_cancel(&api->renewal);
    dv_timer_cancel(&api->kubeconfig);
    api->n_fronts = 1u + (api->server ? 1u : 0u) + (api->kube ? 1u : 0u);
    if (api->server)
        dv_http_server_close(api->server, on_front_closed, api);
    if (api->kube)
        dv_kube_close(api->kube, on_front_closed, api);
    on_front_closed(api);
}
