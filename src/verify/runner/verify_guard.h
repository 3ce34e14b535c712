/* verify_guard.h - a process that looks after a run which is killed as a whole, davit and all its
 * workers at once: it ends drivers and removes directories when nobody else is left to do it. */
#ifndef DV_VERIFY_GUARD_H
#define DV_VERIFY_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;
struct dv_verify_options;

struct dv_verify_guard {
    pid_t pid; /* 0: there is none */
    int fd;    /* workers have it too: it ends with the last of us */
};

/* Starts it, before there is any worker. */
DV_CHECKED bool dv_verify_guard_open(struct dv_verify_guard *guard,
                                     const struct dv_verify_options *options, struct dv_err *err);
/* A trial has its directories there from now on; they are gone again. */
void dv_verify_guard_note(const struct dv_verify_guard *guard, dv_str root);
void dv_verify_guard_forget(const struct dv_verify_guard *guard, dv_str root);
/* When all workers have ended. Zeroed memory is fine. */
void dv_verify_guard_close(struct dv_verify_guard *guard);

#endif
