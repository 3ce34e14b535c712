/* agent_status.c - what the API is told about a pod of this node, and who asks about one that does
 * not let go. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/str.h"
#include "claim/claim.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "pod/agent/agent_state.h"
#include "pod/agent/agent_step.h"
#include "pod/agent/bare_conditions.h"
#include "pod/agent/bare_status.h"
#include "pod/pod.h"
#include "pod/runner.h"
#include "pod/runner/device_health.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "workload/life.h"
#include "json/json.h"

static const struct dv_api_pod *value_of(const struct dv_agent_pod *pod)
{
    return pod->object->value;
}

/* When the pod was started: `since_ns`, or what the API was told once, since a restart of davitd
 * does not know it any more. */
static struct dv_time start_of(const struct dv_agent_pod *pod, uint64_t since_ns)
{
    struct dv_time told = value_of(pod)->status.start_time;

    return told.is_set ? told : dv_api_seconds_from_ns(since_ns);
}

/* ---- containers ---- */

static void add_health(const struct dv_agent_pod *pod, const struct dv_claim_lookup *lookup,
                       const struct dv_api_container *container, struct dv_arena *arena,
                       struct dv_api_container_status *status)
{
    const struct dv_agent_options *options = &pod->agent->options;

    status->n_allocated_resources_status =
        dv_pod_device_health_of(options->devices, options->claims, lookup, pod->uid, container,
                                dv_clock_wall_ns(dv_loop_clock(pod->agent->loop)), arena,
                                &status->allocated_resources_status);
}

static void add_all_health(const struct dv_agent_pod *pod, struct dv_arena *arena,
                           struct dv_api_pod_status *status)
{
    const struct dv_api_pod_spec *spec = &value_of(pod)->spec;
    struct dv_claim_lookup lookup;

    dv_claim_lookup_init(&lookup, value_of(pod));
    for (size_t i = 0; i < status->n_init_container_statuses; i++)
        add_health(pod, &lookup, &spec->init_containers[i], arena,
                   &status->init_container_statuses[i]);
    for (size_t i = 0; i < status->n_container_statuses; i++)
        for (size_t k = 0; k < spec->n_containers; k++)
            if (dv_str_eq(spec->containers[k].name, status->container_statuses[i].name))
                add_health(pod, &lookup, &spec->containers[k], arena,
                           &status->container_statuses[i]);
    dv_claim_lookup_fini(&lookup);
}

/* ---- all of it ---- */

/* Says why the pod is not admitted yet; `view` is what the node knows of it, if anything. */
static void explain_wait(const struct dv_agent_pod *pod, const struct dv_pod_view *view,
                         struct dv_arena *arena, struct dv_bare_facts *facts)
{
    facts->reason = DV_STR("AdmittingPod");
    /* While a driver that has failed is asked again, the status keeps saying what went wrong. */
    if (view->awaited.n > 0 && !(pod->reason && pod->was_asked && view->is_brief)) {
        facts->reason = DV_STR("WaitingForDevices");
        facts->message = dv_str_printf(arena, "waits for %.*s", DV_FMT(view->awaited));
    } else if (pod->reason) {
        facts->reason = dv_str_from_c(pod->reason);
        facts->message = dv_str_from_c(pod->message);
    }
}

/* The status of a pod whose containers davitd does not start: what was told about them counts. */
static void fill_bare(const struct dv_agent_pod *pod, enum dv_bare_stage stage,
                      struct dv_arena *arena, struct dv_api_pod_status *status)
{
    struct dv_pod_told told = dv_pods_told(pod->agent->options.pods, pod->uid);
    struct dv_bare_facts facts = {
        .pod = value_of(pod),
        .stage = stage,
        .told = told.statuses,
        .n_told = told.n_statuses,
        .since = start_of(pod, pod->since_ns),
        .now = dv_api_seconds_from_ns(dv_clock_wall_ns(dv_loop_clock(pod->agent->loop))),
    };
    struct dv_pod_ref ref = {.uid = pod->uid};
    struct dv_pod_view view = {0};

    if (dv_pods_find(pod->agent->options.pods, &ref, &view))
        facts.is_owned = view.is_owned;
    if (stage == DV_BARE_WAITING)
        explain_wait(pod, &view, arena, &facts);
    else
        status->start_time = facts.since;
    dv_bare_status(&facts, arena, status);
    if (stage == DV_BARE_READY)
        add_all_health(pod, arena, status);
}

static bool fill(const struct dv_agent_pod *pod, struct dv_arena *arena,
                 struct dv_api_pod_status *status)
{
    switch (pod->state) {
    case DV_AGENT_NEW:
    case DV_AGENT_ADMITTING:
    case DV_AGENT_PAUSING:
        fill_bare(pod, DV_BARE_WAITING, arena, status);
        return true;
    case DV_AGENT_ADMITTED:
    case DV_AGENT_ENDING:
        fill_bare(pod, DV_BARE_READY, arena, status);
        return true;
    case DV_AGENT_REFUSED:
        status->phase = DV_STR("Failed");
        status->reason = dv_str_from_c(pod->reason);
        status->message = dv_str_printf(arena, "Pod was rejected: %s", pod->message);
        status->start_time = start_of(pod, pod->refused_ns);
        return true;
    case DV_AGENT_RELEASED:
        fill_bare(pod, DV_BARE_RELEASED, arena, status);
        return pod->has_ended;
    case DV_AGENT_RELEASING:
        return false;
    }
    return false;
}

/* A merge keeps members that the patch does not have, so those that are empty are set to null.
 * Lists of container statuses are replaced whole. */
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
    struct dv_json *condition = dv_json_first(dv_json_get(status, DV_STR("conditions")));

    clear_absent(status, texts, DV_COUNT(texts), arena);
    for (; condition; condition = dv_json_next(condition))
        if (!dv_json_get(condition, DV_STR("$patch")))
            clear_absent(condition, texts, DV_COUNT(texts), arena);
}

void dv_agent_replace_list(struct dv_json *status, dv_str name, struct dv_arena *arena)
{
    struct dv_json *list = dv_json_get(status, name);
    struct dv_json *order = dv_json_new_object(arena);

    if (!list)
        return;
    dv_json_set(order, DV_STR("$patch"), dv_json_new_str(DV_STR("replace"), arena), arena);
    dv_json_append(list, order);
}

/* Appends whether the pod has its devices, which its life does not know of; they are released when
 * the pod's end is told. While pods are found again after a start, what was told before counts. */
static void add_devices(const struct dv_agent_pod *pod, bool has_ended, struct dv_arena *arena,
                        struct dv_api_pod_status *status)
{
    struct dv_bare_facts facts = {
        .pod = dv_agent_pod_shown(pod)->value,
        .stage = has_ended ? DV_BARE_RELEASED : DV_BARE_READY,
        .now = dv_api_seconds_from_ns(dv_clock_wall_ns(dv_loop_clock(pod->agent->loop))),
    };
    struct dv_api_pod_status devices = {0};

    if (!has_ended && pod->state != DV_AGENT_ADMITTED && pod->state != DV_AGENT_ENDING)
        return;
    dv_bare_add_devices(&facts, arena, &devices);
    for (size_t i = 0; i < devices.n_conditions; i++)
        status->conditions[status->n_conditions++] = devices.conditions[i];
}

/* Leaves out conditions of others: the API may have newer ones than the life has seen. */
static void set_own_conditions(const struct dv_agent_pod *pod, struct dv_arena *arena,
                               struct dv_api_pod_status *status)
{
    struct dv_api_pod_condition *all = status->conditions;
    size_t n = status->n_conditions;

    status->conditions = DV_NEW_ARRAY(arena, struct dv_api_pod_condition, n + 1);
    status->n_conditions = 0;
    for (size_t i = 0; i < n; i++)
        if (dv_life_owns_condition(all[i].type))
            status->conditions[status->n_conditions++] = all[i];
    add_devices(pod, dv_pod_is_terminal(&(struct dv_api_pod){.status = *status}), arena, status);
}

/* The status as the pod's life has it. What is the scheduler's and the controllers' is not told. */
static struct dv_json *encode_life(const struct dv_agent_pod *pod, struct dv_arena *arena)
{
    const struct dv_api_pod_status *life = dv_runner_status(pod->agent->options.runner, pod->uid);
    struct dv_api_pod_status status;
    struct dv_json *encoded;

    if (!life)
        return NULL; /* it has not been looked at yet */
    status = *life;
    status.resource_claim_statuses = NULL;
    status.n_resource_claim_statuses = 0;
    status.extended_resource_claim_status = NULL;
    set_own_conditions(pod, arena, &status);
    encoded = dv_encode_patch(&dv_message_pod_status, &status, arena);
    dv_agent_replace_list(encoded, DV_STR("podIPs"), arena);
    dv_agent_replace_list(encoded, DV_STR("hostIPs"), arena);
    return encoded;
}

/* Takes back what the status said while the pod was admitted: a pod that is refused has no
 * containers that wait, as kubectl would show it to have. */
static void take_back(struct dv_json *status, struct dv_arena *arena)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    static const char *const types[] = {DV_DEVICES_READY, "PodReadyToStartContainers",
                                        "Initialized", "Ready", "ContainersReady"};
    struct dv_json *conditions = dv_json_new_array(arena);

    clear_absent(status, lists, DV_COUNT(lists), arena);
    for (size_t i = 0; i < DV_COUNT(types); i++) {
        struct dv_json *gone = dv_json_new_object(arena);

        dv_json_set(gone, DV_STR("type"), dv_json_new_str(dv_str_from_c(types[i]), arena), arena);
        dv_json_set(gone, DV_STR("$patch"), dv_json_new_str(DV_STR("delete"), arena), arena);
        dv_json_append(conditions, gone);
    }
    dv_json_set(status, DV_STR("conditions"), conditions, arena);
}

/* A pod that runs without us is on this machine all the same; one that is refused never was. */
static void add_host_ips(const struct dv_agent_pod *pod, struct dv_arena *arena,
                         struct dv_api_pod_status *status)
{
    const struct dv_strs *ips = dv_agent_host_ips(pod->agent);

    if (!ips || ips->n == 0 || pod->state == DV_AGENT_REFUSED)
        return;
    status->host_ip = ips->v[0];
    status->host_i_ps = DV_NEW_ARRAY(arena, struct dv_api_host_ip, ips->n);
    for (size_t i = 0; i < ips->n; i++)
        status->host_i_ps[status->n_host_i_ps++].ip = ips->v[i];
}

static struct dv_json *encode_own(const struct dv_agent_pod *pod, struct dv_arena *arena)
{
    const struct dv_api_pod *value = value_of(pod);
    struct dv_api_pod_status status = {.qos_class = value->status.qos_class};
    struct dv_json *encoded;

    if (!fill(pod, arena, &status) || (dv_pod_is_terminal(value) && !pod->is_static))
        return NULL; /* a pod that has succeeded or failed does not change its phase again */
    status.observed_generation = value->metadata.generation;
    add_host_ips(pod, arena, &status);
    encoded = dv_encode_patch(&dv_message_pod_status, &status, arena);
    dv_agent_replace_list(encoded, DV_STR("hostIPs"), arena);
    if (pod->state == DV_AGENT_REFUSED && (pod->written > 0 || value->status.n_container_statuses))
        take_back(encoded, arena);
    return encoded;
}

struct dv_json *dv_agent_status(const struct dv_agent_pod *pod, struct dv_arena *arena)
{
    struct dv_json *patch = dv_json_new_object(arena);
    struct dv_json *metadata = dv_json_new_object(arena);
    struct dv_json *encoded =
        dv_agent_is_given(pod) ? encode_life(pod, arena) : encode_own(pod, arena);

    if (!encoded)
        return NULL;
    dv_json_set(metadata, DV_STR("uid"), dv_json_new_str(dv_agent_pod_shown(pod)->meta->uid, arena),
                arena);
    dv_json_set(patch, DV_STR("metadata"), metadata, arena);
    clear_empty(encoded, arena);
    dv_json_set(patch, DV_STR("status"), encoded, arena);
    return patch;
}

bool dv_agent_find_unreleased(const struct dv_agent *agent, dv_str uid,
                              struct dv_agent_unadmitted *unreleased)
{
    const struct dv_agent_pod *pod = dv_map_get(&agent->pods, uid);

    if (!pod || !pod->kept)
        return false;
    *unreleased = (struct dv_agent_unadmitted){
        .uid = pod->uid,
        .namespace = pod->namespace,
        .name = pod->name,
        .reason = DV_STR(DV_AGENT_FAILED_UNPREPARE),
        .message = dv_str_from_c(pod->kept),
        .since_wall_ns = pod->kept_ns,
        .retry_at_ms = dv_timer_is_set(&pod->timer) ? pod->timer.at_ms : 0,
    };
    return true;
}
