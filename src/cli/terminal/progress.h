/* progress.h - how far long work has come: a line that is written over on a terminal, and a line
 * now and then into a file. On standard error. */
#ifndef DV_CLI_PROGRESS_H
#define DV_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_buf;

/* Zeroed; `is_terminal`, `is_on` and `is_short` are set by its owner. */
struct dv_progress {
    bool is_terminal;
    bool is_on;
    bool is_short;    /* it may be over soon: a file gets no line in the first seconds */
    const char *what; /* the step that is under way; NULL: none */
    dv_str detail;    /* behind the numbers, set by its owner; empty: none */
    uint64_t told_ms;
    bool has_line; /* there is one on the terminal that is not ended */
};

/* A step begins; the one before has ended. `what` is kept. */
void dv_progress_begin(struct dv_progress *progress, const char *what, uint64_t now_ms,
                       struct dv_buf *buf);
/* So many of all are done: a few times a second on a terminal, every 15 seconds elsewhere. */
void dv_progress_count(struct dv_progress *progress, size_t n_done, size_t n_all, uint64_t now_ms,
                       struct dv_buf *buf);
/* Something else is about to be printed: takes the line off the terminal; the next count brings it
 * back. */
void dv_progress_wipe(struct dv_progress *progress, struct dv_buf *buf);
/* The work has ended: what comes next has a line of its own. */
void dv_progress_end(struct dv_progress *progress, struct dv_buf *buf);

/* The same, now and on standard error. */
void dv_progress_tell_begin(struct dv_progress *progress, const char *what);
void dv_progress_tell_count(struct dv_progress *progress, size_t n_done, size_t n_all);
void dv_progress_tell_wipe(struct dv_progress *progress);
void dv_progress_tell_end(struct dv_progress *progress);

#endif
