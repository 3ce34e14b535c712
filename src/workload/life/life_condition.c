/* life_condition.c - the conditions of a pod that its node owns. */
#include "base/arena.h"
#include "base/buf.h"
#include "resource/resource.h"
#include "workload/life/life_state.h"

/* No list of names in a condition is longer. */
enum { NAMES_BYTES_MAX = 32 * 1024 };

static const dv_str owned[] = {
    DV_STR_INIT("PodReadyToStartContainers"),
    DV_STR_INIT("Initialized"),
    DV_STR_INIT("Ready"),
    DV_STR_INIT("ContainersReady"),
    DV_STR_INIT("PodScheduled"),
    DV_STR_INIT("AllContainersRestarting"),
};

bool dv_life_owns_condition(dv_str type)
{
    for (size_t i = 0; i < DV_COUNT(owned); i++)
        if (dv_str_eq(owned[i], type))
            return true;
    return false;
}

static struct dv_api_pod_condition *find(struct dv_api_pod_condition *conditions, size_t n,
                                         dv_str type)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(conditions[i].type, type))
            return &conditions[i];
    return NULL;
}

/* What a condition says. */
struct saying {
    bool is_true;
    dv_str reason;
    dv_str message;
};

static void set(const struct dv_life_reckoning *reckoning, const char *type, struct saying saying)
{
    struct dv_api_pod_status *status = reckoning->status;
    dv_str name = dv_str_from_c(type);
    const struct dv_api_pod_condition *old =
        find(reckoning->old->conditions, reckoning->old->n_conditions, name);
    struct dv_api_pod_condition *condition = find(status->conditions, status->n_conditions, name);

    if (!condition)
        condition = &status->conditions[status->n_conditions++];
    *condition = (struct dv_api_pod_condition){
        .type = name,
        .observed_generation = reckoning->look->pod->metadata.generation,
        .status = saying.is_true ? DV_STR("True") : DV_STR("False"),
        .last_transition_time = dv_api_time_round(reckoning->look->facts->now, false),
        .reason = saying.reason,
        .message = saying.message,
    };
    if (old && dv_str_eq(old->status, condition->status))
        condition->last_transition_time = old->last_transition_time;
}

/* ---- lists of names ---- */

static void add_name(struct dv_buf *names, dv_str name)
{
    if (names->n > 0)
        dv_buf_add_char(names, ' ');
    dv_buf_add(names, name);
}

static struct saying not_yet(const struct dv_life_reckoning *reckoning, const char *reason,
                             const char *what, struct dv_buf *names)
{
    struct saying saying = {0};

    if (names->n > 0) {
        saying.reason = dv_str_from_c(reason);
        saying.message = dv_str_printf(reckoning->look->arena, "containers with %s status: [%.*s]",
                                       what, DV_FMT(dv_buf_str(names)));
    } else {
        saying.is_true = true;
    }
    dv_buf_fini(names);
    return saying;
}

/* ---- each condition ---- */

static bool has_started_ever(const struct dv_api_container_status *status)
{
    return status->state.running || status->state.terminated || status->last_state.terminated;
}

static struct saying initialized(const struct dv_life_reckoning *reckoning)
{
    const struct dv_api_pod *pod = reckoning->look->pod;
    const struct dv_api_pod_status *status = reckoning->status;
    struct dv_buf names;

    if (reckoning->phase == DV_LIFE_PHASE_SUCCEEDED)
        return (struct saying){.is_true = true, .reason = DV_STR("PodCompleted")};
    for (size_t i = 0; i < status->n_container_statuses && pod->spec.n_init_containers > 0; i++)
        if (has_started_ever(&status->container_statuses[i]))
            return (struct saying){.is_true = true};
    dv_buf_init(&names, NAMES_BYTES_MAX);
    for (size_t i = 0; i < status->n_init_container_statuses; i++) {
        const struct dv_api_container_status *init = &status->init_container_statuses[i];
        bool is_done = dv_life_is_sidecar(&pod->spec.init_containers[i])
                           ? init->started && *init->started && init->ready
                           : init->ready;

        if (!is_done)
            add_name(&names, init->name);
    }
    return not_yet(reckoning, "ContainersNotInitialized", "incomplete", &names);
}

static const struct dv_api_container_status *status_of(const struct dv_api_pod_status *status,
                                                       dv_str name)
{
    for (size_t i = 0; i < status->n_container_statuses; i++)
        if (dv_str_eq(status->container_statuses[i].name, name))
            return &status->container_statuses[i];
    return NULL;
}

static struct saying containers_ready(const struct dv_life_reckoning *reckoning)
{
    const struct dv_api_pod *pod = reckoning->look->pod;
    const struct dv_api_pod_status *status = reckoning->status;
    struct dv_buf names;

    if (dv_life_phase_is_terminal(reckoning->phase))
        return (struct saying){.reason = reckoning->phase == DV_LIFE_PHASE_FAILED
                                             ? DV_STR("PodFailed")
                                             : DV_STR("PodCompleted")};
    dv_buf_init(&names, NAMES_BYTES_MAX);
    for (size_t i = 0; i < status->n_init_container_statuses; i++)
        if (dv_life_is_sidecar(&pod->spec.init_containers[i]) &&
            !status->init_container_statuses[i].ready)
            add_name(&names, status->init_container_statuses[i].name);
    for (size_t i = 0; i < pod->spec.n_containers; i++) {
        const struct dv_api_container_status *found =
            status_of(status, pod->spec.containers[i].name);

        if (!found || !found->ready)
            add_name(&names, pod->spec.containers[i].name);
    }
    return not_yet(reckoning, "ContainersNotReady", "unready", &names);
}

/* Ready is what the containers are, and what others have to say. */
static struct saying ready(const struct dv_life_reckoning *reckoning, struct saying containers)
{
    const struct dv_api_pod *pod = reckoning->look->pod;
    struct dv_api_pod_status *status = reckoning->status;
    struct dv_buf text;

    if (!containers.is_true)
        return containers;
    dv_buf_init(&text, NAMES_BYTES_MAX);
    for (size_t i = 0; i < pod->spec.n_readiness_gates; i++) {
        dv_str type = pod->spec.readiness_gates[i].condition_type;
        const struct dv_api_pod_condition *gate =
            find(status->conditions, status->n_conditions, type);

        if (gate && dv_str_eq(gate->status, DV_STR("True")))
            continue;
        if (text.n > 0)
            dv_buf_add_c(&text, ", ");
        if (gate)
            dv_buf_printf(&text,
                          "the status of pod readiness gate \"%.*s\" is not \"True\", but %.*s",
                          DV_FMT(type), DV_FMT(gate->status));
        else
            dv_buf_printf(&text,
                          "corresponding condition of pod readiness gate \"%.*s\" does not exist.",
                          DV_FMT(type));
    }
    if (text.n > 0)
        containers =
            (struct saying){.reason = DV_STR("ReadinessGatesNotReady"),
                            .message = dv_str_copy(dv_buf_str(&text), reckoning->look->arena)};
    dv_buf_fini(&text);
    return containers;
}

void dv_life_reckon_ready(const struct dv_life_reckoning *reckoning)
{
    struct saying containers = containers_ready(reckoning);

    set(reckoning, "Ready", ready(reckoning, containers));
    set(reckoning, "ContainersReady", containers);
}

static struct saying resetting(const struct dv_life_reckoning *reckoning)
{
    const struct dv_life_looking *look = reckoning->look;

    if (reckoning->reckon == DV_LIFE_RECKON_STOPPED ||
        !dv_life_wants_reset(look->pod, &look->facts->view))
        return (struct saying){0};
    return (struct saying){.is_true = true,
                           .reason = DV_STR("RestartAllContainersStarted"),
                           .message = DV_STR("container exited with restart policy rule")};
}

void dv_life_reckon_conditions(const struct dv_life_reckoning *reckoning)
{
    const struct dv_life_looking *look = reckoning->look;
    const struct dv_api_pod_status *api = &look->pod->status;
    struct dv_api_pod_status *status = reckoning->status;
    uint32_t attempt;
    dv_str id;

    status->conditions =
        DV_NEW_ARRAY(look->arena, struct dv_api_pod_condition, api->n_conditions + DV_COUNT(owned));
    status->n_conditions = 0;
    for (size_t i = 0; i < api->n_conditions; i++)
        if (!dv_life_owns_condition(api->conditions[i].type))
            status->conditions[status->n_conditions++] = api->conditions[i];
    set(reckoning, "PodReadyToStartContainers",
        (struct saying){.is_true =
                            !dv_life_needs_sandbox(look->pod, &look->facts->view, &attempt, &id)});
    set(reckoning, "Initialized", initialized(reckoning));
    dv_life_reckon_ready(reckoning);
    set(reckoning, "PodScheduled", (struct saying){.is_true = true});
    if (dv_life_has_reset_rules(look->pod))
        set(reckoning, "AllContainersRestarting", resetting(reckoning));
}
