#include "support/dvtest.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "pb/pb.h"
#include "pb/tests/test_hex.h"

#define TEXT_BYTES_MAX 4096u

/* "1=150 2:"abc" 3{...} 4.32=7", or the error. */
static void describe(dv_str bytes, struct dv_buf *text)
{
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    struct dv_err err;

    dv_pb_reader_init(&reader, bytes);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, &err)) {
            assert_int_equal(err.code, DV_INVALID_ARGUMENT);
            dv_buf_printf(text, "%s%s", text->n ? " " : "", err.msg);
            return;
        }
        dv_buf_printf(text, "%s%" PRIu32, text->n ? " " : "", field.tag >> 3);
        switch (field.tag & 7) {
        case DV_PB_VARINT:
            dv_buf_printf(text, "=%" PRIu64, field.value);
            break;
        case DV_PB_BYTES:
            dv_buf_printf(text, ":\"%.*s\"", DV_FMT(field.bytes));
            break;
        case DV_PB_GROUP:
            dv_buf_printf(text, "{%zu bytes}", field.bytes.n);
            break;
        default:
            dv_buf_printf(text, ".%s=%" PRIu64, (field.tag & 7) == DV_PB_FIXED32 ? "32" : "64",
                          field.value);
            break;
        }
    }
}

static void assert_described(const char *hex, const char *want)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_buf text;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    describe(bytes_of_hex(hex, arena), &text);
    assert_string_equal(dv_buf_c(&text), want);
    dv_buf_fini(&text);
}

static void fields_come_one_by_one(void **state)
{
    static const struct {
        const char *hex;
        const char *want;
        const char *why;
    } cases[] = {
        {"",                               "",                         "an empty message"       },
        {"08 00",                          "1=0",                      "a zero that is written" },
        {"08 9601 10 01",                  "1=150 2=1",                "numbers"                },
        {"0a 03 616263 12 00",             "1:\"abc\" 2:\"\"",         "bytes"                  },
        {"0d 01020304",                    "1.32=67305985",            "little-endian"          },
        {"09 0100000000000080",            "1.64=9223372036854775809", "little-endian"          },
        {"08 ffffffffffffffffff01",        "1=18446744073709551615",   "minus one"              },
        {"08 81808000",                    "1=1",                      "an overlong value"      },
        {"8a808080808000 818080808000 78", "1:\"x\"",                  "overlong tag and length"},
        {"f8ffffff0f 07",                  "536870911=7",              "the largest number"     },
        {"0b 0c 10 01",                    "1{0 bytes} 2=1",           "an empty group"         },
        {"0b 1001 1a0178 2501020304 0c",   "1{10 bytes}",              "a filled group"         },
        {"0b 0b 0c 0c 10 01",              "1{2 bytes} 2=1",           "nested groups"          },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_described(cases[i].hex, cases[i].want);
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
    static const struct {
        const char *hex;
        const char *want;
    } cases[] = {
        {"80",                        "byte 0: a number is cut off"                    },
        {"08",                        "byte 1: a number is cut off"                    },
        {"10 01 08 ff",               "2=1 byte 3: a number is cut off"                },
        {"0a",                        "byte 1: a number is cut off"                    },
        {"0a 01",                     "byte 1: a field is longer than what contains it"},
        {"0a 02 78",                  "byte 1: a field is longer than what contains it"},
        {"0a ffffffffffffffffff01",   "byte 1: a field is longer than what contains it"},
        {"0d 010203",                 "byte 1: a fixed-size number is cut off"         },
        {"09 01020304050607",         "byte 1: a fixed-size number is cut off"         },
        {"08 ffffffffffffffffff02",   "byte 1: a number of more than 64 bits"          },
        {"08 ffffffffffffffffffff01", "byte 1: a number of more than 64 bits"          },
        {"00 01",                     "byte 0: a field number out of range"            },
        {"02 00",                     "byte 0: a field number out of range"            },
        {"8080808010 01",             "byte 0: a field number out of range"            },
        {"ffffffffffffffffff01 01",   "byte 0: a field number out of range"            },
        {"0e",                        "byte 1: a wire type that does not exist"        },
        {"0f",                        "byte 1: a wire type that does not exist"        },
        {"0c",                        "byte 1: the end of a group that did not begin"  },
        {"0b",                        "byte 1: a group is cut off"                     },
        {"0b 14",                     "byte 1: the end of another group"               },
        {"0b 13 0c",                  "byte 2: the end of another group"               },
        {"0b 12 05 78 0c",            "byte 2: a field is longer than what contains it"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_described(cases[i].hex, cases[i].want);
}

static void strings_stay_where_they_are_and_are_utf8(void **state)
{
    static const struct {
        dv_str text;
        bool is_valid;
    } cases[] = {
        {DV_STR_INIT(""),                                       true },
        {DV_STR_INIT("gpu-0"),                                  true },
        {DV_STR_INIT("a name of more than eight"),              true },
        {DV_STR_INIT("Ger\xc3\xa4t"),                           true },
        {DV_STR_INIT("zero\0inside"),                           true },
        {DV_STR_INIT("\xff"),                                   false},
        {DV_STR_INIT("a name of more than eight\xff"),          false},
        {DV_STR_INIT("\x80 a name of more than eight"),         false},
        {DV_STR_INIT("in the middle \xed\xa0\x80 a surrogate"), false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_pb_reader reader;
        struct dv_pb_field field;
        struct dv_buf bytes;
        struct dv_err err;
        dv_str s;

        dv_buf_init(&bytes, TEXT_BYTES_MAX);
        dv_pb_add_bytes(&bytes, 1, cases[i].text);
        dv_pb_reader_init(&reader, dv_buf_str(&bytes));
        assert_ok(dv_pb_read(&reader, &field, &err), &err);
        if (cases[i].is_valid) {
            assert_ok(dv_pb_get_string(&reader, &field, &s, &err), &err);
            assert_ptr_equal(s.p, bytes.p + 2);
            assert_int_equal(s.n, cases[i].text.n);
        } else {
            assert_false(dv_pb_get_string(&reader, &field, &s, &err));
            assert_err(&err, DV_INVALID_ARGUMENT, "byte 2: a string that is not UTF-8");
        }
        dv_buf_fini(&bytes);
    }
}

static void places_count_from_the_outermost_message(void **state)
{
    const dv_str bytes = DV_STR("\x10\x01\x0a\x05\x0a\x03\x10\x01\x08");
    struct dv_pb_reader outer, middle = {0}, inner = {0};
    struct dv_pb_field field;
    struct dv_err err = {0};

    (void)state;
    dv_pb_reader_init(&outer, bytes);
    assert_ok(dv_pb_read(&outer, &field, &err), &err);
    assert_ok(dv_pb_read(&outer, &field, &err), &err);
    assert_true(dv_pb_is_at_end(&outer));
    assert_ok(dv_pb_enter(&outer, &field, &middle, &err), &err);
    assert_ok(dv_pb_read(&middle, &field, &err), &err);
    assert_ok(dv_pb_enter(&middle, &field, &inner, &err), &err);
    assert_ok(dv_pb_read(&inner, &field, &err), &err);
    assert_int_equal(field.tag, DV_PB_TAG(2, DV_PB_VARINT));
    assert_false(dv_pb_read(&inner, &field, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "byte 9: a number is cut off");
}

static void packed_numbers_are_read_by_their_wire_type(void **state)
{
    static const struct {
        enum dv_pb_wire wire;
        const char *hex;
        const char *want;
    } cases[] = {
        {DV_PB_VARINT,  "0a 03 9601 02",           "150 2 "                                },
        {DV_PB_VARINT,  "0a 00",                   ""                                      },
        {DV_PB_VARINT,  "0a 02 01 80",             "1 byte 3: a number is cut off"         },
        {DV_PB_FIXED32, "0a 08 01000000 02000000", "1 2 "                                  },
        {DV_PB_FIXED64, "0a 08 0100000002000000",  "8589934593 "                           },
        {DV_PB_FIXED64, "0a 04 01000000",          "byte 2: a fixed-size number is cut off"},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_pb_reader reader, list = {0};
        struct dv_pb_field field;
        struct dv_buf text;
        struct dv_err err;
        uint64_t value;

        dv_buf_init(&text, TEXT_BYTES_MAX);
        dv_pb_reader_init(&reader, bytes_of_hex(cases[i].hex, arena));
        assert_ok(dv_pb_read(&reader, &field, &err), &err);
        assert_ok(dv_pb_enter(&reader, &field, &list, &err), &err);
        while (!dv_pb_is_at_end(&list)) {
            if (!dv_pb_read_packed(&list, cases[i].wire, &value, &err)) {
                dv_buf_add_c(&text, err.msg);
                break;
            }
            dv_buf_printf(&text, "%" PRIu64 " ", value);
        }
        assert_string_equal(dv_buf_c(&text), cases[i].want);
        dv_buf_fini(&text);
    }
}

/* A message in field 1 of a message ... `depth` messages in all, the innermost empty. */
static dv_str nested_messages(size_t depth, struct dv_arena *arena)
{
    struct dv_buf buf;
    size_t marks[2 * DV_PB_DEPTH_MAX];
    dv_str bytes;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i + 1 < depth; i++)
        marks[i] = dv_pb_begin(&buf, 1);
    for (size_t i = depth - 1; i > 0; i--)
        dv_pb_end(&buf, marks[i - 1]);
    bytes = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return bytes;
}

static void messages_nest_up_to_the_limit(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t depth = DV_PB_DEPTH_MAX; depth <= DV_PB_DEPTH_MAX + 1; depth++) {
        struct dv_pb_reader reader;
        struct dv_err err = {0};
        bool has_entered = true;

        dv_pb_reader_init(&reader, nested_messages(depth, arena));
        while (has_entered && !dv_pb_is_at_end(&reader)) {
            struct dv_pb_field field;
            struct dv_pb_reader outer = reader;

            assert_ok(dv_pb_read(&outer, &field, &err), &err);
            has_entered = dv_pb_enter(&outer, &field, &reader, &err);
        }
        if (depth <= DV_PB_DEPTH_MAX)
            assert_ok(has_entered, &err);
        else
            assert_err(&err, DV_INVALID_ARGUMENT, "nested too deep");
    }
}

static void groups_nest_up_to_the_limit(void **state)
{
    char bytes[2 * DV_PB_DEPTH_MAX];

    (void)state;
    /* The message itself is the first level. */
    for (size_t n = DV_PB_DEPTH_MAX - 1; n <= DV_PB_DEPTH_MAX; n++) {
        struct dv_pb_reader reader;
        struct dv_pb_field field;
        struct dv_err err = {0};

        memset(bytes, 0x0b, n);
        memset(bytes + n, 0x0c, n);
        dv_pb_reader_init(&reader, (dv_str){bytes, 2 * n});
        if (n < DV_PB_DEPTH_MAX) {
            assert_ok(dv_pb_read(&reader, &field, &err), &err);
            assert_true(dv_pb_is_at_end(&reader));
            continue;
        }
        assert_false(dv_pb_read(&reader, &field, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, "byte 99: nested too deep");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_come_one_by_one),
        cmocka_unit_test(what_is_wrong_is_said_with_its_place),
        cmocka_unit_test(strings_stay_where_they_are_and_are_utf8),
        cmocka_unit_test(places_count_from_the_outermost_message),
        cmocka_unit_test(packed_numbers_are_read_by_their_wire_type),
        cmocka_unit_test(messages_nest_up_to_the_limit),
        cmocka_unit_test(groups_nest_up_to_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
