/* uvloop.h - what the files of this module share: the loop's insides and libuv's errors. */
#ifndef DV_LOOP_UVLOOP_H
#define DV_LOOP_UVLOOP_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/list.h"
#include "base/vec.h"
#include "loop/loop.h"

struct dv_clock;
struct dv_err;
/* All streams share one read buffer: a device list of a few thousand entries comes in one piece. */
#define READ_BUFFER_BYTES (256u * 1024u)

/* Where the loop's thread was when a turn began. */
struct dv_loop_turn {
    uint64_t at_ns;
    uint64_t asleep_ns; /* all the time that it has waited for events */
    uint64_t cpu_ns;
};

struct dv_loop {
    uv_loop_t uv;
    struct dv_clock *clock;
    uv_timer_t wake;        /* real clock only: set for `wake_at_ms` or earlier */
    uint64_t wake_at_ms;    /* UINT64_MAX: not set */
    struct dv_task overdue; /* timers that were set to now by one that fired */
    bool is_firing;
    uv_timer_t guard;          /* of dv_loop_run_until, in real time */
    uv_prepare_t before_sleep; /* due timers and tasks, so that none waits while the loop sleeps */
    uv_check_t after_poll;     /* tasks of what I/O has just posted */
    uv_idle_t stay_awake;      /* started while tasks wait */
    struct dv_list tasks;
    struct dv_list next_tasks;  /* for the next turn */
    struct dv_list parts;       /* those of the present turn that have not run yet */
    struct dv_loop_turn polled; /* when the loop last began to wait for events; without cpu_ns */
    struct dv_loop_turn turn;   /* only while somebody watches the holds */
    dv_loop_held_fn *held;      /* NULL: nobody does */
    void *held_ctx;
    DV_VEC(struct dv_timer *) timers; /* a binary heap by at_ms */
    char read_buffer[READ_BUFFER_BYTES];
};

/* Turns a libuv status (negative) into an error: "<what>: <reason>". Returns false. */
bool dv_loop_fail_uv(struct dv_err *err, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* loop_hold.c */
void dv_loop_end_turn(struct dv_loop *loop);

/* timer.c */
void dv_loop_run_due_timers(struct dv_loop *loop);
/* Whether a timer is due, on a virtual clock: no libuv timer wakes the loop for it. */
bool dv_loop_has_due_timer(struct dv_loop *loop);

#endif
