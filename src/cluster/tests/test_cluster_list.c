#include "support/dvtest.h"

#include <stdbool.h>

#include "base/buf.h"
#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/objects/continue_token.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "resource/object_pool.h"
#include "resource/resource.h"

static struct dv_list_page page;
static struct dv_api_status *failure;

static bool list(struct fixture *fixture, const struct dv_list_query *query)
{
    struct dv_list_query own = *query;

    if (!own.kind)
        own.kind = dv_kind(DV_KIND_CONFIG_MAP);
    failure = NULL;
    return dv_embedded_list(fixture->embedded, &own, fixture->arena, &page, &failure);
}

/* The names on the page, each with its data: "a=1 b=2". */
static const char *shown(struct fixture *fixture)
{
    struct dv_buf text;
    const char *copy;

    dv_buf_init(&text, 10000);
    for (size_t i = 0; i < page.n_objects; i++) {
        const struct dv_api_config_map *map = dv_object_unpack(page.objects[i])->value;

        dv_buf_printf(&text, "%s%.*s", i > 0 ? " " : "", DV_FMT(map->metadata.name));
        if (map->n_data > 0)
            dv_buf_printf(&text, "=%.*s", DV_FMT(map->data[0].value));
    }
    copy = dv_str_to_c(dv_buf_str(&text), fixture->arena);
    dv_buf_fini(&text);
    return copy;
}

static void make(struct fixture *fixture, const char *namespace, const char *name,
                 const char *value)
{
    dv_str json =
        dv_str_printf(fixture->arena,
                      "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"v\":\"%s\"}},\"data\":{\"v\":"
                      "\"%s\"}}",
                      name, value, value);

    (void)must(create(fixture, DV_KIND_CONFIG_MAP, namespace, dv_str_to_c(json, fixture->arena)));
}

static void set(struct fixture *fixture, const char *name, const char *value)
{
    dv_str json = dv_str_printf(fixture->arena, "{\"data\":{\"v\":\"%s\"}}", value);

    (void)must(patch(fixture, DV_KIND_CONFIG_MAP, "default", name, DV_PATCH_MERGE,
                     dv_str_to_c(json, fixture->arena)));
}

static void lists_in_the_order_of_the_keys(void **state)
{
    struct fixture *fixture = *state;

    (void)must(create(fixture, DV_KIND_NAMESPACE, "", "{\"metadata\":{\"name\":\"a-b\"}}"));
    (void)must(create(fixture, DV_KIND_NAMESPACE, "", "{\"metadata\":{\"name\":\"a\"}}"));
    make(fixture, "a", "z", "1");
    make(fixture, "a-b", "y", "2");
    make(fixture, "default", "b", "3");
    make(fixture, "default", "a", "4");
    assert_true(list(fixture, &(struct dv_list_query){0}));
    assert_string_equal(shown(fixture), "y=2 z=1 a=4 b=3"); /* "a-b/y" < "a/z" */
    assert_true(list(fixture, &(struct dv_list_query){.namespace = DV_STR("a")}));
    assert_string_equal(shown(fixture), "z=1");
    assert_true(list(fixture, &(struct dv_list_query){.namespace = DV_STR("nowhere")}));
    assert_int_equal(page.n_objects, 0);
    assert_true(list(fixture, &(struct dv_list_query){.label_selector = DV_STR("v in (1,4)")}));
    assert_string_equal(shown(fixture), "z=1 a=4");
    assert_true(
        list(fixture, &(struct dv_list_query){.namespace = DV_STR("default"),
                                              .field_selector = DV_STR("metadata.name=b")}));
    assert_string_equal(shown(fixture), "b=3");
    assert_true(
        list(fixture, &(struct dv_list_query){.field_selector = DV_STR("metadata.name=b")}));
    assert_string_equal(shown(fixture), "b=3");
    assert_int_equal(page.version, dv_embedded_version(fixture->embedded));
}

static void pages_show_the_version_of_the_first(void **state)
{
    struct fixture *fixture = *state;
    struct dv_list_query query = {.namespace = DV_STR("default"), .limit = 2};
    uint64_t version;

    for (size_t i = 0; i < 5; i++)
        make(fixture, "default", numbered(fixture, "c%zu", i), "0");
    version = dv_embedded_version(fixture->embedded);
    assert_true(list(fixture, &query));
    assert_string_equal(shown(fixture), "c0=0 c1=0");
    assert_true(page.has_remaining);
    assert_int_equal(page.n_remaining, 3);
    /* Everything changes, but not for who began before. */
    (void)must(del(fixture, DV_KIND_CONFIG_MAP, "default", "c2", NULL));
    (void)must(del(fixture, DV_KIND_CONFIG_MAP, "default", "c4", NULL));
    set(fixture, "c3", "1");
    set(fixture, "c3", "2");
    make(fixture, "default", "c2", "new");
    make(fixture, "default", "c33", "new");
    query.continue_token = page.continue_token;
    assert_true(list(fixture, &query));
    assert_string_equal(shown(fixture), "c2=0 c3=0");
    assert_int_equal(page.version, version);
    assert_int_equal(page.n_remaining, 1);
    query.continue_token = page.continue_token;
    assert_true(list(fixture, &query));
    assert_string_equal(shown(fixture), "c4=0");
    assert_int_equal(page.continue_token.n, 0);
    assert_false(page.has_remaining);
    assert_true(list(fixture, &(struct dv_list_query){.namespace = DV_STR("default")}));
    assert_string_equal(shown(fixture), "c0=0 c1=0 c2=new c3=2 c33=new");
}

static void lists_an_older_version_exactly(void **state)
{
    struct fixture *fixture = *state;
    struct dv_list_query query = {.namespace = DV_STR("default"), .match = DV_MATCH_EXACT};

    make(fixture, "default", "a", "0");
    make(fixture, "default", "b", "0");
    query.resource_version = dv_str_printf(
        fixture->arena, "%llu", (unsigned long long)dv_embedded_version(fixture->embedded));
    set(fixture, "a", "1");
    (void)must(del(fixture, DV_KIND_CONFIG_MAP, "default", "b", NULL));
    assert_true(list(fixture, &query));
    assert_string_equal(shown(fixture), "a=0 b=0");
    query.match = DV_MATCH_NOT_OLDER;
    assert_true(list(fixture, &query));
    assert_string_equal(shown(fixture), "a=1");
    query.resource_version = DV_STR("0");
    query.limit = 1;
    make(fixture, "default", "c", "0");
    assert_true(list(fixture, &query)); /* any version: all of it */
    assert_string_equal(shown(fixture), "a=1 c=0");
}

static void refuses_lists_that_cannot_be(void **state)
{
    static const struct {
        struct dv_list_query query;
        int code;
        const char *message;
    } cases[] = {
        {{.resource_version = DV_STR_INIT("abc")},
         400,                                                                             "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: "
         "parsing \"abc\": invalid syntax"                                                                                                            },
        {{.resource_version = DV_STR_INIT("999999999")},                             504, NULL                                                                     },
        {{.continue_token = DV_STR_INIT("garbage")},
         400,                                                                             "invalid continue token: continue key is not valid: invalid character '\\u0081' looking "
         "for beginning of value"                                                                                                                     },
        {{.continue_token = DV_STR_INIT("x"), .resource_version = DV_STR_INIT("3")},
         400,                                                                             "specifying resource version is not allowed when using continue"         },
        {{.label_selector = DV_STR_INIT("g in (")},
         400,                                                                             "unable to parse requirement: found '', expected: ',', ')' or identifier"},
        {{.field_selector = DV_STR_INIT("spec.nope=1")},                             400, NULL                                                                     },
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        assert_false(list(fixture, &cases[i].query));
        assert_int_equal(failure->code, cases[i].code);
        if (cases[i].message)
            assert_str(failure->message, cases[i].message);
    }
}

static void an_expired_page_offers_a_fresh_token(void **state)
{
    struct fixture *fixture = *state;
    struct dv_list_query query = {.namespace = DV_STR("default"), .limit = 2};
    dv_str old;

    for (size_t i = 0; i < 5; i++)
        make(fixture, "default", numbered(fixture, "c%zu", i), "0");
    assert_true(list(fixture, &query));
    old = page.continue_token;
    set(fixture, "c2", "1");
    reopen(fixture); /* forgets the past */
    query.continue_token = old;
    assert_false(list(fixture, &query));
    assert_int_equal(failure->code, 410);
    assert_str(failure->reason, "Expired");
    assert_true(dv_str_starts_with(failure->message,
                                   DV_STR("The provided continue parameter is too old to display a "
                                          "consistent list result.")));
    query.continue_token = failure->metadata.continue_;
    assert_true(list(fixture, &query));
    assert_string_equal(shown(fixture), "c2=1 c3=0");
    query = (struct dv_list_query){.resource_version = DV_STR("1"), .match = DV_MATCH_EXACT};
    assert_false(list(fixture, &query));
    assert_str(failure->message, "The resourceVersion for the provided list is too old.");
}

static void tokens_read_back_as_they_were(void **state)
{
    static const char *const keys[] = {"a", "default/web", "a-b/c.d", "\"q\"\\/x"};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < DV_COUNT(keys); i++) {
        struct dv_continue token = {.version = (int64_t)(i + 1) * 1000000007,
                                    .after = dv_str_from_c(keys[i])};
        struct dv_continue again = {0};
        struct dv_err err;

        assert_ok(dv_continue_parse(dv_continue_print(&token, fixture->arena), fixture->arena,
                                    &again, &err),
                  &err);
        assert_int_equal(again.version, token.version);
        assert_str(again.after, keys[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists_in_the_order_of_the_keys, start, end),
        cmocka_unit_test_setup_teardown(pages_show_the_version_of_the_first, start, end),
        cmocka_unit_test_setup_teardown(lists_an_older_version_exactly, start, end),
        cmocka_unit_test_setup_teardown(refuses_lists_that_cannot_be, start, end),
        cmocka_unit_test_setup_teardown(an_expired_page_offers_a_fresh_token, start_on_disk, end),
        cmocka_unit_test_setup_teardown(tokens_read_back_as_they_were, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
