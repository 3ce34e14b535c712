/* What the status of a PodDisruptionBudget says, as a table. */
#include "support/dvtest.h"

#include <stdbool.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/budget.h"
#include "base/arena.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "json/json.h"

static const void *read_as(const struct dv_message *message, dv_str yaml, struct dv_arena *arena)
{
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(yaml, NULL, arena, &err);

    assert_ok(doc, &err);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err), &err);
    return value;
}

#define POD(label, ready)                                                                          \
    "{metadata: {labels: {app: " label "}, ownerReferences: [{kind: ReplicaSet, name: r, uid: u, " \
    "controller: true}]}, status: {conditions: [{type: Ready, status: '" ready "'}]}}"

/* Pods of a ReplicaSet of five, which a Deployment of six has: three are the budget's, two work. */
static const char *const pods[] = {
    POD("a", "True"),
    POD("a", "True"),
    POD("a", "False"),
    POD("b", "True"),
};
#define SET                                                                                        \
    "{metadata: {name: r, uid: u, ownerReferences: [{kind: Deployment, name: d, uid: v, "          \
    "controller: true}]}, spec: {replicas: 5}}"
#define DEPLOYMENT "{metadata: {name: d, uid: v}, spec: {replicas: 6}}"

static const struct row {
    const char *spec;
    bool has_set, has_deployment;
    int64_t n_expected, n_desired, n_allowed;
} rows[] = {
    {"minAvailable: 1",     true,  true,  3, 1, 1},
    {"minAvailable: 2",     true,  true,  3, 2, 0},
    {"minAvailable: 9",     true,  true,  3, 9, 0},
    {"minAvailable: 30%",   true,  true,  6, 2, 0},
    {"minAvailable: 20%",   true,  false, 5, 1, 1},
    {"maxUnavailable: 5",   true,  true,  6, 1, 1},
    {"maxUnavailable: 7",   true,  true,  6, 0, 2},
    {"maxUnavailable: 70%", true,  false, 5, 1, 1}, /* 3.5, rounded up */
    {"maxUnavailable: 1",   false, true,  0, 0, 0}, /* nobody keeps their number */
    {"",                    true,  true,  0, 0, 0},
};

static struct dv_budget_input input_of(const struct row *row, struct dv_arena *arena)
{
    const struct dv_api_pod **all = DV_NEW_ARRAY(arena, const struct dv_api_pod *, DV_COUNT(pods));
    const struct dv_api_replica_set **set = DV_NEW(arena, const struct dv_api_replica_set *);
    const struct dv_api_deployment **deployment = DV_NEW(arena, const struct dv_api_deployment *);
    dv_str budget =
        dv_str_printf(arena,
                      "{metadata: {name: b, generation: 3}, spec: {selector: {matchLabels: {app: "
                      "a}}%s%s}}",
                      row->spec[0] ? ", " : "", row->spec);

    for (size_t i = 0; i < DV_COUNT(pods); i++)
        all[i] = read_as(&dv_message_pod, dv_str_from_c(pods[i]), arena);
    *set = read_as(&dv_message_replica_set, DV_STR(SET), arena);
    *deployment = read_as(&dv_message_deployment, DV_STR(DEPLOYMENT), arena);
    return (struct dv_budget_input){
        .budget = read_as(&dv_message_pod_disruption_budget, budget, arena),
        .pods = all,
        .n_pods = DV_COUNT(pods),
        .sets = set,
        .n_sets = row->has_set,
        .deployments = deployment,
        .n_deployments = row->has_deployment,
        .now = {.seconds = 100, .is_set = true},
    };
}

static void counts_by_what_keeps_the_pods(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_budget_input input = input_of(&rows[i], arena);
        const struct dv_api_pod_disruption_budget_status *status;
        struct dv_plan plan;

        dv_plan_init(&plan, arena);
        dv_budget_plan(&input, &plan);
        assert_int_equal(plan.actions.n, 1);
        status = plan.actions.v[0].with;
        assert_int_equal(status->observed_generation, 3);
        assert_int_equal(status->current_healthy, 2);
        assert_int_equal(status->expected_pods, rows[i].n_expected);
        assert_int_equal(status->desired_healthy, rows[i].n_desired);
        assert_int_equal(status->disruptions_allowed, rows[i].n_allowed);
        assert_int_equal(status->n_conditions, 1);
        assert_str(status->conditions[0].reason,
                   rows[i].n_allowed > 0 ? "SufficientPods" : "InsufficientPods");
    }
}

static void says_nothing_twice(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_budget_input input = input_of(&rows[0], arena);
    struct dv_api_pod_disruption_budget told = *input.budget;
    struct dv_plan plan;

    (void)state;
    dv_plan_init(&plan, arena);
    dv_budget_plan(&input, &plan);
    told.status = *(const struct dv_api_pod_disruption_budget_status *)plan.actions.v[0].with;
    input.budget = &told;
    input.now.seconds++;
    dv_plan_init(&plan, arena);
    dv_budget_plan(&input, &plan);
    assert_int_equal(plan.actions.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_by_what_keeps_the_pods),
        cmocka_unit_test(says_nothing_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
