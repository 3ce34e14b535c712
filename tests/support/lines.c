#include "support/lines.h"

#include "base/buf.h"
#include "base/str.h"

static void keep_line(void *ctx, enum dv_log_level level, dv_str line)
{
    (void)level;
    dv_buf_add(ctx, line);
}

void lines_keep(struct dv_buf *lines, enum dv_log_level level)
{
    const struct dv_log_sink sink = {
        .write = keep_line, .ctx = lines, .level = level, .format = DV_LOG_TEXT};

    dv_log_set_sink(&sink);
}

void lines_end(struct dv_buf *lines)
{
    dv_log_set_sink(&(struct dv_log_sink){0});
    dv_buf_fini(lines);
}
