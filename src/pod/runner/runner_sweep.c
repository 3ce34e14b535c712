/* runner_sweep.c - removes the directories and logs of pods that nobody has any more: neither the
 * agent nor the runtime. One directory after the other, once a minute; links to logs come last. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "cri/cri.h"
#include "pod/pod.h"
#include "pod/runner.h"
#include "pod/runner/runner_cgroup.h"
#include "pod/runner/runner_links.h"
#include "pod/runner/runner_state.h"
#include "voldir/voldir.h"

struct dv_runner_sweep {
    struct dv_runner *runner;
    struct dv_arena *arena;
    struct dv_voldir_list list;
    struct dv_voldir_tear_down tear_down;
    struct dv_voldir_remove_logs remove_logs;
    struct dv_voldir_clean_links clean_links;
    size_t i; /* in the list */
};

static void next(struct dv_runner_sweep *sweep);

static void list(struct dv_runner_sweep *sweep, enum dv_voldir_place place, dv_str dir);

static void end(struct dv_runner_sweep *sweep)
{
    struct dv_runner *runner = sweep->runner;

    runner->sweep = NULL;
    dv_arena_free(sweep->arena);
    free(sweep);
    dv_runner_check_closed(runner);
}

static void on_links_cleaned(struct dv_voldir_clean_links *op, const struct dv_err *err)
{
    struct dv_runner_sweep *sweep = DV_CONTAINER(op, struct dv_runner_sweep, clean_links);

    if (err)
        dv_log(DV_LOG_WARN, "pod: links to logs that are gone stay for now", DV_F_ERR(err));
    end(sweep);
}

static bool is_known(const struct dv_runner *runner, dv_str uid)
{
    struct dv_pod_ref ref = {.uid = uid};
    struct dv_pod_view view;

    return dv_map_get(&runner->pods, uid) || dv_cri_view_pod(runner->cri, uid) ||
           dv_pods_find(runner->options.pods, &ref, &view) ||
           (runner->listener.is_wanted && runner->listener.is_wanted(runner->listener.ctx, uid));
}

static void on_torn_down(struct dv_voldir_tear_down *op, const struct dv_err *err)
{
    struct dv_runner_sweep *sweep = DV_CONTAINER(op, struct dv_runner_sweep, tear_down);

    if (err)
        dv_log(DV_LOG_WARN, "pod: the directory of a pod that is gone stays for now",
               DV_F_STR("uid", op->uid), DV_F_ERR(err));
    next(sweep);
}

static void on_logs_removed(struct dv_voldir_remove_logs *op, const struct dv_err *err)
{
    struct dv_runner_sweep *sweep = DV_CONTAINER(op, struct dv_runner_sweep, remove_logs);

    if (err)
        dv_log(DV_LOG_WARN, "pod: the logs of a pod that is gone stay for now",
               DV_F_STR("dir", op->log_dir), DV_F_ERR(err));
    next(sweep);
}

/* The uid is the last part of NAMESPACE_NAME_UID: none of the three has a '_'. */
static dv_str uid_of_logs(dv_str name)
{
    size_t at = name.n;

    while (at > 0 && name.p[at - 1] != '_')
        at--;
    return at > 0 ? dv_str_slice(name, at, name.n) : DV_STR("");
}

/* Removes the next directory that nobody knows; after the last one of volumes come the logs. */
static void next(struct dv_runner_sweep *sweep)
{
    struct dv_runner *runner = sweep->runner;
    bool is_logs = sweep->list.place == DV_VOLDIR_LOGS;

    while (!runner->is_closing && sweep->i < sweep->list.n_names) {
        dv_str name = sweep->list.names[sweep->i++];
        dv_str uid = is_logs ? uid_of_logs(name) : name;

        if (uid.n == 0 || is_known(runner, uid))
            continue;
        if (is_logs) {
            sweep->remove_logs = (struct dv_voldir_remove_logs){
                .done = on_logs_removed,
                .log_dir = dv_str_printf(sweep->arena, "%.*s/%.*s", DV_FMT(runner->options.log_dir),
                                         DV_FMT(name)),
            };
            dv_voldir_remove_logs(&sweep->remove_logs, runner->loop);
        } else {
            sweep->tear_down = (struct dv_voldir_tear_down){
                .done = on_torn_down,
                .root_dir = runner->options.root_dir,
                .uid = uid,
                .cgroup_dirs = dv_runner_cgroups_dirs(runner->cgroups, uid, sweep->arena),
            };
            dv_voldir_tear_down(&sweep->tear_down, runner->loop);
        }
        return;
    }
    if (runner->is_closing) {
        end(sweep);
    } else if (is_logs) {
        sweep->clean_links = (struct dv_voldir_clean_links){
            .done = on_links_cleaned,
            .dir = dv_runner_links_dir(runner->links),
            .log_dir = runner->options.log_dir,
            .ids = dv_runner_links_ids(runner->links, sweep->arena),
        };
        dv_voldir_clean_links(&sweep->clean_links, runner->loop);
    } else {
        list(sweep, DV_VOLDIR_LOGS, runner->options.log_dir);
    }
}

static void on_listed(struct dv_voldir_list *op, const struct dv_err *err)
{
    struct dv_runner_sweep *sweep = DV_CONTAINER(op, struct dv_runner_sweep, list);

    if (err)
        dv_log(DV_LOG_WARN, "pod: the directories of pods could not be listed", DV_F_ERR(err));
    sweep->i = 0;
    next(sweep);
}

static void list(struct dv_runner_sweep *sweep, enum dv_voldir_place place, dv_str dir)
{
    sweep->list = (struct dv_voldir_list){
        .done = on_listed, .place = place, .dir = dir, .arena = sweep->arena};
    dv_voldir_list(&sweep->list, sweep->runner->loop);
}

void dv_runner_sweep_start(struct dv_runner *runner)
{
    struct dv_runner_sweep *sweep;

    if (runner->sweep)
        return;
    sweep = DV_ALLOC(struct dv_runner_sweep);
    sweep->runner = runner;
    sweep->arena = dv_arena_new();
    runner->sweep = sweep;
    list(sweep, DV_VOLDIR_PODS, runner->options.root_dir);
}

void dv_runner_sweep_stop(struct dv_runner *runner)
{
    if (runner->sweep)
        dv_voldir_cancel(&runner->sweep->list.priv);
}
