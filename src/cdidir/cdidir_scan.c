#include "cdidir/cdidir_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/vec.h"
#include "cdi/cdi.h"
#include "cdidir/cdidir.h"

/* Within this time a file can be written twice under one time stamp: file systems count in ticks of
 * the kernel, some in seconds or two. Such a file is read again by the next look. */
#define STAMP_GRAIN_NS INT64_C(2000000000)
#define NS_PER_S INT64_C(1000000000)

static int64_t to_ns(struct timespec time)
{
    return (int64_t)time.tv_sec * NS_PER_S + time.tv_nsec;
}

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now); /* what files are stamped with; cannot fail */
    return to_ns(now);
}

static struct dv_cdi_stamp stamp_of(const struct stat *about)
{
    return (struct dv_cdi_stamp){
        .dev = about->st_dev,
        .ino = about->st_ino,
        .size = (uint64_t)about->st_size,
        .mtime_ns = to_ns(about->st_mtim),
        .ctime_ns = to_ns(about->st_ctim),
    };
}

static bool stamp_eq(const struct dv_cdi_stamp *a, const struct dv_cdi_stamp *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

/* ---- one file ---- */

static const char *type_name(mode_t mode)
{
    static const struct {
        mode_t type;
        const char *name;
    } types[] = {
        {S_IFIFO,  "a pipe"            },
        {S_IFSOCK, "a socket"          },
        {S_IFCHR,  "a character device"},
        {S_IFBLK,  "a block device"    },
        {S_IFDIR,  "a directory"       },
    };

    for (size_t i = 0; i < DV_COUNT(types); i++) {
        if ((mode & S_IFMT) == types[i].type)
            return types[i].name;
    }
    return "something else";
}

static bool fail_type(mode_t mode, struct dv_err *err)
{
    return dv_fail(err, DV_FAILED_PRECONDITION, "%s, not a regular file", type_name(mode));
}

/* It was looked at before and is a regular file: so no device is opened, which may do something.
 * Should it be a pipe by now, nobody waits for its writer. */
static bool read_text(const char *path, struct dv_arena *arena, struct dv_cdi_stamp *stamp,
                      dv_str *text, struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat about;

    if (fd < 0)
        return dv_fail_errno(err, errno, "open");
    if (fstat(fd, &about) < 0)
        return dv_fail_errno(err, errno, "look at it");
    if (!S_ISREG(about.st_mode))
        return fail_type(about.st_mode, err);
    *stamp = stamp_of(&about); /* before it is read: what is written from now on shows */
    return dv_file_read_fd(fd, DV_CDI_SPEC_BYTES_MAX, arena, text, err);
}

/* Whether there is room for it beside those before it. */
static bool count_file(struct dv_cdi_scan *scan, uint64_t size, struct dv_err *err)
{
    if (scan->n_bytes + size > DV_CDI_DIRS_BYTES_MAX) {
        scan->is_over = true;
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "%llu bytes: with the specs before it more than the %u that are allowed",
                       (unsigned long long)size, DV_CDI_DIRS_BYTES_MAX);
    }
    scan->n_bytes += size;
    return true;
}

/* A spec, unless the file says what it said before. */
static void take_text(struct dv_cdi_found *found, const struct dv_cdi_look *before, dv_str text,
                      const struct dv_err *unreadable)
{
    struct dv_cdi_file file = {
        .path = found->look.path,
        .text = text,
        .priority = found->look.priority,
        .unreadable = unreadable,
    };

    /* The two kinds of text must not be taken for each other. */
    found->look.hash = unreadable ? ~dv_hash(dv_str_from_c(unreadable->msg)) : dv_hash(text);
    if (!before || before->hash != found->look.hash)
        found->spec = dv_cdi_spec_new(&file);
}

/* Whether it is worth reading; `about` is what is at the end of all links. */
static bool is_readable(struct dv_cdi_scan *scan, const struct stat *about, struct dv_err *err)
{
    if (!S_ISREG(about->st_mode))
        return fail_type(about->st_mode, err);
    if ((uint64_t)about->st_size > DV_CDI_SPEC_BYTES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "%llu bytes: at most %u are allowed",
                       (unsigned long long)about->st_size, DV_CDI_SPEC_BYTES_MAX);
    return count_file(scan, (uint64_t)about->st_size, err);
}

static void look_at(struct dv_cdi_scan *scan, struct dv_cdi_found *found, const struct stat *about)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_cdi_look *before = dv_map_get(&scan->known, found->look.key);
    struct dv_cdi_look *look = &found->look;
    int64_t begun_ns = now_ns();
    dv_str text = DV_STR_NONE;
    struct dv_err err;

    look->stamp = stamp_of(about);
    if (!is_readable(scan, about, &err)) {
        take_text(found, before, DV_STR_NONE, &err);
        return;
    }
    look->n_counted = (uint64_t)about->st_size;
    if (before && before->is_sure && stamp_eq(&before->stamp, &look->stamp)) {
        look->hash = before->hash;
        look->is_sure = true;
        return;
    }
    if (read_text(dv_str_to_c(look->path, scratch), scratch, &look->stamp, &text, &err)) {
        look->is_sure = look->stamp.ctime_ns + STAMP_GRAIN_NS < begun_ns;
        take_text(found, before, text, NULL);
    } else {
        take_text(found, before, DV_STR_NONE, &err);
    }
}

/* ---- one directory ---- */

struct names {
    dv_str *v;
    size_t n;
    size_t size;
};

static void list_dir(struct dv_cdi_scan *scan, dv_str dir, struct names *names)
{
    DIR *folder = opendir(dv_str_to_c(dir, scan->arena));
    const struct dirent *entry;
    int errnum = errno;
    struct dv_err err;

    if (!folder) {
        if (errnum == ENOENT)
            return;
        (void)dv_fail_errno(&err, errnum, "cannot be listed");
        dv_cdi_scan_add_problem(scan, dir, dv_str_from_c(err.msg));
        return;
    }
    for (errno = 0; (entry = readdir(folder)); errno = 0) {
        if (!dv_cdi_is_spec_path(dv_str_from_c(entry->d_name)))
            continue;
        if (scan->found.n + names->n >= DV_CDI_DIRS_FILES_MAX) {
            scan->is_over = true;
            dv_cdi_scan_add_problem(
                scan, dir,
                dv_str_printf(scan->arena,
                              "more than %u specs, with those before it: some of it "
                              "are not used",
                              DV_CDI_DIRS_FILES_MAX));
            break;
        }
        *dv_vec_add_in(names, scan->arena) = dv_str_copy(dv_str_from_c(entry->d_name), scan->arena);
    }
    errnum = errno;
    (void)closedir(folder); /* it was only read */
    if (!entry && errnum != 0) {
        (void)dv_fail_errno(&err, errnum, "not listed to its end");
        dv_cdi_scan_add_problem(scan, dir, dv_str_from_c(err.msg));
    }
    if (names->n > 0)
        qsort(names->v, names->n, sizeof(names->v[0]), dv_str_compare);
}

/* Directories, pipes and the like are no specs, whatever their names. A link was meant as one,
 * unless it is to a directory. */
static bool is_spec(const char *path, struct stat *about, bool *is_missing, struct dv_err *err)
{
    struct stat itself;

    *is_missing = stat(path, about) < 0;
    if (*is_missing)
        (void)dv_fail_errno(err, errno, "a link to nothing to read");
    else if (S_ISREG(about->st_mode) || S_ISDIR(about->st_mode))
        return S_ISREG(about->st_mode);
    return lstat(path, &itself) == 0 && S_ISLNK(itself.st_mode); /* or it is gone again */
}

dv_str dv_cdi_file_key(dv_str path, uint32_t priority, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%u:%.*s", priority, DV_FMT(path));
}

static void add_file(struct dv_cdi_scan *scan, dv_str path, uint32_t priority)
{
    struct dv_cdi_found found = {
        .look = {.key = dv_cdi_file_key(path, priority, scan->arena),
                 .path = path,
                 .priority = priority},
    };
    struct dv_err err;
    struct stat about;
    bool is_missing;

    found.is_gone = !is_spec(dv_str_to_c(path, scan->arena), &about, &is_missing, &err);
    if (found.is_gone && !scan->is_named)
        return;
    if (!found.is_gone && is_missing)
        take_text(&found, dv_map_get(&scan->known, found.look.key), DV_STR_NONE, &err);
    else if (!found.is_gone)
        look_at(scan, &found, &about);
    *dv_vec_add_in(&scan->found, scan->arena) = found;
}

dv_str dv_cdi_file_path(dv_str dir, dv_str name, struct dv_arena *arena)
{
    const char *slash = dv_str_ends_with(dir, DV_STR("/")) ? "" : "/";

    return dv_str_printf(arena, "%.*s%s%.*s", DV_FMT(dir), slash, DV_FMT(name));
}

static void scan_dir(struct dv_cdi_scan *scan, uint32_t priority)
{
    dv_str dir = scan->dirs[priority];
    struct names names = {0};

    list_dir(scan, dir, &names);
    for (size_t i = 0; i < names.n; i++)
        add_file(scan, dv_cdi_file_path(dir, names.v[i], scan->arena), priority);
}

/* ---- all ---- */

struct dv_cdi_scan *dv_cdi_scan_new(const dv_str *dirs, size_t n_dirs)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_cdi_scan *scan = DV_NEW(arena, struct dv_cdi_scan);
    dv_str *copies = DV_NEW_ARRAY(arena, dv_str, n_dirs);

    for (size_t i = 0; i < n_dirs; i++)
        copies[i] = dv_str_copy(dirs[i], arena);
    scan->arena = arena;
    scan->dirs = copies;
    scan->n_dirs = n_dirs;
    dv_map_init(&scan->known);
    return scan;
}

void dv_cdi_scan_free(struct dv_cdi_scan *scan)
{
    if (!scan)
        return;
    for (size_t i = 0; i < scan->found.n; i++)
        dv_cdi_spec_unref(scan->found.v[i].spec);
    dv_map_fini(&scan->known);
    dv_arena_free(scan->arena);
}

void dv_cdi_scan_know(struct dv_cdi_scan *scan, const struct dv_cdi_look *look)
{
    struct dv_cdi_look *copy = DV_NEW(scan->arena, struct dv_cdi_look);

    *copy = *look;
    copy->key = dv_str_copy(look->key, scan->arena);
    copy->path = DV_STR_NONE;                        /* the key says it */
    (void)dv_map_set(&scan->known, copy->key, copy); /* keys are distinct */
}

void dv_cdi_scan_add_problem(struct dv_cdi_scan *scan, dv_str path, dv_str reason)
{
    *dv_vec_add_in(&scan->problems, scan->arena) =
        (struct dv_cdi_problem){dv_str_copy(path, scan->arena), dv_str_copy(reason, scan->arena)};
}

void dv_cdi_scan_name(struct dv_cdi_scan *scan, dv_str path, uint32_t priority)
{
    scan->is_named = true;
    *dv_vec_add_in(&scan->named, scan->arena) =
        (struct dv_cdi_named_file){dv_str_copy(path, scan->arena), priority};
}

void dv_cdi_scan_run(struct dv_cdi_scan *scan)
{
    for (size_t i = 0; i < scan->named.n; i++)
        add_file(scan, scan->named.v[i].path, scan->named.v[i].priority);
    for (size_t i = 0; !scan->is_named && i < scan->n_dirs; i++)
        scan_dir(scan, (uint32_t)i);
}

/* ---- reading once ---- */

size_t dv_cdi_dirs_split(dv_str text, struct dv_arena *arena, dv_str **dirs)
{
    dv_str rest = text.p ? text : DV_STR("");
    size_t n = 0;
    dv_str dir;

    *dirs = DV_NEW_ARRAY(arena, dv_str, rest.n / 2 + 1); /* each has a byte and a colon */
    while (dv_str_split(&rest, ':', &dir)) {
        if (dir.n > 0)
            (*dirs)[n++] = dv_str_copy(dir, arena);
    }
    return n;
}

void dv_cdi_dirs_read(const dv_str *dirs, size_t n_dirs, struct dv_arena *arena,
                      struct dv_cdi_reading *reading)
{
    struct dv_cdi_scan *scan = dv_cdi_scan_new(dirs, n_dirs);

    dv_cdi_scan_run(scan);
    *reading = (struct dv_cdi_reading){
        .specs = DV_NEW_ARRAY(arena, struct dv_cdi_spec *, scan->found.n),
        .problems = DV_NEW_ARRAY(arena, struct dv_cdi_problem, scan->problems.n),
    };
    for (size_t i = 0; i < scan->found.n; i++)
        reading->specs[reading->n_specs++] = dv_cdi_spec_ref(scan->found.v[i].spec);
    for (size_t i = 0; i < scan->problems.n; i++)
        reading->problems[reading->n_problems++] =
            (struct dv_cdi_problem){dv_str_copy(scan->problems.v[i].path, arena),
                                    dv_str_copy(scan->problems.v[i].reason, arena)};
    dv_cdi_scan_free(scan);
}

void dv_cdi_reading_fini(struct dv_cdi_reading *reading)
{
    for (size_t i = 0; i < reading->n_specs; i++)
        dv_cdi_spec_unref(reading->specs[i]);
    *reading = (struct dv_cdi_reading){0};
}
