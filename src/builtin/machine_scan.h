/* machine_scan.h - a look at the device nodes of this machine and at what sysfs tells about them.
 */
#ifndef DV_BUILTIN_MACHINE_SCAN_H
#define DV_BUILTIN_MACHINE_SCAN_H

#include <stddef.h>

#include "base/str.h"

struct dv_arena;
struct dv_offer_snapshot;

/* More nodes than any machine has, and more directories than are worth a watch each. */
#define DV_SCAN_NODES_MAX 65536u
#define DV_SCAN_DIRS_MAX 256u

/* The directories that were looked at, to be watched. */
struct dv_scan_dirs {
    dv_str *v;
    size_t n;
    size_t size;
};

/* Takes the nodes and their devices; the CDI part of the snapshot is left as it is. Blocks: for
 * jobs and the start. Other file systems below `dev_dir` (pts, shm) are passed over, and a link
 * that leads out of it is no name of anything. */
void dv_machine_scan(dv_str dev_dir, dv_str sys_dir, struct dv_arena *arena,
                     struct dv_offer_snapshot *snapshot, struct dv_scan_dirs *dirs);

#endif
