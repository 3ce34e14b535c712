/* lease_signal.c - the owner of a lease that has to end is signalled: a control group with all that
 * is in it, a process with all that it has started. A shell that ends at once would otherwise leave
 * the program behind that uses the devices. */
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "lease/manager/leases_state.h"
#include "pod/cgroup_members.h"
#include "pod/process.h"

#define GROUPS_DEPTH_MAX 8u
#define PROCESSES_DEPTH_MAX 32u
/* Finding them takes some 20 us each, on the loop. */
#define PROCESSES_MAX 256u
#define CHILDREN_BYTES_MAX 65536u

bool dv_lease_user_of(uint32_t pid, struct dv_arena *arena, uint32_t *uid)
{
    struct stat info;

    if (stat(dv_str_to_c(dv_str_printf(arena, "/proc/%u", pid), arena), &info) < 0)
        return false;
    *uid = info.st_uid;
    return true;
}

/* Whether the process is the lease's user's; those of root's leases are anybody's. */
static bool may_signal(const struct dv_lease *lease, uint32_t pid, struct dv_arena *arena)
{
    uint32_t uid;

    return pid > 1 && dv_lease_user_of(pid, arena, &uid) &&
           (lease->spec.user == 0 || lease->spec.user == uid);
}

/* ---- control groups ---- */

static void signal_group(const struct dv_lease *lease, dv_str dir, int signum, unsigned depth)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dirent *entry;
    dv_str text;
    dv_str line;
    DIR *open;

    if (dv_cgroup_processes(dir, arena, &text))
        while (text.n > 0 && dv_str_split(&text, '\n', &line)) {
            uint32_t pid;

            if (dv_str_to_u32(line, &pid) && may_signal(lease, pid, arena))
                (void)kill((pid_t)pid, signum); /* one that is gone is what we want */
        }
    open = depth < GROUPS_DEPTH_MAX ? opendir(dv_str_to_c(dir, arena)) : NULL;
    while (open && (entry = readdir(open)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            signal_group(lease, dv_str_printf(arena, "%.*s/%s", DV_FMT(dir), entry->d_name), signum,
                         depth + 1);
    if (open)
        (void)closedir(open);
}

/* ---- processes ---- */

static bool is_known(const struct dv_lease *lease, uint32_t pid)
{
    for (size_t i = 0; i < lease->descendants.n; i++)
        if (lease->descendants.v[i].pid == pid)
            return true;
    return false;
}

static void find_children(struct dv_lease *lease, uint32_t pid, unsigned depth);

static void add_children(struct dv_lease *lease, dv_str numbers, struct dv_arena *arena,
                         unsigned depth)
{
    dv_str number;

    while (numbers.n > 0 && dv_str_split(&numbers, ' ', &number)) {
        struct dv_lease_descendant one;
        dv_str start;

        if (!dv_str_to_u32(dv_str_trim(number), &one.pid) ||
            lease->descendants.n >= PROCESSES_MAX || !may_signal(lease, one.pid, arena))
            continue;
        start = dv_process_start(one.pid, arena);
        if (!dv_str_to_u64(start, &one.start) || is_known(lease, one.pid))
            continue; /* it has ended, or was found before */
        *dv_vec_add(&lease->descendants) = one;
        find_children(lease, one.pid, depth + 1);
    }
}

/* Each thread has children of its own. */
static void find_children(struct dv_lease *lease, uint32_t pid, unsigned depth)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str tasks = dv_str_printf(arena, "/proc/%u/task", pid);
    DIR *open = depth < PROCESSES_DEPTH_MAX ? opendir(dv_str_to_c(tasks, arena)) : NULL;
    const struct dirent *entry;
    struct dv_err absent; /* it has ended, or the kernel does not tell */
    dv_str text;

    while (open && (entry = readdir(open)))
        if (entry->d_name[0] != '.' &&
            dv_file_read(dv_str_printf(arena, "%.*s/%s/children", DV_FMT(tasks), entry->d_name),
                         CHILDREN_BYTES_MAX, arena, &text, &absent))
            add_children(lease, text, arena, depth);
    if (open)
        (void)closedir(open);
}

/* Whether the process is in another PID namespace than we are: a container's first process, as a
 * rule, which has its own way to end the others; and the kernel ends them with it. */
static bool is_contained(uint32_t pid, struct dv_arena *arena)
{
    struct stat own;
    struct stat its;

    return stat("/proc/self/ns/pid", &own) == 0 &&
           stat(dv_str_to_c(dv_str_printf(arena, "/proc/%u/ns/pid", pid), arena), &its) == 0 &&
           own.st_ino != its.st_ino;
}

static void signal_process(struct dv_lease *lease, int signum)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    /* Found while the owner is there: afterwards nothing leads to them. What was found before
     * stays, and what has been started since comes to it. */
    if (dv_process_is_watched(&lease->process) && !is_contained(lease->spec.owner.pid, arena))
        find_children(lease, lease->spec.owner.pid, 0);
    (void)dv_process_signal(&lease->process, signum); /* one that is gone has ended */
    for (size_t i = 0; i < lease->descendants.n; i++)
        (void)dv_process_signal_other(lease->descendants.v[i].pid, lease->descendants.v[i].start,
                                      signum); /* so has such a child */
}

bool dv_lease_has_descendants(struct dv_lease *lease)
{
    for (size_t i = lease->descendants.n; i-- > 0;)
        if (!dv_process_signal_other(lease->descendants.v[i].pid, lease->descendants.v[i].start, 0))
            dv_vec_remove_swap(&lease->descendants, i);
    return lease->descendants.n > 0;
}

void dv_lease_signal_owner(struct dv_lease *lease, int signum)
{
    dv_log(DV_LOG_INFO, "lease: its owner is signalled", DV_F_STR("lease", lease->spec.id),
           DV_F_I64("signal", signum));
    if (lease->spec.owner.kind == DV_LEASE_OWNER_PROCESS)
        signal_process(lease, signum);
    else
        signal_group(lease, lease->spec.owner.cgroup, signum, 0);
}
