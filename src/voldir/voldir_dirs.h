/* voldir_dirs.h - opening and making directories one step at a time, whatever the umask is. */
#ifndef DV_VOLDIR_DIRS_H
#define DV_VOLDIR_DIRS_H

#include <linux/openat2.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/str.h"

struct dv_arena;
struct dv_err;

/* The modes of directories that are nobody's but ours, and of those that log readers may enter. */
#define DV_VOLDIR_OWN_MODE 0750
#define DV_VOLDIR_LOG_MODE 0755
/* The mode of a volume: its containers may run as any user. */
#define DV_VOLDIR_VOLUME_MODE 0777

/* Whether the text can be the name of one file: not empty, no slash, not "." or "..". */
bool dv_voldir_is_name(dv_str name);

/* Opens directory `name` in `parent`, which must not be a link, and makes it with exactly `mode`
 * where it is not there; *is_new (may be NULL) tells. -1: err is set. */
int dv_voldir_open_dir(int parent, const char *name, mode_t mode, bool *is_new, struct dv_err *err);
/* Like dv_voldir_open_dir, down a relative path, from a duplicate of `parent`. */
int dv_voldir_open_dirs(int parent, dv_str path, mode_t mode, struct dv_arena *arena,
                        struct dv_err *err);
/* Opens the directory at an absolute path and makes what is missing of it. Links in what is there
 * are followed: the administrator made them. */
int dv_voldir_open_path(dv_str path, mode_t mode, struct dv_arena *arena, struct dv_err *err);

/* Writes the whole text. False, with errno. */
bool dv_voldir_write(int fd, dv_str text);

/* For dv_voldir_openat2: no link on the way is followed, and the path leads down. */
#define DV_VOLDIR_NO_LINKS (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)

/* openat2(2) with the flags RESOLVE_*; no libc has it. -1 with errno. */
int dv_voldir_openat2(int parent, const char *path, int flags, unsigned long long resolve);

#endif
