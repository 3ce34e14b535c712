/* sched_metrics.c - the scheduler's numbers, by the names that they have in the reference. */
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/metric.h"
#include "base/str.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* What the label `result` says. */
static const char *result_name(enum dv_sched_result result)
{
    static const char *const names[DV_SCHED_N_RESULTS] = {
        [DV_SCHED_SCHEDULED] = "scheduled",
        [DV_SCHED_UNSCHEDULABLE] = "unschedulable",
        [DV_SCHED_ERROR] = "error",
    };

    return result < DV_SCHED_N_RESULTS ? names[result] : "unknown";
}

/* What the label `queue` says. */
static const char *queue_name(enum dv_sched_queue queue)
{
    static const char *const names[DV_SCHED_N_QUEUES] = {
        [DV_SCHED_ACTIVE] = "active",
        [DV_SCHED_BACKOFF] = "backoff",
        [DV_SCHED_WAITING] = "unschedulable",
        [DV_SCHED_GATED] = "gated",
    };

    return queue < DV_SCHED_N_QUEUES ? names[queue] : "unknown";
}

static void collect(void *ctx)
{
    struct dv_sched *sched = ctx;

    for (size_t i = 0; i < DV_SCHED_N_QUEUES; i++)
        dv_gauge_set(sched->metrics.pending[i], (double)sched->n_pending[i]);
}

static void open_attempts(struct dv_sched *sched)
{
    static const char *const labels[] = {"profile", "result"};
    static const struct dv_family_spec count = {.name = "scheduler_schedule_attempts_total",
                                                .help =
                                                    "Attempts to schedule pods, by their result.",
                                                .labels = labels,
                                                .n_labels = DV_COUNT(labels)};
    static const struct dv_family_spec seconds = {
        .name = "scheduler_scheduling_attempt_duration_seconds",
        .help = "How long attempts took, until the pod was bound or put aside.",
        .labels = labels,
        .n_labels = DV_COUNT(labels)};
    struct dv_metrics *metrics = sched->options.metrics;
    struct dv_family *counts = dv_metrics_add_counter(metrics, &count);
    struct dv_family *times =
        dv_metrics_add_histogram(metrics, &seconds, dv_seconds_bounds, DV_SECONDS_BOUNDS);

    for (size_t i = 0; i < DV_SCHED_N_RESULTS; i++) {
        const dv_str values[] = {sched->name, dv_str_from_c(result_name((enum dv_sched_result)i))};

        sched->metrics.attempts[i] = dv_family_counter(counts, values);
        sched->metrics.attempt_seconds[i] = dv_family_histogram(times, values);
    }
}

static void open_pods(struct dv_sched *sched)
{
    static const char *const labels[] = {"queue"};
    static const struct dv_family_spec pending = {.name = "scheduler_pending_pods",
                                                  .help = "Pods that are not scheduled, by queue.",
                                                  .labels = labels,
                                                  .n_labels = DV_COUNT(labels)};
    static const struct dv_family_spec seconds = {
        .name = "scheduler_pod_scheduling_sli_duration_seconds",
        .help = "From when a pod was first seen until it was bound."};
    struct dv_metrics *metrics = sched->options.metrics;
    struct dv_family *family = dv_metrics_add_gauge(metrics, &pending);

    for (size_t i = 0; i < DV_SCHED_N_QUEUES; i++) {
        const dv_str value = dv_str_from_c(queue_name((enum dv_sched_queue)i));

        sched->metrics.pending[i] = dv_family_gauge(family, &value);
    }
    sched->metrics.pod_seconds = dv_family_histogram(
        dv_metrics_add_histogram(metrics, &seconds, dv_seconds_bounds, DV_SECONDS_BOUNDS), NULL);
}

static void open_claims(struct dv_sched *sched)
{
    static const char *const status[] = {"status"};
    static const char *const labels[] = {"profile", "driver", "status"};
    static const struct dv_family_spec creates = {
        .name = "scheduler_resourceclaim_creates_total",
        .help = "Claims that were made for extended resources, by status.",
        .labels = status,
        .n_labels = DV_COUNT(status)};
    static const struct dv_family_spec conditions = {
        .name = "scheduler_dra_bindingconditions_allocations_total",
        .help = "Devices whose conditions were waited for, by how that ended.",
        .labels = labels,
        .n_labels = DV_COUNT(labels)};
    static const struct dv_family_spec seconds = {
        .name = "scheduler_dra_bindingconditions_wait_duration_seconds",
        .help = "How long conditions of devices were waited for.",
        .labels = labels,
        .n_labels = DV_COUNT(labels)};
    struct dv_metrics *metrics = sched->options.metrics;
    struct dv_family *family = dv_metrics_add_counter(metrics, &creates);

    sched->metrics.claim_creates[0] = dv_family_counter(family, &DV_STR("failure"));
    sched->metrics.claim_creates[1] = dv_family_counter(family, &DV_STR("success"));
    sched->metrics.conditions = dv_metrics_add_counter(metrics, &conditions);
    sched->metrics.condition_seconds =
        dv_metrics_add_histogram(metrics, &seconds, dv_seconds_bounds, DV_SECONDS_BOUNDS);
}

void dv_sched_metrics_open(struct dv_sched *sched)
{
    if (!sched->options.metrics)
        return;
    open_attempts(sched);
    open_pods(sched);
    open_claims(sched);
    dv_metrics_add_collector(sched->options.metrics, collect, sched);
}

void dv_sched_metrics_close(struct dv_sched *sched)
{
    if (sched->options.metrics)
        dv_metrics_remove_collector(sched->options.metrics, collect, sched);
}

void dv_sched_count_attempt(struct dv_sched *sched, enum dv_sched_result result, uint64_t ns)
{
    sched->numbers.n_attempts[result]++;
    if (!sched->options.metrics)
        return;
    dv_counter_add(sched->metrics.attempts[result], 1);
    dv_histogram_observe_ns(sched->metrics.attempt_seconds[result], ns);
}

void dv_sched_count_conditions(struct dv_sched *sched, dv_str driver, const char *status,
                               uint64_t ns)
{
    const dv_str values[] = {sched->name, driver, dv_str_from_c(status)};

    if (!sched->options.metrics)
        return;
    dv_counter_add(dv_family_counter(sched->metrics.conditions, values), 1);
    dv_histogram_observe_ns(dv_family_histogram(sched->metrics.condition_seconds, values), ns);
}

void dv_sched_get_numbers(const struct dv_sched *sched, struct dv_sched_numbers *numbers)
{
    *numbers = sched->numbers;
    for (size_t i = 0; i < DV_SCHED_N_QUEUES; i++)
        numbers->n_pending[i] = sched->n_pending[i];
    numbers->n_binding = sched->n_binding;
    numbers->n_in_flight = sched->n_in_flight;
    numbers->is_searching = sched->attempt != NULL || dv_sched_slices_are_behind(sched);
    numbers->n_unsaid = sched->n_events + sched->n_telling + sched->n_unsaid;
}
