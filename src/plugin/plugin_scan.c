#include "plugin/plugin_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
/* IWYU pragma: no_include <bits/statx-generic.h> */
/* IWYU pragma: no_include <linux/stat.h> */

#include "base/arena.h"
#include "base/err.h"

/* The mode of directories that we make: the reference's agent gives its plugin directories the
 * same. */
#define DIR_MODE 0750

/* ---- one file ---- */

static uint64_t to_ns(struct statx_timestamp time)
{
    return (uint64_t)time.tv_sec * 1000000000u + time.tv_nsec;
}

static bool get_info(int dir, const char *name, int flags, struct statx *info)
{
    return statx(dir, name, flags, STATX_TYPE | STATX_INO | STATX_CTIME | STATX_BTIME, info) == 0;
}

/* Looks at what is at the end of all links. */
static void look(int dir, const char *name, struct dv_plugin_found *found)
{
    struct statx info;

    found->kind = DV_PLUGIN_FOUND_NOTHING;
    if (!get_info(dir, name, 0, &info))
        return;
    if (S_ISSOCK(info.stx_mode)) {
        found->kind = DV_PLUGIN_FOUND_SOCKET;
        found->file_id = (struct dv_plugin_file_id){
            .dev = (uint64_t)info.stx_dev_major << 32 | info.stx_dev_minor,
            .ino = info.stx_ino,
            .born_ns = to_ns(info.stx_mask & STATX_BTIME ? info.stx_btime : info.stx_ctime),
        };
        return;
    }
    found->kind = S_ISDIR(info.stx_mode) ? DV_PLUGIN_FOUND_DIR : DV_PLUGIN_FOUND_OTHER;
    if (found->kind == DV_PLUGIN_FOUND_DIR && get_info(dir, name, AT_SYMLINK_NOFOLLOW, &info) &&
        S_ISLNK(info.stx_mode))
        found->kind = DV_PLUGIN_FOUND_DIR_LINK;
}

/* ---- jobs ---- */

static void run_look(struct dv_plugin_scan *scan)
{
    for (size_t i = 0; i < scan->paths.n; i++) {
        struct dv_plugin_found *found = dv_vec_add_in(&scan->found, scan->arena);

        found->path = scan->paths.v[i];
        look(AT_FDCWD, found->path.p, found); /* paths end with NUL: see dv_plugin_scan_add */
    }
}

/* Keeps the entry if it is a socket or a directory. */
static bool keep_entry(struct dv_plugin_scan *scan, int dir, const char *name, struct dv_err *err)
{
    struct dv_plugin_found found = {0};

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return true;
    look(dir, name, &found);
    if (found.kind != DV_PLUGIN_FOUND_SOCKET && found.kind != DV_PLUGIN_FOUND_DIR)
        return true;
    if (scan->found.n >= DV_PLUGIN_SCAN_FOUND_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "%.*s: more than %u entries; the others are not looked at",
                       DV_FMT(scan->paths.v[0]), DV_PLUGIN_SCAN_FOUND_MAX);
    found.path = dv_str_printf(scan->arena, "%.*s/%s", DV_FMT(scan->paths.v[0]), name);
    *dv_vec_add_in(&scan->found, scan->arena) = found;
    return true;
}

static void run_list(struct dv_plugin_scan *scan)
{
    const char *path = scan->paths.v[0].p;
    const struct dirent *entry;
    DIR *dir = opendir(path);

    if (!dir) {
        (void)dv_fail_errno(&scan->err, errno, "list %s", path);
        return;
    }
    for (;;) {
        errno = 0;
        entry = readdir(dir);
        if (!entry && errno != 0)
            (void)dv_fail_errno(&scan->err, errno, "list %s", path);
        if (!entry || !keep_entry(scan, dirfd(dir), entry->d_name, &scan->err))
            break;
    }
    (void)closedir(dir); /* cannot fail in a way that matters: it was only read */
}

static bool make_dir(const char *path, struct dv_err *err)
{
    struct stat info;

    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ||
               dv_fail(err, DV_FAILED_PRECONDITION, "%s is not a directory", path);
    if (errno != ENOENT)
        return dv_fail_errno(err, errno, "look at %s", path);
    /* Somebody else may have made it meanwhile. */
    if (mkdir(path, DIR_MODE) == 0 || errno == EEXIST)
        return true;
    return dv_fail_errno(err, errno, "make directory %s", path);
}

static void run_make(struct dv_plugin_scan *scan)
{
    dv_str path = scan->paths.v[0];

    for (size_t i = 1; i <= path.n; i++)
        if ((i == path.n || path.p[i] == '/') &&
            !make_dir(dv_str_to_c(dv_str_slice(path, 0, i), scan->arena), &scan->err))
            return;
}

/* Runs the job on a worker thread, where it may block. */
static void on_run(struct dv_work *work)
{
    static void (*const runs[])(struct dv_plugin_scan *) = {
        [DV_PLUGIN_SCAN_MAKE] = run_make,
        [DV_PLUGIN_SCAN_LIST] = run_list,
        [DV_PLUGIN_SCAN_LOOK] = run_look,
    };
    struct dv_plugin_scan *scan = DV_CONTAINER(work, struct dv_plugin_scan, work);

    runs[scan->kind](scan);
}

struct dv_plugin_scan *dv_plugin_scan_new(enum dv_plugin_scan_kind kind, dv_str path)
{
    struct dv_plugin_scan *scan = DV_ALLOC(struct dv_plugin_scan);

    scan->work.run = on_run;
    scan->kind = kind;
    scan->arena = dv_arena_new();
    dv_plugin_scan_add(scan, path);
    return scan;
}

void dv_plugin_scan_add(struct dv_plugin_scan *scan, dv_str path)
{
    *dv_vec_add_in(&scan->paths, scan->arena) =
        (dv_str){dv_str_to_c(path, scan->arena), path.n}; /* ends with NUL */
}

void dv_plugin_scan_free(struct dv_plugin_scan *scan)
{
    if (!scan)
        return;
    dv_arena_free(scan->arena);
    free(scan);
}
