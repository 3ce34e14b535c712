/* cgroup.h - the cgroups of pods: where they are, and what is written there.
 *
 *     <root>/kubepods                        shares of all CPUs
 *         pod<uid>                           Guaranteed pods
 *         burstable/pod<uid>                 burstable: the shares of its pods together
 *         besteffort/pod<uid>                besteffort: the least there is
 *
 * A pod's group is made before its first sandbox and named to the runtime as the sandbox's parent
 * (dv_config_cgroup_parent); the groups in it are the runtime's. On a machine with cgroups of
 * version 1 the tree is there once for each hierarchy, and only those with limits are written to:
 * the runtime makes the others, and all of them are removed with the pod.
 *
 * Everything is pure: plans are lists of steps, which voldir does. */
#ifndef DV_WORKLOAD_CGROUP_H
#define DV_WORKLOAD_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "resource/values.h"

struct dv_arena;
struct dv_config_cgroup;

/* A hierarchy of cgroups that is mounted. */
struct dv_cgroup_mount {
    dv_str path;        /* "/sys/fs/cgroup/memory" */
    dv_str controllers; /* "cpu,cpuacct"; of version 2: "cpu memory pids", as the kernel prints */
    bool is_v2;
};

struct dv_cgroup_mounts {
    struct dv_cgroup_mount *v;
    size_t n;
};

/* Reads the text of /proc/self/mountinfo: the hierarchies that are mounted at `dir` or below. Of
 * those of version 2 the controllers are empty: the kernel tells them in a file. */
void dv_cgroup_mounts_parse(dv_str mountinfo, dv_str dir, struct dv_arena *arena,
                            struct dv_cgroup_mounts *mounts);

/* Whether pods can be limited here: there are hierarchies with the controllers cpu and memory. */
bool dv_cgroup_mounts_are_useful(const struct dv_cgroup_mounts *mounts);

/* One step: the directory at `path` is made, or `text` written to the file there. */
struct dv_cgroup_step {
    dv_str path;
    dv_str text; /* p is NULL: a directory */
};

struct dv_cgroup_plan {
    struct dv_cgroup_step *v;
    size_t n;
    size_t size;
};

/* What the tree is made for. */
struct dv_cgroup_tree {
    const struct dv_cgroup_mounts *mounts;
    dv_str root;               /* "" or "/davit": above kubepods */
    struct dv_strs page_sizes; /* "2MB": those of the kernel */
    uint64_t n_cpus;
};

/* Plans the groups above those of pods. */
void dv_cgroup_plan_tree(const struct dv_cgroup_tree *tree, struct dv_arena *arena,
                         struct dv_cgroup_plan *plan);

/* Plans the group of a pod, `parent` as dv_config_cgroup_parent tells, and what is above it.
 * `burstable_shares` is what all burstable pods ask for together; 0: it stays as it is. */
void dv_cgroup_plan_pod(const struct dv_cgroup_tree *tree, dv_str parent,
                        const struct dv_config_cgroup *limits, uint64_t burstable_shares,
                        struct dv_arena *arena, struct dv_cgroup_plan *plan);

/* Every directory that may be the group of this pod, whatever its class is, was, or who made it. */
struct dv_strs dv_cgroup_dirs_of_pod(const struct dv_cgroup_tree *tree, dv_str uid,
                                     struct dv_arena *arena);

#endif
