/* progress.h - how far long work has come: a line that is written over on a terminal, and a line
 * now and then into a file. On standard error. */
#ifndef DV_CLI_PROGRESS_H
#define DV_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dv_buf;

/* Zeroed; `is_terminal` and `is_on` are set by its owner. */
struct dv_progress {
    bool is_terminal;
    bool is_on;
    const char *what; /* the step that is under way; NULL: none */
    uint64_t told_ms;
    bool has_line; /* there is one on the terminal that is not ended */
};

/* A step begins; the one before has ended. `what` is kept. */
void dv_progress_begin(struct dv_progress *progress, const char *what, uint64_t now_ms,
                       struct dv_buf *buf);
/* So many of all are done: a few times a second on a terminal, every 15 seconds elsewhere. */
void dv_progress_count(struct dv_progress *progress, size_t n_done, size_t n_all, uint64_t now_ms,
                       struct dv_buf *buf);
/* The work has ended: what comes next has a line of its own. */
void dv_progress_end(struct dv_progress *progress, struct dv_buf *buf);

#endif
