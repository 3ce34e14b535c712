/* voldir_mount.h - what is mounted in the directories of pods. */
#ifndef DV_VOLDIR_MOUNT_H
#define DV_VOLDIR_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;

/* Whether something is mounted on the entry `name` of `parent`; an empty name is `parent` itself.
 */
DV_CHECKED bool dv_voldir_is_mounted(int parent, const char *name, bool *is_mounted,
                                     struct dv_err *err);

/* Mounts memory at the path: a tmpfs of at most size_bytes (0: the kernel's own limit), which is
 * not swapped out where the kernel can say so; or huge pages of page_bytes. */
DV_CHECKED bool dv_voldir_mount_memory(const char *path, uint64_t size_bytes, struct dv_err *err);
DV_CHECKED bool dv_voldir_mount_huge_pages(const char *path, uint64_t page_bytes,
                                           struct dv_err *err);

/* Shows what `fd` (O_PATH) stands for at the path, too, where there is a file or directory. */
DV_CHECKED bool dv_voldir_bind(int fd, const char *path, struct dv_err *err);

/* Unmounts what is at the path, also when it is in use. */
DV_CHECKED bool dv_voldir_unmount(const char *path, struct dv_err *err);
/* Unmounts all that is mounted in the directory `fd`, the last mounted first. */
DV_CHECKED bool dv_voldir_unmount_below(int fd, struct dv_arena *arena, struct dv_err *err);

#endif
