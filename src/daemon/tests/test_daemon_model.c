/* test_daemon_model.c - ten minutes of everything at once, and then of rest: what must hold does.
 *
 * DAVIT_SEED=n runs that one world; DAVIT_SEEDS=n as many, from the first. */
#include "daemon/tests/test_daemon_model.h"

#include "support/dvtest.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/vec.h"
#include "daemon/tests/test_model_world.h"
#include "resource/resource.h"

#define N_SEEDS 24u
#define STORY_MS 600000u
#define N_RESTS 4u
/* The longest pause that controllers make between attempts, and then some. */
#define REST_MS 130000u
#define REST_STEP_MS 2000u

/* How long it took; the clock may have jumped besides. */
static uint64_t step(struct story *story)
{
    struct world *world = story->world;
    unsigned n_acts = roll(&story->dice, 4);
    uint64_t ms = 50 + roll(&story->dice, 1500);

    dv_arena_reset(world->api.arena);
    for (unsigned i = 0; i < n_acts; i++) {
        act(story);
        check_always(story);
    }
    turn_nodes(story, false);
    pass(world, ms);
    check_always(story);
    return ms;
}

static void rest_a_while(struct story *story)
{
    struct world *world = story->world;

    for (uint64_t ms = 0; ms < REST_MS; ms += REST_STEP_MS) {
        dv_arena_reset(world->api.arena);
        turn_nodes(story, true);
        pass(world, REST_STEP_MS);
        check_always(story);
    }
}

/* Everybody does what they should, until nothing is left to do. */
static void rest(struct story *story)
{
    struct world *world = story->world;

    set_faults(world, false);
    start_control(world);
    start_sched(world, 0);
    kill_sched(world, 1);
    rest_a_while(story);
    if (!story->had_rivals)
        return;
    while (delete_broken(story))
        settle(world);
    dv_vec_clear(&story->prepared); /* for claims that have other devices by now */
    story->had_rivals = false;
    rest_a_while(story);
}

static void delete_pods(struct story *story)
{
    for (unsigned i = 0; i < N_PODS; i++)
        (void)destroy(story->world, DV_KIND_POD, NAME(story->world, "p%u", i), -1);
}

static void run(uint64_t seed)
{
    struct world *world = world_new(seed);
    struct story story;

    story_init(&story, world, seed);
    start_control(world);
    start_sched(world, 0);
    for (unsigned i = 1; i <= N_RESTS; i++) {
        set_faults(world, true);
        for (uint64_t ms = 0; ms < STORY_MS / N_RESTS;)
            ms += step(&story);
        rest(&story);
        check_rest(&story);
    }
    delete_pods(&story);
    rest(&story);
    check_empty(&story);
    story_fini(&story);
    world_free(world);
}

static void what_must_hold_does_whatever_happens(void **state)
{
    const char *seed = getenv("DAVIT_SEED");
    const char *seeds = getenv("DAVIT_SEEDS");
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    uint64_t n = seeds ? strtoull(seeds, NULL, 10) : N_SEEDS;

    (void)state;
    for (uint64_t i = first; i < first + (seed ? 1 : n); i++) {
        print_message("seed %llu\n", (unsigned long long)i);
        run(i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_must_hold_does_whatever_happens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
