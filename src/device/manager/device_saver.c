/* device_saver.c - the state's changes as rows of the store. */
#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "device/manager/devices.h"
#include "store/store.h"
#include "store/store_saver.h"

static size_t take(void *ctx, struct dv_arena *arena, struct dv_store_change **changes)
{
    struct dv_devices *devices = ctx;
    const struct dv_device_write *writes;
    size_t n = dv_device_take_writes(devices->state, arena, &writes);

    *changes = DV_NEW_ARRAY(arena, struct dv_store_change, n);
    for (size_t i = 0; i < n; i++)
        (*changes)[i] = (struct dv_store_change){
            .kind = writes[i].value.n > 0 ? DV_STORE_PUT : DV_STORE_DELETE,
            .space = devices->options.space,
            .key = writes[i].key,
            .value = writes[i].value,
        };
    return n;
}

static void told(void *ctx, const struct dv_err *err, uint64_t retry_ms)
{
    (void)ctx;
    if (err)
        dv_log(DV_LOG_ERROR, "device: cannot save; trying again", DV_F_CODE(err), DV_F_ERR(err),
               DV_F_U64("retry_ms", retry_ms));
    else
        dv_log(DV_LOG_INFO, "device: the state is saved again");
}

static void rested(void *ctx)
{
    dv_devices_check_closed(ctx);
}

void dv_devices_init_saver(struct dv_devices *devices)
{
    struct dv_saver_options options = {
        .loop = devices->loop,
        .store = devices->options.store,
        .what = "devices",
        .take = take,
        .told = told,
        .rested = rested,
        .ctx = devices,
    };

    dv_saver_init(&devices->saver, &options);
}

void dv_devices_save_later(struct dv_devices *devices)
{
    dv_saver_later(&devices->saver);
}

void dv_devices_save(struct dv_devices *devices, struct dv_save *save)
{
    dv_saver_start(&devices->saver, save);
}

const struct dv_err *dv_devices_store_error(const struct dv_devices *devices)
{
    return dv_saver_error(&devices->saver);
}
