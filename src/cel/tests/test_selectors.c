#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cel/cel.h"
#include "cel/tests/test_cel_device.h"

#define D "device.attributes[\"dra.example.com\"]"

static void evaluates_selectors_on_a_device(void **state)
{
    static const struct {
        const char *text;
        const char *result; /* true, false, or a part of the error */
    } cases[] = {
        {"device.driver == \"dra.example.com\"",                                      "true"                 },
        {D ".cores == 8 && " D "[\"name\"] == \"fish\"",                              "true"                 },
        {"device.attributes[\"other.example.com\"].name == \"bird\"",                 "true"                 },
        {D ".ok",                                                                     "true"                 },
        {D ".ver.isGreaterThan(semver(\"1.2.2\"))",                                   "true"                 },
        {"device.capacity[\"dra.example.com\"].memory == quantity(\"16Gi\")",         "true"                 },
        {"device.capacity[\"dra.example.com\"].memory.isLessThan(quantity(\"1Ki\"))", "false"                },
        {"\"nope\" in device.attributes",                                             "false"                },
        {"has(device.attributes.nope)",                                               "true"                 },
        {"has(device.attributes[\"nope\"].x)",                                        "false"                },
        {"device.attributes[\"nope\"].x == 1",                                        "no such key: x"       },
        {"device.attributes[\"nope\"].?x.orValue(false)",                             "false"                },
        {"device.attributes[\"nope\"].x == 1 || true",                                "true"                 },
        {"true || device.attributes[\"nope\"].x == 1",                                "true"                 },
        {"device.attributes[\"nope\"].x == 1 && false",                               "false"                },
        {"device.attributes[\"nope\"].x == 1 || false",                               "no such key: x"       },
        {D ".name > 3",                                                               "no such overload"     },
        {D ".cores",                                                                  "type int could not be"},
        {"1 / (" D ".cores - 8) == 1",                                                "division by zero"     },
        {D ".cores + 9223372036854775807 > 0",                                        "integer overflow"     },
        {D ".exists(k, k.startsWith(\"co\"))",                                        "true"                 },
        {"device.allowMultipleAllocations",                                           "false"                },
        {"lists.range(1000000).all(x, x >= 0)",                                       "actual cost limit"    },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_cel_device *device = dv_cel_test_device(false, arena);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;
        const struct dv_cel_expr *expr =
            dv_cel_compile(dv_str_from_c(cases[i].text), NULL, arena, &err);
        bool is_match;

        assert_ok(expr, &err);
        if (eval_on(expr, device, arena, &is_match, &err))
            assert_string_equal(is_match ? "true" : "false", cases[i].result);
        else if (!strstr(err.msg, cases[i].result))
            fail_msg("%s: got %s, want %s", cases[i].text, err.msg, cases[i].result);
    }
}

static void refuses_what_does_not_compile(void **state)
{
    static const struct {
        const char *text;
        const char *problem;
    } cases[] = {
        {"?!",                                  "Syntax error"                                      },
        {"",                                    "Syntax error"                                      },
        {"1",                                   "must evaluate to bool or the unknown type, not int"},
        {"driver == \"x\"",                     "<input>:1:1: undeclared reference to 'driver'"     },
        {"true &&\n  device.foo",               "<input>:2:9: undefined field 'foo'"                },
        {"1 == \"a\"",                          "applied to '(int, string)'"                        },
        {"[1, \"a\"] == []",                    "expected type 'int' but found 'string'"            },
        {"\"abc\".matches(\"(\")",              "invalid matches argument"                          },
        {"\"aa\".find(\"(a)\\\\1\") == \"\"",   "program instantiation failed"                      },
        {"duration(\"1\") == duration(\"1s\")", "invalid duration argument"                         },
        {"int(\"x\") == 1",                     "type conversion error"                             },
        {"has(device[\"driver\"])",             "invalid argument to has() macro"                   },
        {"as == 1",                             "reserved identifier: as"                           },
        {"[1].all(1, true)",                    "argument must be a simple name"                    },
        {D ".exists(x, true).exists(x, x)",     "cannot be range of a comprehension"                },
        {"\"%d\".format([\"a\"]) == \"\"",      "decimal clause can only be used on integers"       },
        {"9223372036854775808 > 0",             "invalid int literal"                               },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;

        assert_null(dv_cel_compile(dv_str_from_c(cases[i].text), NULL, arena, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].problem);
    }
}

static void points_at_each_problem(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, 10000);
    dv_cel_explain_error(DV_STR("device.foo ==\n h\xc3\xa9"), NULL, &buf);
    assert_non_null(strstr(dv_buf_c(&buf), "Syntax error"));
    dv_buf_clear(&buf);
    dv_cel_explain_error(DV_STR("\"h\xc3\xa9\" == x ||\n device.foo"), NULL, &buf);
    assert_string_equal(dv_buf_c(&buf),
                        "ERROR: <input>:1:9: undeclared reference to 'x' (in container '')\n"
                        " | \"h\xc3\xa9\" == x ||\n"
                        " | ........^\n"
                        "ERROR: <input>:2:8: undefined field 'foo'\n"
                        " |  device.foo\n"
                        " | .......^");
    dv_buf_clear(&buf);
    dv_cel_explain_error(DV_STR("true"), NULL, &buf);
    assert_int_equal(buf.n, 0);
}

static void hides_what_its_gate_hides(void **state)
{
    static const struct {
        const char *text;
        enum dv_cel_env env;
        struct dv_cel_features features;
        bool compiles;
    } cases[] = {
        {"device.allowMultipleAllocations", DV_CEL_ENV_STORED, {false, false}, true },
        {"device.allowMultipleAllocations", DV_CEL_ENV_NEW,    {false, false}, false},
        {"device.allowMultipleAllocations", DV_CEL_ENV_NEW,    {true, false},  true },
        {D ".name.includes(\"a\")",         DV_CEL_ENV_STORED, {false, false}, true },
        {D ".name.includes(\"a\")",         DV_CEL_ENV_NEW,    {true, false},  false},
        {D ".name.includes(\"a\")",         DV_CEL_ENV_NEW,    {false, true},  true },
        {"dyn(true)",                       DV_CEL_ENV_STORED, {false, false}, false},
        {"dyn(true)",                       DV_CEL_ENV_STORED, {false, true},  true },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_cel_options options = {.env = cases[i].env, .features = cases[i].features};
        struct dv_err err;

        assert_int_equal(dv_cel_compile(dv_str_from_c(cases[i].text), &options, arena, &err) !=
                             NULL,
                         cases[i].compiles);
    }
}

static void takes_list_attributes_behind_their_gate(void **state)
{
    struct dv_cel_options options = {.features = {.list_type_attributes = true}};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cel_attribute list = {.name = DV_STR("names"), .kind = DV_CEL_ATTRIBUTE_STRINGS};
    struct dv_cel_device_input input = {.attributes = &list, .n_attributes = 1};
    struct dv_err err;
    bool is_match = false;
    const struct dv_cel_expr *expr =
        dv_cel_compile(DV_STR(D ".nums.exists(n, n == 2) && " D ".names.includes(\"red\") && " D
                                ".name.includes(\"fish\")"),
                       &options, arena, &err);

    (void)state;
    assert_ok(expr, &err);
    assert_ok(eval_on(expr, dv_cel_test_device(true, arena), arena, &is_match, &err), &err);
    assert_true(is_match);
    assert_false(eval_on(expr, dv_cel_device_new(&input, arena), arena, &is_match, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "attribute names: unsupported attribute value");
}

static void fails_on_a_device_with_a_bad_version(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cel_attribute version = {
        .name = DV_STR("ver"), .kind = DV_CEL_ATTRIBUTE_VERSION, .s = DV_STR("1")};
    struct dv_cel_device_input input = {.attributes = &version, .n_attributes = 1};
    struct dv_err err;
    bool is_match;
    const struct dv_cel_expr *expr = dv_cel_compile(DV_STR("true"), NULL, arena, &err);

    (void)state;
    assert_ok(expr, &err);
    assert_false(eval_on(expr, dv_cel_device_new(&input, arena), arena, &is_match, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "attribute ver: parse semantic version");
}

static bool count_down(void *ctx)
{
    int *left = ctx;

    return --*left <= 0;
}

static void stops_when_it_is_cancelled(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    int left = 3;
    struct dv_cel_budget budget = {
        .cost_max = DV_CEL_COST_MAX, .is_cancelled = count_down, .ctx = &left};
    struct dv_err err;
    bool is_match;
    const struct dv_cel_expr *expr =
        dv_cel_compile(DV_STR("lists.range(10000).all(x, x >= 0) || true"), NULL, arena, &err);

    (void)state;
    assert_ok(expr, &err);
    assert_false(
        dv_cel_eval(expr, dv_cel_test_device(false, arena), &budget, arena, &is_match, &err));
    assert_err(&err, DV_CANCELLED, "interrupted");
    assert_int_equal(left, 0);
}

static void takes_no_memory_once_its_arena_has_grown(void **state)
{
    static const char text[] = D ".exists(k, k.matches(\"^co\")) && "
                                 "quantity(\"1Gi\").isLessThan(quantity(\"2Gi\"))";
    DV_CLEANUP(dv_arena_freep) struct dv_arena *kept = dv_arena_new();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_cel_device *device = dv_cel_test_device(false, kept);
    struct dv_err err;
    const struct dv_cel_expr *expr = dv_cel_compile(dv_str_from_c(text), NULL, kept, &err);
    size_t size = 0;

    (void)state;
    assert_ok(expr, &err);
    for (int i = 0; i < 10; i++) {
        bool is_match = false;

        assert_ok(eval_on(expr, device, scratch, &is_match, &err), &err);
        assert_true(is_match);
        if (i > 5) /* no block was added since the last reset */
            assert_int_equal(dv_arena_size_bytes(scratch), size);
        dv_arena_reset(scratch);
        size = dv_arena_size_bytes(scratch);
    }
}

static void refuses_a_text_that_is_too_long(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    static const char word[] = {'t', 'r', 'u', 'e'};
    size_t n = DV_CEL_EXPRESSION_BYTES_MAX + 1;
    char *text = dv_arena_alloc(arena, n, 1);
    struct dv_err err;

    (void)state;
    memset(text, ' ', n);
    memcpy(text, word, sizeof(word));
    assert_non_null(dv_cel_compile((dv_str){text, n - 1}, NULL, arena, &err));
    assert_null(dv_cel_compile((dv_str){text, n}, NULL, arena, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "10241 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluates_selectors_on_a_device),
        cmocka_unit_test(refuses_what_does_not_compile),
        cmocka_unit_test(points_at_each_problem),
        cmocka_unit_test(hides_what_its_gate_hides),
        cmocka_unit_test(takes_list_attributes_behind_their_gate),
        cmocka_unit_test(fails_on_a_device_with_a_bad_version),
        cmocka_unit_test(stops_when_it_is_cancelled),
        cmocka_unit_test(takes_no_memory_once_its_arena_has_grown),
        cmocka_unit_test(refuses_a_text_that_is_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
