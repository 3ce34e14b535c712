/* test_plans.c - what is decided about pods and claims, as tables. */
#include "support/dvtest.h"

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "control/control.h"
#include "control/generate.h"
#include "control/release.h"
#include "control/uses.h"
#include "resource/resource.h"
#include "support/growth.h"
#include "json/json.h"

static int set_up(void **state)
{
    *state = dv_arena_new();
    return 0;
}

static int tear_down(void **state)
{
    dv_arena_free(*state);
    return 0;
}

static void *read_as(const struct dv_message *message, const char *yaml, struct dv_arena *arena)
{
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, arena, &err);

    assert_ok(doc, &err);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err), &err);
    return value;
}

static struct dv_api_pod *pod_of(const char *yaml, struct dv_arena *arena)
{
    return read_as(&dv_message_pod, yaml, arena);
}

static struct dv_api_resource_claim *claim_of(const char *yaml, struct dv_arena *arena)
{
    return read_as(&dv_message_resource_claim, yaml, arena);
}

/* ---- pods ---- */

static void pods_are_done_or_not(void **state)
{
    static const struct {
        const char *pod;
        bool is_done;
    } rows[] = {
        {"{}",                                                                             false},
        {"{status: {phase: Pending}}",                                                     false},
        {"{status: {phase: Running}}",                                                     false},
        {"{status: {phase: Succeeded}}",                                                   true },
        {"{status: {phase: Failed}}",                                                      true },
        {"{metadata: {deletionTimestamp: \"2024-01-01T00:00:00Z\"}}",                      true },
        {"{metadata: {deletionTimestamp: \"2024-01-01T00:00:00Z\"}, spec: {nodeName: a}}", false},
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_int_equal(dv_control_pod_is_done(pod_of(rows[i].pod, *state)), rows[i].is_done);
}

static void admin_access_is_seen(void **state)
{
    static const struct {
        const char *claim;
        bool wants_admin;
        bool wants_list;
    } rows[] = {
        {"{}",                                                     false, false},
        {"{requests: [{name: r, exactly: {deviceClassName: c}}]}", false, false},
        {"{requests: [{name: r, exactly: {adminAccess: false}}]}", false, false},
        {"{requests: [{name: r, exactly: {adminAccess: true}}]}",  true,  false},
        {"{requests: [{name: r, firstAvailable: [{name: s}]}]}",   false, true },
        {"{requests: [{name: r, firstAvailable: [{name: s}]}, {name: q, exactly: {adminAccess: "
         "true}}]}",                                      true,  true },
    };

    assert_false(dv_control_wants_admin(NULL));
    assert_false(dv_control_wants_list(NULL));
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_api_device_claim *devices =
            read_as(&dv_message_device_claim, rows[i].claim, *state);

        assert_int_equal(dv_control_wants_admin(devices), rows[i].wants_admin);
        assert_int_equal(dv_control_wants_list(devices), rows[i].wants_list);
    }
}

static void names_are_shortened_in_proportion(void **state)
{
    static const struct {
        const char *pod;
        const char *entry;
        const char *name;
    } rows[] = {
        {"p",                                                                      "e",   "p-e-"},
 /* 55 characters: 57 with the dashes */
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",                   "eee",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-eee-"                            },
 /* 56: 53 * 57 / 58 = 52, 3 * 57 / 58 = 2 */
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",                  "eee",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-ee"                              },
 /* nothing is left of the entry, and the pod's part ends before its dot */
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaa.aaaaaaaaaaa", "e",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-"                              },
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_str(dv_control_generate_name(dv_str_from_c(rows[i].pod),
                                            dv_str_from_c(rows[i].entry), *state),
                   rows[i].name);
}

static void names_are_the_same_for_the_same(void **state)
{
    dv_str name = dv_control_claim_name(DV_STR("p-e-"), DV_STR("u"), DV_STR("e"), 0, *state);
    dv_str others[] = {
        dv_control_claim_name(DV_STR("p-e-"), DV_STR("v"), DV_STR("e"), 0, *state),
        dv_control_claim_name(DV_STR("p-e-"), DV_STR("u"), DV_STR("f"), 0, *state),
        dv_control_claim_name(DV_STR("p-e-"), DV_STR("u"), DV_STR("e"), 1, *state),
    };

    assert_str(name, "p-e-tcl5w"); /* also in the next process */
    for (size_t i = 0; i < DV_COUNT(others); i++) {
        assert_int_equal(others[i].n, name.n);
        assert_false(dv_str_eq(others[i], name));
    }
}

/* ---- the plan of a pod ---- */

struct found {
    const struct dv_api_resource_claim *claim;
    const struct dv_api_resource_claim *generated;
    const struct dv_api_resource_claim_template *template;
};

static const struct dv_api_resource_claim *find_claim(void *ctx, dv_str namespace, dv_str name)
{
    const struct found *found = ctx;

    assert_str(namespace, "ns");
    return found->claim && dv_str_eq(found->claim->metadata.name, name) ? found->claim : NULL;
}

static const struct dv_api_resource_claim *find_generated(void *ctx, dv_str namespace, dv_str uid,
                                                          dv_str entry)
{
    assert_str(namespace, "ns");
    assert_str(uid, "u");
    assert_str(entry, "e");
    return ((const struct found *)ctx)->generated;
}

static const struct dv_api_resource_claim_template *find_template(void *ctx, dv_str namespace,
                                                                  dv_str name)
{
    assert_str(namespace, "ns");
    assert_str(name, "t");
    return ((const struct found *)ctx)->template;
}

#define OWNED(uid) "ownerReferences: [{apiVersion: v1, kind: Pod, uid: " uid ", controller: true}]"
#define STATUS(list) ", status: {resourceClaimStatuses: [" list "]}"

static void entries_are_kept_adopted_or_created(void **state)
{
    static const struct {
        const char *entry;
        const char *status;
        const char *claim;     /* by its name */
        const char *generated; /* by its owner */
        bool has_template;
        enum dv_entry_step step;
        const char *name;  /* of the claim; "" when it is not known */
        const char *patch; /* of the status; "" when there is none */
    } rows[] = {
  /* named */
        {"{name: e, resourceClaimName: a}",         "",                                        NULL, NULL, true,  DV_ENTRY_KEEP,   "a", ""                                                 },
 /* written down and there */
        {"{name: e, resourceClaimTemplateName: t}", STATUS("{name: e, resourceClaimName: a}"),
         "{metadata: {name: a, " OWNED("u") "}}",                                                    NULL, true,  DV_ENTRY_KEEP,   "a", ""                                                 },
 /* none is needed */
        {"{name: e, resourceClaimTemplateName: t}", STATUS("{name: e}"),                       NULL, NULL, true,
         DV_ENTRY_KEEP,                                                                                                            "",  ""                                                 },
 /* not yet */
        {"{name: e, resourceClaimTemplateName: t}", "",                                        NULL, NULL, true,  DV_ENTRY_CREATE, "",
         "[{\"name\":\"e\",\"resourceClaimName\":\"made\"}]"                                                                                                                               },
 /* there, but not written down */
        {"{name: e, resourceClaimTemplateName: t}", "",                                        NULL,
         "{metadata: {name: b, " OWNED("u") "}}",                                                          true,  DV_ENTRY_ADOPT,  "b",
         "[{\"name\":\"e\",\"resourceClaimName\":\"b\"}]"                                                                                                                                  },
 /* gone */
        {"{name: e, resourceClaimTemplateName: t}", STATUS("{name: e, resourceClaimName: a}"), NULL,
         NULL,                                                                                             true,  DV_ENTRY_CREATE, "",  "[{\"name\":\"e\",\"resourceClaimName\":\"made\"}]"},
 /* gone from view, but we have just made it: nothing changes */
        {"{name: e, resourceClaimTemplateName: t}", STATUS("{name: e, resourceClaimName: b}"), NULL,
         "{metadata: {name: b, " OWNED("u") "}}",                                                          true,  DV_ENTRY_ADOPT,  "b", ""                                                 },
 /* another's; what else is in the status stays */
        {"{name: e, resourceClaimTemplateName: t}",
         STATUS("{name: x}, {name: e, resourceClaimName: a}"),
         "{metadata: {name: a, " OWNED("v") "}}",                                                    NULL, true,  DV_ENTRY_CREATE, "",
         "[{\"name\":\"x\"},{\"name\":\"e\",\"resourceClaimName\":\"made\"}]"                                                                                                              },
 /* no template */
        {"{name: e, resourceClaimTemplateName: t}", "",                                        NULL, NULL, false, DV_ENTRY_STUCK,  "",  ""                                                 },
    };
    const struct dv_control_gates gates = dv_control_gates_default();
    struct dv_arena *arena = *state;

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct found found = {
            .claim = rows[i].claim ? claim_of(rows[i].claim, arena) : NULL,
            .generated = rows[i].generated ? claim_of(rows[i].generated, arena) : NULL,
            .template = rows[i].has_template
                            ? read_as(&dv_message_resource_claim_template, "{}", arena)
                            : NULL};
        const struct dv_control_lookup lookup = {&found, find_claim, find_generated, find_template};
        const struct dv_api_pod *pod =
            pod_of(dv_str_to_c(dv_str_printf(arena,
                                             "{metadata: {name: p, namespace: ns, uid: u}, spec: "
                                             "{resourceClaims: [%s]}%s}",
                                             rows[i].entry, rows[i].status),
                               arena),
                   arena);
        struct dv_api_pod_status status = {0};
        struct dv_pod_plan plan;
        struct dv_json *patch;
        struct dv_buf text;
        bool is_change;

        dv_control_plan_pod(pod, &lookup, &gates, arena, &plan);
        assert_int_equal(plan.n_entries, 1);
        assert_int_equal(plan.entries[0].step, rows[i].step);
        assert_int_equal(plan.is_stuck, rows[i].step == DV_ENTRY_STUCK);
        assert_str(plan.entries[0].claim, rows[i].name);
        if (rows[i].step == DV_ENTRY_CREATE)
            plan.entries[0].claim = DV_STR("made");
        is_change = dv_control_claim_statuses(pod, &plan, arena, &status);
        assert_int_equal(is_change, rows[i].patch[0] != '\0');
        if (!is_change)
            continue;
        patch = dv_control_claim_patch(pod, &status, arena);
        dv_buf_init(&text, SIZE_MAX);
        dv_json_print(
            dv_json_get(dv_json_get(patch, DV_STR("status")), DV_STR("resourceClaimStatuses")),
            NULL, &text);
        assert_str(dv_buf_str(&text), rows[i].patch);
        dv_buf_fini(&text);
    }
}

static void a_stuck_entry_holds_up_those_behind_it(void **state)
{
    const struct dv_control_gates gates = dv_control_gates_default();
    struct found found = {0};
    const struct dv_control_lookup lookup = {&found, find_claim, find_generated, find_template};
    struct dv_pod_plan plan;

    dv_control_plan_pod(
        pod_of("{metadata: {name: p, namespace: ns, uid: u}, spec: {resourceClaims: [{name: a, "
               "resourceClaimName: x}, {name: e, resourceClaimTemplateName: t}, {name: b, "
               "resourceClaimName: x}]}}",
               *state),
        &lookup, &gates, *state, &plan);
    assert_true(plan.is_stuck);
    assert_int_equal(plan.n_entries, 2);
    assert_err(&plan.err, DV_NOT_FOUND, "resource claim template \"t\" not found");
}

static void work_is_needed_or_not(void **state)
{
    static const struct {
        const char *pod;
        const char *claim;
        bool needs_work;
    } rows[] = {
        {"{}",                                                                       NULL, false},
        {"{spec: {resourceClaims: [{name: e, resourceClaimName: a}]}}",              NULL, false},
        {"{spec: {resourceClaims: [{name: e, resourceClaimTemplateName: t}]}}",      NULL, true },
        {"{metadata: {deletionTimestamp: \"2024-01-01T00:00:00Z\"}, spec: {nodeName: b, "
         "resourceClaims: [{name: e, resourceClaimTemplateName: t}]}}",     NULL, false},
        {"{spec: {resourceClaims: [{name: e, resourceClaimTemplateName: t}]}, status: {phase: "
         "Failed}}",                                                        NULL, false},
        {"{spec: {nodeName: b, resourceClaims: [{name: e, resourceClaimName: a}]}}",
         "{metadata: {name: a}}",                                                          false},
        {"{spec: {nodeName: b, resourceClaims: [{name: e, resourceClaimName: a}]}}",
         "{metadata: {name: a}, status: {allocation: {}}}",                                true },
        {"{spec: {nodeName: b, resourceClaims: [{name: e, resourceClaimName: a}]}}",
         "{metadata: {name: a}, status: {allocation: {}, reservedFor: [{uid: u}]}}",       false},
        {"{spec: {nodeName: b, resourceClaims: [{name: e, resourceClaimName: a}]}}",
         "{metadata: {name: a, deletionTimestamp: \"2024-01-01T00:00:00Z\"}, status: {allocation: "
         "{}}}",                                                                           false},
        {"{spec: {resourceClaims: [{name: e, resourceClaimName: a}]}}",
         "{metadata: {name: a}, status: {allocation: {}}}",                                false},
        {"{spec: {resourceClaims: [{name: e, resourceClaimTemplateName: t}]}" STATUS(
             "{name: e, resourceClaimName: a}") "}",
         "{metadata: {name: a, " OWNED("u") "}}",                                          false},
        {"{spec: {resourceClaims: [{name: e, resourceClaimTemplateName: t}]}" STATUS(
             "{name: e, resourceClaimName: a}") "}",
         "{metadata: {name: a, " OWNED("v") "}}",                                          true },
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct found found = {.claim = rows[i].claim ? claim_of(rows[i].claim, *state) : NULL};
        const struct dv_control_lookup lookup = {&found, find_claim, find_generated, find_template};
        struct dv_api_pod *pod = pod_of(rows[i].pod, *state);

        pod->metadata.namespace = DV_STR("ns");
        pod->metadata.uid = DV_STR("u");
        if (dv_control_needs_work(pod, &lookup) != rows[i].needs_work)
            fail_msg("%s", rows[i].pod);
    }
}

/* ---- pods with many claims ---- */

/* A pod with so many claims, all of them made, whose status names them from the last to the first;
 * the plan has lost them all. */
static void plan_many(void *ctx, size_t n)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct found found = {.claim = ctx};
    const struct dv_control_lookup lookup = {&found, find_claim, find_generated, find_template};
    const struct dv_control_gates gates = {0};
    struct dv_api_pod *pod = pod_of("{metadata: {name: p, namespace: ns, uid: u}}", arena);
    struct dv_api_pod_status status = {0};
    struct dv_pod_plan plan;

    pod->spec.resource_claims = DV_NEW_ARRAY(arena, struct dv_api_pod_resource_claim, n);
    pod->status.resource_claim_statuses =
        DV_NEW_ARRAY(arena, struct dv_api_pod_resource_claim_status, n);
    pod->spec.n_resource_claims = pod->status.n_resource_claim_statuses = n;
    for (size_t i = 0; i < n; i++) {
        dv_str name = dv_str_printf(arena, "e%08zu", i);

        pod->spec.resource_claims[i].name = name;
        pod->spec.resource_claims[i].resource_claim_template_name = DV_STR("t");
        pod->status.resource_claim_statuses[n - 1 - i].name = name;
        pod->status.resource_claim_statuses[n - 1 - i].resource_claim_name = DV_STR("a");
    }
    assert_false(dv_control_needs_work(pod, &lookup));
    dv_control_plan_pod(pod, &lookup, &gates, arena, &plan);
    assert_int_equal(plan.n_entries, n);
    for (size_t i = 0; i < n; i++)
        plan.entries[i].step = DV_ENTRY_ADOPT;
    assert_false(
        dv_control_claim_statuses(pod, &plan, arena, &status)); /* it says all that already */
}

static void many_claims_cost_what_they_are(void **state)
{
    assert_true(growth_is_linear(plan_many,
                                 claim_of("{metadata: {name: a, " OWNED("u") "}}", *state), 2000));
}

/* ---- the release of a claim ---- */

static void consumers_are_judged(void **state)
{
    static const struct {
        const char *consumer;
        const char *pod;
        enum dv_consumer verdict;
    } rows[] = {
        {"{resource: pods, uid: u}",                                   NULL,                                            DV_CONSUMER_UNKNOWN},
        {"{resource: pods, uid: u}",                                   "{metadata: {uid: u}}",                          DV_CONSUMER_STAYS  },
        {"{resource: pods, uid: u}",                                   "{metadata: {uid: v}}",                          DV_CONSUMER_GONE   },
        {"{resource: pods, uid: u}",                                   "{metadata: {uid: u}, status: {phase: Failed}}",
         DV_CONSUMER_GONE                                                                                                                  },
        {"{apiGroup: example.com, resource: pods, uid: u}",            NULL,                                            DV_CONSUMER_STAYS  },
        {"{apiGroup: scheduling.k8s.io, resource: podgroups, uid: u}", NULL,                                            DV_CONSUMER_STAYS  },
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_int_equal(
            dv_control_judge_consumer(
                read_as(&dv_message_resource_claim_consumer_reference, rows[i].consumer, *state),
                rows[i].pod ? pod_of(rows[i].pod, *state) : NULL),
            rows[i].verdict);
}

#define FIN "finalizers: [" DV_CLAIM_FINALIZER "]"
#define GOING "deletionTimestamp: \"2024-01-01T00:00:00Z\""
#define TWO "reservedFor: [{uid: a}, {uid: b}]"

static void claims_are_released(void **state)
{
    static const struct {
        const char *claim;
        const char *stays; /* a character for each reservation: '1' stays */
        bool writes_status;
        size_t n_left;
        bool keeps_allocation; /* in what is written */
        bool removes_finalizer;
        bool is_unused;
        bool is_leftover;
    } rows[] = {
        {"{metadata: {" FIN "}, status: {allocation: {}, " TWO "}}",            "11", false, 0, false, false,
         false,                                                                                                      false},
        {"{metadata: {" FIN "}, status: {allocation: {}, " TWO "}}",            "01", true,  1, true,  true,
         false,                                                                                                      false},
        {"{metadata: {" FIN "}, status: {allocation: {}, " TWO "}}",            "00", true,  0, false, true,
         true,                                                                                                       false},
 /* not allocated by a scheduler that we know: the allocation is not ours to take */
        {"{status: {allocation: {}, " TWO "}}",                                 "00", true,  0, true,  false, true,  false},
        {"{metadata: {" FIN "}, status: {" TWO "}}",                            "00", true,  0, false, true,  true,  false},
        {"{metadata: {" FIN ", " GOING "}, status: {allocation: {}, " TWO "}}", "00", true,  0,
         false,                                                                                        true,  true,  false},
        {"{metadata: {" FIN ", " GOING "}, status: {allocation: {}, " TWO "}}", "10", true,  1, true,
         true,                                                                                                false, false},
        {"{metadata: {" FIN ", " GOING "}, status: {allocation: {}}}",          "",   true,  0, false, true,
         true,                                                                                                       false},
        {"{metadata: {" FIN ", " GOING "}}",                                    "",   false, 0, false, true,  true,  false},
 /* allocated in advance */
        {"{metadata: {" FIN "}, status: {allocation: {}}}",                     "",   false, 0, false, false, true,
         false                                                                                                            },
        {"{metadata: {" FIN "}}",                                               "",   false, 0, false, false, true,  true },
        {"{}",                                                                  "",   false, 0, false, false, true,  false},
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_api_resource_claim *claim = claim_of(rows[i].claim, *state);
        struct dv_release release;
        bool stays[2] = {false};

        for (size_t j = 0; rows[i].stays[j]; j++)
            stays[j] = rows[i].stays[j] == '1';
        dv_control_plan_release(claim, stays, *state, &release);
        assert_int_equal(release.status != NULL, rows[i].writes_status);
        if (release.status) {
            assert_int_equal(release.status->status.n_reserved_for, rows[i].n_left);
            assert_int_equal(release.status->status.allocation != NULL, rows[i].keeps_allocation);
        }
        assert_int_equal(release.removes_finalizer, rows[i].removes_finalizer);
        assert_int_equal(release.is_unused, rows[i].is_unused);
        assert_int_equal(release.is_leftover, rows[i].is_leftover);
    }
}

static void other_finalizers_stay(void **state)
{
    const struct dv_api_resource_claim *claim =
        claim_of("{metadata: {finalizers: [a, " DV_CLAIM_FINALIZER ", b]}}", *state);
    const struct dv_api_resource_claim *left = dv_control_without_finalizer(claim, *state);

    assert_int_equal(left->metadata.n_finalizers, 2);
    assert_str(left->metadata.finalizers[0], "a");
    assert_str(left->metadata.finalizers[1], "b");
}

static void claims_become_garbage(void **state)
{
    static const struct {
        const char *claim;
        const char *pod;
        bool is_garbage;
    } rows[] = {
        {"{}",                      NULL,                                               false}, /* the collector's */
        {"{}",                      "{metadata: {uid: u}}",                             false},
        {"{}",                      "{metadata: {uid: v}}",                             true },
        {"{}",                      "{metadata: {uid: u}, status: {phase: Succeeded}}", true },
        {"{metadata: {" GOING "}}", "{metadata: {uid: v}}",                             false},
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_int_equal(dv_control_is_garbage(claim_of(rows[i].claim, *state), DV_STR("u"),
                                               rows[i].pod ? pod_of(rows[i].pod, *state) : NULL),
                         rows[i].is_garbage);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ROW(pods_are_done_or_not),
        ROW(admin_access_is_seen),
        ROW(names_are_shortened_in_proportion),
        ROW(names_are_the_same_for_the_same),
        ROW(entries_are_kept_adopted_or_created),
        ROW(a_stuck_entry_holds_up_those_behind_it),
        ROW(work_is_needed_or_not),
        ROW(many_claims_cost_what_they_are),
        ROW(consumers_are_judged),
        ROW(claims_are_released),
        ROW(other_finalizers_stay),
        ROW(claims_become_garbage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
