/* What pods want of each other, in small worlds. */

#include "affinity/affinity.h"

#include "support/dvtest.h"

#include <stdbool.h>
#include <string.h>

#include "affinity/tests/affinity_world.h"
#include "base/buf.h"
#include "base/defs.h"
#include "resource/resource.h"

#define NEAR(terms)                                                                                \
    "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" terms "]}}"
#define APART(terms)                                                                               \
    "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" terms "]}}"
#define RATHER(side, weight, term)                                                                 \
    "affinity: {" side ": {preferredDuringSchedulingIgnoredDuringExecution: [{weight: " weight     \
    ", podAffinityTerm: " term "}]}}"
#define APP(value, key) "{labelSelector: {matchLabels: {app: " value "}}, topologyKey: " key "}"
#define SPREAD(more) "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, " more "}]"
#define ALL_WEB "labelSelector: {matchLabels: {app: web}}"
#define HARD "whenUnsatisfiable: DoNotSchedule, "
#define SOFT "whenUnsatisfiable: ScheduleAnyway, "

/* Three nodes: a and b in zone 1, c in zone 2; d has no zone. */
static const struct {
    const char *what;
    const char *there[6]; /* "node: pod" */
    const char *pod;
    const char *verdicts; /* of a, b, c, d: a letter each */
} rows[] = {
    {"without terms",                                                                 {"a {}"}, "{}", "...."},
    {"required affinity by zone",
     {"a {metadata: {labels: {app: web}}}"},
     "{spec: {" NEAR(APP("web",                                                                       "zone")) "}}",
     "..ll"},
    {"required affinity by host",
     {"b {metadata: {labels: {app: web}}}"},
     "{spec: {" NEAR(APP("web",                                                          "host")) "}}",
     "l.ll"},
    {"nobody is there, and it is no one of them",
     {"a {}"},
     "{spec: {" NEAR(APP("web",                                            "zone")) "}}",
     "llll"},
    {"the first of a group may be anywhere",
     {"a {}"},
     "{metadata: {labels: {app: web}}, spec: {" NEAR(APP("web",                                                                                        "zone")) "}}",
     "...l"},
    {"the second goes to the first",
     {"c {metadata: {labels: {app: web}}}"},
     "{metadata: {labels: {app: web}}, spec: {" NEAR(APP("web",                                                                                          "zone")) "}}",
     "ll.l"},
    {"a pod of another namespace is not meant",
     {"a {metadata: {namespace: other, labels: {app: web}}}"},
     "{spec: {" NEAR(APP("web","zone")) "}}",
     "llll"},
    {"unless the namespace is named",
     {"a {metadata: {namespace: other, labels: {app: web}}}"},
     "{spec: {" NEAR("{labelSelector: {matchLabels: {app: web}}, topologyKey: zone, "
                     "namespaces: [other]}") "}}",
     "..ll"},
    {"or selected",
     {"a {metadata: {namespace: other, labels: {app: web}}}"},
     "{spec: {" NEAR("{labelSelector: {matchLabels: {app: web}}, topologyKey: zone, "
                     "namespaceSelector: {matchLabels: {team: red}}}") "}}",
     "..ll"},
    {"and not selected",
     {"a {metadata: {namespace: other, labels: {app: web}}}"},
     "{spec: {" NEAR("{labelSelector: {matchLabels: {app: web}}, topologyKey: zone, "
                     "namespaceSelector: {matchLabels: {team: blue}}}") "}}",
     "llll"},
    {"all namespaces",
     {"a {metadata: {namespace: other, labels: {app: web}}}"},
     "{spec: {" NEAR("{labelSelector: {matchLabels: {app: web}}, topologyKey: zone, "
                     "namespaceSelector: {}}") "}}",
     "..ll"},
    {"no selector means nobody",
     {"a {metadata: {labels: {app: web}}}"},
     "{spec: {" NEAR("{topologyKey: zone}") "}}",
     "llll"},
    {"an empty one everybody",
     {"a {metadata: {labels: {app: web}}}"},
     "{spec: {" NEAR("{labelSelector: {}, topologyKey: zone}") "}}",
     "..ll"},
    {"a pod has to meet all terms",
     {"a {metadata: {labels: {app: web}}}", "c {metadata: {labels: {tier: t}}}"},
     "{spec: {" NEAR(
         APP("web",                                                          "zone") ", {labelSelector: {matchLabels: {tier: t}}, topologyKey: zone}") "}}",
     "llll"},
    {"and one meets them",
     {"a {metadata: {labels: {app: web, tier: t}}}"},
     "{spec: {" NEAR(
         APP("web",                     "zone") ", {labelSelector: {matchLabels: {tier: t}}, topologyKey: host}") "}}",
     ".lll"},
    {"by the own revision",
     {"a {metadata: {labels: {app: web, rev: '1'}}}",
      "c {metadata: {labels: {app: web, rev: '2'}}}"},
     "{metadata: {labels: {rev: '2'}}, spec: {" NEAR(
         "{labelSelector: {matchLabels: {app: web}}, topologyKey: zone, matchLabelKeys: "
         "[rev]}") "}}",
     "ll.l"},
    {"by any other revision",
     {"a {metadata: {labels: {app: web, rev: '1'}}}",
      "c {metadata: {labels: {app: web, rev: '2'}}}"},
     "{metadata: {labels: {rev: '2'}}, spec: {" NEAR(
         "{labelSelector: {matchLabels: {app: web}}, topologyKey: zone, mismatchLabelKeys: "
         "[rev, none]}") "}}",
     "..ll"},
    {"anti-affinity by host",
     {"a {metadata: {labels: {app: web}}}"},
     "{spec: {" APART(APP("web",                                                                                        "host")) "}}",
     "n..."},
    {"anti-affinity by zone",
     {"a {metadata: {labels: {app: web}}}"},
     "{spec: {" APART(APP("web",                                                                                        "zone")) "}}",
     "nn.."},
    {"a pod there wants distance",
     {"a {spec: {" APART(APP("web", "zone")) "}}"},
     "{metadata: {labels: {app: web}}}",                                                                                          "uu.."},
    {"and means another",
     {"a {spec: {" APART(APP("web", "zone")) "}}"},
     "{metadata: {labels: {app: db}}}","...."},
    {"or another namespace",
     {"a {metadata: {namespace: other}, spec: {" APART(APP("web", "zone")) "}}"},
     "{metadata: {labels: {app: web}}}",                                                              "...."},
    {"preferred terms forbid nothing",
     {"a {metadata: {labels: {app: web}}, spec: {" RATHER("podAntiAffinity", "5",
                                                          APP("web", "zone")) "}}"},
     "{metadata: {labels: {app: web}}}",                                                               "...."},
    {"spread over zones",
     {"a {metadata: {labels: {app: web}}}"},
     "{metadata: {labels: {app: web}}, spec: {" SPREAD(HARD ALL_WEB) "}}",
     "ss.k"},
    {"one that is not counted itself",
     {"a {metadata: {labels: {app: web}}}"},
     "{spec: {" SPREAD(HARD ALL_WEB) "}}",
     "...k"},
    {"a pod that ends is left out",
     {"a {metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', labels: {app: web}}}"},
     "{metadata: {labels: {app: web}}, spec: {" SPREAD(HARD ALL_WEB) "}}",
     "...k"},
    {"too few domains",
     {"a {metadata: {labels: {app: web}}}", "c {metadata: {labels: {app: web}}}"},
     "{metadata: {labels: {app: web}}, spec: {" SPREAD(HARD "minDomains: 3, " ALL_WEB) "}}",
     "sssk"},
    {"enough domains",
     {"a {metadata: {labels: {app: web}}}", "c {metadata: {labels: {app: web}}}"},
     "{metadata: {labels: {app: web}}, spec: {" SPREAD(HARD "minDomains: 2, " ALL_WEB) "}}",
     "...k"},
    {"a domain that the pod cannot be in does not count",
     {"a {metadata: {labels: {app: web}}}"},
     "{metadata: {labels: {app: web}}, spec: {nodeSelector: {zone: '1'}, " SPREAD(
         HARD ALL_WEB) "}}",
     "...k"},
    {"but counts when affinity is ignored",
     {"a {metadata: {labels: {app: web}}}"},
     "{metadata: {labels: {app: web}}, spec: {nodeSelector: {zone: '1'}, " SPREAD(
         HARD "nodeAffinityPolicy: Ignore, " ALL_WEB) "}}",
     "ss.k"},
    {"a tainted domain counts",
     {"a {metadata: {labels: {app: web}}}"},
     "{metadata: {labels: {app: web}}, spec: {" SPREAD(HARD
                                                       "nodeTaintsPolicy: Ignore, " ALL_WEB) "}}",
     "ss.k"},
    {"unless taints are honored",
     {"a {metadata: {labels: {app: web}}}"},
     "{metadata: {labels: {app: web}}, spec: {" SPREAD(HARD
                                                       "nodeTaintsPolicy: Honor, " ALL_WEB) "}}",
     "...k"},
    {"and tolerated",
     {"a {metadata: {labels: {app: web}}}"},
     "{metadata: {labels: {app: web}}, spec: {tolerations: [{key: gpu, operator: "
     "Exists}], " SPREAD(HARD "nodeTaintsPolicy: Honor, " ALL_WEB) "}}",
     "ss.k"},
    {"by the own revision alone",
     {"a {metadata: {labels: {app: web, rev: '1'}}}"},
     "{metadata: {labels: {app: web, rev: '2'}}, spec: {" SPREAD(
         HARD "matchLabelKeys: [rev], " ALL_WEB) "}}",
     "...k"},
    {"a wish forbids nothing",
     {"a {metadata: {labels: {app: web}}}"},
     "{metadata: {labels: {app: web}}, spec: {" SPREAD(SOFT ALL_WEB) "}}",
     "...."},
};

static void a_node_is_right_by_the_pods_around_it(void **state)
{
    static const char letters[] = {
        [DV_AFFINITY_FITS] = '.',   [DV_AFFINITY_NO_KEY] = 'k',   [DV_AFFINITY_SKEWED] = 's',
        [DV_AFFINITY_LONELY] = 'l', [DV_AFFINITY_TOO_NEAR] = 'n', [DV_AFFINITY_UNWANTED] = 'u'};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct affinity_world *world = affinity_world_new();
        struct dv_object *pod = affinity_pod(world, rows[i].pod);
        struct dv_affinity_wants *wants;
        char found[5] = {0};

        affinity_namespace(world, "other", "red");
        for (size_t j = 0; j < DV_COUNT(rows[i].there) && rows[i].there[j]; j++)
            affinity_place(world, rows[i].there[j][0], affinity_pod(world, rows[i].there[j] + 2));
        wants = affinity_wants(world, pod);
        for (size_t j = 0; j < 4; j++)
            found[j] = letters[dv_affinity_check(wants, &world->nodes[j])];
        if (strcmp(found, rows[i].verdicts) != 0)
            fail_msg("%s: %s instead of %s", rows[i].what, found, rows[i].verdicts);
        dv_affinity_wants_free(world->index, wants);
        affinity_world_free(world);
    }
}

static const struct {
    const char *there[4];
    const char *pod;
    int64_t scores[4];
} attractions[] = {
    {{"a {metadata: {labels: {app: web}}}"}, "{}", {0, 0, 0, 0}                           },
    {{"a {metadata: {labels: {app: web}}}"},
     "{spec: {" RATHER("podAffinity",              "5",                                     APP("web", "zone")) "}}",
     {5, 5, 0, 0}},
    {{"a {metadata: {labels: {app: web}}}", "b {metadata: {labels: {app: web}}}"},
     "{spec: {" RATHER("podAntiAffinity",                                 "5",                                                                        APP("web", "zone")) "}}",
     {-10, -10, 0, 0}},
    {{"c {spec: {" RATHER("podAffinity", "7", APP("web", "host")) "}}"},
     "{metadata: {labels: {app: web}}}",{0, 0, 7, 0}},
    {{"c {spec: {" RATHER("podAntiAffinity", "7", APP("web", "host")) "}}"},
     "{metadata: {labels: {app: web}}}",                           {0, 0, -7, 0}},
    {{"c {metadata: {labels: {app: web}}, spec: {" NEAR(APP("web", "zone")) "}}"},
     "{metadata: {labels: {app: web}}}",                                                          {0, 0, 1, 0}                                                                                                },
};

static void preferences_of_both_sides_attract_or_repel(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(attractions); i++) {
        struct affinity_world *world = affinity_world_new();
        struct dv_affinity_wants *wants;

        for (size_t j = 0; j < 4 && attractions[i].there[j]; j++)
            affinity_place(world, attractions[i].there[j][0],
                           affinity_pod(world, attractions[i].there[j] + 2));
        wants = affinity_wants(world, affinity_pod(world, attractions[i].pod));
        for (size_t j = 0; j < 4; j++)
            assert_int_equal(dv_affinity_attraction(wants, &world->nodes[j]),
                             attractions[i].scores[j]);
        dv_affinity_wants_free(world->index, wants);
        affinity_world_free(world);
    }
}

static void a_wish_to_be_spread_prefers_the_emptier_domain(void **state)
{
    struct affinity_world *world = affinity_world_new();
    struct dv_affinity_wants *wants;

    (void)state;
    affinity_place(world, 'a', affinity_pod(world, "{metadata: {labels: {app: web}}}"));
    wants = affinity_wants(
        world,
        affinity_pod(world, "{metadata: {labels: {app: web}}, spec: {" SPREAD(SOFT ALL_WEB) "}}"));
    assert_int_equal(dv_affinity_crowding(wants, &world->nodes[0]), 1);
    assert_int_equal(dv_affinity_crowding(wants, &world->nodes[1]), 1);
    assert_int_equal(dv_affinity_crowding(wants, &world->nodes[2]), 0);
    assert_int_equal(dv_affinity_crowding(wants, &world->nodes[3]), -1);
    dv_affinity_wants_free(world->index, wants);
    affinity_world_free(world);
}

static void what_changes_is_told_and_a_trial_is_not(void **state)
{
    struct affinity_world *world = affinity_world_new();
    struct dv_affinity_wants *wants;
    uint64_t before;

    (void)state;
    wants = affinity_wants(world, affinity_pod(world, "{spec: {" APART(APP("web", "host")) "}}"));
    before = dv_affinity_changed(wants);
    affinity_place(world, 'a', affinity_pod(world, "{metadata: {labels: {app: db}}}"));
    assert_int_equal(dv_affinity_changed(wants), before);
    affinity_place(world, 'a', affinity_pod(world, "{metadata: {labels: {app: web}}}"));
    assert_true(dv_affinity_changed(wants) > before);
    assert_int_equal(dv_affinity_check(wants, &world->nodes[0]), DV_AFFINITY_TOO_NEAR);
    assert_true(dv_affinity_is_resolvable(DV_AFFINITY_TOO_NEAR));
    before = dv_affinity_changed(wants);
    dv_affinity_set_trial(world->index, true);
    affinity_unplace(world, world->n_placed - 1);
    assert_int_equal(dv_affinity_check(wants, &world->nodes[0]), DV_AFFINITY_FITS);
    dv_affinity_set_trial(world->index, false);
    assert_int_equal(dv_affinity_changed(wants), before);
    dv_affinity_wants_free(world->index, wants);
    affinity_world_free(world);
}

static void a_pod_with_too_many_terms_fits_nowhere(void **state)
{
    struct affinity_world *world = affinity_world_new();
    struct dv_affinity_wants *wants;
    dv_str terms = DV_STR("");

    (void)state;
    for (unsigned i = 0; i < 33; i++)
        terms = dv_str_printf(world->arena, "%.*s%s{labelSelector: {}, topologyKey: 'k%u'}",
                              DV_FMT(terms), i > 0 ? ", " : "", i);
    wants = affinity_wants(
        world,
        affinity_pod(world, dv_str_to_c(dv_str_printf(world->arena, "{spec: {" NEAR("%.*s") "}}",
                                                      DV_FMT(terms)),
                                        world->arena)));
    assert_int_equal(dv_affinity_check(wants, &world->nodes[0]), DV_AFFINITY_TOO_MUCH);
    assert_str(dv_affinity_reason(DV_AFFINITY_LONELY), "node(s) didn't match pod affinity rules");
    dv_affinity_wants_free(world->index, wants);
    affinity_world_free(world);
}

/* ---- nodes by name ---- */

#define NEEDS(terms)                                                                               \
    "{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "           \
    "{nodeSelectorTerms: [" terms "]}}}}}"

static const struct dv_api_pod_spec *read_spec(struct affinity_world *world, const char *yaml)
{
    return &((const struct dv_api_pod *)affinity_pod(world, yaml)->value)->spec;
}

#define NAMED(op, names)                                                                           \
    "{matchFields: [{key: metadata.name, operator: " op ", values: [" names "]}]}"

static const struct {
    const char *pod;
    const char *names; /* NULL: any node will do */
} pinned[] = {
    {"{}",                                                      NULL                                                                      },
    {NEEDS("{matchExpressions: [{key: a, operator: Exists}]}"), NULL                                                                      },
    {NEEDS(NAMED("In",                                          "n1")),                                                                     "n1"},
    {NEEDS(NAMED("NotIn",                                                         "n1")),                                                                                                                 NULL},
    {NEEDS(NAMED("In",                                                     "n1") ", " NAMED("In",               "n2")), "n1 n2"},
    {NEEDS(NAMED("In","n1") ", " NAMED("In",                                      "n1")), "n1"},
    {NEEDS(NAMED("In",                                                         "n1") ", {matchExpressions: [{key: a, operator: Exists}]}"),                                                                                                                    NULL},
    {NEEDS("{matchFields: [{key: metadata.name, operator: In, values: [n1, n2]}, {key: "
           "metadata.name, operator: In, values: [n2, n3]}]}"),
     "n2"                                                                                   },
    {NEEDS("{matchFields: [{key: metadata.name, operator: In, values: [n1]}, {key: "
           "metadata.name, operator: In, values: [n2]}]}"),
     ""},
};

static void a_pod_can_name_its_nodes(void **state)
{
    struct affinity_world *world = affinity_world_new();
    struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, 4096);
    for (size_t i = 0; i < DV_COUNT(pinned); i++) {
        const struct dv_api_pod_spec *pod = read_spec(world, pinned[i].pod);
        struct dv_affinity_names names;

        assert_int_equal(dv_affinity_pinned(pod, world->arena, &names), pinned[i].names != NULL);
        dv_buf_clear(&buf);
        for (size_t j = 0; j < names.n; j++)
            dv_buf_printf(&buf, "%s%.*s", j > 0 ? " " : "", DV_FMT(names.v[j]));
        assert_str(dv_buf_str(&buf), pinned[i].names ? pinned[i].names : "");
    }
    assert_true(
        dv_affinity_is_pinned_elsewhere(read_spec(world, NEEDS(NAMED("In", "n1"))), DV_STR("n2")));
    assert_false(
        dv_affinity_is_pinned_elsewhere(read_spec(world, NEEDS(NAMED("In", "n1"))), DV_STR("n1")));
    assert_false(dv_affinity_is_pinned_elsewhere(read_spec(world, "{}"), DV_STR("n1")));
    dv_buf_fini(&buf);
    affinity_world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_is_right_by_the_pods_around_it),
        cmocka_unit_test(preferences_of_both_sides_attract_or_repel),
        cmocka_unit_test(a_wish_to_be_spread_prefers_the_emptier_domain),
        cmocka_unit_test(what_changes_is_told_and_a_trial_is_not),
        cmocka_unit_test(a_pod_with_too_many_terms_fits_nowhere),
        cmocka_unit_test(a_pod_can_name_its_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
