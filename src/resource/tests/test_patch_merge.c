#include "test_resource_patch.h"

#include "resource/patch.h"
#include "resource/resource.h"
#include "support/docs.h"
#include "support/dvtest.h"
#include "json/json.h"

static const struct {
    const char *doc;
    const char *patch;
    const char *wanted;
} cases[] = {
    {"{a: b}",        "{a: c}",                       "{a: c}"             },
    {"{a: b}",        "{b: c}",                       "{a: b, b: c}"       },
    {"{a: b}",        "{a: null}",                    "{}"                 },
    {"{a: b, b: c}",  "{a: null}",                    "{b: c}"             },
    {"{a: [b]}",      "{a: c}",                       "{a: c}"             },
    {"{a: c}",        "{a: [b]}",                     "{a: [b]}"           },
    {"{a: {b: c}}",   "{a: {b: d, c: null}}",         "{a: {b: d}}"        },
    {"{a: [{b: c}]}", "{a: [1]}",                     "{a: [1]}"           },
    {"[a, b]",        "[c, d]",                       "[c, d]"             },
    {"{a: b}",        "[c]",                          "[c]"                },
    {"{a: foo}",      "null",                         "null"               },
    {"{a: foo}",      "bar",                          "bar"                },
    {"{e: null}",     "{a: 1}",                       "{e: null, a: 1}"    },
    {"[1, 2]",        "{a: b, c: null}",              "{a: b}"             },
    {"{}",            "{a: {bb: {ccc: null}}}",       "{a: {bb: {}}}"      },
    {"{a: {x: 1}}",   "{a: {}}",                      "{a: {x: 1}}"        },
    {"{a: [1]}",      "{a: [{b: null, c: 1}, null]}", "{a: [{c: 1}, null]}"},
};

static void members_are_merged_and_null_removes(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_doc(dv_patch_merge(parse_yaml(cases[i].doc), parse_yaml(cases[i].patch), arena),
                   cases[i].wanted);
}

static void deep_patches_need_no_stack(void **state)
{
    struct dv_json *patch = dv_json_new_object(arena);
    struct dv_json *at = patch;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        struct dv_json *inner = dv_json_new_object(arena);

        dv_json_set(at, DV_STR("a"), inner, arena);
        at = inner;
    }
    assert_true(dv_json_eq(dv_patch_merge(patch, patch, arena), patch));
}

static void only_objects_are_patches_for_objects(void **state)
{
    struct dv_err err;

    (void)state;
    assert_ok(dv_patch_merge_check(parse_yaml("{}"), &err), &err);
    assert_false(dv_patch_merge_check(parse_yaml("[]"), &err));
    assert_err(&err, DV_INVALID_ARGUMENT,
               "error decoding patch: json: cannot unmarshal array into Go value of type "
               "map[string]interface {}");
    assert_false(dv_patch_merge_check(parse_yaml("null"), &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "Invalid JSON Patch");
}

/* ---- patches that set what a struct has ---- */

static void an_event_carries_what_is_set(void **state)
{
    const struct dv_api_event event = {
        .count = 4, .last_timestamp = {.seconds = 1000000000, .is_set = true}
    };

    (void)state;
    assert_doc(dv_encode_patch(&dv_message_event, &event, arena),
               "{count: 4, lastTimestamp: \"2001-09-09T01:46:40Z\"}");
}

static void nothing_set_is_an_empty_patch(void **state)
{
    const struct dv_api_event event = {0};
    const struct dv_api_pod pod = {0};
    const struct dv_api_node node = {0};
    const struct dv_api_lease lease = {0};
    const struct dv_api_resource_claim claim = {0};

    (void)state;
    assert_doc(dv_encode_patch(&dv_message_event, &event, arena), "{}");
    assert_doc(dv_encode_patch(&dv_message_pod, &pod, arena), "{}");
    assert_doc(dv_encode_patch(&dv_message_node, &node, arena), "{}");
    assert_doc(dv_encode_patch(&dv_message_lease, &lease, arena), "{}");
    assert_doc(dv_encode_patch(&dv_message_resource_claim, &claim, arena), "{}");
}

/* A merged list has patches for items; a list that is replaced has whole ones. */
static void items_of_lists_are_what_the_list_is(void **state)
{
    struct dv_api_pod_condition ready = {.type = DV_STR("Ready"), .status = DV_STR("True")};
    struct dv_api_container_status container = {.name = DV_STR("c")};
    const struct dv_api_pod_status status = {.conditions = &ready,
                                             .n_conditions = 1,
                                             .container_statuses = &container,
                                             .n_container_statuses = 1};

    (void)state;
    assert_doc(dv_encode_patch(&dv_message_pod_status, &status, arena),
               "{conditions: [{type: Ready, status: \"True\"}], containerStatuses: [{name: c, "
               "state: {}, lastState: {}, ready: false, restartCount: 0, image: \"\", "
               "imageID: \"\"}]}");
}

static void a_pointer_that_is_set_is_meant(void **state)
{
    static const int64_t zero = 0;
    const struct dv_api_lease lease = {.spec.lease_transitions = &zero};

    (void)state;
    assert_doc(dv_encode_patch(&dv_message_lease, &lease, arena), "{spec: {leaseTransitions: 0}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(members_are_merged_and_null_removes),
        doc_test(deep_patches_need_no_stack),
        doc_test(only_objects_are_patches_for_objects),
        doc_test(an_event_carries_what_is_set),
        doc_test(nothing_set_is_an_empty_patch),
        doc_test(items_of_lists_are_what_the_list_is),
        doc_test(a_pointer_that_is_set_is_meant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
