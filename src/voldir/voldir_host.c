/* voldir_host.c - host paths: what is there, and what is made. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "voldir/voldir_dirs.h"
#include "voldir/voldir_jobs.h"
#include "workload/volume.h"

#define FILE_MODE 0644
#define HOST_DIR_MODE 0755

static bool make_file(const char *path, struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 && errno == EEXIST)
        return true; /* somebody was faster; it is looked at next */
    if (fd < 0)
        return dv_fail_errno(err, errno, "open %s", path);
    if (fchmod(fd, FILE_MODE) < 0)
        return dv_fail_errno(err, errno, "set the mode of %s", path);
    return true;
}

static bool make(const struct dv_volume *volume, const char *path, struct dv_arena *arena,
                 struct dv_err *err)
{
    int fd;

    if (volume->host_type == DV_HOST_PATH_FILE_OR_CREATE)
        return make_file(path, err);
    fd = dv_voldir_open_path(volume->path, HOST_DIR_MODE, arena, err);
    dv_close_fd(&fd);
    return fd >= 0;
}

/* Links are followed, as the runtime is going to do. */
bool dv_voldir_check_host_path(const struct dv_volume *volume, struct dv_arena *arena,
                               struct dv_err *err)
{
    static const struct {
        mode_t type; /* 0: anything but a directory */
        const char *name;
    } types[] = {
        [DV_HOST_PATH_ANY] = {0,        ""                },
        [DV_HOST_PATH_DIRECTORY_OR_CREATE] = {S_IFDIR,  "directory"       },
        [DV_HOST_PATH_DIRECTORY] = {S_IFDIR,  "directory"       },
        [DV_HOST_PATH_FILE_OR_CREATE] = {0,        "file"            },
        [DV_HOST_PATH_FILE] = {0,        "file"            },
        [DV_HOST_PATH_SOCKET] = {S_IFSOCK, "socket file"     },
        [DV_HOST_PATH_CHAR_DEVICE] = {S_IFCHR,  "character device"},
        [DV_HOST_PATH_BLOCK_DEVICE] = {S_IFBLK,  "block device"    },
    };
    const char *path = dv_str_to_c(volume->path, arena);
    enum dv_host_path_type type = volume->host_type;
    struct stat about;
    bool is_there;
    mode_t found;

    if (type == DV_HOST_PATH_ANY)
        return true;
    is_there = stat(path, &about) == 0;
    if (!is_there && errno == ENOENT &&
        (type == DV_HOST_PATH_DIRECTORY_OR_CREATE || type == DV_HOST_PATH_FILE_OR_CREATE)) {
        if (!make(volume, path, arena, err))
            return false;
        is_there = stat(path, &about) == 0;
    }
    found = is_there ? about.st_mode & S_IFMT : 0;
    if (is_there && (types[type].type ? found == types[type].type : found != S_IFDIR))
        return true;
    return dv_fail(err, DV_FAILED_PRECONDITION, "hostPath type check failed: %s is not a %s", path,
                   types[type].name);
}
