/* stale_sockets.c - the plugin directory is cleaned before anybody is told that davitd is there.
 *
 * Plugins take the loss of their socket, or a new kubelet.sock, as the sign to make their socket
 * anew and to register. Some do so within microseconds: what comes while we clean must stay. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "device/manager/device_manager_state.h"
#include "loop/loop.h"

struct stale {
    const char *name;
    ino_t ino;
    /* an inode number is used again at once, so the time tells files apart */
    struct timespec changed;
};

typedef DV_VEC(struct stale) stale_vec;

/* Locks the directory, so that two daemons that start at once do not clean each other's; the lock
 * ends with the process. A file system without locks is used without. */
static bool lock_dir(struct dv_device_manager *devices, struct dv_err *err)
{
    const char *dir = devices->plugin_dir.p;

    devices->dir_lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (devices->dir_lock < 0)
        return dv_fail_errno(err, errno, "open %s", dir);
    if (flock(devices->dir_lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return dv_fail(err, DV_ALREADY_EXISTS, "another process, a davitd, works on %s", dir);
    return true;
}

static bool look(int dir, const char *name, struct stale *stale)
{
    struct stat info;

    if (fstatat(dir, name, &info, 0) < 0 || !S_ISSOCK(info.st_mode))
        return false;
    *stale = (struct stale){name, info.st_ino, info.st_ctim};
    return true;
}

/* Lists all stale files before the first is removed: a directory may show files that were added
 * while it is read, and those are not stale. */
static bool list_stale(const char *dir, struct dv_arena *arena, stale_vec *found,
                       struct dv_err *err)
{
    DIR *entries = opendir(dir);
    const struct dirent *entry;

    if (!entries)
        return dv_fail_errno(err, errno, "read %s", dir);
    while ((entry = readdir(entries)) != NULL) {
        struct stale stale;

        if (strcmp(entry->d_name, "kubelet.sock") == 0 || /* dv_server_open replaces that one */
            !look(dirfd(entries), entry->d_name, &stale))
            continue;
        stale.name = dv_str_to_c(dv_str_from_c(entry->d_name), arena);
        *dv_vec_add_in(found, arena) = stale;
    }
    (void)closedir(entries); /* was only read */
    return true;
}

static bool remove_one(int dir, const struct stale *stale, dv_str dir_name, struct dv_err *err)
{
    struct stale now;

    if (!look(dir, stale->name, &now) || now.ino != stale->ino ||
        now.changed.tv_sec != stale->changed.tv_sec ||
        now.changed.tv_nsec != stale->changed.tv_nsec)
        return true; /* its plugin has removed or replaced it meanwhile */
    if (unlinkat(dir, stale->name, 0) < 0 && errno != ENOENT)
        return dv_fail_errno(err, errno, "remove the stale socket %.*s/%s", DV_FMT(dir_name),
                             stale->name);
    return true;
}

bool dv_device_manager_clean(struct dv_device_manager *devices, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str dir = devices->plugin_dir;
    stale_vec found = {0};
    bool ok = dv_socket_is_free(dv_str_printf(arena, "%.*s/kubelet.sock", DV_FMT(dir)), err) &&
              lock_dir(devices, err) && list_stale(dir.p, arena, &found, err);

    for (size_t i = 0; ok && i < found.n; i++)
        ok = remove_one(devices->dir_lock, &found.v[i], dir, err);
    return ok;
}
