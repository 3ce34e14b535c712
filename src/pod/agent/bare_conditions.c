#include "pod/agent/bare_conditions.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "pod/agent/bare_status.h"
#include "resource/resource.h"

enum { N_CONDITIONS = 6 };
/* The longest list of names in a condition's message, which may name every container. */
#define NAMES_BYTES_MAX 32768u

bool dv_bare_is_sidecar(const struct dv_api_container *container)
{
    return dv_str_eq(container->restart_policy, DV_STR("Always"));
}

const struct dv_api_container_state_terminated *
dv_bare_end_of(const struct dv_api_container_status *status)
{
    if (status->state.terminated || status->state.running)
        return status->state.terminated;
    return status->last_state.terminated;
}

bool dv_bare_is_done(const struct dv_api_container *container,
                     const struct dv_api_container_status *status)
{
    return dv_bare_is_sidecar(container) ? status->state.running != NULL : status->ready;
}

/* The condition of that type which the API has; NULL: none. */
static const struct dv_api_pod_condition *known(const struct dv_api_pod *pod, dv_str type)
{
    for (size_t i = 0; i < pod->status.n_conditions; i++)
        if (dv_str_eq(pod->status.conditions[i].type, type))
            return &pod->status.conditions[i];
    return NULL;
}

static void add(const struct dv_bare_facts *facts, struct dv_api_pod_status *status,
                const char *type, bool is_met, dv_str reason, dv_str message)
{
    dv_str word = is_met ? DV_STR("True") : DV_STR("False");
    const struct dv_api_pod_condition *old = known(facts->pod, dv_str_from_c(type));
    bool is_same = old && dv_str_eq(old->status, word) && old->last_transition_time.is_set;

    status->conditions[status->n_conditions++] = (struct dv_api_pod_condition){
        .type = dv_str_from_c(type),
        .observed_generation = facts->pod->metadata.generation,
        .status = word,
        .last_transition_time = is_same ? old->last_transition_time : facts->now,
        .reason = reason,
        .message = message,
    };
}

/* Adds a container's name to "[a b". */
static void name_also(struct dv_buf *names, dv_str name)
{
    if (dv_buf_str(names).n > 0)
        dv_buf_add_char(names, ' ');
    dv_buf_add(names, name);
}

static void add_initialized(const struct dv_bare_facts *facts, struct dv_arena *arena,
                            struct dv_api_pod_status *status)
{
    bool has_run = dv_str_eq(status->phase, DV_STR("Succeeded"));
    struct dv_buf names;

    for (size_t i = 0; i < status->n_container_statuses; i++)
        has_run |= status->container_statuses[i].state.running ||
                   dv_bare_end_of(&status->container_statuses[i]);
    dv_buf_init(&names, NAMES_BYTES_MAX);
    for (size_t i = 0; !has_run && i < status->n_init_container_statuses; i++)
        if (!dv_bare_is_done(&facts->pod->spec.init_containers[i],
                             &status->init_container_statuses[i]))
            name_also(&names, status->init_container_statuses[i].name);
    if (dv_buf_str(&names).n > 0)
        add(facts, status, "Initialized", false, DV_STR("ContainersNotInitialized"),
            dv_str_printf(arena, "containers with incomplete status: [%s]", dv_buf_c(&names)));
    else
        add(facts, status, "Initialized", true,
            dv_str_eq(status->phase, DV_STR("Succeeded")) ? DV_STR("PodCompleted") : DV_STR(""),
            DV_STR(""));
    dv_buf_fini(&names);
}

/* The names of containers that are to run and are not ready; empty: all are. */
static dv_str unready(const struct dv_bare_facts *facts, const struct dv_api_pod_status *status,
                      struct dv_arena *arena)
{
    struct dv_buf names;
    dv_str text;

    dv_buf_init(&names, NAMES_BYTES_MAX);
    for (size_t i = 0; i < status->n_init_container_statuses; i++)
        if (dv_bare_is_sidecar(&facts->pod->spec.init_containers[i]) &&
            !status->init_container_statuses[i].ready)
            name_also(&names, status->init_container_statuses[i].name);
    for (size_t i = 0; i < status->n_container_statuses; i++)
        if (!status->container_statuses[i].ready)
            name_also(&names, status->container_statuses[i].name);
    text = dv_str_copy(dv_buf_str(&names), arena);
    dv_buf_fini(&names);
    return text;
}

/* What the pod's readiness gates say; empty: all are open. */
static dv_str closed_gates(const struct dv_api_pod *pod, struct dv_arena *arena)
{
    struct dv_buf told;
    dv_str text;

    dv_buf_init(&told, NAMES_BYTES_MAX);
    for (size_t i = 0; i < pod->spec.n_readiness_gates; i++) {
        dv_str type = pod->spec.readiness_gates[i].condition_type;
        const struct dv_api_pod_condition *gate = known(pod, type);

        if (gate && dv_str_eq(gate->status, DV_STR("True")))
            continue;
        if (dv_buf_str(&told).n > 0)
            dv_buf_add_c(&told, ", ");
        if (gate)
            dv_buf_printf(&told,
                          "the status of pod readiness gate \"%.*s\" is not \"True\", but %.*s",
                          DV_FMT(type), DV_FMT(gate->status));
        else
            dv_buf_printf(&told,
                          "corresponding condition of pod readiness gate \"%.*s\" does not exist.",
                          DV_FMT(type));
    }
    text = dv_str_copy(dv_buf_str(&told), arena);
    dv_buf_fini(&told);
    return text;
}

/* Ready and ContainersReady. */
static void add_ready(const struct dv_bare_facts *facts, struct dv_arena *arena,
                      struct dv_api_pod_status *status)
{
    dv_str names = unready(facts, status, arena);
    dv_str reason = DV_STR("");
    dv_str message = DV_STR("");
    dv_str gates = closed_gates(facts->pod, arena);

    if (dv_str_eq(status->phase, DV_STR("Succeeded"))) {
        reason = DV_STR("PodCompleted");
    } else if (dv_str_eq(status->phase, DV_STR("Failed"))) {
        reason = DV_STR("PodFailed");
    } else if (names.n > 0) {
        reason = DV_STR("ContainersNotReady");
        message = dv_str_printf(arena, "containers with unready status: [%.*s]", DV_FMT(names));
    }
    if (reason.n == 0 && gates.n > 0)
        add(facts, status, "Ready", false, DV_STR("ReadinessGatesNotReady"), gates);
    else
        add(facts, status, "Ready", reason.n == 0, reason, message);
    add(facts, status, "ContainersReady", reason.n == 0, reason, message);
}

void dv_bare_add_devices(const struct dv_bare_facts *facts, struct dv_arena *arena,
                         struct dv_api_pod_status *status)
{
    status->conditions = DV_NEW_ARRAY(arena, struct dv_api_pod_condition, N_CONDITIONS);
    switch (facts->stage) {
    case DV_BARE_WAITING:
        add(facts, status, DV_DEVICES_READY, false, facts->reason, facts->message);
        break;
    case DV_BARE_READY:
        add(facts, status, DV_DEVICES_READY, true, DV_STR(""), DV_STR(""));
        break;
    case DV_BARE_RELEASED:
        add(facts, status, DV_DEVICES_READY, false, DV_STR("DevicesReleased"), DV_STR(""));
        break;
    }
}

void dv_bare_add_conditions(const struct dv_bare_facts *facts, bool is_running,
                            struct dv_api_pod_status *status, struct dv_arena *arena)
{
    add(facts, status, "PodReadyToStartContainers", is_running, DV_STR(""), DV_STR(""));
    add_initialized(facts, arena, status);
    add_ready(facts, arena, status);
    /* As the reference's kubelet: it is here. */
    add(facts, status, "PodScheduled", true, DV_STR(""), DV_STR(""));
}
