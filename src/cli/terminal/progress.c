#include "cli/terminal/progress.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"

/* A person sees no more changes than these. */
#define TERMINAL_MS 200u
/* A file that grows so often shows that the work goes on. */
#define FILE_MS 15000u
#define LINE_BYTES_MAX 4096u

void dv_progress_end(struct dv_progress *progress, struct dv_buf *buf)
{
    if (progress->has_line)
        dv_buf_add_char(buf, '\n');
    progress->has_line = false;
    progress->what = NULL;
}

void dv_progress_begin(struct dv_progress *progress, const char *what, uint64_t now_ms,
                       struct dv_buf *buf)
{
    dv_progress_end(progress, buf);
    if (!progress->is_on)
        return;
    progress->what = what;
    progress->told_ms = now_ms;
    progress->has_line = progress->is_terminal;
    if (progress->is_terminal || !progress->is_short)
        dv_buf_printf(buf, "%s ...%s", what, progress->is_terminal ? "" : "\n");
}

void dv_progress_count(struct dv_progress *progress, size_t n_done, size_t n_all, uint64_t now_ms,
                       struct dv_buf *buf)
{
    uint64_t pause_ms = progress->is_terminal ? TERMINAL_MS : FILE_MS;

    if (!progress->what ||
        (now_ms < progress->told_ms + pause_ms && !(progress->is_terminal && n_done == n_all)))
        return;
    progress->told_ms = now_ms;
    progress->has_line = progress->is_terminal;
    dv_buf_printf(buf, "%s%s ... %zu of %zu", progress->is_terminal ? "\r" : "", progress->what,
                  n_done, n_all);
    if (progress->detail.n > 0)
        dv_buf_printf(buf, " (%.*s)", DV_FMT(progress->detail));
    dv_buf_add_c(buf, progress->is_terminal ? "\033[K" : "\n");
}

void dv_progress_wipe(struct dv_progress *progress, struct dv_buf *buf)
{
    if (progress->has_line)
        dv_buf_add_c(buf, "\r\033[K");
    progress->has_line = false;
    progress->told_ms = progress->is_terminal ? 0 : progress->told_ms;
}

/* ---- on standard error ---- */

static uint64_t now_ms(void)
{
    return dv_clock_now_ms(dv_clock_real());
}

static void flush(struct dv_buf *buf)
{
    if (buf->n > 0)
        (void)fputs(dv_buf_c(buf), stderr);
    dv_buf_fini(buf);
}

void dv_progress_tell_begin(struct dv_progress *progress, const char *what)
{
    struct dv_buf buf;

    dv_buf_init(&buf, LINE_BYTES_MAX);
    dv_progress_begin(progress, what, now_ms(), &buf);
    flush(&buf);
}

void dv_progress_tell_count(struct dv_progress *progress, size_t n_done, size_t n_all)
{
    struct dv_buf buf;

    dv_buf_init(&buf, LINE_BYTES_MAX);
    dv_progress_count(progress, n_done, n_all, now_ms(), &buf);
    flush(&buf);
}

void dv_progress_tell_wipe(struct dv_progress *progress)
{
    struct dv_buf buf;

    dv_buf_init(&buf, LINE_BYTES_MAX);
    dv_progress_wipe(progress, &buf);
    flush(&buf);
}

void dv_progress_tell_end(struct dv_progress *progress)
{
    struct dv_buf buf;

    dv_buf_init(&buf, LINE_BYTES_MAX);
    dv_progress_end(progress, &buf);
    flush(&buf);
}
