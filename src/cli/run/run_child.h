/* run_child.h - the process that becomes the command.
 *
 * It is there before the devices are, because the lease is its own: it waits for its plan, and ends
 * when none comes, whatever became of us. */
#ifndef DV_CLI_RUN_CHILD_H
#define DV_CLI_RUN_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_engine_plan;
struct dv_err;

struct dv_run_child {
    pid_t pid;    /* 0: there is none */
    int plan_fd;  /* to it; -1: closed */
    int error_fd; /* from it: why it could not become the command; -1: closed */
};

/* Forks. The terminal, the process group and the open files are those of davit. */
DV_CHECKED bool dv_run_child_start(struct dv_run_child *child, struct dv_err *err);
/* Lets it become the command of the plan, and waits until it has. `env` is what is set besides the
 * plan's. False: it could not, and *exit_code is what a shell would end with. */
DV_CHECKED bool dv_run_child_release(struct dv_run_child *child, const struct dv_engine_plan *plan,
                                     bool is_isolated, int *exit_code, struct dv_err *err);
/* Ends it, if it still waits for its plan, and takes its end. */
void dv_run_child_abandon(struct dv_run_child *child);

/* The file that a shell would run for the first word of a command; empty: none. In `arena`. */
struct dv_arena;
dv_str dv_run_find_program(dv_str word, struct dv_arena *arena, bool *is_executable);

#endif
