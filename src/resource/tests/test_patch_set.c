#include "test_resource_patch.h"

#include "resource/patch.h"
#include "resource/resource.h"
#include "support/docs.h"
#include "support/dvtest.h"

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
        doc_test(an_event_carries_what_is_set),
        doc_test(nothing_set_is_an_empty_patch),
        doc_test(items_of_lists_are_what_the_list_is),
        doc_test(a_pointer_that_is_set_is_meant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
