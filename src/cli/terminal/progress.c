#include "cli/terminal/progress.h"

#include "base/buf.h"

/* A person sees no more changes than these. */
#define TERMINAL_MS 200u
/* A file that grows so often shows that the work goes on. */
#define FILE_MS 15000u

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
    dv_buf_printf(buf, "%s%s ... %zu of %zu%s", progress->is_terminal ? "\r" : "", progress->what,
                  n_done, n_all, progress->is_terminal ? "\033[K" : "\n");
}
