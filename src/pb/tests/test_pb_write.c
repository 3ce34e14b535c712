#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "pb/pb.h"
#include "pb/tests/test_hex.h"

#define BYTES_MAX (64u * 1024u)

static void assert_bytes(const struct dv_buf *buf, const char *want_hex)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str want = bytes_of_hex(want_hex, arena);

    assert_int_equal(buf->n, want.n);
    assert_memory_equal(dv_buf_c(buf), want.p, want.n);
}

static void numbers_take_as_few_bytes_as_they_can(void **state)
{
    static const struct {
        uint32_t number;
        uint64_t value;
        const char *want_hex;
    } cases[] = {
        {1,                0,          "08 00"                  },
        {1,                127,        "08 7f"                  },
        {2,                128,        "10 8001"                },
        {15,               16384,      "78 808001"              },
        {16,               1,          "8001 01"                },
        {DV_PB_NUMBER_MAX, 1,          "f8ffffff0f 01"          },
        {1,                UINT64_MAX, "08 ffffffffffffffffff01"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_buf buf;

        dv_buf_init(&buf, BYTES_MAX);
        dv_pb_add_number(&buf, cases[i].number, cases[i].value);
        assert_bytes(&buf, cases[i].want_hex);
        dv_buf_fini(&buf);
    }
}

static void nothing_is_left_out_for_being_empty(void **state)
{
    struct dv_buf buf;
    size_t mark;

    (void)state;
    dv_buf_init(&buf, BYTES_MAX);
    dv_pb_add_bytes(&buf, 1, DV_STR(""));
    mark = dv_pb_begin(&buf, 2);
    dv_pb_end(&buf, mark);
    dv_pb_add_bytes(&buf, 3, DV_STR("abc"));
    assert_bytes(&buf, "0a 00 12 00 1a 03 616263");
    dv_buf_fini(&buf);
}

static void nested_fields_get_lengths_of_any_size(void **state)
{
    static const size_t sizes[] = {0, 1, 120, 126, 127, 128, 129, 16382, 16383, 16384, 40000};
    static char text[40000];

    (void)state;
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < DV_COUNT(sizes); i++) {
        struct dv_pb_reader reader, middle = {0}, inner = {0};
        struct dv_pb_field field;
        struct dv_buf buf;
        struct dv_err err;
        size_t outer_mark, inner_mark;

        dv_buf_init(&buf, BYTES_MAX);
        outer_mark = dv_pb_begin(&buf, 1);
        inner_mark = dv_pb_begin(&buf, 2);
        dv_pb_add_bytes(&buf, 3, (dv_str){text, sizes[i]});
        dv_pb_end(&buf, inner_mark);
        dv_pb_add_number(&buf, 4, 5);
        dv_pb_end(&buf, outer_mark);
        dv_pb_add_number(&buf, 6, 7);

        dv_pb_reader_init(&reader, dv_buf_str(&buf));
        assert_ok(dv_pb_read(&reader, &field, &err), &err);
        assert_int_equal(field.tag, DV_PB_TAG(1, DV_PB_BYTES));
        assert_ok(dv_pb_enter(&reader, &field, &middle, &err), &err);
        assert_ok(dv_pb_read(&middle, &field, &err), &err);
        assert_int_equal(field.tag, DV_PB_TAG(2, DV_PB_BYTES));
        assert_ok(dv_pb_enter(&middle, &field, &inner, &err), &err);
        assert_ok(dv_pb_read(&inner, &field, &err), &err);
        assert_true(dv_str_eq(field.bytes, (dv_str){text, sizes[i]}));
        assert_true(dv_pb_is_at_end(&inner));
        assert_ok(dv_pb_read(&middle, &field, &err), &err);
        assert_int_equal(field.value, 5);
        assert_true(dv_pb_is_at_end(&middle));
        assert_ok(dv_pb_read(&reader, &field, &err), &err);
        assert_int_equal(field.value, 7);
        assert_true(dv_pb_is_at_end(&reader));
        dv_buf_fini(&buf);
    }
}

static void a_full_buffer_is_noticed_at_the_end(void **state)
{
    char text[200];

    (void)state;
    memset(text, 'x', sizeof(text));
    /* Needed: tag and length of the outer field (1 + 2), of the inner (1 + 2), and the text. */
    for (size_t max = 0; max <= 206; max++) {
        struct dv_buf buf;
        struct dv_err err;
        size_t mark;

        dv_buf_init(&buf, max);
        mark = dv_pb_begin(&buf, 1);
        dv_pb_add_bytes(&buf, 2, (dv_str){text, sizeof(text)});
        dv_pb_end(&buf, mark);
        assert_int_equal(dv_buf_check(&buf, "list", &err), max == 206);
        dv_buf_fini(&buf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_take_as_few_bytes_as_they_can),
        cmocka_unit_test(nothing_is_left_out_for_being_empty),
        cmocka_unit_test(nested_fields_get_lengths_of_any_size),
        cmocka_unit_test(a_full_buffer_is_noticed_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
