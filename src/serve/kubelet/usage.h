/* usage.h - what the node, its pods and their containers use: CPU and memory, as the runtime and
 * the kernel count it, and which devices are held. Pure: messages and texts in, values and texts
 * out. */
#ifndef DV_SERVE_USAGE_H
#define DV_SERVE_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct CriV1__ListContainerStatsResponse;
struct CriV1__ListPodSandboxStatsResponse;
struct PodresV1__ListPodResourcesResponse;
struct dv_arena;
struct dv_buf;
struct dv_err;

/* A number that may not be known. */
struct dv_usage_number {
    bool is_known;
    uint64_t value;
};

struct dv_usage {
    int64_t cpu_at_ns; /* wall time */
    struct dv_usage_number cpu_ns;
    struct dv_usage_number nano_cores; /* how much CPU at this time: 1e9 is one */
    int64_t memory_at_ns;
    struct dv_usage_number working_set;
    struct dv_usage_number available;
    struct dv_usage_number in_use;
    struct dv_usage_number rss;
    struct dv_usage_number page_faults;
    struct dv_usage_number major_page_faults;
};

struct dv_usage_container {
    dv_str id;
    dv_str name;
    uint32_t attempt;
    int64_t started_ns; /* wall time; 0: not known */
    struct dv_usage usage;
    int64_t disk_at_ns;
    struct dv_usage_number disk_bytes; /* what it has written into its own file system */
    struct dv_usage_number disk_inodes;
};

struct dv_usage_pod {
    dv_str namespace;
    dv_str name;
    dv_str uid;
    int64_t started_ns; /* 0: not known */
    struct dv_usage usage;
    struct dv_usage_container *containers;
    size_t n_containers;
};

/* What is used at one time. It is kept by those who print it; nothing of it changes meanwhile. */
struct dv_usage_report {
    struct dv_arena *arena; /* holds it */
    unsigned n_refs;
    dv_str node_name;
    int64_t node_started_ns;
    struct dv_usage node;
    struct dv_usage_pod *pods; /* by namespace and name */
    size_t n_pods;
    bool is_failed; /* the runtime did not say what containers use */
};

/* Adds pods from the runtime's answers, which are kept. Containers that have ended are left out. A
 * pod whose sandbox is not in `sandboxes` (may be NULL), uses what its containers do. */
void dv_usage_add_pods(struct dv_usage_report *report,
                       const struct CriV1__ListContainerStatsResponse *containers,
                       const struct CriV1__ListPodSandboxStatsResponse *sandboxes,
                       struct dv_arena *arena);
/* Reads what the machine uses from the texts of /proc/stat and /proc/meminfo, at that wall time.
 * DV_INVALID_ARGUMENT: a text lacks what it has in every kernel. */
DV_CHECKED bool dv_usage_read_node(dv_str stat, dv_str meminfo, uint64_t ticks_per_s,
                                   int64_t now_ns, struct dv_usage *usage, int64_t *boot_ns,
                                   struct dv_err *err);
/* Finds how much CPU was used between two readings; nothing when that is not known. */
struct dv_usage_number dv_usage_rate(const struct dv_usage *before, const struct dv_usage *now);

/* Prints the report for Prometheus, under the reference's names, and each device that a container
 * holds, under ours. */
void dv_usage_print_metrics(const struct dv_usage_report *report,
                            const struct PodresV1__ListPodResourcesResponse *held,
                            struct dv_buf *buf);
/* Prints the report as the reference's Summary; with or without what is on disks. */
void dv_usage_print_summary(const struct dv_usage_report *report, bool has_disks,
                            struct dv_buf *buf);

#endif
