#include "daemon/tests/test_model_world.h"

#include "support/dvtest.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/list.h"
#include "control/control.h"
#include "sched/sched.h"
#include "support/api_front.h"
#include "support/dice.h"
#include "support/turns.h"

bool is_at_rest(const struct world *world)
{
    return dv_list_is_empty(&world->api.front.relays);
}

void set_faults(struct world *world, bool has_faults)
{
    world->has_faults = has_faults;
    world->api.front.is_late = has_faults;
    world->api.front.fault_odds = has_faults ? 30 : 0;
}

/* ---- life ---- */

void start_control(struct world *world)
{
    const struct dv_control_options options = {.cluster = &world->api.front.cluster,
                                               .gates = dv_control_gates_default()};
    struct dv_err err;

    if (world->control)
        return;
    world->control = dv_control_open(world->api.loop, &options, &err);
    assert_ok(world->control, &err);
}

void kill_control(struct world *world)
{
    bool is_closed = false;

    if (!world->control)
        return;
    dv_control_close(world->control, set_flag, &is_closed);
    world->control = NULL;
    loop_wait_flag(world->api.loop, &is_closed);
}

void start_sched(struct world *world, size_t i)
{
    const struct dv_sched_options options = {.cluster = &world->api.front.cluster};
    struct dv_err err;

    if (world->scheds[i])
        return;
    world->scheds[i] = dv_sched_open(world->api.loop, &options, &err);
    assert_ok(world->scheds[i], &err);
}

void kill_sched(struct world *world, size_t i)
{
    bool is_closed = false;

    if (!world->scheds[i])
        return;
    dv_sched_close(world->scheds[i], set_flag, &is_closed);
    world->scheds[i] = NULL;
    loop_wait_flag(world->api.loop, &is_closed);
}

static void kill_all_but_the_api(struct world *world)
{
    kill_control(world);
    for (size_t i = 0; i < N_SCHEDS; i++)
        kill_sched(world, i);
    assert_true(is_at_rest(world)); /* all were answered, if only with a cancellation */
}

void kill_all(struct world *world)
{
    kill_all_but_the_api(world);
    api_reopen(&world->api);
    start_control(world);
    start_sched(world, 0);
}

struct world *world_new(uint64_t seed)
{
    struct world *world = DV_ALLOC(struct world);

    api_init_on_disk(&world->api);
    world->api.front.luck.state = seed * UINT64_C(0xd1342543de82ef95) + 1;
    return world;
}

void world_free(struct world *world)
{
    kill_all_but_the_api(world);
    api_fini(&world->api);
    free(world);
}

/* ---- requests ---- */

/* What is written by hand is right, whatever the time it comes at. */
static int code_of(struct api_reply reply)
{
    if (reply.code == 400 || reply.code == 500)
        fail_msg("%s", reply.message);
    return reply.code;
}

int make(struct world *world, enum dv_kind_id kind, const char *yaml)
{
    return code_of(api_create(&world->api, kind, NULL, yaml));
}

int change(struct world *world, enum dv_kind_id kind, enum dv_subresource subresource, dv_str name,
           const char *yaml)
{
    return code_of(
        api_patch(&world->api, kind, subresource, NULL, dv_str_to_c(name, world->api.arena), yaml));
}

int destroy(struct world *world, enum dv_kind_id kind, dv_str name, int64_t grace_s)
{
    return code_of(api_delete(&world->api, kind, NULL, dv_str_to_c(name, world->api.arena),
                              grace_s < 0 ? NULL : &grace_s));
}

/* ---- looking ---- */

struct dv_object *look(const struct world *world, enum dv_kind_id kind, dv_str name)
{
    return api_get(&world->api, kind, NULL, dv_str_to_c(name, world->api.arena));
}

size_t list(struct world *world, enum dv_kind_id kind, struct dv_object ***objects)
{
    return api_list(&world->api, kind, NULL, objects);
}

/* ---- time ---- */

void settle(struct world *world)
{
    api_settle(&world->api);
}

void pass(struct world *world, uint64_t ms)
{
    api_leap(&world->api, ms);
}
