/* voldir_message.c - the last words of a container: the end of a file, or of its log. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "voldir/voldir.h"
#include "voldir/voldir_jobs.h"

/* The reference's limits. */
#define FILE_BYTES_MAX 4096u
#define LOG_BYTES_MAX 2048u
#define LOG_LINES_MAX 80u
/* What is read of a log's end: 80 lines as long as runtimes write them, 16 KiB and their head. */
#define TAIL_BYTES_MAX (LOG_LINES_MAX * (16384u + 128u))
#define REPLACEMENT "\xef\xbf\xbd"

/* Reads the last bytes of a regular file; *is_whole tells whether they are all. */
static bool read_end(dv_str path, size_t max_bytes, struct dv_arena *arena, dv_str *text,
                     bool *is_whole, struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd)
    int fd =
        open(dv_str_to_c(path, arena), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat about;
    size_t n = 0;
    size_t wanted;
    char *bytes;

    if (fd < 0)
        return dv_fail_errno(err, errno, "open %.*s", DV_FMT(path));
    if (fstat(fd, &about) < 0)
        return dv_fail_errno(err, errno, "look at %.*s", DV_FMT(path));
    if (!S_ISREG(about.st_mode))
        return dv_fail(err, DV_FAILED_PRECONDITION, "%.*s is no regular file", DV_FMT(path));
    wanted = (size_t)dv_u64_min((uint64_t)about.st_size, max_bytes);
    bytes = dv_arena_alloc(arena, wanted + 1, 1);
    while (n < wanted) {
        ssize_t got = pread(fd, bytes + n, wanted - n, about.st_size - (off_t)(wanted - n));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return dv_fail_errno(err, errno, "read %.*s", DV_FMT(path));
        if (got == 0) /* it was cut meanwhile */
            break;
        n += (size_t)got;
    }
    *text = (dv_str){bytes, n};
    *is_whole = wanted == (uint64_t)about.st_size;
    return true;
}

/* A line of a log: "2026-01-02T03:04:05.6Z stdout F text". Adds its text to `out`, and the end of
 * the line when that belongs to it. What is not such a line says nothing. */
static void add_line(dv_str line, struct dv_buf *out)
{
    dv_str field[3] = {{0}}; /* time, stream, tags */
    bool is_whole = true;

    for (size_t i = 0; i < DV_COUNT(field); i++)
        is_whole = is_whole && dv_str_split(&line, ' ', &field[i]);
    if (!is_whole ||
        (!dv_str_eq(field[1], DV_STR("stdout")) && !dv_str_eq(field[1], DV_STR("stderr"))))
        return;
    dv_buf_add(out, line);
    if (!dv_str_eq(dv_str_slice(field[2], 0, dv_str_find_char(field[2], ':')), DV_STR("P")))
        dv_buf_add_char(out, '\n');
}

/* Where the last LOG_LINES_MAX lines begin. */
static size_t last_lines(dv_str text)
{
    size_t n_lines = 0;
    size_t at = text.n;

    while (at > 0) {
        if (text.p[at - 1] == '\n' && at < text.n && ++n_lines == LOG_LINES_MAX)
            return at;
        at--;
    }
    return 0;
}

static bool read_log(dv_str path, struct dv_arena *arena, dv_str *text, struct dv_err *err)
{
    struct dv_buf out;
    bool is_whole;
    dv_str rest = DV_STR_NONE;
    dv_str line = DV_STR_NONE;

    if (!read_end(path, TAIL_BYTES_MAX, arena, &rest, &is_whole, err))
        return false;
    rest = dv_str_slice(rest, last_lines(rest), rest.n);
    dv_buf_init(&out, TAIL_BYTES_MAX + LOG_LINES_MAX);
    while (rest.n > 0 && dv_str_split(&rest, '\n', &line))
        add_line(line, &out);
    *text = dv_buf_str(&out);
    *text = dv_str_slice(*text, text->n > LOG_BYTES_MAX ? text->n - LOG_BYTES_MAX : 0, text->n);
    *text = dv_str_copy(*text, arena);
    dv_buf_fini(&out);
    return true;
}

/* Texts of the API are UTF-8; a container may have written anything, and the cut is at any byte. */
static dv_str to_utf8(dv_str text, struct dv_arena *arena)
{
    struct dv_buf buf;

    if (dv_str_is_utf8(text))
        return dv_str_copy(text, arena);
    dv_buf_init(&buf, text.n * (sizeof(REPLACEMENT) - 1));
    while (text.n > 0) {
        size_t n = dv_str_utf8_char(text);

        dv_buf_add(&buf, n > 0 ? dv_str_slice(text, 0, n) : DV_STR(REPLACEMENT));
        text = dv_str_slice(text, n > 0 ? n : 1, text.n);
    }
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

bool dv_voldir_run_message(struct dv_voldir_message *op, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str text = DV_STR_NONE;
    bool is_whole;

    if (op->termination_path.n > 0 &&
        !read_end(op->termination_path, FILE_BYTES_MAX, scratch, &text, &is_whole, err) &&
        err->code != DV_NOT_FOUND) {
        op->text = dv_str_printf(op->arena, "Error on reading termination log %.*s: %s",
                                 DV_FMT(op->termination_path), err->msg);
        return dv_succeed(err);
    }
    if (text.n == 0 && op->log_path.n > 0 && !read_log(op->log_path, scratch, &text, err))
        text =
            dv_str_printf(scratch, "Error on reading termination message from logs: %s", err->msg);
    op->text = to_utf8(text, op->arena);
    return dv_succeed(err);
}
