/* asking.h - asks a container what a probe or a hook wants to know: over HTTP, by a connection, by
 * a command, or not at all (sleep). A container may do anything meanwhile: what is read of it is
 * bounded, and so is the time. */
#ifndef DV_POD_ASKING_H
#define DV_POD_ASKING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "cri/cri.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "rest/rest.h"
#include "workload/probe.h"

struct dv_arena;
struct dv_poll;

/* One question, embedded in what waits for it: zeroed, with all up to `limit_ms` set, and lent
 * until `done` has run. */
struct dv_asking {
    void (*done)(struct dv_asking *asking);
    struct dv_loop *loop;
    struct dv_cri *cri;
    struct dv_arena *arena;
    struct dv_probe_target target;
    dv_str container_id; /* for commands */
    uint64_t limit_ms;   /* 0: none */
    /* Results. */
    enum dv_probe_outcome outcome;
    dv_str output;
    struct {
        struct dv_cri_call call;
        struct dv_rest_client *client;
        struct dv_rest_fetch fetch;
        struct dv_poll *poll;
        struct dv_timer timer;
        struct dv_task task;
        struct dv_h2 *h2; /* of a gRPC probe that is connected */
        struct dv_h2_handler h2_handler;
        struct dv_buf unsent; /* of h2 */
        int fd;
        bool is_ended; /* a gRPC probe has its outcome */
        bool is_late;  /* the limit is over */
        bool is_cancelled;
    } priv;
};

void dv_asking_start(struct dv_asking *asking);
/* Gives up: `done` still runs, with an error. */
void dv_asking_cancel(struct dv_asking *asking);

#endif
