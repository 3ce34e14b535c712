/* device_manager.c - opens and closes the manager of device plugins, and ties its parts
 * together: plugins that register, calls to them, the saver, and what others are told when
 * something changes. */
#include "device/device_manager.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "device/device.h"
#include "device/manager/device_manager_state.h"
#include "grpc/grpc.h"
#include "store/store.h"

#define PLUGIN_DIR "device-plugins"
#define PLUGIN_DIR_MODE 0750
/* Calls of Register that wait for their plugin get no time at the end. */
#define CLOSE_GRACE_MS 0u

static void on_changed(struct dv_task *task)
{
    struct dv_device_manager *devices = DV_CONTAINER(task, struct dv_device_manager, changed_task);

    devices->options.changed(devices->options.ctx);
}

void dv_device_manager_tell_changed(struct dv_device_manager *devices)
{
    if (devices->options.changed && !devices->is_closing)
        dv_task_post(&devices->changed_task, devices->loop, on_changed);
}

struct dv_device_state *dv_device_manager_state(struct dv_device_manager *devices)
{
    return devices->state;
}

/* ---- the end ---- */

static void free_devices(struct dv_device_manager *devices)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    while ((entry = dv_map_next(&devices->counts, &at)) != NULL)
        free(entry->value);
    dv_map_fini(&devices->counts);
    dv_device_manager_forget_removed(devices);
    dv_saver_fini(&devices->saver);
    dv_device_state_free(devices->state);
    dv_close_fd(&devices->dir_lock);
    free(devices);
}

static void on_close_task(struct dv_task *task)
{
    struct dv_device_manager *devices = DV_CONTAINER(task, struct dv_device_manager, close_task);
    dv_closed_fn *closed = devices->closed;
    void *ctx = devices->closed_ctx;

    if (devices->is_serving || !dv_list_is_empty(&devices->endpoints) ||
        !dv_list_is_empty(&devices->runs) || devices->n_list_jobs > 0 ||
        !dv_saver_is_idle(&devices->saver))
        return;
    free_devices(devices);
    if (closed)
        closed(ctx);
}

void dv_device_manager_check_closed(struct dv_device_manager *devices)
{
    if (devices->is_closing)
        dv_task_post(&devices->close_task, devices->loop, on_close_task);
}

static void on_server_closed(void *ctx)
{
    struct dv_device_manager *devices = ctx;

    devices->is_serving = false;
    dv_device_manager_check_closed(devices);
}

/* `next` is read before the call, which may take the element out of the list. */
static void stop_endpoints(struct dv_device_manager *devices)
{
    struct dv_link *link = devices->endpoints.head.next;

    while (link != &devices->endpoints.head) {
        struct dv_link *next = link->next;

        dv_endpoint_stop_link(link, "davitd is stopping");
        link = next;
    }
}

void dv_device_manager_close(struct dv_device_manager *devices, dv_closed_fn *closed, void *ctx)
{
    struct dv_link *link;

    assert(!devices->is_closing);
    devices->is_closing = true;
    devices->saver.is_closing = true;
    devices->closed = closed;
    devices->closed_ctx = ctx;
    dv_task_cancel(&devices->changed_task);
    dv_timer_cancel(&devices->grace_timer);
    DV_LIST_EACH (&devices->runs, link) {
        dv_device_manager_cancel(DV_CONTAINER(link, struct dv_device_run, priv.link));
    }
    stop_endpoints(devices);
    dv_server_close(devices->server, CLOSE_GRACE_MS, on_server_closed, devices);
    dv_saver_later(&devices->saver); /* writes changes that no run waited for */
    dv_device_manager_check_closed(devices);
}

/* ---- saving ---- */

static size_t take_changes(void *ctx, struct dv_arena *arena, const struct dv_row_change **changes)
{
    return dv_device_take_changes(((struct dv_device_manager *)ctx)->state, arena, changes);
}

static void on_rested(void *ctx)
{
    dv_device_manager_check_closed(ctx);
}

static void init_saver(struct dv_device_manager *devices)
{
    struct dv_saver_options options = {
        .loop = devices->loop,
        .store = devices->options.store,
        .table = devices->options.table,
        .what = "devices",
        .take = take_changes,
        .rested = on_rested,
        .ctx = devices,
    };

    dv_saver_init(&devices->saver, &options);
}

void dv_device_manager_save(struct dv_device_manager *devices, struct dv_save *save)
{
    dv_saver_start(&devices->saver, save);
}

const struct dv_err *dv_device_manager_store_error(const struct dv_device_manager *devices)
{
    return dv_saver_error(&devices->saver);
}

/* ---- the beginning ---- */

static bool load_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    struct dv_device_manager *devices = ctx;

    return dv_device_load(devices->state, row->key, row->value, dv_loop_now_ns(devices->loop), err);
}

static bool make_dir(const char *dir, struct dv_err *err)
{
    if (mkdir(dir, PLUGIN_DIR_MODE) < 0 && errno != EEXIST)
        return dv_fail_errno(err, errno, "make %s", dir);
    return true;
}

static struct dv_device_manager *new_devices(struct dv_loop *loop,
                                             const struct dv_device_manager_options *options)
{
    struct dv_device_opts opts = {.is_strict = options->is_strict};
    dv_str dir = options->kubelet_dir;
    size_t n_text = dir.n * 2 + sizeof("/" PLUGIN_DIR);
    struct dv_device_manager *devices = dv_alloc(sizeof(*devices) + n_text);

    memcpy(devices->text, dir.p, dir.n);
    memcpy(devices->text + dir.n, dir.p, dir.n);
    memcpy(devices->text + dir.n * 2, "/" PLUGIN_DIR, sizeof("/" PLUGIN_DIR));
    devices->loop = loop;
    devices->dir_lock = -1;
    devices->options = *options;
    devices->options.kubelet_dir = (dv_str){devices->text, dir.n};
    devices->plugin_dir = dv_str_from_c(devices->text + dir.n);
    devices->state = dv_device_state_new(&opts);
    dv_list_init(&devices->endpoints);
    dv_list_init(&devices->runs);
    dv_map_init(&devices->counts);
    dv_map_init(&devices->removed);
    init_saver(devices);
    return devices;
}

struct dv_device_manager *dv_device_manager_open(struct dv_loop *loop,
                                                 const struct dv_device_manager_options *options,
                                                 struct dv_err *err)
{
    struct dv_device_manager *devices = new_devices(loop, options);
    const char *dir = devices->plugin_dir.p; /* ends with a NUL: see new_devices */

    /* Listening comes last: a plugin that sees kubelet.sock makes its own socket at once, and the
     * cleaning must not take that for a stale one. */
    if (make_dir(dir, err) &&
        dv_store_load(options->store, options->table, load_row, devices, err) &&
        dv_device_manager_clean(devices, err) && dv_device_manager_serve(devices, err)) {
        dv_device_manager_watch_grace(devices); /* of all that was loaded */
        return devices;
    }
    free_devices(devices);
    return NULL;
}
