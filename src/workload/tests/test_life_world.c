#include "test_life_world.h"

#include "base/arena.h"
#include "base/num.h"
#include "test_life_runtime.h"
#include "workload/probe.h"
#include "workload/workload.h"

enum {
    CLOCK_MS = 1000000, /* of the life, at the beginning */
    RELIST_MS = 1000,
    LINES_BYTES_MAX = 8 * 1024 * 1024,
};

/* ---- the agent ---- */

static void write_action(struct life_world *world, const struct dv_life_action *action)
{
    static const char *const names[DV_N_LIFE_ACTION_KINDS] = {
        [DV_LIFE_SET_UP] = "set up",
        [DV_LIFE_PREPARE] = "prepare",
        [DV_LIFE_RUN_SANDBOX] = "run sandbox",
        [DV_LIFE_INSPECT_IMAGE] = "inspect",
        [DV_LIFE_PULL_IMAGE] = "pull",
        [DV_LIFE_CREATE_CONTAINER] = "create",
        [DV_LIFE_START_CONTAINER] = "start",
        [DV_LIFE_POST_START] = "post start",
        [DV_LIFE_PRE_STOP] = "pre stop",
        [DV_LIFE_STOP_CONTAINER] = "stop",
        [DV_LIFE_REMOVE_CONTAINER] = "remove",
        [DV_LIFE_STOP_SANDBOX] = "stop sandbox",
        [DV_LIFE_REMOVE_SANDBOX] = "remove sandbox",
        [DV_LIFE_PROBE] = "probe",
        [DV_LIFE_RELEASE] = "release",
        [DV_LIFE_CLEAN_UP] = "clean up",
    };

    dv_buf_printf(&world->lines, "%llu call %s", (unsigned long long)world->now_ms,
                  names[action->kind]);
    if (action->container.n > 0)
        dv_buf_printf(&world->lines, " %.*s", DV_FMT(action->container));
    if (action->kind == DV_LIFE_STOP_CONTAINER)
        dv_buf_printf(&world->lines, " %us", action->grace_s);
    if (action->kind == DV_LIFE_CREATE_CONTAINER || action->kind == DV_LIFE_RUN_SANDBOX)
        dv_buf_printf(&world->lines, " #%u", action->attempt);
    dv_buf_add_char(&world->lines, '\n');
}

static uint64_t duration(struct life_world *world, const struct dv_life_action *action)
{
    const struct dv_life_container *container = life_runtime_find(world, action->id);
    const struct life_habit *habit =
        life_runtime_habit(world, action->container, container ? container->restart_count : 0);
    uint64_t grace_ms = (uint64_t)action->grace_s * 1000;

    if (world->takes_ms)
        return world->takes_ms(world, action);
    if (action->kind == DV_LIFE_STOP_CONTAINER && container && container->state == DV_LIFE_RUNNING)
        return dv_u64_min(habit->stop_ms + 10, grace_ms);
    if (action->kind == DV_LIFE_PRE_STOP || action->kind == DV_LIFE_POST_START)
        return habit->hook_ms + 10;
    return 10;
}

/* The action with parts that stay: those that it came with go with its look. */
static struct dv_life_action keep_action(struct life_world *world,
                                         const struct dv_life_action *action)
{
    struct dv_life_action kept = *action;
    const struct dv_api_container *spec =
        action->spec ? dv_workload_container(&world->pod, action->container, NULL) : NULL;

    kept.container = dv_str_copy(action->container, world->arena);
    kept.id = dv_str_copy(action->id, world->arena);
    kept.sandbox_id = dv_str_copy(action->sandbox_id, world->arena);
    kept.image = dv_str_copy(action->image, world->arena);
    kept.image_id = dv_str_copy(action->image_id, world->arena);
    kept.ips = (struct dv_strs){0};
    kept.spec = spec;
    kept.probe = action->probe && spec ? dv_probe_of(spec, action->probe_kind) : NULL;
    kept.hook = NULL;
    return kept;
}

static void take_orders(struct life_world *world, const struct dv_life_orders *orders)
{
    for (size_t i = 0; i < orders->n_notes; i++)
        dv_buf_printf(
            &world->lines, "%llu event %s %.*s %.*s %.*s\n", (unsigned long long)world->now_ms,
            orders->notes[i].is_warning ? "Warning" : "Normal", DV_FMT(orders->notes[i].reason),
            DV_FMT(orders->notes[i].field_path), DV_FMT(orders->notes[i].message));
    for (size_t i = 0; i < orders->n_actions; i++) {
        struct life_job *job = dv_vec_add(&world->jobs);

        job->action = keep_action(world, &orders->actions[i]);
        job->chance = world->chance ? world->chance(world, &job->action) : LIFE_GOES_WELL;
        job->due_ms = world->now_ms + duration(world, &job->action);
        write_action(world, &job->action);
    }
    for (size_t i = 0; i < orders->n_cancels; i++)
        for (size_t j = 0; j < world->jobs.n; j++)
            if (world->jobs.v[j].action.id_of_action == orders->cancels[i]) {
                world->jobs.v[j].due_ms = world->now_ms;
                world->jobs.v[j].chance = LIFE_FAILS;
            }
    if (orders->has_new_status && !world->facts.has_vanished)
        dv_message_copy(&dv_message_pod_status, dv_life_status(world->life), world->arena,
                        &world->pod.status);
    world->again_ms = orders->again_ms;
    world->view_after_ms = orders->view_after_ms;
    world->stage = orders->stage;
}

static struct dv_life_container *copy_containers(const struct life_world *world,
                                                 struct dv_arena *arena)
{
    struct dv_life_container *copies = DV_NEW_ARRAY(arena, struct dv_life_container, world->seen.n);

    for (size_t i = 0; i < world->seen.n; i++) {
        copies[i] = world->seen.v[i];
        copies[i].name = dv_str_copy(copies[i].name, arena);
        copies[i].id = dv_str_copy(copies[i].id, arena);
        copies[i].sandbox_id = dv_str_copy(copies[i].sandbox_id, arena);
        copies[i].reason = dv_str_copy(copies[i].reason, arena);
        copies[i].message = dv_str_copy(copies[i].message, arena);
        copies[i].end_message = dv_str_copy(copies[i].end_message, arena);
        copies[i].image = dv_str_copy(copies[i].image, arena);
        copies[i].image_id = dv_str_copy(copies[i].image_id, arena);
    }
    return copies;
}

static struct dv_life_sandbox *copy_sandboxes(const struct life_world *world,
                                              struct dv_arena *arena)
{
    struct dv_life_sandbox *copies =
        DV_NEW_ARRAY(arena, struct dv_life_sandbox, world->seen_sandboxes.n);

    for (size_t i = 0; i < world->seen_sandboxes.n; i++) {
        struct dv_strs ips = world->seen_sandboxes.v[i].ips;

        copies[i] = world->seen_sandboxes.v[i];
        copies[i].id = dv_str_copy(copies[i].id, arena);
        copies[i].ips.v = DV_NEW_ARRAY(arena, dv_str, ips.n);
        for (size_t j = 0; j < ips.n; j++)
            copies[i].ips.v[j] = dv_str_copy(ips.v[j], arena);
    }
    return copies;
}

/* What a look is given goes with it, so that a sanitizer finds who keeps a part of it. */
static void look(struct life_world *world)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *own = dv_arena_new();
    struct dv_life_orders orders;
    struct dv_life_facts facts = world->facts;

    if (world->stage == DV_LIFE_GONE)
        return;
    if (world->has_pod) {
        struct dv_api_pod *pod = DV_NEW(own, struct dv_api_pod);

        dv_message_copy(&dv_message_pod, &world->pod, own, pod);
        facts.pod = pod;
    }
    facts.uid = dv_str_copy(facts.uid, own);
    facts.runtime_name = dv_str_copy(facts.runtime_name, own);
    facts.eviction_reason = dv_str_copy(facts.eviction_reason, own);
    facts.eviction_message = dv_str_copy(facts.eviction_message, own);
    facts.view = (struct dv_life_view){copy_sandboxes(world, own), world->seen_sandboxes.n,
                                       copy_containers(world, own), world->seen.n};
    facts.view_ms = world->view_ms;
    facts.now = (struct dv_time){.seconds = BASE_S + (int64_t)(world->now_ms / 1000),
                                 .nanos = (int32_t)(world->now_ms % 1000) * 1000000,
                                 .is_set = true};
    facts.now_ms = CLOCK_MS + world->now_ms;
    facts.agent_age_ms = world->now_ms - world->agent_ms;
    world->n_looks++;
    dv_life_look(world->life, &facts, own, &orders);
    take_orders(world, &orders);
    if (orders.stage >= DV_LIFE_FINISHED && world->has_pod && !world->facts.has_vanished &&
        world->pod.metadata.deletion_timestamp.is_set) {
        world->facts.has_vanished = true; /* the object is deleted for good */
        look(world);
    }
}

static void list(struct life_world *world)
{
    dv_vec_clear(&world->seen);
    dv_vec_clear(&world->seen_sandboxes);
    for (size_t i = 0; i < world->containers.n; i++)
        *dv_vec_add(&world->seen) = world->containers.v[i];
    for (size_t i = 0; i < world->sandboxes.n; i++)
        *dv_vec_add(&world->seen_sandboxes) = world->sandboxes.v[i];
    world->view_ms = CLOCK_MS + world->now_ms;
}

static uint64_t next_ms(const struct life_world *world)
{
    uint64_t next = (world->now_ms / RELIST_MS + 1) * RELIST_MS;

    if (world->again_ms != UINT64_MAX)
        next = dv_u64_min(next, dv_u64_max(world->again_ms, CLOCK_MS) - CLOCK_MS);
    if (world->view_after_ms != 0)
        next = dv_u64_min(next, world->now_ms + 1);
    for (size_t i = 0; i < world->jobs.n; i++)
        next = dv_u64_min(next, world->jobs.v[i].due_ms);
    for (size_t i = 0; i < world->ends_ms.n; i++)
        if (world->ends_ms.v[i] != 0)
            next = dv_u64_min(next, world->ends_ms.v[i]);
    return dv_u64_max(next, world->now_ms);
}

void life_world_run(struct life_world *world, uint64_t until_ms)
{
    while (world->now_ms <= until_ms) {
        uint64_t next = world->view_ms == 0 ? world->now_ms : next_ms(world);
        bool lists = world->view_ms == 0 || world->view_after_ms != 0 || next % RELIST_MS == 0;

        if (next > until_ms)
            break;
        world->now_ms = next;
        for (size_t i = 0; i < world->containers.n; i++)
            if (world->ends_ms.v[i] != 0 && world->ends_ms.v[i] <= next)
                life_world_end(world, &world->containers.v[i],
                               life_runtime_habit(world, world->containers.v[i].name,
                                                  world->containers.v[i].restart_count)
                                   ->exit_code);
        for (size_t i = 0; i < world->jobs.n;) {
            struct life_job job = world->jobs.v[i];

            if (job.due_ms > next) {
                i++;
                continue;
            }
            dv_vec_remove(&world->jobs, i);
            life_runtime_finish(world, &job);
        }
        if (lists)
            list(world);
        look(world);
    }
    world->now_ms = until_ms;
}

void life_world_restart(struct life_world *world)
{
    dv_life_free(world->life);
    world->life = NULL;
    for (size_t i = 0; i < world->jobs.n; i++)
        life_runtime_finish(world, &world->jobs.v[i]);
    dv_vec_clear(&world->jobs);
    world->life = dv_life_new();
    if (world->facts.has_vanished)
        world->has_pod = false;
    world->agent_ms = world->now_ms;
    world->view_ms = world->view_after_ms = 0;
    world->again_ms = UINT64_MAX;
    world->stage = DV_LIFE_SYNCING;
}

void life_world_delete(struct life_world *world, int64_t grace_s)
{
    int64_t *kept_s = DV_NEW(world->arena, int64_t);

    if (grace_s == 0 || dv_pod_is_terminal(&world->pod)) {
        world->facts.has_vanished = true;
        return;
    }
    *kept_s = grace_s;
    world->pod.metadata.deletion_timestamp = (struct dv_time){
        .seconds = BASE_S + (int64_t)(world->now_ms / 1000) + grace_s, .is_set = true};
    world->pod.metadata.deletion_grace_period_seconds = kept_s;
    world->pod.metadata.generation++;
}

void life_world_init(struct life_world *world, const struct dv_api_pod *pod, struct dv_arena *arena)
{
    static dv_str host_ips[] = {DV_STR_INIT("192.168.7.1")};

    *world = (struct life_world){
        .arena = arena,
        .life = dv_life_new(),
        .pod = *pod,
        .has_pod = true,
        .facts = {.uid = DV_STR("uid-1"),
                  .host_ips = {host_ips, 1},
                  .runtime_name = DV_STR("containerd")},
        .again_ms = UINT64_MAX,
    };
    world->pod.metadata.generation = 1;
    world->pod.status.phase = DV_STR("Pending");
    dv_buf_init(&world->lines, LINES_BYTES_MAX);
}

void life_world_fini(struct life_world *world)
{
    dv_life_free(world->life);
    dv_vec_fini(&world->containers);
    dv_vec_fini(&world->sandboxes);
    dv_vec_fini(&world->seen);
    dv_vec_fini(&world->seen_sandboxes);
    dv_vec_fini(&world->jobs);
    dv_vec_fini(&world->ends_ms);
    dv_vec_fini(&world->logs);
    dv_buf_fini(&world->lines);
}

/* ---- looking at it ---- */

const struct dv_api_container_status *life_world_status(const struct life_world *world,
                                                        const char *name)
{
    const struct dv_api_pod_status *status = dv_life_status(world->life);

    for (size_t i = 0; status && i < status->n_container_statuses; i++)
        if (dv_str_eq(status->container_statuses[i].name, dv_str_from_c(name)))
            return &status->container_statuses[i];
    for (size_t i = 0; status && i < status->n_init_container_statuses; i++)
        if (dv_str_eq(status->init_container_statuses[i].name, dv_str_from_c(name)))
            return &status->init_container_statuses[i];
    return NULL;
}

const struct dv_api_pod_condition *life_world_condition(const struct life_world *world,
                                                        const char *type)
{
    const struct dv_api_pod_status *status = dv_life_status(world->life);

    for (size_t i = 0; status && i < status->n_conditions; i++)
        if (dv_str_eq(status->conditions[i].type, dv_str_from_c(type)))
            return &status->conditions[i];
    return NULL;
}

size_t life_world_at(const struct life_world *world, const char *text)
{
    return dv_str_find(dv_buf_str(&world->lines), dv_str_from_c(text));
}

bool life_world_has(const struct life_world *world, const char *text)
{
    return life_world_at(world, text) < world->lines.n;
}

size_t life_world_count(const struct life_world *world, const char *text)
{
    dv_str rest = dv_buf_str(&world->lines);
    dv_str wanted = dv_str_from_c(text);
    size_t n = 0;

    for (size_t at; (at = dv_str_find(rest, wanted)) < rest.n; n++)
        rest = dv_str_slice(rest, at + wanted.n, rest.n);
    return n;
}
