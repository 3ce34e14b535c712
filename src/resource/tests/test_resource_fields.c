#include "resource/patch/field_set.h"
#include "support/docs.h"
#include "support/dvtest.h"

static struct dv_fields read_set(const char *json)
{
    struct dv_fields fields = {0};
    struct dv_err err;

    assert_ok(dv_fields_parse(dv_str_from_c(json), arena, &fields, &err), &err);
    return fields;
}

static const struct {
    const char *text;
    const char *printed;
} texts[] = {
    {"{}",                                                                "{}"                                  },
    {"{\"f:b\":{},\"f:a\":{}}",                                           "{\"f:a\":{},\"f:b\":{}}"             },
    {"{\"f:a\":{\".\":{}}}",                                              "{\"f:a\":{}}"                        },
    {"{\"f:a\":{\"f:b\":{},\".\":{}}}",                                   "{\"f:a\":{\".\":{},\"f:b\":{}}}"     },
    {"{\"i:3\":{},\"v:\\\"x\\\"\":{},\"k:{\\\"n\\\":1}\":{},\"f:z\":{}}",
     "{\"f:z\":{},\"k:{\\\"n\\\":1}\":{},\"v:\\\"x\\\"\":{},\"i:3\":{}}"                                        },
    {"{\"k:{\\\"b\\\": 1, \\\"a\\\": 2}\":{}}",                           "{\"k:{\\\"a\\\":2,\\\"b\\\":1}\":{}}"},
};

static void sets_are_printed_in_one_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        struct dv_fields fields = read_set(texts[i].text);

        assert_str(dv_fields_print(&fields, arena), texts[i].printed);
    }
}

static const char *const bad[] = {
    "",
    "[]",
    "{\"a\":{}}",
    "{\"x:a\":{}}",
    "{\"f:a\":1}",
    "{\"k:nope\":{}}",
    "{\"k:{\\\"a\\\":1,\\\"b\\\":2}\":{},\"k:{\\\"b\\\":2,\\\"a\\\":1}\":{}}",
};

static void what_is_no_set_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(bad); i++) {
        struct dv_fields fields;
        struct dv_err err;

        assert_false(dv_fields_parse(dv_str_from_c(bad[i]), arena, &fields, &err));
        assert_int_equal(err.code, DV_INVALID_ARGUMENT);
    }
}

static void sets_are_combined_member_by_member(void **state)
{
    struct dv_fields a = read_set("{\"f:m\":{\".\":{},\"f:x\":{},\"f:y\":{}},\"f:s\":{}}");
    struct dv_fields b = read_set("{\"f:m\":{\"f:x\":{},\"f:z\":{}},\"f:t\":{}}");
    struct dv_fields got;

    (void)state;
    got = dv_fields_union(&a, &b, arena);
    assert_str(dv_fields_print(&got, arena),
               "{\"f:m\":{\".\":{},\"f:x\":{},\"f:y\":{},\"f:z\":{}},\"f:s\":{},\"f:t\":{}}");
    got = dv_fields_difference(&a, &b, DV_FIELDS_MEMBER, arena);
    assert_str(dv_fields_print(&got, arena), "{\"f:m\":{\".\":{},\"f:y\":{}},\"f:s\":{}}");
    got = dv_fields_intersection(&a, &b, DV_FIELDS_MEMBER, arena);
    assert_str(dv_fields_print(&got, arena), "{\"f:m\":{\"f:x\":{}}}");
    b = read_set("{\"f:m\":{}}");
    got = dv_fields_without(&a, &b, arena);
    assert_str(dv_fields_print(&got, arena), "{\"f:s\":{}}");
}

static void add_path(void *data, dv_str path)
{
    dv_str *all = data;

    *all = dv_str_printf(arena, "%.*s %.*s", DV_FMT(*all), DV_FMT(path));
}

static void members_are_told_by_their_paths(void **state)
{
    struct dv_fields fields = read_set(
        "{\"f:l\":{\"k:{\\\"a\\\":1,\\\"b\\\":\\\"x\\\"}\":{\".\":{},\"f:c\":{}},\"v:true\":"
        "{},\"i:4\":{}},\"f:z.y/x\":{}}");
    dv_str all = DV_STR("");

    (void)state;
    dv_fields_each(&fields, arena, add_path, &all);
    assert_str(all, " .z.y/x .l[a=1,b=\"x\"] .l[=true] .l[4] .l[a=1,b=\"x\"].c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(sets_are_printed_in_one_way),
        doc_test(what_is_no_set_is_refused),
        doc_test(sets_are_combined_member_by_member),
        doc_test(members_are_told_by_their_paths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
