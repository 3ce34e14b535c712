/* voldir_read_log.c - reads a log a part at a time: from its end, or from its beginning, and what
 * takes its place. What of it is shown, and how, is podlog's business. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "podlog/podlog.h"
#include "voldir/voldir.h"
#include "voldir/voldir_dirs.h"
#include "voldir/voldir_jobs.h"

/* A part is about as long as this. */
#define PART_BYTES (64u * 1024u)
#define READ_BYTES (32u * 1024u)
/* What a job reads at most while it finds nothing to show: lines that are too old, or where the
 * last lines begin. The next job goes on there, and others have their turn between them. */
#define JOB_BYTES_MAX (4u << 20)
/* Nothing is left out below this: a part and what one more read can add to it, a line of 64 KiB
 * that was kept and a time before each of its lines. */
#define TEXT_BYTES_MAX (1u << 20)

struct dv_voldir_log {
    struct dv_podlog_options options;
    struct dv_podlog *podlog;
    struct dv_podlog_tail tail;
    struct dv_buf text;
    uint64_t offset;
    int fd;              /* -1: not open */
    bool was_open;       /* a file has been there: that there is none now is no failure */
    bool is_tail_sought; /* it is open, and where to begin is not found yet */
    const char *below;   /* the part of the path that no link may be in */
    char *dir;           /* the directory above that; NULL: `below` is the whole path */
    char path[];
};

struct dv_voldir_log *dv_voldir_log_new(dv_str log_dir, dv_str path,
                                        const struct dv_podlog_options *options)
{
    struct dv_voldir_log *log = dv_alloc(sizeof(*log) + path.n + 1);

    memcpy(log->path, path.p, path.n);
    log->below = log->path;
    if (log_dir.n > 0 && path.n > log_dir.n + 1 && dv_str_starts_with(path, log_dir) &&
        path.p[log_dir.n] == '/') {
        log->dir = dv_alloc(log_dir.n + 1);
        memcpy(log->dir, log_dir.p, log_dir.n);
        log->below = log->path + log_dir.n + 1;
    }
    log->fd = -1;
    log->options = *options;
    log->podlog = dv_podlog_new(options);
    dv_buf_init(&log->text, TEXT_BYTES_MAX);
    return log;
}

void dv_voldir_log_reopen(struct dv_voldir_log *log)
{
    dv_close_fd(&log->fd);
    log->fd = -1;
}

void dv_voldir_log_free(struct dv_voldir_log *log)
{
    if (!log)
        return;
    dv_close_fd(&log->fd);
    dv_podlog_free(log->podlog);
    dv_buf_fini(&log->text);
    free(log->dir);
    free(log);
}

/* Opens what is at the path now; -1 with errno. */
static int open_path(const struct dv_voldir_log *log, int flags)
{
    DV_CLEANUP(dv_close_fd) int dir = -1;

    if (!log->dir)
        return open(log->path, flags | O_CLOEXEC | O_NOFOLLOW);
    dir = open(log->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    return dv_voldir_openat2(dir, log->below, flags | O_NOFOLLOW, DV_VOLDIR_NO_LINKS);
}

static bool open_log(struct dv_voldir_log *log, struct dv_err *err)
{
    struct stat about;

    log->fd = open_path(log, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (log->fd < 0 && errno == ENOENT && log->was_open)
        return true; /* it was set aside, and the next one is not there yet */
    if (log->fd < 0 || fstat(log->fd, &about) < 0)
        return dv_fail_errno(err, errno, "failed to open log file \"%s\"", log->path);
    if (!S_ISREG(about.st_mode))
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "failed to open log file \"%s\": it is no regular file", log->path);
    log->offset = 0;
    log->is_tail_sought = log->options.has_tail && !log->was_open;
    if (log->is_tail_sought)
        dv_podlog_tail_init(&log->tail, (uint64_t)about.st_size, log->options.tail_lines);
    if (log->was_open)
        dv_podlog_restart(log->podlog);
    log->was_open = true;
    return true;
}

/* Reads n bytes at the offset, or up to the end. */
static bool read_at(const struct dv_voldir_log *log, uint64_t offset, size_t n, char *bytes,
                    size_t *n_read, struct dv_err *err)
{
    *n_read = 0;
    while (*n_read < n) {
        ssize_t got = pread(log->fd, bytes + *n_read, n - *n_read, (off_t)(offset + *n_read));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return dv_fail_errno(err, errno, "failed to read log file \"%s\"", log->path);
        if (got == 0)
            break;
        *n_read += (size_t)got;
    }
    return true;
}

/* Looks for the place to begin at. *n_left is how much may still be read. */
static bool seek_tail(struct dv_voldir_log *log, size_t *n_left, struct dv_err *err)
{
    char block[READ_BYTES];
    uint64_t offset;
    size_t n;
    size_t n_read;

    while (dv_podlog_tail_wants(&log->tail, &offset, &n)) {
        n = dv_size_min(n, sizeof(block));
        if (*n_left < n)
            return true;
        *n_left -= n;
        if (!read_at(log, offset, n, block, &n_read, err))
            return false;
        dv_podlog_tail_add(&log->tail, (dv_str){block, n_read});
    }
    log->offset = log->tail.start;
    log->is_tail_sought = false;
    return true;
}

/* Whether the path is another file than the one that is open, or that one was cut off. */
static bool is_replaced(const struct dv_voldir_log *log)
{
    DV_CLEANUP(dv_close_fd) int fd = open_path(log, O_PATH);
    struct stat there;
    struct stat ours;

    if (fstat(log->fd, &ours) < 0 || (uint64_t)ours.st_size < log->offset)
        return true;
    if (fd < 0 || fstat(fd, &there) < 0)
        return false; /* it was set aside, and the next one is not there yet */
    return there.st_dev != ours.st_dev || there.st_ino != ours.st_ino;
}

static bool read_part(struct dv_voldir_log *log, struct dv_voldir_read_log *op, size_t *n_left,
                      struct dv_err *err)
{
    char bytes[READ_BYTES];
    size_t n_read;

    while (log->text.n < PART_BYTES && *n_left >= sizeof(bytes) &&
           !dv_podlog_is_done(log->podlog)) {
        *n_left -= sizeof(bytes);
        if (!read_at(log, log->offset, sizeof(bytes), bytes, &n_read, err))
            return false;
        log->offset += n_read;
        if (!dv_podlog_add(log->podlog, (dv_str){bytes, n_read}, &log->text, err))
            return false;
        if (n_read == sizeof(bytes))
            continue;
        op->is_at_end = true;
        op->is_replaced = is_replaced(log);
        return log->options.is_followed || dv_podlog_end(log->podlog, &log->text, err);
    }
    return true;
}

bool dv_voldir_run_read_log(struct dv_voldir_read_log *op, struct dv_err *err)
{
    struct dv_voldir_log *log = op->log;
    size_t n_left = JOB_BYTES_MAX;
    bool is_good = true;

    dv_buf_fini(&log->text); /* who only waits for more holds nothing */
    dv_buf_init(&log->text, TEXT_BYTES_MAX);
    op->is_at_end = op->is_replaced = false;
    if (log->fd < 0) {
        is_good = open_log(log, err);
        op->is_at_end = log->fd < 0;
    }
    if (is_good && log->fd >= 0 && log->is_tail_sought)
        is_good = seek_tail(log, &n_left, err);
    if (is_good && log->fd >= 0 && !log->is_tail_sought)
        is_good = read_part(log, op, &n_left, err);
    op->text = dv_buf_str(&log->text);
    op->is_done = dv_podlog_is_done(log->podlog);
    return is_good;
}
