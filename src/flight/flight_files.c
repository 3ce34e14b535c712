#include "flight/flight_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "record/record.h"

/* Names in a ring are "davit-00000042.dav": by name they are in the order of time. */
#define NAME_PREFIX "davit-"
#define NAME_DIGITS 8
#define PATH_BYTES 4096u
#define FILE_MODE 0600
#define DIR_MODE 0700

#define FILE_BYTES_DEFAULT (16u * 1024u * 1024u)
#define N_FILES_DEFAULT 8u

static dv_str own(dv_str text)
{
    char *copy = dv_alloc(text.n + 1);

    if (text.n > 0)
        memcpy(copy, text.p, text.n);
    return (dv_str){copy, text.n};
}

static void disown(dv_str *text)
{
    free((void *)(uintptr_t)text->p); /* it is ours: own() made it */
    *text = (dv_str){NULL, 0};
}

void dv_flight_files_init(struct dv_flight_files *files, const struct dv_flight_options *options)
{
    *files = (struct dv_flight_files){.options = *options, .fd = -1};
    files->options.dir = own(options->dir);
    files->options.file = own(options->file);
    files->options.about = own(options->about);
    if (files->options.file_bytes_max == 0)
        files->options.file_bytes_max = FILE_BYTES_DEFAULT;
    if (files->options.n_files_max == 0)
        files->options.n_files_max = N_FILES_DEFAULT;
}

static void close_file(struct dv_flight_files *files)
{
    dv_close_fd(&files->fd);
    files->fd = -1;
    files->n_bytes = 0;
}

void dv_flight_files_fini(struct dv_flight_files *files)
{
    close_file(files);
    disown(&files->options.dir);
    disown(&files->options.file);
    disown(&files->options.about);
}

static bool is_ring(const struct dv_flight_files *files)
{
    return files->options.file.n == 0;
}

/* Whether the file has a name still: it may have been removed, alone or with its directory. */
static bool is_there(const struct dv_flight_files *files)
{
    struct stat about;

    return fstat(files->fd, &about) == 0 && about.st_nlink > 0;
}

bool dv_flight_files_has_room(const struct dv_flight_files *files, uint64_t n_bytes)
{
    return files->fd >= 0 && files->n_bytes + n_bytes <= files->options.file_bytes_max;
}

bool dv_flight_files_needs_new(const struct dv_flight_files *files, uint64_t n_bytes)
{
    /* A record that is longer than a file gets one for itself. */
    bool is_fresh = is_ring(files) && files->n_bytes <= files->n_head_bytes;

    if (files->fd < 0 || (!dv_flight_files_has_room(files, n_bytes) && !is_fresh))
        return true;
    return is_ring(files) && !is_there(files);
}

/* ---- the ring ---- */

/* The number in a name of the ring; false: it is another file. */
static bool number_of(const char *name, uint64_t *number)
{
    dv_str text = dv_str_from_c(name);
    const dv_str prefix = DV_STR(NAME_PREFIX);
    const dv_str suffix = DV_STR(DV_RECORD_SUFFIX);

    if (text.n < prefix.n + NAME_DIGITS + suffix.n || !dv_str_starts_with(text, prefix) ||
        !dv_str_ends_with(text, suffix))
        return false;
    text = dv_str_slice(text, prefix.n, text.n - suffix.n);
    return dv_str_is_digits(text) && dv_str_to_u64(text, number);
}

static bool path_of(const struct dv_flight_files *files, uint64_t number, char path[PATH_BYTES])
{
    int n = snprintf(path, PATH_BYTES, "%.*s/" NAME_PREFIX "%0*" PRIu64 DV_RECORD_SUFFIX,
                     DV_FMT(files->options.dir), NAME_DIGITS, number);

    return n > 0 && (size_t)n < PATH_BYTES;
}

/* What is in the directory: how many files of a ring, and their numbers. */
struct ring {
    size_t n;
    uint64_t first;
    uint64_t last;
};

static bool read_ring(const struct dv_flight_files *files, struct ring *ring, struct dv_err *err)
{
    DIR *dir = opendir(files->options.dir.p);
    const struct dirent *entry;

    *ring = (struct ring){.first = UINT64_MAX};
    if (!dir)
        return dv_fail_errno(err, errno, "read %s", files->options.dir.p);
    while ((entry = readdir(dir)) != NULL) {
        uint64_t number;

        if (!number_of(entry->d_name, &number))
            continue;
        ring->n++;
        ring->first = dv_u64_min(ring->first, number);
        ring->last = dv_u64_max(ring->last, number);
    }
    (void)closedir(dir); /* it was only read */
    return true;
}

/* Makes room for one file more. */
static bool remove_oldest(const struct dv_flight_files *files, struct ring *ring,
                          struct dv_err *err)
{
    char path[PATH_BYTES];

    while (ring->n >= files->options.n_files_max) {
        if (!path_of(files, ring->first, path))
            return dv_fail(err, DV_INVALID_ARGUMENT, "%s is too long", files->options.dir.p);
        if (unlink(path) < 0 && errno != ENOENT)
            return dv_fail_errno(err, errno, "remove %s", path);
        if (!read_ring(files, ring, err))
            return false;
    }
    return true;
}

static bool make_dir(const char *dir, struct dv_err *err)
{
    if (mkdir(dir, DIR_MODE) < 0 && errno != EEXIST)
        return dv_fail_errno(err, errno, "make %s", dir);
    return true;
}

static bool open_next(struct dv_flight_files *files, struct dv_err *err)
{
    char path[PATH_BYTES];
    struct ring ring;

    if (!make_dir(files->options.dir.p, err) || !read_ring(files, &ring, err) ||
        !remove_oldest(files, &ring, err))
        return false;
    files->number = dv_u64_max(files->number, ring.last) + 1;
    if (!path_of(files, files->number, path))
        return dv_fail(err, DV_INVALID_ARGUMENT, "%s is too long", files->options.dir.p);
    files->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    return files->fd >= 0 || dv_fail_errno(err, errno, "make %s", path);
}

/* ---- one file ---- */

static bool open_single(struct dv_flight_files *files, struct dv_err *err)
{
    const char *path = files->options.file.p;

    if (files->has_begun)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "%s is full", path);
    if (unlink(path) < 0 && errno != ENOENT)
        return dv_fail_errno(err, errno, "replace %s", path);
    files->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (files->fd < 0)
        return dv_fail_errno(err, errno, "make %s", path);
    files->has_begun = true;
    return true;
}

/* ---- both ---- */

bool dv_flight_files_begin(struct dv_flight_files *files, dv_str head, struct dv_err *err)
{
    if (!is_ring(files) && files->fd >= 0)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "%s is full", files->options.file.p);
    close_file(files);
    if (!(is_ring(files) ? open_next(files, err) : open_single(files, err)))
        return false;
    if (dv_flight_files_write(files, head, err)) {
        files->n_head_bytes = files->n_bytes;
        return true;
    }
    close_file(files); /* a file without its head is of no use */
    files->has_begun = false;
    return false;
}

bool dv_flight_files_write(struct dv_flight_files *files, dv_str frames, struct dv_err *err)
{
    for (size_t at = 0; at < frames.n;) {
        ssize_t n = write(files->fd, frames.p + at, frames.n - at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            (void)dv_fail_errno(err, n < 0 ? errno : ENOSPC, "write the recording");
            /* Where that fails, the reader finds the end of the part by itself. */
            if (ftruncate(files->fd, (off_t)files->n_bytes) < 0 ||
                lseek(files->fd, (off_t)files->n_bytes, SEEK_SET) < 0)
                close_file(files);
            return false;
        }
        at += (size_t)n;
    }
    files->n_bytes += frames.n;
    return true;
}
