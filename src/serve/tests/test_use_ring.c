#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "serve/node/use_ring.h"

static const struct dv_use_key gpu = {.resource = DV_STR_INIT("example.com/gpu")};
static const struct dv_use_key pool = {.driver = DV_STR_INIT("d"), .pool = DV_STR_INIT("n1")};

/* "example.com/gpu=1,2 d/n1=0" */
static const char *told(const struct dv_use_ring *ring, struct dv_buf *text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_past_use *uses;
    size_t n = dv_use_ring_list(ring, arena, &uses);

    dv_buf_clear(text);
    for (size_t i = 0; i < n; i++) {
        dv_buf_printf(text, "%s%.*s%.*s%s%.*s=", i ? " " : "", DV_FMT(uses[i].key.resource),
                      DV_FMT(uses[i].key.driver), uses[i].key.pool.n ? "/" : "",
                      DV_FMT(uses[i].key.pool));
        for (size_t k = 0; k < uses[i].n && k < 5; k++)
            dv_buf_printf(text, "%s%u", k ? "," : "", uses[i].held[k]);
    }
    return dv_buf_c(text);
}

static void samples_come_oldest_first(void **state)
{
    struct dv_use_ring *ring = dv_use_ring_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    (void)state;
    dv_buf_init(&text, 4096);
    assert_string_equal(told(ring, &text), "");
    dv_use_ring_begin(ring);
    dv_use_ring_add(ring, &gpu, 1);
    dv_use_ring_begin(ring);
    dv_use_ring_add(ring, &gpu, 2);
    dv_use_ring_add(ring, &pool, 1);
    dv_use_ring_add(ring, &pool, 2); /* of another claim */
    assert_string_equal(told(ring, &text), "d/n1=3 example.com/gpu=1,2");
    dv_use_ring_begin(ring); /* both are gone */
    assert_string_equal(told(ring, &text), "d/n1=3,0 example.com/gpu=1,2,0");
    dv_use_ring_free(ring);
}

static void an_hour_later_the_first_sample_is_gone(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_use_ring *ring = dv_use_ring_new();
    struct dv_past_use *uses;

    (void)state;
    for (uint64_t i = 0; i < DV_USE_SAMPLES + 7u; i++) {
        dv_use_ring_begin(ring);
        dv_use_ring_add(ring, &gpu, i);
    }
    assert_int_equal(dv_use_ring_list(ring, arena, &uses), 1);
    assert_int_equal(uses[0].n, DV_USE_SAMPLES);
    for (size_t i = 0; i < DV_USE_SAMPLES; i++)
        assert_int_equal(uses[0].held[i], i + 7);
    dv_use_ring_free(ring);
}

static void what_nobody_held_for_an_hour_is_forgotten(void **state)
{
    struct dv_use_ring *ring = dv_use_ring_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    (void)state;
    dv_buf_init(&text, 4096);
    dv_use_ring_begin(ring);
    dv_use_ring_add(ring, &gpu, 1);
    dv_use_ring_add(ring, &pool, 0);
    dv_use_ring_begin(ring);
    dv_use_ring_begin(ring);
    assert_string_equal(told(ring, &text), "example.com/gpu=1,0,0");
    for (size_t i = 0; i < DV_USE_SAMPLES; i++)
        dv_use_ring_begin(ring);
    assert_string_equal(told(ring, &text), "");
    dv_use_ring_free(ring);
}

static void there_is_a_limit_of_names(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_use_ring *ring = dv_use_ring_new();
    struct dv_past_use *uses;

    (void)state;
    dv_use_ring_begin(ring);
    for (unsigned i = 0; i < 2 * DV_USES_MAX; i++) {
        struct dv_use_key key = {.resource = dv_str_printf(arena, "r%u", i)};

        dv_use_ring_add(ring, &key, 1);
    }
    assert_int_equal(dv_use_ring_list(ring, arena, &uses), DV_USES_MAX);
    dv_use_ring_free(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_come_oldest_first),
        cmocka_unit_test(an_hour_later_the_first_sample_is_gone),
        cmocka_unit_test(what_nobody_held_for_an_hour_is_forgotten),
        cmocka_unit_test(there_is_a_limit_of_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
