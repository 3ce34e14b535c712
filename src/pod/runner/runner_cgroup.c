#include "pod/runner/runner_cgroup.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "cri/cri.h"
#include "pod/runner.h"
#include "pod/runner/runner_job.h"
#include "pod/runner/runner_state.h"
#include "voldir/voldir.h"
#include "workload/cgroup.h"
#include "workload/config.h"
#include "workload/workload.h"

enum tree_state { TREE_UNTRIED, TREE_BEING_MADE, TREE_MADE, TREE_FAILED };

struct dv_runner_cgroups {
    struct dv_runner *runner;
    void (*settled)(struct dv_runner *runner);
    struct dv_arena *arena;
    enum tree_state state;
    struct dv_voldir_cgroups op; /* its tree is there when it is made */
    bool is_for_runtime;         /* the runtime takes cgroups that we made */
    const char *told;            /* why not, as it was logged last; NULL: nothing was */
};

static void set_node(struct dv_runner_cgroups *cgroups)
{
    cgroups->runner->node.has_pod_cgroups = cgroups->state == TREE_MADE && cgroups->is_for_runtime;
}

static void on_made(struct dv_voldir_cgroups *op, const struct dv_err *err)
{
    struct dv_runner_cgroups *cgroups = DV_CONTAINER(op, struct dv_runner_cgroups, op);
    struct dv_runner *runner = cgroups->runner;

    cgroups->state = err ? TREE_FAILED : TREE_MADE;
    if (err && err->code != DV_CANCELLED)
        dv_log(DV_LOG_WARN,
               "pod: pods have no cgroups of their own: limits are those of containers",
               DV_F_ERR(err));
    set_node(cgroups);
    if (runner->is_closing)
        dv_runner_check_closed(runner);
    else
        cgroups->settled(runner);
}

/* Why the runtime does not take cgroups that we made; NULL: it does. */
static const char *fault_of(const struct dv_cri_runtime *runtime)
{
    if (!runtime->knows_cgroup_driver)
        return "the runtime does not tell its cgroup driver";
    /* With that driver slices are made by systemd alone: what others make there it may undo. */
    if (runtime->is_systemd_cgroups)
        return "the runtime has cgroups made by systemd";
    return NULL;
}

void dv_runner_cgroups_read(struct dv_runner_cgroups *cgroups, const struct dv_cri_runtime *runtime)
{
    const char *fault = fault_of(runtime);
    struct dv_runner *runner = cgroups->runner;

    if (runner->options.cgroup_dir.n == 0)
        return;
    if (fault && fault != cgroups->told)
        dv_log(DV_LOG_INFO, "pod: pods have no cgroups of their own",
               DV_F_STR("reason", dv_str_from_c(fault)));
    cgroups->told = fault;
    cgroups->is_for_runtime = !fault;
    set_node(cgroups);
    if (fault || cgroups->state != TREE_UNTRIED)
        return;
    cgroups->state = TREE_BEING_MADE;
    cgroups->op = (struct dv_voldir_cgroups){
        .done = on_made,
        .dir = runner->options.cgroup_dir,
        .tree = {.root = runner->options.cgroup_root,
                 .page_sizes = runner->node.hugepage_sizes,
                 .n_cpus = runner->options.n_cpus},
        .arena = cgroups->arena,
    };
    dv_voldir_cgroups(&cgroups->op, runner->loop);
}

bool dv_runner_cgroups_are_busy(const struct dv_runner_cgroups *cgroups)
{
    return cgroups->state == TREE_BEING_MADE;
}

/* What the burstable pods that have a cgroup ask for together. */
static uint64_t sum_shares(const struct dv_runner *runner)
{
    const struct dv_map_entry *entry;
    uint64_t sum = 0;

    for (size_t at = 0; (entry = dv_map_next(&runner->pods, &at)) != NULL;)
        sum += ((const struct dv_runner_pod *)entry->value)->burstable_shares;
    return sum;
}

const struct dv_cgroup_plan *dv_runner_cgroups_plan(struct dv_runner_job *job)
{
    struct dv_runner_pod *pod = job->pod;
    const struct dv_runner *runner = pod->runner;
    struct dv_cgroup_plan *plan;
    struct dv_config_cgroup limits;
    bool is_burstable;

    if (!runner->node.has_pod_cgroups || pod->has_cgroup)
        return NULL;
    plan = DV_NEW(job->arena, struct dv_cgroup_plan);
    dv_config_cgroup(&job->workload, job->arena, &limits);
    is_burstable = dv_str_eq(dv_config_qos(job->workload.pod, job->arena), DV_STR("Burstable"));
    pod->burstable_shares = is_burstable ? limits.cpu_shares : 0;
    dv_cgroup_plan_pod(&runner->cgroups->op.tree,
                       dv_config_cgroup_parent(&runner->node, &job->workload, job->arena), &limits,
                       is_burstable ? sum_shares(runner) : 0, job->arena, plan);
    return plan;
}

struct dv_strs dv_runner_cgroups_dirs(const struct dv_runner_cgroups *cgroups, dv_str uid,
                                      struct dv_arena *arena)
{
    if (cgroups->state != TREE_MADE)
        return (struct dv_strs){0};
    return dv_cgroup_dirs_of_pod(&cgroups->op.tree, uid, arena);
}

struct dv_runner_cgroups *dv_runner_cgroups_new(struct dv_runner *runner,
                                                void (*settled)(struct dv_runner *runner))
{
    struct dv_runner_cgroups *cgroups = DV_ALLOC(struct dv_runner_cgroups);

    cgroups->runner = runner;
    cgroups->settled = settled;
    cgroups->arena = dv_arena_new();
    return cgroups;
}

void dv_runner_cgroups_free(struct dv_runner_cgroups *cgroups)
{
    if (!cgroups)
        return;
    dv_arena_free(cgroups->arena);
    free(cgroups);
}
