/* agent_status.c - what the API is told about a pod of this node. A pod "runs" when it has all that
 * it asked for: whoever starts its containers is not davit. */
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "pod/agent/agent_state.h"
#include "pod/agent/agent_step.h"
#include "pod/pod.h"
#include "resource/resource.h"
#include "json/json.h"

#define NS_PER_S UINT64_C(1000000000)

enum { N_CONDITIONS = 4 };

static struct dv_time time_of(uint64_t wall_ns)
{
    return (struct dv_time){.seconds = (int64_t)(wall_ns / NS_PER_S), .is_set = true};
}

static const struct dv_api_pod *value_of(const struct dv_agent_pod *pod)
{
    return pod->object->value;
}

/* When the pod was started. What the API was told once stays, since a restart of davitd does not
 * know it any more. */
static struct dv_time start_of(const struct dv_agent_pod *pod)
{
    struct dv_time told = value_of(pod)->status.start_time;

    return told.is_set ? told : time_of(pod->since_ns);
}

/* ---- conditions ---- */

/* The condition's last transition: that of the API while its status is the same, else now. */
static struct dv_time since(const struct dv_agent_pod *pod, const char *type, dv_str status,
                            struct dv_time now)
{
    const struct dv_api_pod_status *old = &value_of(pod)->status;

    for (size_t i = 0; i < old->n_conditions; i++)
        if (dv_str_eq(old->conditions[i].type, dv_str_from_c(type)) &&
            dv_str_eq(old->conditions[i].status, status) &&
            old->conditions[i].last_transition_time.is_set)
            return old->conditions[i].last_transition_time;
    return now;
}

static void add_conditions(const struct dv_agent_pod *pod, bool is_ready, dv_str reason,
                           dv_str message, struct dv_time now, struct dv_arena *arena,
                           struct dv_api_pod_status *status)
{
    static const char *const types[N_CONDITIONS] = {"PodReadyToStartContainers", "Initialized",
                                                    "ContainersReady", "Ready"};
    dv_str word = is_ready ? DV_STR("True") : DV_STR("False");

    status->conditions = DV_NEW_ARRAY(arena, struct dv_api_pod_condition, N_CONDITIONS);
    status->n_conditions = N_CONDITIONS;
    for (size_t i = 0; i < N_CONDITIONS; i++)
        status->conditions[i] = (struct dv_api_pod_condition){
            .type = dv_str_from_c(types[i]),
            .status = word,
            .last_transition_time = since(pod, types[i], word, now),
            .reason = is_ready ? DV_STR("") : reason,
            .message = is_ready ? DV_STR("") : message,
        };
}

/* ---- containers ---- */

static void add_health(const struct dv_agent_pod *pod, const struct dv_api_container *container,
                       struct dv_arena *arena, struct dv_api_container_status *status)
{
    const struct dv_agent_options *options = &pod->agent->options;
    struct dv_claim_status_options claim_options = {
        .now_wall_ns = dv_clock_wall_ns(dv_loop_clock(pod->agent->loop))};
    const struct dv_device_status *statuses;
    size_t n = dv_device_status(dv_devices_state(options->devices), pod->uid, container->name,
                                arena, &statuses);
    struct dv_api_resource_status *known = DV_NEW_ARRAY(arena, struct dv_api_resource_status, n);

    for (size_t i = 0; i < n; i++) {
        known[i].name = statuses[i].resource;
        known[i].n_resources = statuses[i].n_ids;
        known[i].resources = DV_NEW_ARRAY(arena, struct dv_api_resource_health, statuses[i].n_ids);
        for (size_t k = 0; k < statuses[i].n_ids; k++) {
            known[i].resources[k].resource_id = statuses[i].ids[k];
            known[i].resources[k].health =
                statuses[i].is_healthy[k] ? DV_STR("Healthy") : DV_STR("Unhealthy");
        }
    }
    dv_claim_container_status(dv_claims_state(options->claims), value_of(pod), container, known, n,
                              &claim_options, arena, &status->allocated_resources_status,
                              &status->n_allocated_resources_status);
}

/* The status of a container that has ended, as far as anyone has told: no exit code is known
 * here. */
static void add_ended(const struct dv_api_container *container, struct dv_time now,
                      struct dv_arena *arena, struct dv_api_container_status *status)
{
    static const bool is_started = false;

    *status = (struct dv_api_container_status){
        .name = container->name,
        .image = container->image,
        .started = &is_started,
    };
    status->state.terminated = DV_NEW(arena, struct dv_api_container_state_terminated);
    status->state.terminated->reason = DV_STR("Completed");
    status->state.terminated->finished_at = now;
}

static void add_all_ended(const struct dv_agent_pod *pod, struct dv_time now,
                          struct dv_arena *arena, struct dv_api_pod_status *status)
{
    const struct dv_api_pod_spec *spec = &value_of(pod)->spec;

    status->container_statuses =
        DV_NEW_ARRAY(arena, struct dv_api_container_status, spec->n_containers);
    for (size_t i = 0; i < spec->n_containers; i++)
        add_ended(&spec->containers[i], now, arena,
                  &status->container_statuses[status->n_container_statuses++]);
}

static void add_container(const struct dv_agent_pod *pod, const struct dv_api_container *container,
                          struct dv_arena *arena, struct dv_api_container_status *status)
{
    static const bool is_started = true;

    *status = (struct dv_api_container_status){
        .name = container->name,
        .image = container->image,
        .ready = true,
        .started = &is_started,
    };
    status->state.running = DV_NEW(arena, struct dv_api_container_state_running);
    status->state.running->started_at = start_of(pod);
    add_health(pod, container, arena, status);
}

static void add_containers(const struct dv_agent_pod *pod, struct dv_arena *arena,
                           struct dv_api_pod_status *status)
{
    const struct dv_api_pod_spec *spec = &value_of(pod)->spec;

    status->container_statuses =
        DV_NEW_ARRAY(arena, struct dv_api_container_status, spec->n_containers);
    for (size_t i = 0; i < spec->n_containers; i++)
        add_container(pod, &spec->containers[i], arena,
                      &status->container_statuses[status->n_container_statuses++]);
    status->init_container_statuses =
        DV_NEW_ARRAY(arena, struct dv_api_container_status, spec->n_init_containers);
    for (size_t i = 0; i < spec->n_init_containers; i++)
        if (dv_str_eq(spec->init_containers[i].restart_policy, DV_STR("Always"))) /* a sidecar */
            add_container(pod, &spec->init_containers[i], arena,
                          &status->init_container_statuses[status->n_init_container_statuses++]);
}

/* ---- all of it ---- */

/* Says why the pod is not admitted yet. */
static void add_wait(const struct dv_agent_pod *pod, struct dv_time now, struct dv_arena *arena,
                     struct dv_api_pod_status *status)
{
    struct dv_pod_ref ref = {.uid = pod->uid};
    dv_str reason = DV_STR("AdmittingPod");
    dv_str message = DV_STR("");
    struct dv_pod_view view;

    /* While a driver that has failed is asked again, the status keeps saying what went wrong. */
    if (dv_pods_find(pod->agent->options.pods, &ref, &view) && view.awaited.n > 0 &&
        !(pod->reason && pod->was_asked && view.is_brief)) {
        reason = DV_STR("WaitingForDevices");
        message = dv_str_printf(arena, "waits for %.*s", DV_FMT(view.awaited));
    } else if (pod->reason) {
        reason = dv_str_from_c(pod->reason);
        message = dv_str_from_c(pod->message);
    }
    status->phase = DV_STR("Pending");
    if (message.n > 0) { /* lists of pods show the reason */
        status->reason = reason;
        status->message = message;
    }
    add_conditions(pod, false, reason, message, now, arena, status);
}

static bool fill(const struct dv_agent_pod *pod, struct dv_arena *arena,
                 struct dv_api_pod_status *status)
{
    struct dv_time now = time_of(dv_clock_wall_ns(dv_loop_clock(pod->agent->loop)));

    switch (pod->state) {
    case DV_AGENT_NEW:
    case DV_AGENT_ADMITTING:
    case DV_AGENT_PAUSING:
        add_wait(pod, now, arena, status);
        return true;
    case DV_AGENT_ADMITTED:
        status->phase = DV_STR("Running");
        status->start_time = start_of(pod);
        add_conditions(pod, true, DV_STR(""), DV_STR(""), now, arena, status);
        add_containers(pod, arena, status);
        return true;
    case DV_AGENT_REFUSED:
        status->phase = DV_STR("Failed");
        status->reason = dv_str_from_c(pod->reason);
        status->message = dv_str_printf(arena, "Pod was rejected: %s", pod->message);
        return true;
    case DV_AGENT_RELEASED:
        status->phase = DV_STR("Succeeded");
        add_conditions(pod, false, DV_STR("PodCompleted"), DV_STR(""), now, arena, status);
        add_all_ended(pod, now, arena, status);
        return pod->has_ended;
    case DV_AGENT_RELEASING:
        return false;
    }
    return false;
}

/* A merge keeps members that the patch does not have, so those that are empty are set to null. */
static void clear_absent(struct dv_json *object, const char *const *names, size_t n,
                         struct dv_arena *arena)
{
    for (size_t i = 0; i < n; i++)
        if (!dv_json_get(object, dv_str_from_c(names[i])))
            dv_json_set(object, dv_str_from_c(names[i]), dv_json_new_null(arena), arena);
}

static void clear_empty(struct dv_json *status, struct dv_arena *arena)
{
    static const char *const texts[] = {"reason", "message"};
    static const char *const states[] = {"waiting", "running", "terminated"};
    struct dv_json *condition = dv_json_first(dv_json_get(status, DV_STR("conditions")));
    struct dv_json *container = dv_json_first(dv_json_get(status, DV_STR("containerStatuses")));

    clear_absent(status, texts, DV_COUNT(texts), arena);
    for (; condition; condition = dv_json_next(condition))
        clear_absent(condition, texts, DV_COUNT(texts), arena);
    for (; container; container = dv_json_next(container))
        clear_absent(dv_json_get(container, DV_STR("state")), states, DV_COUNT(states), arena);
}

struct dv_json *dv_agent_status(const struct dv_agent_pod *pod, struct dv_arena *arena)
{
    const struct dv_api_pod *value = value_of(pod);
    struct dv_api_pod_status status = {.qos_class = value->status.qos_class};
    struct dv_json *patch = dv_json_new_object(arena);
    struct dv_json *metadata = dv_json_new_object(arena);
    struct dv_json *encoded;

    if (!fill(pod, arena, &status) || dv_pod_is_terminal(value))
        return NULL; /* a pod that has succeeded or failed does not change its phase again */
    dv_json_set(metadata, DV_STR("uid"), dv_json_new_str(pod->uid, arena), arena);
    dv_json_set(patch, DV_STR("metadata"), metadata, arena);
    encoded = dv_encode_json(&dv_message_pod_status, &status, NULL, DV_STR(""), arena);
    clear_empty(encoded, arena);
    dv_json_set(patch, DV_STR("status"), encoded, arena);
    return patch;
}
