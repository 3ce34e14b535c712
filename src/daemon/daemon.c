#include "daemon/daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/api.h"
#include "daemon/options.h"
#include "device/manager.h"
#include "loop/loop.h"
#include "plugin/plugin.h"
#include "pod/pod.h"
#include "serve/serve.h"
#include "store/store.h"
#include "topology/topology.h"

/* A sysfs attribute is at most a page. */
#define SYSFS_BYTES_MAX 65536u
#define TOPOLOGY_OPTIONS_MAX 8u
/* For calls that are being answered when the daemon stops. */
#define CLOSE_GRACE_MS 500u

struct dv_daemon {
    struct dv_loop *loop;
    const struct dv_options *options;
    struct dv_arena *arena;
    struct dv_store *store;
    struct dv_numa_machine machine;
    struct dv_topology_config topology;
    struct dv_devices *devices;
    struct dv_pods *pods;
    struct dv_plugins *plugins;
    struct dv_node node;
    struct dv_node_server *node_server;
    struct dv_podres_server *podres_server;
    struct dv_node_metrics *metrics;
    struct dv_daemon_api *api;          /* with the role */
    struct dv_http_server *http_server; /* without it */
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static dv_str path_in(struct dv_daemon *daemon, dv_str dir, const char *name)
{
    return dv_str_printf(daemon->arena, "%.*s/%s", DV_FMT(dir), name);
}

/* Makes the directory and those above it. */
static bool make_dirs(struct dv_daemon *daemon, dv_str dir, mode_t mode, struct dv_err *err)
{
    for (size_t i = 1; i <= dir.n; i++) {
        const char *part;

        if (i < dir.n && dir.p[i] != '/')
            continue;
        part = dv_str_to_c(dv_str_slice(dir, 0, i), daemon->arena);
        if (mkdir(part, i == dir.n ? mode : 0755) < 0 && errno != EEXIST)
            return dv_fail_errno(err, errno, "make %s", part);
    }
    return true;
}

/* ---- topology ---- */

static bool read_machine(struct dv_daemon *daemon, struct dv_err *err)
{
    dv_str dir = path_in(daemon, daemon->options->sys_dir, "devices/system/node");
    dv_str online = DV_STR("0");
    struct dv_err absent;

    /* A kernel without NUMA has no such file, and one node. */
    if (!dv_file_read(path_in(daemon, dir, "online"), SYSFS_BYTES_MAX, daemon->arena, &online,
                      &absent) &&
        absent.code != DV_NOT_FOUND) {
        *err = absent;
        return false;
    }
    if (!dv_topology_machine_parse(online, daemon->arena, &daemon->machine, err))
        return dv_wrap(err, "%.*s/online", DV_FMT(dir));
    for (size_t i = 0; i < daemon->machine.n_nodes; i++) {
        struct dv_numa_node *node = &daemon->machine.nodes[i];
        dv_str path = dv_str_printf(daemon->arena, "%.*s/node%u/distance", DV_FMT(dir), node->id);
        dv_str text;

        if (!dv_file_read(path, SYSFS_BYTES_MAX, daemon->arena, &text, &absent))
            continue; /* only prefer-closest needs them, and says so */
        if (!dv_topology_distances_parse(node, text, daemon->arena, err))
            return dv_wrap(err, "%.*s", DV_FMT(path));
    }
    return true;
}

static bool configure_topology(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_options *options = daemon->options;
    struct dv_topology_option list[TOPOLOGY_OPTIONS_MAX];
    dv_str rest = options->topology_options;
    size_t n = 0;
    dv_str word;

    while (rest.n > 0 && dv_str_split(&rest, ',', &word)) {
        size_t equals = dv_str_find_char(word, '=');

        if (n == TOPOLOGY_OPTIONS_MAX)
            return dv_fail(err, DV_INVALID_ARGUMENT, "--topology-options: more than %u",
                           TOPOLOGY_OPTIONS_MAX);
        list[n++] = (struct dv_topology_option){dv_str_slice(word, 0, equals),
                                                dv_str_slice(word, equals + 1, word.n)};
    }
    if (!dv_topology_config_parse(options->topology_policy, options->topology_scope, list, n,
                                  &daemon->machine, &daemon->topology, err))
        return dv_wrap(err, "topology");
    if (daemon->topology.max_nodes > DV_TOPOLOGY_NODES_DEFAULT)
        dv_log(DV_LOG_WARN, "daemon: more than 8 NUMA nodes make admissions slower",
               DV_F_I64("nodes", daemon->topology.max_nodes));
    return true;
}

/* ---- what happens ---- */

static void on_devices_changed(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    if (daemon->pods)
        dv_pods_look_again(daemon->pods);
    if (daemon->node_server)
        dv_node_server_devices_changed(daemon->node_server);
}

static void on_pods_changed(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    if (!daemon->node_server)
        return;
    dv_node_server_pods_changed(daemon->node_server);
    dv_node_server_devices_changed(daemon->node_server); /* others hold them */
}

/* The pods themselves go on: what to do about it is decided by those who watch. */
static void on_health_changed(void *ctx, const dv_str *pod_uids, size_t n_pod_uids)
{
    struct dv_daemon *daemon = ctx;

    dv_log(DV_LOG_INFO, "daemon: the health of devices in use has changed",
           DV_F_U64("pods", n_pod_uids), DV_F_STR("first", pod_uids[0]));
    if (daemon->node_server)
        dv_node_server_pods_changed(daemon->node_server);
}

static void on_allocated(void *ctx, dv_str resource, uint64_t ns)
{
    dv_node_metrics_allocated(((struct dv_daemon *)ctx)->metrics, resource, ns);
}

static void on_ended(void *ctx, const struct dv_pod_verdict *verdict,
                     const struct dv_pod_times *times)
{
    dv_node_metrics_ended(((struct dv_daemon *)ctx)->metrics, verdict, times);
}

static void save_pods(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    if (daemon->pods)
        dv_pods_save_all(daemon->pods);
}

/* The store lost what it had: all that is in memory goes back into it, with the next save. */
static void on_store_damaged(void *ctx, const char *set_aside)
{
    struct dv_daemon *daemon = ctx;

    dv_log(DV_LOG_ERROR, "daemon: the state was damaged; it is set aside and written anew",
           DV_F_C("file", set_aside));
    if (daemon->api) /* then the pods, which say that all is there */
        dv_daemon_api_rewrite(daemon->api, save_pods, daemon);
    else
        save_pods(daemon);
}

/* ---- start ---- */

static bool open_store(struct dv_daemon *daemon, struct dv_err *err)
{
    struct dv_store_options options = {
        .schema = &dv_node_schema,
        .damaged = on_store_damaged,
        .ctx = daemon,
        .keeps_readable = true,
    };
    dv_str path = path_in(daemon, daemon->options->state_dir, "state.db");
    const char *set_aside;

    if (!make_dirs(daemon, daemon->options->state_dir, 0700, err))
        return false;
    daemon->store = dv_store_open(daemon->loop, path, &options, err);
    if (!daemon->store)
        return false;
    set_aside = dv_store_set_aside(daemon->store);
    if (set_aside)
        dv_log(DV_LOG_ERROR,
               "daemon: the state was damaged; it is set aside, and begins anew from what could "
               "be read",
               DV_F_C("file", set_aside));
    return true;
}

static bool open_devices(struct dv_daemon *daemon, struct dv_err *err)
{
    struct dv_devices_options options = {
        .kubelet_dir = daemon->options->kubelet_dir,
        .store = daemon->store,
        .space = DV_SPACE_DEVICES,
        .is_strict = daemon->options->is_strict,
        .changed = on_devices_changed,
        .pods_changed = on_health_changed,
        .allocated = on_allocated,
        .ctx = daemon,
    };

    if (!make_dirs(daemon, options.kubelet_dir, 0750, err))
        return false;
    daemon->devices = dv_devices_open(daemon->loop, &options, err);
    return daemon->devices != NULL;
}

static bool open_pods(struct dv_daemon *daemon, struct dv_err *err)
{
    struct dv_pods_options options = {
        .devices = daemon->devices,
        .store = daemon->store,
        .topology = &daemon->topology,
        .machine = &daemon->machine,
        .wait_ms = daemon->options->wait_ms,
        .is_strict = daemon->options->is_strict,
        .changed = on_pods_changed,
        .ended = on_ended,
        .ctx = daemon,
    };

    daemon->pods = dv_pods_open(daemon->loop, &options, err);
    if (!daemon->pods)
        return false;
    return true;
}

/* The last of what is loaded: from here on the store is written. */
static bool open_api(struct dv_daemon *daemon, struct dv_err *err)
{
    if (daemon->options->roles & DV_ROLE_API) {
        daemon->api =
            dv_daemon_api_open(daemon->loop, daemon->store, daemon->options, daemon->metrics, err);
        if (!daemon->api)
            return false;
    }
    if (dv_store_set_aside(daemon->store)) {
        dv_log(DV_LOG_ERROR, "daemon: what could be read of the damaged state is written anew",
               DV_F_C("file", dv_store_set_aside(daemon->store)),
               DV_F_U64("pods", dv_pods_count(daemon->pods)));
        dv_pods_save_all(daemon->pods);
    }
    return true;
}

static bool open_plugins(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_plugin_handler handlers[] = {dv_devices_handler(daemon->devices)};
    struct dv_plugins_options options = {
        .kubelet_dir = daemon->options->kubelet_dir,
        .handlers = handlers,
        .n_handlers = DV_COUNT(handlers),
        .accepts_any_endpoint = daemon->options->is_strict,
    };

    daemon->plugins = dv_plugins_open(daemon->loop, &options, err);
    return daemon->plugins != NULL;
}

/* Why the daemon is not ready. */
static const struct dv_err *trouble(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    return daemon->devices ? dv_devices_store_error(daemon->devices) : NULL;
}

/* Plain HTTP, so only where nobody else listens in, and only when asked for. */
static bool open_http(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_options *options = daemon->options;
    struct dv_http_options http = {.address = options->listen, .trouble = trouble, .ctx = daemon};

    if (!options->insecure_http || dv_str_eq(options->listen, DV_STR("none")))
        return true;
    if (!dv_str_starts_with(options->listen, DV_STR("127.")) &&
        !dv_str_starts_with(options->listen, DV_STR("[::1]:")) &&
        !dv_str_starts_with(options->listen, DV_STR("localhost:")))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--insecure-http is for loopback addresses, and --listen is %.*s",
                       DV_FMT(options->listen));
    daemon->http_server = dv_http_server_open(daemon->loop, daemon->metrics, &http, err);
    if (!daemon->http_server)
        return dv_wrap(err, "--listen");
    dv_log(DV_LOG_INFO, "daemon: HTTP serves",
           DV_F_U64("port", dv_http_server_port(daemon->http_server)));
    return true;
}

static bool open_front(struct dv_daemon *daemon, struct dv_err *err)
{
    return daemon->api ? dv_daemon_api_serve(daemon->api, trouble, daemon, err)
                       : open_http(daemon, err);
}

static bool open_servers(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_options *options = daemon->options;
    dv_str podres_dir = path_in(daemon, options->kubelet_dir, "pod-resources");

    daemon->node = (struct dv_node){
        .loop = daemon->loop,
        .devices = daemon->devices,
        .plugins = daemon->plugins,
        .pods = daemon->pods,
        .name = options->node_name,
        .started_wall_ns = dv_clock_wall_ns(dv_loop_clock(daemon->loop)),
        .is_strict = options->is_strict,
    };
    if (!make_dirs(daemon, options->runtime_dir, 0700, err) ||
        !make_dirs(daemon, podres_dir, 0750, err))
        return false;
    daemon->podres_server =
        dv_podres_server_open(&daemon->node, path_in(daemon, podres_dir, "kubelet.sock"), err);
    if (!daemon->podres_server)
        return false;
    dv_node_metrics_watch(daemon->metrics, &daemon->node, daemon->store, daemon->podres_server);
    daemon->node_server = dv_node_server_open(
        &daemon->node, path_in(daemon, options->runtime_dir, "davit.sock"), err);
    return daemon->node_server != NULL && open_front(daemon, err);
}

/* ---- stop: each part when those that stand on it are gone ---- */

static void on_store_closed(void *ctx)
{
    struct dv_daemon *daemon = ctx;
    void (*closed)(void *ctx) = daemon->closed;
    void *closed_ctx = daemon->closed_ctx;

    dv_node_metrics_free(daemon->metrics);
    dv_arena_free(daemon->arena);
    free(daemon);
    if (closed)
        closed(closed_ctx);
}

static void close_store(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    daemon->api = NULL;
    if (daemon->store)
        dv_store_close(daemon->store, on_store_closed, daemon);
    else
        on_store_closed(daemon);
}

static void close_api(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    daemon->devices = NULL;
    if (daemon->api)
        dv_daemon_api_close(daemon->api, close_store, daemon);
    else
        close_store(daemon);
}

static void close_devices(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    daemon->pods = NULL;
    if (daemon->devices)
        dv_devices_close(daemon->devices, close_api, daemon);
    else
        close_api(daemon);
}

static void close_pods(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    daemon->plugins = NULL;
    if (daemon->pods)
        dv_pods_close(daemon->pods, close_devices, daemon);
    else
        close_devices(daemon);
}

static void close_plugins(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    daemon->podres_server = NULL;
    if (daemon->plugins)
        dv_plugins_close(daemon->plugins, close_pods, daemon);
    else
        close_pods(daemon);
}

static void close_podres(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    daemon->node_server = NULL;
    if (daemon->podres_server)
        dv_podres_server_close(daemon->podres_server, close_plugins, daemon);
    else
        close_plugins(daemon);
}

static void close_node_server(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    daemon->http_server = NULL;
    if (daemon->node_server)
        dv_node_server_close(daemon->node_server, CLOSE_GRACE_MS, close_podres, daemon);
    else
        close_podres(daemon);
}

void dv_daemon_close(struct dv_daemon *daemon, void (*closed)(void *ctx), void *ctx)
{
    daemon->closed = closed;
    daemon->closed_ctx = ctx;
    if (daemon->http_server)
        dv_http_server_close(daemon->http_server, close_node_server, daemon);
    else
        close_node_server(daemon);
}

bool dv_daemon_is_settled(const struct dv_daemon *daemon)
{
    return !daemon->api || dv_daemon_api_is_settled(daemon->api);
}

struct dv_daemon *dv_daemon_open(struct dv_loop *loop, const struct dv_options *options,
                                 struct dv_err *err)
{
    struct dv_daemon *daemon = DV_ALLOC(struct dv_daemon);

    daemon->loop = loop;
    daemon->options = options;
    daemon->arena = dv_arena_new();
    daemon->metrics = dv_node_metrics_new();
    if (read_machine(daemon, err) && configure_topology(daemon, err) && open_store(daemon, err) &&
        open_devices(daemon, err) && open_pods(daemon, err) && open_api(daemon, err) &&
        open_plugins(daemon, err) && open_servers(daemon, err))
        return daemon;
    dv_daemon_close(daemon, NULL, NULL);
    return NULL;
}
