/* test_life.h - pods from YAML in a world of their own, and what tests ask of them. */
#ifndef DV_WORKLOAD_TESTS_TEST_LIFE_H
#define DV_WORKLOAD_TESTS_TEST_LIFE_H

#include "test_life_world.h" /* IWYU pragma: export */
#include "test_workload.h"   /* IWYU pragma: export */
#include "workload/tests/test_life_world.h"
#include "workload/tests/test_workload.h"

#define ONE "containers: [{name: c, image: i}]"

/* A world with a pod of this spec, in YAML's flow style. */
static inline struct life_world *life_test(const char *spec)
{
    struct life_world *world = DV_NEW(arena, struct life_world);

    life_world_init(world, test_pod(spec).pod, arena);
    return world;
}

static inline struct life_world *life_test_with(const char *spec, const struct life_habit *habits,
                                                size_t n_habits)
{
    struct life_world *world = life_test(spec);

    world->habits = habits;
    world->n_habits = n_habits;
    return world;
}

#define assert_line(world, text)                                                                   \
    do {                                                                                           \
        if (!life_world_has((world), (text)))                                                      \
            fail_msg("no line \"%s\" in\n%s", (text), dv_buf_c(&(world)->lines));                  \
    } while (0)
#define assert_no_line(world, text)                                                                \
    do {                                                                                           \
        if (life_world_has((world), (text)))                                                       \
            fail_msg("a line \"%s\" in\n%s", (text), dv_buf_c(&(world)->lines));                   \
    } while (0)
/* The first line with `a` is before the first one with `b`. */
#define assert_before(world, a, b)                                                                 \
    do {                                                                                           \
        assert_line(world, a);                                                                     \
        assert_line(world, b);                                                                     \
        if (life_world_at((world), (a)) >= life_world_at((world), (b)))                            \
            fail_msg("\"%s\" is not before \"%s\" in\n%s", (a), (b), dv_buf_c(&(world)->lines));   \
    } while (0)

/* "running", "terminated Error 1", "waiting CrashLoopBackOff" */
static inline void assert_state(const struct life_world *world, const char *name, const char *want)
{
    const struct dv_api_container_status *status = life_world_status(world, name);
    const struct dv_api_container_state *state;
    dv_str text = DV_STR("nothing");

    assert_non_null(status);
    state = &status->state;
    if (state->running)
        text = DV_STR("running");
    else if (state->waiting)
        text = dv_str_printf(arena, "waiting %.*s", DV_FMT(state->waiting->reason));
    else if (state->terminated)
        text = dv_str_printf(arena, "terminated %.*s %lld", DV_FMT(state->terminated->reason),
                             (long long)state->terminated->exit_code);
    if (!dv_str_eq(text, dv_str_from_c(want)))
        fail_msg("%s is %.*s, not %s, in\n%s", name, DV_FMT(text), want, dv_buf_c(&world->lines));
}

static inline void assert_phase(const struct life_world *world, const char *want)
{
    const struct dv_api_pod_status *status = dv_life_status(world->life);

    assert_non_null(status);
    if (!dv_str_eq(status->phase, dv_str_from_c(want)))
        fail_msg("%.*s, not %s, in\n%s", DV_FMT(status->phase), want, dv_buf_c(&world->lines));
}

/* "False ContainersNotReady" */
static inline void assert_condition(const struct life_world *world, const char *type,
                                    const char *want)
{
    const struct dv_api_pod_condition *condition = life_world_condition(world, type);
    dv_str text;

    assert_non_null(condition);
    text = condition->reason.n > 0 ? dv_str_printf(arena, "%.*s %.*s", DV_FMT(condition->status),
                                                   DV_FMT(condition->reason))
                                   : condition->status;
    assert_str(text, want);
}

#endif
