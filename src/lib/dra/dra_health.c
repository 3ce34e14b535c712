#include "lib/dra/dra_health.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "davit/dra.h"
#include "http2/http2.h"
#include "pb/pb.h"

/* How long a state lasts where an agent is told no time, and the largest message that it
 * receives. */
#define LASTS_S 30u
#define LIST_BYTES_MAX (4u << 20)
/* A state is told three times while it lasts, since one message may come late. */
#define TELLS_PER_LIFE 3u
#define PERIOD_MS_MIN 500u

static void on_changed(void *ctx)
{
    (void)ctx; /* the next turn of the timer sees who is there */
}

void dv_lib_health_init(struct dv_lib_health *health, struct dv_loop *loop)
{
    *health = (struct dv_lib_health){.loop = loop};
    dv_lib_streams_init(&health->streams, on_changed, health);
}

void dv_lib_health_lost(struct dv_lib_health *health, const struct dv_err *err)
{
    dv_lib_streams_end(&health->streams, err);
}

void dv_lib_health_close(struct dv_lib_health *health)
{
    struct dv_err err;

    (void)dv_fail(&err, DV_UNAVAILABLE, "the driver is closing");
    dv_lib_streams_end(&health->streams, &err);
    dv_timer_cancel(&health->timer);
}

void dv_lib_health_fini(struct dv_lib_health *health)
{
    dv_lib_streams_fini(&health->streams);
    dv_arena_free(health->arena);
}

static void encode(const struct davit_dra_device_health *device, uint64_t now_s, struct dv_buf *buf)
{
    size_t mark = dv_pb_begin(buf, 1);
    size_t id = dv_pb_begin(buf, 1);

    dv_pb_add_bytes(buf, 1, dv_str_from_c(device->pool));
    dv_pb_add_bytes(buf, 2, dv_str_from_c(device->device));
    dv_pb_end(buf, id);
    if (device->health != DAVIT_DRA_UNKNOWN)
        dv_pb_add_number(buf, 2, (uint64_t)device->health);
    dv_pb_add_number(buf, 3, now_s);
    if (device->lasts_s > 0)
        dv_pb_add_number(buf, 4, device->lasts_s);
    if (device->message && device->message[0] != '\0')
        dv_pb_add_bytes(buf, 5, dv_str_from_c(device->message));
    dv_pb_end(buf, mark);
}

static void on_timer(struct dv_timer *timer);

/* Tells all streams the state, and again after a while. */
static void tell(struct dv_lib_health *health)
{
    uint64_t now_s = dv_clock_wall_ns(dv_loop_clock(health->loop)) / 1000000000u;
    struct dv_h2_msg *list;
    struct dv_buf buf;

    dv_buf_init(&buf, LIST_BYTES_MAX);
    for (size_t i = 0; i < health->n_devices; i++)
        encode(&health->devices[i], now_s, &buf);
    list = dv_h2_msg_copy(dv_buf_str(&buf));
    dv_buf_fini(&buf);
    dv_lib_streams_push(&health->streams, list);
    dv_h2_msg_unref(list);
    dv_timer_start(&health->timer, health->loop, dv_loop_now_ms(health->loop) + health->period_ms,
                   on_timer);
}

static void on_timer(struct dv_timer *timer)
{
    tell(DV_CONTAINER(timer, struct dv_lib_health, timer));
}

void dv_lib_health_watch(struct dv_lib_health *health, struct dv_server_call *call)
{
    if (health->arena)
        tell(health); /* so that what it gets is not old */
    dv_lib_streams_add(&health->streams, call);
}

static bool check(const struct davit_dra_device_health *device, struct dv_err *err)
{
    dv_str pool = dv_str_from_c(device->pool);
    dv_str name = dv_str_from_c(device->device);

    if (pool.n == 0 || name.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "health of a device without a name or pool");
    if (!dv_str_is_utf8(pool) || !dv_str_is_utf8(name) ||
        !dv_str_is_utf8(dv_str_from_c(device->message)))
        return dv_fail(err, DV_INVALID_ARGUMENT, "health of a device: text is not UTF-8");
    if ((unsigned)device->health > DAVIT_DRA_UNHEALTHY)
        return dv_fail(err, DV_INVALID_ARGUMENT, "health of device %s: there is no state %d",
                       device->device, (int)device->health);
    return true;
}

static bool is_too_long(const struct davit_dra_device_health *devices, size_t n)
{
    struct dv_buf buf;
    bool is_over;

    dv_buf_init(&buf, LIST_BYTES_MAX);
    for (size_t i = 0; i < n; i++)
        encode(&devices[i], UINT64_MAX, &buf);
    is_over = buf.is_over;
    dv_buf_fini(&buf);
    return is_over;
}

bool dv_lib_health_set(struct dv_lib_health *health, const struct davit_dra_device_health *devices,
                       size_t n, struct dv_err *err)
{
    uint64_t lasts_s = LASTS_S;
    struct dv_arena *arena;

    for (size_t i = 0; i < n; i++)
        if (!check(&devices[i], err))
            return false;
    if (is_too_long(devices, n))
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "health of %zu devices: more than %u bytes", n,
                       LIST_BYTES_MAX);
    arena = dv_arena_new();
    health->devices = DV_NEW_ARRAY(arena, struct davit_dra_device_health, n);
    health->n_devices = n;
    for (size_t i = 0; i < n; i++) {
        struct davit_dra_device_health *to = &health->devices[i];

        *to = devices[i];
        to->pool = dv_str_to_c(dv_str_from_c(devices[i].pool), arena);
        to->device = dv_str_to_c(dv_str_from_c(devices[i].device), arena);
        to->message = dv_str_to_c(dv_str_from_c(devices[i].message), arena);
        if (to->lasts_s > 0)
            lasts_s = dv_u64_min(lasts_s, to->lasts_s);
    }
    dv_arena_free(health->arena);
    health->arena = arena;
    health->period_ms = dv_u64_max(lasts_s * 1000 / TELLS_PER_LIFE, PERIOD_MS_MIN);
    tell(health);
    return true;
}
