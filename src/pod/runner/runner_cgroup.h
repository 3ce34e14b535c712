/* runner_cgroup.h - the cgroups of pods (workload/cgroup.h): whether they have any on this machine,
 * and what voldir is to make and remove for each.
 *
 * They have when the runtime tells that it makes cgroups itself (the driver cgroupfs), and the tree
 * above them could be made. Where that is not so it is said once, and the runtime chooses where the
 * containers of a pod are; their own limits hold all the same. */
#ifndef DV_POD_RUNNER_CGROUP_H
#define DV_POD_RUNNER_CGROUP_H

#include <stdbool.h>

#include "base/str.h"
#include "resource/values.h"

struct dv_arena;
struct dv_cgroup_plan;
struct dv_cri_runtime;
struct dv_runner;
struct dv_runner_cgroups;
struct dv_runner_job;

/* `settled` runs when dv_runner_cgroups_are_busy has become false. */
struct dv_runner_cgroups *dv_runner_cgroups_new(struct dv_runner *runner,
                                                void (*settled)(struct dv_runner *runner));
void dv_runner_cgroups_free(struct dv_runner_cgroups *cgroups); /* nothing is under way */

/* Learns what the runtime says of itself, and sets the node's has_pod_cgroups: after a job, the
 * first time. */
void dv_runner_cgroups_read(struct dv_runner_cgroups *cgroups,
                            const struct dv_cri_runtime *runtime);
/* Whether that job is under way: nothing is to be started meanwhile. */
bool dv_runner_cgroups_are_busy(const struct dv_runner_cgroups *cgroups);

/* What is made for the job's pod, in the job's arena; NULL: nothing, or it is there already. */
const struct dv_cgroup_plan *dv_runner_cgroups_plan(struct dv_runner_job *job);
/* The directories that are removed with a pod. */
struct dv_strs dv_runner_cgroups_dirs(const struct dv_runner_cgroups *cgroups, dv_str uid,
                                      struct dv_arena *arena);

#endif
