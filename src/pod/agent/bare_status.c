#include "pod/agent/bare_status.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "pod/admission/pod_parse.h"
#include "pod/agent/bare_conditions.h"
#include "pod/pod.h"
#include "resource/resource.h"

static const bool is_true = true;
static const bool is_false = false;

/* ---- containers ---- */

enum role {
    INIT,    /* an init container that ends before the next one starts */
    SIDECAR, /* an init container that goes on */
    REGULAR,
};

static bool has_code(const struct dv_api_container_restart_rule_on_exit_codes *codes, int64_t code)
{
    bool is_listed = false;

    for (size_t i = 0; i < codes->n_values; i++)
        is_listed |= codes->values[i] == code;
    return is_listed == dv_str_eq(codes->operator, DV_STR("In"));
}

/* Whether the policy of a container or a pod restarts what ended so. No policy is Always, which the
 * API sets. */
static bool restarts(dv_str policy, int64_t exit_code)
{
    if (dv_str_eq(policy, DV_STR("Never")))
        return false;
    return !dv_str_eq(policy, DV_STR("OnFailure")) || exit_code != 0;
}

bool dv_bare_may_restart(const struct dv_api_pod *pod, const struct dv_api_container *container,
                         int64_t exit_code)
{
    if (pod->metadata.deletion_timestamp.is_set)
        return false;
    for (size_t i = 0; i < container->n_restart_policy_rules; i++) {
        const struct dv_api_container_restart_rule *rule = &container->restart_policy_rules[i];

        if (rule->exit_codes && has_code(rule->exit_codes, exit_code))
            return true; /* Restart and RestartAllContainers both start it again */
    }
    if (container->restart_policy.n > 0)
        return restarts(container->restart_policy, exit_code);
    return restarts(pod->spec.restart_policy, exit_code);
}

/* An init container that is to succeed once is started again only when it has failed. */
static bool may_restart(const struct dv_api_pod *pod, const struct dv_api_container *container,
                        enum role role, int64_t exit_code)
{
    return (role != INIT || exit_code != 0) && dv_bare_may_restart(pod, container, exit_code);
}

static const struct dv_api_container_status *find_told(const struct dv_bare_facts *facts,
                                                       dv_str name)
{
    for (size_t i = 0; i < facts->n_told; i++)
        if (dv_str_eq(facts->told[i].name, name))
            return &facts->told[i];
    return NULL;
}

static void set_waiting(struct dv_api_container_status *status, dv_str reason, dv_str message,
                        struct dv_arena *arena)
{
    status->state.waiting = DV_NEW(arena, struct dv_api_container_state_waiting);
    status->state.waiting->reason = reason;
    status->state.waiting->message = message;
}

/* Says how the container gets to run. */
static void wait_for_start(const struct dv_bare_facts *facts, struct dv_arena *arena,
                           struct dv_api_container_status *status)
{
    const struct dv_api_object_meta *meta = &facts->pod->metadata;
    dv_str pod = dv_str_printf(arena, "%.*s/%.*s", DV_FMT(meta->namespace), DV_FMT(meta->name));

    set_waiting(
        status, DV_STR(DV_NO_RUNTIME),
        dv_str_printf(arena,
                      "its devices are ready, but davitd has no container runtime that starts it. "
                      "Start it with what `davit options %.*s -c %.*s` tells (`davit cdi inject` "
                      "writes that into an OCI bundle), say `davit container started %.*s %.*s "
                      "--pid PID`, and when it has ended `davit container ended %.*s %.*s "
                      "--exit-code CODE`",
                      DV_FMT(pod), DV_FMT(status->name), DV_FMT(pod), DV_FMT(status->name),
                      DV_FMT(pod), DV_FMT(status->name)),
        arena);
}

/* The end of a container in a pod that was released. Who releases a pod, or owns it, says that it
 * is done; only a container that was told to run, and not to have ended, has an unknown end. */
static void end_released(const struct dv_bare_facts *facts,
                         const struct dv_api_container_status *told, struct dv_arena *arena,
                         struct dv_api_container_status *status)
{
    struct dv_api_container_state_terminated *end =
        DV_NEW(arena, struct dv_api_container_state_terminated);

    end->reason = DV_STR("Completed");
    end->finished_at = facts->now;
    if (told && told->state.running) {
        end->reason = DV_STR(DV_POD_END_UNKNOWN);
        end->exit_code = DV_POD_END_UNKNOWN_CODE;
        end->message = DV_STR("the pod was released before its end was told");
        end->started_at = told->state.running->started_at;
        end->container_id = told->container_id;
    }
    status->state = (struct dv_api_container_state){.terminated = end};
}

/* The state of a container that is not told to run. `is_next`: those that have to run before it
 * do, or have. */
static void set_stopped(const struct dv_bare_facts *facts, const struct dv_api_container *container,
                        enum role role, bool is_next, struct dv_arena *arena,
                        struct dv_api_container_status *status)
{
    const struct dv_api_container_state_terminated *end = status->state.terminated;

    if (end && !may_restart(facts->pod, container, role, end->exit_code))
        return;
    if (end) { /* somebody has to start it again */
        status->last_state.terminated = status->state.terminated;
        status->state.terminated = NULL;
    }
    if (facts->stage == DV_BARE_WAITING)
        set_waiting(status, facts->reason, facts->message, arena);
    else if (is_next)
        wait_for_start(facts, arena, status);
    else
        set_waiting(status, DV_STR("PodInitializing"), DV_STR(""), arena);
}

static void set_container(const struct dv_bare_facts *facts,
                          const struct dv_api_container *container, enum role role, bool is_next,
                          struct dv_arena *arena, struct dv_api_container_status *status)
{
    const struct dv_api_container_status *told = find_told(facts, container->name);

    *status = told ? *told : (struct dv_api_container_status){0};
    status->name = container->name;
    status->image = container->image;
    if (facts->stage == DV_BARE_RELEASED) {
        if (!status->state.terminated && is_next)
            end_released(facts, told, arena, status);
        else if (!status->state.terminated)
            set_waiting(status, DV_STR("PodInitializing"), DV_STR(""), arena);
    } else if (!told && facts->is_owned && facts->stage == DV_BARE_READY) {
        /* the owner stands for all containers that nobody told of */
        if (role == INIT) {
            status->state.terminated = DV_NEW(arena, struct dv_api_container_state_terminated);
            status->state.terminated->reason = DV_STR("Completed");
        } else {
            status->state.running = DV_NEW(arena, struct dv_api_container_state_running);
            status->state.running->started_at = facts->since;
        }
    } else if (!status->state.running) {
        set_stopped(facts, container, role, is_next, arena, status);
    }
    status->started = status->state.running ? &is_true : &is_false;
    status->ready = status->state.running && role != INIT;
    if (role == INIT)
        status->ready = status->state.terminated && status->state.terminated->exit_code == 0;
}

/* ---- the pod ---- */

struct counts {
    bool has_failed_init; /* one that is not started again */
    bool is_initializing; /* an init container has to end, or a sidecar to start, first */
    size_t n_running;     /* regular containers and sidecars */
    size_t n_not_started; /* of these, those that have never run */
    size_t n_stopped;     /* regular containers that do not run any more */
    size_t n_to_restart;  /* of these, those that are to be started again */
    size_t n_failed;      /* and those that have ended with another code than 0 */
};

static void count_init(const struct dv_api_container *container,
                       const struct dv_api_container_status *status, bool has_regular,
                       struct counts *counts)
{
    const struct dv_api_container_state_terminated *end = dv_bare_end_of(status);

    if (dv_bare_is_sidecar(container)) {
        counts->n_running += status->state.running != NULL;
        counts->n_not_started += !status->state.running && !end;
        counts->is_initializing |= !status->state.running && !end && !has_regular;
        return;
    }
    counts->has_failed_init |= status->state.terminated && end->exit_code != 0;
    counts->is_initializing |= status->state.running || !end;
}

static struct counts count(const struct dv_api_pod *pod, const struct dv_api_pod_status *status)
{
    struct counts counts = {0};
    bool has_regular = false;

    for (size_t i = 0; i < status->n_container_statuses; i++) {
        const struct dv_api_container_status *container = &status->container_statuses[i];
        const struct dv_api_container_state_terminated *end = dv_bare_end_of(container);

        has_regular |= container->state.running || end;
        counts.n_running += container->state.running != NULL;
        counts.n_not_started += !container->state.running && !end;
        counts.n_stopped += end != NULL;
        counts.n_to_restart += end && !container->state.terminated;
        counts.n_failed += end && end->exit_code != 0;
    }
    for (size_t i = 0; i < status->n_init_container_statuses; i++)
        count_init(&pod->spec.init_containers[i], &status->init_container_statuses[i], has_regular,
                   &counts);
    return counts;
}

/* The phase as the reference makes it from the statuses of containers, rule by rule. */
static const char *phase_of(const struct counts *counts)
{
    if (counts->has_failed_init)
        return "Failed";
    if (counts->is_initializing || counts->n_not_started > 0)
        return "Pending";
    if (counts->n_running > 0)
        return "Running";
    if (counts->n_stopped == 0)
        return "Pending";
    if (counts->n_to_restart > 0)
        return "Running";
    return counts->n_failed == 0 ? "Succeeded" : "Failed";
}

static int by_name(const void *a, const void *b)
{
    return dv_str_cmp(((const struct dv_api_container_status *)a)->name,
                      ((const struct dv_api_container_status *)b)->name);
}

static void set_containers(const struct dv_bare_facts *facts, struct dv_arena *arena,
                           struct dv_api_pod_status *status)
{
    const struct dv_api_pod_spec *spec = &facts->pod->spec;
    bool is_next = true;

    status->n_init_container_statuses = spec->n_init_containers;
    status->init_container_statuses =
        DV_NEW_ARRAY(arena, struct dv_api_container_status, spec->n_init_containers);
    for (size_t i = 0; i < spec->n_init_containers; i++) {
        const struct dv_api_container *container = &spec->init_containers[i];

        set_container(facts, container, dv_bare_is_sidecar(container) ? SIDECAR : INIT, is_next,
                      arena, &status->init_container_statuses[i]);
        /* a sidecar that was started once does not keep the others back any more */
        is_next &=
            dv_bare_is_done(container, &status->init_container_statuses[i]) ||
            (dv_bare_is_sidecar(container) && dv_bare_end_of(&status->init_container_statuses[i]));
    }
    status->n_container_statuses = spec->n_containers;
    status->container_statuses =
        DV_NEW_ARRAY(arena, struct dv_api_container_status, spec->n_containers);
    for (size_t i = 0; i < spec->n_containers; i++)
        set_container(facts, &spec->containers[i], REGULAR, is_next, arena,
                      &status->container_statuses[i]);
    if (status->n_container_statuses > 0) /* by name, as the reference lists them */
        qsort(status->container_statuses, status->n_container_statuses,
              sizeof(status->container_statuses[0]), by_name);
}

/* ---- all of it ---- */

static void set_reason(const struct dv_bare_facts *facts, struct dv_api_pod_status *status)
{
    if (facts->stage != DV_BARE_WAITING || facts->message.n == 0)
        return;
    status->reason = facts->reason; /* lists of pods show the reason */
    status->message = facts->message;
}

/* A pod with more containers than a node takes is not admitted: the API is told about it as a
 * whole, since a status of each would make tens of megabytes of it. */
static bool is_too_large(const struct dv_api_pod *pod)
{
    return pod->spec.n_containers + pod->spec.n_init_containers > DV_POD_CONTAINERS_MAX;
}

static void refuse_too_large(const struct dv_bare_facts *facts, struct dv_arena *arena,
                             struct dv_api_pod_status *status)
{
    status->phase = DV_STR("Pending");
    status->observed_generation = facts->pod->metadata.generation;
    set_reason(facts, status);
    dv_bare_add_devices(facts, arena, status);
}

void dv_bare_status(const struct dv_bare_facts *facts, struct dv_arena *arena,
                    struct dv_api_pod_status *status)
{
    struct counts counts;

    if (is_too_large(facts->pod)) {
        refuse_too_large(facts, arena, status);
        return;
    }
    set_containers(facts, arena, status);
    counts = count(facts->pod, status);
    status->phase = dv_str_from_c(phase_of(&counts));
    status->observed_generation = facts->pod->metadata.generation;
    if (facts->stage == DV_BARE_RELEASED && counts.n_to_restart + counts.n_not_started > 0)
        status->phase = DV_STR("Failed"); /* it is over, and was not done */
    set_reason(facts, status);
    dv_bare_add_devices(facts, arena, status);
    dv_bare_add_conditions(facts, counts.n_running > 0, status, arena);
}

bool dv_bare_has_ended(const struct dv_api_pod *pod, const struct dv_api_container_status *told,
                       size_t n_told)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    struct dv_bare_facts facts = {
        .pod = pod, .stage = DV_BARE_READY, .told = told, .n_told = n_told};
    struct dv_api_pod_status status = {0};
    struct counts counts;
    const char *phase;

    if (n_told == 0)
        return false;
    arena = dv_arena_new();
    set_containers(&facts, arena, &status);
    counts = count(pod, &status);
    phase = phase_of(&counts);
    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}
