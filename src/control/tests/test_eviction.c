/* test_eviction.c - pods on devices with taints. */
#include "support/dvtest.h"

#include <stdbool.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/metric.h"
#include "control/control.h"
#include "control/tests/test_control_world.h"
#include "resource/resource.h"
#include "support/api_front.h"

#define TAINTED(taints) "{name: d0, taints: [" taints "]}"
#define NO_EXECUTE "{key: k, value: v, effect: NoExecute}"
#define EVICTED "DeviceTaintManagerEviction"
#define MARKED "Marking for deletion"

static const char *slice(struct world *world, const char *name, unsigned generation,
                         const char *devices)
{
    return text(world,
                "{metadata: {name: %s}, spec: {driver: d.example, nodeName: n1, pool: {name: p, "
                "generation: %u, resourceSliceCount: 1}, devices: [%s]}}",
                name, generation, devices);
}

static const char *rule(struct world *world, const char *name, const char *selector,
                        const char *effect)
{
    return text(world, "{metadata: {name: %s}, spec: {%s taint: {key: k, value: v, effect: %s}}}",
                name, selector, effect);
}

#define SELECT(criteria) "deviceSelector: {" criteria "},"

/* A pod that runs with device d0 through a claim of its own. */
static void add_pod(struct world *world, const char *pod, const char *claim, const char *results)
{
    (void)make(world, DV_KIND_CLAIM, "default",
               text(world,
                    "{metadata: {name: %s}, spec: {devices: {requests: [{name: r, exactly: "
                    "{deviceClassName: c}}]}}}",
                    claim));
    (void)make(world, DV_KIND_POD, "default",
               text(world,
                    "{metadata: {name: %s}, spec: {nodeName: n1, containers: [{name: c, image: "
                    "pause}], resourceClaims: [{name: e, resourceClaimName: %s}]}}",
                    pod, claim));
    allocate(world, claim, results, pod);
}

/* Deleted, or being deleted. */
static bool is_evicted(struct world *world, const char *name)
{
    const struct dv_api_pod *pod = look_pod(world, name);

    return !pod || pod->metadata.deletion_timestamp.is_set;
}

static const struct dv_api_condition *condition_of(struct world *world, const char *name)
{
    const struct dv_object *object = look(world, DV_KIND_TAINT_RULE, "", name);
    const struct dv_api_device_taint_rule *value = object ? object->value : NULL;

    return value && value->status.n_conditions == 1 ? &value->status.conditions[0] : NULL;
}

static void assert_condition(struct world *world, const char *name, const char *status,
                             const char *reason, const char *message)
{
    const struct dv_api_condition *condition = condition_of(world, name);

    assert_non_null(condition);
    assert_str(condition->type, "EvictionInProgress");
    assert_str(condition->message, message);
    assert_str(condition->reason, reason);
    assert_str(condition->status, status);
    assert_int_equal(condition->observed_generation,
                     look(world, DV_KIND_TAINT_RULE, "", name)->meta->generation);
}

/* ---- at once ---- */

static void a_taint_in_a_slice_evicts(void **state)
{
    struct world *world = *state;
    struct dv_metrics *metrics = dv_metrics_new();
    struct dv_control_stats stats;
    const struct dv_api_pod *pod;
    bool is_found = false;

    world->options.deletion_seconds = dv_family_histogram(
        dv_metrics_add_histogram(metrics, &(struct dv_family_spec){.name = "h", .help = "h"},
                                 dv_seconds_bounds, DV_SECONDS_BOUNDS),
        NULL);
    (void)make(world, DV_KIND_SLICE, "", slice(world, "s", 1, "{name: d0}, {name: d1}"));
    add_pod(world, "p", "k", RESULT("d0", ""));
    add_pod(world, "q", "l", RESULT("d1", ""));
    open_control(world);
    assert_false(is_evicted(world, "p"));
    change(world, DV_KIND_SLICE, "", "s",
           "{spec: {devices: [" TAINTED(NO_EXECUTE) ", {name: d1}]}}");
    assert_true(is_evicted(world, "p"));
    assert_false(is_evicted(world, "q"));
    assert_int_equal(n_events(world, "p", EVICTED, MARKED), 1);
    pod = look_pod(world, "p");
    for (size_t i = 0; i < pod->status.n_conditions; i++) {
        const struct dv_api_pod_condition *condition = &pod->status.conditions[i];

        if (!dv_str_eq(condition->type, DV_STR("DisruptionTarget")))
            continue;
        is_found = true;
        assert_str(condition->status, "True");
        assert_str(condition->reason, "DeletionByDeviceTaintManager");
        assert_str(condition->message, "Device Taint manager: deleting due to NoExecute taint");
    }
    assert_true(is_found);
    dv_control_get_stats(world->control, &stats);
    assert_int_equal(stats.n_pod_deletions, 1);
    assert_int_equal(stats.n_pending_evictions, 0);
    close_control(world);
    dv_metrics_free(metrics);
}

static void rules_select_devices(void **state)
{
    static const struct {
        const char *selector;
        bool evicts;
    } rows[] = {
        {"",                                                   false}, /* no selector: nothing */
        {SELECT(""),                                           true }, /* an empty one: all */
        {SELECT("driver: d.example"),                          true },
        {SELECT("driver: other.example"),                      false},
        {SELECT("pool: p"),                                    true },
        {SELECT("pool: other"),                                false},
        {SELECT("device: d0"),                                 true },
        {SELECT("device: d1"),                                 false},
        {SELECT("driver: d.example, pool: p, device: d0"),     true },
        {SELECT("driver: d.example, pool: p, device: d1"),     false},
        {SELECT("driver: other.example, pool: p, device: d0"), false},
    };
    struct world *world = *state;

    open_control(world); /* no slice lists the device: rules work all the same */
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        add_pod(world, "p", "k", RESULT("d0", ""));
        (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "r", rows[i].selector, "NoExecute"));
        if (is_evicted(world, "p") != rows[i].evicts)
            fail_msg("%s", rows[i].selector);
        destroy(world, DV_KIND_TAINT_RULE, "", "r");
        destroy(world, DV_KIND_POD, "default", "p");
        destroy(world, DV_KIND_CLAIM, "default", "k");
    }
}

static void what_does_not_evict(void **state)
{
    static const char *const effects[] = {"NoSchedule", "None"};
    struct world *world = *state;

    (void)make(world, DV_KIND_SLICE, "", slice(world, "s", 1, TAINTED(NO_EXECUTE) ", {name: d1}"));
    open_control(world);
    /* another device, another pod's reservation, no reservation, not on a node */
    add_pod(world, "other-device", "k1", RESULT("d1", ""));
    add_pod(world, "other-pool", "k2", "{request: r, driver: d.example, pool: q, device: d0}");
    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k3"));
    allocate(world, "k3", RESULT("d0", ""), "");
    (void)make(world, DV_KIND_POD, "default", POD("unbound", BY_NAME("k3"), ""));
    (void)make(world, DV_KIND_POD, "default", POD("no-claim", "", ON_NODE));
    assert_false(is_evicted(world, "other-device"));
    assert_false(is_evicted(world, "other-pool"));
    assert_false(is_evicted(world, "unbound"));
    assert_false(is_evicted(world, "no-claim"));
    for (size_t i = 0; i < DV_COUNT(effects); i++) {
        (void)make(world, DV_KIND_TAINT_RULE, "",
                   rule(world, text(world, "r%zu", i), SELECT(""), effects[i]));
        assert_false(is_evicted(world, "other-device"));
    }
    assert_condition(world, "r0", "False", "OtherEffect",
                     "Eviction only happens for the NoExecute effect.");
}

static void a_pod_that_comes_to_a_tainted_device_is_evicted(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_SLICE, "", slice(world, "s", 1, TAINTED(NO_EXECUTE)));
    (void)make(world, DV_KIND_TEMPLATE, "default", TEMPLATE);
    open_control(world);
    for (unsigned i = 0; i < 2; i++) { /* and again, when it comes back */
        const char *name;

        (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ON_NODE));
        name = text(world, "%.*s", DV_FMT(generated(world, "p", "e")->metadata.name));
        assert_false(is_evicted(world, "p"));
        allocate(world, name, RESULT("d0", ""), "p");
        assert_true(is_evicted(world, "p"));
        destroy(world, DV_KIND_POD, "default", "p");
        pass(world, 3000);
    }
}

static void only_the_newest_generation_of_a_pool_counts(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_SLICE, "", slice(world, "old", 1, TAINTED(NO_EXECUTE)));
    (void)make(world, DV_KIND_SLICE, "", slice(world, "new", 2, "{name: d0}"));
    open_control(world);
    add_pod(world, "p", "k", RESULT("d0", ""));
    assert_false(is_evicted(world, "p"));
    destroy(world, DV_KIND_SLICE, "", "new");
    assert_true(is_evicted(world, "p"));
}

/* ---- later ---- */

#define FOR(seconds) "{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: " seconds "}"
#define TOLERATING(list) ", tolerations: [" list "]"

static void tolerations_delay(void **state)
{
    static const struct {
        const char *result;
        int64_t after_s; /* negative: never */
    } rows[] = {
        {RESULT("d0", ""),                                                                   0 },
        {RESULT("d0", TOLERATING(FOR("60"))),                                                60},
        {RESULT("d0", TOLERATING(FOR("60") ", " FOR("30"))),                                 30},
        {RESULT("d0", TOLERATING(FOR("60") ", {operator: Exists, effect: NoExecute}")),      60},
        {RESULT("d0", TOLERATING("{operator: Exists, effect: NoExecute}")),                  -1},
        {RESULT("d0", TOLERATING("{key: k, operator: Equal, value: v, effect: NoExecute}")), -1},
        {RESULT("d0", TOLERATING("{key: k, operator: Equal, value: w, effect: NoExecute}")), 0 },
        {RESULT("d0", TOLERATING("{key: j, operator: Exists, effect: NoExecute}")),          0 },
        {RESULT("d0", TOLERATING("{operator: Exists}")),                                     0 },
        {RESULT("d0", TOLERATING(FOR("-5"))),                                                0 },
        {RESULT("d0", TOLERATING(FOR("9223372036854775807"))),                               -1},
    };
    struct world *world = *state;

    open_control(world);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        add_pod(world, "p", "k", rows[i].result);
        (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "r", SELECT(""), "NoExecute"));
        if (rows[i].after_s > 0) {
            pass(world, (uint64_t)rows[i].after_s * 1000 - 1500);
            assert_false(is_evicted(world, "p"));
            assert_condition(world, "r", "True", "PodsPendingEviction",
                             "1 pod needs to be evicted in 1 namespace.");
            pass(world, 2000);
        } else if (rows[i].after_s < 0) {
            pass(world, 300000);
        }
        if (is_evicted(world, "p") != (rows[i].after_s >= 0))
            fail_msg("%s", rows[i].result);
        destroy(world, DV_KIND_TAINT_RULE, "", "r");
        destroy(world, DV_KIND_POD, "default", "p");
        destroy(world, DV_KIND_CLAIM, "default", "k");
    }
}

static void the_earliest_of_many_taints_counts(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_SLICE, "",
               slice(world, "s", 1,
                     "{name: d0, taints: [{key: a, effect: NoExecute}, {key: b, effect: "
                     "NoExecute}]}"));
    open_control(world);
    add_pod(world, "p", "k",
            RESULT("d0", ", tolerations: [{key: a, operator: Exists, effect: NoExecute, "
                         "tolerationSeconds: 100}, {key: b, operator: Exists, effect: NoExecute, "
                         "tolerationSeconds: 40}]"));
    pass(world, 38500);
    assert_false(is_evicted(world, "p"));
    pass(world, 2000);
    assert_true(is_evicted(world, "p"));
}

static void what_becomes_unnecessary_is_cancelled(void **state)
{
    static const struct {
        enum dv_kind_id kind;
        const char *namespace;
        const char *name;
        const char *patch; /* NULL: it is deleted */
    } rows[] = {
        {DV_KIND_SLICE, "", "s", "{spec: {devices: [{name: d0}]}}"                       },
        {DV_KIND_SLICE, "", "s",
         "{spec: {devices: [" TAINTED("{key: k, effect: NoSchedule}") "]}}"              },
        {DV_KIND_SLICE, "", "s", NULL                                                    },
        {DV_KIND_SLICE, "", "s", "{spec: {pool: {generation: 3}, devices: [{name: d0}]}}"},
    };
    struct world *world = *state;

    open_control(world);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const char *pod = text(world, "p%zu", i);
        struct dv_control_stats stats;

        (void)make(world, DV_KIND_SLICE, "", slice(world, "s", 1, TAINTED(NO_EXECUTE)));
        add_pod(world, pod, text(world, "k%zu", i), RESULT("d0", TOLERATING(FOR("60"))));
        pass(world, 10000);
        dv_control_get_stats(world->control, &stats);
        assert_int_equal(stats.n_pending_evictions, 1);
        if (rows[i].patch)
            change(world, rows[i].kind, rows[i].namespace, rows[i].name, rows[i].patch);
        else
            destroy(world, rows[i].kind, rows[i].namespace, rows[i].name);
        assert_int_equal(n_events(world, pod, EVICTED, "Cancelling deletion"), 1);
        pass(world, 100000);
        assert_false(is_evicted(world, pod));
        destroy(world, DV_KIND_POD, "default", pod);
        destroy(world, DV_KIND_SLICE, "", "s");
    }
}

static void a_pod_that_goes_by_itself_is_forgotten(void **state)
{
    struct world *world = *state;
    struct dv_control_stats stats;

    (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "r", SELECT(""), "NoExecute"));
    open_control(world);
    add_pod(world, "p", "k", RESULT("d0", TOLERATING(FOR("60"))));
    destroy(world, DV_KIND_POD, "default", "p");
    /* one that takes its name, and does not use the claim */
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
    pass(world, 100000);
    assert_false(is_evicted(world, "p"));
    dv_control_get_stats(world->control, &stats);
    assert_int_equal(stats.n_pending_evictions, 0);
    assert_int_equal(n_events(world, "p", EVICTED, NULL), 0);
    assert_condition(world, "r", "False", "NotStarted", "");
}

static void a_changed_taint_changes_the_time(void **state)
{
    struct world *world = *state;

    open_control(world);
    add_pod(world, "p", "k", RESULT("d0", TOLERATING(FOR("60"))));
    (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "r", SELECT(""), "NoExecute"));
    pass(world, 30000);
    /* timeAdded moves with the effect or value of the taint, here by hand */
    change(world, DV_KIND_TAINT_RULE, "", "r",
           "{spec: {taint: {timeAdded: \"2024-01-01T00:00:30Z\"}}}");
    pass(world, 40000);
    assert_false(is_evicted(world, "p"));
    pass(world, 30000);
    assert_true(is_evicted(world, "p"));
}

static void a_clock_that_is_set_is_noticed(void **state)
{
    struct world *world = *state;

    open_control(world);
    add_pod(world, "p", "k", RESULT("d0", TOLERATING(FOR("3600"))));
    add_pod(world, "q", "l", RESULT("d0", TOLERATING(FOR("7200"))));
    (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "r", SELECT(""), "NoExecute"));
    pass(world, 1000);
    world->api.clock.wall_offset_ns += 3700000000000u; /* forward: within a minute */
    pass(world, 61000);
    assert_true(is_evicted(world, "p"));
    world->api.clock.wall_offset_ns -= 3600000000000u; /* back: it is waited for */
    pass(world, 120000);
    assert_false(is_evicted(world, "q"));
}

/* ---- rules tell ---- */

static void a_rule_tells_what_it_does(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_NAMESPACE, "", "{metadata: {name: other}}");
    open_control(world);
    (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "r", SELECT(""), "NoExecute"));
    assert_condition(world, "r", "False", "NotStarted", "");
    pass(world, 20000);
    add_pod(world, "p", "k", RESULT("d0", TOLERATING(FOR("60"))));
    add_pod(world, "q", "l", RESULT("d0", TOLERATING(FOR("90"))));
    assert_condition(world, "r", "True", "PodsPendingEviction",
                     "1 pod needs to be evicted in 1 namespace.");
    pass(world, 9000);
    assert_condition(world, "r", "True", "PodsPendingEviction",
                     "1 pod needs to be evicted in 1 namespace."); /* not so soon */
    pass(world, 2000);
    assert_condition(world, "r", "True", "PodsPendingEviction",
                     "2 pods need to be evicted in 1 namespace.");
    pass(world, 50000);
    assert_condition(world, "r", "True", "PodsPendingEviction",
                     "1 pod needs to be evicted in 1 namespace. 1 pod evicted since starting the "
                     "controller.");
    pass(world, 50000);
    assert_condition(world, "r", "False", "Completed",
                     "2 pods evicted since starting the controller.");
}

static void a_rule_speaks_before_it_acts(void **state)
{
    struct world *world = *state;
    uint64_t n;

    open_control(world);
    add_pod(world, "p", "k", RESULT("d0", ""));
    n = world->api.front.n_requests;
    world->api.front.is_holding = true;
    (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "r", SELECT(""), "NoExecute"));
    assert_int_equal(world->api.front.n_requests, n + 1); /* its status, and nothing else */
    release_requests(world);
    settle(world);
    assert_true(is_evicted(world, "p"));
    assert_condition(world, "r", "True", "PodsPendingEviction",
                     "1 pod needs to be evicted in 1 namespace.");
    pass(world, 12000);
    assert_condition(world, "r", "False", "Completed",
                     "1 pod evicted since starting the controller.");
}

#define NONE_END                                                                                   \
    " if the effect was NoExecute. This information will not be updated again. Recreate the "      \
    "DeviceTaintRule to trigger an update."

static void a_rule_without_effect_is_a_rehearsal(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_SLICE, "",
               slice(world, "s", 1, "{name: d0}, {name: d1}, {name: d2}"));
    open_control(world);
    add_pod(world, "p", "k", RESULT("d0", ""));
    (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "r", SELECT(""), "None"));
    assert_condition(world, "r", "False", "NoEffect",
                     "3 published devices selected. 1 allocated device selected. 1 pod would be "
                     "evicted in 1 namespace" NONE_END);
    add_pod(world, "q", "l", RESULT("d1", ""));
    add_pod(world, "u", "m", RESULT("d2", TOLERATING("{operator: Exists, effect: NoExecute}")));
    pass(world, 60000);
    assert_condition(world, "r", "False", "NoEffect",
                     "3 published devices selected. 1 allocated device selected. 1 pod would be "
                     "evicted in 1 namespace" NONE_END);
    (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "r2", SELECT("device: d1"), "None"));
    assert_condition(world, "r2", "False", "NoEffect",
                     "1 published device selected. 1 allocated device selected. 1 pod would be "
                     "evicted in 1 namespace" NONE_END);
    (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "r3", SELECT(""), "None"));
    assert_condition(world, "r3", "False", "NoEffect",
                     "3 published devices selected. 3 allocated devices selected. 2 pods would be "
                     "evicted in 1 namespace" NONE_END);
    (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "r4", "", "None"));
    assert_condition(world, "r4", "False", "NoEffect",
                     "0 published devices selected. 0 allocated devices selected. 0 pods would be "
                     "evicted in 0 different namespaces" NONE_END);
    /* and then in earnest */
    change(world, DV_KIND_TAINT_RULE, "", "r", "{spec: {taint: {effect: NoExecute}}}");
    assert_true(is_evicted(world, "p"));
    assert_true(is_evicted(world, "q"));
    assert_false(is_evicted(world, "u"));
}

static void a_pod_under_several_rules_is_told_by_each_once(void **state)
{
    struct world *world = *state;

    open_control(world);
    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("l"));
    (void)make(
        world, DV_KIND_POD, "default",
        POD("p", "{name: e, resourceClaimName: k}, {name: f, resourceClaimName: l}", ON_NODE));
    allocate(world, "k", RESULT("d0", TOLERATING(FOR("60"))), "p");
    allocate(world, "l", RESULT("d1", TOLERATING(FOR("60"))), "p");
    (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "both", SELECT(""), "NoExecute"));
    (void)make(world, DV_KIND_TAINT_RULE, "",
               rule(world, "one", SELECT("device: d1"), "NoExecute"));
    assert_condition(world, "both", "True", "PodsPendingEviction",
                     "1 pod needs to be evicted in 1 namespace.");
    assert_condition(world, "one", "True", "PodsPendingEviction",
                     "1 pod needs to be evicted in 1 namespace.");
    pass(world, 75000);
    assert_condition(world, "both", "False", "Completed",
                     "1 pod evicted since starting the controller.");
    assert_condition(world, "one", "False", "Completed",
                     "1 pod evicted since starting the controller.");
    assert_int_equal(n_events(world, "p", EVICTED, MARKED), 1);
}

static void gates_that_are_off_evict_nobody(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "r", SELECT(""), "NoExecute"));
    add_pod(world, "p", "k", RESULT("d0", ""));
    world->options.gates.taint_rules = false;
    open_control(world);
    assert_false(is_evicted(world, "p"));
    close_control(world);
    world->options.gates = (struct dv_control_gates){.taint_rules = true};
    open_control(world);
    assert_false(is_evicted(world, "p"));
    assert_null(condition_of(world, "r"));
    close_control(world);
    world->options.gates = dv_control_gates_default();
    open_control(world);
    assert_true(is_evicted(world, "p")); /* what was there at the start counts */
}

static void a_rule_for_many_claims_is_worked_off(void **state)
{
    struct world *world = *state;
    const size_t n = 600;

    for (size_t i = 0; i < n; i++)
        add_pod(world, text(world, "p%zu", i), text(world, "k%zu", i), RESULT("d0", ""));
    (void)make(world, DV_KIND_NAMESPACE, "", "{metadata: {name: other}}");
    open_control(world);
    (void)make(world, DV_KIND_TAINT_RULE, "", rule(world, "r", SELECT(""), "NoExecute"));
    for (size_t i = 0; i < n; i++)
        assert_true(is_evicted(world, text(world, "p%zu", i)));
    assert_condition(world, "r", "True", "PodsPendingEviction",
                     "600 pods need to be evicted in 1 namespace.");
    pass(world, 12000);
    assert_condition(world, "r", "False", "Completed",
                     "600 pods evicted since starting the controller.");
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, start_world, end_world)
    const struct CMUnitTest tests[] = {
        ROW(a_taint_in_a_slice_evicts),
        ROW(rules_select_devices),
        ROW(what_does_not_evict),
        ROW(a_pod_that_comes_to_a_tainted_device_is_evicted),
        ROW(only_the_newest_generation_of_a_pool_counts),
        ROW(tolerations_delay),
        ROW(the_earliest_of_many_taints_counts),
        ROW(what_becomes_unnecessary_is_cancelled),
        ROW(a_pod_that_goes_by_itself_is_forgotten),
        ROW(a_changed_taint_changes_the_time),
        ROW(a_clock_that_is_set_is_noticed),
        ROW(a_rule_tells_what_it_does),
        ROW(a_rule_speaks_before_it_acts),
        ROW(a_rule_without_effect_is_a_rehearsal),
        ROW(a_pod_under_several_rules_is_told_by_each_once),
        ROW(gates_that_are_off_evict_nobody),
        ROW(a_rule_for_many_claims_is_worked_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
