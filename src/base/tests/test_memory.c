#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

static void arena_memory_is_zeroed_and_aligned(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t round = 0; round < 3; round++) {
        for (size_t n = 0; n < 300; n++) {
            size_t align = (size_t)1 << (n % 5);
            unsigned char *p = dv_arena_alloc(arena, n, align);

            assert_int_equal((uintptr_t)p % align, 0);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(p[i], 0);
            memset(p, 0xff, n); /* the next one must not see this */
        }
        dv_arena_reset(arena);
    }
}

static void arena_allocations_do_not_overlap(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    unsigned char *parts[200];

    (void)state;
    for (size_t i = 0; i < 200; i++) {
        parts[i] = dv_arena_alloc(arena, i * 7, 1);
        memset(parts[i], (int)i, i * 7);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i * 7; k++)
            assert_int_equal(parts[i][k], i);
}

static void arena_reset_gives_large_blocks_back(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    size_t empty = dv_arena_size_bytes(arena);

    (void)state;
    (void)dv_arena_alloc(arena, 10u << 20, 8);
    assert_true(dv_arena_size_bytes(arena) > 10u << 20);
    dv_arena_reset(arena);
    assert_int_equal(dv_arena_size_bytes(arena), empty);
    assert_non_null(DV_NEW_ARRAY(arena, uint64_t, 3));
}

/* What is allocated in one arena fits into one that is made for it, to the last block. */
static void arena_of_a_size_has_one_block(void **state)
{
    (void)state;
    for (size_t n_parts = 0; n_parts < 200; n_parts++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *first = dv_arena_new();
        DV_CLEANUP(dv_arena_freep) struct dv_arena *second = NULL;
        size_t size;

        for (size_t i = 0; i < n_parts; i++)
            (void)dv_arena_alloc(first, i * 3, (size_t)1 << (i % 5));
        second = dv_arena_new_sized(dv_arena_used_bytes(first));
        size = dv_arena_size_bytes(second);
        for (size_t i = 0; i < n_parts; i++)
            (void)dv_arena_alloc(second, i * 3, (size_t)1 << (i % 5));
        assert_int_equal(dv_arena_size_bytes(second), size);
        (void)dv_arena_alloc(second, 1000, 1); /* it still grows */
        assert_true(dv_arena_size_bytes(second) > size);
    }
}

static void arena_free_accepts_null(void **state)
{
    (void)state;
    dv_arena_free(NULL);
}

static void vec_grows_on_the_heap_and_in_an_arena(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_VEC(int) heap = {0};
    DV_VEC(int) arena_vec = {0};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        *dv_vec_add(&heap) = i;
        *dv_vec_add_in(&arena_vec, arena) = i;
    }
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(heap.v[i], i);
        assert_int_equal(arena_vec.v[i], i);
    }
    dv_vec_remove(&heap, 0);
    assert_int_equal(heap.v[0], 1);
    dv_vec_remove_swap(&heap, 0);
    assert_int_equal(heap.v[0], 999);
    assert_int_equal(heap.n, 998);
    dv_vec_clear(&heap);
    assert_int_equal(*dv_vec_add(&heap), 0); /* zeroed although the memory was used */
    dv_vec_fini(&heap);
}

static void buf_keeps_its_ceiling_and_says_so_once(void **state)
{
    struct dv_buf buf;
    struct dv_err err;

    (void)state;
    dv_buf_init(&buf, 10);
    dv_buf_add_c(&buf, "0123456789");
    assert_true(dv_buf_check(&buf, "list", &err));
    dv_buf_add_char(&buf, 'x');
    assert_str(dv_buf_str(&buf), "0123456789");
    assert_false(dv_buf_check(&buf, "list", &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "list: larger than the limit of 10 bytes");
    dv_buf_clear(&buf);
    dv_buf_printf(&buf, "%d", 7);
    assert_true(dv_buf_check(&buf, "list", &err));
    assert_string_equal(dv_buf_c(&buf), "7");
    dv_buf_fini(&buf);
}

static void buf_prints_long_and_extreme_values(void **state)
{
    struct dv_buf buf;
    char text[600];

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    dv_buf_init(&buf, 1000);
    dv_buf_printf(&buf, "%s", text);
    assert_string_equal(dv_buf_c(&buf), text);
    dv_buf_clear(&buf);
    dv_buf_add_i64(&buf, INT64_MIN);
    dv_buf_add_u64(&buf, UINT64_MAX);
    assert_str(dv_buf_str(&buf), "-922337203685477580818446744073709551615");
    assert_null(dv_buf_extend(&buf, SIZE_MAX));
    dv_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_memory_is_zeroed_and_aligned),
        cmocka_unit_test(arena_allocations_do_not_overlap),
        cmocka_unit_test(arena_reset_gives_large_blocks_back),
        cmocka_unit_test(arena_of_a_size_has_one_block),
        cmocka_unit_test(arena_free_accepts_null),
        cmocka_unit_test(vec_grows_on_the_heap_and_in_an_arena),
        cmocka_unit_test(buf_keeps_its_ceiling_and_says_so_once),
        cmocka_unit_test(buf_prints_long_and_extreme_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
