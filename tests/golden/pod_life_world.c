#include "pod_life_world.h"

#include "base/num.h"
#include "pod_life_deeds.h"
#include "pod_life_runtime.h"

enum {
    RELIST_MS = 1000,
    OLD_AGENT_MS = 100000,
    SUCCESSOR_MS = 11000, /* until a static pod's successor is tried again */
};

/* ---- the agent ---- */

/* A number that lets the life try again when the recorded one did. */
static uint32_t random_in_step(const struct world *world)
{
    size_t n = 0;

    for (size_t i = 0; i < world->record->n_calls; i++) {
        const struct record_call *call = &world->record->calls[i];

        if (!dv_str_eq(call->method, DV_STR("RunPodSandbox")) &&
            !dv_str_eq(call->method, DV_STR("CreateContainer")) &&
            !dv_str_eq(call->method, DV_STR("PullImage")))
            continue;
        if (n++ < world->n_starts || call->ms <= world->now_ms)
            continue;
        for (uint64_t base_ms = 10000; base_ms <= 320000; base_ms *= 2) {
            uint64_t pause_ms = call->ms - world->now_ms;

            if (pause_ms >= base_ms && pause_ms <= base_ms * 3 / 2)
                return (uint32_t)((pause_ms - base_ms) * 2 * (UINT32_MAX / base_ms));
        }
        break;
    }
    return UINT32_MAX / 2;
}

static void take_orders(struct world *world, const struct dv_life_orders *orders)
{
    for (size_t i = 0; i < orders->n_notes; i++)
        *dv_vec_add(&world->events) =
            (struct record_event){(int64_t)(world->now_ms / 1000), orders->notes[i].is_warning,
                                  dv_str_copy(orders->notes[i].reason, world->arena),
                                  dv_str_copy(orders->notes[i].message, world->arena),
                                  dv_str_copy(orders->notes[i].field_path, world->arena)};
    for (size_t i = 0; i < orders->n_actions; i++) {
        struct world_job *job = dv_vec_add(&world->jobs);

        job->action = orders->actions[i];
        job->of_agent = world->n_agents;
        job->due_ms = world->now_ms + runtime_begin(world, &job->action);
    }
    for (size_t i = 0; i < orders->n_cancels; i++)
        for (size_t j = 0; j < world->jobs.n; j++)
            if (world->jobs.v[j].action.id_of_action == orders->cancels[i])
                world->jobs.v[j].due_ms = world->now_ms + 1;
    /* A static pod's mirror goes with its file, when the pod has ended. */
    if (orders->has_new_status &&
        !(world->has_vanished && (!world->is_static || orders->stage >= DV_LIFE_FINISHED))) {
        struct seen_status *seen = dv_vec_add(&world->statuses);
        const struct dv_api_pod_status *status = dv_life_status(world->life);

        seen->ms = world->now_ms;
        dv_message_copy(&dv_message_pod_status, status, world->arena, &seen->status);
        if (!world->is_static)
            world->pod.status = seen->status;
    }
    world->again_ms = orders->again_ms;
    world->view_after_ms = orders->view_after_ms;
}

static void look(struct world *world)
{
    static dv_str host_ips[] = {DV_STR_INIT("192.168.77.10")};
    uint64_t agent_ms = world->n_agents > 1 ? 0 : OLD_AGENT_MS;
    struct dv_life_orders orders;
    struct dv_life_facts facts = {
        .pod = world->has_pod ? &world->pod : NULL,
        .uid = world->uid,
        .is_static = world->is_static,
        .has_vanished = world->has_vanished,
        .view = {world->seen_sandboxes.v,                                  world->seen_sandboxes.n, world->seen_containers.v,
                 world->seen_containers.n},
        .view_ms = world->view_ms,
        .host_ips = {host_ips,                                                        1                                                                       },
        .runtime_name = DV_STR("containerd"),
        .now = {.seconds = LIFE_BASE_S + (int64_t)(world->now_ms / 1000),
                 .nanos = (int32_t)(world->now_ms % 1000) * 1000000,
                 .is_set = true                                       },
        .now_ms = LIFE_CLOCK_MS + world->now_ms,
        .agent_age_ms = agent_ms + world->now_ms - world->agent_since_ms,
        .random = random_in_step(world),
    };

    if (!world->life || (!world->has_pod && world->seen_containers.n == 0))
        return;
    /* An agent that starts after the object has gone never sees it. */
    if (world->has_vanished && world->n_agents > 1 && !world->is_static &&
        !dv_life_status(world->life))
        facts.pod = NULL;
    dv_life_look(world->life, &facts, world->arena, &orders);
    take_orders(world, &orders);
    if (orders.stage >= DV_LIFE_FINISHED && world->has_pod && !world->has_vanished &&
        world->pod.metadata.deletion_timestamp.is_set) {
        deed_vanish(world);
        look(world);
    }
}

/* ---- time ---- */

/* When a file has changed, the next pod comes after the one before has ended, at its next try. */
static bool must_wait(const struct world *world, const struct record_action *action)
{
    return dv_str_eq(action->verb, DV_STR("write-file")) && world->has_pod &&
           !(world->has_vanished && world->now_ms >= action->ms + SUCCESSOR_MS);
}

static uint64_t next_ms(const struct world *world)
{
    uint64_t next = UINT64_MAX;

    if (world->i_action < world->record->n_actions) {
        const struct record_action *action = &world->record->actions[world->i_action];

        next = deed_ms(action);
        if (must_wait(world, action) && world->now_ms >= action->ms)
            next = action->ms + SUCCESSOR_MS;
    }
    for (size_t i = 0; i < world->jobs.n; i++)
        next = dv_u64_min(next, world->jobs.v[i].due_ms);
    for (size_t i = 0; i < world->containers.n; i++)
        if (world->containers.v[i].ends_ms != 0)
            next = dv_u64_min(next, world->containers.v[i].ends_ms);
    if (!world->life)
        return next;
    if (world->again_ms != UINT64_MAX)
        next = dv_u64_min(next, world->again_ms - LIFE_CLOCK_MS);
    if (world->view_ms == 0)
        return dv_u64_min(next, world->now_ms);
    if (world->view_after_ms != 0)
        next = dv_u64_min(next, world->now_ms + 1);
    return dv_u64_min(next, (world->now_ms / RELIST_MS + 1) * RELIST_MS);
}

static void begin_actions(struct world *world)
{
    while (world->i_action < world->record->n_actions) {
        const struct record_action *action = &world->record->actions[world->i_action];

        if (deed_ms(action) > world->now_ms)
            return;
        if (must_wait(world, action)) {
            world->has_vanished = true;
            return;
        }
        if (dv_str_eq(action->verb, DV_STR("write-file")) && world->has_pod) {
            dv_life_free(world->life);
            for (size_t i = 0; i < world->containers.n; i++)
                world->containers.v[i].is_there = false;
            dv_vec_clear(&world->containers);
            dv_vec_clear(&world->sandboxes);
            deed_start_agent(world);
        }
        deed_do(world, action);
        world->i_action++;
    }
}

bool world_step(struct world *world, uint64_t end_ms)
{
    uint64_t next = next_ms(world);
    bool relists;

    if (next > end_ms)
        return false;
    relists = world->view_ms == 0 || world->view_after_ms != 0 ||
              (next > world->now_ms && next % RELIST_MS == 0);
    world->now_ms = dv_u64_max(next, world->now_ms);
    begin_actions(world);
    for (size_t i = 0; i < world->containers.n; i++)
        if (world->containers.v[i].ends_ms != 0 && world->containers.v[i].ends_ms <= world->now_ms)
            runtime_end(world, &world->containers.v[i], 0, "Completed");
    for (size_t i = 0; i < world->jobs.n;) {
        struct world_job job = world->jobs.v[i];

        if (job.due_ms > world->now_ms) {
            i++;
            continue;
        }
        dv_vec_remove(&world->jobs, i);
        runtime_finish(world, &job);
    }
    if (relists && world->life)
        runtime_list(world);
    look(world);
    return true;
}

void world_init(struct world *world, const struct record *record, struct dv_arena *arena)
{
    *world = (struct world){.record = record, .arena = arena, .uid = DV_STR("<uid>")};
    world->has_pod = record->pod != NULL;
    if (record->pod) {
        world->pod = *record->pod;
        world->pod.status = (struct dv_api_pod_status){.phase = DV_STR("Pending")};
        world->pod.metadata.generation = 1;
    }
    for (size_t i = 0; i < record->n_actions; i++)
        if (dv_str_eq(record->actions[i].verb, DV_STR("create")))
            world->has_pod = false;
    deed_start_agent(world);
}

void world_fini(struct world *world)
{
    dv_life_free(world->life);
    dv_vec_fini(&world->containers);
    dv_vec_fini(&world->sandboxes);
    dv_vec_fini(&world->seen_containers);
    dv_vec_fini(&world->seen_sandboxes);
    dv_vec_fini(&world->jobs);
    dv_vec_fini(&world->statuses);
    dv_vec_fini(&world->calls);
    dv_vec_fini(&world->events);
}
