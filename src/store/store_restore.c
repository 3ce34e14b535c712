/* store_restore.c - a copy takes the place of a store that nobody has open. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "store/db.h"
#include "store/store.h"
#include "store/store_files.h"

#define BLOCK_BYTES (64u * 1024u)

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, bytes, n);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes += written;
        n -= (size_t)written;
    }
    return true;
}

bool dv_store_is_copy(const char *path, struct dv_err *err)
{
    static const char magic[] = "SQLite format 3"; /* with its NUL */
    DV_CLEANUP(dv_close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char begin[sizeof(magic)];
    ssize_t n;

    if (fd < 0)
        return dv_fail_errno(err, errno, "open %s", path);
    n = read(fd, begin, sizeof(begin));
    if (n < 0)
        return dv_fail_errno(err, errno, "read %s", path);
    if (n != sizeof(begin) || memcmp(begin, magic, sizeof(magic)) != 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%s is no copy of a state", path);
    return true;
}

static bool copy_bytes(const char *from, const char *to, struct dv_arena *arena, struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd) int in = open(from, O_RDONLY | O_CLOEXEC);
    DV_CLEANUP(dv_close_fd) int out = -1;
    char *block = dv_arena_alloc_raw(arena, BLOCK_BYTES, 1);
    ssize_t n = 0;

    if (in < 0)
        return dv_fail_errno(err, errno, "open %s", from);
    (void)unlink(to); /* what a crash left */
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0)
        return dv_fail_errno(err, errno, "make %s", to);
    do {
        n = read(in, block, BLOCK_BYTES);
        if (n > 0 && !write_all(out, block, (size_t)n))
            return dv_fail_errno(err, errno, "write %s", to);
    } while (n > 0 || (n < 0 && errno == EINTR));
    if (n < 0)
        return dv_fail_errno(err, errno, "read %s", from);
    return true;
}

/* A database with a note takes the place of another one also when that is cut off by a crash. */
static bool set_note(const char *path, const char *set_aside, struct dv_err *err)
{
    static const struct dv_store_schema none = {0};
    struct dv_store_db db;
    bool is_ok;

    if (!dv_store_db_open(&db, path, &none, err))
        return false;
    is_ok = set_aside ? dv_store_db_add_note(&db, set_aside, err) : dv_store_db_drop_note(&db, err);
    dv_store_db_close(&db);
    return is_ok;
}

/* Takes the copy away with what SQLite has put beside it, which it leaves when it cannot go on. */
static void drop_copy(const struct dv_store_files *files)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char path[PATH_MAX];

    for (size_t i = 0; i < DV_COUNT(suffixes); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", files->tmp, suffixes[i]);
        (void)unlink(path); /* gone is what we want */
    }
}

/* What is wrong with the copy was wrong before: the file that was given is named. */
static bool check_copy(const char *from, const char *copy, struct dv_err *err)
{
    struct dv_err found;

    if (dv_store_check_file(copy, &found))
        return true;
    return dv_fail(err, found.code, "%s cannot be restored: %s", from, found.msg);
}

static bool restore(const struct dv_store_files *files, const char *from, const char *former,
                    struct dv_arena *arena, struct dv_err *err)
{
    if (copy_bytes(from, files->tmp, arena, err) && check_copy(from, files->tmp, err) &&
        set_note(files->tmp, former, err))
        return dv_store_files_take_tmp(files, former, err) && set_note(files->path, NULL, err);
    drop_copy(files); /* nothing else was changed yet */
    return false;
}

bool dv_store_restore(dv_str path, const char *from, struct dv_arena *arena, dv_str *former,
                      struct dv_err *err)
{
    struct dv_store_files files = {.lock_fd = -1};
    char name[PATH_MAX];
    bool has_former;
    bool is_ok;

    if (!dv_store_files_open(&files, path, arena, err)) {
        dv_store_files_close(&files);
        return false;
    }
    dv_store_files_name_former(&files, name);
    has_former = access(files.path, F_OK) == 0;
    is_ok = restore(&files, from, name, arena, err);
    dv_store_files_close(&files);
    if (!is_ok)
        return dv_wrap(err, "store %.*s", DV_FMT(path));
    *former = has_former ? dv_str_copy(dv_str_from_c(name), arena) : DV_STR_NONE;
    return true;
}
