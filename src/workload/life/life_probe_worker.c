/* life_probe_worker.c - when a container is probed, and which result counts. */
#include "workload/probe.h"

#include "base/str.h"
#include "resource/resource.h"

enum {
    PERIOD_S = 10, /* the API's defaults */
    FAILURE_THRESHOLD = 3,
    SUCCESS_THRESHOLD = 1,
    ERRORS_MAX = 3, /* in one run, then its result is thrown away */
};

dv_str dv_probe_kind_name(enum dv_probe_kind kind)
{
    static const dv_str names[DV_N_PROBE_KINDS] = {
        [DV_PROBE_STARTUP] = DV_STR_INIT("Startup"),
        [DV_PROBE_LIVENESS] = DV_STR_INIT("Liveness"),
        [DV_PROBE_READINESS] = DV_STR_INIT("Readiness"),
    };

    return names[kind];
}

const struct dv_api_probe *dv_probe_of(const struct dv_api_container *container,
                                       enum dv_probe_kind kind)
{
    switch (kind) {
    case DV_PROBE_STARTUP:
        return container->startup_probe;
    case DV_PROBE_LIVENESS:
        return container->liveness_probe;
    case DV_PROBE_READINESS:
        return container->readiness_probe;
    case DV_N_PROBE_KINDS:
        break;
    }
    return NULL;
}

enum dv_probe_outcome dv_probe_judge_exec(int32_t exit_code)
{
    return exit_code == 0 ? DV_PROBE_SUCCESS : DV_PROBE_FAILURE;
}

static uint64_t period_ms(const struct dv_api_probe *probe)
{
    int64_t period_s = probe->period_seconds > 0 ? probe->period_seconds : PERIOD_S;

    return (uint64_t)period_s * 1000;
}

/* What counts for an instance before the first run. */
static uint8_t first_result(const struct dv_probe_sight *sight)
{
    switch (sight->kind) {
    case DV_PROBE_LIVENESS:
        return DV_PROBE_HAS_SUCCEEDED;
    case DV_PROBE_READINESS:
        return sight->was_ready ? DV_PROBE_HAS_SUCCEEDED : DV_PROBE_HAS_FAILED;
    case DV_PROBE_STARTUP:
    case DV_N_PROBE_KINDS:
        break;
    }
    return DV_PROBE_IS_UNKNOWN;
}

/* Whether this turn of the worker asks the container, with all that is known of it. */
static bool is_asked(struct dv_probe_worker *worker, const struct dv_probe_sight *sight)
{
    if (sight->instance == 0)
        return false;
    if (worker->instance != sight->instance) {
        worker->instance = sight->instance;
        worker->result = first_result(sight);
        worker->is_on_hold = false;
        worker->n_same = 0;
    }
    if (worker->is_on_hold)
        return false;
    if (!sight->is_running) {
        worker->result = DV_PROBE_HAS_FAILED;
        return false;
    }
    if (sight->is_ending && sight->kind != DV_PROBE_READINESS)
        return false;
    if (sight->now_s - sight->started_s < sight->probe->initial_delay_seconds)
        return false;
    return sight->has_started == (sight->kind != DV_PROBE_STARTUP);
}

bool dv_probe_look(struct dv_probe_worker *worker, const struct dv_probe_sight *sight)
{
    uint64_t period = period_ms(sight->probe);

    if (worker->is_under_way)
        return false;
    if (worker->next_ms == 0) {
        worker->next_ms = sight->now_ms;
        /* All pods of a node at once would be asked in the same instant after the agent's start. */
        if (sight->agent_age_ms < period)
            worker->next_ms += (uint64_t)sight->random * period >> 32;
    }
    if (sight->now_ms >= worker->next_ms)
        worker->next_ms += ((sight->now_ms - worker->next_ms) / period + 1) * period;
    else if (!worker->is_wanted)
        return false;
    worker->is_wanted = false;
    if (!is_asked(worker, sight))
        return false;
    worker->is_under_way = true;
    worker->n_errors = 0;
    return true;
}

/* Counts a result, and sets what counts when it came often enough. */
static bool count(struct dv_probe_worker *worker, const struct dv_probe_sight *sight,
                  uint8_t result)
{
    const struct dv_api_probe *probe = sight->probe;
    int64_t threshold =
        result == DV_PROBE_HAS_SUCCEEDED ? probe->success_threshold : probe->failure_threshold;
    uint8_t before = worker->result;

    if (threshold <= 0)
        threshold = result == DV_PROBE_HAS_SUCCEEDED ? SUCCESS_THRESHOLD : FAILURE_THRESHOLD;
    worker->n_same = worker->last == result ? worker->n_same + 1 : 1;
    worker->last = result;
    if (worker->n_same < threshold)
        return false;
    worker->result = result;
    /* The container is killed, or has started: there is nothing to ask this instance any more. */
    if (sight->kind == DV_PROBE_STARTUP ||
        (sight->kind == DV_PROBE_LIVENESS && result == DV_PROBE_HAS_FAILED)) {
        worker->is_on_hold = true;
        worker->n_same = 0;
    }
    return worker->result != before;
}

struct dv_probe_change dv_probe_done(struct dv_probe_worker *worker,
                                     const struct dv_probe_sight *sight,
                                     enum dv_probe_outcome outcome)
{
    struct dv_probe_change change = {.is_told = outcome != DV_PROBE_SUCCESS};

    worker->is_under_way = false;
    if (worker->instance != sight->instance)
        return (struct dv_probe_change){0};
    if (outcome == DV_PROBE_ERROR) {
        /* Tried again at once, so that a hiccup of the runtime does not cost a period. */
        if (++worker->n_errors < ERRORS_MAX) {
            worker->is_under_way = true;
            change.is_told = false;
        }
        return change;
    }
    change.has_changed = count(
        worker, sight, outcome == DV_PROBE_FAILURE ? DV_PROBE_HAS_FAILED : DV_PROBE_HAS_SUCCEEDED);
    return change;
}
