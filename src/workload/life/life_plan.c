/* life_plan.c - what a sync is to do, decided once on the view that it begins with. */
#include "base/arena.h"
#include "resource/resource.h"
#include "workload/config.h"
#include "workload/life/life_state.h"

struct planning {
    const struct dv_life_looking *look;
    const struct dv_api_pod *pod;
    const struct dv_life_view *view;
    struct dv_arena *arena;
    struct dv_life_plan *plan;
};

bool dv_life_needs_sandbox(const struct dv_api_pod *pod, const struct dv_life_view *view,
                           uint32_t *attempt, dv_str *id)
{
    const struct dv_life_sandbox *newest = dv_life_newest_sandbox(view);
    size_t n_ready = 0;

    *attempt = 0;
    *id = DV_STR_NONE;
    if (!newest)
        return true;
    for (size_t i = 0; i < view->n_sandboxes; i++)
        n_ready += view->sandboxes[i].is_ready;
    *attempt = newest->attempt + 1;
    *id = newest->id;
    if (n_ready > 1 || !newest->is_ready)
        return true;
    if (newest->has_status && newest->has_host_network != pod->spec.host_network) {
        *id = DV_STR_NONE;
        return true;
    }
    if (newest->has_status && !pod->spec.host_network && newest->ips.n == 0)
        return true;
    *attempt = newest->attempt;
    return false;
}

static void add_start(struct planning *planning, const struct dv_api_container *container,
                      enum dv_workload_kind kind)
{
    const struct dv_life_container *newest = dv_life_newest(planning->view, container->name);
    const struct dv_life_container *exited = dv_life_newest_exited(planning->view, container->name);
    struct dv_life_start *start;

    start = dv_vec_add_in(&planning->plan->starts, planning->arena);
    start->name = dv_str_copy(container->name, planning->arena);
    start->kind = kind;
    start->has_instance = newest != NULL;
    start->attempt = newest ? newest->restart_count + 1 : 0;
    start->exited_ms = exited ? exited->finished_ns / 1000000 : 0;
}

static void add_init(struct planning *planning, size_t i)
{
    const struct dv_api_container *container = &planning->pod->spec.init_containers[i];

    add_start(planning, container,
              dv_life_is_sidecar(container) ? DV_WORKLOAD_SIDECAR : DV_WORKLOAD_INIT);
}

static void add_kill(struct planning *planning, const struct dv_life_container *container,
                     enum dv_workload_kind kind, enum dv_life_kill_reason reason, dv_str message)
{
    struct dv_life_kill *kill;

    kill = dv_vec_add_in(&planning->plan->kills, planning->arena);
    kill->id = dv_str_copy(container->id, planning->arena);
    kill->name = dv_str_copy(container->name, planning->arena);
    kill->kind = kind;
    kill->reason = reason;
    kill->message = message;
    kill->grace_s = -1;
}

/* ---- why a running container has to go ---- */

enum verdict {
    KEEP,
    CHANGED,
    UNHEALTHY,
    UNSTARTED,
};

static bool has_failed(const struct planning *planning, const struct dv_life_container *container,
                       enum dv_probe_kind kind)
{
    return dv_life_probe_result(planning->look->life, container->name, kind, container->id) ==
           DV_PROBE_HAS_FAILED;
}

static enum verdict judge(const struct planning *planning, const struct dv_api_container *spec,
                          const struct dv_life_container *container)
{
    if (container->has_hash && container->hash != dv_config_hash(spec))
        return CHANGED;
    if (spec->liveness_probe && has_failed(planning, container, DV_PROBE_LIVENESS))
        return UNHEALTHY;
    if (spec->startup_probe && has_failed(planning, container, DV_PROBE_STARTUP))
        return UNSTARTED;
    return KEEP;
}

static void kill_for(struct planning *planning, const struct dv_life_container *container,
                     enum dv_workload_kind kind, enum verdict verdict, bool restarts)
{
    static const char *const texts[] = {
        [CHANGED] = "definition changed",
        [UNHEALTHY] = "failed liveness probe",
        [UNSTARTED] = "failed startup probe",
    };
    enum dv_life_kill_reason reason = verdict == UNHEALTHY   ? DV_LIFE_KILL_LIVENESS
                                      : verdict == UNSTARTED ? DV_LIFE_KILL_STARTUP
                                                             : DV_LIFE_KILL_OTHER;

    add_kill(planning, container, kind, reason,
             dv_str_printf(planning->arena, "%s %.*s %s%s",
                           kind == DV_WORKLOAD_REGULAR ? "Container" : "Init container",
                           DV_FMT(container->name), texts[verdict],
                           restarts && kind == DV_WORKLOAD_REGULAR ? ", will be restarted" : ""));
}

static void kill_unknown(struct planning *planning, const struct dv_life_container *container,
                         enum dv_workload_kind kind)
{
    add_kill(planning, container, kind, DV_LIFE_KILL_OTHER,
             dv_str_printf(planning->arena,
                           "%s is in \"unknown\" state, try killing it before restart",
                           kind == DV_WORKLOAD_REGULAR ? "Container" : "Init container"));
}

/* ---- a new sandbox ---- */

static bool has_succeeded(const struct planning *planning, const struct dv_api_container *container)
{
    const struct dv_life_container *newest = dv_life_newest(planning->view, container->name);

    return newest && newest->state == DV_LIFE_EXITED && newest->exit_code == 0;
}

static bool has_any_regular(const struct planning *planning)
{
    for (size_t i = 0; i < planning->pod->spec.n_containers; i++)
        if (dv_life_newest(planning->view, planning->pod->spec.containers[i].name))
            return true;
    return false;
}

static void plan_sandbox(struct planning *planning)
{
    const struct dv_api_pod_spec *spec = &planning->pod->spec;
    struct dv_life_plan *plan = planning->plan;
    bool is_on_failure = dv_str_eq(spec->restart_policy, DV_STR("OnFailure"));
    size_t n_to_start = 0;

    plan->kills_pod = true;
    /* Nothing is begun anew that must not run twice. */
    if (dv_str_eq(spec->restart_policy, DV_STR("Never")) && plan->attempt != 0 &&
        planning->view->n_containers > 0)
        return;
    for (size_t i = 0; i < spec->n_containers; i++)
        n_to_start += !is_on_failure || !has_succeeded(planning, &spec->containers[i]);
    if (n_to_start == 0 && has_any_regular(planning))
        return;
    plan->creates_sandbox = true;
    if (spec->n_init_containers > 0) {
        add_init(planning, 0);
        return;
    }
    for (size_t i = 0; i < spec->n_containers; i++)
        if (!is_on_failure || !has_succeeded(planning, &spec->containers[i]))
            add_start(planning, &spec->containers[i], DV_WORKLOAD_REGULAR);
}

/* ---- init containers ---- */

static bool is_regular_alive(const struct planning *planning)
{
    for (size_t i = 0; i < planning->pod->spec.n_containers; i++) {
        const struct dv_life_container *newest =
            dv_life_newest(planning->view, planning->pod->spec.containers[i].name);

        if (newest && (newest->state == DV_LIFE_CREATED || newest->state == DV_LIFE_RUNNING))
            return true;
    }
    return false;
}

struct init_marks {
    bool *starts; /* for each init container */
    bool is_past;
    bool is_complete;
};

/* The one after i is next, or the regular containers when i is the last one. */
static void go_on_after(const struct planning *planning, size_t i, struct init_marks *marks)
{
    if (marks->is_past)
        return;
    if (i + 1 == planning->pod->spec.n_init_containers)
        marks->is_complete = true;
    else
        marks->starts[i + 1] = true;
}

static void look_at_sidecar(struct planning *planning, size_t i,
                            const struct dv_life_container *newest, struct init_marks *marks)
{
    const struct dv_api_container *spec = &planning->pod->spec.init_containers[i];
    enum verdict verdict;

    if (newest->state == DV_LIFE_UNKNOWN)
        kill_unknown(planning, newest, DV_WORKLOAD_SIDECAR);
    if (newest->state != DV_LIFE_RUNNING) {
        marks->starts[i] = true;
        return;
    }
    verdict = judge(planning, spec, newest);
    if (verdict != UNSTARTED && spec->startup_probe &&
        dv_life_probe_result(planning->look->life, newest->name, DV_PROBE_STARTUP, newest->id) !=
            DV_PROBE_HAS_SUCCEEDED)
        return; /* the next one waits for it */
    if (verdict != UNSTARTED)
        go_on_after(planning, i, marks);
    if (verdict == KEEP)
        return;
    kill_for(planning, newest, DV_WORKLOAD_SIDECAR, verdict, true);
    marks->starts[i] = true;
}

/* False: the pod is to be killed. */
static bool look_at_init(struct planning *planning, size_t i,
                         const struct dv_life_container *newest, struct init_marks *marks)
{
    const struct dv_api_container *spec = &planning->pod->spec.init_containers[i];

    switch (newest->state) {
    case DV_LIFE_RUNNING:
        return true;
    case DV_LIFE_CREATED:
        marks->starts[i] = true;
        return true;
    case DV_LIFE_EXITED:
        if (newest->exit_code == 0 && !dv_str_eq(newest->reason, DV_STR("OOMKilled"))) {
            go_on_after(planning, i, marks);
            return true;
        }
        marks->starts[i] = true;
        return dv_life_restarts_after(planning->pod, spec, newest->exit_code);
    case DV_LIFE_UNKNOWN:
        break;
    }
    kill_unknown(planning, newest, DV_WORKLOAD_INIT);
    marks->starts[i] = true;
    return dv_life_restarts_on_failure(planning->pod, spec);
}

/* Walks from the last to the first, because those at the front may have been removed from the
 * runtime: the last one with an instance tells how far the pod has come. Returns whether regular
 * containers may be looked at. */
static bool plan_init(struct planning *planning)
{
    const struct dv_api_pod_spec *spec = &planning->pod->spec;
    struct init_marks marks = {.starts =
                                   DV_NEW_ARRAY(planning->arena, bool, spec->n_init_containers)};

    if (spec->n_init_containers == 0)
        return true;
    marks.is_complete = marks.is_past = is_regular_alive(planning);
    for (size_t i = spec->n_init_containers; i-- > 0;) {
        const struct dv_api_container *container = &spec->init_containers[i];
        const struct dv_life_container *newest = dv_life_newest(planning->view, container->name);

        if (!newest) {
            if (marks.is_past && dv_life_is_sidecar(container))
                marks.starts[i] = true;
            continue;
        }
        if (dv_life_is_sidecar(container)) {
            look_at_sidecar(planning, i, newest, &marks);
        } else if (!marks.is_past && !look_at_init(planning, i, newest, &marks)) {
            planning->plan->kills_pod = true;
            return false;
        }
        marks.is_past = true;
    }
    if (!marks.is_past)
        marks.starts[0] = true;
    for (size_t i = 0; i < spec->n_init_containers; i++)
        if (marks.starts[i])
            add_init(planning, i);
    return marks.is_complete;
}

/* ---- regular containers ---- */

/* Returns whether the container goes on or is started. */
static bool plan_regular(struct planning *planning, const struct dv_api_container *spec)
{
    const struct dv_life_container *newest = dv_life_newest(planning->view, spec->name);
    enum verdict verdict;
    bool restarts;

    if (!newest || newest->state != DV_LIFE_RUNNING) {
        if (!dv_life_should_start(planning->pod, spec, planning->view))
            return false;
        if (newest && newest->state == DV_LIFE_UNKNOWN)
            kill_unknown(planning, newest, DV_WORKLOAD_REGULAR);
        add_start(planning, spec, DV_WORKLOAD_REGULAR);
        return true;
    }
    verdict = judge(planning, spec, newest);
    if (verdict == KEEP)
        return true;
    restarts = verdict == CHANGED || dv_life_restarts_on_failure(planning->pod, spec);
    kill_for(planning, newest, DV_WORKLOAD_REGULAR, verdict, restarts);
    if (restarts)
        add_start(planning, spec, DV_WORKLOAD_REGULAR);
    return restarts;
}

static void plan_ephemeral(struct planning *planning)
{
    const struct dv_api_pod_spec *spec = &planning->pod->spec;

    for (size_t i = 0; i < spec->n_ephemeral_containers; i++) {
        const struct dv_api_container *container =
            &spec->ephemeral_containers[i].ephemeral_container_common;

        if (!dv_life_newest(planning->view, container->name)) /* they are never started again */
            add_start(planning, container, DV_WORKLOAD_EPHEMERAL);
    }
}

/* ---- RestartAllContainers ---- */

static bool asks_for_reset(const struct planning *planning,
                           const struct dv_api_container *containers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct dv_life_container *newest = dv_life_newest(planning->view, containers[i].name);

        if (newest && newest->state == DV_LIFE_EXITED &&
            dv_life_resets_after(&containers[i], newest->exit_code))
            return true;
    }
    return false;
}

bool dv_life_wants_reset(const struct dv_api_pod *pod, const struct dv_life_view *view)
{
    struct planning planning = {.pod = pod, .view = view};

    return !dv_life_is_deleted(pod) &&
           (asks_for_reset(&planning, pod->spec.containers, pod->spec.n_containers) ||
            asks_for_reset(&planning, pod->spec.init_containers, pod->spec.n_init_containers));
}

static void plan_reset(struct planning *planning)
{
    planning->plan->resets = true;
    dv_life_kill_all(planning->pod, planning->view, 0, planning->arena, &planning->plan->kills);
    planning->plan->kills.is_ordered = false;
    for (size_t i = 0; i < planning->plan->kills.n; i++)
        planning->plan->kills.v[i].message = DV_STR("killing");
}

void dv_life_plan(const struct dv_life_looking *look, struct dv_arena *arena,
                  struct dv_life_plan *plan)
{
    const struct dv_api_pod *pod = look->pod;
    struct planning planning = {look, pod, &look->facts->view, arena, plan};
    size_t n_alive = 0;
    dv_str id;

    *plan = (struct dv_life_plan){0};
    if (dv_life_needs_sandbox(pod, planning.view, &plan->attempt, &id)) {
        plan->has_changed = id.n > 0;
        plan_sandbox(&planning);
        return;
    }
    plan->sandbox_id = dv_str_copy(id, arena);
    if (dv_life_wants_reset(pod, planning.view)) {
        plan_reset(&planning);
        return;
    }
    plan_ephemeral(&planning);
    if (!plan_init(&planning)) {
        if (plan->kills_pod)
            plan->starts.n = 0;
        return;
    }
    for (size_t i = 0; i < pod->spec.n_containers; i++)
        n_alive += plan_regular(&planning, &pod->spec.containers[i]);
    if (n_alive == 0) { /* sidecars alone do not keep a pod */
        plan->kills_pod = true;
        plan->starts.n = 0;
    }
}
