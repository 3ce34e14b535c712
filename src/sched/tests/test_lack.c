/* The sentence about a pod that no node has room for, or is right for. */
#include "sched/lack.h"

#include "support/dvtest.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "sched/fit.h"
#include "json/json.h"

#define N_NODES_MAX 4u

struct fleet {
    struct dv_arena *arena;
    struct dv_sched_resources resources;
    struct dv_sched_room rooms[N_NODES_MAX];
    struct dv_sched_place v[N_NODES_MAX];
    size_t n;
};

static void *read_yaml(struct fleet *fleet, enum dv_kind_id kind, dv_str yaml)
{
    const struct dv_message *message = dv_kind(kind)->versions[0].message;
    void *value = dv_arena_alloc(fleet->arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(yaml, NULL, fleet->arena, &err);

    if (!doc)
        fail_msg("%.*s: %s", DV_FMT(yaml), err.msg);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, fleet->arena, value, NULL, &err), &err);
    return value;
}

static const struct dv_api_pod_spec *read_pod(struct fleet *fleet, const char *spec)
{
    const struct dv_api_pod *pod =
        read_yaml(fleet, DV_KIND_POD, dv_str_printf(fleet->arena, "{spec: %s}", spec));

    return &pod->spec;
}

/* Adds a node, with pods on it that take `taken`. */
static void add_node(struct fleet *fleet, const char *yaml, const char *taken)
{
    struct dv_object *node = DV_NEW(fleet->arena, struct dv_object);
    struct dv_sched_room *room = &fleet->rooms[fleet->n];
    struct dv_sched_amounts amounts = {0};

    node->kind = dv_kind(DV_KIND_NODE);
    node->value = read_yaml(fleet, DV_KIND_NODE, dv_str_from_c(yaml));
    node->meta = node->value;
    dv_sched_room_read(room, &fleet->resources, node->value);
    if (taken) {
        dv_sched_amounts_read(&amounts, &fleet->resources, read_pod(fleet, taken));
        dv_sched_room_take(room, &amounts);
        dv_sched_amounts_fini(&amounts);
    }
    fleet->v[fleet->n++] = (struct dv_sched_place){.node = node, .room = room};
}

static int start(void **state)
{
    struct fleet *fleet = DV_ALLOC(struct fleet);

    *state = fleet;
    fleet->arena = dv_arena_new();
    dv_sched_resources_init(&fleet->resources);
    return 0;
}

static int end(void **state)
{
    struct fleet *fleet = *state;

    for (size_t i = 0; i < fleet->n; i++)
        dv_sched_room_fini(&fleet->rooms[i]);
    dv_sched_resources_fini(&fleet->resources);
    dv_arena_free(fleet->arena);
    free(fleet);
    return 0;
}

/* What is said of the pod when a claim keeps it from every node that it fits. */
static struct dv_sched_lack lack_of(struct fleet *fleet, const char *spec)
{
    const struct dv_api_pod_spec *pod = read_pod(fleet, spec);
    struct dv_sched_place v[N_NODES_MAX];
    struct dv_sched_places places = {.v = v};
    struct dv_sched_amounts amounts = {0};
    struct dv_sched_lack lack;
    struct dv_buf why;

    dv_sched_amounts_read(&amounts, &fleet->resources, pod);
    dv_buf_init(&why, 4096);
    for (size_t i = 0; i < fleet->n; i++) {
        dv_buf_clear(&why);
        if (dv_sched_fits(pod, &amounts, &fleet->resources, fleet->v[i].node, fleet->v[i].room,
                          &why)) {
            places.n_barred++;
            continue;
        }
        v[places.n] = fleet->v[i];
        v[places.n++].why = dv_str_copy(dv_buf_str(&why), fleet->arena);
    }
    dv_sched_lack_find(pod, &amounts, &fleet->resources, &places, fleet->arena, &lack);
    dv_buf_fini(&why);
    dv_sched_amounts_fini(&amounts);
    return lack;
}

#define ASKS(requests) "containers: [{name: c, resources: {requests: " requests "}}]"
#define HAS(name, more)                                                                            \
    "{metadata: {name: " name more "}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '9'"

static void three_nodes(struct fleet *fleet)
{
    add_node(fleet, HAS("n2", ", labels: {zone: b, disk: hdd}") ", ex.ample/cam: '8'}}}",
             "{" ASKS("{cpu: 3, ex.ample/cam: 6}") "}");
    add_node(fleet,
             HAS("n1", ", labels: {zone: a}") "}}, spec: {taints: [{key: gpu, value: big, effect: "
                                              "NoSchedule}]}}",
             NULL);
    add_node(fleet, HAS("n3", "") "}}, spec: {unschedulable: true}}", NULL);
}

#define TOLERATES "tolerations: [{operator: Exists}], "
#define REQUIRES(expressions)                                                                      \
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "                   \
    "{nodeSelectorTerms: [{" expressions "}]}}}, "

static const struct {
    const char *pod;
    const char *said;
    bool is_amount;
    size_t n_as_near;
} rows[] = {
    {"{" ASKS("{cpu: 500m, ex.ample/cam: 9}") "}",
     "pod wants ex.ample/cam: 9, most on a node is 8 (n2)",                                                                                    true,  0},
    {"{" ASKS("{ex.ample/cam: 3}") "}",                                            "pod wants ex.ample/cam: 3, most free on a node is 2 (n2)",
     true,                                                                                                                                            0},
    {"{" ASKS("{cpu: 5, ex.ample/none: 1}") "}",                                   "pod wants ex.ample/none: 1, no node has any",
     true,                                                                                                                                            0},
    {"{" ASKS("{cpu: 4500m}") "}",                                                 "pod wants cpu: 4500m, most on a node is 4 (n1)",           true,  0},
    {"{" ASKS("{memory: 9Gi}") "}",                                                "pod wants memory: 9Gi, most on a node is 8Gi (n1)",        true,  0},
    {"{" ASKS("{cpu: 2}") "}",                                                     "pod wants cpu: 2, n2 has 1 free",                          true,  1},
    {"{nodeSelector: {disk: ssd}, " ASKS("{}") "}",
     "pod wants a node with disk=ssd, n2 has disk=hdd",                                                                                        false, 1},
    {"{" TOLERATES "nodeSelector: {disk: ssd}, " ASKS("{}") "}",
     "pod wants a node with disk=ssd, n1 has no such label",                                                                                   false, 3},
    {"{" TOLERATES REQUIRES("matchExpressions: [{key: zone, operator: Exists}, {key: zone, "
                            "operator: In, values: [u, v]}]") ASKS("{}") "}",
     "pod wants a node with zone In [u, v], n1 has zone=a",                                                                                    false, 3},
    {"{" TOLERATES REQUIRES("matchFields: [{key: metadata.name, operator: In, values: [n9]}]")
         ASKS("{}") "}",
     "pod wants a node with metadata.name In [n9], n1 is another",                                                                             false, 3},
    {"{nodeSelector: {zone: a}, tolerations: [{key: node.kubernetes.io/unschedulable, operator: "
     "Exists}], " ASKS("{}") "}",
     "pod wants a node with zone=a, n2 has zone=b",                                                                                            false, 2},
};

static void the_nearest_miss_is_said(void **state)
{
    struct fleet *fleet = *state;

    three_nodes(fleet);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_sched_lack lack = lack_of(fleet, rows[i].pod);

        assert_str(lack.text, rows[i].said);
        assert_int_equal(lack.is_amount, rows[i].is_amount);
        assert_int_equal(lack.n_as_near, rows[i].n_as_near);
    }
}

static void taints_and_closed_nodes_are_named(void **state)
{
    struct fleet *fleet = *state;

    add_node(fleet, HAS("n3", "") "}}, spec: {unschedulable: true}}", NULL);
    assert_str(lack_of(fleet, "{" ASKS("{}") "}").text,
               "n3 is unschedulable, kubectl uncordon n3 opens it to pods");
    add_node(fleet, HAS("n1", "") "}}, spec: {taints: [{key: k, effect: NoExecute}]}}", NULL);
    assert_str(lack_of(fleet, "{" ASKS("{}") "}").text,
               "pod does not tolerate the taint k:NoExecute of n1");
    add_node(fleet, HAS("n0", "") "}}, spec: {taints: [{key: k, value: v, effect: NoSchedule}]}}",
             NULL);
    assert_str(lack_of(fleet, "{" ASKS("{}") "}").text,
               "pod does not tolerate the taint k=v:NoSchedule of n0");
}

static void a_node_without_room_for_pods_says_so(void **state)
{
    struct fleet *fleet = *state;

    add_node(fleet, "{metadata: {name: n1}, status: {allocatable: {cpu: '4', pods: '1'}}}",
             "{" ASKS("{}") "}");
    assert_str(lack_of(fleet, "{" ASKS("{}") "}").text,
               "no node has room for another pod, most is 1 (n1)");
    add_node(fleet, HAS("n2", "") "}}, spec: {unschedulable: true}}", NULL);
    assert_str(lack_of(fleet, "{" ASKS("{}") "}").text,
               "n1 has no room for another pod, its most is 1");
}

static void nodes_that_a_claim_bars_are_counted(void **state)
{
    struct fleet *fleet = *state;

    add_node(fleet, HAS("n1", "") "}}}", NULL);
    assert_str(lack_of(fleet, "{" ASKS("{cpu: 2}") "}").text,
               "its allocated claim is not for the one node that is open to it");
    add_node(fleet, HAS("n2", "") "}}}", "{" ASKS("{cpu: 3}") "}");
    assert_str(lack_of(fleet, "{" ASKS("{cpu: 2}") "}").text,
               "pod wants cpu: 2, n2 has 1 free; 1 other is open to it, and not to its allocated "
               "claim");
}

static void without_nodes_there_is_nothing_to_say(void **state)
{
    struct fleet *fleet = *state;

    assert_str(lack_of(fleet, "{" ASKS("{cpu: 2}") "}").text, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_nearest_miss_is_said),
        TEST(taints_and_closed_nodes_are_named),
        TEST(a_node_without_room_for_pods_says_so),
        TEST(nodes_that_a_claim_bars_are_counted),
        TEST(without_nodes_there_is_nothing_to_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
