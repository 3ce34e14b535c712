/* life_probe.c - the probes of a pod's containers, while it is here. */
#include <stdlib.h>

#include "base/arena.h"
#include "resource/resource.h"
#include "workload/life/life_state.h"

bool dv_life_probe_knows(const struct dv_life *life, dv_str name, enum dv_probe_kind kind,
                         dv_str id)
{
    const struct dv_life_member *member = dv_life_member_find(life, name);

    return member && member->probes && member->probes[kind].instance == dv_life_hash(id);
}

enum dv_probe_result dv_life_probe_result(const struct dv_life *life, dv_str name,
                                          enum dv_probe_kind kind, dv_str id)
{
    const struct dv_life_member *member = dv_life_member_find(life, name);

    return dv_life_probe_knows(life, name, kind, id)
               ? (enum dv_probe_result)member->probes[kind].result
               : DV_PROBE_IS_UNKNOWN;
}

void dv_life_probe_want(struct dv_life *life, dv_str name)
{
    struct dv_life_member *member = dv_life_member(life, name);

    if (member->probes)
        member->probes[DV_PROBE_READINESS].is_wanted = true;
}

/* One probe at this look. */
struct probing {
    struct dv_life_looking *look;
    const struct dv_api_container *container;
    const struct dv_life_container *newest; /* NULL: it has no instance */
    struct dv_life_member *member;
    struct dv_probe_sight sight;
};

static const struct dv_api_container_status *status_of(const struct dv_api_pod_status *status,
                                                       dv_str name)
{
    for (size_t i = 0; i < status->n_container_statuses; i++)
        if (dv_str_eq(status->container_statuses[i].name, name))
            return &status->container_statuses[i];
    for (size_t i = 0; i < status->n_init_container_statuses; i++)
        if (dv_str_eq(status->init_container_statuses[i].name, name))
            return &status->init_container_statuses[i];
    return NULL;
}

static void see(struct probing *probing, enum dv_probe_kind kind)
{
    const struct dv_life_facts *facts = probing->look->facts;
    const struct dv_life_container *newest = probing->newest;
    const struct dv_api_container_status *status =
        status_of(dv_life_status_before(probing->look), probing->container->name);
    /* An instance is probed once its status was told: what a probe finds changes that status. */
    bool is_its = newest && status && dv_str_ends_with(status->container_id, newest->id);

    probing->sight = (struct dv_probe_sight){
        .probe = dv_probe_of(probing->container, kind),
        .kind = kind,
        .instance = is_its && newest->state != DV_LIFE_CREATED ? dv_life_hash(newest->id) : 0,
        .is_running = newest && newest->state == DV_LIFE_RUNNING,
        .has_started = is_its && status->started && *status->started,
        .is_ending = probing->look->life->stage > DV_LIFE_SYNCING,
        .was_ready = is_its && status->ready,
        .started_s = newest ? newest->started_ns / 1000000000 : 0,
        .now_s = facts->now.seconds,
        .now_ms = facts->now_ms,
        .agent_age_ms = facts->agent_age_ms,
        .random = facts->random,
    };
}

static void begin_run(struct probing *probing)
{
    struct dv_life_action *action =
        dv_life_begin(probing->look, DV_LIFE_PROBE, probing->newest->id);
    int64_t timeout_s = probing->sight.probe->timeout_seconds;

    dv_life_for_container(probing->look, action, probing->container->name);
    action->probe = probing->sight.probe;
    action->probe_kind = probing->sight.kind;
    action->limit_ms = timeout_s > 0 ? (uint64_t)timeout_s * 1000 : 1000;
    action->ips = dv_life_copy_strs(dv_life_ips(probing->look->life), probing->look->arena);
    probing->look->life->pending.v[probing->look->life->pending.n - 1].probe_kind =
        probing->sight.kind;
}

/* The event of a run that did not simply succeed. */
static void tell(struct probing *probing, const struct dv_life_result *result)
{
    dv_str kind = dv_probe_kind_name(probing->sight.kind);
    dv_str name = probing->container->name;

    switch (result->outcome) {
    case DV_PROBE_WARNING:
        dv_life_add_note(probing->look, true, "ProbeWarning", name, "%.*s probe warning: %.*s",
                         DV_FMT(kind), DV_FMT(result->output));
        break;
    case DV_PROBE_FAILURE:
        dv_life_add_note(probing->look, true, "Unhealthy", name, "%.*s probe failed: %.*s",
                         DV_FMT(kind), DV_FMT(result->output));
        break;
    case DV_PROBE_ERROR:
        dv_life_add_note(probing->look, true, "Unhealthy", name,
                         "%.*s probe errored and resulted in unknown state: %.*s", DV_FMT(kind),
                         DV_FMT(result->error.n > 0 ? result->error : result->output));
        break;
    case DV_PROBE_SUCCESS:
        break;
    }
}

/* Takes the outcome of a run on the newest instance. Returns whether what counts has changed. */
static bool end_run(struct probing *probing, const struct dv_life_result *result)
{
    struct dv_probe_worker *worker = &probing->member->probes[probing->sight.kind];
    struct dv_probe_change change = dv_probe_done(worker, &probing->sight, result->outcome);

    if (change.is_told)
        tell(probing, result);
    return change.has_changed;
}

static const struct dv_life_pending *find_run(const struct dv_life *life, enum dv_probe_kind kind,
                                              uint64_t instance)
{
    for (size_t i = 0; i < life->pending.n; i++)
        if (life->pending.v[i].kind == DV_LIFE_PROBE && life->pending.v[i].probe_kind == kind &&
            life->pending.v[i].subject == instance)
            return &life->pending.v[i];
    return NULL;
}

/* Returns whether what counts has changed. */
static bool go_on(struct probing *probing)
{
    struct dv_life *life = probing->look->life;
    struct dv_probe_worker *worker = &probing->member->probes[probing->sight.kind];
    const struct dv_life_pending *run = NULL;
    uint8_t before = worker->result;
    uint64_t known = worker->instance;
    bool has_changed = false;

    if (worker->is_under_way) {
        run = find_run(life, probing->sight.kind, worker->instance);
        if (run && !run->is_done)
            return false;
        if (run) {
            uint32_t id = run->id;

            has_changed = end_run(probing, &run->result);
            dv_life_forget(life, id);
        } else {
            worker->is_under_way = false;
        }
        if (worker->is_under_way && probing->newest) { /* an error: once more */
            begin_run(probing);
            return has_changed;
        }
        worker->is_under_way = false;
    }
    if (dv_probe_look(worker, &probing->sight))
        begin_run(probing);
    /* One on hold waits for another instance, which makes itself known. */
    if (!worker->is_under_way &&
        !(worker->is_on_hold && worker->instance == probing->sight.instance))
        dv_life_look_at(probing->look, worker->next_ms);
    if (probing->sight.kind != DV_PROBE_LIVENESS && worker->instance == known &&
        worker->result != before)
        has_changed = true;
    return has_changed;
}

static bool has_probes(const struct dv_api_container *container)
{
    return container->startup_probe || container->liveness_probe || container->readiness_probe;
}

/* Returns whether a sync is due. */
static bool probe_container(struct dv_life_looking *look, const struct dv_api_container *container)
{
    struct probing probing = {.look = look, .container = container};
    bool has_changed = false;

    if (!has_probes(container))
        return false;
    probing.member = dv_life_member(look->life, container->name);
    if (!probing.member->probes)
        probing.member->probes = dv_alloc(sizeof(struct dv_probe_worker) * DV_N_PROBE_KINDS);
    probing.newest = dv_life_newest(&look->facts->view, container->name);
    for (int kind = 0; kind < DV_N_PROBE_KINDS; kind++) {
        if (!dv_probe_of(container, (enum dv_probe_kind)kind))
            continue;
        see(&probing, (enum dv_probe_kind)kind);
        if (go_on(&probing)) {
            has_changed = true;
            if (kind != DV_PROBE_LIVENESS)
                dv_life_publish_probes(look);
        }
    }
    return has_changed;
}

void dv_life_probe_go(struct dv_life_looking *look)
{
    const struct dv_api_pod_spec *spec = &look->pod->spec;
    bool has_changed = false;

    for (size_t i = 0; i < spec->n_init_containers; i++)
        if (dv_life_is_sidecar(&spec->init_containers[i]))
            has_changed |= probe_container(look, &spec->init_containers[i]);
    for (size_t i = 0; i < spec->n_containers; i++)
        has_changed |= probe_container(look, &spec->containers[i]);
    if (has_changed)
        look->life->wants_sync = true;
}
