#include "cli/run/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define PREFIX "davit-run-"

/* All that is ever in such a folder. */
static const char *const files[] = {"config.json", "pid", "cid"};

static const char *place(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const char *temporary = getenv("TMPDIR");

    if (runtime && access(runtime, W_OK | X_OK) == 0)
        return runtime;
    return temporary && access(temporary, W_OK | X_OK) == 0 ? temporary : "/tmp";
}

static void empty(int fd)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        (void)unlinkat(fd, files[i], 0); /* gone is what we want */
}

/* Removes a folder of ours whose davit does not hold its lock any more. */
static void sweep_one(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat about;

    if (fd < 0)
        return;
    if (fstat(fd, &about) == 0 && about.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        empty(fd);
        (void)unlinkat(parent, name, AT_REMOVEDIR); /* what else is in it is not ours */
    }
    (void)close(fd);
}

static void sweep(const char *parent)
{
    DIR *dir = opendir(parent);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, PREFIX, sizeof(PREFIX) - 1) == 0)
            sweep_one(dirfd(dir), entry->d_name);
    if (dir)
        (void)closedir(dir);
}

bool dv_run_folder_make(struct dv_arena *arena, struct dv_run_folder *folder, struct dv_err *err)
{
    dv_str name = dv_str_printf(arena, "%s/" PREFIX "XXXXXX", place());
    char *path = DV_NEW_ARRAY(arena, char, name.n + 1);

    sweep(place());
    memcpy(path, name.p, name.n);
    if (!mkdtemp(path))
        return dv_fail_errno(err, errno, "%s", path);
    folder->path = dv_str_from_c(path);
    folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd >= 0 && flock(folder->fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    (void)dv_fail_errno(err, errno, "%s", path);
    dv_run_folder_remove(folder);
    return false;
}

void dv_run_folder_remove(struct dv_run_folder *folder)
{
    if (folder->fd >= 0) {
        empty(folder->fd);
        (void)close(folder->fd);
    }
    if (folder->path.n > 0)
        (void)rmdir(folder->path.p); /* made from a C string */
    *folder = (struct dv_run_folder){.fd = -1};
}
