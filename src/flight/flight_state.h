/* flight_state.h - the recorder, as the loop and its thread share it. */
#ifndef DV_FLIGHT_STATE_H
#define DV_FLIGHT_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "flight/flight.h"
#include "flight/flight_files.h"
#include "grpc/grpc.h"
#include "loop/loop.h"

struct dv_flight {
    struct dv_grpc_observer observer;
    struct dv_loop *loop;
    struct dv_timer gathering; /* until what is queued is written */
    struct dv_async *wake;
    pthread_t thread;
    dv_closed_fn *closed;
    void *closed_ctx;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t more;
    struct dv_buf queue; /* frames without their checksums */
    uint64_t n_queued;   /* records in it */
    uint64_t n_lost;     /* records that found no room since the thread last looked */
    uint64_t lost_bytes; /* theirs */
    bool is_due;         /* what is queued is to be written now */
    bool is_closing;
    struct dv_flight_stats stats;

    struct dv_flight_files files; /* the thread's */
};

/* The thread; `flight` is a struct dv_flight. */
void *dv_flight_write(void *flight);

#endif
