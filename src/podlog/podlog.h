/* podlog.h - reads the log files of containers: from which place, which lines, in which form, and
 * when to look again. Bytes and facts in, bytes and steps out; no files, no clock.
 *
 * A line of a file is `2016-10-06T00:17:09.669794202Z stdout F text`; P in place of F says that the
 * line goes on with the next one. Files of Docker, a JSON object a line, are read as well. What is
 * read is the reference's, to the byte, in memory that no file can make grow. */
#ifndef DV_PODLOG_H
#define DV_PODLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/calendar.h"
#include "base/defs.h"
#include "base/str.h"

struct dv_buf;
struct dv_err;
struct dv_podlog;

/* What is asked for, as in the API's PodLogOptions. */
struct dv_podlog_options {
    bool is_followed;
    bool has_timestamps; /* each line begins with its time */
    bool has_tail;
    uint64_t tail_lines; /* only so many of the file's last lines, P and F alike */
    bool has_limit;
    uint64_t limit_bytes; /* no more than so many are put out */
    bool has_since;
    struct dv_rfc3339 since; /* lines that are older are left out */
};

/* Sets `since` for a request made at `now`: the later one of that many seconds before, and a time.
 * NULL: not asked for. */
void dv_podlog_set_since(struct dv_podlog_options *options, struct dv_rfc3339 now,
                         const int64_t *since_seconds, const struct dv_rfc3339 *since_time);

/* ---- where to begin ---- */

/* Finds where the last lines of a file begin, by looking at it from its end:
 *
 *     dv_podlog_tail_init(&tail, size_of_the_file, options.tail_lines);
 *     while (dv_podlog_tail_wants(&tail, &offset, &n))
 *         dv_podlog_tail_add(&tail, the n bytes at offset);
 *     begin to read at tail.start */
struct dv_podlog_tail {
    uint64_t start;   /* known when nothing more is wanted */
    uint64_t n_lines; /* that are still to be found */
    uint64_t at;      /* all from here to the end has been looked at */
    bool is_found;
};

void dv_podlog_tail_init(struct dv_podlog_tail *tail, uint64_t size_bytes, uint64_t n_lines);
bool dv_podlog_tail_wants(const struct dv_podlog_tail *tail, uint64_t *offset, size_t *n);
/* Takes the bytes that were wanted. Fewer of them: the file was cut off meanwhile; what there is
 * then is read from its beginning. */
void dv_podlog_tail_add(struct dv_podlog_tail *tail, dv_str bytes);

/* ---- what to put out ---- */

/* `options` is copied. */
struct dv_podlog *dv_podlog_new(const struct dv_podlog_options *options);
void dv_podlog_free(struct dv_podlog *log); /* NULL is fine */

/* Adds the next bytes of the file, and puts what is to be shown of them into `out`: about as much
 * as was given, twice that with timestamps. DV_INVALID_ARGUMENT: the first line is of no known
 * format. Other lines that cannot be read are left out. */
DV_CHECKED bool dv_podlog_add(struct dv_podlog *log, dv_str bytes, struct dv_buf *out,
                              struct dv_err *err);
/* Tells that the file ends here. When it is not followed, a last line without its end counts. */
DV_CHECKED bool dv_podlog_end(struct dv_podlog *log, struct dv_buf *out, struct dv_err *err);
/* Tells that what comes next is the beginning of another file: a line without its end is dropped.
 */
void dv_podlog_restart(struct dv_podlog *log);
/* Whether nothing more will be put out, because a limit was reached. */
bool dv_podlog_is_done(const struct dv_podlog *log);

/* ---- when to look again ---- */

enum dv_podlog_step {
    DV_PODLOG_READ,   /* more of the file that is open */
    DV_PODLOG_WAIT,   /* for a change of the directory, or a second */
    DV_PODLOG_REOPEN, /* the path is another file now: open that, dv_podlog_restart, read */
    DV_PODLOG_STOP,
};

/* Following one file and those that take its place. Begins zeroed. */
struct dv_podlog_follow {
    bool saw_replaced;
    bool saw_end;
};

/* Decides what to do at the end of the open file, given what is true now: whether the container may
 * still write (when nobody knows: true), and whether the path is another file. What was written
 * before the container ended, or before the file was replaced, is read first: both are looked at
 * again after a last read. */
enum dv_podlog_step dv_podlog_follow_step(struct dv_podlog_follow *follow, bool is_running,
                                          bool is_replaced);

#endif
