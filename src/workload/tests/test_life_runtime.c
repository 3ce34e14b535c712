#include "test_life_runtime.h"

#include "test_life_world.h"
#include "workload/config.h"

static int64_t wall_ns(uint64_t ms)
{
    return (BASE_S * 1000 + (int64_t)ms) * 1000000;
}

struct dv_life_container *life_runtime_find(struct life_world *world, dv_str id)
{
    for (size_t i = 0; i < world->containers.n; i++)
        if (dv_str_eq(world->containers.v[i].id, id))
            return &world->containers.v[i];
    return NULL;
}

struct dv_life_container *life_world_newest(struct life_world *world, const char *name)
{
    for (size_t i = world->containers.n; i-- > 0;)
        if (dv_str_eq(world->containers.v[i].name, dv_str_from_c(name)))
            return &world->containers.v[i];
    return NULL;
}

size_t life_world_n_running(const struct life_world *world)
{
    size_t n = 0;

    for (size_t i = 0; i < world->containers.n; i++)
        n += world->containers.v[i].state == DV_LIFE_RUNNING;
    return n;
}

const struct life_habit *life_runtime_habit(const struct life_world *world, dv_str name,
                                            uint32_t attempt)
{
    static const struct life_habit quiet = {.name = ""};
    const struct life_habit *found = &quiet;
    uint32_t n = 0;

    for (size_t i = 0; i < world->n_habits; i++)
        if (dv_str_eq(dv_str_from_c(world->habits[i].name), name) && n++ <= attempt)
            found = &world->habits[i];
    return found;
}

void life_world_end(struct life_world *world, struct dv_life_container *container,
                    int32_t exit_code)
{
    if (container->state != DV_LIFE_RUNNING)
        return;
    container->state = DV_LIFE_EXITED;
    container->exit_code = exit_code;
    container->finished_ns = wall_ns(world->now_ms);
    container->reason = exit_code == 0 ? DV_STR("Completed") : DV_STR("Error");
    world->ends_ms.v[container - world->containers.v] = 0;
}

/* ---- what the runtime does ---- */

/* The attempt, which goes on from the logs where the runtime knows none. */
static uint32_t next_attempt(struct life_world *world, const struct dv_life_action *action)
{
    uint32_t attempt = action->attempt;
    size_t i = 0;

    while (i < world->logs.n && !dv_str_eq(world->logs.v[i].name, action->container))
        i++;
    if (i == world->logs.n)
        dv_vec_add(&world->logs)->name = dv_str_copy(action->container, world->arena);
    else if (action->counts_logs)
        attempt = world->logs.v[i].n + 1;
    world->logs.v[i].n = attempt;
    return attempt;
}

static void create(struct life_world *world, const struct dv_life_action *action,
                   struct dv_life_result *result)
{
    uint32_t attempt = next_attempt(world, action);
    struct dv_life_container *container = dv_vec_add(&world->containers);

    *dv_vec_add(&world->ends_ms) = 0;
    *container = (struct dv_life_container){
        .name = dv_str_copy(action->container, world->arena),
        .id = dv_str_printf(world->arena, "%.*s-%u-%u", DV_FMT(action->container), attempt,
                            world->n_made++),
        .sandbox_id = dv_str_copy(action->sandbox_id, world->arena),
        .state = DV_LIFE_CREATED,
        .restart_count = attempt,
        .hash = action->spec ? dv_config_hash(action->spec) : 0,
        .has_hash = true,
        .created_ns = wall_ns(world->now_ms) + world->n_made,
        .image = DV_STR("i"),
        .image_id = DV_STR("sha256:1"),
    };
    result->id = container->id;
}

static void start(struct life_world *world, struct dv_life_container *container,
                  const struct life_habit *habit, struct dv_life_result *result)
{
    if (habit->start_error) {
        container->state = DV_LIFE_EXITED;
        container->exit_code = 128;
        container->reason = DV_STR("StartError");
        container->finished_ns = wall_ns(world->now_ms);
        result->has_failed = true;
        result->error = dv_str_from_c(habit->start_error);
        return;
    }
    container->state = DV_LIFE_RUNNING;
    container->started_ns = wall_ns(world->now_ms);
    if (habit->runs_ms > 0)
        world->ends_ms.v[container - world->containers.v] = world->now_ms + habit->runs_ms;
}

static void stop_sandbox(struct life_world *world, dv_str id)
{
    for (size_t i = 0; i < world->sandboxes.n; i++)
        if (dv_str_eq(world->sandboxes.v[i].id, id))
            world->sandboxes.v[i].is_ready = false;
    for (size_t i = 0; i < world->containers.n; i++)
        if (dv_str_eq(world->containers.v[i].sandbox_id, id))
            life_world_end(world, &world->containers.v[i], 137);
}

static void run_sandbox(struct life_world *world, uint32_t attempt, struct dv_life_result *result)
{
    static dv_str ips[] = {DV_STR_INIT("10.1.0.5")};

    *dv_vec_add(&world->sandboxes) = (struct dv_life_sandbox){
        .id = dv_str_printf(world->arena, "sandbox-%u-%u", attempt, world->n_made++),
        .attempt = attempt,
        .is_ready = true,
        .has_host_network = world->pod.spec.host_network,
        .has_status = true,
        .created_ns = wall_ns(world->now_ms),
        .ips = {ips, 1},
    };
    result->id = world->sandboxes.v[world->sandboxes.n - 1].id;
    result->ips = (struct dv_strs){ips, 1};
}

static void remove_container(struct life_world *world, dv_str id)
{
    struct dv_life_container *container = life_runtime_find(world, id);
    size_t i;

    if (!container)
        return;
    i = (size_t)(container - world->containers.v);
    dv_vec_remove(&world->containers, i);
    dv_vec_remove(&world->ends_ms, i);
}

static void remove_sandbox(struct life_world *world, dv_str id)
{
    stop_sandbox(world, id);
    for (size_t i = world->sandboxes.n; i-- > 0;)
        if (dv_str_eq(world->sandboxes.v[i].id, id))
            dv_vec_remove(&world->sandboxes, i);
}

/* What the test has set for all actions of a kind. */
static const char *set_error(const struct life_world *world, const struct dv_life_action *action,
                             const struct life_habit *habit, struct dv_life_result *result)
{
    switch (action->kind) {
    case DV_LIFE_SET_UP:
        result->reason = DV_STR("FailedMount");
        return world->set_up_error;
    case DV_LIFE_PREPARE:
        return world->prepare_error;
    case DV_LIFE_RELEASE:
        return world->release_error;
    case DV_LIFE_RUN_SANDBOX:
        return world->sandbox_error;
    case DV_LIFE_STOP_CONTAINER:
        return world->stop_error;
    case DV_LIFE_PULL_IMAGE:
        return world->pull_error;
    case DV_LIFE_POST_START:
    case DV_LIFE_PRE_STOP:
        return habit->hook_error;
    case DV_LIFE_CREATE_CONTAINER:
        result->fault = habit->is_config_error ? DV_LIFE_FAULT_CONFIG : DV_LIFE_FAULT_CREATE;
        return habit->create_error;
    case DV_LIFE_INSPECT_IMAGE:
    case DV_LIFE_START_CONTAINER:
    case DV_LIFE_REMOVE_CONTAINER:
    case DV_LIFE_STOP_SANDBOX:
    case DV_LIFE_REMOVE_SANDBOX:
    case DV_LIFE_PROBE:
    case DV_LIFE_CLEAN_UP:
    case DV_N_LIFE_ACTION_KINDS:
        break;
    }
    return NULL;
}

static void do_action(struct life_world *world, const struct dv_life_action *action,
                      const struct life_habit *habit, struct dv_life_result *result)
{
    struct dv_life_container *container = life_runtime_find(world, action->id);

    switch (action->kind) {
    case DV_LIFE_RUN_SANDBOX:
        run_sandbox(world, action->attempt, result);
        break;
    case DV_LIFE_INSPECT_IMAGE:
        if (!world->absent_image ||
            dv_str_find(action->image, dv_str_from_c(world->absent_image)) == action->image.n)
            result->id = DV_STR("sha256:1");
        break;
    case DV_LIFE_PULL_IMAGE:
        result->id = DV_STR("sha256:1");
        result->size_bytes = 1234;
        break;
    case DV_LIFE_CREATE_CONTAINER:
        create(world, action, result);
        break;
    case DV_LIFE_START_CONTAINER:
        if (container)
            start(world, container, habit, result);
        break;
    case DV_LIFE_STOP_CONTAINER:
        if (container && container->state == DV_LIFE_UNKNOWN)
            container->state = DV_LIFE_RUNNING;
        if (container)
            life_world_end(world, container, habit->exit_code);
        break;
    case DV_LIFE_REMOVE_CONTAINER:
        remove_container(world, action->id);
        break;
    case DV_LIFE_STOP_SANDBOX:
        stop_sandbox(world, action->id);
        break;
    case DV_LIFE_REMOVE_SANDBOX:
        remove_sandbox(world, action->id);
        break;
    case DV_LIFE_PROBE:
        result->outcome = world->probe ? world->probe(world, action) : DV_PROBE_SUCCESS;
        result->output = DV_STR("out");
        result->error = DV_STR("broken");
        break;
    case DV_LIFE_RELEASE:
        world->is_released = true;
        break;
    case DV_LIFE_SET_UP:
    case DV_LIFE_PREPARE:
    case DV_LIFE_POST_START:
    case DV_LIFE_PRE_STOP:
    case DV_LIFE_CLEAN_UP:
    case DV_N_LIFE_ACTION_KINDS:
        break;
    }
}

void life_runtime_finish(struct life_world *world, const struct life_job *job)
{
    const struct dv_life_action *action = &job->action;
    const struct dv_life_container *container = life_runtime_find(world, action->id);
    const struct life_habit *habit = life_runtime_habit(
        world, action->container, container ? container->restart_count : action->attempt);
    struct dv_life_result result = {0};
    const char *error = set_error(world, action, habit, &result);

    if (job->chance == LIFE_FAILS)
        error = "chance";
    if (!error && job->chance != LIFE_LIES)
        do_action(world, action, habit, &result);
    if (job->chance == LIFE_FAILS_AFTER)
        error = "chance";
    if (error) {
        result.has_failed = true;
        result.error = dv_str_from_c(error);
        result.outcome = DV_PROBE_ERROR;
    }
    if (world->life)
        dv_life_done(world->life, action->id_of_action, &result);
}
