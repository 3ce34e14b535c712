/* control_queue.h - work by key: what has to be looked at again, once however often it was asked
 * for.
 *
 * A key is "namespace/name". It is in a queue once, and is worked on by one run at a time; what is
 * added while it runs is run again afterwards. What fails is tried again, with growing pauses. */
#ifndef DV_CONTROL_QUEUE_H
#define DV_CONTROL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "loop/loop.h"

struct dv_queue;

/* The first pause after a failure, and the longest: a server that is back is found soon. */
#define DV_QUEUE_RETRY_MS 5u
#define DV_QUEUE_RETRY_MAX_MS 60000u

enum dv_queue_state {
    DV_QUEUE_READY,
    DV_QUEUE_WAITING, /* for its timer */
    DV_QUEUE_RUNNING,
};

/* The first member of a queue's items. */
struct dv_queue_item {
    struct dv_queue *queue;
    dv_str key;
    dv_str namespace;
    dv_str name;
    enum dv_queue_state state;
    bool is_whole;       /* it has all of item_bytes: from its first run on */
    uint32_t n_failures; /* in a row */
    uint64_t again_ms;   /* RUNNING: it shall run again from then on; UINT64_MAX: it shall not */
    struct dv_timer timer;
    struct dv_link link; /* READY: in `ready`; RUNNING: in `running` */
};

struct dv_queue_options {
    struct dv_loop *loop;
    size_t item_bytes;    /* of the struct that begins with a dv_queue_item; zeroed at first */
    size_t n_running_max; /* at a time */
    /* Ends, now or later, in one of dv_queue_finish, _finish_after, _retry. */
    void (*run)(struct dv_queue_item *item);
    /* It shall end soon, in the same way. */
    void (*cancel)(struct dv_queue_item *item);
    /* The last of those that ran has ended, after dv_queue_stop. */
    void (*stopped)(struct dv_queue *queue);
    void *ctx; /* for these, in options.ctx */
};

struct dv_queue {
    struct dv_queue_options options;
    struct dv_map items;
    struct dv_list ready;
    struct dv_list running;
    size_t n_running;
    uint64_t n_retries;
    bool is_open; /* started, and not stopped */
    bool is_stopping;
    struct dv_task task;
    struct dv_buf key; /* of what is being added or looked for */
};

/* Keeps the loop; nothing runs before dv_queue_start. */
void dv_queue_init(struct dv_queue *queue, const struct dv_queue_options *options);
/* Nothing may be running. */
void dv_queue_fini(struct dv_queue *queue);
void dv_queue_start(struct dv_queue *queue);
/* Nothing is begun any more, what runs is cancelled. */
void dv_queue_stop(struct dv_queue *queue);

/* Runs it soon, also when it waits; never from within this call. */
void dv_queue_add(struct dv_queue *queue, dv_str namespace, dv_str name);
/* Runs it when that time has passed, or earlier when that was asked for. */
void dv_queue_add_after(struct dv_queue *queue, dv_str namespace, dv_str name, uint64_t ms);

/* The run is over, and the item is given back unless it was added meanwhile. */
void dv_queue_finish(struct dv_queue_item *item);
void dv_queue_finish_after(struct dv_queue_item *item, uint64_t ms);
/* It failed: again after a pause, and not before `ms_min`. Returns the pause. */
uint64_t dv_queue_retry(struct dv_queue_item *item, uint64_t ms_min);

/* Whether the key is ready to run or runs, and its last run has not failed. */
bool dv_queue_is_busy_with(struct dv_queue *queue, dv_str namespace, dv_str name);
size_t dv_queue_n(const struct dv_queue *queue);

#endif
