#include "voldir/voldir_remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "voldir/voldir_dirs.h"

/* Directories that are open at a time. One that is deeper is moved up to the top, so that no depth
 * of a tree needs more memory or descriptors than this. */
#define LEVELS_MAX 32u
/* The names that moved directories get; no file of ours begins so. */
#define MOVED_NAME "..davit-moved-%u"

struct level {
    DIR *dir;
    char name[NAME_MAX + 1]; /* of this directory, in the one above */
    bool has_removed;        /* since it was read from its beginning */
};

struct removal {
    struct level levels[LEVELS_MAX];
    unsigned n_levels;
    unsigned n_moved;
};

/* Opens a directory that is on the file system and mount of `parent`. */
static DIR *open_below(int parent, const char *name, struct dv_err *err)
{
    int fd = dv_voldir_openat2(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                               RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS);
    DIR *dir;

    if (fd < 0 && errno == EXDEV) {
        (void)dv_fail(err, DV_FAILED_PRECONDITION, "%s: something is mounted there", name);
        return NULL;
    }
    dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir)
        return dir;
    (void)dv_fail_errno(err, errno, "open directory %s", name);
    if (fd >= 0)
        (void)close(fd);
    return NULL;
}

static bool push(struct removal *removal, int parent, const char *name, struct dv_err *err)
{
    struct level *level = &removal->levels[removal->n_levels];

    level->dir = open_below(parent, name, err);
    if (!level->dir)
        return false;
    level->has_removed = false;
    (void)snprintf(level->name, sizeof(level->name), "%s", name);
    removal->n_levels++;
    return true;
}

static bool move_to_top(struct removal *removal, int parent, const char *name, struct dv_err *err)
{
    char moved[sizeof(MOVED_NAME) + 16];
    int top = dirfd(removal->levels[0].dir);

    for (;;) {
        (void)snprintf(moved, sizeof(moved), MOVED_NAME, removal->n_moved++);
        if (renameat2(parent, name, top, moved, RENAME_NOREPLACE) == 0)
            return true;
        if (errno != EEXIST)
            return dv_fail_errno(err, errno, "move directory %s", name);
    }
}

/* Removes an entry of the deepest open directory, or goes down into it. */
static bool remove_entry(struct removal *removal, const char *name, struct dv_err *err)
{
    struct level *level = &removal->levels[removal->n_levels - 1];
    int parent = dirfd(level->dir);

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return true;
    level->has_removed = true;
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return true;
    if (errno == EBUSY)
        return dv_fail(err, DV_FAILED_PRECONDITION, "%s: something is mounted there", name);
    if (errno != EISDIR)
        return dv_fail_errno(err, errno, "remove %s", name);
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return true;
    if (removal->n_levels == LEVELS_MAX)
        return move_to_top(removal, parent, name, err);
    return push(removal, parent, name, err);
}

/* The deepest open directory has been read to its end. */
static bool pop(struct removal *removal, int parent, struct dv_err *err)
{
    struct level *level = &removal->levels[removal->n_levels - 1];
    int above = removal->n_levels > 1 ? dirfd(level[-1].dir) : parent;

    if (unlinkat(above, level->name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
        (void)closedir(level->dir);
        removal->n_levels--;
        return true;
    }
    /* What was there is gone, but something came: moved up by us, or skipped while reading. */
    if ((errno == ENOTEMPTY || errno == EEXIST) && level->has_removed) {
        level->has_removed = false;
        rewinddir(level->dir);
        return true;
    }
    if (errno == EBUSY)
        return dv_fail(err, DV_FAILED_PRECONDITION, "%s: something is mounted there", level->name);
    return dv_fail_errno(err, errno, "remove directory %s", level->name);
}

static bool step(struct removal *removal, int parent, struct dv_err *err)
{
    struct level *level = &removal->levels[removal->n_levels - 1];
    const struct dirent *entry;

    errno = 0;
    entry = readdir(level->dir);
    if (entry)
        return remove_entry(removal, entry->d_name, err);
    if (errno != 0)
        return dv_fail_errno(err, errno, "read directory %s", level->name);
    return pop(removal, parent, err);
}

bool dv_voldir_remove(int parent, const char *name, struct dv_err *err)
{
    struct removal removal = {.n_levels = 0};
    bool is_removed;

    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return true;
    if (errno != EISDIR)
        return dv_fail_errno(err, errno, "remove %s", name);
    is_removed = push(&removal, parent, name, err);
    while (is_removed && removal.n_levels > 0)
        is_removed = step(&removal, parent, err);
    while (removal.n_levels > 0)
        (void)closedir(removal.levels[--removal.n_levels].dir);
    return is_removed;
}
