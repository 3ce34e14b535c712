#include "json/tests/test_doc.h"

#include <string.h>

#include "base/arena.h"
#include "support/growth.h"

/* The node at a path of member names and element numbers, separated by slashes. */
static struct dv_json *find(struct dv_json *node, const char *path)
{
    dv_str rest = dv_str_from_c(path);
    dv_str step;

    while (dv_str_split(&rest, '/', &step))
        node = dv_json_is(node, DV_JSON_ARRAY) ? dv_json_at(node, (size_t)(step.p[0] - '0'))
                                               : dv_json_get(node, step);
    return node;
}

static void getters_give_values_of_their_kind(void **state)
{
    struct dv_json *doc = parse("{\"s\":\"x\",\"i\":-5,\"u\":18446744073709551615,\"d\":1.5,"
                                "\"b\":true,\"n\":null}");
    struct dv_err err;
    uint64_t u;
    int64_t i;
    dv_str s;
    bool b;

    (void)state;
    assert_ok(dv_json_as_str(find(doc, "s"), &s, &err), &err);
    assert_str(s, "x");
    assert_ok(dv_json_as_i64(find(doc, "i"), &i, &err), &err);
    assert_int_equal(i, -5);
    assert_ok(dv_json_as_u64(find(doc, "u"), &u, &err), &err);
    assert_true(u == UINT64_MAX);
    assert_ok(dv_json_as_bool(find(doc, "b"), &b, &err), &err);
    assert_true(b);
    assert_true(dv_json_is(find(doc, "n"), DV_JSON_NULL));
    assert_false(dv_json_is(find(doc, "absent"), DV_JSON_NULL));
    assert_null(dv_json_get(find(doc, "s"), DV_STR("x")));
    assert_null(dv_json_get(NULL, DV_STR("x")));
}

static void a_wrong_kind_is_named_with_place_and_path(void **state)
{
    struct dv_json *doc = parse("{\"spec\": {\"containers\": [\n{\"name\": 5}]},\n"
                                "\"labels\": {\"a.b/c\": [], \"\": {}}}");
    struct dv_err err;
    dv_str s;
    bool b;

    (void)state;
    assert_false(dv_json_as_str(find(doc, "spec/containers/0/name"), &s, &err));
    assert_err(&err, DV_INVALID_ARGUMENT,
               "line 2, column 10: spec.containers[0].name: expected a string, got a number");
    assert_false(dv_json_as_bool(dv_json_first(find(doc, "labels")), &b, &err));
    assert_err(&err, DV_INVALID_ARGUMENT,
               "line 3, column 21: labels[a.b/c]: expected a boolean, got an array");
    assert_null(dv_json_require(find(doc, "spec"), DV_STR("nodeName"), &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "line 1, column 10: spec: \"nodeName\" is missing");
    assert_false(
        dv_json_fail(dv_json_get(parse("{\n\"a\":\n\n[]}"), DV_STR("a")), &err, "is wrong"));
    assert_string_equal(err.msg, "line 2, column 1: a: is wrong");
    doc = dv_json_parse(DV_STR("{\n\"a\":\n\n[]}"), &(struct dv_json_opts){.places_values = true},
                        arena, &err);
    assert_ok(doc, &err);
    assert_int_equal(dv_json_line(dv_json_get(doc, DV_STR("a"))), 4);
    assert_false(dv_json_fail(doc, &err, "is %s", "wrong"));
    assert_string_equal(err.msg, "line 1, column 1: is wrong");
    assert_false(dv_json_fail(dv_json_new_null(arena), &err, "made by us"));
    assert_string_equal(err.msg, "made by us");
}

static void a_long_path_is_cut_in_front_so_that_the_cause_stays(void **state)
{
    struct dv_json *node = dv_json_new_object(arena);
    struct dv_err err;

    (void)state;
    for (int i = 0; i < 100; i++) {
        struct dv_json *child = dv_json_new_object(arena);

        dv_json_set(node, DV_STR("\xc3\xa4-member"), child, arena);
        node = child;
    }
    assert_false(dv_json_fail(node, &err, "the cause"));
    assert_true(dv_str_starts_with(dv_str_from_c(err.msg), DV_STR("...")));
    assert_true(dv_str_ends_with(dv_str_from_c(err.msg), DV_STR("-member]: the cause")));
    assert_true(dv_str_is_utf8(dv_str_from_c(err.msg)));
}

static void a_number_that_does_not_fit_is_out_of_range(void **state)
{
    static const struct {
        const char *text;
        bool is_i64, is_u64;
    } rows[] = {
        {"9223372036854775807",  true,  true },
        {"9223372036854775808",  false, true },
        {"-9223372036854775808", true,  false},
        {"-9223372036854775809", false, false},
        {"18446744073709551615", false, true },
        {"18446744073709551616", false, false},
        {"-1",                   true,  false},
        {"1.0",                  false, false},
        {"1e3",                  false, false},
        {"1e308",                false, false},
        {"1e309",                false, false},
        {"-1e309",               false, false},
        {"1e-400",               false, false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_json *node = parse(rows[i].text);
        struct dv_err err = {0};
        uint64_t u;
        int64_t s;

        assert_int_equal(dv_json_as_i64(node, &s, &err), rows[i].is_i64);
        assert_int_equal(dv_json_as_u64(node, &u, &err), rows[i].is_u64);
        if (!rows[i].is_i64 || !rows[i].is_u64)
            assert_int_equal(err.code, DV_OUT_OF_RANGE);
    }
}

static void a_document_can_be_built(void **state)
{
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_json *list = dv_json_new_array(arena);

    (void)state;
    dv_json_set(doc, DV_STR("z"), dv_json_new_i64(INT64_MIN, arena), arena);
    dv_json_set(doc, DV_STR("list"), list, arena);
    dv_json_set(doc, DV_STR("z"), dv_json_new_u64(UINT64_MAX, arena), arena); /* keeps its place */
    dv_json_append(list, dv_json_new_str((dv_str){"a\0\xff", 3}, arena));
    dv_json_append(list, dv_json_new_bool(true, arena));
    dv_json_append(list, dv_json_new_null(arena));
    dv_json_append(list, dv_json_new_double(0.1, arena));
    dv_json_set(doc, DV_STR("k\xff"), dv_json_new_str(DV_STR(""), arena), arena);
    assert_str(print(doc), "{\"z\":18446744073709551615,\"list\":[\"a\\u0000\xef\xbf\xbd\",true,"
                           "null,0.1],\"k\xef\xbf\xbd\":\"\"}");
    assert_int_equal(dv_json_line(list), 0);
}

static void doubles_are_printed_as_go_does(void **state)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0,                      "0"                      },
        {-0.0,                   "-0"                     },
        {1,                      "1"                      },
        {-1.5,                   "-1.5"                   },
        {0.1,                    "0.1"                    },
        {1.0 / 3,                "0.3333333333333333"     },
        {100000,                 "100000"                 },
        {1e20,                   "100000000000000000000"  },
        {1e21,                   "1e+21"                  },
        {1.25e22,                "1.25e+22"               },
        {0.000001,               "0.000001"               },
        {0.0000001,              "1e-7"                   },
        {1.5e-10,                "1.5e-10"                },
        {5e-324,                 "5e-324"                 },
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {9007199254740994.0,     "9007199254740994"       },
        {123456789.125,          "123456789.125"          },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_str(dv_json_number_text(dv_json_new_double(rows[i].value, arena)), rows[i].text);
}

static void editing_keeps_order_and_links(void **state)
{
    struct dv_json *doc = parse("{\"a\":[0,1,2],\"b\":1,\"c\":2}");
    struct dv_json *a = find(doc, "a");

    (void)state;
    dv_json_insert(a, 0, dv_json_new_str(DV_STR("first"), arena));
    dv_json_insert(a, 2, dv_json_new_str(DV_STR("middle"), arena));
    dv_json_insert(a, 5, dv_json_new_str(DV_STR("last"), arena));
    assert_str(print(a), "[\"first\",0,\"middle\",1,2,\"last\"]");
    dv_json_remove(dv_json_at(a, 0));
    dv_json_remove(dv_json_at(a, 4));
    dv_json_replace(dv_json_at(a, 3), dv_json_new_null(arena));
    assert_str(print(a), "[0,\"middle\",1,null]");
    dv_json_append(a, dv_json_new_object(arena));
    dv_json_replace(find(doc, "c"), dv_json_new_bool(false, arena));
    dv_json_remove(find(doc, "b"));
    assert_str(print(doc), "{\"a\":[0,\"middle\",1,null,{}],\"c\":false}");
    assert_int_equal(dv_json_n(doc), 2);
    assert_ptr_equal(dv_json_parent(dv_json_at(a, 4)), a);
    dv_json_remove(a);
    dv_json_remove(find(doc, "c"));
    assert_str(print(doc), "{}");
    dv_json_set(doc, DV_STR("moved"), a, arena); /* what was taken out can go elsewhere */
    assert_str(print(doc), "{\"moved\":[0,\"middle\",1,null,{}]}");
}

static void large_objects_can_be_edited(void **state)
{
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_json *copy;

    (void)state;
    for (unsigned i = 0; i < 200; i++)
        dv_json_set(doc, dv_str_printf(arena, "k%u", i), dv_json_new_u64(i, arena), arena);
    for (unsigned i = 0; i < 200; i += 2)
        dv_json_remove(dv_json_get(doc, dv_str_printf(arena, "k%u", i)));
    for (unsigned i = 1; i < 200; i += 2)
        dv_json_set(doc, dv_str_printf(arena, "k%u", i), dv_json_new_null(arena), arena);
    copy = dv_json_copy(doc, arena);
    assert_int_equal(dv_json_n(copy), 100);
    for (unsigned i = 0; i < 200; i++) {
        dv_str key = dv_str_printf(arena, "k%u", i);

        assert_int_equal(dv_json_is(dv_json_get(doc, key), DV_JSON_NULL), i % 2);
        assert_int_equal(dv_json_is(dv_json_get(copy, key), DV_JSON_NULL), i % 2);
    }
    assert_true(dv_json_eq(doc, copy));
}

static void equality_is_by_value(void **state)
{
    static const struct {
        const char *a, *b;
        bool is_equal;
    } rows[] = {
        {"{\"a\":1,\"b\":[2]}",               "{\"b\":[2],\"a\":1}",               true },
        {"{\"a\":{\"x\":1,\"y\":2},\"b\":3}", "{\"b\":3,\"a\":{\"y\":2,\"x\":1}}", true },
        {"{\"a\":{\"x\":1,\"y\":2},\"b\":3}", "{\"b\":3,\"a\":{\"y\":1,\"x\":1}}", false},
        {"{\"a\":1}",                         "{\"b\":1}",                         false},
        {"{\"a\":1}",                         "{\"a\":1,\"b\":1}",                 false},
        {"{\"a\":1,\"b\":1}",                 "{\"a\":1}",                         false},
        {"[1,2]",                             "[2,1]",                             false},
        {"[]",                                "{}",                                false},
        {"1",                                 "1.0",                               true },
        {"100",                               "1e2",                               true },
        {"0",                                 "-0",                                true },
        {"0.1",                               "1e-1",                              true },
        {"1",                                 "\"1\"",                             false},
        {"9223372036854775807",               "9223372036854775806",               false},
        {"18446744073709551615",              "18446744073709551614",              false},
        {"-1",                                "1",                                 false},
        {"1e400",                             "1e400",                             true },
        {"1e400",                             "1e401",                             false},
        {"null",                              "false",                             false},
        {"true",                              "false",                             false},
        {"\"a\"",                             "\"\\u0061\"",                       true },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        assert_int_equal(dv_json_eq(parse(rows[i].a), parse(rows[i].b)), rows[i].is_equal);
        assert_int_equal(dv_json_eq(parse(rows[i].b), parse(rows[i].a)), rows[i].is_equal);
    }
}

static void a_copy_outlives_what_it_was_copied_from(void **state)
{
    struct dv_arena *other = dv_arena_new();
    char text[] = "{\"a\":[\"x\",1,{\"b\":[[]]}],\"c\":null}";
    struct dv_err err;
    struct dv_json *doc = dv_json_parse(dv_str_from_c(text), NULL, other, &err);
    struct dv_json *copy;
    struct dv_json *part;

    (void)state;
    assert_ok(doc, &err);
    copy = dv_json_copy(doc, arena);
    part = dv_json_copy(find(doc, "a"), arena);
    dv_arena_free(other);
    memset(text, 'x', sizeof(text));
    assert_str(print(copy), "{\"a\":[\"x\",1,{\"b\":[[]]}],\"c\":null}");
    assert_str(print(part), "[\"x\",1,{\"b\":[[]]}]");
    assert_int_equal(dv_json_line(find(copy, "a/1")), 1);
    assert_null(dv_json_parent(part));
    assert_str(dv_json_key(part), "");
}

static void a_tree_may_be_very_deep(void **state)
{
    struct dv_json *doc = dv_json_new_array(arena);
    struct dv_json *node = doc;
    struct dv_json *copy;

    (void)state;
    for (int i = 0; i < 1000000; i++) {
        struct dv_json *child = dv_json_new_array(arena);

        dv_json_append(node, child);
        node = child;
    }
    copy = dv_json_copy(doc, arena);
    assert_true(dv_json_eq(doc, copy));
    dv_json_append(node, dv_json_new_null(arena));
    assert_false(dv_json_eq(doc, copy));
}

static void compare_lists_of_objects(void *ctx, size_t n)
{
    struct dv_arena *own = dv_arena_new();
    struct dv_json *doc = dv_json_new_array(own);

    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        struct dv_json *item = dv_json_new_object(own);

        dv_json_set(item, DV_STR("name"), dv_json_new_str(DV_STR("x"), own), own);
        dv_json_append(doc, item);
    }
    assert_true(dv_json_eq(doc, dv_json_copy(doc, own)));
    dv_arena_free(own);
}

static void comparing_a_long_list_costs_what_is_in_it(void **state)
{
    (void)state;
    assert_true(growth_is_linear(compare_lists_of_objects, NULL, 5000));
}

static void a_container_knows_its_text_until_something_is_edited(void **state)
{
    struct dv_json *doc = parse(" { \"a\" : [ 1 , {} ], \"b\":\"x\" } ");

    (void)state;
    assert_str(dv_json_source(doc), "{ \"a\" : [ 1 , {} ], \"b\":\"x\" }");
    assert_str(dv_json_source(find(doc, "a")), "[ 1 , {} ]");
    assert_str(dv_json_source(find(doc, "a/1")), "{}");
    assert_null(dv_json_source(find(doc, "b")).p);
    assert_null(dv_json_source(dv_json_copy(find(doc, "a"), arena)).p);
    assert_null(dv_json_source(parse_yaml("a: []")).p);
    dv_json_remove(find(doc, "b"));
    assert_null(dv_json_source(find(doc, "a")).p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(getters_give_values_of_their_kind),
        doc_test(a_wrong_kind_is_named_with_place_and_path),
        doc_test(a_long_path_is_cut_in_front_so_that_the_cause_stays),
        doc_test(a_number_that_does_not_fit_is_out_of_range),
        doc_test(a_document_can_be_built),
        doc_test(doubles_are_printed_as_go_does),
        doc_test(editing_keeps_order_and_links),
        doc_test(large_objects_can_be_edited),
        doc_test(equality_is_by_value),
        doc_test(a_copy_outlives_what_it_was_copied_from),
        doc_test(a_tree_may_be_very_deep),
        doc_test(comparing_a_long_list_costs_what_is_in_it),
        doc_test(a_container_knows_its_text_until_something_is_edited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
