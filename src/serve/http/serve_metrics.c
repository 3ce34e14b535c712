/* serve_metrics.c - what the node counts, for /metrics. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/metric.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "plugin/guard.h"
#include "plugin/plugin.h"
#include "pod/pod.h"
#include "policy/policy.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"
#include "store/store.h"
#include "topology/topology.h"

/* The reference's buckets of Allocate begin higher; below them ours begin at 10 us. */
static const double alloc_bounds[] = {0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001,
                                      0.0025,  0.005,    0.01,    0.025,  0.05,    0.1,    0.25,
                                      0.5,     1,        2.5,     5,      10};

static const char *const resource_label[] = {"resource_name"};
static const char *const plugin_labels[] = {"socket_path", "state"};
static const char *const policy_labels[] = {"action", "mode"};
static const char *const version_label[] = {"server_api_version"};
static const char *const result_label[] = {"result"};
static const char *const alignment_labels[] = {"scope", "boundary"};

/* The reference's buckets: 0.05 times powers of two. */
static const double topology_bounds[] = {0.05, 0.1,  0.2,  0.4,   0.8,   1.6,   3.2,  6.4,
                                         12.8, 25.6, 51.2, 102.4, 204.8, 409.6, 819.2};

enum { PODRES_CALLS = 6 };

struct dv_node_metrics {
    struct dv_metrics *registry;
    const struct dv_node *node;
    struct dv_store *store;
    const struct dv_podres_server *podres;
    struct dv_family *allocations;
    struct dv_family *admissions;
    struct dv_family *topology_requests;
    struct dv_family *topology_errors;
    struct dv_histogram *topology_ms;
    struct dv_family *aligned;
    struct dv_family *misaligned;
    struct dv_family *registrations;
    struct dv_family *plugins;
    struct dv_family *refusals;
    struct dv_family *capacity;
    struct dv_family *allocatable;
    struct dv_family *held;
    struct dv_family *pods;
    struct dv_family *podres_requests;
    struct dv_family *podres_calls[PODRES_CALLS];
    struct dv_family *store_totals[4];
    struct dv_family *operations;
    struct dv_family *driver_calls;
    struct dv_family *claims_in_use;
};

/* Adds a family whose series are made anew for each print. */
static struct dv_family *collected(struct dv_metrics *registry, const char *name, const char *help,
                                   const char *const *labels, size_t n_labels, bool is_counter)
{
    struct dv_family_spec spec = {
        .name = name,
        .help = help,
        .labels = labels,
        .n_labels = n_labels,
        .series_max = DV_DEVICE_RESOURCES_MAX,
        .is_collected = true,
    };

    return is_counter ? dv_metrics_add_counter(registry, &spec)
                      : dv_metrics_add_gauge(registry, &spec);
}

static void count(struct dv_family *family, const dv_str *values, uint64_t n)
{
    dv_counter_add(dv_family_counter(family, values), n);
}

static void set(struct dv_family *family, const dv_str *values, uint64_t n)
{
    dv_gauge_set(dv_family_gauge(family, values), (double)n);
}

static void collect_devices(struct dv_node_metrics *metrics, struct dv_arena *arena)
{
    const struct dv_serve_resource *resources;
    size_t n = dv_serve_resources(metrics->node, arena, &resources);
    uint64_t n_registrations;
    dv_str resource;
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        set(metrics->capacity, &resources[i].name, resources[i].capacity);
        set(metrics->allocatable, &resources[i].name, resources[i].allocatable);
        set(metrics->held, &resources[i].name, resources[i].held);
    }
    while (dv_device_manager_next_count(metrics->node->devices, &at, &resource, &n_registrations))
        count(metrics->registrations, &resource, n_registrations);
}

static void collect_plugins(struct dv_node_metrics *metrics)
{
    struct dv_plugin_view view;
    size_t at = 0;

    while (dv_plugins_next(metrics->node->plugins, &at, &view)) {
        dv_str values[] = {view.info->socket, DV_STR("desired_state_of_world")};

        if (view.is_desired)
            set(metrics->plugins, values, 1);
        values[1] = DV_STR("actual_state_of_world");
        if (view.is_actual)
            set(metrics->plugins, values, 1);
    }
}

/* Collects the refusals of the policy. Where there is one, they are printed from the start: that
 * nothing was refused is worth a line too. */
static void collect_policy(struct dv_node_metrics *metrics)
{
    const struct dv_guard *guard = metrics->node->guard;

    if (!guard)
        return;
    for (enum dv_policy_action action = 0; action < DV_N_POLICY_ACTIONS; action++) {
        dv_str values[] = {dv_str_from_c(dv_policy_action_name(action)), DV_STR("enforce")};

        count(metrics->refusals, values, dv_guard_count(guard, action, false));
        values[1] = DV_STR("warn");
        count(metrics->refusals, values, dv_guard_count(guard, action, true));
    }
}

static void collect_podres(struct dv_node_metrics *metrics)
{
    static const dv_str versions[] = {DV_STR_INIT("v1"), DV_STR_INIT("v1alpha1")};
    struct dv_podres_counts counts;
    uint64_t calls[PODRES_CALLS] = {0}; /* calls after the fourth cannot fail here */

    dv_podres_server_get_counts(metrics->podres, &counts);
    for (size_t i = 0; i < 2; i++)
        count(metrics->podres_requests, &versions[i], counts.n_requests[i]);
    calls[0] = counts.n_list;
    calls[1] = counts.n_get_allocatable;
    calls[2] = counts.n_get;
    calls[3] = counts.n_get_errors;
    for (size_t i = 0; i < DV_COUNT(calls); i++)
        count(metrics->podres_calls[i], &versions[0], calls[i]);
}

/* Collects alignment. It is counted only where a policy may promise it, and there from the
 * start. */
static void collect_topology(struct dv_node_metrics *metrics)
{
    static const dv_str of_containers[] = {DV_STR_INIT("container"), DV_STR_INIT("numa_node")};
    static const dv_str of_pods[] = {DV_STR_INIT("pod"), DV_STR_INIT("numa_node")};
    const struct dv_topology_counts *counts = dv_pods_topology_counts(metrics->node->pods);

    count(metrics->topology_requests, NULL, counts->n_requests);
    count(metrics->topology_errors, NULL, counts->n_errors);
    if (!dv_pods_has_policy(metrics->node->pods))
        return;
    count(metrics->aligned, of_containers, counts->of_containers.n_kept);
    count(metrics->aligned, of_pods, counts->of_pods.n_kept);
    count(metrics->misaligned, of_containers, counts->of_containers.n_broken);
    count(metrics->misaligned, of_pods, counts->of_pods.n_broken);
}

/* Collects the claims; the series "<any>" is always there. */
static void collect_claims(struct dv_node_metrics *metrics, struct dv_arena *arena)
{
    static const dv_str any = DV_STR_INIT("<any>");
    const struct dv_claim_state *state = dv_claim_manager_state(metrics->node->claims);
    dv_str *drivers;
    size_t *counts;
    size_t n = dv_claim_drivers_in_use(state, arena, &drivers, &counts);

    set(metrics->claims_in_use, &any, dv_claim_n_prepared(state));
    for (size_t i = 0; i < n; i++)
        set(metrics->claims_in_use, &drivers[i], counts[i]);
}

static void collect_store(struct dv_node_metrics *metrics)
{
    struct dv_store_stats stats;
    uint64_t totals[4];

    dv_store_get_stats(metrics->store, &stats);
    totals[0] = stats.n_commits;
    totals[1] = stats.n_writes;
    totals[2] = stats.n_failed_commits;
    totals[3] = stats.commit_ns / 1000;
    for (size_t i = 0; i < DV_COUNT(totals); i++)
        count(metrics->store_totals[i], NULL, totals[i]);
}

static void collect(void *ctx)
{
    struct dv_node_metrics *metrics = ctx;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    if (!metrics->node)
        return;
    collect_devices(metrics, arena);
    collect_policy(metrics);
    collect_plugins(metrics);
    collect_podres(metrics);
    collect_topology(metrics);
    collect_store(metrics);
    collect_claims(metrics, arena);
    set(metrics->pods, NULL, dv_pods_count(metrics->node->pods));
}

static void add_topology_families(struct dv_node_metrics *metrics)
{
    static const struct dv_family_spec duration = {
        .name = "kubelet_topology_manager_admission_duration_ms",
        .help = "Time of an admission in whole milliseconds, without waiting for plugins",
    };
    struct dv_metrics *registry = metrics->registry;

    metrics->topology_requests = collected(
        registry, "kubelet_topology_manager_admission_requests_total", "Admissions", NULL, 0, true);
    metrics->topology_errors =
        collected(registry, "kubelet_topology_manager_admission_errors_total",
                  "Admissions that alignment or allocation refused", NULL, 0, true);
    metrics->topology_ms = dv_family_histogram(
        dv_metrics_add_histogram(registry, &duration, topology_bounds, DV_COUNT(topology_bounds)),
        NULL);
    metrics->aligned =
        collected(registry, "kubelet_container_aligned_compute_resources_count",
                  "Containers and pods that got all on one NUMA node", alignment_labels, 2, true);
    metrics->misaligned = collected(
        registry, "kubelet_container_aligned_compute_resources_failure_count",
        "Containers and pods that were refused for want of it", alignment_labels, 2, true);
}

/* Adds the families that others in a cluster already graph, under the reference's names. */
static void add_reference_families(struct dv_node_metrics *metrics)
{
    static const struct {
        const char *name;
        const char *help;
    } calls[PODRES_CALLS] = {
        {"kubelet_pod_resources_endpoint_requests_list",            "Calls of List"            },
        {"kubelet_pod_resources_endpoint_requests_get_allocatable",
         "Calls of GetAllocatableResources"                                                    },
        {"kubelet_pod_resources_endpoint_requests_get",             "Calls of Get"             },
        {"kubelet_pod_resources_endpoint_errors_get",               "Calls of Get that failed" },
        {"kubelet_pod_resources_endpoint_errors_list",              "Calls of List that failed"},
        {"kubelet_pod_resources_endpoint_errors_get_allocatable",
         "Calls of GetAllocatableResources that failed"                                        },
    };
    struct dv_metrics *registry = metrics->registry;
    struct dv_family_spec alloc = {
        .name = "kubelet_device_plugin_alloc_duration_seconds",
        .help = "Time of calls of Allocate",
        .labels = resource_label,
        .n_labels = 1,
        .series_max = DV_DEVICE_RESOURCES_MAX,
    };

    metrics->allocations =
        dv_metrics_add_histogram(registry, &alloc, alloc_bounds, DV_COUNT(alloc_bounds));
    metrics->registrations =
        collected(registry, "kubelet_device_plugin_registration_total",
                  "Calls of Register, refused ones included", resource_label, 1, true);
    metrics->plugins =
        collected(registry, "plugin_manager_total_plugins",
                  "Plugins that were found and that are registered", plugin_labels, 2, false);
    metrics->refusals = collected(registry, "davit_policy_refusals_total",
                                  "What the policy refused, or would have", policy_labels, 2, true);
    metrics->podres_requests =
        collected(registry, "kubelet_pod_resources_endpoint_requests_total",
                  "Calls that passed the rate limit", version_label, 1, true);
    for (size_t i = 0; i < DV_COUNT(calls); i++)
        metrics->podres_calls[i] =
            collected(registry, calls[i].name, calls[i].help, version_label, 1, true);
}

static void add_claim_families(struct dv_node_metrics *metrics)
{
    static const char *const operation_labels[] = {"operation_name", "is_error"};
    static const char *const call_labels[] = {"driver_name", "method_name", "grpc_status_code"};
    static const struct dv_family_spec operations = {
        .name = "dra_operations_duration_seconds",
        .help = "Time of preparing and unpreparing the claims of a pod",
        .labels = operation_labels,
        .n_labels = DV_COUNT(operation_labels),
    };
    static const struct dv_family_spec calls = {
        .name = "dra_grpc_operations_duration_seconds",
        .help = "Time of calls to DRA drivers",
        .labels = call_labels,
        .n_labels = DV_COUNT(call_labels),
        .series_max = DV_DEVICE_RESOURCES_MAX,
    };

    metrics->operations = dv_metrics_add_histogram(
        metrics->registry, &operations, dv_claim_seconds_bounds, DV_CLAIM_SECONDS_BOUNDS);
    metrics->driver_calls = dv_metrics_add_histogram(
        metrics->registry, &calls, dv_claim_seconds_bounds, DV_CLAIM_SECONDS_BOUNDS);
    metrics->claims_in_use = collected(metrics->registry, "dra_resource_claims_in_use",
                                       "Claims that are prepared", call_labels, 1, false);
}

static void add_own_families(struct dv_node_metrics *metrics)
{
    static const struct {
        const char *name;
        const char *help;
    } totals[] = {
        {"davit_store_commits_total",             "Commits"                     },
        {"davit_store_writes_total",              "Writes that shared them"     },
        {"davit_store_failed_commits_total",      "Commits that failed"         },
        {"davit_store_commit_microseconds_total", "Time of all commits together"},
    };
    struct dv_metrics *registry = metrics->registry;
    struct dv_family_spec admissions = {
        .name = "davit_pod_admission_duration_seconds",
        .help = "Time to the verdict on a pod, waiting included",
        .labels = result_label,
        .n_labels = 1,
    };

    metrics->admissions =
        dv_metrics_add_histogram(registry, &admissions, dv_seconds_bounds, DV_SECONDS_BOUNDS);
    metrics->capacity = collected(registry, "davit_device_capacity", "Devices that are listed",
                                  resource_label, 1, false);
    metrics->allocatable = collected(registry, "davit_device_allocatable",
                                     "Devices that are healthy", resource_label, 1, false);
    metrics->held = collected(registry, "davit_device_held", "Devices that pods hold",
                              resource_label, 1, false);
    metrics->pods = collected(registry, "davit_pods", "Pods on this node", NULL, 0, false);
    for (size_t i = 0; i < DV_COUNT(totals); i++)
        metrics->store_totals[i] =
            collected(registry, totals[i].name, totals[i].help, NULL, 0, true);
}

struct dv_node_metrics *dv_node_metrics_new(void)
{
    struct dv_node_metrics *metrics = DV_ALLOC(struct dv_node_metrics);

    metrics->registry = dv_metrics_new();
    add_reference_families(metrics);
    add_topology_families(metrics);
    add_claim_families(metrics);
    add_own_families(metrics);
    dv_metrics_add_collector(metrics->registry, collect, metrics);
    return metrics;
}

void dv_node_metrics_free(struct dv_node_metrics *metrics)
{
    if (!metrics)
        return;
    dv_metrics_free(metrics->registry);
    free(metrics);
}

void dv_node_metrics_watch(struct dv_node_metrics *metrics, const struct dv_node *node,
                           struct dv_store *store, const struct dv_podres_server *podres)
{
    metrics->node = node;
    metrics->store = store;
    metrics->podres = podres;
}

void dv_node_metrics_allocated(struct dv_node_metrics *metrics, dv_str resource, uint64_t ns)
{
    dv_histogram_observe_ns(dv_family_histogram(metrics->allocations, &resource), ns);
}

void dv_node_metrics_ended(struct dv_node_metrics *metrics, const struct dv_pod_verdict *verdict,
                           const struct dv_pod_times *times)
{
    dv_str result = DV_STR("failed");
    uint64_t whole_ms = times->allocation_ns / DV_NS_PER_MS;

    if (verdict)
        result = verdict->is_admitted ? DV_STR("admitted") : DV_STR("refused");
    dv_histogram_observe_ns(dv_family_histogram(metrics->admissions, &result), times->all_ns);
    dv_histogram_observe(metrics->topology_ms, (double)whole_ms);
}

void dv_node_metrics_operation(struct dv_node_metrics *metrics, const char *name, bool is_error,
                               uint64_t ns)
{
    dv_str values[] = {dv_str_from_c(name), is_error ? DV_STR("true") : DV_STR("false")};

    dv_histogram_observe_ns(dv_family_histogram(metrics->operations, values), ns);
}

void dv_node_metrics_driver_call(struct dv_node_metrics *metrics, dv_str driver, const char *method,
                                 enum dv_code code, uint64_t ns)
{
    dv_str values[] = {driver, dv_str_from_c(method), dv_str_from_c(dv_code_go_name(code))};

    dv_histogram_observe_ns(dv_family_histogram(metrics->driver_calls, values), ns);
}

struct dv_metrics *dv_node_metrics_registry(struct dv_node_metrics *metrics)
{
    return metrics->registry;
}
