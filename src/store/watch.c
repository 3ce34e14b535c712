#include "store/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "store/db.h"
#include "store/files.h"

#define WAL_HEADER_BYTES 32u
#define FRAME_BYTES (24u + DV_STORE_PAGE_BYTES)

/* SQLite makes the log when it opens the database, and never another one while it is open. */
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
    /* One that cannot be made is missed only after a crash. */
    watch->mark_fd = dv_wal_mark_open(files->mark);
    watch->mark.base = dv_wal_base_of(files->path);
    dv_wal_mark_write(watch->mark_fd, &watch->mark);
}

void dv_store_watch_stop(struct dv_store_watch *watch)
{
    if (watch->is_started && watch->mark.is_home && watch->mark_fd >= 0)
        (void)fdatasync(watch->mark_fd); /* the log that it speaks of is about to go */
    if (!watch->is_started)
        return;
    watch->is_started = false;
    dv_close_fd(&watch->wal_fd);
    dv_close_fd(&watch->mark_fd);
    watch->wal_fd = -1;
    watch->mark_fd = -1;
}

static bool check_wal(const struct dv_store_watch *watch, const struct dv_store_files *files,
                      struct dv_err *err)
{
    off_t wanted = WAL_HEADER_BYTES + (off_t)(watch->mark.n_frames * FRAME_BYTES);
    struct stat named;
    struct stat open_one;

    if (watch->wal_fd < 0 || fstat(watch->wal_fd, &open_one) != 0)
        return true; /* not known */
    if (stat(files->wal, &named) != 0)
        return dv_fail(err, DV_DATA_LOSS, "%s was removed while it was in use", files->wal);
    if (named.st_ino != open_one.st_ino || named.st_dev != open_one.st_dev)
        return dv_fail(err, DV_DATA_LOSS, "%s was replaced while it was in use", files->wal);
    if (!watch->mark.is_home && watch->mark.n_frames > 0 && open_one.st_size < wanted)
        return dv_fail(err, DV_DATA_LOSS, "%s was cut short while it was in use", files->wal);
    return true;
}

bool dv_store_watch_check(struct dv_store_watch *watch, const struct dv_store_files *files,
                          struct dv_err *err)
{
    struct stat named;

    if (!watch->is_started || watch->file == 0)
        return true; /* not known */
    if (stat(files->path, &named) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return true; /* the disk tells that itself */
        return dv_fail(err, DV_DATA_LOSS, "%s was removed while it was in use", files->path);
    }
    if (named.st_ino != watch->file || named.st_dev != watch->device)
        return dv_fail(err, DV_DATA_LOSS, "%s was replaced while it was in use", files->path);
    if (named.st_size < watch->size_bytes)
        return dv_fail(err, DV_DATA_LOSS, "%s was cut short while it was in use", files->path);
    watch->size_bytes = named.st_size;
    return check_wal(watch, files, err);
}

void dv_store_watch_commit(struct dv_store_watch *watch, const struct dv_store_files *files,
                           uint64_t n_frames)
{
    struct dv_wal_salts salts;

    if (!watch->is_started)
        return;
    if (watch->wal_fd < 0)
        open_wal(watch, files);
    if (watch->wal_fd < 0 || !dv_wal_read_salts(watch->wal_fd, &salts))
        return;
    watch->mark =
        (struct dv_wal_mark){.salts = salts, .n_frames = n_frames, .base = watch->mark.base};
    dv_wal_mark_write(watch->mark_fd, &watch->mark);
}

void dv_store_watch_home(struct dv_store_watch *watch, const struct dv_store_files *files)
{
    if (!watch->is_started)
        return;
    watch->mark.is_home = true;
    watch->mark.base = dv_wal_base_of(files->path);
    dv_wal_mark_write(watch->mark_fd, &watch->mark);
}
