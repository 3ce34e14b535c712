#include "serve/kubelet/usage.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "proto/cri_v1.pb-c.h"
#include "workload/config.h"

#define BYTES_PER_KB 1024u

/* ---- the runtime's answers ---- */

static struct dv_usage_number number_of(const CriV1__UInt64Value *value)
{
    return (struct dv_usage_number){value != NULL, value ? value->value : 0};
}

static struct dv_usage usage_of(const CriV1__CpuUsage *cpu, const CriV1__MemoryUsage *memory)
{
    struct dv_usage usage = {0};

    if (cpu) {
        usage.cpu_at_ns = cpu->timestamp;
        usage.cpu_ns = number_of(cpu->usage_core_nano_seconds);
        usage.nano_cores = number_of(cpu->usage_nano_cores);
    }
    if (memory) {
        usage.memory_at_ns = memory->timestamp;
        usage.working_set = number_of(memory->working_set_bytes);
        usage.available = number_of(memory->available_bytes);
        usage.in_use = number_of(memory->usage_bytes);
        usage.rss = number_of(memory->rss_bytes);
        usage.page_faults = number_of(memory->page_faults);
        usage.major_page_faults = number_of(memory->major_page_faults);
    }
    return usage;
}

static dv_str label(const CriV1__ContainerAttributes *attributes, dv_str key)
{
    for (size_t i = 0; i < attributes->n_labels; i++)
        if (dv_str_eq(dv_str_from_c(attributes->labels[i]->key), key))
            return dv_str_from_c(attributes->labels[i]->value);
    return DV_STR("");
}

static void add(struct dv_usage_number *sum, struct dv_usage_number number)
{
    if (!number.is_known)
        return;
    sum->is_known = true;
    sum->value = dv_u64_add_clamped(sum->value, number.value);
}

static void add_usage(struct dv_usage *sum, const struct dv_usage *one)
{
    if (one->cpu_ns.is_known)
        sum->cpu_at_ns = one->cpu_at_ns;
    if (one->working_set.is_known)
        sum->memory_at_ns = one->memory_at_ns;
    add(&sum->cpu_ns, one->cpu_ns);
    add(&sum->nano_cores, one->nano_cores);
    add(&sum->working_set, one->working_set);
    add(&sum->in_use, one->in_use);
    add(&sum->rss, one->rss);
    add(&sum->page_faults, one->page_faults);
    add(&sum->major_page_faults, one->major_page_faults);
}

/* A pod that is being put together. */
struct gathered {
    struct dv_usage_pod pod;
    DV_VEC(struct dv_usage_container) containers;
    bool has_sandbox;
};

static struct gathered *pod_of(struct dv_map *pods, dv_str uid, dv_str namespace, dv_str name,
                               struct dv_arena *arena)
{
    struct gathered *pod = dv_map_get(pods, uid);

    if (pod)
        return pod;
    pod = DV_NEW(arena, struct gathered);
    pod->pod = (struct dv_usage_pod){.namespace = namespace, .name = name, .uid = uid};
    (void)dv_map_set(pods, uid, pod); /* there was none */
    return pod;
}

/* Adds a container; of several instances of it the newest counts. */
static void add_container(struct gathered *pod, const struct dv_usage_container *container,
                          struct dv_arena *arena)
{
    for (size_t i = 0; i < pod->containers.n; i++) {
        struct dv_usage_container *other = &pod->containers.v[i];

        if (!dv_str_eq(other->name, container->name))
            continue;
        if (container->attempt > other->attempt)
            *other = *container;
        return;
    }
    *dv_vec_add_in(&pod->containers, arena) = *container;
}

static void add_containers(struct dv_map *pods, const CriV1__ListContainerStatsResponse *answer,
                           struct dv_arena *arena)
{
    for (size_t i = 0; i < answer->n_stats; i++) {
        const CriV1__ContainerStats *stats = answer->stats[i];
        const CriV1__ContainerAttributes *attributes = stats->attributes;
        const CriV1__FilesystemUsage *disk = stats->writable_layer;
        struct dv_usage_container container = {.usage = usage_of(stats->cpu, stats->memory)};
        dv_str uid = attributes ? label(attributes, DV_CONFIG_POD_UID) : DV_STR("");

        /* What has ended uses nothing, and what is not a pod's is not ours. */
        if (uid.n == 0 ||
            (!container.usage.cpu_ns.is_known && !container.usage.working_set.is_known))
            continue;
        container.id = dv_str_from_c(attributes->id);
        container.name = label(attributes, DV_CONFIG_CONTAINER_NAME);
        container.attempt = attributes->metadata ? attributes->metadata->attempt : 0;
        container.disk_at_ns = disk ? disk->timestamp : 0;
        container.disk_bytes = number_of(disk ? disk->used_bytes : NULL);
        container.disk_inodes = number_of(disk ? disk->inodes_used : NULL);
        add_container(pod_of(pods, uid, label(attributes, DV_CONFIG_POD_NAMESPACE),
                             label(attributes, DV_CONFIG_POD_NAME), arena),
                      &container, arena);
    }
}

static void add_sandboxes(const struct dv_map *pods,
                          const CriV1__ListPodSandboxStatsResponse *answer)
{
    for (size_t i = 0; i < answer->n_stats; i++) {
        const CriV1__PodSandboxStats *stats = answer->stats[i];
        struct gathered *pod;

        if (!stats->attributes || !stats->attributes->metadata || !stats->linux)
            continue;
        pod = dv_map_get(pods, dv_str_from_c(stats->attributes->metadata->uid));
        if (!pod || pod->has_sandbox)
            continue;
        pod->pod.usage = usage_of(stats->linux->cpu, stats->linux->memory);
        pod->has_sandbox = pod->pod.usage.cpu_ns.is_known && pod->pod.usage.working_set.is_known;
    }
}

static int by_name(const void *a, const void *b)
{
    const struct dv_usage_pod *one = a;
    const struct dv_usage_pod *other = b;
    int order = dv_str_cmp(one->namespace, other->namespace);

    return order != 0 ? order : dv_str_cmp(one->name, other->name);
}

static int by_container_name(const void *a, const void *b)
{
    return dv_str_cmp(((const struct dv_usage_container *)a)->name,
                      ((const struct dv_usage_container *)b)->name);
}

void dv_usage_add_pods(struct dv_usage_report *report,
                       const CriV1__ListContainerStatsResponse *containers,
                       const CriV1__ListPodSandboxStatsResponse *sandboxes, struct dv_arena *arena)
{
    const struct dv_map_entry *entry;
    struct dv_map pods;

    dv_map_init(&pods);
    add_containers(&pods, containers, arena);
    if (sandboxes)
        add_sandboxes(&pods, sandboxes);
    report->pods = DV_NEW_ARRAY(arena, struct dv_usage_pod, pods.n);
    for (size_t at = 0; (entry = dv_map_next(&pods, &at)) != NULL;) {
        struct gathered *pod = entry->value;

        if (!pod->has_sandbox) {
            pod->pod.usage = (struct dv_usage){0};
            for (size_t i = 0; i < pod->containers.n; i++)
                add_usage(&pod->pod.usage, &pod->containers.v[i].usage);
        }
        qsort(pod->containers.v, pod->containers.n, sizeof(pod->containers.v[0]),
              by_container_name);
        pod->pod.containers = pod->containers.v;
        pod->pod.n_containers = pod->containers.n;
        report->pods[report->n_pods++] = pod->pod;
    }
    qsort(report->pods, report->n_pods, sizeof(report->pods[0]), by_name);
    dv_map_fini(&pods);
}

/* ---- the kernel's files ---- */

/* Takes the next word off a line; words have blanks between them. */
static dv_str next_word(dv_str *line)
{
    dv_str word = DV_STR("");

    while (word.n == 0 && line->n > 0 && dv_str_split(line, ' ', &word))
        continue;
    return word;
}

/* Finds the line that begins with the word, and what follows on it. */
static bool find_line(dv_str text, dv_str word, dv_str *rest)
{
    dv_str line;

    while (dv_str_split(&text, '\n', &line))
        if (dv_str_eq(next_word(&line), word)) {
            *rest = line;
            return true;
        }
    return false;
}

static bool read_number(dv_str text, const char *name, uint64_t *number, struct dv_err *err)
{
    dv_str rest;

    if (find_line(text, dv_str_from_c(name), &rest) && dv_str_to_u64(next_word(&rest), number))
        return true;
    return dv_fail(err, DV_INVALID_ARGUMENT, "the kernel does not tell %s", name);
}

/* All that is not idle: user, nice, system, irq, softirq and steal. What guests use is in the first
 * two already. */
static bool read_cpu(dv_str stat, uint64_t ticks_per_s, struct dv_usage *usage, struct dv_err *err)
{
    static const bool counts[] = {true, true, true, false, false, true, true, true};
    uint64_t sum = 0;
    dv_str rest;

    if (!find_line(stat, DV_STR("cpu"), &rest))
        return dv_fail(err, DV_INVALID_ARGUMENT, "the kernel does not tell cpu");
    for (size_t i = 0; i < DV_COUNT(counts); i++) {
        uint64_t ticks;

        if (!dv_str_to_u64(next_word(&rest), &ticks))
            return dv_fail(err, DV_INVALID_ARGUMENT, "the kernel tells too little of cpu");
        if (counts[i])
            sum = dv_u64_add_clamped(sum, ticks);
    }
    usage->cpu_ns = (struct dv_usage_number){
        true, sum / ticks_per_s * DV_NS_PER_S + sum % ticks_per_s * DV_NS_PER_S / ticks_per_s};
    return true;
}

static struct dv_usage_number bytes_of(uint64_t kilobytes)
{
    return (struct dv_usage_number){true, kilobytes * BYTES_PER_KB};
}

/* As the reference counts it: what is in use is everything but what is free, and the working set
 * leaves out pages of files that nobody has used for a while. */
static bool read_memory(dv_str meminfo, struct dv_usage *usage, struct dv_err *err)
{
    uint64_t total = 0;
    uint64_t free_kb = 0;
    uint64_t inactive = 0;
    uint64_t anonymous = 0;
    uint64_t in_use;
    uint64_t working_set;

    if (!read_number(meminfo, "MemTotal:", &total, err) ||
        !read_number(meminfo, "MemFree:", &free_kb, err) ||
        !read_number(meminfo, "Inactive(file):", &inactive, err) ||
        !read_number(meminfo, "AnonPages:", &anonymous, err))
        return false;
    in_use = total > free_kb ? total - free_kb : 0;
    working_set = in_use > inactive ? in_use - inactive : 0;
    usage->in_use = bytes_of(in_use);
    usage->working_set = bytes_of(working_set);
    usage->available = bytes_of(total - dv_u64_min(total, working_set));
    usage->rss = bytes_of(anonymous);
    return true;
}

bool dv_usage_read_node(dv_str stat, dv_str meminfo, uint64_t ticks_per_s, int64_t now_ns,
                        struct dv_usage *usage, int64_t *boot_ns, struct dv_err *err)
{
    uint64_t boot_s = 0;

    *usage = (struct dv_usage){.cpu_at_ns = now_ns, .memory_at_ns = now_ns};
    if (!read_cpu(stat, ticks_per_s, usage, err) || !read_memory(meminfo, usage, err) ||
        !read_number(stat, "btime", &boot_s, err))
        return false;
    *boot_ns = (int64_t)(dv_u64_min(boot_s, INT64_MAX / DV_NS_PER_S) * DV_NS_PER_S);
    return true;
}

struct dv_usage_number dv_usage_rate(const struct dv_usage *before, const struct dv_usage *now)
{
    struct dv_usage_number rate = {0};
    uint64_t used_ns;
    uint64_t passed_ns;

    if (!before->cpu_ns.is_known || !now->cpu_ns.is_known ||
        before->cpu_ns.value > now->cpu_ns.value || before->cpu_at_ns >= now->cpu_at_ns)
        return rate;
    used_ns = now->cpu_ns.value - before->cpu_ns.value;
    passed_ns = (uint64_t)(now->cpu_at_ns - before->cpu_at_ns);
    rate.is_known = true;
    rate.value = (uint64_t)((double)used_ns / (double)passed_ns * (double)DV_NS_PER_S);
    return rate;
}
