/* The pure part: amounts, filters, scores, words. */

#include "sched/fit.h"

#include "support/dvtest.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "number/number.h"
#include "resource/resource.h"
#include "json/json.h"

struct test {
    struct dv_arena *arena;
    struct dv_sched_resources resources;
    struct dv_sched_amounts amounts;
    struct dv_sched_room room;
    struct dv_buf buf;
};

static int start(void **state)
{
    struct test *test = DV_ALLOC(struct test);

    *state = test;
    test->arena = dv_arena_new();
    dv_sched_resources_init(&test->resources);
    dv_buf_init(&test->buf, 4096);
    return 0;
}

static int end(void **state)
{
    struct test *test = *state;

    dv_sched_resources_fini(&test->resources);
    dv_sched_amounts_fini(&test->amounts);
    dv_sched_room_fini(&test->room);
    dv_buf_fini(&test->buf);
    dv_arena_free(test->arena);
    free(test);
    return 0;
}

static void *read_yaml(struct test *test, enum dv_kind_id kind, const char *yaml)
{
    const struct dv_message *message = dv_kind(kind)->versions[0].message;
    void *value = dv_arena_alloc(test->arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, test->arena, &err);

    if (!doc)
        fail_msg("%s: %s", yaml, err.msg);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, test->arena, value, NULL, &err), &err);
    return value;
}

static const struct dv_api_pod_spec *read_pod(struct test *test, const char *spec)
{
    dv_str yaml = dv_str_printf(test->arena, "{spec: %s}", spec);
    const struct dv_api_pod *pod = read_yaml(test, DV_KIND_POD, dv_str_to_c(yaml, test->arena));

    return &pod->spec;
}

static struct dv_object *read_node(struct test *test, const char *yaml)
{
    struct dv_object *node = DV_NEW(test->arena, struct dv_object);

    node->kind = dv_kind(DV_KIND_NODE);
    node->value = read_yaml(test, DV_KIND_NODE, yaml);
    node->meta = node->value;
    dv_sched_room_read(&test->room, &test->resources, node->value);
    return node;
}

/* ---- amounts ---- */

#define ASKS(requests) "{name: c, resources: {requests: " requests "}}"
#define STAYS(requests) "{name: c, restartPolicy: Always, resources: {requests: " requests "}}"

static const struct {
    const char *pod;
    const char *amounts;
} pods[] = {
    {"{containers: [{name: c}]}",                                                  "pods=1"                        },
    {"{containers: [" ASKS("{cpu: 100m}") ", " ASKS("{cpu: 1, memory: 1Ki}") "]}",
     "pods=1 cpu=1100 memory=1024"                                                                                 },
    {"{initContainers: [" ASKS("{cpu: 3}") ", " ASKS("{cpu: 2}") "], containers: [" ASKS(
         "{cpu: 1}") "]}",
     "pods=1 cpu=3000"                                                                                             },
    {"{initContainers: [" STAYS("{cpu: 1}") ", " ASKS("{cpu: 2}") "], containers: [" ASKS(
         "{cpu: 1}") "]}",
     "pods=1 cpu=3000"                                                                                             },
    {"{initContainers: [" ASKS("{cpu: 2}") ", " STAYS("{cpu: 1}") "], containers: [" ASKS(
         "{cpu: 2}") "]}",
     "pods=1 cpu=3000"                                                                                             },
    {"{resources: {requests: {cpu: 5}}, containers: [" ASKS("{cpu: 1}") "]}",      "pods=1 cpu=5000"               },
    {"{overhead: {cpu: 10m}, containers: [" ASKS("{cpu: 1}") "]}",                 "pods=1 cpu=1010"               },
    {"{containers: [" ASKS("{a.b/c: 2}") ", " ASKS("{a.b/c: 3}") "]}",             "pods=1 a.b/c=5"                },
    {"{containers: [" ASKS("{cpu: 1n, memory: 1m}") "]}",                          "pods=1 cpu=1 memory=1"         },
    {"{containers: [" ASKS("{cpu: 99E}") "]}",                                     "pods=1 cpu=9223372036854775807"},
};

static void amounts_are_what_a_pod_takes_at_most(void **state)
{
    struct test *test = *state;

    for (size_t i = 0; i < DV_COUNT(pods); i++) {
        dv_sched_amounts_read(&test->amounts, &test->resources, read_pod(test, pods[i].pod));
        dv_buf_clear(&test->buf);
        for (size_t j = 0; j < test->amounts.all.n; j++) {
            const struct dv_sched_amount *amount = &test->amounts.all.v[j];
            dv_str name = test->resources.names.v[amount->resource]->name;

            if (amount->n > 0)
                dv_buf_printf(&test->buf, "%s%.*s=%lld", test->buf.n > 0 ? " " : "", DV_FMT(name),
                              (long long)amount->n);
        }
        assert_str(dv_buf_str(&test->buf), pods[i].amounts);
    }
}

/* As many as a request has room for: each is found at once, also those that stay beside others. */
static void very_many_amounts_are_added_up(void **state)
{
    enum { N = 20000 };
    struct test *test = *state;
    struct dv_api_container containers[3] = {0};
    struct dv_api_pod_spec pod = {.init_containers = containers,
                                  .n_init_containers = 2,
                                  .containers = &containers[2],
                                  .n_containers = 1};
    struct dv_quantity_entry *requests = DV_NEW_ARRAY(test->arena, struct dv_quantity_entry, N);

    for (size_t i = 0; i < N; i++) {
        requests[i].key = dv_str_printf(test->arena, "example.com/%zu", i);
        requests[i].value = dv_quantity_from_i64((int64_t)i, DV_QUANTITY_DECIMAL_SI);
    }
    containers[0].restart_policy = DV_STR("Always");
    for (size_t i = 0; i < DV_COUNT(containers); i++) {
        containers[i].resources.requests = requests;
        containers[i].resources.n_requests = N;
    }
    for (size_t n = 0; n < 2; n++) { /* the second time in the same memory */
        dv_sched_amounts_read(&test->amounts, &test->resources, &pod);
        for (size_t i = 0; i < test->amounts.all.n; i++) {
            const struct dv_sched_amount *amount = &test->amounts.all.v[i];

            if (amount->resource >= DV_SCHED_N_FIXED_RESOURCES)
                assert_int_equal(amount->n, 2 * (amount->resource - DV_SCHED_N_FIXED_RESOURCES));
        }
        assert_int_equal(test->amounts.all.n, N + 3); /* and pods, cpu, memory */
    }
}

static void room_is_taken_and_given_back(void **state)
{
    struct test *test = *state;

    (void)read_node(test, "{status: {allocatable: {cpu: 2, a.b/c: 3}}}");
    dv_sched_amounts_read(&test->amounts, &test->resources,
                          read_pod(test, "{containers: [" ASKS("{cpu: 1, a.b/c: 2}") "]}"));
    dv_sched_room_take(&test->room, &test->amounts);
    assert_int_equal(test->room.taken[DV_SCHED_RESOURCE_CPU], 1000);
    assert_int_equal(test->room.scored[1], INT64_C(200) * 1024 * 1024);
    dv_sched_room_give_back(&test->room, &test->amounts);
    assert_int_equal(test->room.taken[DV_SCHED_RESOURCE_CPU], 0);
    assert_int_equal(test->room.scored[1], 0);
    assert_int_equal(dv_sched_room_has(&test->room, DV_SCHED_RESOURCE_CPU), 2000);
    assert_int_equal(dv_sched_room_has(&test->room, 1000), 0);
}

/* ---- filters ---- */

#define TAINTED "{spec: {taints: [{key: k, value: v, effect: NoSchedule}]}, status: " ROOM "}"
#define ROOM "{allocatable: {cpu: 1, pods: 2}}"
#define LABELLED "{metadata: {name: node, labels: {a: b, num: '5'}}, status: " ROOM "}"
#define NEEDS(terms)                                                                               \
    "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "                  \
    "{nodeSelectorTerms: [" terms "]}}}}"

static const struct {
    const char *pod;
    const char *node;
    const char *why; /* "": it fits */
} fits[] = {
    {"{}",                                                                         "{status: " ROOM "}",                                                       ""                                                 },
    {"{}",                                                                         "{status: {allocatable: {cpu: 1}}}",                                        "Too many pods"                                    },
    {"{nodeName: node}",                                                           LABELLED,                                                                   ""                                                 },
    {"{nodeName: m}",                                                              LABELLED,                                                                   "node(s) didn't match the requested node name"     },
    {"{}",                                                                         TAINTED,                                                                    "node(s) had untolerated taint {k: v}"             },
    {"{tolerations: [{key: k, value: v}]}",                                        TAINTED,                                                                    ""                                                 },
    {"{tolerations: [{key: k, value: w}]}",                                        TAINTED,                                                                    "node(s) had untolerated taint {k: v}"             },
    {"{tolerations: [{key: k, operator: Exists, effect: NoExecute}]}",             TAINTED,
     "node(s) had untolerated taint {k: v}"                                                                                                                                                                       },
    {"{tolerations: [{operator: Exists}]}",                                        TAINTED,                                                                    ""                                                 },
    {"{}",                                                                         "{spec: {unschedulable: true}, status: " ROOM "}",                          "node(s) were unschedulable"                       },
    {"{tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists}]}",
     "{spec: {unschedulable: true}, status: " ROOM "}",                                                                                                        ""                                                 },
    {"{nodeSelector: {a: b}}",                                                     LABELLED,                                                                   ""                                                 },
    {"{nodeSelector: {a: c}}",                                                     LABELLED,                                                                   "node(s) didn't match Pod's node affinity/selector"},
    {NEEDS("{matchExpressions: [{key: num, operator: Gt, values: ['4']}]}"),       LABELLED,                                                                   ""                                                 },
    {NEEDS("{matchFields: [{key: metadata.name, operator: In, values: [m]}]}"),    LABELLED,
     "node(s) didn't match Pod's node affinity/selector"                                                                                                                                                          },
    {"{containers: [" ASKS("{cpu: 2, a.b/c: 1}") "]}",                             "{status: " ROOM "}",
     "Insufficient a.b/c\nInsufficient cpu"                                                                                                                                                                       },
    {"{}",                                                                         "{spec: {taints: [{key: k, effect: PreferNoSchedule}]}, status: " ROOM "}", ""                                                 },
};

static void a_node_fits_or_says_why_not(void **state)
{
    struct test *test = *state;

    for (size_t i = 0; i < DV_COUNT(fits); i++) {
        const struct dv_api_pod_spec *pod = read_pod(test, fits[i].pod);
        const struct dv_object *node = read_node(test, fits[i].node);
        bool is_fit;

        dv_sched_amounts_read(&test->amounts, &test->resources, pod);
        dv_buf_clear(&test->buf);
        is_fit =
            dv_sched_fits(pod, &test->amounts, &test->resources, node, &test->room, &test->buf);
        assert_str(dv_buf_str(&test->buf), fits[i].why);
        assert_int_equal(is_fit, fits[i].why[0] == '\0');
    }
}

static void what_a_class_serves_is_no_amount(void **state)
{
    struct test *test = *state;
    const struct dv_api_pod_spec *pod = read_pod(test, "{containers: [" ASKS("{a.b/c: 1}") "]}");
    const struct dv_object *without = read_node(test, "{status: " ROOM "}");
    const struct dv_object *with;

    dv_sched_amounts_read(&test->amounts, &test->resources, pod);
    for (size_t i = 0; i < test->amounts.all.n; i++)
        test->amounts.all.v[i].is_served =
            test->amounts.all.v[i].resource >= DV_SCHED_N_FIXED_RESOURCES;
    assert_true(
        dv_sched_fits(pod, &test->amounts, &test->resources, without, &test->room, &test->buf));
    with = read_node(test, "{status: {allocatable: {pods: 9, a.b/c: 1}}}");
    dv_sched_room_take(&test->room, &test->amounts);
    assert_false(
        dv_sched_fits(pod, &test->amounts, &test->resources, with, &test->room, &test->buf));
}

/* ---- ports ---- */

#define PORTS(ports) "{containers: [{name: c, ports: [" ports "]}]}"

static const struct {
    const char *taken;
    const char *wanted;
    bool is_free;
} ports[] = {
    {PORTS("{hostPort: 80}"),                                                         PORTS("{hostPort: 80}"),                    false},
    {PORTS("{hostPort: 80}"),                                                         PORTS("{hostPort: 81}"),                    true },
    {PORTS("{hostPort: 80}"),                                                         PORTS("{hostPort: 80, protocol: UDP}"),     true },
    {PORTS("{hostPort: 80, protocol: TCP}"),                                          PORTS("{hostPort: 80}"),                    false},
    {PORTS("{hostPort: 80, hostIP: 127.0.0.1}"),                                      PORTS("{hostPort: 80, hostIP: 127.0.0.2}"), true },
    {PORTS("{hostPort: 80, hostIP: 127.0.0.1}"),                                      PORTS("{hostPort: 80}"),                    false},
    {PORTS("{hostPort: 80}"),                                                         PORTS("{hostPort: 80, hostIP: 127.0.0.1}"), false},
    {PORTS("{hostPort: 80, hostIP: 127.0.0.1}"),                                      PORTS("{hostPort: 80, hostIP: 0.0.0.0}"),   false},
    {PORTS("{containerPort: 80}"),                                                    PORTS("{containerPort: 80}"),               true },
    {PORTS("{hostPort: 79}, {hostPort: 80}, {hostPort: 81, protocol: UDP}"),
     PORTS("{hostPort: 81}, {hostPort: 82}"),                                                                                     true },
    {"{initContainers: [{name: i, ports: [{hostPort: 80}]}]}",                        PORTS("{hostPort: 80}"),                    true },
    {"{initContainers: [{name: i, restartPolicy: Always, ports: [{hostPort: 80}]}]}",
     PORTS("{hostPort: 80}"),                                                                                                     false},
};

static void a_port_of_the_node_is_given_once(void **state)
{
    struct test *test = *state;
    const struct dv_object *node = read_node(test, "{status: {allocatable: {pods: 9}}}");

    for (size_t i = 0; i < DV_COUNT(ports); i++) {
        const struct dv_api_pod_spec *taken = read_pod(test, ports[i].taken);
        const struct dv_api_pod_spec *wanted = read_pod(test, ports[i].wanted);

        for (int is_given_back = 0; is_given_back < 2; is_given_back++) {
            bool is_free = ports[i].is_free || is_given_back;

            dv_sched_amounts_read(&test->amounts, &test->resources, taken);
            dv_sched_room_take(&test->room, &test->amounts);
            if (is_given_back)
                dv_sched_room_give_back(&test->room, &test->amounts);
            dv_sched_amounts_read(&test->amounts, &test->resources, wanted);
            dv_buf_clear(&test->buf);
            assert_int_equal(dv_sched_fits(wanted, &test->amounts, &test->resources, node,
                                           &test->room, &test->buf),
                             is_free);
            assert_str(dv_buf_str(&test->buf),
                       is_free ? "" : "node(s) didn't have free ports for the requested pod ports");
            dv_sched_amounts_read(&test->amounts, &test->resources, taken);
            if (!is_given_back)
                dv_sched_room_give_back(&test->room, &test->amounts);
            assert_int_equal(test->room.ports.all.n, 0);
        }
    }
}

/* ---- scores ---- */

static void the_emptier_node_scores_more(void **state)
{
    struct test *test = *state;
    const struct dv_api_pod_spec *pod = read_pod(test, "{containers: [" ASKS("{cpu: 1}") "]}");
    struct dv_sched_merit merit;

    dv_sched_amounts_read(&test->amounts, &test->resources, pod);
    dv_sched_merit(pod, &test->amounts, read_node(test, "{status: {allocatable: {cpu: 4}}}"),
                   &test->room, &merit);
    assert_int_equal(merit.free, 75);
    dv_sched_room_take(&test->room, &test->amounts);
    dv_sched_merit(pod, &test->amounts, read_node(test, "{status: {allocatable: {cpu: 4}}}"),
                   &test->room, &merit);
    assert_int_equal(merit.free, 50);
    dv_sched_merit(pod, &test->amounts, read_node(test, "{}"), &test->room, &merit);
    assert_int_equal(merit.free, 0);
}

static const struct {
    struct dv_sched_merit merit;
    struct dv_sched_best best;
    int64_t score;
} scores[] = {
    {{.free = 50},                  {.high.free = 90},                                         350},
    {{.free = 50, .preferred = 5},  {.high.preferred = 10},                                    450},
    {{.free = 50, .disliked = 2},   {.high.disliked = 2},                                      50 },
    {{.free = 50, .disliked = 1},   {.high.disliked = 2},                                      200},
    {{.free = 50, .preference = 8}, {.high.preference = 8},                                    550},
    {{.free = 50, .preference = 4}, {.high.preference = 16},                                   400},
    {{.preference = 0},             {.high.preference = 0},                                    300},
    {{.near = -5},                  {.high.near = 5, .near_low = -5, .is_related = true},      500},
    {{.near = 5},                   {.high.near = 5, .near_low = -5, .is_related = true},      700},
    {{.near = 0},                   {.high.near = 5, .near_low = -5, .is_related = true},      600},
    {{.crowded = 4},                {.high.crowded = 4, .crowded_low = 1, .is_related = true}, 350},
    {{.crowded = 1},                {.high.crowded = 4, .crowded_low = 1, .is_related = true}, 500},
    {{.crowded = -1},               {.high.crowded = 4, .crowded_low = 1, .is_related = true}, 300},
    {{.near = 5, .crowded = 9},     {.high.near = 5},                                          300},
};

static void scores_are_measured_against_the_best(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(scores); i++)
        assert_int_equal(dv_sched_score(&scores[i].merit, &scores[i].best), scores[i].score);
}

static void preferences_and_dislikes_are_counted(void **state)
{
    struct test *test = *state;
    const struct dv_api_pod_spec *pod = read_pod(
        test, "{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
              "[{weight: 3, preference: {matchExpressions: [{key: a, operator: Exists}]}}, "
              "{weight: 4, preference: {matchExpressions: [{key: b, operator: Exists}]}}]}"
              "}, tolerations: [{key: t, operator: Exists}]}");
    struct dv_sched_merit merit;

    dv_sched_merit(pod, &test->amounts,
                   read_node(test, "{metadata: {labels: {a: x}}, spec: {taints: [{key: k, effect: "
                                   "PreferNoSchedule}, {key: t, effect: PreferNoSchedule}]}}"),
                   &test->room, &merit);
    assert_int_equal(merit.preferred, 3);
    assert_int_equal(merit.disliked, 1);
}

static void enough_nodes_are_looked_at(void **state)
{
    static const size_t rows[][2] = {
        {0,    0  },
        {7,    7  },
        {99,   99 },
        {150,  100},
        {500,  230},
        {5000, 500},
        {9000, 450},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_int_equal(dv_sched_n_wanted(rows[i][0]), rows[i][1]);
}

/* ---- words ---- */

static const struct {
    const char *message;
    const char *said;
} sentences[] = {
    {"0/1 nodes are available: 1 Insufficient cpu. " DV_SCHED_NO_CLAIMS ". pod wants cpu",
     "pod wants cpu"                                                                                            },
    {"0/1 nodes are available: 1 x. " DV_SCHED_STILL ". gpu: 1 wanted. or 2",
     "gpu: 1 wanted. or 2"                                                                                      },
    {"0/1 nodes are available: 1 x. " DV_SCHED_STILL,
     "0/1 nodes are available: 1 x. " DV_SCHED_STILL                                                            },
    {DV_SCHED_STILL ". ",                                                                  DV_SCHED_STILL ". "  },
    {"Started container c",                                                                "Started container c"},
    {"",                                                                                   ""                   },
};

static void the_sentence_behind_the_summary_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(sentences); i++)
        assert_str(dv_sched_sentence(dv_str_from_c(sentences[i].message)), sentences[i].said);
}

static void reasons_are_counted_and_sorted(void **state)
{
    static const struct dv_sched_reason reasons[] = {
        {DV_STR_INIT("cannot allocate all claims"), 2 },
        {DV_STR_INIT("Insufficient cpu"),           10},
        {DV_STR_INIT("b"),                          1 },
    };
    struct test *test = *state;

    dv_sched_summary(13, reasons, DV_COUNT(reasons), DV_STR_NONE, DV_STR("after"), &test->buf);
    assert_str(dv_buf_str(&test->buf), "0/13 nodes are available: 1 b, 10 Insufficient cpu, 2 "
                                       "cannot allocate all claims. after");
    dv_buf_clear(&test->buf);
    dv_sched_summary(3, reasons, DV_COUNT(reasons), DV_STR("before"), DV_STR_NONE, &test->buf);
    assert_str(dv_buf_str(&test->buf), "0/3 nodes are available: before.");
    dv_buf_clear(&test->buf);
    dv_sched_summary(0, NULL, 0, DV_STR_NONE, DV_STR("after"), &test->buf);
    assert_str(dv_buf_str(&test->buf), "no nodes available to schedule pods");
}

static void pauses_double_up_to_ten_seconds(void **state)
{
    static const uint64_t ms[] = {0, 1000, 2000, 4000, 8000, 10000, 10000};

    (void)state;
    for (unsigned i = 0; i < DV_COUNT(ms); i++)
        assert_int_equal(dv_sched_backoff_ms(i), ms[i]);
    assert_int_equal(dv_sched_backoff_ms(1000), 10000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

/* ---- taints ---- */

static const struct {
    const char *tolerations;
    const char *taints;
    size_t n_hard; /* that are not tolerated: one is enough */
    size_t n_soft;
} tainted[] = {
    {"",                                      "{key: a, effect: NoSchedule}",           1, 0},
    {"{key: a}",                              "{key: a, effect: NoSchedule}",           0, 0},
    {"{key: a, value: v}",                    "{key: a, value: w, effect: NoSchedule}", 1, 0},
    {"{key: a, value: v}",                    "{key: a, value: v, effect: NoSchedule}", 0, 0},
    {"{key: a, operator: Equal, value: v}",   "{key: a, value: v, effect: NoExecute}",  0, 0},
    {"{key: a, operator: Exists}",            "{key: a, value: v, effect: NoExecute}",  0, 0},
    {"{key: b, operator: Exists}",            "{key: a, value: v, effect: NoExecute}",  1, 0},
    {"{operator: Exists}",                    "{key: a, value: v, effect: NoExecute}",  0, 0},
    {"{operator: Exists, effect: NoExecute}", "{key: a, effect: NoExecute}",            0, 0},
    {"{operator: Exists, effect: NoExecute}", "{key: a, effect: NoSchedule}",           1, 0},
    {"{key: a, operator: Odd}",               "{key: a, effect: NoSchedule}",           1, 0},
    {"{value: v}",                            "{key: a, value: v, effect: NoSchedule}", 0, 0},
    {"{key: a, effect: NoSchedule}",          "{key: a, effect: NoExecute}",            1, 0},
    {"{key: a}",
     "{key: a, effect: PreferNoSchedule}, {key: b, effect: PreferNoSchedule}, {key: c, effect: "
     "PreferNoSchedule}, {key: d, effect: NoSchedule}, {key: e, effect: NoSchedule}",   1, 2},
};

/* With many they are looked up, to the same effect. */
static void taints_are_tolerated(void **state)
{
    enum { N_MANY = 5000 };
    struct test *test = *state;

    for (size_t i = 0; i < DV_COUNT(tainted); i++) {
        struct dv_api_pod_spec pod = *read_pod(
            test,
            dv_str_to_c(dv_str_printf(test->arena, "{tolerations: [%s]}", tainted[i].tolerations),
                        test->arena));
        struct dv_api_node node =
            *(const struct dv_api_node *)read_node(
                 test, dv_str_to_c(
                           dv_str_printf(test->arena, "{spec: {taints: [%s]}}", tainted[i].taints),
                           test->arena))
                 ->value;
        struct dv_api_toleration *many =
            DV_NEW_ARRAY(test->arena, struct dv_api_toleration, N_MANY + 1);
        struct dv_api_taint *taints = DV_NEW_ARRAY(test->arena, struct dv_api_taint, 10);
        const struct dv_api_taint *first = NULL;

        assert_int_equal(dv_sched_untolerated(&pod, &node, false, &first), tainted[i].n_hard);
        assert_int_equal(dv_sched_untolerated(&pod, &node, true, NULL), tainted[i].n_soft);
        for (size_t j = 0; j < N_MANY; j++)
            many[j].key = dv_str_printf(test->arena, "other-%zu", j);
        if (pod.n_tolerations > 0)
            many[N_MANY] = pod.tolerations[0];
        pod.tolerations = many;
        pod.n_tolerations += N_MANY;
        for (size_t j = 0; j < node.spec.n_taints; j++)
            taints[j] = node.spec.taints[j];
        taints[node.spec.n_taints++] =
            (struct dv_api_taint){.key = DV_STR("other-7"), .effect = DV_STR("NoSchedule")};
        node.spec.taints = taints;
        assert_int_equal(dv_sched_untolerated(&pod, &node, false, &first), tainted[i].n_hard);
        assert_int_equal(dv_sched_untolerated(&pod, &node, true, NULL), tainted[i].n_soft);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(amounts_are_what_a_pod_takes_at_most),
        TEST(very_many_amounts_are_added_up),
        TEST(taints_are_tolerated),
        TEST(room_is_taken_and_given_back),
        TEST(a_node_fits_or_says_why_not),
        TEST(what_a_class_serves_is_no_amount),
        TEST(a_port_of_the_node_is_given_once),
        TEST(the_emptier_node_scores_more),
        TEST(scores_are_measured_against_the_best),
        TEST(preferences_and_dislikes_are_counted),
        TEST(enough_nodes_are_looked_at),
        TEST(the_sentence_behind_the_summary_is_found),
        TEST(reasons_are_counted_and_sorted),
        TEST(pauses_double_up_to_ten_seconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
