#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cel/cel.h"
#include "cel/read/ast.h"
#include "cel/tests/test_ast_eq.h"
#include "cel/tests/test_cel_device.h"

/* Each is true on any device. */
static void computes(void **state)
{
    static const char *const cases[] = {
        /* literals */
        "0x10 == 16 && -0x1 == -1 && 7u + 1u == 8u && 1e3 == 1000.0 && .5 == 0.5",
        "'a\\u00e9\\x41\\101' == \"a\303\251AA\" && r'\\n' == \"\\\\n\"",
        "b'\\xff\\377'.size() == 2 && b'\xc3\xa9' == b'\\xc3\\xa9'",
        "'''a\nb''' == \"a\\nb\"",
        "-9223372036854775808 < 0 && !!true && --1 == 1 && !(!true)",
        /* operators */
        "7 / 2 == 3 && -7 % 2 == -1 && 7.0 / 2.0 == 3.5",
        "1 < 1.5 && 2u > 1 && dyn(1u) == 1 && dyn(1) != \"1\"",
        "\"a\" + \"b\" == \"ab\" && [1] + [2] == [1, 2] && b\"a\" + b\"b\" == b\"ab\"",
        "2 in [1, 2] && !(\"x\" in {\"a\": 1}) && {1: 2}[dyn(1u)] == 2",
        "(false ? 1 / 0 : 2) == 2",
        "type(1) == int && type([1]) == list && type(timestamp(0)) == google.protobuf.Timestamp",
        /* macros */
        "[1, 2, 3].all(x, x > 0) && [1, 2].exists_one(x, x == 2) && ![1].exists(x, x > 1)",
        "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6] && [1, 2].filter(x, x < 2) == [1]",
        "[1, 0].exists(x, 1 / x == 1) && ![0, 1].all(x, 1 / x == 2)",
        "{\"a\": 1}.transformMapEntry(k, v, {v: k})[1] == \"a\"",
        "[5, 6].transformList(i, v, i + v) == [5, 7]",
        "cel.bind(x, 2, x * x) == 4 && cel.bind(x, 1 / 0, true)",
        "has({\"a\": 1}.a) && !has({\"a\": 1}.b)",
        /* conversions */
        "int(\"-42\") == -42 && int(1.9) == 1 && uint(\"7\") == 7u && double(\"1.5\") == 1.5",
        "string(1.5) == \"1.5\" && string(1e6) == \"1e+06\" && string(true) == \"true\"",
        "string(duration(\"90s\")) == \"90s\" && string(b\"a\") == \"a\" && bool(\"True\")",
        /* times */
        "timestamp(\"2024-02-29T12:34:56.789Z\").getMilliseconds() == 789",
        "timestamp(\"2024-02-29T00:00:00Z\").getDayOfYear() == 59",
        "timestamp(\"2024-07-01T00:00:00Z\").getHours(\"America/New_York\") == 20",
        "timestamp(\"2024-01-01T00:00:00Z\").getHours(\"Australia/Sydney\") == 11",
        "timestamp(\"2024-01-01T00:00:00Z\").getMinutes(\"+05:45\") == 45",
        "timestamp(\"2024-01-01T00:00:00Z\") - timestamp(0) == duration(\"473352h\")",
        "duration(\"1h2m3.5s\").getSeconds() == 3723",
        /* optionals */
        "optional.of(1).value() == 1 && !optional.none().hasValue()",
        "{\"a\": {\"b\": 1}}.?a.?b == optional.of(1) && [1][?3].orValue(5) == 5",
        "[?optional.none(), 1] == [1] && {?\"a\": optional.of(1)} == {\"a\": 1}",
        "optional.of(2).optMap(x, x * 2).value() == 4 && [1, 2].last().value() == 2",
        /* strings */
        "\"h\xc3\xa9llo\".size() == 5 && \"h\xc3\xa9llo\".charAt(1) == \"\xc3\xa9\"",
        "\"tacocat\".indexOf(\"c\", 3) == 4 && \"tacocat\".lastIndexOf(\"a\") == 5",
        ("\"aaab\".lastIndexOf(\"aa\") == 1 && \"tacocat\".lastIndexOf(\"a\", 4) == 1 && "
         "\"tacocat\".lastIndexOf(\"cat\", 4) == 4 && \"tacocat\".lastIndexOf(\"cat\", 3) == -1 && "
         "\"\u00e9a\u00e9\".lastIndexOf(\"\u00e9\") == 2 && \"a\".lastIndexOf(\"ab\") == -1"),
        "\"a,b,c\".split(\",\", 2) == [\"a\", \"b,c\"] && [\"a\", \"b\"].join(\"-\") == \"a-b\"",
        "\"aaa\".replace(\"a\", \"b\", 2) == \"bba\" && \"ab\".replace(\"\", \"_\") == \"_a_b_\"",
        "\" \\t x \".trim() == \"x\" && \"aB\".upperAscii() == \"AB\"",
        "strings.quote(\"a\\\"b\") == \"\\\"a\\\\\\\"b\\\"\"",
        "\"%s %d %.2f\".format([\"a\", 5, 1.005]) == \"a 5 1.00\"",
        "\"%x %b %o %%\".format([255, 5, 8]) == \"ff 101 10 %\"",
        "\"%s\".format([[1, \"a\", 1.5]]) == \"[1, \\\"a\\\", 1.500000]\"",
        "\"%f\".format([1234567.5]) == \"1,234,567.500000\"",
        /* lists and sets */
        "[3, 1, 2].sort() == [1, 2, 3] && [1, 2].reverse() == [2, 1] && lists.range(3)[2] == 2",
        "[[1], [2, 3]].flatten() == [1, 2, 3] && [1, 2, 3].slice(1, 2) == [2]",
        "[\"bb\", \"a\"].sortBy(s, size(s)) == [\"a\", \"bb\"] && [1, 1, 2].distinct() == [1, 2]",
        "[1, 2, 3].sum() == 6 && [1.5, 2.5].max() == 2.5 && [1, 2].isSorted()",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])",
        /* regular expressions */
        "\"foobar\".matches(\"^fo+b\") && \"a1b2\".findAll(\"[0-9]\") == [\"1\", \"2\"]",
        "\"abc\".matches(\"^abc$\") && \"xabc\".matches(\"abc$\") && !\"abcx\".matches(\"abc$\")",
        "\"abab\".findAll(\"ab\").size() == 2 && \"abab\".findAll(\"^ab\") == [\"ab\"]",
        "\"abab\".findAll(\"ab$\") == [\"ab\"] && !\"a\\nb\".matches(\"^b\")",
        "[1, 2, 3].exists(x, x / (x - 1) == 2) && ![1, 2].all(x, x / (x - 1) == 1)",
        "\"%f\".format([-0.0]) == \"0.000000\" && string(-0.0) == \"-0\"",
        "!\"\\v\".matches(\"\\\\s\") && \"a\\n\".matches(\"a\\n$\") && !\"a\\n\".matches(\"a$\")",
        /* quantities, versions */
        "quantity(\"1Ki\") == quantity(\"1024\") && quantity(\"1.5\").add(1) == quantity(\"2.5\")",
        "quantity(\"2\").sub(quantity(\"1\")).asInteger() == 1 && sign(quantity(\"-1\")) == -1",
        "semver(\"1.2.3\").major() == 1 && isSemver(\"v1\", true) && !isSemver(\"1\")",
        "semver(\"1.0.0-rc.1\").isLessThan(semver(\"1.0.0\"))",
        /* addresses and URLs */
        "ip(\"2001:DB8::1\").family() == 6 && string(ip(\"2001:DB8::1\")) == \"2001:db8::1\"",
        "!isIP(\"::ffff:1.2.3.4\") && !isIP(\"01.2.3.4\") && ip.isCanonical(\"::1\")",
        "cidr(\"10.0.0.0/8\").containsCIDR(\"10.1.0.0/16\") && !isCIDR(\"10.0.0.0/33\")",
        "string(cidr(\"192.168.1.7/24\").masked()) == \"192.168.1.0/24\"",
        "url(\"https://u@example.com:8443/p%20a?q=1&q=2\").getHost() == \"example.com:8443\"",
        "url(\"https://[::1]:80/\").getHostname() == \"::1\" && !isURL(\"relative\")",
        "url(\"/a b?x=%41\").getEscapedPath() == \"/a%20b\"",
        /* a comma without elements */
        "[,] == [] && {,} == {} && google.protobuf.BoolValue{,} == false",
        /* texts of numbers */
        "double(\"1_0.5_0\") == 10.5 && double(\"0x_1p4\") == 16.0 && double(\"1e1_0\") == 1e10",
        "double(\"-inf\") < 0.0 && double(\"NaN\") != double(\"NaN\")",
        /* keys */
        "{null: 1} == {null: 1} && {timestamp(0): 1} == {timestamp(0): 1}",
        "{int: 1} == {type(1): 1}",
        "{dyn(1): 1, dyn(1u): 2}.size() == 2 && {dyn(1): 1}[1.0] == 1 && !(1 in {dyn(1.0): 1})",
        "1 in [dyn(1.0), dyn(\"a\")]",
        /* the offset of a timestamp is printed, and nothing else */
        "string(timestamp(\"2000-01-01T00:00:00+01:00\")) == \"2000-01-01T00:00:00+01:00\"",
        ("string(duration(\"1h\") + timestamp(\"2000-01-01T00:00:00+01:00\")) == "
         "\"2000-01-01T01:00:00+01:00\""),
        "timestamp(\"2000-01-01T00:00:00+01:00\") == timestamp(\"1999-12-31T23:00:00Z\")",
        "timestamp(\"2000-01-01T00:00:00+01:00\").getHours() == 23",
        "timestamp(\"2000-01-01T00:00:00Z\").getHours(\"Local\") == 0",
        /* lists whose elements cannot be compared */
        "[1.0, double(\"nan\"), 2.0].max() == 2.0 && [1.0, double(\"nan\"), 0.0].isSorted()",
        "[quantity(\"1\")] == [quantity(\"1\").add(1)]",
        "quantity(\"1\").add(0) in [quantity(\"1\")]",
        "!(quantity(\"1\") in [quantity(\"1\").add(0)])",
        "!quantity(\"0\").sub(-9223372036854775807 - 1).isGreaterThan(quantity(\"0\"))",
        /* optionals behind a name */
        "cel.bind(x, optional.of(quantity(\"1\")), x.hasValue())",
        "cel.bind(x, optional.of(int), dyn(x.value()) == \"int\")",
        /* URLs */
        "url(\"//host:80/p\").getHost() == \"host:80\" && url(\"///p\").getHost() == \"\"",
        "isURL(\"//ho st/p\") && url(\"/a#f\").getEscapedPath() == \"/a\"",
        "url(\"http://a?\") != url(\"http://a\") && url(\"http://a/#f\") != url(\"http://a/\")",
        "!isURL(\"http://[1.2.3.4]/\") && !isURL(\"http://a[::1]/\")",
        "isURL(\"http://[::1%25e]/\")",
        "format.dns1123Label().validate(\"A\").hasValue()",
        "format.named(\"uuid\").value().validate(\"123e4567\").hasValue()",
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_cel_device *device = dv_cel_test_device(false, arena);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;
        const struct dv_cel_expr *expr = dv_cel_compile(dv_str_from_c(cases[i]), NULL, arena, &err);
        bool is_match = false;

        if (!expr || !eval_on(expr, device, arena, &is_match, &err))
            fail_msg("%s: %s", cases[i], err.msg);
        if (!is_match)
            fail_msg("%s is not true", cases[i]);
    }
}

/* Each fails: when it is planned, or on any device. */
static void fails(void **state)
{
    static const char *const cases[] = {
        "double(dyn(\"_10\")) == 10.0",
        "double(dyn(\"1__0\")) == 10.0",
        "double(dyn(\"10_\")) == 10.0",
        "double(dyn(\"1_.5\")) == 1.5",
        "double(dyn(\"+nan\")) == 1.0",
        "double(dyn(\"+-1\")) == 1.0",
        "url(\"//ho st/p\").getHost() == \"\"",
        "url(\"http://a/#%zz\").getHost() == \"a\"",
        "{semver(\"1.0.0\"): 1}.size() == 1",
        "[dyn(null)].min() == null",
        "cel.bind(x, optional.of(quantity(\"1\")), x.value().isInteger())",
        "(true ? optional.of(ip(\"::1\")) : optional.none()).value().family() == 6",
        "cel.bind(x, optional.of(optional.of(1)), x.value().value() == 1)",
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_cel_device *device = dv_cel_test_device(false, arena);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;
        const struct dv_cel_expr *expr = dv_cel_compile(dv_str_from_c(cases[i]), NULL, arena, &err);
        bool is_match;

        if (!expr)
            assert_non_null(strstr(err.msg, "program instantiation failed"));
        else if (eval_on(expr, device, arena, &is_match, &err))
            fail_msg("%s does not fail", cases[i]);
    }
}

/* Sorting by a key is a comprehension itself, in the last case over another one. */
static void estimates_and_counts_cost(void **state)
{
    static const struct {
        const char *text;
        uint64_t max;
        uint64_t cost;
    } cases[] = {
        {"true",                                                                 0,                    0  },
        {"device.driver == \"dra.example.com\"",                                 4,                    4  },
        {"cel.bind(d, device.attributes[\"dra.example.com\"], d.ok)",            15,                   5  },
        {"device.attributes[\"dra.example.com\"].cores > 0",                     5,                    5  },
        {"device.attributes[\"dra.example.com\"].name == \"fish\"",              5,                    5  },
        {"device.attributes.exists_one(k, k == \"dra.example.com\")",            164,                  12 },
        {"device.attributes[\"dra.example.com\"].name.matches(\"[^a]?sym\")",    18,                   6  },
        {"lists.range(10).all(x, x >= 0)",                                       72,                   72 },
        {"cel.bind(e, \"true\", e).size() == 4",                                 13,                   3  },
        {"[1, 2, 3].map(x, string(x)).join(\",\") == \"1,2,3\"",                 1844674407370955328u, 45 },
        {"[].sortBy(x, x) == []",                                                54,                   14 },
        {"([1, 2, 3].sortBy(x, -x)) == [3, 2, 1]",                               115,                  75 },
        {"(lists.range(4).sortBy(e2, lists.range(4).max())[1]) == 1",            207,                  188},
        {"[0, -1].sortBy(v1, 100).sortBy(e2, 2).exists(it1, e, [0, -1] == [5])", 591,                  63 },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_cel_device *device = dv_cel_test_device(false, arena);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_cel_budget budget = {.cost_max = DV_CEL_COST_MAX};
        struct dv_err err;
        const struct dv_cel_expr *expr =
            dv_cel_compile(dv_str_from_c(cases[i].text), NULL, arena, &err);
        bool is_match;

        assert_ok(expr, &err);
        assert_ok(dv_cel_eval(expr, device, &budget, arena, &is_match, &err), &err);
        if (dv_cel_max_cost(expr) != cases[i].max || budget.cost != cases[i].cost)
            fail_msg("%s: %llu, %llu", cases[i].text, (unsigned long long)dv_cel_max_cost(expr),
                     (unsigned long long)budget.cost);
    }
}

static void prints_what_it_parsed(void **state)
{
    static const struct {
        const char *text;
        const char *printed;
    } cases[] = {
        {"((true)&&(false||!true))",                    "true && (false || !true)"                         },
        {"(1+2)*3==9",                                  "(1 + 2) * 3 == 9"                                 },
        {"1-(2-3)==2",                                  "1 - (2 - 3) == 2"                                 },
        {"true?false:true?true:false",                  "true ? false : true ? true : false"               },
        {"(true?false:true)?true:false",                "(true ? false : true) ? true : false"             },
        {"[?optional.of(1),2][0]==1",                   "[?optional.of(1), 2][0] == 1"                     },
        {"{'a':1}.?a.hasValue()",                       "{\"a\": 1}.?a.hasValue()"                         },
        {"-(1)==---1&&- - -1==-1",                      "---1 == ---1 && ---1 == -1"                       },
        {"-(-1)==1",                                    "-(-1) == 1"                                       },
        {"1e3==0x3e8*1.0||true",                        "1000.0 == 1000 * 1.0 || true"                     },
        {"b'\\xff\\n'==b''||\"\\u00e9\"=='x'",          "b\"\\xff\\x0a\" == b\"\" || \"\xc3\xa9\" == \"x\""},
        {"[1].all( x , x in [1,] )",                    "[1].all(x, x in [1])"                             },
        {"google.protobuf.BoolValue{value:true}==true",
         "google.protobuf.BoolValue{value: true} == true"                                                  },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
        struct dv_err err = {0};
        const struct dv_cel_expr *expr =
            dv_cel_compile(dv_str_from_c(cases[i].text), NULL, arena, &err);
        const struct dv_cel_expr *again;
        struct dv_cel_issues issues = {.arena = arena};

        dv_buf_init(&buf, 1000);
        if (!expr) { /* printing needs no more than syntax, but compiling does */
            assert_non_null(strstr(err.msg, "overload"));
            continue;
        }
        dv_cel_print(expr, &buf);
        assert_string_equal(dv_buf_c(&buf), cases[i].printed);
        again = dv_cel_compile(dv_buf_str(&buf), NULL, arena, &err);
        assert_ok(again, &err);
        assert_true(ast_eq(dv_cel_parse(dv_str_from_c(cases[i].text), arena, &issues),
                           dv_cel_parse(dv_buf_str(&buf), arena, &issues)));
    }
}

static void tells_which_part_decided(void **state)
{
    static const struct {
        const char *text;
        enum dv_cel_verdict verdict;
        const char *part;
        const char *expression;
        const char *value;
    } cases[] = {
        {"device.driver == \"dra.example.com\" && "
         "(device.attributes[\"dra.example.com\"].cores >= 16 && true)",         DV_CEL_DIFFERS, "device.attributes[\"dra.example.com\"].cores >= 16",
         "device.attributes[\"dra.example.com\"].cores",                                                                                                                                                                 "8"   },
        {"device.capacity[\"dra.example.com\"].memory.isGreaterThan(quantity(\"40Gi\"))",
         DV_CEL_DIFFERS,                                                                                  "device.capacity[\"dra.example.com\"].memory.isGreaterThan(quantity(\"40Gi\"))",
         "device.capacity[\"dra.example.com\"].memory",                                                                                                                                                                  "16Gi"},
        {"device.attributes[\"dra.example.com\"].ok && device.attributes[\"x\"].y == 1",
         DV_CEL_FAILS,                                                                                    "device.attributes[\"x\"].y == 1",                                               "device.attributes[\"x\"].y",
         "no such key: y"                                                                                                                                                                                                      },
        {"device.driver != \"\"",                                                         DV_CEL_MATCHES, "device.driver != \"\"",                                                         "device.driver",
         "\"dra.example.com\""                                                                                                                                                                                                 },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_cel_device *device = dv_cel_test_device(false, arena);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_cel_report report;
        struct dv_err err;
        const struct dv_cel_expr *expr =
            dv_cel_compile(dv_str_from_c(cases[i].text), NULL, arena, &err);

        assert_ok(expr, &err);
        dv_cel_explain(expr, device, arena, &report);
        assert_int_equal(report.verdict, cases[i].verdict);
        assert_str(report.part, cases[i].part);
        assert_int_equal(report.n_seen, 1);
        assert_str(report.seen[0].expression, cases[i].expression);
        assert_str(report.seen[0].value, cases[i].value);
        if (report.verdict == DV_CEL_FAILS)
            assert_str(report.problem, cases[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes),
        cmocka_unit_test(fails),
        cmocka_unit_test(estimates_and_counts_cost),
        cmocka_unit_test(prints_what_it_parsed),
        cmocka_unit_test(tells_which_part_decided),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
