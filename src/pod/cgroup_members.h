/* cgroup_members.h - control groups as owners: whether anything runs in them. The files of the
 * kernel are small, and reading them does not wait for a disk. */
#ifndef DV_POD_CGROUP_MEMBERS_H
#define DV_POD_CGROUP_MEMBERS_H

#include <stdbool.h>

#include "base/str.h"

struct dv_arena;

/* The directory of a control group, which may be given as a path below /sys/fs/cgroup. */
dv_str dv_cgroup_dir(dv_str cgroup, struct dv_arena *arena);
bool dv_cgroup_exists(dv_str dir, struct dv_arena *arena);
/* Whether any process is in the control group or, where the kernel tells (version 2), below it. */
bool dv_cgroup_is_used(dv_str dir, struct dv_arena *arena);
/* Whether processes have ever run in the control group, where the kernel counts their time: they
 * may have come and gone between two looks. */
bool dv_cgroup_has_run(dv_str dir, struct dv_arena *arena);
/* The processes in the control group itself, a number a line; false: they cannot be read. */
bool dv_cgroup_processes(dv_str dir, struct dv_arena *arena, dv_str *text);

#endif
