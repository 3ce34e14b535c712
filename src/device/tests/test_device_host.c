#include "device/tests/test_device_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "device/manager/device_manager_state.h"
#include "device/state/device_state.h"
#include "loop/loop.h"
#include "store/store.h"
#include "store/store_saver.h"
#include "support/dvtest.h"

static const char *const tables[] = {"devices"};
static const struct dv_store_schema schema = {.tables = tables, .n_tables = 1};

/* ---- life ---- */

static void on_changed(void *ctx)
{
    ((struct host *)ctx)->n_changed++;
}

static void on_pods_changed(void *ctx, const dv_str *pod_uids, size_t n_pod_uids)
{
    struct host *host = ctx;

    for (size_t i = 0; i < n_pod_uids; i++) {
        dv_buf_add(&host->told, pod_uids[i]);
        dv_buf_add_char(&host->told, ' ');
    }
    dv_buf_add_c(&host->told, "| ");
}

static void open_devices(struct host *host)
{
    const struct dv_device_manager_options options = {
        .kubelet_dir = dv_str_from_c(host->rig.dir),
        .store = host->store,
        .changed = on_changed,
        .pods_changed = on_pods_changed,
        .ctx = host,
    };
    struct dv_err err;

    host->devices = dv_device_manager_open(host->rig.loop, &options, &err);
    assert_ok(host->devices, &err);
    dv_device_set_sources_ready(dv_device_manager_state(host->devices), true);
}

void host_open(struct host *host)
{
    host->faults = (struct test_store_faults){0};
    host->store = test_store_open(host->rig.loop, &schema, &host->faults);
    open_devices(host);
}

void host_reopen_on_disk(struct host *host)
{
    char path[96];

    host_close(host);
    (void)snprintf(path, sizeof(path), "%s/state.db", host->rig.dir);
    host->store = test_store_open_at(host->rig.loop, path, &schema, &host->faults);
    open_devices(host);
}

static void close_devices(struct host *host)
{
    int n_closed = host->rig.n_closed;

    dv_device_manager_close(host->devices, rig_on_closed, &host->rig);
    host->devices = NULL;
    assert_int_equal(host->rig.n_closed, n_closed); /* never before close has returned */
    rig_wait_count(&host->rig, &host->rig.n_closed, n_closed + 1);
}

static void close_store(struct host *host)
{
    int n_closed = host->rig.n_closed;

    dv_store_close(host->store, rig_on_closed, &host->rig);
    host->store = NULL;
    rig_wait_count(&host->rig, &host->rig.n_closed, n_closed + 1);
}

void host_close(struct host *host)
{
    close_devices(host);
    close_store(host);
}

int host_start(void **state)
{
    struct host *host = DV_ALLOC(struct host);

    rig_init(&host->rig, "device");
    dv_buf_init(&host->told, 1u << 20);
    (void)snprintf(host->plugins, sizeof(host->plugins), "%s/device-plugins", host->rig.dir);
    host_open(host);
    *state = host;
    return 0;
}

int host_end(void **state)
{
    struct host *host = *state;

    if (host->devices)
        host_close(host);
    dv_buf_fini(&host->told);
    rig_fini(&host->rig);
    free(host);
    return 0;
}

/* ---- plugins ---- */

const char *host_capacity(struct host *host)
{
    struct dv_device_capacities capacities;
    struct dv_device_resource_info info;

    dv_device_manager_capacity(host->devices, host->rig.arena, &capacities);
    if (capacities.n_removed > 0)
        return "removed";
    if (capacities.n == 0)
        return "-";
    assert_true(dv_device_find(dv_device_manager_state(host->devices), DV_STR(GPU), &info));
    return dv_str_to_c(dv_str_printf(host->rig.arena, "%zu/%zu%s", capacities.v[0].capacity,
                                     capacities.v[0].allocatable, info.n_plugins == 0 ? "!" : ""),
                       host->rig.arena);
}

struct wait {
    struct host *host;
    const char *text;
};

static bool has_capacity(void *ctx)
{
    const struct wait *wait = ctx;

    return strcmp(host_capacity(wait->host), wait->text) == 0;
}

void host_wait_capacity(struct host *host, const char *capacity)
{
    rig_wait(&host->rig, has_capacity, &(struct wait){.host = host, .text = capacity});
}

static bool is_serving(void *ctx)
{
    const struct wait *wait = ctx;
    struct dv_device_resource_info info;

    return dv_device_find(dv_device_manager_state(wait->host->devices), DV_STR(GPU), &info) &&
           info.plugin == DV_DEVICE_SERVING &&
           dv_str_ends_with(info.socket, dv_str_from_c(wait->text));
}

void host_add(struct host *host, struct device_plugin *plugin, const char *name,
              const char *devices)
{
    int n = plugin->n_registered;

    device_plugin_start(plugin, host->rig.loop, host->plugins, name, GPU, devices);
    device_plugin_register(plugin, host->plugins);
    rig_wait_count(&host->rig, &plugin->n_registered, n + 1);
    assert_int_equal(plugin->err.code, DV_OK);
    rig_wait(&host->rig, is_serving, &(struct wait){.host = host, .text = name});
}

static bool is_missed(void *ctx)
{
    struct dv_device_resource_info info;

    return !dv_device_find(dv_device_manager_state(((struct host *)ctx)->devices), DV_STR(GPU),
                           &info) ||
           info.n_plugins == 0;
}

void host_kill(struct host *host, struct device_plugin *plugin)
{
    device_plugin_kill(plugin);
    rig_wait(&host->rig, is_missed, host);
}

/* ---- pods ---- */

struct pending {
    struct dv_device_run run;
    struct dv_save save;
    struct dv_err err;
    int n_done;
};

static void note_end(struct pending *pending, const struct dv_err *err)
{
    pending->n_done++;
    if (err)
        pending->err = *err;
}

static void on_run(struct dv_device_run *run, const struct dv_err *err)
{
    note_end(DV_CONTAINER(run, struct pending, run), err);
}

static void on_saved(struct dv_save *save, const struct dv_err *err)
{
    note_end(DV_CONTAINER(save, struct pending, save), err);
}

static enum dv_code run(struct host *host, const char *pod, int64_t amount,
                        void (*start)(struct dv_device_manager *devices, struct dv_device_run *run,
                                      const struct dv_device_request *request),
                        struct dv_err *err)
{
    const struct dv_device_limit limit = {.resource = DV_STR(GPU), .amount = amount};
    const struct dv_device_request request = {
        .pod_uid = dv_str_from_c(pod),
        .container = DV_STR("c"),
        .kind = DV_DEVICE_REGULAR,
        .limits = &limit,
        .n_limits = 1,
    };
    struct pending pending = {.run = {.done = on_run}};

    dv_device_activate_pod(dv_device_manager_state(host->devices), request.pod_uid);
    start(host->devices, &pending.run, &request);
    rig_wait_count(&host->rig, &pending.n_done, 1);
    *err = pending.err;
    return pending.err.code;
}

enum dv_code host_allocate(struct host *host, const char *pod, int64_t amount, struct dv_err *err)
{
    return run(host, pod, amount, dv_device_manager_allocate, err);
}

enum dv_code host_start_container(struct host *host, const char *pod, int64_t amount,
                                  struct dv_err *err)
{
    return run(host, pod, amount, dv_device_manager_start_container, err);
}

enum dv_code host_release(struct host *host, const char *pod, struct dv_err *err)
{
    struct pending pending = {.save = {.done = on_saved}};

    dv_device_deactivate_pod(dv_device_manager_state(host->devices), dv_str_from_c(pod));
    (void)dv_device_collect(dv_device_manager_state(host->devices));
    dv_device_manager_save(host->devices, &pending.save);
    rig_wait_count(&host->rig, &pending.n_done, 1);
    *err = pending.err;
    return pending.err.code;
}

static const char *held_in(const struct dv_device_state *state, dv_str pod, struct dv_arena *arena)
{
    const struct dv_device_record *records;
    size_t n = dv_device_records_of_pod(state, pod, arena, &records);
    dv_str text = DV_STR("");

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < records[i].n_placed; k++)
            for (size_t m = 0; m < records[i].placed[k].n_ids; m++)
                text = dv_str_printf(arena, "%.*s%s%.*s", DV_FMT(text), text.n > 0 ? " " : "",
                                     DV_FMT(records[i].placed[k].ids[m]));
    return dv_str_to_c(text, arena);
}

const char *host_held(struct host *host, const char *pod)
{
    return held_in(dv_device_manager_state(host->devices), dv_str_from_c(pod), host->rig.arena);
}

/* ---- what is in the store ---- */

static bool is_saved(void *ctx)
{
    const struct host *host = ctx;
    const struct dv_saver *saver = &host->devices->saver;

    return dv_saver_is_idle(saver) && !dv_link_is_in(&saver->task.link) &&
           !dv_timer_is_set(&saver->retry_timer) && saver->n_changes == 0;
}

static struct dv_device_state *load_all(struct host *host)
{
    struct dv_device_state *state = dv_device_state_new(NULL);
    struct dv_store_row *rows;
    size_t n_rows;
    struct dv_err err;

    test_store_wait(host->store);
    n_rows = test_store_rows(host->store, 0, host->rig.arena, &rows);
    for (size_t i = 0; i < n_rows; i++)
        assert_ok(dv_device_load(state, rows[i].key, rows[i].value, 1, &err), &err);
    return state;
}

/* That all of one is in the other. */
static void check_part(const struct dv_device_state *part, const struct dv_device_state *whole,
                       struct dv_arena *arena)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&part->pods, &at)) != NULL;)
        assert_string_equal(held_in(whole, entry->key, arena), held_in(part, entry->key, arena));
    for (size_t at = 0; (entry = dv_map_next(&part->resources, &at)) != NULL;) {
        const struct dv_device_resource *resource = dv_device_resource_find(whole, entry->key);

        assert_int_equal(resource && resource->has_healthy,
                         ((const struct dv_device_resource *)entry->value)->has_healthy);
    }
}

void host_wait_saved(struct host *host)
{
    struct dv_device_state *stored;

    rig_wait(&host->rig, is_saved, host);
    assert_null(dv_device_manager_store_error(host->devices));
    stored = load_all(host);
    check_part(stored, dv_device_manager_state(host->devices), host->rig.arena);
    check_part(dv_device_manager_state(host->devices), stored, host->rig.arena);
    dv_device_state_free(stored);
}
