/* What takes long and costs next to nothing: it is counted beside the cost, and has an end. */
#include "tests/support/dvtest.h"

#include "base/arena.h"
#include "cel/cel.h"
#include "cel/tests/test_cel_device.h"

#define TEN(x) "[" x "," x "," x "," x "," x "," x "," x "," x "," x "," x "]"
/* A list of ten lists that are one and the same, ten times over: ten thousand million elements. */
#define NESTED                                                                                                        \
    "[" TEN("1") "].map(x, " TEN("x") ").map(x, " TEN("x") ").map(x, " TEN("x") ").map(x, " TEN("x") ").map(x, " TEN( \
        "x") ").map(x, " TEN("x") ").map(x, " TEN("x") ").map(x, " TEN("x") ").map(x, " TEN("x") ")"
#define LONG "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""
#define THOUSANDS(of) "lists.range(5000).all(i, " of ")"

static bool eval(const char *text, struct dv_cel_budget *budget, struct dv_arena *arena,
                 bool *is_match, struct dv_err *err)
{
    const struct dv_cel_expr *expr = dv_cel_compile(dv_str_from_c(text), NULL, arena, err);

    assert_ok(expr, err);
    return dv_cel_eval(expr, dv_cel_test_device(false, arena), budget, arena, is_match, err);
}

/* The API would admit them all: none costs as much as its limit. */
static void ends_what_costs_little_and_takes_long(void **state)
{
    static const char *const cases[] = {
        NESTED " == " NESTED,
        NESTED " in [" NESTED "]",
        "sets.contains(" NESTED ", " NESTED ")",
        "size(" NESTED ".distinct()) > 0",
        "\"%s\".format([" NESTED "]) == \"\"",
        "{1: " NESTED "} == {1: " NESTED "}",
        "optional.of(" NESTED ") == optional.of(" NESTED ")",
        THOUSANDS(LONG ".matches(\"(a?){60}a{60}\") || true"),
        THOUSANDS("timestamp(\"2020-01-01T00:00:00Z\").getHours(\"Europe/Paris\") < 24 && "
                  "timestamp(\"2020-01-01T00:00:00Z\").getHours(\"Europe/Paris\") < 24 && "
                  "timestamp(\"2020-01-01T00:00:00Z\").getHours(\"Europe/Paris\") < 24 && "
                  "timestamp(\"2020-01-01T00:00:00Z\").getHours(\"Europe/Paris\") < 24 && "
                  "timestamp(\"2020-01-01T00:00:00Z\").getHours(\"Europe/Paris\") < 24 && "
                  "timestamp(\"2020-01-01T00:00:00Z\").getHours(\"Europe/Paris\") < 24 && "
                  "timestamp(\"2020-01-01T00:00:00Z\").getHours(\"Europe/Paris\") < 24 && "
                  "timestamp(\"2020-01-01T00:00:00Z\").getHours(\"Europe/Paris\") < 24 && "
                  "timestamp(\"2020-01-01T00:00:00Z\").getHours(\"Europe/Paris\") < 24"),
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_cel_budget budget = {.cost_max = DV_CEL_COST_MAX};
        struct dv_err err;
        bool is_match;

        if (eval(cases[i], &budget, arena, &is_match, &err))
            fail_msg("%s: did not end, at a work of %llu", cases[i],
                     (unsigned long long)budget.work);
        assert_int_equal(err.code, DV_RESOURCE_EXHAUSTED);
        assert_true(budget.cost < DV_CEL_COST_MAX);
        assert_true(budget.work > DV_CEL_WORK_MAX);
    }
}

/* Whatever limit ends it, with more it comes to the same result at the same cost. */
static void comes_to_the_same_with_any_limit_that_is_enough(void **state)
{
    static const char *const cases[] = {
        "[[1, 2], [3, 4]] == [[1, 2], [3, 4]].map(x, x)",
        "lists.range(100).map(x, [[x], [x]]) == lists.range(100).map(x, [[x], [x]])",
        "(lists.range(50) + lists.range(50) + lists.range(50)).size() == 150",
        "sets.contains([[1], [2], [3]], [[3], [1]])",
        "[[1], [2], [1]].distinct().size() == 2",
        "lists.range(30).transformMapEntry(i, v, {v: i}).size() == 30",
        LONG ".matches(\"(a|aa)+$\")",
        LONG ".findAll(\"(a|aa)+$\").size() == 1",
        "timestamp(\"2020-01-01T00:00:00Z\").getHours(\"Europe/Paris\") == 1",
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_cel_budget whole = {.cost_max = DV_CEL_COST_MAX};
        struct dv_err err;
        bool is_match;

        assert_ok(eval(cases[i], &whole, arena, &is_match, &err), &err);
        if (!is_match || whole.work == 0)
            fail_msg("%s: %d, work %llu", cases[i], is_match, (unsigned long long)whole.work);
        for (uint64_t max = 1; max < 2 * whole.work; max += 1 + max / 5) {
            struct dv_cel_budget part = {.cost_max = DV_CEL_COST_MAX, .work_max = max};
            bool is_ok = eval(cases[i], &part, arena, &is_match, &err);

            assert_int_equal(is_ok, max >= whole.work);
            if (is_ok) {
                assert_true(is_match);
                assert_int_equal(part.cost, whole.cost);
                assert_int_equal(part.work, whole.work);
            } else {
                assert_int_equal(err.code, DV_RESOURCE_EXHAUSTED);
            }
        }
    }
}

#define AGAIN(x) x x x x x x x x x x

/* Short texts whose types or macros double with every few bytes. */
static void refuses_what_would_not_end_compiling(void **state)
{
    static const struct {
        const char *text;
        const char *problem;
    } cases[] = {
        {"[1]" AGAIN(".map(x, {x: x})") AGAIN(".map(x, {x: x})") AGAIN(".map(x, {x: x})")
             AGAIN(".map(x, {x: x})") ".size() > 0",
         "the types of its values are too large"                                                                                                           },
        {"[1]" AGAIN(".map(x, {x: x})") AGAIN(".map(x, {x: x})")
             AGAIN(".map(x, {x: x})") " == [1]" AGAIN(".map(x, {x: x})") AGAIN(".map(x, {x: x})")
                 AGAIN(".map(x, {x: x})"),
         "the types of its values are too large"                                                                                                           },
        {"optional.of(1)" AGAIN(".optMap(x, x)") AGAIN(".optMap(x, x)")
             AGAIN(".optMap(x, x)") ".hasValue()",
         "the expression is too large with its macros expanded"                                                                                            },
        {"optional.of(1)" AGAIN(".optFlatMap(x, optional.of(x))") AGAIN(
             ".optFlatMap(x, optional.of(x))") AGAIN(".optFlatMap(x, optional.of(x))") ".hasValue("
                                                                                       ")", "the expression is too large with its macros expanded"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_err err;

        assert_null(dv_cel_compile(dv_str_from_c(cases[i].text), NULL, arena, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].problem);
    }
}

/* What others write every day, and what is long but honest, stays far from the limit. */
static void leaves_alone_what_is_usual(void **state)
{
    static const char *const cases[] = {
        "device.driver == \"dra.example.com\"",
        "device.attributes[\"dra.example.com\"].name.matches(\"[^a]?sym\") || true",
        "lists.range(10000).map(x, x * 2).filter(x, x > 5).exists(x, x == 8)",
        "lists.range(1000).all(x, x in lists.range(1000)) || true",
        "[1, 2, 3].map(x, string(x)).join(\",\") == \"1,2,3\"",
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_cel_budget budget = {.cost_max = DV_CEL_COST_MAX};
        struct dv_err err;
        bool is_match;

        (void)eval(cases[i], &budget, arena, &is_match, &err); /* it may cost too much */
        assert_true(budget.work < DV_CEL_WORK_MAX / 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_what_costs_little_and_takes_long),
        cmocka_unit_test(comes_to_the_same_with_any_limit_that_is_enough),
        cmocka_unit_test(refuses_what_would_not_end_compiling),
        cmocka_unit_test(leaves_alone_what_is_usual),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
