/* podlog.c - turns the lines of log files into what is shown. */
#include "podlog/podlog.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/calendar.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "podlog/podlog_line.h"

/* A longer line is put out as it comes, without being kept whole. Runtimes cut at 16 KiB. */
#define LINE_BYTES_MAX (64u * 1024u)
#define SHOWN_BYTES_MAX 128u
#define TIME_DIGITS 9

/* What becomes of the rest of a line that is too long to be kept. */
enum rest {
    REST_NONE,    /* there is no such line */
    REST_SHOWN,   /* its beginning was put out */
    REST_TOO_OLD, /* it counts, and is not shown */
    REST_UNREAD,  /* it is none, and does not count */
};

struct dv_podlog {
    struct dv_podlog_options options;
    struct dv_arena *scratch;
    struct dv_buf pending; /* a line whose end has not come */
    enum dv_podlog_format format;
    enum rest rest;
    bool rest_is_partial; /* the newline of the long line is not shown */
    bool is_at_start;     /* what is put out next begins a line */
    bool is_done;
    uint64_t n_left; /* bytes that may still be put out */
};

struct dv_podlog *dv_podlog_new(const struct dv_podlog_options *options)
{
    struct dv_podlog *log = DV_ALLOC(struct dv_podlog);

    log->options = *options;
    log->scratch = dv_arena_new();
    log->is_at_start = true;
    log->n_left = options->has_limit ? options->limit_bytes : UINT64_MAX;
    log->is_done = options->has_tail && !options->is_followed && options->tail_lines == 0;
    dv_buf_init(&log->pending, LINE_BYTES_MAX);
    return log;
}

void dv_podlog_free(struct dv_podlog *log)
{
    if (!log)
        return;
    dv_arena_free(log->scratch);
    dv_buf_fini(&log->pending);
    free(log);
}

bool dv_podlog_is_done(const struct dv_podlog *log)
{
    return log->is_done;
}

void dv_podlog_restart(struct dv_podlog *log)
{
    dv_buf_clear(&log->pending);
    log->rest = REST_NONE;
}

/* ---- lines ---- */

static void put(struct dv_podlog *log, dv_str text, struct dv_buf *out)
{
    size_t n = (size_t)dv_u64_min(text.n, log->n_left);

    dv_buf_add(out, dv_str_slice(text, 0, n));
    log->n_left -= n;
    if (log->n_left == 0)
        log->is_done = true;
}

static bool is_too_old(const struct dv_podlog *log, const struct dv_rfc3339 *time)
{
    const struct dv_rfc3339 *since = &log->options.since;

    return log->options.has_since &&
           (time->seconds < since->seconds ||
            (time->seconds == since->seconds && time->nanos < since->nanos));
}

/* Puts out a line, or the beginning of one. */
static void show(struct dv_podlog *log, const struct dv_podlog_line *line, struct dv_buf *out)
{
    char time[DV_RFC3339_BYTES + 1];
    size_t n;

    if (log->options.has_timestamps && log->is_at_start) {
        n = dv_rfc3339_print(line->time, TIME_DIGITS, time);
        time[n++] = ' ';
        put(log, (dv_str){time, n}, out);
    }
    put(log, line->text, out);
}

/* Counts a line of the file that was read, shown or not. */
static void count_line(struct dv_podlog *log)
{
    struct dv_podlog_options *options = &log->options;

    if (options->has_tail && !options->is_followed && --options->tail_lines == 0)
        log->is_done = true;
}

/* Reads a line, or the beginning of one; the first tells the format of all. */
static bool read_line(struct dv_podlog *log, dv_str text, struct dv_podlog_line *line)
{
    dv_arena_reset(log->scratch);
    if (log->format != PODLOG_UNKNOWN)
        return dv_podlog_line_parse(log->format, text, log->scratch, line);
    for (enum dv_podlog_format format = PODLOG_CRI; format <= PODLOG_DOCKER; format++) {
        if (dv_podlog_line_parse(format, text, log->scratch, line)) {
            log->format = format;
            return true;
        }
    }
    return false;
}

static bool refuse_format(const struct dv_podlog *log, dv_str text, struct dv_err *err)
{
    if (log->format != PODLOG_UNKNOWN)
        return true;
    return dv_fail(err, DV_INVALID_ARGUMENT, "unsupported log format: \"%.*s\"",
                   DV_FMT(dv_str_slice(text, 0, SHOWN_BYTES_MAX)));
}

static bool on_line(struct dv_podlog *log, dv_str text, struct dv_buf *out, struct dv_err *err)
{
    struct dv_podlog_line line;

    if (!read_line(log, text, &line))
        return refuse_format(log, text, err);
    if (!is_too_old(log, &line.time))
        show(log, &line, out);
    log->is_at_start = line.text.n == 0 || line.text.p[line.text.n - 1] == '\n';
    count_line(log);
    return true;
}

/* Handles the beginning of a line that is too long to be kept. */
static bool on_long_line(struct dv_podlog *log, dv_str text, struct dv_buf *out, struct dv_err *err)
{
    struct dv_podlog_line line;

    log->rest = REST_UNREAD;
    if (log->format == PODLOG_DOCKER || !read_line(log, text, &line))
        return refuse_format(log, text, err);
    log->rest_is_partial = line.is_partial;
    log->rest = is_too_old(log, &line.time) ? REST_TOO_OLD : REST_SHOWN;
    if (log->rest == REST_SHOWN)
        show(log, &line, out);
    return true;
}

/* Takes bytes of a long line; returns how many. */
static size_t take_rest(struct dv_podlog *log, dv_str bytes, struct dv_buf *out)
{
    size_t n = dv_str_find_char(bytes, '\n');

    if (log->rest == REST_SHOWN)
        put(log, dv_str_slice(bytes, 0, n), out);
    if (n == bytes.n)
        return n;
    if (log->rest == REST_SHOWN && !log->rest_is_partial && !log->is_done)
        put(log, DV_STR("\n"), out);
    if (log->rest != REST_UNREAD) {
        log->is_at_start = !log->rest_is_partial;
        count_line(log);
    }
    log->rest = REST_NONE;
    return n + 1;
}

/* Takes bytes of a line that is kept until it is whole; returns how many. */
static size_t take_line(struct dv_podlog *log, dv_str bytes, struct dv_buf *out, bool *is_fine,
                        struct dv_err *err)
{
    size_t at = dv_str_find_char(bytes, '\n');
    size_t n = dv_size_min(at + (at < bytes.n), LINE_BYTES_MAX - log->pending.n);
    dv_str part = dv_str_slice(bytes, 0, n);
    bool is_whole = n == at + 1;

    if (is_whole && log->pending.n == 0) { /* nearly always, and nothing is copied */
        *is_fine = on_line(log, part, out, err);
        return n;
    }
    dv_buf_add(&log->pending, part);
    if (is_whole)
        *is_fine = on_line(log, dv_buf_str(&log->pending), out, err);
    else if (log->pending.n == LINE_BYTES_MAX)
        *is_fine = on_long_line(log, dv_buf_str(&log->pending), out, err);
    else
        return n;
    dv_buf_clear(&log->pending);
    return n;
}

bool dv_podlog_add(struct dv_podlog *log, dv_str bytes, struct dv_buf *out, struct dv_err *err)
{
    bool is_fine = true;

    while (bytes.n > 0 && is_fine && !log->is_done) {
        size_t n = log->rest == REST_NONE ? take_line(log, bytes, out, &is_fine, err)
                                          : take_rest(log, bytes, out);

        bytes = dv_str_slice(bytes, n, bytes.n);
    }
    return is_fine;
}

bool dv_podlog_end(struct dv_podlog *log, struct dv_buf *out, struct dv_err *err)
{
    bool is_fine = true;

    if (!log->options.is_followed && !log->is_done && log->pending.n > 0)
        is_fine = on_line(log, dv_buf_str(&log->pending), out, err);
    dv_podlog_restart(log);
    return is_fine;
}
