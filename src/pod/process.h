/* process.h - watches a process that is not ours until it ends. It is known by its number and the
 * time of its start, so that another one of the same number is not taken for it after a restart of
 * davitd. */
#ifndef DV_POD_PROCESS_H
#define DV_POD_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "loop/loop.h"

struct dv_arena;

/* When the process was started, in ticks since the boot; empty when there is no such process, or it
 * has ended and its parent has not waited for it. */
dv_str dv_process_start(uint32_t pid, struct dv_arena *arena);

/* Embedded in what waits for the end of a process. Zeroed memory watches nothing. */
struct dv_process {
    struct dv_loop *loop; /* NULL: nothing is watched */
    uint32_t pid;
    dv_str start;
    void (*ended)(struct dv_process *process);
    struct dv_poll *poll; /* NULL: no pidfd could be opened, so /proc is read */
    int fd;
    struct dv_timer timer;
    struct dv_task task;
};

/* Calls `ended` once, when the process of that number and start is not there any more, and never
 * before this returns. Keeps `start`. */
void dv_process_watch(struct dv_process *process, struct dv_loop *loop, uint32_t pid, dv_str start,
                      void (*ended)(struct dv_process *process));
/* `ended` does not run any more; may be called at any time, also from `ended`. */
void dv_process_stop(struct dv_process *process);
/* Sends a signal to the very process, and to no other that has its number since. False: it is gone,
 * or may not be signalled. */
bool dv_process_signal(const struct dv_process *process, int signum);
/* Like dv_process_signal, for a process that is not watched; signal 0 only tells whether it is
 * there. */
bool dv_process_signal_other(uint32_t pid, uint64_t start, int signum);
/* Whether the process is still being waited for. */
bool dv_process_is_watched(const struct dv_process *process);

#endif
