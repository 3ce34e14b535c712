/* stop.c - stops the daemon: each part is closed when those that use it are gone. */
#include <stdlib.h>

#include "apps/apps.h"
#include "base/arena.h"
#include "base/str.h"
#include "builtin/builtin.h"
#include "cdidir/cdidir.h"
#include "claim/claim_manager.h"
#include "cluster/recorder.h"
#include "cluster/remote.h"
#include "control/control.h"
#include "daemon/daemon.h"
#include "daemon/daemon_api.h"
#include "daemon/daemon_parts.h"
#include "daemon/old_offers.h"
#include "device/device_manager.h"
#include "flight/flight.h"
#include "lease/lease.h"
#include "loop/loop.h"
#include "plugin/guard.h"
#include "plugin/plugin.h"
#include "pod/agent.h"
#include "pod/pod.h"
#include "pod/runner.h"
#include "sched/sched.h"
#include "serve/health.h"
#include "serve/node_api.h"
#include "serve/node_usage.h"
#include "serve/pod_stream.h"
#include "serve/serve.h"
#include "store/store.h"

/* How long calls may take that are being answered when the daemon stops. */
#define CLOSE_GRACE_MS 500u

static void close_next(void *ctx);

/* Each function begins to close its part and returns true, or returns false when there is none. The
 * pointer is cleared first, so that nobody finds a part that is being closed. */
#define CLOSE(part, function)                                                                      \
    static bool close_##part(struct dv_daemon *daemon)                                             \
    {                                                                                              \
        void *closing = daemon->part;                                                              \
                                                                                                   \
        daemon->part = NULL;                                                                       \
        if (closing)                                                                               \
            (function)(closing, close_next, daemon);                                               \
        return closing != NULL;                                                                    \
    }
CLOSE(node_api, dv_node_api_close)
CLOSE(usage, dv_node_usage_close)
CLOSE(http_server, dv_http_server_close)
CLOSE(apps, dv_apps_close)
CLOSE(control, dv_control_close)
CLOSE(sched, dv_sched_close)
CLOSE(podres_server, dv_podres_server_close)
CLOSE(plugins, dv_plugins_close)
CLOSE(pods, dv_pods_close)
CLOSE(cdi, dv_cdi_dirs_close)
CLOSE(claims, dv_claim_manager_close)
CLOSE(old_offers, dv_old_offers_close)
CLOSE(devices, dv_device_manager_close)
CLOSE(recorder, dv_recorder_close)
CLOSE(remote, dv_remote_close)
CLOSE(api, dv_daemon_api_close)
CLOSE(store, dv_store_close)

static bool close_flight(struct dv_daemon *daemon)
{
    struct dv_flight *flight = daemon->flight;

    if (!flight)
        return false;
    dv_daemon_forget_flight(daemon);
    dv_flight_note(flight, DV_STR("davitd stops")); /* a recording without this ended by a kill */
    daemon->flight = NULL;
    dv_flight_close(flight, close_next, daemon);
    return true;
}

static bool close_builtin(struct dv_daemon *daemon)
{
    struct dv_builtin_driver *builtin = daemon->builtin;

    daemon->builtin = daemon->node.builtin = NULL;
    if (builtin)
        dv_builtin_close(builtin, close_next, daemon);
    return builtin != NULL;
}

/* Leases are closed before all that they use. Whoever calls from now on is told that davitd stops.
 */
static bool close_leases(struct dv_daemon *daemon)
{
    struct dv_leases *leases = daemon->leases;

    daemon->leases = daemon->node.leases = NULL;
    if (leases)
        dv_leases_close(leases, close_next, daemon);
    return leases != NULL;
}

static bool close_agent(struct dv_daemon *daemon)
{
    struct dv_agent *agent = daemon->agent;

    daemon->agent = daemon->node.agent = NULL;
    if (agent)
        dv_agent_close(agent, close_next, daemon);
    return agent != NULL;
}

static bool close_runner(struct dv_daemon *daemon)
{
    struct dv_runner *runner = daemon->runner;

    daemon->runner = daemon->node.runner = NULL;
    if (runner)
        dv_runner_close(runner, close_next, daemon);
    return runner != NULL;
}

static bool close_node_server(struct dv_daemon *daemon)
{
    struct dv_node_server *server = daemon->node_server;

    daemon->node_server = NULL;
    if (server)
        dv_node_server_close(server, CLOSE_GRACE_MS, close_next, daemon);
    return server != NULL;
}

static bool close_pools(struct dv_daemon *daemon)
{
    dv_node_pools_close(daemon->pools);
    daemon->pools = daemon->node.pools = NULL;
    return false;
}

static void close_next(void *ctx)
{
    static bool (*const steps[])(struct dv_daemon *) = {
        close_leases,  close_node_api,   close_http_server, close_sched,       close_apps,
        close_control, close_agent,      close_runner,      close_node_server, close_podres_server,
        close_pools,   close_plugins,    close_builtin,     close_pods,        close_cdi,
        close_claims,  close_old_offers, close_devices,     close_recorder,    close_remote,
        close_api,     close_usage,      close_store,       close_flight,
    };
    struct dv_daemon *daemon = ctx;
    void (*closed)(void *ctx) = daemon->closed;
    void *closed_ctx = daemon->closed_ctx;

    while (daemon->i_closing < DV_COUNT(steps))
        if (steps[daemon->i_closing++](daemon))
            return; /* this runs again when the part is closed */
    dv_node_feed_free(daemon->feed);
    dv_pod_logs_free(daemon->logs);
    dv_pod_streams_free(daemon->streams);
    dv_health_free(daemon->health);
    dv_node_metrics_free(daemon->metrics);
    dv_guard_free(daemon->guard);
    dv_arena_free(daemon->arena);
    free(daemon);
    if (closed)
        closed(closed_ctx);
}

void dv_daemon_close(struct dv_daemon *daemon, void (*closed)(void *ctx), void *ctx)
{
    daemon->closed = closed;
    daemon->closed_ctx = ctx;
    dv_timer_cancel(&daemon->claims_timer);
    dv_timer_cancel(&daemon->node_cert_timer);
    dv_daemon_forget_control(daemon);
    dv_node_feed_stop(daemon->feed);
    dv_pod_logs_stop(daemon->logs);
    dv_pod_streams_stop(daemon->streams);
    if (daemon->usage)
        dv_node_usage_stop(daemon->usage);
    close_next(daemon);
}
