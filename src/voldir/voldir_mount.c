#include "voldir/voldir_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h> /* IWYU pragma: keep */
/* IWYU pragma: no_include <bits/statx-generic.h> */
/* IWYU pragma: no_include <linux/stat.h> */
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/vec.h"

#define MOUNTS "/proc/self/mountinfo"
/* A line of it has a few hundred bytes, and the kernel allows 100,000 mounts by default. */
#define MOUNTS_BYTES_MAX (64u * 1024u * 1024u)
/* A mount can hide others at the same place: they show when it is gone. */
#define ROUNDS_MAX 64u

typedef DV_VEC(dv_str) path_list;

bool dv_voldir_is_mounted(int parent, const char *name, bool *is_mounted, struct dv_err *err)
{
    struct statx about;

    if (statx(parent, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_TYPE,
              &about) < 0)
        return dv_fail_errno(err, errno, "look at %s", name);
    if (!(about.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
        return dv_fail(err, DV_UNIMPLEMENTED,
                       "the kernel does not tell what is mounted: Linux 5.8 does");
    *is_mounted = about.stx_attributes & STATX_ATTR_MOUNT_ROOT;
    return true;
}

static bool fail_mount(struct dv_err *err, int error, const char *what, const char *path)
{
    if (error == EPERM)
        return dv_fail(err, DV_PERMISSION_DENIED,
                       "mount %s at %s: not permitted: volumes need root with CAP_SYS_ADMIN", what,
                       path);
    return dv_fail_errno(err, error, "mount %s at %s", what, path);
}

bool dv_voldir_mount_memory(const char *path, uint64_t size_bytes, struct dv_err *err)
{
    char options[64] = "noswap";

    if (size_bytes > 0)
        (void)snprintf(options, sizeof(options), "size=%llu,noswap",
                       (unsigned long long)size_bytes);
    if (mount("tmpfs", path, "tmpfs", 0, options) == 0)
        return true;
    if (errno == EINVAL) { /* noswap is known from Linux 6.4 on */
        (void)snprintf(options, sizeof(options), "size=%llu", (unsigned long long)size_bytes);
        if (mount("tmpfs", path, "tmpfs", 0, size_bytes > 0 ? options : "") == 0)
            return true;
    }
    return fail_mount(err, errno, "tmpfs", path);
}

bool dv_voldir_mount_huge_pages(const char *path, uint64_t page_bytes, struct dv_err *err)
{
    char options[64];

    (void)snprintf(options, sizeof(options), "pagesize=%llu", (unsigned long long)page_bytes);
    if (mount("hugetlbfs", path, "hugetlbfs", 0, options) == 0)
        return true;
    return fail_mount(err, errno, "huge pages", path);
}

bool dv_voldir_bind(int fd, const char *path, struct dv_err *err)
{
    char source[64];

    (void)snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
    if (mount(source, path, NULL, MS_BIND, NULL) == 0)
        return true;
    return fail_mount(err, errno, "a part of a volume", path);
}

bool dv_voldir_unmount(const char *path, struct dv_err *err)
{
    if (umount2(path, UMOUNT_NOFOLLOW) == 0 || errno == EINVAL || errno == ENOENT)
        return true; /* nothing is mounted there, any more */
    if (errno == EBUSY && umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        return true;
    return dv_fail_errno(err, errno, "unmount %s", path);
}

static int octal(dv_str text, size_t at)
{
    int value = 0;

    if (at + 3 >= text.n)
        return -1;
    for (size_t i = at + 1; i <= at + 3; i++) {
        if (text.p[i] < '0' || text.p[i] > '7')
            return -1;
        value = value * 8 + (text.p[i] - '0');
    }
    return value;
}

/* Turns "\040" back into the blank that it stands for. */
static dv_str unescape(dv_str text, struct dv_arena *arena)
{
    char *out = dv_arena_alloc(arena, text.n + 1, 1);
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        int byte = text.p[i] == '\\' ? octal(text, i) : -1;

        out[n++] = byte >= 0 ? (char)byte : text.p[i];
        i += byte >= 0 ? 3 : 0;
    }
    return (dv_str){out, n};
}

/* Lists the mount points below the directory, in the order in which they were mounted: the fifth
 * field of each line (proc(5)). */
static bool list_below(dv_str dir, struct dv_arena *arena, path_list *paths, struct dv_err *err)
{
    dv_str prefix = dv_str_printf(arena, "%.*s/", DV_FMT(dir));
    dv_str text;
    dv_str line;

    if (!dv_file_read(DV_STR(MOUNTS), MOUNTS_BYTES_MAX, arena, &text, err))
        return false;
    while (dv_str_split(&text, '\n', &line)) {
        dv_str field = DV_STR_NONE;
        bool is_whole = true;

        for (int i = 0; i < 5; i++)
            is_whole = is_whole && dv_str_split(&line, ' ', &field);
        if (!is_whole)
            continue;
        field = unescape(field, arena);
        if (dv_str_starts_with(field, prefix))
            *dv_vec_add_in(paths, arena) = field;
    }
    return true;
}

bool dv_voldir_unmount_below(int fd, struct dv_arena *arena, struct dv_err *err)
{
    char link[64];
    char path[PATH_MAX];
    ssize_t n;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path)); /* without links, as the list of mounts has it */
    if (n <= 0 || (size_t)n >= sizeof(path))
        return dv_fail_errno(err, n < 0 ? errno : ENAMETOOLONG, "find the path of a directory");
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        path_list paths = {0};

        if (!list_below((dv_str){path, (size_t)n}, arena, &paths, err))
            return false;
        if (paths.n == 0)
            return true;
        for (size_t i = paths.n; i-- > 0;)
            if (!dv_voldir_unmount(dv_str_to_c(paths.v[i], arena), err))
                return false;
    }
    return dv_fail(err, DV_ABORTED, "%.*s: something is mounted there again and again", (int)n,
                   path);
}
