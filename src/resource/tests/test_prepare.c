#include "test_values.h"

#include "resource/prepare.h"

static const struct dv_time now = {.seconds = 1700000000, .is_set = true};

static struct dv_prepare how_in(struct dv_arena *arena)
{
    return (struct dv_prepare){.now = now, .gates = DV_GATES_DEFAULT, .arena = arena};
}

static const struct {
    const char *what;
    enum dv_kind_id kind;
    const char *text;
    const char *printed;
} creates[] = {
    {
     .what = "no status, no generation, no deletion",
     .kind = DV_KIND_CLAIM,
     .text = "{\"metadata\":{\"name\":\"c\",\"selfLink\":\"s\",\"deletionTimestamp\":"
                "\"2024-01-01T00:00:00Z\",\"deletionGracePeriodSeconds\":1},\"status\":{"
                "\"reservedFor\":"
                "[{\"resource\":\"pods\",\"name\":\"n\",\"uid\":\"u\"}]}}", .printed = "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"devices\":{\"requests\":null}},"
                   "\"status\":{}}", },
    {
     .what = "a namespace is active and has a finalizer",
     .kind = DV_KIND_NAMESPACE,
     .text = "{\"spec\":{\"finalizers\":[\"a\"]},\"status\":{\"phase\":\"Terminating\"}}",
     .printed = "{\"metadata\":{},\"spec\":{\"finalizers\":[\"a\",\"kubernetes\"]},\"status\":{"
                   "\"phase\":"
                   "\"Active\"}}", },
    {
     .what = "a pod that waits for gates says so",
     .kind = DV_KIND_POD,
     .text = "{\"metadata\":{\"generation\":7},\"spec\":{\"containers\":[],\"schedulingGates\":"
                "[{\"name\":\"g\"}]},\"status\":{\"podIP\":\"1\"}}",                                      .printed =
            "{\"metadata\":{\"generation\":1},\"spec\":{\"containers\":[],\"schedulingGates\":[{"
            "\"name\":"
            "\"g\"}]},\"status\":{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\","
            "\"status\":\"False\",\"lastProbeTime\":null,\"lastTransitionTime\":null,\"reason\":"
            "\"SchedulingGated\",\"message\":\"Scheduling is blocked due to non-empty scheduling "
            "gates\"}]"
            ",\"qosClass\":\"BestEffort\"}}", },
    {
     .what = "fields of features that are off are dropped",
     .kind = DV_KIND_SLICE,
     .text = "{\"spec\":{\"devices\":[{\"name\":\"a\",\"attributes\":{\"x\":{\"ints\":[1]}},"
                "\"bindsToNode\":true,\"nodeAllocatableResourceMappings\":{\"cpu\":{}}}]}}",        .printed =
            "{\"metadata\":{\"generation\":1},\"spec\":{\"driver\":\"\",\"pool\":{\"name\":\"\","
            "\"generation\":0,\"resourceSliceCount\":0},\"devices\":[{\"name\":\"a\","
            "\"attributes\":"
            "{\"x\":{}},\"bindsToNode\":true}]}}", },
    {
     .what = "an owner that is there twice stays once, and all that differ stay",
     .kind = DV_KIND_CONFIG_MAP,
     .text = "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
                "\"name\":\"a\",\"uid\":\"1\"},{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":"
                "\"b\",\"uid\":\"1\"},{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"a\","
                "\"uid\":\"1\"},{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"a\",\"uid\":"
                "\"1\",\"controller\":false}]}}",                 .printed = "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
                   "\"name\":\"a\",\"uid\":\"1\"},{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":"
                   "\"b\",\"uid\":\"1\"},{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"a\","
                   "\"uid\":\"1\",\"controller\":false}]}}", },
};

static void a_new_object_has_what_the_server_gives_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(creates); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        const struct dv_kind *kind = dv_kind(creates[i].kind);
        const struct dv_message *message = kind->versions[0].message;
        void *value = decoded(message, creates[i].text, arena);
        struct dv_prepare how = how_in(arena);
        dv_str printed;

        dv_prepare_create(kind, value, &how);
        printed = as_json(message, value, arena);
        if (!dv_str_eq(printed, dv_str_from_c(creates[i].printed)))
            fail_msg("%s: got %.*s", creates[i].what, DV_FMT(printed));
    }
}

#define RULE(effect, time, generation, status)                                                     \
    "{\"metadata\":{\"generation\":" generation "},\"spec\":{\"taint\":{\"key\":\"k\",\"effect\":" \
    "\"" effect "\",\"timeAdded\":\"" time "\"}},\"status\":" status "}"
#define LONG_AGO "2001-01-01T00:00:00Z"
#define CONDITION                                                                                  \
    "{\"conditions\":[{\"type\":\"t\",\"status\":\"\",\"lastTransitionTime\":null,\"reason\":"     \
    "\"\",\"message\":\"\"}]}"
#define CLAIM(spec, meta, status)                                                                  \
    "{\"metadata\":{" meta "},\"spec\":{\"devices\":{\"requests\":" spec "}},\"status\":" status "}"
#define RESULT(device)                                                                             \
    "{\"request\":\"r\",\"driver\":\"d\",\"pool\":\"p\",\"device\":\"" device "\"}"
#define DEVICE(device)                                                                             \
    "{\"driver\":\"d\",\"pool\":\"p\",\"device\":\"" device "\",\"conditions\":null}"

#define TWO_ALLOCATED                                                                              \
    CLAIM("null", "",                                                                              \
          "{\"allocation\":{\"devices\":{\"results\":[" RESULT("1") "," RESULT("2") "]}}}")
#define ONE_ALLOCATED "{\"allocation\":{\"devices\":{\"results\":[" RESULT("2") "]}},\"devices\":["
#define ONE_OF_THREE_ALLOCATED                                                                     \
    CLAIM("null", "", ONE_ALLOCATED DEVICE("1") "," DEVICE("2") "," DEVICE("3") "]}")
#define TWO_DEVICES_LEFT CLAIM("null", "", ONE_ALLOCATED DEVICE("2") "," DEVICE("3") "]}")

static const struct {
    const char *what;
    enum dv_kind_id kind;
    enum dv_operation operation;
    const char *old;
    const char *text;
    const char *printed;
} updates[] = {
    {
     .what = "a new effect counts from now",
     .kind = DV_KIND_TAINT_RULE,
     .operation = DV_UPDATE,
     .old = RULE("NoSchedule",                                     LONG_AGO,                              "3", "{}"),
     .text = RULE("NoExecute", LONG_AGO, "9", CONDITION),
     .printed = RULE("NoExecute", "2023-11-14T22:13:20Z", "4", "{}"),
     },
    {
     .what = "or from when the client says",
     .kind = DV_KIND_TAINT_RULE,
     .operation = DV_UPDATE,
     .old = RULE("NoSchedule",                      LONG_AGO,                                                 "3", CONDITION),
     .text = RULE("NoExecute", "2002-01-01T00:00:00Z", "3", "{}"),
     .printed = RULE("NoExecute", "2002-01-01T00:00:00Z", "4", CONDITION),
     },
    {
     .what = "the same spec has the same generation",
     .kind = DV_KIND_TAINT_RULE,
     .operation = DV_UPDATE,
     .old = RULE("None",                                                            LONG_AGO,                                                                                                         "3", "{}"),
     .text = RULE("None", LONG_AGO, "0", "{}"),
     .printed = RULE("None", LONG_AGO, "3", "{}"),
     },
    {
     .what = "only the status",
     .kind = DV_KIND_TAINT_RULE,
     .operation = DV_UPDATE_STATUS,
     .old = RULE("None",      LONG_AGO,"3", "{}"),
     .text = RULE("NoExecute", LONG_AGO, "5", CONDITION),
     .printed = RULE("None", LONG_AGO, "3", CONDITION),
     },
    {
     .what = "all but the status",
     .kind = DV_KIND_CLAIM,
     .operation = DV_UPDATE,
     .old = CLAIM("null",
     "\"uid\":\"u\",\"creationTimestamp\":\"2001-01-01T00:00:00Z\","
                     "\"deletionTimestamp\":\"2002-01-01T00:00:00Z\"",                                                                         "{\"allocation\":{}}"),
     .text = CLAIM("[]", "\"labels\":{\"a\":\"b\"}", "{}"),
     .printed = CLAIM("[]",
     "\"uid\":\"u\",\"creationTimestamp\":\"2001-01-01T00:00:00Z\","
                         "\"deletionTimestamp\":\"2002-01-01T00:00:00Z\",\"labels\":{\"a\":\"b\"}", "{\"allocation\":{\"devices\":{}}}"),
     },
    {
     .what = "labels do not change with the status",
     .kind = DV_KIND_CLAIM,
     .operation = DV_UPDATE_STATUS,
     .old = CLAIM("null",                                                                  "\"labels\":{\"a\":\"b\"},\"finalizers\":[\"f\"]",                                                     "{}"),
     .text = CLAIM("[]", "\"labels\":{\"c\":\"d\"},\"annotations\":{\"a\":\"\"}",
     "{\"allocation\":{}}"),
     .printed = CLAIM("null", "\"labels\":{\"a\":\"b\"},\"finalizers\":[\"f\"]",
     "{\"allocation\":{\"devices\":{}}}"),
     },
    {
     .what = "the status of a device goes with its allocation",
     .kind = DV_KIND_CLAIM,
     .operation = DV_UPDATE_STATUS,
     .old = TWO_ALLOCATED,
     .text = ONE_OF_THREE_ALLOCATED,
     .printed = TWO_DEVICES_LEFT,
     },
    {
     .what = "a feature that is off stays where it is used",
     .kind = DV_KIND_LEASE,
     .operation = DV_UPDATE,
     .old = "{\"spec\":{\"strategy\":\"s\"}}",
     .text = "{\"spec\":{\"preferredHolder\":\"h\"}}",
     .printed = "{\"metadata\":{},\"spec\":{\"preferredHolder\":\"h\"}}",
     },
    {
     .what = "and else is dropped",
     .kind = DV_KIND_LEASE,
     .operation = DV_UPDATE,
     .old = "{\"spec\":{\"holderIdentity\":\"i\"}}",
     .text = "{\"spec\":{\"preferredHolder\":\"h\"}}",
     .printed = "{\"metadata\":{},\"spec\":{}}",
     },
    {
     .what = "a kubelet changes no owners",
     .kind = DV_KIND_POD,
     .operation = DV_UPDATE_STATUS,
     .old = "{\"metadata\":{\"generation\":2},\"spec\":{\"nodeName\":\"n\",\"containers\":[]},"
               "\"status\":{\"qosClass\":\"Burstable\"}}",                .text =
            "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"u\"}]},\"spec\":{\"containers\":[]},"
            "\"status\":{\"phase\":\"Running\",\"qosClass\":\"BestEffort\"}}",                                                                            .printed =
            "{\"metadata\":{\"generation\":2},\"spec\":{\"containers\":[],\"nodeName\":\"n\"},"
            "\"status\":{\"phase\":\"Running\",\"qosClass\":\"Burstable\"}}", },
    {
     .what = "nobody changes the finalizers of a namespace",
     .kind = DV_KIND_NAMESPACE,
     .operation = DV_UPDATE,
     .old = "{\"spec\":{\"finalizers\":[\"kubernetes\"]},\"status\":{\"phase\":\"Active\"}}",
     .text = "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{}}",
     .printed =
            "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"finalizers\":[\"kubernetes\"]},"
            "\"status\":{\"phase\":\"Active\"}}", },
};

static void an_update_changes_what_it_may(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(updates); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        const struct dv_kind *kind = dv_kind(updates[i].kind);
        const struct dv_message *message = kind->versions[0].message;
        void *old = decoded(message, updates[i].old, arena);
        void *value = decoded(message, updates[i].text, arena);
        struct dv_prepare how = how_in(arena);
        dv_str before = as_json(message, old, arena);
        dv_str printed;

        dv_prepare_update(kind, updates[i].operation, value, old, &how);
        printed = as_json(message, value, arena);
        if (!dv_str_eq(printed, dv_str_from_c(updates[i].printed)))
            fail_msg("%s: got %.*s", updates[i].what, DV_FMT(printed));
        assert_true(dv_str_eq(as_json(message, old, arena), before));
    }
}

#define REQUESTS "{\"requests\":{\"cpu\":\"1\",\"memory\":\"1Gi\"},"
#define SAME REQUESTS "\"limits\":{\"cpu\":\"1000m\",\"memory\":\"1024Mi\"}}"
#define MORE REQUESTS "\"limits\":{\"cpu\":\"2\",\"memory\":\"1Gi\"}}"

static const struct {
    const char *resources; /* of a container */
    const char *other;     /* of a second one */
    const char *class;
} classes[] = {
    {"{}",                                            "{}", "BestEffort"},
    {"{\"requests\":{\"vendor.example/gpu\":\"1\"}}", "{}", "BestEffort"},
    {"{\"requests\":{\"cpu\":\"0\"}}",                "{}", "BestEffort"},
    {"{\"requests\":{\"cpu\":\"1\"}}",                "{}", "Burstable" },
    {SAME,                                            "{}", "Burstable" },
    {SAME,                                            SAME, "Guaranteed"},
    {SAME,                                            MORE, "Burstable" },
};

static void the_qos_class_is_by_limits_and_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(classes); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        dv_str text = dv_str_printf(arena,
                                    "{\"spec\":{\"containers\":[{\"resources\":%s}],"
                                    "\"initContainers\":[{\"resources\":%s}]}}",
                                    classes[i].resources, classes[i].other);
        struct dv_api_pod *pod = decoded(&dv_message_pod, dv_str_to_c(text, arena), arena);

        assert_str(dv_pod_qos_class(pod, arena), classes[i].class);
    }
}

static void owners_that_repeat_make_a_warning(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_object_meta *meta =
        decoded(&dv_message_object_meta,
                "{\"ownerReferences\":[{\"uid\":\"a\"},{\"uid\":\"b\"},{\"uid\":\"a\"}]}", arena);
    dv_str warning = dv_dedup_owners(meta, arena);

    (void)state;
    assert_int_equal(meta->n_owner_references, 2);
    assert_true(dv_str_ends_with(warning, DV_STR("duplicate UID(s) observed: a")));
    assert_int_equal(dv_dedup_owners(meta, arena).n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_object_has_what_the_server_gives_it),
        cmocka_unit_test(an_update_changes_what_it_may),
        cmocka_unit_test(the_qos_class_is_by_limits_and_requests),
        cmocka_unit_test(owners_that_repeat_make_a_warning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
