/* daemon.c - makes the daemon of its parts: what is opened in which order (open_all, at the end),
 * and who is told when something changes. In which order it closes is in stop.c. */
#include "daemon/daemon.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "builtin/builtin.h"
#include "cdidir/cdidir.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "cluster/recorder.h"
#include "cluster/remote.h"
#include "daemon/daemon_api.h"
#include "daemon/daemon_options.h"
#include "daemon/daemon_parts.h"
#include "daemon/old_offers.h"
#include "device/device_manager.h"
#include "lease/lease.h"
#include "plugin/guard.h"
#include "plugin/plugin.h"
#include "pod/agent.h"
#include "pod/pod.h"
#include "serve/health.h"
#include "serve/pod_stream.h"
#include "serve/serve.h"
#include "store/store.h"

dv_str dv_daemon_path(struct dv_daemon *daemon, dv_str dir, const char *name)
{
    return dv_str_printf(daemon->arena, "%.*s/%s", DV_FMT(dir), name);
}

/* ---- what happens ---- */

static void on_devices_changed(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    if (daemon->pods)
        dv_pods_look_again(daemon->pods);
    if (daemon->leases)
        dv_leases_look_again(daemon->leases);
    if (daemon->agent)
        dv_agent_devices_changed(daemon->agent);
    if (daemon->node_server)
        dv_node_server_devices_changed(daemon->node_server);
    dv_node_feed_changed(daemon->feed, DV_FEED_STATUS | DV_FEED_PLUGINS | DV_FEED_DEVICES);
}

static void on_pods_changed(void *ctx, const dv_str *uids, size_t n_uids)
{
    struct dv_daemon *daemon = ctx;

    if (daemon->agent)
        dv_agent_pods_changed(daemon->agent, uids, n_uids);
    if (daemon->leases)
        dv_leases_look_again(daemon->leases);
    if (!daemon->node_server)
        return; /* nobody can be served yet */
    dv_node_server_pods_changed(daemon->node_server);
    dv_node_server_devices_changed(daemon->node_server); /* the holders of devices have changed */
    dv_node_feed_changed(daemon->feed, DV_FEED_STATUS | DV_FEED_DEVICES);
}

/* Claims have changed: pods may wait for them, and they may wait for drivers. */
static void on_claims_changed(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    if (daemon->agent)
        dv_agent_claims_changed(daemon->agent);
    if (!daemon->node_server)
        return;
    dv_node_server_pods_changed(daemon->node_server);
    dv_node_server_claims_changed(daemon->node_server);
    dv_node_server_devices_changed(daemon->node_server); /* claims hold devices of drivers */
    dv_node_feed_changed(daemon->feed,
                         DV_FEED_STATUS | DV_FEED_PLUGINS | DV_FEED_DEVICES | DV_FEED_CLAIMS);
}

/* Devices of DRA drivers, or what claims hold of them, have changed in the API. */
static void on_pools_changed(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    if (daemon->node_server)
        dv_node_server_devices_changed(daemon->node_server);
    dv_node_feed_changed(daemon->feed, DV_FEED_STATUS | DV_FEED_DEVICES);
}

static void on_leases_changed(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    if (daemon->node_server) {
        dv_node_server_leases_changed(daemon->node_server);
        dv_node_server_devices_changed(daemon->node_server);
    }
    dv_node_feed_changed(daemon->feed, DV_FEED_LEASES | DV_FEED_DEVICES);
}

static bool is_wanted(void *ctx, dv_str pod_uid)
{
    struct dv_daemon *daemon = ctx;
    struct dv_pod_ref ref = {.uid = pod_uid};
    struct dv_pod_view view;

    return !daemon->pods || dv_pods_find(daemon->pods, &ref, &view) ||
           (daemon->agent && dv_agent_wants(daemon->agent, pod_uid));
}

static bool is_admitted(void *ctx, dv_str pod_uid)
{
    struct dv_daemon *daemon = ctx;
    struct dv_pod_ref ref = {.uid = pod_uid};
    struct dv_pod_view view;

    return daemon->pods && dv_pods_find(daemon->pods, &ref, &view) && view.was_admitted;
}

static void on_operation_ended(void *ctx, const char *name, bool is_error, uint64_t ns)
{
    dv_node_metrics_operation(((struct dv_daemon *)ctx)->metrics, name, is_error, ns);
}

static void on_call_ended(void *ctx, dv_str driver, const char *method, enum dv_code code,
                          uint64_t ns)
{
    dv_node_metrics_driver_call(((struct dv_daemon *)ctx)->metrics, driver, method, code, ns);
}

/* Tells of the new health. The pods go on: what to do about it is decided by those who watch. */
static void on_health_changed(void *ctx, const dv_str *pod_uids, size_t n_pod_uids)
{
    struct dv_daemon *daemon = ctx;

    dv_log(DV_LOG_INFO, "daemon: the health of devices in use has changed",
           DV_F_U64("pods", n_pod_uids), DV_F_STR("first", pod_uids[0]));
    if (daemon->agent)
        dv_agent_health_changed(daemon->agent, pod_uids, n_pod_uids);
    if (daemon->node_server) {
        dv_node_server_pods_changed(daemon->node_server);
        dv_node_server_devices_changed(daemon->node_server);
    }
    dv_node_feed_changed(daemon->feed, DV_FEED_STATUS | DV_FEED_DEVICES | DV_FEED_CLAIMS);
}

static void on_allocated(void *ctx, dv_str resource, uint64_t ns)
{
    dv_node_metrics_allocated(((struct dv_daemon *)ctx)->metrics, resource, ns);
}

static void on_registration_remade(void *ctx, const struct dv_err *err)
{
    dv_health_set(((struct dv_daemon *)ctx)->health, DV_HEALTH_REGISTRATION, err);
}

static void on_ended(void *ctx, const struct dv_pod_verdict *verdict,
                     const struct dv_pod_times *times)
{
    dv_node_metrics_ended(((struct dv_daemon *)ctx)->metrics, verdict, times);
}

/* ---- start ---- */

static bool open_devices(struct dv_daemon *daemon, struct dv_err *err)
{
    struct dv_device_manager_options options = {
        .kubelet_dir = daemon->options->kubelet_dir,
        .store = daemon->store,
        .table = DV_TABLE_DEVICES,
        .guard = daemon->guard,
        .observer = dv_daemon_observer(daemon),
        .is_strict = daemon->options->is_strict,
        .changed = on_devices_changed,
        .pods_changed = on_health_changed,
        .allocated = on_allocated,
        .socket_remade = on_registration_remade,
        .ctx = daemon,
    };

    if (!dv_daemon_make_dirs(daemon, options.kubelet_dir, 0750, err))
        return false;
    daemon->devices = dv_device_manager_open(daemon->loop, &options, err);
    return daemon->devices != NULL;
}

/* No driver can have registered before the claims are connected. */
static void on_offered(void *ctx, dv_str driver, const struct dv_claim_offer *offer)
{
    const struct dv_daemon *daemon = ctx;

    dv_old_offers_set(daemon->old_offers, driver, offer);
}

static bool open_claims(struct dv_daemon *daemon, struct dv_err *err)
{
    struct dv_claim_manager_options options = {
        .store = daemon->store,
        .table = DV_TABLE_CLAIMS,
        .guard = daemon->guard,
        .observer = dv_daemon_observer(daemon),
        .node_name = daemon->options->node_name,
        .boot_id = daemon->boot_id,
        .is_strict = daemon->options->is_strict,
        .is_wanted = is_wanted,
        .is_admitted = is_admitted,
        .changed = on_claims_changed,
        .pods_changed = on_health_changed,
        .offered = on_offered,
        .operation_ended = on_operation_ended,
        .call_ended = on_call_ended,
        .ctx = daemon,
    };

    daemon->claims = dv_claim_manager_open(daemon->loop, &options, err);
    return daemon->claims != NULL;
}

/* Logs what is wrong with CDI specs when that changes; `davit cdi check` tells it at any time. */
static void on_specs_changed(void *ctx)
{
    struct dv_daemon *daemon = ctx;
    const struct dv_cdi_problem *problems;
    size_t n = dv_cdi_dirs_problems(daemon->cdi, &problems);
    uint64_t hash = n;

    for (size_t i = 0; i < n; i++)
        hash = hash * 31 + dv_hash(problems[i].path) * 7 + dv_hash(problems[i].reason);
    if (daemon->builtin)
        dv_builtin_specs_changed(daemon->builtin);
    if (hash == daemon->cdi_problems)
        return; /* other specs have changed, and the problems are the same */
    daemon->cdi_problems = hash;
    for (size_t i = 0; i < n; i++)
        dv_log(DV_LOG_WARN, "daemon: a CDI spec cannot be used", DV_F_STR("file", problems[i].path),
               DV_F_STR("why", problems[i].reason));
}

static bool open_specs(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_cdi_dirs_options options = {.changed = on_specs_changed, .ctx = daemon};
    dv_str *dirs;
    size_t n = dv_cdi_dirs_split(daemon->options->cdi_dirs, daemon->arena, &dirs);

    daemon->cdi = dv_cdi_dirs_open(daemon->loop, dirs, n, &options, err);
    if (!daemon->cdi)
        return dv_wrap(err, "--cdi-dirs");
    on_specs_changed(daemon);
    return true;
}

static enum dv_ledger_mode ledger_mode(dv_str word)
{
    if (dv_str_eq(word, DV_STR("off")))
        return DV_LEDGER_OFF;
    return dv_str_eq(word, DV_STR("warn")) ? DV_LEDGER_WARNS : DV_LEDGER_REFUSES;
}

static bool open_pods(struct dv_daemon *daemon, struct dv_err *err)
{
    struct dv_pods_options options = {
        .devices = daemon->devices,
        .claims = daemon->claims,
        .store = daemon->store,
        .topology = &daemon->topology,
        .machine = &daemon->machine,
        .cdi = daemon->cdi,
        .ledger = ledger_mode(daemon->options->ledger),
        .node_name = daemon->options->node_name,
        .marks_dir = dv_daemon_path(daemon, daemon->options->runtime_dir, DV_DAEMON_MARKS),
        .boot_id = daemon->boot_id,
        .wait_ms = daemon->options->wait_ms,
        .is_strict = daemon->options->is_strict,
        .changed = on_pods_changed,
        .ended = on_ended,
        .ctx = daemon,
    };

    daemon->pods = dv_pods_open(daemon->loop, &options, err);
    return daemon->pods != NULL;
}

static bool open_leases(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_leases_options options = {
        .pods = daemon->pods,
        .devices = daemon->devices,
        .claims = daemon->claims,
        .store = daemon->store,
        .guard = daemon->guard,
        .node_name = daemon->options->node_name,
        .boot_id = daemon->boot_id,
        .changed = on_leases_changed,
        .ctx = daemon,
    };

    daemon->leases = dv_leases_open(daemon->loop, &options, err);
    return daemon->leases != NULL;
}

/* Opens the API. It is loaded last, because the store is written from here on. */
static bool open_api(struct dv_daemon *daemon, struct dv_err *err)
{
    if (daemon->options->roles & DV_ROLE_API) {
        daemon->api = dv_daemon_api_open(daemon->loop, daemon->store, daemon->options,
                                         daemon->metrics, daemon->health, err);
        if (!daemon->api)
            return false;
        daemon->cluster = dv_daemon_api_cluster(daemon->api);
    }
    if (dv_store_set_aside(daemon->store)) {
        dv_log(DV_LOG_ERROR, "daemon: what could be read of the damaged state is written anew",
               DV_F_C("file", dv_store_set_aside(daemon->store)),
               DV_F_U64("pods", dv_pods_count(daemon->pods)));
        dv_daemon_save_claims(daemon);
    }
    dv_daemon_note_asides(daemon);
    return true;
}

/* Opens the client of the cluster that this node belongs to. The cluster need not be reachable
 * yet. */
static bool open_remote(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_remote_options options = {.user_agent = DV_STR("davitd/" DV_VERSION)};
    struct dv_kubeconfig config;

    if (daemon->options->kubeconfig.n == 0)
        return true;
    if (!dv_kubeconfig_load(daemon->options->kubeconfig, DV_STR(""), daemon->arena, &config, err))
        return dv_wrap(err, "--kubeconfig");
    daemon->remote = dv_remote_open(daemon->loop, &config, &options, err);
    if (!daemon->remote)
        return dv_wrap(err, "--kubeconfig %.*s", DV_FMT(daemon->options->kubeconfig));
    daemon->cluster = dv_remote_cluster(daemon->remote);
    return true;
}

static bool open_pools(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_node_pools_options options = {
        .cluster = daemon->cluster,
        .node_name = daemon->options->node_name,
        .is_embedded = daemon->api != NULL,
        .changed = on_pools_changed,
        .ctx = daemon,
    };

    daemon->pools = dv_node_pools_open(&options, err);
    return daemon->pools != NULL;
}

/* Connects the claims when everything is loaded, and finishes those that a crash left
 * unfinished. */
static bool connect_claims(struct dv_daemon *daemon, struct dv_err *err)
{
    daemon->recorder =
        dv_recorder_open(daemon->cluster, DV_STR("davit-node"), daemon->options->node_name);
    dv_claim_manager_connect(daemon->claims, daemon->cluster);
    daemon->old_offers =
        dv_old_offers_open(daemon->loop, daemon->cluster, daemon->options->node_name);
    if (!dv_pods_connect(daemon->pods, daemon->cluster, err) || !open_pools(daemon, err))
        return false;
    if ((daemon->options->roles & DV_ROLE_NODE) && !dv_daemon_open_agent(daemon, err))
        return false;
    dv_claim_manager_set_ready(daemon->claims);
    if (!dv_daemon_open_roles(daemon, err))
        return false;
    dv_leases_start(daemon->leases, daemon->api ? daemon->cluster : NULL,
                    daemon->api ? daemon->sched : NULL);
    return true;
}

static bool open_plugins(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_plugin_handler handlers[] = {dv_device_manager_handler(daemon->devices),
                                                 dv_claim_manager_handler(daemon->claims)};
    struct dv_plugins_options options = {
        .kubelet_dir = daemon->options->kubelet_dir,
        .rules = {.handlers = handlers,
                  .n_handlers = DV_COUNT(handlers),
                  .accepts_any_endpoint = daemon->options->is_strict,
                  .guard = daemon->guard,
                  .observer = dv_daemon_observer(daemon)},
    };

    /* Drivers put their own sockets there, and expect the directory as the kubelet makes it. */
    if (!dv_daemon_make_dirs(daemon, dv_daemon_path(daemon, options.kubelet_dir, "plugins"), 0750,
                             err))
        return false;
    daemon->plugins = dv_plugins_open(daemon->loop, &options, err);
    return daemon->plugins != NULL;
}

struct dv_metrics *dv_daemon_metrics(const struct dv_daemon *daemon)
{
    return dv_node_metrics_registry(daemon->metrics);
}

/* Opens the policy, before anybody can call. */
static bool open_guard(struct dv_daemon *daemon, struct dv_err *err)
{
    if (daemon->options->policy.n == 0)
        return true;
    daemon->guard = dv_guard_open(daemon->options->policy, err);
    return daemon->guard || dv_wrap(err, "--policy");
}

void dv_daemon_reload(struct dv_daemon *daemon)
{
    struct dv_err err;

    dv_daemon_renew_node_cert(daemon);
    dv_daemon_reload_offers(daemon);
    if (!daemon->guard) {
        dv_log(DV_LOG_INFO, "daemon: there is no policy to read again");
        return;
    }
    if (!dv_guard_reload(daemon->guard, &err)) {
        dv_log(DV_LOG_ERROR, "daemon: the policy is not taken; the one before still counts",
               DV_F_ERR(&err));
        return;
    }
    if (daemon->plugins)
        dv_plugins_judge_again(daemon->plugins);
    if (daemon->devices)
        dv_device_manager_judge_again(daemon->devices);
}

bool dv_daemon_is_settled(const struct dv_daemon *daemon)
{
    return !daemon->api || dv_daemon_api_is_settled(daemon->api);
}

/* Whether this process is the scheduler or the controllers of a cluster, and no node of it. */
static bool is_apart(const struct dv_options *options)
{
    return options->kubeconfig.n > 0 && !(options->roles & DV_ROLE_NODE);
}

/* Opens what needs a cluster and no machine: no state, no plugins, and no directories of a kubelet,
 * which the machine may well have. */
static bool open_apart(struct dv_daemon *daemon, struct dv_err *err)
{
    return open_remote(daemon, err) && dv_daemon_open_roles(daemon, err) &&
           dv_daemon_open_http(daemon, err);
}

/* Reads all that the options name, before anything is made: who mistypes one finds nothing on the
 * disk afterwards. */
static bool read_all(struct dv_daemon *daemon, struct dv_err *err)
{
    return dv_daemon_read_machine(daemon, err) && dv_daemon_configure_topology(daemon, err) &&
           dv_daemon_find_group(daemon, err) && open_guard(daemon, err) &&
           open_remote(daemon, err) && dv_daemon_check_offers(daemon, err) &&
           dv_daemon_check_node_cert(daemon, err);
}

static bool open_all(struct dv_daemon *daemon, struct dv_err *err)
{
    return read_all(daemon, err) && dv_daemon_open_flight(daemon, err) &&
           dv_daemon_open_store(daemon, err) && open_devices(daemon, err) &&
           open_claims(daemon, err) && open_specs(daemon, err) && open_pods(daemon, err) &&
           open_leases(daemon, err) && open_api(daemon, err) && connect_claims(daemon, err) &&
           open_plugins(daemon, err) && dv_daemon_open_offers(daemon, err) &&
           dv_daemon_open_servers(daemon, err);
}

struct dv_daemon *dv_daemon_open(struct dv_loop *loop, const struct dv_options *options,
                                 struct dv_err *err)
{
    struct dv_daemon *daemon = DV_ALLOC(struct dv_daemon);

    daemon->loop = loop;
    daemon->options = options;
    daemon->arena = dv_arena_new();
    daemon->metrics = dv_node_metrics_new();
    daemon->health = dv_health_new(dv_node_metrics_registry(daemon->metrics));
    daemon->feed = dv_node_feed_new(&daemon->node);
    daemon->logs = dv_pod_logs_new(loop, &daemon->node);
    daemon->streams = dv_pod_streams_new(&daemon->node);
    if (is_apart(options) ? open_apart(daemon, err) : open_all(daemon, err))
        return daemon;
    dv_daemon_close(daemon, NULL, NULL);
    return NULL;
}
