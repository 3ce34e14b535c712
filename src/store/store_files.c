#include "store/store_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "store/db.h"

/* Room for the longest of our suffixes, ".damaged-20240501T120000.123456Z-journal". */
#define SUFFIX_BYTES_MAX 48u

static const char *with_suffix(dv_str path, const char *suffix, struct dv_arena *arena)
{
    return dv_str_to_c(dv_str_printf(arena, "%.*s%s", DV_FMT(path), suffix), arena);
}

static const char *dir_of(const char *path, struct dv_arena *arena)
{
    const char *slash = strrchr(path, '/');

    if (slash == path)
        return "/";
    return dv_str_to_c((dv_str){path, (size_t)(slash - path)}, arena);
}

/* Fails with the number of the process that holds the lock, which it wrote into the lock file. */
static bool fail_held(int lock_fd, struct dv_err *err)
{
    char text[32];
    ssize_t n = pread(lock_fd, text, sizeof(text), 0);
    uint64_t pid;

    if (n <= 0 || !dv_str_to_u64(dv_str_trim((dv_str){text, (size_t)n}), &pid))
        return dv_fail(err, DV_ALREADY_EXISTS, "another process has it open");
    return dv_fail(err, DV_ALREADY_EXISTS, "process %llu has it open", (unsigned long long)pid);
}

static bool take_lock(struct dv_store_files *files, struct dv_err *err)
{
    int fd = open(files->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

    if (fd < 0)
        return dv_fail_errno(err, errno, "%s", files->lock);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int errnum = errno;

        if (errnum == EWOULDBLOCK)
            (void)fail_held(fd, err);
        else
            (void)dv_fail_errno(err, errnum, "%s", files->lock);
        dv_close_fd(&fd);
        return false;
    }
    /* The number is only for the message above: a full disk that keeps it out is no reason to
     * fail. */
    if (ftruncate(fd, 0) == 0)
        (void)dprintf(fd, "%ld\n", (long)getpid());
    files->lock_fd = fd;
    return true;
}

/* Refuses what is not a regular file before any of the files is opened: an open would wait for a
 * pipe, and a link would lead elsewhere. */
static bool check_private(struct dv_store_files *files, struct dv_err *err)
{
    const char *const all[] = {files->path, files->wal,  files->journal, files->lock,
                               files->mark, files->next, files->tmp};

    for (size_t i = 0; i < DV_COUNT(all); i++) {
        unsigned old_mode;

        if (!dv_file_make_private(all[i], false, 0600, &old_mode, err))
            return false;
        if (old_mode != 0 && !files->old_mode) {
            files->old_mode = old_mode;
            files->fixed = all[i];
        }
    }
    return true;
}

bool dv_store_files_open(struct dv_store_files *files, dv_str path, struct dv_arena *arena,
                         struct dv_err *err)
{
    /* SQLite takes "file:..." for a URI, and the directory is needed by its name: so every path
     * begins with '/' or './'. */
    const char *before = path.n > 0 && path.p[0] == '/' ? "" : "./";
    dv_str whole = dv_str_printf(arena, "%s%.*s", before, DV_FMT(path));

    files->lock_fd = -1;
    if (path.n == 0 || memchr(path.p, '\0', path.n) || whole.n + SUFFIX_BYTES_MAX > PATH_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "store: not the name of a file, or too long: \"%.*s\"",
                       (int)dv_size_min(path.n, 100), path.p ? path.p : "");
    files->path = with_suffix(whole, "", arena);
    files->wal = with_suffix(whole, "-wal", arena);
    files->journal = with_suffix(whole, "-journal", arena);
    files->lock = with_suffix(whole, ".lock", arena);
    files->mark = with_suffix(whole, ".mark", arena);
    files->tmp = with_suffix(whole, ".tmp", arena);
    files->next = with_suffix(whole, ".next", arena);
    files->dir = dir_of(files->path, arena);
    return (check_private(files, err) && take_lock(files, err)) ||
           dv_wrap(err, "store %s", files->path);
}

void dv_store_files_close(struct dv_store_files *files)
{
    dv_close_fd(&files->lock_fd);
    files->lock_fd = -1;
}

static bool is_there(const char *path)
{
    struct stat about;

    return lstat(path, &about) == 0;
}

static bool sync_path(const char *path, int flags, struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd) int fd = open(path, flags | O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) != 0)
        return dv_fail_errno(err, errno, "sync %s", path);
    return true;
}

static bool sync_dir(const struct dv_store_files *files, struct dv_err *err)
{
    return sync_path(files->dir, O_DIRECTORY, err);
}

static bool move(const char *from, const char *to, struct dv_err *err)
{
    if (rename(from, to) != 0)
        return dv_fail_errno(err, errno, "rename %s to %s", from, to);
    return true;
}

/* Makes a new database at `path`, complete and durable. */
static bool make(const struct dv_store_files *files, const struct dv_store_content *content,
                 const char *path, struct dv_err *err)
{
    int fd = open(files->tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return dv_fail_errno(err, errno, "make %s", files->tmp);
    dv_close_fd(&fd);
    if (dv_store_db_create(files->tmp, content, err) && sync_path(files->tmp, O_NOFOLLOW, err) &&
        move(files->tmp, path, err))
        return sync_dir(files, err);
    (void)unlink(files->tmp); /* half a database is of no use to anybody */
    return false;
}

static bool move_aside(const char *path, const char *set_aside, const char *suffix,
                       struct dv_err *err)
{
    char to[PATH_MAX];

    if (!is_there(path))
        return true;
    /* SUFFIX_BYTES_MAX leaves room: nothing is cut. */
    (void)snprintf(to, sizeof(to), "%.*s%s", (int)(sizeof(to) - sizeof("-journal")), set_aside,
                   suffix);
    return move(path, to, err);
}

/* Moves the old files aside and lets path.next take their place. */
static bool finish(const struct dv_store_files *files, const char *set_aside, struct dv_err *err)
{
    return move_aside(files->path, set_aside, "", err) &&
           move_aside(files->wal, set_aside, "-wal", err) &&
           move_aside(files->journal, set_aside, "-journal", err) && sync_dir(files, err) &&
           move(files->next, files->path, err) && sync_dir(files, err);
}

/* Prints the name for an old file, with the time as "20240501T120000.123456Z": without the
 * characters that are awkward in names. `what` has at most as many letters as "damaged". */
static void print_name(const char *path, const char *what, char name[PATH_MAX])
{
    char time[DV_TIME_BYTES];
    size_t n = 0;

    dv_time_print(dv_clock_wall_ns(dv_clock_real()), time);
    for (const char *c = time; *c; c++)
        if (*c != '-' && *c != ':')
            time[n++] = *c;
    time[n] = '\0';
    (void)snprintf(name, PATH_MAX, "%s.%s-%s", path, what, time); /* SUFFIX_BYTES_MAX leaves room */
}

static bool make_and_finish(const struct dv_store_files *files,
                            const struct dv_store_schema *schema, enum dv_store_rest rest,
                            struct dv_err *err)
{
    char set_aside[PATH_MAX];
    struct dv_store_content content = {
        .schema = schema,
        .set_aside = set_aside,
        .rows_from = rest == DV_STORE_KEEP_ROWS && is_there(files->path) ? files->path : NULL,
    };

    print_name(files->path, "damaged", set_aside);
    return make(files, &content, files->next, err) && finish(files, set_aside, err);
}

/* Finishes a replacement that a crash cut off: path.next is complete, and notes the name for the
 * old files. */
static bool finish_old(const struct dv_store_files *files, const struct dv_store_schema *schema,
                       enum dv_store_rest rest, struct dv_err *err)
{
    struct dv_store_db db;
    char *set_aside = NULL;
    bool is_ok;

    is_ok = dv_store_db_open(&db, files->next, schema, err) &&
            dv_store_db_load_note(&db, &set_aside, err);
    dv_store_db_close(&db);
    if (db.is_damaged || (is_ok && !set_aside)) {
        /* path.next is damaged too, and goes: the database that it was to replace is no better for
         * it. */
        (void)unlink(files->next); /* if it stays, making another one fails and says so */
        return make_and_finish(files, schema, rest, err);
    }
    if (is_ok)
        is_ok = finish(files, set_aside, err);
    free(set_aside);
    return is_ok;
}

bool dv_store_files_replace(const struct dv_store_files *files,
                            const struct dv_store_schema *schema, enum dv_store_rest rest,
                            struct dv_err *err)
{
    if (is_there(files->next)) /* an earlier attempt has got this far */
        return finish_old(files, schema, rest, err);
    return make_and_finish(files, schema, rest, err);
}

bool dv_store_files_prepare(const struct dv_store_files *files,
                            const struct dv_store_schema *schema, enum dv_store_rest rest,
                            struct dv_err *err)
{
    const struct dv_store_content nothing = {.schema = schema};
    struct stat about;

    (void)unlink(files->tmp); /* the leftover of a crash; it may be gone already */
    if (is_there(files->next))
        return finish_old(files, schema, rest, err);
    if (lstat(files->path, &about) != 0) {
        int errnum = errno;

        if (errnum != ENOENT)
            return dv_fail_errno(err, errnum, "open");
        /* They belong to a database that is gone. */
        if (is_there(files->wal) || is_there(files->journal))
            return dv_store_files_replace(files, schema, rest, err);
        return make(files, &nothing, files->path, err);
    }
    if (!S_ISREG(about.st_mode))
        return dv_fail(err, DV_FAILED_PRECONDITION, "not a regular file");
    if (about.st_size == 0) /* SQLite would take an empty file for a new database */
        return dv_store_files_replace(files, schema, rest, err);
    if ((about.st_mode & 0777) != 0600 && chmod(files->path, 0600) != 0)
        return dv_fail_errno(err, errno, "chmod");
    return true;
}

void dv_store_files_name_former(const struct dv_store_files *files, char name[PATH_MAX])
{
    print_name(files->path, "former", name);
}

bool dv_store_files_take_tmp(const struct dv_store_files *files, const char *set_aside,
                             struct dv_err *err)
{
    /* The mark speaks of the old log. Without it the worst is that a cut log is not noticed. */
    (void)unlink(files->mark);
    return sync_path(files->tmp, O_NOFOLLOW, err) && move(files->tmp, files->next, err) &&
           sync_dir(files, err) && finish(files, set_aside, err);
}

bool dv_store_files_drop_wal(const struct dv_store_files *files, char name[PATH_MAX],
                             struct dv_err *err)
{
    char set_aside[PATH_MAX];

    print_name(files->path, "damaged", set_aside);
    (void)snprintf(name, PATH_MAX, "%.*s-wal", PATH_MAX - 5,
                   set_aside); /* the same name that move_aside gives */
    return move_aside(files->wal, set_aside, "-wal", err) && sync_dir(files, err);
}
