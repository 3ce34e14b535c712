#include "test_life_model.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "test_life_world.h"
#include "workload/probe.h"
#include "workload/workload.h"

enum {
    ROUNDS = 24,
    LOOKS_MAX_PER_S = 2000,
    END_MS = 2000 * 1000, /* more than all pauses and graces together */
};

struct model {
    struct life_chooser *chooser;
    struct life_world world;
    struct dv_arena *arena;
    unsigned n_faults_of_16; /* how many actions of 16 fail */
    bool may_run_twice;      /* somebody did what lets a container run again */
    dv_str phase;            /* a terminal one that was told; empty: none was */
};

static unsigned choose(struct model *model, unsigned sides)
{
    return model->chooser->choose(model->chooser, sides);
}

static void hold(struct model *model, bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s\n%s: does not hold at %llu ms\n", dv_buf_c(&model->world.lines), what,
                  (unsigned long long)model->world.now_ms);
    abort();
}

/* ---- a pod ---- */

static struct dv_api_probe *make_probe(struct model *model)
{
    struct dv_api_probe *probe;

    if (choose(model, 3) != 0)
        return NULL;
    probe = DV_NEW(model->arena, struct dv_api_probe);
    probe->probe_handler.exec = DV_NEW(model->arena, struct dv_api_exec_action);
    probe->period_seconds = 1 + choose(model, 5);
    probe->failure_threshold = 1 + choose(model, 3);
    probe->initial_delay_seconds = choose(model, 3);
    return probe;
}

static struct dv_api_lifecycle_handler *make_hook(struct model *model)
{
    struct dv_api_lifecycle_handler *hook;

    if (choose(model, 4) != 0)
        return NULL;
    hook = DV_NEW(model->arena, struct dv_api_lifecycle_handler);
    hook->exec = DV_NEW(model->arena, struct dv_api_exec_action);
    return hook;
}

static void make_rules(struct model *model, struct dv_api_container *container)
{
    struct dv_api_container_restart_rule *rule =
        DV_NEW(model->arena, struct dv_api_container_restart_rule);

    container->restart_policy = choose(model, 2) == 0 ? DV_STR("Never") : DV_STR("OnFailure");
    rule->action = choose(model, 2) == 0 ? DV_STR("Restart") : DV_STR("RestartAllContainers");
    rule->exit_codes = DV_NEW(model->arena, struct dv_api_container_restart_rule_on_exit_codes);
    rule->exit_codes->operator= choose(model, 2) == 0 ? DV_STR("In") : DV_STR("NotIn");
    rule->exit_codes->values = DV_NEW(model->arena, int64_t);
    rule->exit_codes->values[0] = choose(model, 3);
    rule->exit_codes->n_values = 1;
    container->restart_policy_rules = rule;
    container->n_restart_policy_rules = 1;
    model->may_run_twice = true;
}

static void make_container(struct model *model, char letter, size_t i,
                           struct dv_api_container *container)
{
    static const dv_str policies[] = {DV_STR_INIT("IfNotPresent"), DV_STR_INIT("Always"),
                                      DV_STR_INIT("Never")};

    container->name = dv_str_printf(model->arena, "%c%zu", letter, i);
    container->image = DV_STR("registry.example/image:1");
    container->image_pull_policy = policies[choose(model, 8) % 3];
    container->startup_probe = make_probe(model);
    container->liveness_probe = make_probe(model);
    container->readiness_probe = make_probe(model);
    if (choose(model, 2) == 0) {
        container->lifecycle = DV_NEW(model->arena, struct dv_api_lifecycle);
        container->lifecycle->post_start = make_hook(model);
        container->lifecycle->pre_stop = make_hook(model);
    }
    if (letter == 'c' && choose(model, 6) == 0)
        make_rules(model, container);
}

static struct dv_api_pod make_pod(struct model *model)
{
    static const dv_str policies[] = {DV_STR_INIT("Always"), DV_STR_INIT("OnFailure"),
                                      DV_STR_INIT("Never")};
    struct dv_api_pod pod = {0};
    int64_t *grace_s = DV_NEW(model->arena, int64_t);

    pod.metadata.name = DV_STR("p");
    pod.metadata.namespace = DV_STR("ns");
    pod.spec.restart_policy = policies[choose(model, 3)];
    pod.spec.n_init_containers = choose(model, 4);
    pod.spec.n_containers = 1 + choose(model, 3);
    *grace_s = choose(model, 20);
    pod.spec.termination_grace_period_seconds = grace_s;
    pod.spec.init_containers =
        DV_NEW_ARRAY(model->arena, struct dv_api_container, pod.spec.n_init_containers);
    pod.spec.containers =
        DV_NEW_ARRAY(model->arena, struct dv_api_container, pod.spec.n_containers);
    for (size_t i = 0; i < pod.spec.n_init_containers; i++) {
        make_container(model, 'i', i, &pod.spec.init_containers[i]);
        if (choose(model, 2) == 0)
            pod.spec.init_containers[i].restart_policy = DV_STR("Always");
        else
            pod.spec.init_containers[i].startup_probe = NULL;
    }
    for (size_t i = 0; i < pod.spec.n_containers; i++)
        make_container(model, 'c', i, &pod.spec.containers[i]);
    if (choose(model, 6) == 0) {
        int64_t *deadline_s = DV_NEW(model->arena, int64_t);

        *deadline_s = 1 + choose(model, 60);
        pod.spec.active_deadline_seconds = deadline_s;
    }
    return pod;
}

/* ---- the runtime ---- */

static void check_action(struct model *model, const struct dv_life_action *action)
{
    const struct life_world *world = &model->world;
    bool is_never =
        world->has_pod && action->spec && action->container_kind == DV_WORKLOAD_REGULAR &&
        dv_str_eq(world->pod.spec.restart_policy, DV_STR("Never")) && !model->may_run_twice;

    if (action->kind == DV_LIFE_RELEASE)
        hold(model, life_world_n_running(world) == 0, "no container runs at the release");
    if (action->kind == DV_LIFE_CLEAN_UP)
        hold(model, world->is_released, "released before the clean-up");
    if (action->kind != DV_LIFE_CREATE_CONTAINER && action->kind != DV_LIFE_START_CONTAINER)
        return;
    hold(model, !world->is_released, "nothing is started after the release");
    for (size_t i = 0; i < world->containers.n; i++) {
        const struct dv_life_container *container = &world->containers.v[i];

        if (!dv_str_eq(container->name, action->container))
            continue;
        hold(model, container->state != DV_LIFE_RUNNING, "one running instance of a container");
        hold(model, !is_never || container->started_ns == 0, "a container runs once under Never");
    }
}

static enum life_chance on_chance(struct life_world *world, const struct dv_life_action *action)
{
    struct model *model = world->ctx;

    check_action(model, action);
    if (choose(model, 16) >= model->n_faults_of_16)
        return LIFE_GOES_WELL;
    if ((action->kind == DV_LIFE_STOP_CONTAINER || action->kind == DV_LIFE_STOP_SANDBOX) &&
        choose(model, 2) == 0)
        return LIFE_LIES;
    return choose(model, 2) == 0 ? LIFE_FAILS : LIFE_FAILS_AFTER;
}

static uint64_t on_duration(struct life_world *world, const struct dv_life_action *action)
{
    struct model *model = world->ctx;
    uint64_t ms = 1 + choose(model, 50) * (choose(model, 8) == 0 ? 100u : 1u);

    if (action->kind == DV_LIFE_STOP_CONTAINER && ms > (uint64_t)action->grace_s * 1000)
        ms = (uint64_t)action->grace_s * 1000;
    return ms;
}

static enum dv_probe_outcome on_probe(struct life_world *world, const struct dv_life_action *action)
{
    struct model *model = world->ctx;

    (void)action;
    return choose(model, 3) == 0 ? (enum dv_probe_outcome)choose(model, 4) : DV_PROBE_SUCCESS;
}

/* ---- what happens to it ---- */

static void end_some(struct model *model)
{
    struct life_world *world = &model->world;

    for (size_t i = 0; i < world->containers.n; i++)
        if (choose(model, 2) == 0)
            life_world_end(world, &world->containers.v[i], (int32_t)choose(model, 3));
}

static void break_sandbox(struct model *model)
{
    for (size_t i = 0; i < model->world.sandboxes.n; i++)
        model->world.sandboxes.v[i].is_ready = false;
}

/* The runtime has lost track of a container: it may run or not, and says that it does not know. */
static void lose_one(struct model *model)
{
    struct life_world *world = &model->world;

    for (size_t i = 0; i < world->containers.n; i++)
        if (world->containers.v[i].state == DV_LIFE_RUNNING) {
            world->containers.v[i].state = DV_LIFE_UNKNOWN;
            model->may_run_twice = true;
            return;
        }
}

static void do_something(struct model *model)
{
    struct life_world *world = &model->world;
    unsigned deed = choose(model, 12);

    dv_buf_printf(&world->lines, "%llu deed %u\n", (unsigned long long)world->now_ms, deed);
    switch (deed) {
    case 0:
    case 1:
        end_some(model);
        break;
    case 2:
        break_sandbox(model);
        break;
    case 3:
        life_world_restart(world);
        break;
    case 4:
        lose_one(model);
        break;
    case 5:
        world->pod.spec.containers[0].image = DV_STR("registry.example/image:2");
        world->pod.metadata.generation++;
        model->may_run_twice = true;
        break;
    case 6:
        model->n_faults_of_16 = choose(model, 8);
        break;
    case 7:
        world->facts.network_problem = choose(model, 2) == 0 ? DV_STR("no network") : DV_STR_NONE;
        break;
    case 8:
        if (choose(model, 6) == 0) {
            world->facts.eviction_reason = DV_STR("Evicted");
            world->facts.eviction_message = DV_STR("too much");
        }
        break;
    case 9:
        if (choose(model, 4) == 0)
            life_world_delete(world, choose(model, 10));
        break;
    default:
        break;
    }
}

static void check_phase(struct model *model)
{
    const struct life_world *world = &model->world;

    if (model->phase.n > 0)
        hold(model, dv_str_eq(world->pod.status.phase, model->phase), "a terminal phase stays");
    if (!dv_pod_is_terminal(&world->pod))
        return;
    hold(model, world->is_released, "a terminal phase is told after the release");
    model->phase = world->pod.status.phase;
}

void life_model_run(struct life_chooser *chooser)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct model model = {.chooser = chooser, .arena = arena};
    struct life_world *world = &model.world;
    struct dv_api_pod pod = make_pod(&model);
    uint64_t end_ms;

    life_world_init(world, &pod, arena);
    world->ctx = &model;
    world->chance = on_chance;
    world->takes_ms = on_duration;
    world->probe = on_probe;
    model.n_faults_of_16 = choose(&model, 4);
    for (int i = 0; i < ROUNDS; i++) {
        size_t n_looks = world->n_looks;
        uint64_t ms = choose(&model, 16) * (choose(&model, 4) == 0 ? 1000u : 100u);

        world->facts.random = choose(&model, 256) << 24;
        life_world_run(world, world->now_ms + ms);
        hold(&model, world->n_looks - n_looks < LOOKS_MAX_PER_S * (ms / 1000 + 1),
             "looks come with a pause");
        check_phase(&model);
        do_something(&model);
    }
    model.n_faults_of_16 = 0;
    world->facts.network_problem = DV_STR_NONE;
    if (!world->facts.has_vanished && !world->pod.metadata.deletion_timestamp.is_set)
        life_world_delete(world, 5);
    end_ms = world->now_ms + END_MS;
    while (world->stage != DV_LIFE_GONE && world->now_ms < end_ms) {
        life_world_run(world, world->now_ms + 1000);
        check_phase(&model);
    }
    hold(&model, world->stage == DV_LIFE_GONE, "a deleted pod ends");
    hold(&model, world->containers.n == 0 && world->sandboxes.n == 0, "nothing is left");
    life_world_fini(world);
}
