/* Worlds at random: all that must hold of them holds. */
#include "tests/support/dvtest.h"

#include "alloc/tests/test_alloc_world.h"
#include "alloc/tests/test_verify.h"
#include "base/arena.h"
#include "base/defs.h"

#define WORLDS 1500u
#define STEPS_MAX 5000u

static void finds_what_the_model_finds_however_the_inventory_came_to_be(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct choices choices = {.seed = seed * 0x9e3779b97f4a7c15u};
        dv_str line = world_line(&choices, arena);
        struct world world;
        const char *problem = "cannot be read";

        if (world_open(&world, line))
            problem = check_world(&world, STEPS_MAX);
        world_close(&world);
        if (problem)
            fail_msg("seed %llu: %s: %.*s", (unsigned long long)seed, problem, DV_FMT(line));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_the_model_finds_however_the_inventory_came_to_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
