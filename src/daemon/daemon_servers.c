/* daemon_servers.c - opens what others call: davit.sock, PodResources, the API or plain HTTP, and
 * the node's own API. */
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "claim/claim_manager.h"
#include "daemon/daemon_api.h"
#include "daemon/daemon_options.h"
#include "daemon/daemon_parts.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "pod/runner.h"
#include "serve/health.h"
#include "serve/node_usage.h"
#include "serve/serve.h"

/* Returns why the daemon is not ready. */
static const struct dv_err *trouble(void *ctx)
{
    struct dv_daemon *daemon = ctx;
    const struct dv_err *err = dv_health_trouble(daemon->health);

    if (!err && daemon->devices)
        err = dv_device_manager_store_error(daemon->devices);
    return err || !daemon->claims ? err : dv_claim_manager_store_error(daemon->claims);
}

bool dv_daemon_open_http(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_options *options = daemon->options;
    struct dv_http_options http = {.address = options->listen, .trouble = trouble, .ctx = daemon};

    if (!options->insecure_http || dv_str_eq(options->listen, DV_STR("none")))
        return true;
    daemon->http_server = dv_http_server_open(daemon->loop, daemon->metrics, &http, err);
    if (!daemon->http_server)
        return dv_wrap(err, "--listen");
    dv_log(DV_LOG_INFO, "daemon: HTTP serves",
           DV_F_U64("port", dv_http_server_port(daemon->http_server)));
    return true;
}

static bool open_front(struct dv_daemon *daemon, struct dv_err *err)
{
    dv_str address;
    uint16_t port;

    if (!daemon->api)
        return dv_daemon_open_http(daemon, err);
    if (!dv_daemon_api_serve(daemon->api, daemon->feed, daemon->logs, daemon->streams,
                             &daemon->sched, trouble, daemon, err))
        return false;
    dv_node_feed_start(daemon->feed);
    port = dv_daemon_api_port(daemon->api, &address);
    if (daemon->runner && port > 0)
        dv_runner_set_api(daemon->runner, address, port);
    return true;
}

bool dv_daemon_open_servers(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_options *options = daemon->options;
    dv_str podres_dir = dv_daemon_path(daemon, options->kubelet_dir, "pod-resources");

    daemon->node = (struct dv_node){
        .loop = daemon->loop,
        .devices = daemon->devices,
        .plugins = daemon->plugins,
        .claims = daemon->claims,
        .pods = daemon->pods,
        .leases = daemon->leases,
        .agent = daemon->agent,
        .runner = daemon->runner,
        .builtin = daemon->builtin,
        .recorder = daemon->recorder,
        .pools = daemon->pools,
        .health = daemon->health,
        .guard = daemon->guard,
        .store = daemon->store,
        .copy_path = dv_str_to_c(dv_daemon_path(daemon, options->state_dir, "state.db.copying"),
                                 daemon->arena),
        .name = options->node_name,
        .started_wall_ns = dv_clock_wall_ns(dv_loop_clock(daemon->loop)),
        .is_strict = options->is_strict,
    };
    if (!dv_daemon_open_group(daemon, err))
        return false;
    if (!dv_daemon_make_dirs(daemon, podres_dir, 0750, err))
        return false;
    daemon->podres_server = dv_podres_server_open(
        &daemon->node, dv_daemon_path(daemon, podres_dir, "kubelet.sock"), err);
    if (!daemon->podres_server)
        return false;
    dv_node_metrics_watch(daemon->metrics, &daemon->node, daemon->store, daemon->podres_server);
    daemon->usage = dv_node_usage_new(&daemon->node);
    daemon->node_server = dv_node_server_open(
        &daemon->node, dv_daemon_path(daemon, options->runtime_dir, "davit.sock"), err);
    return daemon->node_server != NULL && open_front(daemon, err) &&
           dv_daemon_open_node_api(daemon, err);
}
