/* test_control_claims.c - claims of pods: generated, and written down. */
#include "support/dvtest.h"

#include <string.h>

#include "base/defs.h"
#include "control/control.h"
#include "control/tests/test_control_world.h"
#include "resource/resource.h"
#include "support/api_front.h"

static void start_with_template(struct world *world)
{
    (void)make(world, DV_KIND_TEMPLATE, "default", TEMPLATE);
    open_control(world);
}

/* ---- claims from templates ---- */

static void a_claim_is_made_from_the_template(void **state)
{
    struct world *world = *state;
    const struct dv_api_resource_claim *claim;
    struct dv_control_stats stats;
    const struct dv_api_pod *pod;

    start_with_template(world);
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ""));
    claim = generated(world, "p", "e");
    pod = look_pod(world, "p");
    assert_non_null(claim);
    assert_str(claim->metadata.generate_name, "p-e-");
    assert_int_equal(claim->metadata.name.n, 4 + 5);
    assert_str(claim->metadata.owner_references[0].api_version, "v1");
    assert_str(claim->metadata.owner_references[0].kind, "Pod");
    assert_true(dv_str_eq(claim->metadata.owner_references[0].uid, pod->metadata.uid));
    assert_true(*claim->metadata.owner_references[0].controller);
    assert_null(claim->metadata.owner_references[0].block_owner_deletion);
    assert_int_equal(claim->metadata.n_labels, 1);
    assert_str(claim->metadata.labels[0].value, "v");
    assert_int_equal(claim->metadata.n_annotations, 2);
    assert_str(claim->spec.devices.requests[0].exactly->device_class_name, "c");
    assert_int_equal(pod->status.n_resource_claim_statuses, 1);
    assert_str(pod->status.resource_claim_statuses[0].name, "e");
    assert_true(dv_str_eq(pod->status.resource_claim_statuses[0].resource_claim_name,
                          claim->metadata.name));
    dv_control_get_stats(world->control, &stats);
    assert_int_equal(stats.n_creates[0][0], 1);
    assert_int_equal(stats.n_creates[1][0], 0);
    assert_int_equal(stats.n_claims[0][0][DV_CLAIM_TEMPLATE], 1);
    assert_int_equal(stats.n_waiting + stats.n_running, 0);
}

static void nothing_is_done_when_all_is_there(void **state)
{
    struct world *world = *state;
    uint64_t n;

    start_with_template(world);
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ""));
    n = world->api.front.n_requests;
    assert_int_equal(n, 2); /* the claim and the status */
    change(world, DV_KIND_POD, "default", "p", "{metadata: {labels: {x: z}}}");
    change_status(world, DV_KIND_POD, "default", "p", "{status: {phase: Running}}");
    close_control(world);
    open_control(world);
    assert_int_equal(world->api.front.n_requests, n);
}

static void a_template_that_comes_later_is_used(void **state)
{
    struct world *world = *state;

    open_control(world);
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ""));
    assert_null(generated(world, "p", "e"));
    assert_int_equal(n_events(world, "p", "FailedResourceClaimCreation",
                              "PodResourceClaim e: resource claim template \"t\" not found"),
                     1);
    pass(world, 100000);
    /* said again and again, and counted up once in a while */
    assert_true(n_events(world, "p", "FailedResourceClaimCreation", NULL) > 3);
    (void)make(world, DV_KIND_TEMPLATE, "default", TEMPLATE);
    assert_non_null(generated(world, "p", "e"));
}

static void a_claim_that_is_deleted_is_made_anew(void **state)
{
    struct world *world = *state;
    const char *first;

    start_with_template(world);
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ""));
    first = text(world, "%.*s", DV_FMT(generated(world, "p", "e")->metadata.name));
    destroy(world, DV_KIND_CLAIM, "default", first);
    assert_null(look_claim(world, first));
    assert_non_null(generated(world, "p", "e"));
    assert_true(
        dv_str_eq(look_pod(world, "p")->status.resource_claim_statuses[0].resource_claim_name,
                  generated(world, "p", "e")->metadata.name));
}

static void a_status_that_was_lost_is_repaired(void **state)
{
    struct world *world = *state;

    start_with_template(world);
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ""));
    change_status(world, DV_KIND_POD, "default", "p", "{status: {resourceClaimStatuses: null}}");
    assert_non_null(generated(world, "p", "e"));
    assert_int_equal(look_pod(world, "p")->status.n_resource_claim_statuses, 1);
    assert_int_equal(world->api.front.n_created[DV_KIND_CLAIM], 1);
}

static void an_entry_that_needs_no_claim_gets_none(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_TEMPLATE, "default", TEMPLATE);
    (void)make(world, DV_KIND_POD, "default",
               POD("p", BY_TEMPLATE ", {name: f, resourceClaimTemplateName: t}", ""));
    change_status(world, DV_KIND_POD, "default", "p",
                  "{status: {resourceClaimStatuses: [{name: e}]}}");
    open_control(world);
    assert_null(generated(world, "p", "e"));
    assert_non_null(generated(world, "p", "f"));
    assert_int_equal(look_pod(world, "p")->status.n_resource_claim_statuses, 2);
    assert_null(look_pod(world, "p")->status.resource_claim_statuses[0].resource_claim_name.p);
}

static void claims_of_others_are_not_taken(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_NAMESPACE, "", "{metadata: {name: other}}");
    (void)make(world, DV_KIND_TEMPLATE, "default", TEMPLATE);
    /* like the one that is wanted, but in another namespace, and of another pod */
    (void)make(world, DV_KIND_CLAIM, "other",
               "{metadata: {name: a, annotations: {resource.kubernetes.io/pod-claim-name: e}}, "
               "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}}");
    (void)make(world, DV_KIND_CLAIM, "default",
               "{metadata: {name: b, annotations: {resource.kubernetes.io/pod-claim-name: e}}, "
               "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}}");
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ""));
    change_status(world, DV_KIND_POD, "default", "p",
                  "{status: {resourceClaimStatuses: [{name: e, resourceClaimName: b}]}}");
    open_control(world);
    assert_non_null(generated(world, "p", "e"));
    assert_true(
        dv_str_eq(look_pod(world, "p")->status.resource_claim_statuses[0].resource_claim_name,
                  generated(world, "p", "e")->metadata.name));
}

static void gates_refuse_what_is_off(void **state)
{
    static const struct {
        const char *request;
        const char *message;
    } rows[] = {
        {"exactly: {deviceClassName: c, adminAccess: true}",
         "PodResourceClaim e: resource claim template \"t\": admin access is requested, but the "
         "feature is disabled"    },
        {"firstAvailable: [{name: s, deviceClassName: c}]",
         "PodResourceClaim e: resource claim template \"t\": a prioritized list is requested, but "
         "the feature is disabled"},
    };
    struct world *world = *state;

    (void)make(world, DV_KIND_NAMESPACE, "",
               "{metadata: {name: adm, labels: {resource.kubernetes.io/admin-access: \"true\"}}}");
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_object **claims;

        world->options.gates = (struct dv_control_gates){0};
        (void)make(world, DV_KIND_TEMPLATE, "adm",
                   text(world,
                        "{metadata: {name: t}, spec: {spec: {devices: {requests: "
                        "[{name: r, %s}]}}}}",
                        rows[i].request));
        (void)make(world, DV_KIND_POD, "adm", POD("p", BY_TEMPLATE, ""));
        open_control(world);
        assert_true(n_events(world, "p", "FailedResourceClaimCreation", rows[i].message) > 0);
        assert_int_equal(list(world, DV_KIND_CLAIM, "adm", &claims), 0);
        close_control(world);
        world->options.gates = dv_control_gates_default();
        open_control(world);
        assert_int_equal(list(world, DV_KIND_CLAIM, "adm", &claims), 1);
        if (i == 0) {
            struct dv_control_stats stats;

            dv_control_get_stats(world->control, &stats);
            assert_int_equal(stats.n_creates[0][1], 1);
            assert_int_equal(stats.n_claims[0][1][DV_CLAIM_TEMPLATE], 1);
        }
        close_control(world);
        destroy(world, DV_KIND_POD, "adm", "p");
        destroy(world, DV_KIND_TEMPLATE, "adm", "t");
        pass(world, 3000); /* the collector takes the claim */
    }
}

static void pods_without_need_are_left_alone(void **state)
{
    struct world *world = *state;

    start_with_template(world);
    (void)make(world, DV_KIND_POD, "default", POD("plain", "", ""));
    (void)make(world, DV_KIND_POD, "default", POD("missing", BY_NAME("none"), ON_NODE));
    (void)make(
        world, DV_KIND_POD, "default",
        "{metadata: {name: going, finalizers: [example.com/f]}, spec: {containers: [{name: c, "
        "image: pause}]}}");
    delete_gently(world, DV_KIND_POD, "default", "going");
    assert_int_equal(world->api.front.n_requests, 0);
}

static void a_pod_that_is_being_deleted_gets_no_claim(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_TEMPLATE, "default", TEMPLATE);
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ON_NODE));
    delete_gently(world, DV_KIND_POD, "default", "p");
    open_control(world);
    assert_non_null(look_pod(world, "p"));
    assert_int_equal(world->api.front.n_requests, 0);
}

static void long_names_still_make_a_claim(void **state)
{
    struct world *world = *state;
    char entry[64];
    char name[254];

    memset(name, 'a', sizeof(name) - 1);
    memset(entry, 'b', sizeof(entry) - 1);
    name[sizeof(name) - 1] = entry[sizeof(entry) - 1] = '\0';
    for (size_t i = 30; i < 250; i += 31)
        name[i] = '.';
    start_with_template(world);
    (void)make(world, DV_KIND_POD, "default",
               text(world,
                    "{metadata: {name: %s}, spec: {containers: [{name: c, image: pause}], "
                    "resourceClaims: [{name: %s, resourceClaimTemplateName: t}]}}",
                    name, entry));
    assert_non_null(generated(world, name, entry));
}

static void claims_that_the_view_does_not_show_are_remembered(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_TEMPLATE, "default",
               "{metadata: {name: t}, spec: {metadata: {labels: {hidden: a}}, spec: {devices: "
               "{requests: [{name: r, exactly: {deviceClassName: c}}]}}}}");
    world->api.front.hidden = DV_STR("!hidden");
    open_control(world);
    world->api.front.fault = FAULT_BEFORE;
    world->api.front.fault_at = 2; /* the status, which is then written after all */
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ""));
    pass(world, 5000);
    assert_non_null(generated(world, "p", "e"));
    assert_int_equal(look_pod(world, "p")->status.n_resource_claim_statuses, 1);
    change(world, DV_KIND_POD, "default", "p", "{metadata: {labels: {a: b}}}");
    assert_int_equal(world->api.front.n_created[DV_KIND_CLAIM], 1);
    pass(world, 3600000); /* a view that is so late has missed that the claim is gone again */
    change(world, DV_KIND_POD, "default", "p", "{metadata: {labels: {a: c}}}");
    assert_int_equal(world->api.front.n_created[DV_KIND_CLAIM], 2);
}

static void a_claim_whose_making_was_not_heard_of_is_found(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_TEMPLATE, "default",
               "{metadata: {name: t}, spec: {metadata: {labels: {hidden: a}}, spec: {devices: "
               "{requests: [{name: r, exactly: {deviceClassName: c}}]}}}}");
    world->api.front.hidden = DV_STR("!hidden");
    world->api.front.fault = FAULT_AFTER;
    world->api.front.fault_at = 1;
    open_control(world);
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ""));
    close_control(world); /* and what is remembered is forgotten */
    open_control(world);
    pass(world, 5000);
    assert_non_null(generated(world, "p", "e"));
    assert_int_equal(world->api.front.n_created[DV_KIND_CLAIM], 0); /* as far as one heard */
    assert_true(
        dv_str_eq(look_pod(world, "p")->status.resource_claim_statuses[0].resource_claim_name,
                  generated(world, "p", "e")->metadata.name));
}

/* Once to see which name it would be, then with that name taken. */
static void a_name_that_another_has_is_not_used(void **state)
{
    struct world *world = *state;
    const char *taken;

    start_with_template(world);
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ""));
    taken = text(world, "%.*s", DV_FMT(generated(world, "p", "e")->metadata.name));
    close_control(world);
    destroy(world, DV_KIND_CLAIM, "default", taken);
    (void)make(world, DV_KIND_CLAIM, "default",
               text(world,
                    "{metadata: {name: %s}, spec: {devices: {requests: [{name: r, exactly: "
                    "{deviceClassName: c}}]}}}",
                    taken));
    change_status(world, DV_KIND_POD, "default", "p", "{status: {resourceClaimStatuses: null}}");
    open_control(world);
    assert_non_null(generated(world, "p", "e"));
    assert_false(dv_str_eq(generated(world, "p", "e")->metadata.name, dv_str_from_c(taken)));
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, start_world, end_world)
    const struct CMUnitTest tests[] = {
        ROW(a_claim_is_made_from_the_template),
        ROW(nothing_is_done_when_all_is_there),
        ROW(a_template_that_comes_later_is_used),
        ROW(a_claim_that_is_deleted_is_made_anew),
        ROW(a_status_that_was_lost_is_repaired),
        ROW(an_entry_that_needs_no_claim_gets_none),
        ROW(claims_of_others_are_not_taken),
        ROW(gates_refuse_what_is_off),
        ROW(pods_without_need_are_left_alone),
        ROW(a_pod_that_is_being_deleted_gets_no_claim),
        ROW(long_names_still_make_a_claim),
        ROW(claims_that_the_view_does_not_show_are_remembered),
        ROW(a_claim_whose_making_was_not_heard_of_is_found),
        ROW(a_name_that_another_has_is_not_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
