/* roles.c - opens the controllers and the scheduler, where the daemon has these roles. */
#include <stdlib.h>

#include "apps/apps.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/metric.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "cluster/cluster.h"
#include "control/control.h"
#include "daemon/daemon_api.h"
#include "daemon/daemon_options.h"
#include "daemon/daemon_parts.h"
#include "lease/lease.h"
#include "sched/sched.h"
#include "serve/serve.h"

struct dv_control_metrics {
    struct dv_control *control;
    struct dv_family *creates;
    struct dv_family *claims;
    struct dv_family *deletions;
};

static void collect(void *ctx)
{
    static const dv_str words[] = {DV_STR_INIT("false"), DV_STR_INIT("true")};
    static const dv_str results[] = {DV_STR_INIT("success"), DV_STR_INIT("failure")};
    const struct dv_control_metrics *metrics = ctx;
    struct dv_control_stats stats;

    dv_control_get_stats(metrics->control, &stats);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++) {
            dv_str made[] = {results[i], words[k]};

            dv_counter_add(dv_family_counter(metrics->creates, made), stats.n_creates[i][k]);
            for (enum dv_claim_source s = 0; s < DV_N_CLAIM_SOURCES; s++) {
                dv_str there[] = {words[i], words[k], dv_str_from_c(dv_claim_source_name(s))};

                dv_gauge_set(dv_family_gauge(metrics->claims, there),
                             (double)stats.n_claims[i][k][s]);
            }
        }
    dv_counter_add(dv_family_counter(metrics->deletions, NULL), stats.n_pod_deletions);
}

static struct dv_histogram *add_families(struct dv_daemon *daemon)
{
    static const char *const create_labels[] = {"status", "admin_access"};
    static const char *const claim_labels[] = {"allocated", "admin_access", "source"};
    static const struct dv_family_spec creates = {
        .name = "resourceclaim_controller_creates_total",
        .help = "Claims that were to be generated",
        .labels = create_labels,
        .n_labels = DV_COUNT(create_labels),
        .is_collected = true,
    };
    static const struct dv_family_spec claims = {
        .name = "resourceclaim_controller_resource_claims",
        .help = "Claims",
        .labels = claim_labels,
        .n_labels = DV_COUNT(claim_labels),
        .is_collected = true,
    };
    static const struct dv_family_spec deletions = {
        .name = "device_taint_eviction_controller_pod_deletions_total",
        .help = "Pods that were deleted because of tainted devices",
        .is_collected = true,
    };
    static const struct dv_family_spec seconds = {
        .name = "device_taint_eviction_controller_pod_deletion_duration_seconds",
        .help = "Time from when a pod was to be evicted until it was deleted",
    };
    struct dv_metrics *registry = dv_node_metrics_registry(daemon->metrics);
    struct dv_control_metrics *metrics = DV_ALLOC(struct dv_control_metrics);

    metrics->creates = dv_metrics_add_counter(registry, &creates);
    metrics->claims = dv_metrics_add_gauge(registry, &claims);
    metrics->deletions = dv_metrics_add_counter(registry, &deletions);
    daemon->control_metrics = metrics;
    return dv_family_histogram(
        dv_metrics_add_histogram(registry, &seconds, dv_seconds_bounds, DV_SECONDS_BOUNDS), NULL);
}

/* Whether the pod holds claims on this node, which is all that this process knows. */
static bool is_held(void *ctx, dv_str pod_uid)
{
    const struct dv_daemon *daemon = ctx;

    return daemon->claims && dv_claim_pod_has_any(dv_claim_manager_state(daemon->claims), pod_uid);
}

static bool is_making_claims(void *ctx, dv_str namespace, dv_str pod)
{
    const struct dv_daemon *daemon = ctx;

    return daemon->control && dv_control_is_working_on(daemon->control, namespace, pod);
}

static void on_devices_changed(void *ctx)
{
    const struct dv_daemon *daemon = ctx;

    if (daemon->leases)
        dv_leases_look_again(daemon->leases);
}

bool dv_daemon_open_roles(struct dv_daemon *daemon, struct dv_err *err)
{
    struct dv_control_options control = {
        .cluster = daemon->cluster,
        .gates = dv_control_gates_default(),
        .n_running_max = daemon->options->kubeconfig.n == 0 ? DV_CONTROL_EMBEDDED_MAX : 0,
        .is_strict = daemon->options->is_strict,
        .watches_nodes = daemon->options->kubeconfig.n == 0, /* a real cluster does that itself */
        .serves_cluster_defaults = daemon->api && dv_daemon_api_has_accounts(daemon->api),
        .root_ca = daemon->api ? dv_daemon_api_root_ca(daemon->api) : DV_STR_NONE,
        /* The reference frees the claims of a pod that is gone, whatever a node holds. */
        .is_held = daemon->options->is_strict ? NULL : is_held,
        .ctx = daemon,
    };
    struct dv_sched_options sched = {
        .cluster = daemon->cluster,
        .scheduler_name = daemon->options->scheduler_name,
        .is_second = daemon->options->kubeconfig.n > 0, /* the cluster has its own */
        .is_strict = daemon->options->is_strict,
        .preempts_devices = daemon->options->preempts_devices,
        .metrics = dv_node_metrics_registry(daemon->metrics),
        .is_making_claims = is_making_claims,
        .devices_changed = on_devices_changed,
        .ctx = daemon,
    };

    if (daemon->options->roles & DV_ROLE_CONTROL) {
        control.deletion_seconds = add_families(daemon);
        daemon->control = dv_control_open(daemon->loop, &control, err);
        if (!daemon->control)
            return false;
        daemon->control_metrics->control = daemon->control;
        dv_metrics_add_collector(dv_node_metrics_registry(daemon->metrics), collect,
                                 daemon->control_metrics);
    }
    if ((daemon->options->roles & DV_ROLE_CONTROL) && daemon->cluster->is_embedded) {
        daemon->apps = dv_apps_open(daemon->loop, daemon->cluster, err);
        if (!daemon->apps)
            return false;
    }
    if (daemon->options->roles & DV_ROLE_SCHED)
        daemon->sched = dv_sched_open(daemon->loop, &sched, err);
    return !(daemon->options->roles & DV_ROLE_SCHED) || daemon->sched != NULL;
}

void dv_daemon_forget_control(struct dv_daemon *daemon)
{
    if (!daemon->control_metrics)
        return;
    dv_metrics_remove_collector(dv_node_metrics_registry(daemon->metrics), collect,
                                daemon->control_metrics);
    free(daemon->control_metrics);
    daemon->control_metrics = NULL;
}
