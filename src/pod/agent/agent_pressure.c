#include "pod/agent/agent_pressure.h"

#include <sys/statvfs.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"

#define MEMINFO_FILE "/proc/meminfo"
#define MEMINFO_BYTES_MAX 65536u
#define KIB UINT64_C(1024)
/* The kubelet's thresholds when nobody has set others. */
#define MEMORY_BYTES_MIN (100u * KIB * KIB)
#define DISK_PARTS 10u
#define INODE_PARTS 20u

uint64_t dv_pressure_parse_memory(dv_str meminfo)
{
    const dv_str name = DV_STR("MemAvailable:");
    const dv_str unit = DV_STR("kB");
    dv_str line;
    uint64_t kib;

    while (meminfo.p && dv_str_split(&meminfo, '\n', &line)) {
        if (!dv_str_starts_with(line, name) || !dv_str_ends_with(line, unit))
            continue;
        line = dv_str_trim(dv_str_slice(line, name.n, line.n - unit.n));
        return dv_str_to_u64(line, &kib) && kib < UINT64_MAX / KIB ? kib * KIB : 0;
    }
    return 0;
}

struct dv_pressure dv_pressure_judge(const struct dv_pressure_readings *readings)
{
    return (struct dv_pressure){
        .is_memory = readings->memory_bytes > 0 && readings->memory_bytes < MEMORY_BYTES_MIN,
        .is_disk = readings->disk_free_bytes < readings->disk_bytes / DISK_PARTS ||
                   readings->n_inodes_free < readings->n_inodes / INODE_PARTS,
    };
}

void dv_pressure_read(const char *dir, struct dv_pressure_readings *readings)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct statvfs about;
    struct dv_err absent;
    dv_str text;

    *readings = (struct dv_pressure_readings){0};
    if (dv_file_read(DV_STR(MEMINFO_FILE), MEMINFO_BYTES_MAX, arena, &text, &absent))
        readings->memory_bytes = dv_pressure_parse_memory(text);
    if (!dir || statvfs(dir, &about) < 0)
        return;
    readings->disk_bytes = (uint64_t)about.f_blocks * about.f_frsize;
    readings->disk_free_bytes = (uint64_t)about.f_bavail * about.f_frsize;
    readings->n_inodes = about.f_files;
    readings->n_inodes_free = about.f_favail;
}
