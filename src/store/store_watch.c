#include "store/store_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "store/store_files.h"

/* The offsets of the salts in the log's header and in each frame's. */
#define HEADER_SALTS_AT 16u
#define FRAME_SALTS_AT 8u
#define SALTS_BYTES 8u

/* Returns the offset of the last of `n_frames` frames. */
static off_t frame_at(uint64_t n_frames)
{
    return (off_t)(DV_WATCH_HEADER_BYTES + (n_frames - 1) * DV_WATCH_FRAME_BYTES);
}

/* Reads at an offset; a file on a disk gives less than was asked for only at its end. Negative: it
 * cannot be read. */
static ssize_t read_at(int fd, void *bytes, size_t n, off_t at)
{
    ssize_t got;

    do {
        got = pread(fd, bytes, n, at);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* Opens the log. Once is enough: SQLite makes it when it opens the database, and never another one
 * while that is open. */
static void open_wal(struct dv_store_watch *watch, const struct dv_store_files *files)
{
    watch->wal_fd = open(files->wal, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

void dv_store_watch_start(struct dv_store_watch *watch, const struct dv_store_files *files,
                          const struct dv_wal_mark *mark)
{
    struct stat about;

    *watch =
        (struct dv_store_watch){.wal_fd = -1, .mark_fd = -1, .mark = *mark, .is_started = true};
    if (stat(files->path, &about) == 0) {
        watch->device = about.st_dev;
        watch->file = about.st_ino;
        watch->size_bytes = about.st_size;
    }
    open_wal(watch, files);
    if (watch->wal_fd >= 0 && mark->n_frames > 0) {
        /* A header that cannot be read stays zeros here, and the first check finds that it
         * differs. */
        (void)read_at(watch->wal_fd, watch->header, sizeof(watch->header), 0);
        (void)read_at(watch->wal_fd, watch->frame, sizeof(watch->frame), frame_at(mark->n_frames));
    }
    /* Without a mark only a crash is judged less well, so failing to make one is no error. */
    watch->mark_fd = dv_wal_mark_open(files->mark);
    watch->mark.base = dv_wal_base_of(files->path);
    dv_wal_mark_write(watch->mark_fd, &watch->mark);
}

void dv_store_watch_stop(struct dv_store_watch *watch)
{
    if (watch->is_started && watch->mark.is_home && watch->mark_fd >= 0)
        (void)fdatasync(watch->mark_fd); /* the log that it speaks of is about to be removed */
    if (!watch->is_started)
        return;
    watch->is_started = false;
    dv_close_fd(&watch->wal_fd);
    dv_close_fd(&watch->mark_fd);
    watch->wal_fd = -1;
    watch->mark_fd = -1;
}

static bool fail_cut(const char *path, struct dv_err *err)
{
    return dv_fail(err, DV_DATA_LOSS, "%s was cut short while it was in use", path);
}

static bool fail_overwritten(const char *path, struct dv_err *err)
{
    return dv_fail(err, DV_DATA_LOSS, "%s was overwritten while it was in use", path);
}

/* Whether the log has frames that are not in the database yet. */
static bool is_needed(const struct dv_store_watch *watch)
{
    return !watch->mark.is_home && watch->mark.n_frames > 0;
}

static bool check_part(const struct dv_store_watch *watch, const struct dv_store_files *files,
                       const unsigned char *wanted, size_t n, off_t at, struct dv_err *err)
{
    unsigned char bytes[DV_WATCH_FRAME_BYTES];
    ssize_t got = read_at(watch->wal_fd, bytes, n, at);

    if (got < 0)
        return true; /* a failing disk is reported by the writes themselves */
    if ((size_t)got < n)
        return fail_cut(files->wal, err);
    return memcmp(bytes, wanted, n) == 0 || fail_overwritten(files->wal, err);
}

static bool check_wal(const struct dv_store_watch *watch, const struct dv_store_files *files,
                      struct dv_err *err)
{
    struct stat named;
    struct stat open_one;

    if (watch->wal_fd < 0 || fstat(watch->wal_fd, &open_one) != 0)
        return true; /* there is nothing to compare with */
    if (stat(files->wal, &named) != 0)
        return dv_fail(err, DV_DATA_LOSS, "%s was removed while it was in use", files->wal);
    if (named.st_ino != open_one.st_ino || named.st_dev != open_one.st_dev)
        return dv_fail(err, DV_DATA_LOSS, "%s was replaced while it was in use", files->wal);
    if (!is_needed(watch))
        return true;
    return check_part(watch, files, watch->header, sizeof(watch->header), 0, err) &&
           check_part(watch, files, watch->frame, sizeof(watch->frame),
                      frame_at(watch->mark.n_frames), err);
}

bool dv_store_watch_check(struct dv_store_watch *watch, const struct dv_store_files *files,
                          struct dv_err *err)
{
    struct stat named;

    if (!watch->is_started || watch->file == 0)
        return true; /* there is nothing to compare with */
    if (stat(files->path, &named) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return true; /* a failing disk is reported by the writes themselves */
        return dv_fail(err, DV_DATA_LOSS, "%s was removed while it was in use", files->path);
    }
    if (named.st_ino != watch->file || named.st_dev != watch->device)
        return dv_fail(err, DV_DATA_LOSS, "%s was replaced while it was in use", files->path);
    if (named.st_size < watch->size_bytes)
        return fail_cut(files->path, err);
    watch->size_bytes = named.st_size;
    return check_wal(watch, files, err);
}

/* Reads the header again, because the commit may have begun a new log. */
static bool learn_header(struct dv_store_watch *watch, const struct dv_store_files *files,
                         struct dv_err *err)
{
    ssize_t got = read_at(watch->wal_fd, watch->header, sizeof(watch->header), 0);

    if (got >= 0 && got < (ssize_t)sizeof(watch->header))
        return fail_cut(files->wal, err);
    return dv_wal_read_salts(watch->wal_fd, &watch->mark.salts) ||
           fail_overwritten(files->wal, err);
}

bool dv_store_watch_commit(struct dv_store_watch *watch, const struct dv_store_files *files,
                           uint64_t n_frames, struct dv_err *err)
{
    ssize_t got;

    if (!watch->is_started || n_frames == 0)
        return true;
    if (watch->wal_fd < 0)
        open_wal(watch, files);
    if (watch->wal_fd < 0)
        return true; /* there is nothing to compare with */
    if (!is_needed(watch) && !learn_header(watch, files, err))
        return false;
    got = read_at(watch->wal_fd, watch->frame, sizeof(watch->frame), frame_at(n_frames));
    if (got < 0)
        return dv_fail(err, DV_DATA_LOSS, "%s cannot be read after a commit", files->wal);
    if (got < (ssize_t)sizeof(watch->frame))
        return fail_cut(files->wal, err);
    if (memcmp(watch->header + HEADER_SALTS_AT, watch->frame + FRAME_SALTS_AT, SALTS_BYTES) != 0)
        return fail_overwritten(files->wal, err);
    watch->mark.n_frames = n_frames;
    watch->mark.is_home = false;
    dv_wal_mark_write(watch->mark_fd, &watch->mark);
    return true;
}

void dv_store_watch_home(struct dv_store_watch *watch, const struct dv_store_files *files)
{
    if (!watch->is_started)
        return;
    watch->mark.is_home = true;
    watch->mark.base = dv_wal_base_of(files->path);
    dv_wal_mark_write(watch->mark_fd, &watch->mark);
}
