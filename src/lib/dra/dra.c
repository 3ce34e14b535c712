#include "lib/dra/dra.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/remote.h"
#include "lib/common/driver.h"
#include "lib/dra/dra_slices.h"
#include "lib/lib_embed.h"

/* ---- what the driver and the log are told ---- */

static void tell(struct davit_dra *dra, struct davit_dra_event event, dv_str pool,
                 const struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct davit_dra_options *options = &dra->options;

    event.pool = pool.n > 0 ? dv_str_to_c(pool, scratch) : NULL;
    event.socket = event.socket ? dv_str_to_c(dv_str_from_c(event.socket), scratch) : NULL;
    if (err)
        (void)dv_lib_fail(&event.error, err);
    if (options->event)
        options->event(options->ctx, &event); /* last: the callee may close everything */
}

static void tell_endpoint(struct dv_lib_dra_endpoint *endpoint, enum davit_dra_event_kind kind,
                          const struct dv_err *err, uint64_t retry_ms)
{
    tell(endpoint->dra,
         (struct davit_dra_event){.kind = kind, .socket = endpoint->path.p, .retry_ms = retry_ms},
         DV_STR_NONE, err);
}

static void open_endpoint(struct dv_lib_dra_endpoint *endpoint);

static void on_serving(void *ctx)
{
    struct dv_lib_dra_endpoint *endpoint = ctx;
    struct davit_dra *dra = endpoint->dra;

    dv_log(DV_LOG_INFO, "driver: serving", DV_F_STR("driver", dra->name),
           DV_F_STR("socket", endpoint->path));
    if (!dra->registry_endpoint.is_open)
        open_endpoint(&dra->registry_endpoint);
    tell_endpoint(endpoint, DAVIT_DRA_SERVING, NULL, 0);
}

static void on_failed(void *ctx, const struct dv_err *err, uint64_t retry_ms)
{
    struct dv_lib_dra_endpoint *endpoint = ctx;

    dv_log(DV_LOG_WARN, "driver: failed; trying again", DV_F_STR("driver", endpoint->dra->name),
           DV_F_STR("socket", endpoint->path), DV_F_ERR(err), DV_F_U64("retry_ms", retry_ms));
    tell_endpoint(endpoint, DAVIT_DRA_PROBLEM, err, retry_ms);
}

static void on_registered(void *ctx)
{
    struct dv_lib_dra_endpoint *endpoint = ctx;

    dv_log(DV_LOG_INFO, "driver: registered", DV_F_STR("driver", endpoint->dra->name),
           DV_F_STR("socket", endpoint->path));
    tell_endpoint(endpoint, DAVIT_DRA_REGISTERED, NULL, 0);
}

static void on_refused(void *ctx, const struct dv_err *err)
{
    struct dv_lib_dra_endpoint *endpoint = ctx;

    dv_log(DV_LOG_WARN, "driver: not registered; the agent tries again",
           DV_F_STR("driver", endpoint->dra->name), DV_F_STR("socket", endpoint->path),
           DV_F_ERR(err));
    tell_endpoint(endpoint, DAVIT_DRA_PROBLEM, err, 0);
}

static void on_lost(void *ctx, const struct dv_err *err)
{
    struct dv_lib_dra_endpoint *endpoint = ctx;

    dv_log(DV_LOG_INFO, "driver: serving anew", DV_F_STR("driver", endpoint->dra->name),
           DV_F_STR("socket", endpoint->path), DV_F_ERR(err));
    if (endpoint == &endpoint->dra->service_endpoint || endpoint->dra->service_endpoint.path.n == 0)
        dv_lib_health_lost(&endpoint->dra->health, err);
    tell_endpoint(endpoint, DAVIT_DRA_LOST, err, 0);
}

static void on_dir_changed(void *ctx, dv_str name)
{
    struct dv_lib_dra_endpoint *endpoint = ctx;

    dv_lib_socket_check(&endpoint->socket, name);
}

static void on_published(void *ctx, dv_str pool)
{
    struct davit_dra *dra = ctx;

    dv_log(DV_LOG_INFO, "driver: published", DV_F_STR("driver", dra->name), DV_F_STR("pool", pool));
    tell(dra, (struct davit_dra_event){.kind = DAVIT_DRA_PUBLISHED}, pool, NULL);
}

static void on_dropped(void *ctx, dv_str pool, const struct dv_err *err)
{
    struct davit_dra *dra = ctx;

    dv_log(DV_LOG_WARN, "driver: not all is kept", DV_F_STR("driver", dra->name),
           DV_F_STR("pool", pool), DV_F_ERR(err));
    tell(dra, (struct davit_dra_event){.kind = DAVIT_DRA_DROPPED}, pool, err);
}

static void on_not_published(void *ctx, dv_str pool, const struct dv_err *err, uint64_t retry_ms)
{
    struct davit_dra *dra = ctx;

    dv_log(DV_LOG_WARN, "driver: not published; trying again", DV_F_STR("driver", dra->name),
           DV_F_STR("pool", pool), DV_F_ERR(err), DV_F_U64("retry_ms", retry_ms));
    tell(dra, (struct davit_dra_event){.kind = DAVIT_DRA_PROBLEM, .retry_ms = retry_ms}, pool, err);
}

/* ---- opening ---- */

static void open_endpoint(struct dv_lib_dra_endpoint *endpoint)
{
    struct dv_lib_socket_options options = {
        .path = endpoint->path,
        .own_dir = endpoint == &endpoint->dra->service_endpoint ? endpoint->dir_path : DV_STR_NONE,
        .services = endpoint->services,
        .n_services = endpoint->n_services,
        .serving = on_serving,
        .lost = on_lost,
        .failed = on_failed,
        .ctx = endpoint,
    };

    endpoint->is_open = true;
    dv_lib_dir_open(&endpoint->dir, &endpoint->dra->parts, endpoint->dir_path, on_dir_changed,
                    endpoint);
    dv_lib_socket_open(&endpoint->socket, &endpoint->dra->parts, &options);
}

static void add_service(struct davit_dra *dra, const struct dv_method *methods, size_t n_methods)
{
    struct dv_lib_dra_endpoint *endpoint =
        dra->service_endpoint.path.n > 0 ? &dra->service_endpoint : &dra->registry_endpoint;

    endpoint->services[endpoint->n_services++] = (struct dv_service){methods, n_methods, dra};
}

/* Adds the services in the order of preference: an agent takes the first that it knows. */
static void add_services(struct davit_dra *dra)
{
    unsigned flags = dra->options.flags;

    if (!(flags & DAVIT_DRA_NO_V1)) {
        add_service(dra, dv_lib_dra_v1_methods, dv_lib_n_dra_v1_methods);
        dra->versions[dra->n_versions++] = "v1.DRAPlugin";
    }
    if (!(flags & DAVIT_DRA_NO_V1BETA1)) {
        add_service(dra, dv_lib_dra_v1beta1_methods, dv_lib_n_dra_v1beta1_methods);
        dra->versions[dra->n_versions++] = "v1beta1.DRAPlugin";
    }
    if (flags & DAVIT_DRA_HEALTH) {
        add_service(dra, dv_lib_health_methods, dv_lib_n_health_methods);
        dra->versions[dra->n_versions++] = "v1.DRAResourceHealth";
        dra->versions[dra->n_versions++] = "v1alpha1.DRAResourceHealth";
    }
}

static void open_sockets(struct davit_dra *dra)
{
    struct dv_lib_dra_endpoint *endpoint = &dra->registry_endpoint;
    struct dv_lib_registry_options options = {
        .type = DV_STR("DRAPlugin"),
        .name = dra->name,
        .endpoint = dra->service_endpoint.path,
        .versions = dra->versions,
        .socket = &endpoint->socket,
        .registered = on_registered,
        .refused = on_refused,
        .lost = on_lost,
        .ctx = endpoint,
    };

    if (dra->options.flags & DAVIT_DRA_PUBLISH_ONLY)
        return;
    add_services(dra);
    options.n_versions = dra->n_versions;
    dv_lib_registry_open(&dra->registry, &dra->parts, &options);
    endpoint->services[endpoint->n_services++] =
        (struct dv_service){dv_lib_registry_methods, dv_lib_n_registry_methods, &dra->registry};
    open_endpoint(dra->service_endpoint.path.n > 0 ? &dra->service_endpoint : endpoint);
}

static bool open_cluster(struct davit_dra *dra, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str path = dv_str_from_c(dra->options.kubeconfig);
    struct dv_remote_options options = {.user_agent = dra->name};
    struct dv_kubeconfig config;

    if (dra->cluster)
        return true;
    if (path.n > 0 ? !dv_kubeconfig_load(path, DV_STR_NONE, scratch, &config, err)
                   : !dv_kubeconfig_in_cluster(dv_str_from_c(getenv("KUBERNETES_SERVICE_HOST")),
                                               dv_str_from_c(getenv("KUBERNETES_SERVICE_PORT")),
                                               DV_STR_NONE, scratch, &config, err))
        return dv_wrap(err, "the API server");
    dra->remote = dv_remote_open(dra->parts.loop, &config, &options, err);
    if (!dra->remote)
        return dv_wrap(err, "the API server");
    dra->cluster = dv_remote_cluster(dra->remote);
    return true;
}

static void open_publisher(struct davit_dra *dra)
{
    const struct davit_dra_owner *owner = dra->options.owner;
    struct dv_lib_publisher_options options = {
        .cluster = dra->cluster,
        .driver = dra->name,
        .node = dra->node,
        .only_pool = dv_str_from_c(dra->options.only_pool),
        .correct_ms = dra->options.correct_ms,
        .published = on_published,
        .dropped = on_dropped,
        .failed = on_not_published,
        .ctx = dra,
    };

    if (owner) {
        options.owner_api_version = dv_str_from_c(owner->api_version);
        options.owner_kind = dv_str_from_c(owner->kind);
        options.owner_name = dv_str_from_c(owner->name);
        options.owner_uid = dv_str_from_c(owner->uid);
    } else if (dra->node.n > 0) {
        options.owner_api_version = DV_STR("v1");
        options.owner_kind = DV_STR("Node");
        options.owner_name = dra->node;
        options.owner_uid = dv_str_from_c(dra->options.node_uid);
    }
    dv_lib_publisher_init(&dra->publisher, &dra->parts, &options);
}

static void free_dra(struct dv_lib_parts *parts)
{
    struct davit_dra *dra = DV_CONTAINER(parts, struct davit_dra, parts);
    struct davit_driver *driver = dra->driver;
    dv_closed_fn *closed = dra->closed;
    void *closed_ctx = dra->closed_ctx;

    dv_lib_health_fini(&dra->health);
    dv_lib_publisher_fini(&dra->publisher);
    dv_link_remove(&dra->link);
    dv_arena_free(dra->arena);
    free(dra);
    if (driver->is_embedded)
        free(driver);
    if (closed)
        closed(closed_ctx);
}

struct davit_dra *dv_lib_dra_open(struct davit_driver *driver,
                                  const struct davit_dra_options *options,
                                  struct dv_cluster *cluster, struct dv_err *err)
{
    struct davit_dra *dra = DV_ALLOC(struct davit_dra);
    dv_str lock_path;
    bool is_good;

    dra->driver = driver;
    dra->arena = dv_arena_new();
    dra->cluster = cluster;
    dra->service_endpoint.dra = dra->registry_endpoint.dra = dra;
    dv_list_push(&driver->dras, &dra->link);
    dv_lib_parts_init(&dra->parts, driver->loop, free_dra);
    dv_lib_rpcs_init(&dra->rpcs);
    is_good = dv_lib_dra_settle(dra, options, &lock_path, err) && open_cluster(dra, err);
    dv_lib_dra_jobs_init(&dra->jobs, dra, lock_path);
    dv_lib_health_init(&dra->health, driver->loop);
    open_publisher(dra);
    if (is_good) {
        open_sockets(dra);
        return dra;
    }
    davit_dra_close(dra);
    return NULL;
}

struct davit_dra *dv_lib_dra_embed(struct dv_loop *loop, const struct davit_dra_options *options,
                                   struct dv_cluster *cluster, struct dv_err *err)
{
    return dv_lib_dra_open(dv_lib_driver_embedded(loop), options, cluster, err);
}

struct davit_dra *davit_dra_open(struct davit_driver *driver,
                                 const struct davit_dra_options *options, struct davit_error *error)
{
    struct dv_err err;
    struct davit_dra *dra = dv_lib_dra_open(driver, options, NULL, &err);

    if (!dra)
        (void)dv_lib_fail(error, &err);
    return dra;
}

/* ---- closing ---- */

static void close_endpoint(struct dv_lib_dra_endpoint *endpoint)
{
    if (!endpoint->is_open)
        return;
    dv_lib_dir_close(&endpoint->dir);
    dv_lib_socket_close(&endpoint->socket);
}

void davit_dra_close(struct davit_dra *dra)
{
    if (!dra || dra->rpcs.is_closing)
        return;
    dv_lib_rpcs_close(&dra->rpcs, "the driver");
    dv_lib_dra_jobs_close(&dra->jobs);
    dv_lib_health_close(&dra->health);
    dv_lib_registry_close(&dra->registry);
    close_endpoint(&dra->registry_endpoint);
    close_endpoint(&dra->service_endpoint);
    dv_lib_publisher_close(&dra->publisher);
    if (dra->remote) {
        dv_lib_parts_add(&dra->parts);
        dv_remote_close(dra->remote, dv_lib_part_closed, &dra->parts);
    }
    dv_lib_part_closed(&dra->parts);
}

void dv_lib_dra_remove(struct davit_dra *dra, dv_closed_fn *closed, void *ctx)
{
    dra->closed = closed;
    dra->closed_ctx = ctx;
    davit_dra_close(dra);
}

/* ---- what is wanted, and what was done ---- */

bool davit_dra_set_health(struct davit_dra *dra, const struct davit_dra_device_health *devices,
                          size_t n_devices, struct davit_error *error)
{
    struct dv_err err;

    if (!(dra->options.flags & DAVIT_DRA_HEALTH))
        (void)dv_fail(&err, DV_FAILED_PRECONDITION, "health is not offered: DAVIT_DRA_HEALTH");
    else if (dv_lib_health_set(&dra->health, devices, n_devices, &err))
        return true;
    return dv_lib_fail(error, &err);
}

bool davit_dra_publish(struct davit_dra *dra, const struct davit_dra_pool *pools, size_t n_pools,
                       struct davit_error *error)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_lib_wanted *wanted = DV_NEW_ARRAY(scratch, struct dv_lib_wanted, n_pools);
    struct dv_err err;
    bool is_good = true;
    size_t n = 0;

    while (n < n_pools && is_good) {
        struct dv_arena *arena = dv_arena_new();

        wanted[n] = (struct dv_lib_wanted){arena, DV_NEW(arena, struct dv_lib_desired)};
        is_good =
            dv_lib_desired_make(&pools[n], dra->name, dra->node, arena, wanted[n].desired, &err);
        n++;
    }
    if (is_good && dv_lib_publisher_set(&dra->publisher, wanted, n, &err))
        return true;
    for (size_t i = 0; i < n && !is_good; i++)
        dv_arena_free(wanted[i].arena); /* else they were taken */
    return dv_lib_fail(error, &err);
}

struct davit_dra_counts davit_dra_count(const struct davit_dra *dra)
{
    return dra->publisher.counts;
}
