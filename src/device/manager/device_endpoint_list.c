/* device_endpoint_list.c - the list of a plugin's devices, which it sends whole whenever it
 * changes.
 *
 * A plugin can send lists faster than they can be read: then the newest counts, and reading takes
 * no more than its share of the loop (list_pace.h). Long ones are read on a worker (list_job.c),
 * unless they are the last one but for a few devices (list_same.c). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "device/manager/device_endpoint.h"
#include "device/manager/device_manager_state.h"
#include "device/state/list_pace.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"

/* Lists up to here, some thousand devices, are read on the loop, where they cost least: some
 * milliseconds at most. Longer ones are read on a worker. */
#define SHORT_LIST_BYTES (64u * 1024u)

static void on_list_timer(struct dv_timer *timer);
static void read_newest(struct dv_endpoint *endpoint);

static void tell_refused(const struct dv_endpoint *endpoint, const struct dv_err *err)
{
    dv_log(DV_LOG_ERROR, "device: list refused; the one before still counts",
           DV_F_STR("resource", endpoint->resource), DV_F_STR("socket", endpoint->socket),
           DV_F_ERR(err));
}

/* Tells the others that the plugin's list counts now. */
static void tell_list(struct dv_endpoint *endpoint, const struct dv_device_diff *diff)
{
    struct dv_device_manager *devices = endpoint->devices;

    if (diff->n_duplicates > 0)
        dv_log(DV_LOG_WARN, "device: plugin lists a device more than once; the last counts",
               DV_F_STR("resource", endpoint->resource), DV_F_STR("device", diff->duplicate),
               DV_F_U64("n", diff->n_duplicates));
    if (diff->n_pods > 0 && devices->options.pods_changed)
        devices->options.pods_changed(devices->options.ctx, diff->pods, diff->n_pods);
    dv_saver_later(&devices->saver);
    dv_device_manager_tell_changed(devices);
}

/* Notes how long reading the list took; a list that came meanwhile is read when its turn comes. */
static void end_reading(struct dv_endpoint *endpoint)
{
    struct dv_loop *loop = endpoint->devices->loop;
    uint64_t now_ns = dv_clock_now_ns(dv_loop_clock(loop));
    uint64_t at_ns;

    dv_list_pace_note(&endpoint->pace, now_ns, now_ns - endpoint->reading_ns);
    if (!endpoint->has_newest)
        return;
    if (dv_list_pace_may_read(&endpoint->pace, now_ns, &at_ns))
        read_newest(endpoint);
    else
        dv_timer_start(&endpoint->list_timer, loop, at_ns / DV_NS_PER_MS + 1, on_list_timer);
}

static void on_job(void *ctx, const struct dv_device_diff *diff, const struct dv_err *err)
{
    struct dv_endpoint *endpoint = ctx;
    struct dv_device_resource_info info;

    endpoint->job = NULL;
    if (err) {
        tell_refused(endpoint, err);
    } else if (diff) {
        /* cannot fail: the endpoint's resource is known */
        (void)dv_device_find(endpoint->devices->state, endpoint->resource, &info);
        dv_log(DV_LOG_INFO, "device: long list", DV_F_STR("resource", endpoint->resource),
               DV_F_U64("devices", info.n_devices), DV_F_U64("healthy", info.n_healthy));
        tell_list(endpoint, diff);
    }
    end_reading(endpoint); /* last: the next list would replace the state that the diff is about */
}

static void tell_read(struct dv_endpoint *endpoint, const struct dv_device_diff *diff)
{
    bool is_new = diff->n_changes > 0 || diff->is_back;

    dv_log(is_new ? DV_LOG_INFO : DV_LOG_DEBUG, "device: list",
           DV_F_STR("resource", endpoint->resource), DV_F_U64("changes", diff->n_changes));
    tell_list(endpoint, diff);
}

/* Reads the list on the loop, if that is quick: a short one, or one that is the last but for a few
 * devices. */
static bool read_here(struct dv_endpoint *endpoint, dv_str message)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_device_state *state = endpoint->devices->state;
    struct dv_device_diff diff;
    struct dv_err err;

    if (message.n > SHORT_LIST_BYTES) {
        if (!dv_device_apply_same(state, endpoint->resource, message, arena, &diff))
            return false;
        tell_read(endpoint, &diff);
    } else if (dv_device_apply_list(state, endpoint->resource, message, arena, &diff, &err)) {
        tell_read(endpoint, &diff);
    } else {
        tell_refused(endpoint, &err);
    }
    return true;
}

static void read_list(struct dv_endpoint *endpoint, dv_str message)
{
    endpoint->has_listed = true;
    endpoint->reading_ns = dv_clock_now_ns(dv_loop_clock(endpoint->devices->loop));
    if (read_here(endpoint, message))
        end_reading(endpoint);
    else
        endpoint->job =
            dv_list_job_start(endpoint->devices, endpoint->resource, message, on_job, endpoint);
}

static void read_newest(struct dv_endpoint *endpoint)
{
    struct dv_buf newest = endpoint->newest;

    dv_buf_init(&endpoint->newest, DV_DEVICE_LIST_BYTES_MAX);
    endpoint->has_newest = false;
    read_list(endpoint, dv_buf_str(&newest));
    dv_buf_fini(&newest);
}

static void on_list_timer(struct dv_timer *timer)
{
    read_newest(DV_CONTAINER(timer, struct dv_endpoint, list_timer));
}

/* A list is complete, so of those that come faster than they are read only the newest counts. One
 * that is being read is not given up for it: a plugin that never stops sending would never be
 * heard. */
static void on_list(struct dv_call *call, dv_str message)
{
    struct dv_endpoint *endpoint = DV_CONTAINER(call, struct dv_endpoint, list_call);
    struct dv_loop *loop = endpoint->devices->loop;
    uint64_t at_ns = 0;

    if (endpoint->state != DV_ENDPOINT_LISTING)
        return;
    if (!endpoint->job && !endpoint->has_newest &&
        dv_list_pace_may_read(&endpoint->pace, dv_clock_now_ns(dv_loop_clock(loop)), &at_ns)) {
        read_list(endpoint, message);
        return;
    }
    dv_buf_clear(&endpoint->newest);
    dv_buf_add(&endpoint->newest, message);
    if (!endpoint->job && !endpoint->has_newest)
        dv_timer_start(&endpoint->list_timer, loop, at_ns / DV_NS_PER_MS + 1, on_list_timer);
    endpoint->has_newest = true;
}

static void on_list_done(struct dv_call *call, const struct dv_err *err)
{
    struct dv_endpoint *endpoint = DV_CONTAINER(call, struct dv_endpoint, list_call);
    struct dv_err ended;

    if (!err) {
        (void)dv_fail(&ended, DV_UNAVAILABLE, "the plugin ended ListAndWatch");
        err = &ended;
    }
    dv_endpoint_finish(endpoint, err);
}

void dv_endpoint_watch_list(struct dv_endpoint *endpoint)
{
    endpoint->asked_ns = dv_loop_now_ns(endpoint->devices->loop);
    endpoint->list_call = (struct dv_call){
        .method = dv_endpoint_list_method(endpoint),
        .message = on_list,
        .done = on_list_done,
        .deadline_ms = DV_NO_DEADLINE,
        .is_stream = true,
    };
    dv_call_start(endpoint->channel, &endpoint->list_call, dv_h2_msg_new(0));
}

void dv_endpoint_stop_reading(struct dv_endpoint *endpoint)
{
    dv_timer_cancel(&endpoint->list_timer);
    if (endpoint->job)
        dv_list_job_forget(endpoint->job);
    endpoint->job = NULL;
}
