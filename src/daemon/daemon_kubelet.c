/* daemon_kubelet.c - opens the node's own API, as a kubelet has it: its addresses, its certificate,
 * and what it says about how this node is set up. */
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/daemon_options.h"
#include "daemon/daemon_parts.h"
#include "daemon/pki.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "rest/rest.h"
#include "serve/node_api.h"
#include "json/json.h"

#define PEM_BYTES_MAX (1u << 20)
#define CONFIG_BYTES_MAX 65536u
/* A certificate of our own is valid for a year, and renewed well before its end. One that was given
 * is read again, because who renews it replaces the files. */
#define RENEW_MS (UINT64_C(90) * 24 * 3600 * 1000)
#define READ_AGAIN_MS (UINT64_C(3600) * 1000)

static bool is_wanted(dv_str address)
{
    return !dv_str_eq(address, DV_STR("none"));
}

/* ---- the certificate ---- */

static bool make_cert(const struct dv_daemon *daemon, struct dv_arena *arena,
                      struct dv_rest_tls *tls, struct dv_err *err)
{
    const struct dv_options *options = daemon->options;
    uint64_t now_ns = dv_clock_wall_ns(dv_loop_clock(daemon->loop));
    struct dv_rest_cert ca;
    struct dv_rest_cert cert;

    if (!dv_pki_load_ca(options->state_dir, now_ns, arena, &ca, err) ||
        !dv_pki_make_server(&ca, options->node_name, options->node_listen, now_ns, arena, &cert,
                            err))
        return false;
    tls->cert = cert.cert;
    tls->key = cert.key;
    /* In an embedded API the same CA signs its clients' certificates. */
    if (daemon->api)
        tls->client_ca = ca.cert;
    return true;
}

static bool read_cert(const struct dv_options *options, struct dv_arena *arena,
                      struct dv_rest_tls *tls, struct dv_err *err)
{
    return (dv_file_read(options->node_cert, PEM_BYTES_MAX, arena, &tls->cert, err) ||
            dv_wrap(err, "--node-cert")) &&
           (dv_file_read(options->node_key, PEM_BYTES_MAX, arena, &tls->key, err) ||
            dv_wrap(err, "--node-key"));
}

static bool read_client_ca(const struct dv_options *options, struct dv_arena *arena,
                           struct dv_rest_tls *tls, struct dv_err *err)
{
    return options->client_ca.n == 0 ||
           dv_file_read(options->client_ca, PEM_BYTES_MAX, arena, &tls->client_ca, err) ||
           dv_wrap(err, "--client-ca");
}

static bool load_tls(const struct dv_daemon *daemon, struct dv_arena *arena,
                     struct dv_rest_tls *tls, struct dv_err *err)
{
    const struct dv_options *options = daemon->options;

    *tls = (struct dv_rest_tls){0};
    if (options->node_cert.n > 0 ? !read_cert(options, arena, tls, err)
                                 : !make_cert(daemon, arena, tls, err))
        return false;
    return read_client_ca(options, arena, tls, err);
}

bool dv_daemon_check_node_cert(struct dv_daemon *daemon, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_options *options = daemon->options;
    struct dv_rest_tls tls = {0};

    if (!(options->roles & DV_ROLE_NODE) || !is_wanted(options->node_listen))
        return true;
    if (options->node_cert.n > 0) {
        if (!read_cert(options, arena, &tls, err))
            return false;
        if (!dv_rest_tls_check_key(tls.cert, tls.key, err))
            return dv_wrap(err, "--node-cert");
    }
    if (!read_client_ca(options, arena, &tls, err))
        return false;
    return options->client_ca.n == 0 || dv_rest_tls_check_ca(tls.client_ca, err) ||
           dv_wrap(err, "--client-ca");
}

/* Tells the API where the node's own API is, and with which key. */
static void publish(struct dv_daemon *daemon, const struct dv_rest_tls *tls)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str key;
    struct dv_err err;

    if (dv_rest_cert_pin(tls->cert, arena, &key, &err))
        dv_agent_set_api(daemon->agent, dv_node_api_port(daemon->node_api), key);
    else
        dv_log(DV_LOG_ERROR, "daemon: the key of the node's certificate cannot be told",
               DV_F_ERR(&err));
}

static void on_renewal(struct dv_timer *timer)
{
    dv_daemon_renew_node_cert(DV_CONTAINER(timer, struct dv_daemon, node_cert_timer));
}

static void renew_later(struct dv_daemon *daemon)
{
    uint64_t pause_ms = daemon->options->node_cert.n > 0 ? READ_AGAIN_MS : RENEW_MS;

    dv_timer_start(&daemon->node_cert_timer, daemon->loop, dv_loop_now_ms(daemon->loop) + pause_ms,
                   on_renewal);
}

void dv_daemon_renew_node_cert(struct dv_daemon *daemon)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_rest_tls tls;
    struct dv_err err;

    if (!daemon->node_api || dv_node_api_port(daemon->node_api) == 0)
        return;
    if (!load_tls(daemon, arena, &tls, &err) || !dv_node_api_set_tls(daemon->node_api, &tls, &err))
        dv_log(DV_LOG_ERROR, "daemon: the node's certificate is not renewed; the old one is used",
               DV_F_ERR(&err));
    else
        publish(daemon, &tls);
    dv_timer_cancel(&daemon->node_cert_timer);
    renew_later(daemon);
}

/* ---- how this node is set up ---- */

static void set_text(struct dv_json *to, const char *name, dv_str text, struct dv_arena *arena)
{
    if (text.n > 0)
        dv_json_set(to, dv_str_from_c(name), dv_json_new_str(text, arena), arena);
}

static void set_number(struct dv_json *to, const char *name, int64_t number, struct dv_arena *arena)
{
    dv_json_set(to, dv_str_from_c(name), dv_json_new_i64(number, arena), arena);
}

/* Prints what of a kubelet's configuration davitd has too, under the reference's names. */
static dv_str print_config(struct dv_daemon *daemon)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    const struct dv_options *options = daemon->options;
    struct dv_json *doc = dv_json_new_object(arena);

    set_text(doc, "staticPodPath", options->pod_manifest_path, arena);
    set_text(doc, "tlsCertFile", options->node_cert, arena);
    set_text(doc, "tlsPrivateKeyFile", options->node_key, arena);
    set_text(doc, "topologyManagerPolicy", options->topology_policy, arena);
    set_text(doc, "topologyManagerScope", options->topology_scope, arena);
    set_text(doc, "podLogsDir", options->pod_logs_dir, arena);
    if (dv_str_starts_with(options->cri, DV_STR("unix:")))
        set_text(doc, "containerRuntimeEndpoint", options->cri, arena);
    set_number(doc, "imageGCHighThresholdPercent", options->image_gc.high_percent, arena);
    set_number(doc, "imageGCLowThresholdPercent", options->image_gc.low_percent, arena);
    dv_buf_init(&text, CONFIG_BYTES_MAX);
    dv_json_print(doc, NULL, &text);
    return dv_str_copy(dv_buf_str(&text), daemon->arena);
}

/* ---- opening ---- */

bool dv_daemon_open_node_api(struct dv_daemon *daemon, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_options *options = daemon->options;
    struct dv_node_api_options api = {
        .cluster = daemon->cluster,
        .node = &daemon->node,
        .agent = daemon->agent,
        .metrics = daemon->metrics,
        .usage = daemon->usage,
        .logs = daemon->logs,
        .streams = daemon->streams,
    };
    struct dv_rest_tls tls;

    if (!(options->roles & DV_ROLE_NODE) ||
        (!is_wanted(options->node_listen) && !is_wanted(options->node_healthz)))
        return true;
    if (is_wanted(options->node_healthz))
        api.health_address = options->node_healthz;
    if (is_wanted(options->node_listen)) {
        if (!load_tls(daemon, arena, &tls, err))
            return dv_wrap(err, "--node-listen");
        api.address = options->node_listen;
        api.tls = &tls;
        api.config = print_config(daemon);
    }
    daemon->node_api = dv_node_api_open(daemon->loop, &api, err);
    if (!daemon->node_api)
        return false;
    dv_log(DV_LOG_INFO, "daemon: the node's own API serves",
           DV_F_U64("port", dv_node_api_port(daemon->node_api)),
           DV_F_U64("health_port", dv_node_api_health_port(daemon->node_api)));
    if (api.address.n > 0) {
        publish(daemon, &tls);
        renew_later(daemon);
    }
    return true;
}
