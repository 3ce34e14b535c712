/* Pods, claims, slices and nodes that come and go at random, a scheduler that is closed and opened,
 * requests that fail: in the end every pod is where it should be, or says truly why not. */
#include "sched/tests/test_sched_world.h"

#include "support/dvtest.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/defs.h"
#include "base/map.h"
#include "resource/resource.h"
#include "support/api_front.h"
#include "support/dice.h"

#define N_NODES 5u
#define N_PODS 24u
#define N_STEPS 120u

/* What decisions may cost in a turn: so little that they are made in many, and beside the loop. */
static const uint64_t turn_budgets[] = {0, 1, 7, 300};

/* ---- what may happen ---- */

static const char *node_name(struct world *world, struct dice *dice)
{
    return text(world, "n%u", roll(dice, N_NODES));
}

static void toggle_node(struct world *world, struct dice *dice)
{
    const char *name = node_name(world, dice);

    if (look(world, DV_KIND_NODE, name))
        destroy(world, DV_KIND_NODE, name);
    else
        make_node(world, name, 0);
}

static void toggle_slice(struct world *world, struct dice *dice)
{
    const char *name = node_name(world, dice);

    if (look(world, DV_KIND_SLICE, name))
        destroy(world, DV_KIND_SLICE, name);
    else
        make_slice(world, name, 1 + roll(dice, 4));
}

static void toggle_cordon(struct world *world, struct dice *dice)
{
    const char *name = node_name(world, dice);

    if (look(world, DV_KIND_NODE, name))
        change(world, DV_KIND_NODE, name,
               roll(dice, 2) ? "{spec: {unschedulable: true}}" : "{spec: {unschedulable: null}}");
}

/* Some claims are shared by two pods. */
static void toggle_pod(struct world *world, struct dice *dice)
{
    unsigned i = roll(dice, N_PODS);
    const char *pod = text(world, "p%u", i);
    const char *claim = text(world, "c%u", i / 3 * 3 + (i % 3 == 2 ? 1 : i % 3));

    if (look(world, DV_KIND_POD, pod)) {
        destroy(world, DV_KIND_POD, pod);
        return;
    }
    if (!look(world, DV_KIND_CLAIM, claim))
        make_claim(world, claim, 1 + i % 2);
    make_pod(world, pod, roll(dice, 8) ? claim : NULL,
             roll(dice, 6) ? "" : ", nodeSelector: {zone: z1}");
}

static void end_a_pod(struct world *world, struct dice *dice)
{
    const char *pod = text(world, "p%u", roll(dice, N_PODS));

    if (node_of(world, pod)[0])
        change_status(world, DV_KIND_POD, pod, "{status: {phase: Succeeded}}");
}

static void restart(struct world *world, struct dice *dice)
{
    (void)dice;
    close_sched(world);
    open_sched(world);
}

static void hold_or_release(struct world *world, struct dice *dice)
{
    (void)dice;
    if (world->api.front.is_holding)
        release_requests(world);
    else
        world->api.front.is_holding = true;
}

static void break_something(struct world *world, struct dice *dice)
{
    static const enum fault faults[] = {FAULT_BEFORE, FAULT_AFTER, FAULT_CONFLICT, FAULT_REFUSED};

    world->api.front.fault = faults[roll(dice, DV_COUNT(faults))];
    world->api.front.fault_at = world->api.front.n_requests + 1 + roll(dice, 3);
}

static void let_time_pass(struct world *world, struct dice *dice)
{
    pass(world, 500 * (1 + roll(dice, 6)));
}

static void clean(struct world *world, struct dice *dice)
{
    (void)dice;
    clean_up(world);
}

static const struct {
    void (*act)(struct world *world, struct dice *dice);
    unsigned weight;
} acts[] = {
    {toggle_pod,      12},
    {end_a_pod,       3 },
    {clean,           4 },
    {toggle_node,     1 },
    {toggle_slice,    2 },
    {toggle_cordon,   1 },
    {let_time_pass,   3 },
    {hold_or_release, 2 },
    {break_something, 2 },
    {restart,         1 },
};

static void act(struct world *world, struct dice *dice)
{
    unsigned sum = 0;
    unsigned at;

    for (size_t i = 0; i < DV_COUNT(acts); i++)
        sum += acts[i].weight;
    at = roll(dice, sum);
    for (size_t i = 0; i < DV_COUNT(acts); i++) {
        if (at < acts[i].weight) {
            acts[i].act(world, dice);
            return;
        }
        at -= acts[i].weight;
    }
}

/* ---- what is always true ---- */

static void no_device_is_given_twice(struct world *world)
{
    struct dv_object **claims;
    struct dv_map held;

    dv_map_init(&held);
    for (size_t i = 0, n = list(world, DV_KIND_CLAIM, &claims); i < n; i++) {
        const struct dv_api_resource_claim *claim = claims[i]->value;
        const struct dv_api_allocation_result *allocation = claim->status.allocation;

        for (size_t j = 0; allocation && j < allocation->devices.n_results; j++) {
            const struct dv_api_device_request_allocation_result *result =
                &allocation->devices.results[j];
            dv_str key = dv_str_printf(world->api.arena, "%.*s/%.*s", DV_FMT(result->pool),
                                       DV_FMT(result->device));

            if (dv_map_set(&held, key, claims[i]))
                fail_msg("%.*s is given twice", DV_FMT(key));
        }
    }
    dv_map_fini(&held);
}

/* ---- what is true in the end ---- */

static void a_bound_pod_has_what_it_asked_for(struct world *world, const struct dv_api_pod *pod)
{
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
        const struct dv_api_resource_claim *claim = look_claim(
            world, dv_str_to_c(pod->spec.resource_claims[i].resource_claim_name, world->api.arena));
        bool is_reserved = false;

        assert_non_null(claim);
        assert_non_null(claim->status.allocation);
        assert_str(claim->status.allocation->devices.results[0].pool,
                   dv_str_to_c(pod->spec.node_name, world->api.arena));
        for (size_t j = 0; j < claim->status.n_reserved_for; j++)
            is_reserved |= dv_str_eq(claim->status.reserved_for[j].uid, pod->metadata.uid);
        assert_true(is_reserved);
    }
}

static size_t n_free(struct world *world, const char *node)
{
    const struct dv_object *slice = look(world, DV_KIND_SLICE, node);
    size_t n = slice ? ((const struct dv_api_resource_slice *)slice->value)->spec.n_devices : 0;
    struct dv_object **claims;
    size_t n_held = 0;

    for (size_t i = 0, n_claims = list(world, DV_KIND_CLAIM, &claims); i < n_claims; i++) {
        const struct dv_api_resource_claim *claim = claims[i]->value;
        const struct dv_api_allocation_result *allocation = claim->status.allocation;

        for (size_t j = 0; allocation && j < allocation->devices.n_results; j++)
            n_held += dv_str_eq(allocation->devices.results[j].pool, dv_str_from_c(node));
    }
    return n > n_held ? n - n_held : 0;
}

static bool is_open(struct world *world, const char *node)
{
    const struct dv_object *object = look(world, DV_KIND_NODE, node);

    return object && !((const struct dv_api_node *)object->value)->spec.unschedulable;
}

/* No node would do: computed here, from nothing but what is stored. */
static void a_waiting_pod_has_a_reason(struct world *world, const struct dv_api_pod *pod)
{
    const char *name = dv_str_to_c(pod->metadata.name, world->api.arena);
    const struct dv_api_resource_claim *claim = NULL;
    size_t n_wanted = 0;

    if (pod->spec.n_resource_claims > 0) {
        claim = look_claim(
            world, dv_str_to_c(pod->spec.resource_claims[0].resource_claim_name, world->api.arena));
        if (claim && !claim->status.allocation)
            n_wanted = (size_t)claim->spec.devices.requests[0].exactly->count;
    }
    for (unsigned i = 0; i < N_NODES; i++) {
        const char *node = text(world, "n%u", i);
        bool is_there =
            !claim || !claim->status.allocation ||
            dv_str_eq(claim->status.allocation->devices.results[0].pool, dv_str_from_c(node));

        if (is_open(world, node) && is_there && n_free(world, node) >= n_wanted)
            fail_msg("%s could be on %s, but says: %s", name, node, said_of(world, name));
    }
    assert_string_not_equal(said_of(world, name), "");
}

static void check_end(struct world *world)
{
    for (unsigned i = 0; i < N_PODS; i++) {
        const struct dv_api_pod *pod = look_pod(world, text(world, "p%u", i));

        if (!pod || !dv_str_eq(pod->status.phase, DV_STR("Pending")))
            continue;
        if (pod->spec.node_name.n > 0)
            a_bound_pod_has_what_it_asked_for(world, pod);
        else
            a_waiting_pod_has_a_reason(world, pod);
    }
    assert_at_rest(world);
}

static void play(uint64_t seed)
{
    struct dice dice = {.state = seed * UINT64_C(0x9e3779b97f4a7c15)};
    struct world *world;

    print_message("seed %llu\n", (unsigned long long)seed);
    (void)start_world((void **)&world);
    world->options.turn_budget = turn_budgets[seed % DV_COUNT(turn_budgets)];
    for (unsigned j = 0; j < 3; j++)
        make_node(world, text(world, "n%u", j), 2);
    open_sched(world);
    for (unsigned j = 0; j < N_STEPS; j++) {
        act(world, &dice);
        no_device_is_given_twice(world);
    }
    world->api.front.fault = FAULT_NONE;
    release_requests(world);
    pass(world, 30000);
    no_device_is_given_twice(world);
    check_end(world);
    (void)end_world((void **)&world);
}

static void all_ends_well(void **state)
{
    const char *seed = getenv("DAVIT_SEED");
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    uint64_t last = seed ? first : 40;

    (void)state;
    for (uint64_t i = first; i <= last; i++)
        play(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ends_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
