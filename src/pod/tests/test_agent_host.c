#include "pod/tests/test_agent_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "cdidir/cdidir.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "cluster/embedded.h"
#include "cluster/recorder.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "pod/runner.h"
#include "store/store.h"
#include "support/api.h"
#include "support/cri_runtime.h"
#include "support/dvtest.h"
#include "support/lines.h"
#include "support/scratch.h"
#include "topology/topology.h"

/* Real time: only a broken test waits so long. */
#define PATIENCE_MS 20000u

/* ---- the parts ---- */

static void on_devices_changed(void *ctx)
{
    struct world *world = ctx;

    if (world->pods)
        dv_pods_look_again(world->pods);
    if (world->agent)
        dv_agent_devices_changed(world->agent);
}

static void on_health_changed(void *ctx, const dv_str *pod_uids, size_t n_pod_uids)
{
    struct world *world = ctx;

    if (world->agent)
        dv_agent_health_changed(world->agent, pod_uids, n_pod_uids);
}

static void on_claims_changed(void *ctx)
{
    struct world *world = ctx;

    if (world->agent)
        dv_agent_claims_changed(world->agent);
}

static void on_pods_changed(void *ctx, const dv_str *uids, size_t n_uids)
{
    struct world *world = ctx;

    if (world->agent)
        dv_agent_pods_changed(world->agent, uids, n_uids);
}

static bool is_wanted(void *ctx, dv_str pod_uid)
{
    struct world *world = ctx;
    struct dv_pod_ref ref = {.uid = pod_uid};
    struct dv_pod_view view;

    return !world->pods || dv_pods_find(world->pods, &ref, &view) ||
           (world->agent && dv_agent_wants(world->agent, pod_uid));
}

static bool is_admitted(void *ctx, dv_str pod_uid)
{
    struct world *world = ctx;
    struct dv_pod_ref ref = {.uid = pod_uid};
    struct dv_pod_view view;

    return world->pods && dv_pods_find(world->pods, &ref, &view) && view.was_admitted;
}

static void on_closed(void *ctx)
{
    ((struct world *)ctx)->n_closed++;
}

static void run_until(struct world *world, bool (*is_met)(void *ctx), void *ctx)
{
    size_t n = world->log.n > 1500 ? 1500 : world->log.n;

    if (!dv_loop_run_until(world->loop, is_met, ctx, PATIENCE_MS))
        fail_msg("waited in vain; log: ...%s", dv_buf_c(&world->log) + world->log.n - n);
}

static bool is_one_closed(void *ctx)
{
    return ((const struct world *)ctx)->n_closed > 0;
}

static void wait_closed(struct world *world)
{
    run_until(world, is_one_closed, world);
    world->n_closed = 0;
}

static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    fail_msg("%s", set_aside);
}

static struct dv_store *open_store(struct world *world, const char *file)
{
    const struct dv_store_options options = {.schema = &dv_node_schema, .damaged = on_damaged};
    char path[96];
    struct dv_store *store;
    struct dv_err err;

    (void)snprintf(path, sizeof(path), "%s/%s", world->dir, file);
    store = dv_store_open(world->loop, dv_str_from_c(path), &options, &err);
    assert_ok(store, &err);
    return store;
}

static void open_api(struct world *world)
{
    const struct dv_embedded_options options = {.table_objects = DV_TABLE_OBJECTS,
                                                .table_meta = DV_TABLE_META};

    world->api_store = open_store(world, "api.db");
    world->api = api_open_embedded(world->loop, world->api_store, &options);
    world->shaky.inner = dv_embedded_cluster(world->api);
}

static void open_claims(struct world *world)
{
    const struct dv_claim_manager_options options = {
        .store = world->store,
        .table = DV_TABLE_CLAIMS,
        .node_name = DV_STR(NODE),
        .boot_id = dv_str_from_c(world->boot_id),
        .is_wanted = is_wanted,
        .is_admitted = is_admitted,
        .changed = on_claims_changed,
        .pods_changed = on_health_changed,
        .ctx = world,
    };
    struct dv_err err;

    world->claims = dv_claim_manager_open(world->loop, &options, &err);
    assert_ok(world->claims, &err);
}

static void open_pods(struct world *world)
{
    const struct dv_pods_options options = {
        .devices = world->devices,
        .claims = world->claims,
        .store = world->store,
        .topology = &world->topology,
        .machine = &world->machine,
        .cdi = world->cdi,
        .ledger = world->ledger,
        .node_name = DV_STR(NODE),
        .wait_ms = DV_POD_WAIT_MS,
        .is_strict = world->is_strict,
        .changed = on_pods_changed,
        .ctx = world,
    };
    struct dv_err err;

    world->pods = dv_pods_open(world->loop, &options, &err);
    assert_ok(world->pods, &err);
}

static void open_runner(struct world *world)
{
    const struct dv_runner_options options = {
        .cluster = &world->shaky.cluster,
        .pods = world->pods,
        .devices = world->devices,
        .claims = world->claims,
        .recorder = world->recorder,
        .cdi = world->cdi,
        .cri = dv_str_from_c(text(world, "unix://%s", world->runtime->path)),
        .node_name = DV_STR(NODE),
        .root_dir = dv_str_from_c(world->dir),
        .log_dir = dv_str_from_c(text(world, "%s/logs", world->dir)),
        .images = world->images,
        .n_cpus = 2,
        .memory_bytes = 1u << 30,
    };
    struct dv_err err;

    world->runner = dv_runner_open(world->loop, &options, &err);
    assert_ok(world->runner, &err);
}

static void open_agent(struct world *world)
{
    const struct dv_agent_options options = {
        .cluster = &world->shaky.cluster,
        .pods = world->pods,
        .devices = world->devices,
        .claims = world->claims,
        .recorder = world->recorder,
        .runner = world->runner,
        .node_name = DV_STR(NODE),
        .version = DV_STR("davit/1"),
        .machine = {.n_cpus = 2, .memory_bytes = 1u << 30, .architecture = DV_STR("amd64")},
        .renews_lease = true,
        .watches_claims = true,
        .is_strict = world->is_strict,
    };
    struct dv_err err;

    world->agent = dv_agent_open(world->loop, &options, &err);
    assert_ok(world->agent, &err);
}

static bool has_peers(void *ctx)
{
    const struct world *world = ctx;
    struct dv_device_resource_info info;

    return dv_device_find(dv_device_manager_state(world->devices), DV_STR(GPU), &info) &&
           info.n_healthy == 4 &&
           (world->has_no_driver ||
            dv_dra_is_usable(dv_claim_manager_drivers(world->claims), DV_STR(DRIVER)));
}

void world_open_node(struct world *world)
{
    const dv_str specs = dv_str_from_c(world->specs);
    struct dv_device_manager_options devices = {
        .kubelet_dir = dv_str_from_c(world->dir),
        .table = DV_TABLE_DEVICES,
        .changed = on_devices_changed,
        .pods_changed = on_health_changed,
        .ctx = world,
    };
    struct dv_err err;

    world->store = open_store(world, "node.db");
    devices.store = world->store;
    world->devices = dv_device_manager_open(world->loop, &devices, &err);
    assert_ok(world->devices, &err);
    open_claims(world);
    world->cdi = dv_cdi_dirs_open(world->loop, &specs, 1, &(struct dv_cdi_dirs_options){0}, &err);
    assert_ok(world->cdi, &err);
    open_pods(world);
    world->recorder = dv_recorder_open(&world->shaky.cluster, DV_STR("davit-node"), DV_STR(NODE));
    dv_claim_manager_connect(world->claims, &world->shaky.cluster);
    assert_ok(dv_pods_connect(world->pods, &world->shaky.cluster, &err), &err);
    if (world->runtime)
        open_runner(world);
    if (!world->has_no_agent)
        open_agent(world);
    dv_claim_manager_set_ready(world->claims);
    device_plugin_start(&world->plugin, world->loop, world->plugins, "a.sock", GPU,
                        world->device_ids);
    device_plugin_register(&world->plugin, world->plugins);
    if (!world->has_no_driver) {
        dra_driver_start(&world->driver, world->loop, world->dir, DRIVER);
        dra_driver_register(&world->driver, world->claims);
    }
    run_until(world, has_peers, world);
}

#define CLOSE(part, function)                                                                      \
    do {                                                                                           \
        void *closing = world->part;                                                               \
        world->part = NULL;                                                                        \
        if (closing) {                                                                             \
            function(closing, on_closed, world);                                                   \
            wait_closed(world);                                                                    \
        }                                                                                          \
    } while (0)

void world_close_node(struct world *world)
{
    CLOSE(agent, dv_agent_close);
    CLOSE(runner, dv_runner_close);
    CLOSE(pods, dv_pods_close);
    CLOSE(cdi, dv_cdi_dirs_close);
    CLOSE(claims, dv_claim_manager_close);
    CLOSE(devices, dv_device_manager_close);
    CLOSE(recorder, dv_recorder_close);
    CLOSE(store, dv_store_close);
    device_plugin_kill(&world->plugin);
    dra_driver_kill(&world->driver);
}

void world_open(struct world *world)
{
    open_api(world);
    world_open_node(world);
}

void world_close(struct world *world)
{
    if (world->devices)
        world_close_node(world);
    CLOSE(api, dv_embedded_close);
    CLOSE(api_store, dv_store_close);
}

void world_renew(struct world *world)
{
    static const char *const files[] = {"api.db",  "api.db-wal",  "api.db-shm",  "api.db.mark",
                                        "node.db", "node.db-wal", "node.db-shm", "node.db.mark"};

    world->shaky.is_down = false;
    world_close(world);
    dra_driver_fini(&world->driver);
    for (size_t i = 0; i < DV_COUNT(files); i++)
        (void)unlink(text(world, "%s/%s", world->dir, files[i])); /* not all are there */
    world->shaky.n_until_failure = world->fails_at;
    world_open(world);
}

static void write_spec(struct world *world)
{
    struct dv_err err;

    assert_int_equal(mkdir(world->specs, 0700), 0);
    assert_ok(dv_file_replace(dv_str_from_c(text(world, "%s/dra.json", world->specs)),
                              DV_STR("{\"cdiVersion\":\"0.6.0\",\"kind\":\"dra.example.com/dev\","
                                     "\"devices\":[{\"name\":\"d0\",\"containerEdits\":{\"env\":["
                                     "\"D=0\"]}}]}"),
                              0600, &err),
              &err);
}

static struct world *make_world(bool has_runtime)
{
    struct world *world = DV_ALLOC(struct world);
    struct dv_err err;

    world->arena = dv_arena_new();
    dv_buf_init(&world->log, 64u << 20);
    lines_keep(&world->log, DV_LOG_INFO);
    dv_clock_virtual_init(&world->clock);
    world->loop = dv_loop_new(&world->clock.clock, &err);
    assert_ok(world->loop, &err);
    assert_ok(dv_topology_machine_parse(DV_STR("0"), world->arena, &world->machine, &err), &err);
    assert_ok(dv_topology_config_parse(DV_STR("none"), DV_STR("container"), NULL, 0,
                                       &world->machine, &world->topology, &err),
              &err);
    scratch_make("agent", world->dir, sizeof(world->dir));
    (void)snprintf(world->plugins, sizeof(world->plugins), "%s/device-plugins", world->dir);
    (void)snprintf(world->specs, sizeof(world->specs), "%s/cdi", world->dir);
    write_spec(world);
    world->shaky.cluster = (struct dv_cluster){.engine = &shaky_engine, .loop = world->loop};
    dv_list_init(&world->shaky.failing);
    world->boot_id = "boot-1";
    world->device_ids = "g0 g1 g2 g3";
    world->driver.cdi_id = SPEC;
    if (has_runtime) {
        world->runtime = DV_ALLOC(struct cri_runtime);
        cri_runtime_init(world->runtime, world->loop, world->dir);
        world->runtime->images[1] = "busybox:latest";
        cri_runtime_start(world->runtime);
    }
    world_open(world);
    return world;
}

int world_start(void **state)
{
    *state = make_world(false);
    return 0;
}

int world_start_with_runtime(void **state)
{
    *state = make_world(true);
    return 0;
}

static void end_runtime(struct world *world)
{
    if (!world->runtime)
        return;
    cri_runtime_stop(world->runtime);
    turn(world, 20); /* what it has closed is gone then */
    cri_runtime_fini(world->runtime);
    free(world->runtime);
}

int world_end(void **state)
{
    struct world *world = *state;

    world_close(world);
    end_runtime(world);
    dra_driver_fini(&world->driver);
    dv_loop_free(world->loop);
    lines_end(&world->log);
    dv_arena_free(world->arena);
    scratch_remove(world->dir);
    free(world);
    return 0;
}

/* ---- time ---- */

struct settling {
    struct api_quiet quiet; /* of the API; the node has a store of its own */
    struct world *world;
};

static bool is_settled(void *ctx)
{
    struct settling *settling = ctx;
    struct dv_store_stats stats = {0};

    if (settling->world->store)
        dv_store_get_stats(settling->world->store, &stats);
    return api_is_quiet(&settling->quiet, stats.n_queued == 0);
}

void settle(struct world *world)
{
    struct settling settling = {
        .quiet = {.store = world->api_store, .embedded = world->api},
        .world = world,
    };

    api_wait_awake(world->loop, is_settled, &settling);
}

static bool is_counted_down(void *ctx)
{
    return --*(int *)ctx <= 0;
}

void turn(struct world *world, int n)
{
    if (n > 0)
        api_wait_awake(world->loop, is_counted_down, &n);
}

void pass(struct world *world, uint64_t ms)
{
    for (uint64_t step; ms > 0; ms -= step) {
        step = ms < 100 ? ms : 100;
        dv_clock_virtual_advance_ms(&world->clock, step);
        settle(world);
    }
}
