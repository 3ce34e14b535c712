/* run_watch.h - a command that runs under a lease, until it has ended. */
#ifndef DV_CLI_RUN_WATCH_H
#define DV_CLI_RUN_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "cli/run/lease_session.h"
#include "cli/run/run_child.h"
#include "cli/run/run_folder.h"
#include "engines/engines.h"
#include "loop/loop.h"

struct dv_err;

struct dv_run {
    struct dv_lease_session session;
    struct dv_engine_command command;
    struct dv_run_child child;
    struct dv_run_folder folder;
    int signal_fd;
    struct dv_poll *signals;
    int child_fd; /* a pidfd; -1: none */
    struct dv_poll *child_ended;
    struct dv_timer look; /* for the process that the engine has started */
    uint64_t pause_ms;    /* until the next look */
    uint32_t started_pid; /* 0: not known */
    bool is_moved;        /* the lease is that process's */
    bool is_released;     /* the child is the command */
    bool is_over;
    int exit_code;
};

/* Blocks the signals that are passed on; before the loop is there, and after the fork. */
DV_CHECKED bool dv_run_block_signals(struct dv_run *run, struct dv_err *err);
/* Watches signals and the child, on the session's loop. */
DV_CHECKED bool dv_run_watch(struct dv_run *run, struct dv_err *err);
/* The child has become the command: looks for what its engine starts, where there is one. */
void dv_run_follow(struct dv_run *run);
/* Ends the loop with this exit code. */
void dv_run_end(struct dv_run *run, int exit_code);
/* Whether something that the command has started goes on, and has the lease now. The command has
 * ended. */
bool dv_run_outlives(struct dv_run *run);
void dv_run_unwatch(struct dv_run *run);

#endif
