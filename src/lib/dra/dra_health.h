/* dra_health.h - the health of a DRA driver's devices, told to all who watch: at every change, and
 * again before what was told is too old. */
#ifndef DV_LIB_DRA_HEALTH_H
#define DV_LIB_DRA_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "lib/common/streams.h"
#include "loop/loop.h"

struct davit_dra_device_health;
struct dv_arena;
struct dv_err;
struct dv_server_call;

struct dv_lib_health {
    struct dv_loop *loop;
    struct dv_lib_streams streams;
    struct dv_arena *arena; /* of the devices; NULL: none were set yet, who watches waits */
    struct davit_dra_device_health *devices;
    size_t n_devices;
    struct dv_timer timer;
    uint64_t period_ms;
};

void dv_lib_health_init(struct dv_lib_health *health, struct dv_loop *loop);
/* Closes the health service, and ends its streams. */
void dv_lib_health_close(struct dv_lib_health *health);
void dv_lib_health_fini(struct dv_lib_health *health);

/* Takes the call as a stream. */
void dv_lib_health_watch(struct dv_lib_health *health, struct dv_server_call *call);
/* Does what davit_dra_set_health does. */
DV_CHECKED bool dv_lib_health_set(struct dv_lib_health *health,
                                  const struct davit_dra_device_health *devices, size_t n,
                                  struct dv_err *err);
/* To be called when the socket is gone, and the streams on it with it. */
void dv_lib_health_lost(struct dv_lib_health *health, const struct dv_err *err);

#endif
