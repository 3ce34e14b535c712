/* cgroup_plan.c - which cgroups a pod has, and what is written into them. */
#include "workload/cgroup.h"

#include "base/arena.h"
#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/values.h"
#include "workload/config.h"
#include "workload/workload.h"

/* What cgroups of version 2 pass down to pods, where the kernel has it. */
static const char *const passed_down[] = {"cpuset", "cpu", "io", "memory", "hugetlb", "pids"};

/* The least and the most that version 1 takes, and their weights in version 2. */
#define SHARES_MIN 2u
#define SHARES_MAX 262144u
#define WEIGHT_MAX 10000u
#define SHARES_PER_CPU 1024u

/* ---- what is mounted ---- */

/* Takes the next word off the line; words are separated by one blank. */
static dv_str take_word(dv_str *line)
{
    dv_str word = DV_STR("");

    if (line->n > 0)
        (void)dv_str_split(line, ' ', &word);
    return word;
}

static bool has_word(dv_str words, dv_str wanted)
{
    while (words.n > 0) {
        size_t n = 0;

        while (n < words.n && words.p[n] != ',' && words.p[n] != ' ')
            n++;
        if (dv_str_eq(dv_str_slice(words, 0, n), wanted))
            return true;
        words = dv_str_slice(words, n + 1, words.n);
    }
    return false;
}

static bool is_below(dv_str path, dv_str dir)
{
    return dv_str_starts_with(path, dir) && (path.n == dir.n || path.p[dir.n] == '/');
}

/* "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct" */
static bool parse_line(dv_str line, struct dv_cgroup_mount *mount)
{
    dv_str word;
    dv_str type;

    for (size_t i = 0; i < 4; i++)
        (void)take_word(&line);
    mount->path = take_word(&line);
    do
        word = take_word(&line);
    while (line.n > 0 && !dv_str_eq(word, DV_STR("-")));
    type = take_word(&line);
    (void)take_word(&line);
    mount->is_v2 = dv_str_eq(type, DV_STR("cgroup2"));
    mount->controllers = mount->is_v2 ? DV_STR("") : line;
    /* a blank in a path is written \040: no cgroup is there */
    return (mount->is_v2 || dv_str_eq(type, DV_STR("cgroup"))) &&
           dv_str_find_char(mount->path, '\\') == mount->path.n;
}

void dv_cgroup_mounts_parse(dv_str mountinfo, dv_str dir, struct dv_arena *arena,
                            struct dv_cgroup_mounts *mounts)
{
    DV_VEC(struct dv_cgroup_mount) list = {0};
    dv_str line;

    while (mountinfo.n > 0 && dv_str_split(&mountinfo, '\n', &line)) {
        struct dv_cgroup_mount mount;

        if (parse_line(line, &mount) && is_below(mount.path, dir))
            *dv_vec_add_in(&list, arena) =
                (struct dv_cgroup_mount){.path = dv_str_copy(mount.path, arena),
                                         .controllers = dv_str_copy(mount.controllers, arena),
                                         .is_v2 = mount.is_v2};
    }
    *mounts = (struct dv_cgroup_mounts){list.v, list.n};
}

static bool has_controller(const struct dv_cgroup_mount *mount, const char *name)
{
    return has_word(mount->controllers, dv_str_from_c(name));
}

bool dv_cgroup_mounts_are_useful(const struct dv_cgroup_mounts *mounts)
{
    bool has_cpu = false;
    bool has_memory = false;

    for (size_t i = 0; i < mounts->n; i++) {
        has_cpu = has_cpu || has_controller(&mounts->v[i], "cpu");
        has_memory = has_memory || has_controller(&mounts->v[i], "memory");
    }
    return has_cpu && has_memory;
}

/* ---- steps ---- */

static void add_step(struct dv_cgroup_plan *plan, dv_str path, dv_str text, struct dv_arena *arena)
{
    *dv_vec_add_in(plan, arena) = (struct dv_cgroup_step){path, text};
}

static void add_write(struct dv_cgroup_plan *plan, dv_str dir, const char *file, dv_str text,
                      struct dv_arena *arena)
{
    add_step(plan, dv_str_printf(arena, "%.*s/%s", DV_FMT(dir), file), text, arena);
}

static dv_str print_number(uint64_t number, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%llu", (unsigned long long)number);
}

/* The reference's way from shares to weights, from [2, 262144] to [1, 10000]. */
static uint64_t weight_of(uint64_t shares)
{
    if (shares >= SHARES_MAX)
        return WEIGHT_MAX;
    return 1 + (dv_u64_max(shares, SHARES_MIN) - SHARES_MIN) * (WEIGHT_MAX - 1) /
                   (SHARES_MAX - SHARES_MIN);
}

static void add_shares(struct dv_cgroup_plan *plan, const struct dv_cgroup_mount *mount, dv_str dir,
                       uint64_t shares, struct dv_arena *arena)
{
    shares = dv_u64_min(dv_u64_max(shares, SHARES_MIN), SHARES_MAX);
    if (!has_controller(mount, "cpu"))
        return;
    if (mount->is_v2)
        add_write(plan, dir, "cpu.weight", print_number(weight_of(shares), arena), arena);
    else
        add_write(plan, dir, "cpu.shares", print_number(shares, arena), arena);
}

/* Adds the controllers that each group passes down: in version 2 a group has only those. */
static void add_controllers(struct dv_cgroup_plan *plan, const struct dv_cgroup_mount *mount,
                            dv_str dir, struct dv_arena *arena)
{
    dv_str text = DV_STR("");

    if (!mount->is_v2)
        return;
    for (size_t i = 0; i < DV_COUNT(passed_down); i++)
        if (has_controller(mount, passed_down[i]))
            text = dv_str_printf(arena, "%.*s%s+%s", DV_FMT(text), text.n > 0 ? " " : "",
                                 passed_down[i]);
    add_write(plan, dir, "cgroup.subtree_control", text, arena);
}

/* Makes every directory of `path`, "/kubepods/burstable", in the hierarchy. */
static dv_str add_dirs(struct dv_cgroup_plan *plan, const struct dv_cgroup_mount *mount,
                       dv_str path, struct dv_arena *arena)
{
    dv_str dir = mount->path;
    dv_str name;

    (void)dv_str_take(&path, '/');
    while (path.n > 0 && dv_str_split(&path, '/', &name)) {
        add_controllers(plan, mount, dir, arena);
        dir = dv_str_printf(arena, "%.*s/%.*s", DV_FMT(dir), DV_FMT(name));
        add_step(plan, dir, (dv_str){NULL, 0}, arena);
    }
    return dir;
}

/* Whether limits are written there. A version 2 beside hierarchies of version 1 has none. */
static bool is_limiting(const struct dv_cgroup_mount *mount)
{
    return has_controller(mount, "cpu") || has_controller(mount, "memory") ||
           has_controller(mount, "hugetlb");
}

/* ---- the tree ---- */

void dv_cgroup_plan_tree(const struct dv_cgroup_tree *tree, struct dv_arena *arena,
                         struct dv_cgroup_plan *plan)
{
    dv_str top = dv_str_printf(arena, "%.*s/kubepods", DV_FMT(tree->root));

    for (size_t i = 0; i < tree->mounts->n; i++) {
        const struct dv_cgroup_mount *mount = &tree->mounts->v[i];
        dv_str dir;

        if (!is_limiting(mount))
            continue;
        dir = add_dirs(plan, mount, dv_str_printf(arena, "%.*s/burstable", DV_FMT(top)), arena);
        dir = dv_str_printf(arena, "%.*s%.*s/besteffort", DV_FMT(mount->path), DV_FMT(top));
        add_step(plan, dir, (dv_str){NULL, 0}, arena);
        add_shares(plan, mount, dir, SHARES_MIN, arena);
        /* The pods have what the machine has: to the rest of it they are as many as its CPUs. */
        for (size_t n = 1; n <= top.n; n++)
            if (n == top.n || top.p[n] == '/')
                add_shares(plan, mount,
                           dv_str_printf(arena, "%.*s%.*s", DV_FMT(mount->path),
                                         DV_FMT(dv_str_slice(top, 0, n))),
                           tree->n_cpus * SHARES_PER_CPU, arena);
    }
}

/* ---- a pod ---- */

static void add_cpu(struct dv_cgroup_plan *plan, const struct dv_cgroup_mount *mount, dv_str dir,
                    const struct dv_config_cgroup *limits, struct dv_arena *arena)
{
    if (!has_controller(mount, "cpu"))
        return;
    add_shares(plan, mount, dir, limits->cpu_shares, arena);
    if (limits->cpu_quota_us <= 0)
        return;
    if (mount->is_v2) {
        add_write(plan, dir, "cpu.max",
                  dv_str_printf(arena, "%lld %llu", (long long)limits->cpu_quota_us,
                                (unsigned long long)limits->cpu_period_us),
                  arena);
        return;
    }
    add_write(plan, dir, "cpu.cfs_period_us", print_number(limits->cpu_period_us, arena), arena);
    add_write(plan, dir, "cpu.cfs_quota_us", print_number((uint64_t)limits->cpu_quota_us, arena),
              arena);
}

static void add_memory(struct dv_cgroup_plan *plan, const struct dv_cgroup_mount *mount, dv_str dir,
                       const struct dv_config_cgroup *limits, struct dv_arena *arena)
{
    if (has_controller(mount, "memory") && limits->memory_bytes > 0)
        add_write(plan, dir, mount->is_v2 ? "memory.max" : "memory.limit_in_bytes",
                  print_number((uint64_t)limits->memory_bytes, arena), arena);
}

/* Whether the resource "hugepages-2Mi" is of the size that cgroups write as "2MB". */
static bool is_of_size(dv_str resource, dv_str size)
{
    const dv_str prefix = DV_STR("hugepages-");
    dv_str amount = dv_str_slice(resource, prefix.n, resource.n);

    return dv_str_starts_with(resource, prefix) && amount.n > 1 && size.n > 1 &&
           dv_str_eq(dv_str_slice(amount, 0, amount.n - 1), dv_str_slice(size, 0, size.n - 1));
}

/* A pod has none of the pages that it does not ask for. */
static void add_pages(struct dv_cgroup_plan *plan, const struct dv_cgroup_tree *tree,
                      const struct dv_cgroup_mount *mount, dv_str dir,
                      const struct dv_config_cgroup *limits, struct dv_arena *arena)
{
    if (!has_controller(mount, "hugetlb"))
        return;
    for (size_t i = 0; i < tree->page_sizes.n; i++) {
        dv_str size = tree->page_sizes.v[i];
        int64_t bytes = 0;

        for (size_t k = 0; k < limits->n_hugepages; k++)
            if (is_of_size(limits->hugepages[k].key, size))
                bytes = dv_workload_whole(&limits->hugepages[k].value);
        add_write(plan, dir,
                  dv_str_printf(arena, "hugetlb.%.*s.%s", DV_FMT(size),
                                mount->is_v2 ? "max" : "limit_in_bytes")
                      .p,
                  print_number((uint64_t)bytes, arena), arena);
    }
}

void dv_cgroup_plan_pod(const struct dv_cgroup_tree *tree, dv_str parent,
                        const struct dv_config_cgroup *limits, uint64_t burstable_shares,
                        struct dv_arena *arena, struct dv_cgroup_plan *plan)
{
    for (size_t i = 0; i < tree->mounts->n; i++) {
        const struct dv_cgroup_mount *mount = &tree->mounts->v[i];
        dv_str dir;

        if (!is_limiting(mount))
            continue;
        dir = add_dirs(plan, mount, parent, arena);
        add_controllers(plan, mount, dir, arena);
        add_cpu(plan, mount, dir, limits, arena);
        add_memory(plan, mount, dir, limits, arena);
        add_pages(plan, tree, mount, dir, limits, arena);
        if (burstable_shares > 0)
            add_shares(plan, mount,
                       dv_str_printf(arena, "%.*s%.*s/kubepods/burstable", DV_FMT(mount->path),
                                     DV_FMT(tree->root)),
                       burstable_shares, arena);
    }
}

struct dv_strs dv_cgroup_dirs_of_pod(const struct dv_cgroup_tree *tree, dv_str uid,
                                     struct dv_arena *arena)
{
    static const char *const classes[] = {"", "/burstable", "/besteffort"};
    struct dv_strs dirs = {
        .v = DV_NEW_ARRAY(arena, dv_str, tree->mounts->n * DV_COUNT(classes)),
    };

    for (size_t i = 0; i < tree->mounts->n; i++)
        for (size_t k = 0; k < DV_COUNT(classes); k++)
            dirs.v[dirs.n++] =
                dv_str_printf(arena, "%.*s%.*s/kubepods%s/pod%.*s", DV_FMT(tree->mounts->v[i].path),
                              DV_FMT(tree->root), classes[k], DV_FMT(uid));
    return dirs;
}
