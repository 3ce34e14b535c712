/* agent_pressure.h - whether this machine runs out of memory or disk: what the conditions of its
 * Node say. */
#ifndef DV_POD_AGENT_PRESSURE_H
#define DV_POD_AGENT_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* What was found; all of a kind are 0 when it could not be read. */
struct dv_pressure_readings {
    uint64_t memory_bytes; /* available */
    uint64_t disk_bytes;
    uint64_t disk_free_bytes;
    uint64_t n_inodes;
    uint64_t n_inodes_free;
};

struct dv_pressure {
    bool is_memory;
    bool is_disk;
};

/* Reads /proc/meminfo's text. 0: it does not say. */
uint64_t dv_pressure_parse_memory(dv_str meminfo);
/* Judges by the kubelet's own thresholds: less than 100 MiB of memory, a tenth of the disk or a
 * twentieth of its inodes. */
struct dv_pressure dv_pressure_judge(const struct dv_pressure_readings *readings);
/* Reads what there is now; `dir` is on the disk of the pods, or
 * NULL. Blocks, so it is for a worker. */
void dv_pressure_read(const char *dir, struct dv_pressure_readings *readings);

#endif
