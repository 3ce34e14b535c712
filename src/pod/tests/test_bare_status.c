/* test_bare_status.c - what is true of a pod when davitd does not start its containers. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "pod/agent/bare_status.h"
#include "resource/resource.h"
#include "json/json.h"

#define ONE "containers: [{name: c, image: x}]"
#define TWO "containers: [{name: c, image: x}, {name: b, image: x}]"
#define INIT "initContainers: [{name: i, image: x}, {name: j, image: x}], "
#define SIDECAR "initContainers: [{name: s, image: x, restartPolicy: Always}], "
#define NEVER "restartPolicy: Never, "
#define ON_FAILURE "restartPolicy: OnFailure, "
#define RUNS(c) "{name: " c ", state: {running: {startedAt: '2024-01-01T00:00:00Z'}}}"
#define ENDED(c, code) "{name: " c ", state: {terminated: {exitCode: " code "}}}"

static void decode(const struct dv_message *message, const char *yaml, struct dv_arena *arena,
                   void *value)
{
    struct dv_json_opts opts = {0};
    struct dv_err err = {0};
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), &opts, arena, &err);

    if (!doc || !dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err))
        fail_msg("%s: %s", yaml, err.msg);
}

static void print_containers(const struct dv_api_container_status *statuses, size_t n,
                             struct dv_buf *buf)
{
    for (size_t i = 0; i < n; i++) {
        const struct dv_api_container_status *status = &statuses[i];

        dv_buf_printf(buf, " %.*s", DV_FMT(status->name));
        if (status->state.running)
            dv_buf_add_c(buf, "=runs");
        if (status->state.terminated)
            dv_buf_printf(buf, "=%d", (int)status->state.terminated->exit_code);
        if (status->state.waiting)
            dv_buf_printf(buf, "=%.*s", DV_FMT(status->state.waiting->reason));
        if (status->last_state.terminated)
            dv_buf_printf(buf, "(%d)", (int)status->last_state.terminated->exit_code);
        assert_int_equal(status->state.running != NULL, *status->started);
    }
}

/* "Pending c=NoContainerRuntime; DevicesReady Initialized": the conditions that are True, but for
 * the one that always is. */
static dv_str print(const struct dv_api_pod_status *status, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, 4096);
    dv_buf_add(&buf, status->phase);
    print_containers(status->init_container_statuses, status->n_init_container_statuses, &buf);
    print_containers(status->container_statuses, status->n_container_statuses, &buf);
    dv_buf_add_char(&buf, ';');
    for (size_t i = 0; i < status->n_conditions; i++) {
        dv_str type = status->conditions[i].type;

        assert_int_equal(status->conditions[i].observed_generation, status->observed_generation);
        if (dv_str_eq(type, DV_STR("PodScheduled")))
            assert_str(status->conditions[i].status, "True");
        else if (dv_str_eq(status->conditions[i].status, DV_STR("True")))
            dv_buf_printf(
                &buf, " %.*s",
                DV_FMT(dv_str_eq(type, DV_STR(DV_DEVICES_READY)) ? DV_STR("Devices") : type));
    }
    return dv_str_copy(dv_buf_str(&buf), arena);
}

#define NO "NoContainerRuntime"
#define BEFORE "; Devices Initialized"
#define AT_WORK "; Devices PodReadyToStartContainers Initialized"
#define ALL AT_WORK " Ready ContainersReady"

static void tells_what_is_true(void **state)
{
    /* clang-format off */
    static const struct {
        enum dv_bare_stage stage;
        const char *spec;
        const char *told;
        const char *status;
    } cases[] = {
        {DV_BARE_WAITING, ONE, "", "Pending c=Why; Initialized"},
        {DV_BARE_WAITING, INIT ONE, "", "Pending i=Why j=Why c=Why;"},
        {DV_BARE_READY, ONE, "", "Pending c=" NO BEFORE},
        {DV_BARE_READY, TWO, "", "Pending b=" NO " c=" NO BEFORE},
        {DV_BARE_READY, ONE, RUNS("c"), "Running c=runs" ALL},
        {DV_BARE_READY, TWO, RUNS("c"), "Pending b=" NO " c=runs" AT_WORK},
        {DV_BARE_READY, TWO, RUNS("c") "," RUNS("b"), "Running b=runs c=runs" ALL},
        /* restart policies */
        {DV_BARE_READY, ONE, ENDED("c", "0"), "Running c=" NO "(0)" BEFORE},
        {DV_BARE_READY, ONE, ENDED("c", "3"), "Running c=" NO "(3)" BEFORE},
        {DV_BARE_READY, ON_FAILURE ONE, ENDED("c", "0"), "Succeeded c=0" BEFORE},
        {DV_BARE_READY, ON_FAILURE ONE, ENDED("c", "1"), "Running c=" NO "(1)" BEFORE},
        {DV_BARE_READY, NEVER ONE, ENDED("c", "0"), "Succeeded c=0" BEFORE},
        {DV_BARE_READY, NEVER ONE, ENDED("c", "1"), "Failed c=1" BEFORE},
        {DV_BARE_READY, NEVER TWO, ENDED("c", "1") "," RUNS("b"), "Running b=runs c=1" AT_WORK},
        {DV_BARE_READY, NEVER TWO, ENDED("c", "1") "," ENDED("b", "0"), "Failed b=0 c=1" BEFORE},
        {DV_BARE_READY, NEVER TWO, ENDED("c", "0"), "Pending b=" NO " c=0" BEFORE},
        {DV_BARE_READY,
         NEVER "containers: [{name: c, image: x, restartPolicy: Never, restartPolicyRules: "
               "[{action: Restart, exitCodes: {operator: In, values: [42]}}]}]",
         ENDED("c", "42"), "Running c=" NO "(42)" BEFORE},
        {DV_BARE_READY,
         NEVER "containers: [{name: c, image: x, restartPolicy: Never, restartPolicyRules: "
               "[{action: Restart, exitCodes: {operator: NotIn, values: [42]}}]}]",
         ENDED("c", "42"), "Failed c=42" BEFORE},
        /* init containers, one after the other */
        {DV_BARE_READY, INIT ONE, "", "Pending i=" NO " j=PodInitializing c=PodInitializing; Devices"},
        {DV_BARE_READY, INIT ONE, RUNS("i"),
         "Pending i=runs j=PodInitializing c=PodInitializing; Devices"},
        {DV_BARE_READY, INIT ONE, ENDED("i", "0"), "Pending i=0 j=" NO " c=PodInitializing; Devices"},
        {DV_BARE_READY, INIT ONE, ENDED("i", "0") "," ENDED("j", "0"),
         "Pending i=0 j=0 c=" NO BEFORE},
        {DV_BARE_READY, INIT ONE, ENDED("i", "0") "," ENDED("j", "0") "," RUNS("c"),
         "Running i=0 j=0 c=runs" ALL},
        {DV_BARE_READY, INIT ONE, ENDED("i", "1"),
         "Pending i=" NO "(1) j=PodInitializing c=PodInitializing; Devices"},
        {DV_BARE_READY, NEVER INIT ONE, ENDED("i", "1"),
         "Failed i=1 j=PodInitializing c=PodInitializing; Devices"},
        /* sidecars */
        {DV_BARE_READY, SIDECAR ONE, "", "Pending s=" NO " c=PodInitializing; Devices"},
        {DV_BARE_READY, SIDECAR ONE, RUNS("s"), "Pending s=runs c=" NO AT_WORK},
        {DV_BARE_READY, SIDECAR ONE, RUNS("s") "," RUNS("c"), "Running s=runs c=runs" ALL},
        {DV_BARE_READY, NEVER SIDECAR ONE, RUNS("s") "," ENDED("c", "0"), "Running s=runs c=0" AT_WORK},
        {DV_BARE_READY, NEVER SIDECAR ONE, ENDED("s", "0") "," ENDED("c", "0"),
         "Succeeded s=" NO "(0) c=0" BEFORE},
        {DV_BARE_READY, SIDECAR ONE, ENDED("s", "1") "," RUNS("c"),
         "Running s=" NO "(1) c=runs" AT_WORK},
        /* released: by hand, with its owner, or because all have ended */
        {DV_BARE_RELEASED, ONE, "", "Succeeded c=0; Initialized"},
        {DV_BARE_RELEASED, INIT ONE, "", "Succeeded i=0 j=0 c=0; Initialized"},
        {DV_BARE_RELEASED, ONE, RUNS("c"), "Failed c=137; Initialized"},
        {DV_BARE_RELEASED, ONE, ENDED("c", "0"), "Succeeded c=0; Initialized"},
        {DV_BARE_RELEASED, TWO, ENDED("c", "3"), "Failed b=0 c=3; Initialized"},
        {DV_BARE_RELEASED, NEVER INIT ONE, ENDED("i", "1"),
         "Failed i=1 j=PodInitializing c=PodInitializing;"},
    };
    /* clang-format on */

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_api_pod pod = {0};
        struct dv_api_pod_status told = {0};
        struct dv_api_pod_status status = {0};
        struct dv_bare_facts facts = {
            .pod = &pod,
            .stage = cases[i].stage,
            .reason = DV_STR("Why"),
            .now = {.seconds = 9, .is_set = true}
        };

        decode(&dv_message_pod_spec,
               dv_str_to_c(dv_str_printf(arena, "{%s}", cases[i].spec), arena), arena, &pod.spec);
        decode(&dv_message_pod_status,
               dv_str_to_c(dv_str_printf(arena, "{containerStatuses: [%s]}", cases[i].told), arena),
               arena, &told);
        facts.told = told.container_statuses;
        facts.n_told = told.n_container_statuses;
        dv_bare_status(&facts, arena, &status);
        if (!dv_str_eq(print(&status, arena), dv_str_from_c(cases[i].status)))
            fail_msg("%s told %s: %.*s, not %s", cases[i].spec, cases[i].told,
                     DV_FMT(print(&status, arena)), cases[i].status);
        if (cases[i].stage == DV_BARE_READY)
            assert_int_equal(dv_bare_has_ended(&pod, facts.told, facts.n_told),
                             dv_str_eq(status.phase, DV_STR("Succeeded")) ||
                                 dv_str_eq(status.phase, DV_STR("Failed")));
    }
}

static const struct dv_api_pod_condition *find(const struct dv_api_pod_status *status,
                                               const char *type)
{
    for (size_t i = 0; i < status->n_conditions; i++)
        if (dv_str_eq(status->conditions[i].type, dv_str_from_c(type)))
            return &status->conditions[i];
    return NULL;
}

static void conditions_have_the_reasons_of_the_reference(void **state)
{
    static const struct {
        enum dv_bare_stage stage;
        const char *spec;
        const char *told;
        const char *type;
        const char *reason;
        const char *message;
    } cases[] = {
        {DV_BARE_WAITING, ONE,      "",                                                 DV_DEVICES_READY,    "Why",                "because"                                      },
        {DV_BARE_READY,   TWO,      RUNS("c"),                                          "Ready",             "ContainersNotReady",
         "containers with unready status: [b]"                                                                                                                                    },
        {DV_BARE_READY,   TWO,      "",                                                 "ContainersReady",   "ContainersNotReady",
         "containers with unready status: [b c]"                                                                                                                                  },
        {DV_BARE_READY,   INIT ONE, ENDED("i",                                          "0"),                "Initialized",        "ContainersNotInitialized",
         "containers with incomplete status: [j]"},
        {DV_BARE_READY,               "readinessGates: [{conditionType: a/b}], " ONE,           RUNS("c"), "Ready",
         "ReadinessGatesNotReady",              "corresponding condition of pod readiness gate \"a/b\" does not exist."                                                                                                                                                 },
        {DV_BARE_RELEASED,               ONE,        "",                                         "Ready",                                                   "PodCompleted",                        ""},
        {DV_BARE_RELEASED,               ONE,        "",                                         "Initialized",                                                   "PodCompleted",                  ""                                                                                                                                           },
        {DV_BARE_RELEASED,               NEVER ONE,        ENDED("c",                                   "2"),                                      "ContainersReady",                    "PodFailed",""},
        {DV_BARE_RELEASED,             ONE,                     "",                                                        DV_DEVICES_READY,                                                            "DevicesReleased",                                                          ""                                                                                                                                                                },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_api_pod pod = {0};
        struct dv_api_pod_status told = {0};
        struct dv_api_pod_status status = {0};
        struct dv_bare_facts facts = {.pod = &pod,
                                      .stage = cases[i].stage,
                                      .reason = DV_STR("Why"),
                                      .message = DV_STR("because")};

        decode(&dv_message_pod_spec,
               dv_str_to_c(dv_str_printf(arena, "{%s}", cases[i].spec), arena), arena, &pod.spec);
        decode(&dv_message_pod_status,
               dv_str_to_c(dv_str_printf(arena, "{containerStatuses: [%s]}", cases[i].told), arena),
               arena, &told);
        facts.told = told.container_statuses;
        facts.n_told = told.n_container_statuses;
        dv_bare_status(&facts, arena, &status);
        assert_non_null(find(&status, cases[i].type));
        assert_str(find(&status, cases[i].type)->reason, cases[i].reason);
        assert_str(find(&status, cases[i].type)->message, cases[i].message);
    }
}

/* It is never admitted; a status of each container would be megabytes, at every attempt. */
static void a_pod_of_too_many_containers_is_told_about_as_a_whole(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_pod pod = {.spec = {.n_containers = 40000}};
    struct dv_api_pod_status status = {0};
    struct dv_bare_facts facts = {.pod = &pod,
                                  .stage = DV_BARE_WAITING,
                                  .reason = DV_STR("Why"),
                                  .message = DV_STR("because")};

    (void)state;
    pod.spec.containers = DV_NEW_ARRAY(arena, struct dv_api_container, pod.spec.n_containers);
    for (size_t i = 0; i < pod.spec.n_containers; i++)
        pod.spec.containers[i].name = dv_str_printf(arena, "c%zu", i);
    dv_bare_status(&facts, arena, &status);
    assert_int_equal(status.n_container_statuses, 0);
    assert_str(status.phase, "Pending");
    assert_str(status.reason, "Why");
    assert_str(find(&status, DV_DEVICES_READY)->status, "False");
    assert_str(find(&status, DV_DEVICES_READY)->message, "because");
    assert_int_equal(status.n_conditions, 1);
}

static void an_owner_at_work_counts_for_what_nobody_told(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_pod pod = {0};
    struct dv_api_pod_status status = {0};
    struct dv_bare_facts facts = {.pod = &pod, .stage = DV_BARE_READY, .is_owned = true};

    (void)state;
    decode(&dv_message_pod_spec, "{" INIT ONE "}", arena, &pod.spec);
    dv_bare_status(&facts, arena, &status);
    assert_str(print(&status, arena), "Running i=0 j=0 c=runs" ALL);
}

static void a_condition_keeps_its_time_while_it_stays(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_pod pod = {0};
    struct dv_api_pod_status status = {0};
    struct dv_bare_facts facts = {
        .pod = &pod, .stage = DV_BARE_READY, .now = {.seconds = 50, .is_set = true}
    };

    (void)state;
    decode(&dv_message_pod,
           "{metadata: {generation: 3}, spec: {" ONE
           "}, status: {conditions: [{type: Ready, status: "
           "'False', lastTransitionTime: '1970-01-01T00:00:07Z'}, {type: Initialized, status: "
           "'False', lastTransitionTime: '1970-01-01T00:00:07Z'}]}}",
           arena, &pod);
    dv_bare_status(&facts, arena, &status);
    assert_int_equal(find(&status, "Ready")->last_transition_time.seconds, 7);
    assert_int_equal(find(&status, "Initialized")->last_transition_time.seconds, 50);
    assert_int_equal(find(&status, "Ready")->observed_generation, 3);
}

static void a_deleted_pod_restarts_nothing(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_pod pod = {0};

    (void)state;
    decode(&dv_message_pod_spec, "{" ONE "}", arena, &pod.spec);
    assert_true(dv_bare_may_restart(&pod, &pod.spec.containers[0], 1));
    pod.metadata.deletion_timestamp.is_set = true;
    assert_false(dv_bare_may_restart(&pod, &pod.spec.containers[0], 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_what_is_true),
        cmocka_unit_test(conditions_have_the_reasons_of_the_reference),
        cmocka_unit_test(a_pod_of_too_many_containers_is_told_about_as_a_whole),
        cmocka_unit_test(an_owner_at_work_counts_for_what_nobody_told),
        cmocka_unit_test(a_condition_keeps_its_time_while_it_stays),
        cmocka_unit_test(a_deleted_pod_restarts_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
