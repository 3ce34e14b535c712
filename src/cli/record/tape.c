#include "cli/record/tape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "record/record.h"

/* The largest file that davitd writes, and one record over it. */
#define FILE_BYTES_MAX ((size_t)1100 * 1024 * 1024)

void dv_tape_init(struct dv_tape *tape, const dv_str *places, size_t n_places,
                  struct dv_arena *arena)
{
    *tape = (struct dv_tape){.arena = arena, .places = places, .n_places = n_places};
}

void dv_tape_fini(struct dv_tape *tape)
{
    dv_vec_fini(&tape->records);
    dv_vec_fini(&tape->files);
}

/* ---- one file ---- */

static struct dv_tape_file *find_file(struct dv_tape *tape, const char *path)
{
    struct dv_tape_file *file;

    for (size_t i = 0; i < tape->files.n; i++)
        if (strcmp(tape->files.v[i].path, path) == 0)
            return &tape->files.v[i];
    file = dv_vec_add(&tape->files);
    file->path = path;
    return file;
}

static void take_records(struct dv_tape *tape, struct dv_tape_file *file,
                         struct dv_record_reader *reader)
{
    enum dv_record_result result;
    struct dv_record record;

    while ((result = dv_record_next(reader, &record)) == DV_RECORD_READ ||
           result == DV_RECORD_DAMAGED) {
        if (result == DV_RECORD_DAMAGED) {
            (void)fprintf(stderr, "davit: %s: %llu bytes are damaged, and passed over\n",
                          file->path, (unsigned long long)reader->skipped);
            continue;
        }
        if (record.kind == DV_RECORD_FILE)
            file->run = record.connection;
        *dv_vec_add(&tape->records) = (struct dv_tape_record){record, file->run};
    }
    file->torn = reader->skipped;
}

static bool read_file(struct dv_tape *tape, const char *path, struct dv_err *err)
{
    struct dv_tape_file *file = find_file(tape, path);
    struct dv_record_reader reader;
    DV_CLEANUP(dv_close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    dv_str bytes;

    if (fd < 0)
        return dv_fail_errno(err, errno, "%s", path);
    if (lseek(fd, (off_t)file->at, SEEK_SET) < 0)
        return dv_fail_errno(err, errno, "%s", path);
    if (!dv_file_read_fd(fd, FILE_BYTES_MAX, tape->arena, &bytes, err))
        return dv_wrap(err, "%s", path);
    if (bytes.n == 0 && file->at > 0)
        return true;
    reader = (struct dv_record_reader){.bytes = bytes};
    if (file->at == 0 && !dv_record_reader_init(&reader, bytes, err))
        return dv_wrap(err, "%s", path);
    take_records(tape, file, &reader);
    file->at += reader.at;
    return true;
}

/* ---- directories ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool read_dir(struct dv_tape *tape, const char *path, struct dv_err *err)
{
    DIR *dir = opendir(path);
    DV_VEC(const char *) names = {0};
    const struct dirent *entry;
    bool is_ok = true;

    if (!dir)
        return dv_fail_errno(err, errno, "%s", path);
    while ((entry = readdir(dir)) != NULL)
        if (dv_str_ends_with(dv_str_from_c(entry->d_name), DV_STR(DV_RECORD_SUFFIX)))
            *dv_vec_add(&names) =
                dv_str_to_c(dv_str_printf(tape->arena, "%s/%s", path, entry->d_name), tape->arena);
    (void)closedir(dir); /* it was only read */
    if (names.n > 0)
        qsort(names.v, names.n, sizeof(names.v[0]), by_name);
    for (size_t i = 0; i < names.n && is_ok; i++) {
        is_ok = read_file(tape, names.v[i], err);
        /* The oldest file of a ring that is being written may go while we read. */
        if (!is_ok && err->code == DV_NOT_FOUND)
            is_ok = dv_succeed(err);
    }
    dv_vec_fini(&names);
    return is_ok;
}

bool dv_tape_read(struct dv_tape *tape, struct dv_err *err)
{
    for (size_t i = 0; i < tape->n_places; i++) {
        const char *path = dv_str_to_c(tape->places[i], tape->arena);
        struct stat about;

        if (stat(path, &about) < 0)
            return dv_fail_errno(err, errno, "%s", path);
        if (S_ISDIR(about.st_mode) ? !read_dir(tape, path, err) : !read_file(tape, path, err))
            return false;
    }
    if (tape->files.n == 0)
        return dv_fail(err, DV_NOT_FOUND, "%.*s: there are no recordings (*" DV_RECORD_SUFFIX ")",
                       DV_FMT(tape->places[0]));
    return true;
}

void dv_tape_tell_torn(const struct dv_tape *tape)
{
    for (size_t i = 0; i < tape->files.n; i++)
        if (tape->files.v[i].torn > 0)
            (void)fprintf(stderr,
                          "davit: %s: the last record is torn (%llu bytes): its writer was "
                          "stopped, or is at it\n",
                          tape->files.v[i].path, (unsigned long long)tape->files.v[i].torn);
}
