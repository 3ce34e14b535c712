#include "pod/cgroup_members.h"

#include <sys/stat.h>

#include "base/err.h"
#include "base/file.h"
#include "base/str.h"

/* Bounds for files of the kernel: lines of numbers, key and value, and the numbers of processes. */
#define STAT_BYTES_MAX 4096u
#define EVENTS_BYTES_MAX 4096u
#define PROCS_BYTES_MAX (1u << 20)

dv_str dv_cgroup_dir(dv_str cgroup, struct dv_arena *arena)
{
    return dv_str_starts_with(cgroup, DV_STR("/sys/"))
               ? cgroup
               : dv_str_printf(arena, "/sys/fs/cgroup/%.*s", DV_FMT(cgroup));
}

bool dv_cgroup_exists(dv_str dir, struct dv_arena *arena)
{
    struct stat st;

    return stat(dv_str_to_c(dir, arena), &st) == 0 && S_ISDIR(st.st_mode);
}

bool dv_cgroup_is_used(dv_str dir, struct dv_arena *arena)
{
    dv_str events = dv_str_printf(arena, "%.*s/cgroup.events", DV_FMT(dir));
    dv_str procs = dv_str_printf(arena, "%.*s/cgroup.procs", DV_FMT(dir));
    struct dv_err absent;
    dv_str text;
    dv_str line;

    if (dv_file_read(events, EVENTS_BYTES_MAX, arena, &text, &absent)) {
        while (dv_str_split(&text, '\n', &line))
            if (dv_str_eq(line, DV_STR("populated 1")))
                return true;
        return false;
    }
    return dv_file_read(procs, PROCS_BYTES_MAX, arena, &text, &absent) && dv_str_trim(text).n > 0;
}

bool dv_cgroup_has_run(dv_str dir, struct dv_arena *arena)
{
    const dv_str key = DV_STR("usage_usec ");
    dv_str stat = dv_str_printf(arena, "%.*s/cpu.stat", DV_FMT(dir));
    dv_str usage = dv_str_printf(arena, "%.*s/cpuacct.usage", DV_FMT(dir));
    struct dv_err absent;
    dv_str text;
    dv_str line;

    if (dv_file_read(usage, STAT_BYTES_MAX, arena, &text, &absent))
        return !dv_str_eq(dv_str_trim(text), DV_STR("0"));
    if (!dv_file_read(stat, STAT_BYTES_MAX, arena, &text, &absent))
        return false;
    while (dv_str_split(&text, '\n', &line))
        if (dv_str_starts_with(line, key))
            return !dv_str_eq(dv_str_slice(line, key.n, line.n), DV_STR("0"));
    return false;
}

bool dv_cgroup_processes(dv_str dir, struct dv_arena *arena, dv_str *text)
{
    dv_str procs = dv_str_printf(arena, "%.*s/cgroup.procs", DV_FMT(dir));
    struct dv_err absent;

    return dv_file_read(procs, PROCS_BYTES_MAX, arena, text, &absent);
}
