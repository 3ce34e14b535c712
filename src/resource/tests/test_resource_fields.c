/* test_resource_fields.c - sets of fields, and whose they are whatever is applied. */
#include "test_resource_patch.h"

#include "resource/patch.h"
#include "resource/patch/field_set.h"
#include "resource/patch/typed.h"
#include "resource/resource.h"
#include "support/dice.h"
#include "support/docs.h"
#include "support/dvtest.h"
#include "json/json.h"

static struct dv_fields read_set(const char *json)
{
    struct dv_fields fields = {0};
    struct dv_err err;

    assert_ok(dv_fields_parse(dv_str_from_c(json), arena, &fields, &err), &err);
    return fields;
}

static const struct {
    const char *text;
    const char *printed;
} texts[] = {
    {"{}",                                                                "{}"                                  },
    {"{\"f:b\":{},\"f:a\":{}}",                                           "{\"f:a\":{},\"f:b\":{}}"             },
    {"{\"f:a\":{\".\":{}}}",                                              "{\"f:a\":{}}"                        },
    {"{\"f:a\":{\"f:b\":{},\".\":{}}}",                                   "{\"f:a\":{\".\":{},\"f:b\":{}}}"     },
    {"{\"i:3\":{},\"v:\\\"x\\\"\":{},\"k:{\\\"n\\\":1}\":{},\"f:z\":{}}",
     "{\"f:z\":{},\"k:{\\\"n\\\":1}\":{},\"v:\\\"x\\\"\":{},\"i:3\":{}}"                                        },
    {"{\"k:{\\\"b\\\": 1, \\\"a\\\": 2}\":{}}",                           "{\"k:{\\\"a\\\":2,\\\"b\\\":1}\":{}}"},
};

static void sets_are_printed_in_one_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        struct dv_fields fields = read_set(texts[i].text);

        assert_str(dv_fields_print(&fields, arena), texts[i].printed);
    }
}

static const char *const bad[] = {
    "",
    "[]",
    "{\"a\":{}}",
    "{\"x:a\":{}}",
    "{\"f:a\":1}",
    "{\"k:nope\":{}}",
    "{\"k:{\\\"a\\\":1,\\\"b\\\":2}\":{},\"k:{\\\"b\\\":2,\\\"a\\\":1}\":{}}",
};

static void what_is_no_set_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(bad); i++) {
        struct dv_fields fields;
        struct dv_err err;

        assert_false(dv_fields_parse(dv_str_from_c(bad[i]), arena, &fields, &err));
        assert_int_equal(err.code, DV_INVALID_ARGUMENT);
    }
}

static void sets_are_combined_member_by_member(void **state)
{
    struct dv_fields a = read_set("{\"f:m\":{\".\":{},\"f:x\":{},\"f:y\":{}},\"f:s\":{}}");
    struct dv_fields b = read_set("{\"f:m\":{\"f:x\":{},\"f:z\":{}},\"f:t\":{}}");
    struct dv_fields got;

    (void)state;
    got = dv_fields_union(&a, &b, arena);
    assert_str(dv_fields_print(&got, arena),
               "{\"f:m\":{\".\":{},\"f:x\":{},\"f:y\":{},\"f:z\":{}},\"f:s\":{},\"f:t\":{}}");
    got = dv_fields_difference(&a, &b, DV_FIELDS_MEMBER, arena);
    assert_str(dv_fields_print(&got, arena), "{\"f:m\":{\".\":{},\"f:y\":{}},\"f:s\":{}}");
    got = dv_fields_intersection(&a, &b, DV_FIELDS_MEMBER, arena);
    assert_str(dv_fields_print(&got, arena), "{\"f:m\":{\"f:x\":{}}}");
    b = read_set("{\"f:m\":{}}");
    got = dv_fields_without(&a, &b, arena);
    assert_str(dv_fields_print(&got, arena), "{\"f:s\":{}}");
}

static void add_path(void *data, dv_str path)
{
    dv_str *all = data;

    *all = dv_str_printf(arena, "%.*s %.*s", DV_FMT(*all), DV_FMT(path));
}

static void members_are_told_by_their_paths(void **state)
{
    struct dv_fields fields = read_set(
        "{\"f:l\":{\"k:{\\\"a\\\":1,\\\"b\\\":\\\"x\\\"}\":{\".\":{},\"f:c\":{}},\"v:true\":"
        "{},\"i:4\":{}},\"f:z.y/x\":{}}");
    dv_str all = DV_STR("");

    (void)state;
    dv_fields_each(&fields, arena, add_path, &all);
    assert_str(all, " .z.y/x .l[a=1,b=\"x\"] .l[=true] .l[4] .l[a=1,b=\"x\"].c");
}

/* ---- owners ---- */

static void assert_endpoints(const struct dv_message *message, const char *config,
                             const char *by_object, const char *by_status)
{
    struct thing thing = {.message = message, .api_version = "v1", .now = 1000};

    apply(&thing, "m", config);
    assert_str(entry_at(&thing, 0)->fields_v1, by_object);
    thing = (struct thing){
        .message = message, .api_version = "v1", .subresource = "status", .now = 1000};
    apply(&thing, "m", config);
    assert_str(entry_at(&thing, 0)->fields_v1, by_status);
}

/* Of an object with a status, each endpoint owns what it may write. */
static void an_endpoint_owns_only_what_it_writes(void **state)
{
    (void)state;
    assert_endpoints(&dv_message_deployment,
                     "{metadata: {labels: {a: b}}, spec: {replicas: 3}, status: {replicas: 3}}",
                     "{\"f:metadata\":{\"f:labels\":{\"f:a\":{}}},\"f:spec\":{\"f:replicas\":{}}}",
                     "{\"f:status\":{\"f:replicas\":{}}}");
    assert_endpoints(
        &dv_message_replica_set,
        "{metadata: {labels: {a: b}}, spec: {replicas: 3}, status: {replicas: 3}}",
        "{\"f:metadata\":{\"f:labels\":{\"f:a\":{}}},\"f:spec\":{\"f:replicas\":{}}}",
        "{\"f:metadata\":{\"f:labels\":{\"f:a\":{}}},\"f:status\":{\"f:replicas\":{}}}");
    assert_endpoints(
        &dv_message_daemon_set, "{spec: {minReadySeconds: 3}, status: {numberReady: 3}}",
        "{\"f:spec\":{\"f:minReadySeconds\":{}}}", "{\"f:status\":{\"f:numberReady\":{}}}");
    assert_endpoints(&dv_message_job, "{spec: {parallelism: 3}, status: {active: 3}}",
                     "{\"f:spec\":{\"f:parallelism\":{}}}", "{\"f:status\":{\"f:active\":{}}}");
    assert_endpoints(&dv_message_service,
                     "{spec: {type: ClusterIP}, status: {conditions: [{type: a}]}}",
                     "{\"f:spec\":{\"f:type\":{}}}",
                     "{\"f:status\":{\"f:conditions\":{\"k:{\\\"type\\\":\\\"a\\\"}\":{\".\":{},"
                     "\"f:type\":{}}}}}");
    assert_endpoints(
        &dv_message_resource_quota, "{spec: {hard: {pods: 1}}, status: {used: {pods: 1}}}",
        "{\"f:spec\":{\"f:hard\":{\"f:pods\":{}}}}", "{\"f:status\":{\"f:used\":{\"f:pods\":{}}}}");
}

#define OWNER(uid, name) "{apiVersion: v1, kind: Pod, uid: " uid ", name: " name "}"
#define OWNED_BY(list) "{metadata: {name: p, ownerReferences: [" list "]}}"

/* An owner is told apart by its uid, and belongs to one manager as a whole. */
static void references_to_owners_are_whole(void **state)
{
    struct thing thing = pod();
    struct dv_apply_result result;

    (void)state;
    apply(&thing, "a", OWNED_BY(OWNER("u", "x")));
    assert_owners(&thing, "a Apply  {\"f:metadata\":{\"f:ownerReferences\":{\"k:{\\\"uid\\\":\\\"u"
                          "\\\"}\":{}}}}");
    apply(&thing, "b", OWNED_BY(OWNER("v", "z")));
    assert_int_equal(thing.managed.n, 2);
    result = try_apply(&thing, "b", OWNED_BY(OWNER("u", "z")), false);
    assert_int_equal(result.n_conflicts, 1);
    assert_str(result.conflicts[0].field, ".metadata.ownerReferences[uid=\"u\"]");
    apply(&thing, "a", "{metadata: {name: p}}");
    assert_doc(thing.live, OWNED_BY(OWNER("v", "z")));
}

/* ---- what holds whatever is applied ---- */

static dv_str pick(struct dice *dice, const char *const *choices, unsigned n)
{
    return dv_str_from_c(choices[roll(dice, n)]);
}

/* The texts that chance has not left out, between `before` and `after`; nothing when none is left:
 * an empty list cannot be told from none. */
static dv_str some(struct dice *dice, const char *before, const dv_str *all, size_t n,
                   const char *after)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < n; i++)
        if (all[i].n > 0 && roll(dice, 3) > 0)
            text = dv_str_printf(arena, "%.*s%s%.*s", DV_FMT(text), text.n > 0 ? ", " : "",
                                 DV_FMT(all[i]));
    return text.n > 0 ? dv_str_printf(arena, "%s%.*s%s", before, DV_FMT(text), after) : text;
}

static dv_str random_container(struct dice *dice, char name)
{
    static const char *const envs[] = {"{name: A, value: '1'}", "{name: A, value: '2'}",
                                       "{name: A}"};
    static const char *const others[] = {"{name: B, value: '1'}", "{name: B, value: '2'}"};
    static const char *const ports[] = {"{containerPort: 80}", "{containerPort: 80, name: p}",
                                        "{containerPort: 80, protocol: UDP}"};
    static const char *const images[] = {"image: i", "image: j"};
    static const char *const args[] = {"args: [a]", "args: [a, b]"};
    const dv_str env[] = {pick(dice, envs, 3), pick(dice, others, 2)};
    const dv_str port[] = {pick(dice, ports, 3), DV_STR("{containerPort: 81}")};
    const dv_str requests[] = {DV_STR("cpu: '1'"), DV_STR("memory: 1Gi")};
    const dv_str fields[] = {
        pick(dice, images, 2),
        pick(dice, args, 2),
        some(dice, "env: [", env, DV_COUNT(env), "]"),
        some(dice, "ports: [", port, DV_COUNT(port), "]"),
        some(dice, "resources: {requests: {", requests, DV_COUNT(requests), "}}"),
    };

    dv_str text = some(dice, ", ", fields, DV_COUNT(fields), "");

    return dv_str_printf(arena, "{name: %c%.*s}", name, DV_FMT(text));
}

/* A pod with nested lists of every sort: with one key, with two, sets, and those that are whole. */
static const char *random_pod(struct dice *dice)
{
    static const char *const labels[] = {"a: '1'", "a: '2'"};
    static const char *const tolerations[] = {"tolerations: [{key: s}]",
                                              "tolerations: [{key: t}, {key: s}]"};
    const dv_str label[] = {pick(dice, labels, 2), DV_STR("b: '1'")};
    const dv_str finalizers[] = {DV_STR("f/a"), DV_STR("f/b")};
    const dv_str containers[] = {random_container(dice, 'c'), random_container(dice, 'd')};
    const dv_str meta[] = {some(dice, "labels: {", label, DV_COUNT(label), "}"),
                           some(dice, "finalizers: [", finalizers, DV_COUNT(finalizers), "]")};
    const dv_str spec[] = {some(dice, "containers: [", containers, DV_COUNT(containers), "]"),
                           pick(dice, tolerations, 2)};

    dv_str of_meta = some(dice, ", ", meta, DV_COUNT(meta), "");
    dv_str of_spec = some(dice, ", spec: {", spec, DV_COUNT(spec), "}");

    return dv_str_to_c(
        dv_str_printf(arena, "{metadata: {name: p%.*s}%.*s}", DV_FMT(of_meta), DV_FMT(of_spec)),
        arena);
}

static struct dv_fields there(const struct thing *thing)
{
    const struct dv_typed root = dv_typed_root(thing->message);
    struct dv_fields fields = dv_typed_fields(&root, thing->live, arena);

    return dv_typed_with_parents(&root, &fields, arena);
}

/* What is in the document is somebody's, but for its name. */
static void assert_all_owned(const struct thing *thing)
{
    const struct dv_typed root = dv_typed_root(thing->message);
    struct dv_fields left = dv_typed_fields(&root, thing->live, arena);
    struct dv_fields owned = read_set("{\"f:metadata\":{\"f:name\":{}}}");

    for (size_t i = 0; i < thing->managed.n; i++) {
        struct dv_fields fields = read_set(dv_str_to_c(thing->managed.v[i].fields_v1, arena));

        owned = dv_fields_union(&owned, &fields, arena);
    }
    owned = dv_typed_with_parents(&root, &owned, arena);
    left = dv_fields_difference(&left, &owned, DV_FIELDS_MEMBER, arena);
    if (!dv_fields_is_empty(&left))
        fail_msg("nobody owns %.*s of %.*s", DV_FMT(dv_fields_print(&left, arena)),
                 DV_FMT(print(thing->live)));
}

/* What somebody owns is there. */
static void assert_all_there(const struct thing *thing)
{
    struct dv_fields all = there(thing);

    for (size_t i = 0; i < thing->managed.n; i++) {
        struct dv_fields fields = read_set(dv_str_to_c(thing->managed.v[i].fields_v1, arena));

        fields = dv_fields_difference(&fields, &all, DV_FIELDS_MEMBER, arena);
        if (!dv_fields_is_empty(&fields))
            fail_msg("%.*s owns %.*s, which is not in %.*s", DV_FMT(thing->managed.v[i].manager),
                     DV_FMT(dv_fields_print(&fields, arena)), DV_FMT(print(thing->live)));
    }
}

/* Merged into what there is, the configuration changes nothing. */
static void assert_applied(const struct thing *thing, const char *config)
{
    const struct dv_typed root = dv_typed_root(thing->message);
    struct dv_json *merged = dv_typed_merge(&root, thing->live, parse_yaml(config), arena);
    struct dv_fields changes = dv_typed_compare(&root, thing->live, merged, arena);

    changes = dv_fields_only(&changes, DV_FIELDS_ADDED | DV_FIELDS_MODIFIED, arena);
    if (!dv_fields_is_empty(&changes))
        fail_msg("%s left %.*s of %.*s", config, DV_FMT(dv_fields_print(&changes, arena)),
                 DV_FMT(print(thing->live)));
}

/* As when the object is stored: what is empty is not there. */
static struct dv_json *without_empty(struct dv_json *doc)
{
    struct dv_json *next;

    for (struct dv_json *node = dv_json_first(doc); node; node = next) {
        bool is_container = dv_json_is(node, DV_JSON_OBJECT) || dv_json_is(node, DV_JSON_ARRAY);

        next = dv_json_next(node);
        if (dv_json_is(node, DV_JSON_NULL) || (is_container && dv_json_n(without_empty(node)) == 0))
            dv_json_remove(node);
    }
    return doc;
}

static void apply_at_random(struct thing *thing, struct dice *dice)
{
    static const char *const names[] = {"a", "b", "c"};
    const char *name = names[roll(dice, 3)];
    const char *config = random_pod(dice);
    bool is_forced = roll(dice, 2) > 0;
    struct dv_apply_result result = try_apply(thing, name, config, is_forced);

    if (result.n_conflicts > 0) {
        assert_false(is_forced);
        return;
    }
    thing->live = without_empty(result.doc);
    thing->managed = result.managed;
    thing->now++;
    assert_applied(thing, config);
    assert_all_there(thing);
    assert_all_owned(thing);
    result = try_apply(thing, name, config, false);
    assert_int_equal(result.n_conflicts, 0);
    assert_true(dv_json_eq(result.doc, thing->live));
    assert_true(dv_managed_fields_eq(&result.managed, &thing->managed));
}

static void whatever_is_applied_has_its_owners(void **state)
{
    static const char *const names[] = {"a", "b", "c"};

    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct dice dice = {seed};
        struct thing thing = pod();

        for (unsigned step = 0; step < 12; step++)
            apply_at_random(&thing, &dice);
        /* The last one to go takes all with it. */
        for (size_t i = 0; i < DV_COUNT(names); i++) {
            apply(&thing, names[i], "{metadata: {name: p}}");
            thing.live = without_empty(thing.live);
        }
        assert_int_equal(thing.managed.n, 0);
        assert_doc(thing.live, "{metadata: {name: p}}");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(sets_are_printed_in_one_way),          doc_test(what_is_no_set_is_refused),
        doc_test(sets_are_combined_member_by_member),   doc_test(members_are_told_by_their_paths),
        doc_test(an_endpoint_owns_only_what_it_writes), doc_test(references_to_owners_are_whole),
        doc_test(whatever_is_applied_has_its_owners),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
