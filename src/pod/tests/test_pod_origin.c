/* test_pod_origin.c - who wants a pod here is what the caller says, and what our row of it says:
 * never what the pod says of itself. */
#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "device/device.h"
#include "pod/admission/pod_marks.h"
#include "pod/admission/pod_row.h"
#include "pod/pod.h"
#include "pod/tests/test_agent_host.h"
#include "resource/resource.h"
#include "json/json.h"

#define SPEC_JSON                                                                                  \
    "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" GPU "\":1}}}]}"
#define POD(annotations)                                                                           \
    "{\"metadata\":{\"name\":\"p1\",\"uid\":\"p1\",\"annotations\":{" annotations "}}," SPEC_JSON  \
    "}"
#define FROM_API "\"davit.node/from-api\":\"\""
#define IMPORTED "\"davit.node/imported\":\"true\""
#define START "\"davit.node/owner-start\":\"42\""
#define ROW(origin, annotations)                                                                   \
    "{\"origin\":\"" origin "\",\"ownerStart\":\"7\",\"pod\":" POD(annotations) "}"
#define NODE_ROW(annotations) ROW("node", annotations)
#define API_ROW(annotations) ROW("api", annotations)
#define IMPORT_ROW(annotations) ROW("import", annotations)
#define OTHER_ROW(annotations) ROW("other", annotations)

static void rows_of_both_kinds_are_read(void **state)
{
    static const struct {
        const char *row;
        enum dv_pod_origin origin;
        const char *start;
        const char *why; /* NULL: it can be read */
    } rows[] = {
        {POD(""),                      DV_POD_ORIGIN_NODE,   "",   NULL             },
        {POD(FROM_API),                DV_POD_ORIGIN_API,    "",   NULL             },
        {POD(IMPORTED),                DV_POD_ORIGIN_IMPORT, "",   NULL             },
        {POD(START),                   DV_POD_ORIGIN_NODE,   "42", NULL             },
        {NODE_ROW(FROM_API "," START), DV_POD_ORIGIN_NODE,   "7",  NULL             },
        {API_ROW(IMPORTED),            DV_POD_ORIGIN_API,    "7",  NULL             },
        {IMPORT_ROW(""),               DV_POD_ORIGIN_IMPORT, "7",  NULL             },
        {OTHER_ROW(""),                0,                    "",   "origin: is none"},
        {"{\"origin\":\"api\"}",       0,                    "",   "pod"            },
        {"{}",                         0,                    "",   "pod"            },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_pod_spec spec;
        struct dv_err err;
        bool is_read = dv_pod_row_parse(dv_str_from_c(rows[i].row), arena, &spec, &err);

        assert_int_equal(is_read, !rows[i].why);
        if (rows[i].why) {
            assert_err(&err, DV_INVALID_ARGUMENT, rows[i].why);
            continue;
        }
        assert_int_equal(spec.origin, rows[i].origin);
        assert_true(dv_str_eq(spec.owner_start, dv_str_from_c(rows[i].start)));
    }
}

static void a_row_is_read_as_it_was_printed(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const dv_str json = DV_STR(POD(FROM_API "," IMPORTED "," START));
    struct dv_pod_spec spec;
    struct dv_pod_spec again;
    struct dv_err err;

    (void)state;
    assert_ok(dv_pod_spec_parse(json, arena, &spec, &err), &err);
    assert_int_equal(spec.origin, DV_POD_ORIGIN_NODE);
    assert_int_equal(spec.owner_start.n, 0);
    for (int i = DV_POD_ORIGIN_NODE; i <= DV_POD_ORIGIN_IMPORT; i++) {
        spec.origin = (enum dv_pod_origin)i;
        assert_ok(dv_pod_row_parse(dv_pod_row_print(&spec, json, arena), arena, &again, &err),
                  &err);
        assert_int_equal(again.origin, i);
        assert_true(dv_str_eq(again.ref.uid, DV_STR("p1")));
    }
}

/* What the deepest Pod that is taken becomes must be read again. */
static void a_deep_pod_is_read_again(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const size_t depth = DV_JSON_DEPTH_MAX - 1; /* in the object of the Pod */
    char *deep = DV_NEW_ARRAY(arena, char, 2 * depth);
    struct dv_pod_spec spec;
    struct dv_err err;
    dv_str json;

    (void)state;
    memset(deep, '[', depth);
    memset(deep + depth, ']', depth);
    json = dv_str_printf(arena, "{\"x\":%.*s,\"metadata\":{\"name\":\"p\"}," SPEC_JSON "}",
                         (int)(2 * depth), deep);
    assert_ok(dv_pod_spec_parse(json, arena, &spec, &err), &err);
    assert_ok(dv_pod_row_parse(dv_pod_row_print(&spec, json, arena), arena, &spec, &err), &err);
}

/* A typed pod and its text tell the same. */
static void a_pod_reads_the_same_typed_and_as_text(void **state)
{
    static const char json[] =
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\",\"annotations\":{"
        "\"davit.node/owner-cgroup\":\"a/b\"}},"
        "\"spec\":{\"resourceClaims\":[{\"name\":\"r\",\"resourceClaimName\":\"r1\"}],"
        "\"initContainers\":[{\"name\":\"i\"},{\"name\":\"s\",\"restartPolicy\":\"Always\","
        "\"resources\":{\"limits\":{\"z.io/z\":\"2\",\"a.io/a\":1,\"cpu\":\"1\"}}}],"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"a.io/a\":\"1k\"}}}]},"
        "\"status\":{\"extendedResourceClaimStatus\":{\"requestMappings\":[{\"containerName\":"
        "\"s\",\"resourceName\":\"z.io/z\",\"requestName\":\"q\"}],\"resourceClaimName\":\"e\"}}}";
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_pod *pod = DV_NEW(arena, struct dv_api_pod);
    struct dv_pod_spec parsed;
    struct dv_pod_spec typed;
    struct dv_err err;
    const struct dv_json *doc = dv_json_parse(dv_str_from_c(json), NULL, arena, &err);

    (void)state;
    assert_ok(dv_decode_json(&dv_message_pod, doc, DV_UNKNOWN_DROP, arena, pod, NULL, &err), &err);
    assert_ok(dv_pod_spec_parse(dv_str_from_c(json), arena, &parsed, &err), &err);
    assert_ok(dv_pod_spec_read(pod, arena, &typed, &err), &err);
    assert_int_equal(typed.origin, DV_POD_ORIGIN_API);
    assert_true(dv_str_eq(typed.ref.uid, parsed.ref.uid));
    assert_true(dv_str_eq(typed.ref.name, parsed.ref.name));
    assert_true(dv_str_eq(typed.owner_cgroup, parsed.owner_cgroup));
    assert_true(typed.object && parsed.object);
    assert_int_equal(typed.n_containers, parsed.n_containers);
    for (size_t i = 0; i < typed.n_containers; i++) {
        const struct dv_pod_container *a = &typed.containers[i];
        const struct dv_pod_container *b = &parsed.containers[i];

        assert_true(dv_str_eq(a->name, b->name));
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->n_limits, b->n_limits);
        for (size_t k = 0; k < a->n_limits; k++) {
            assert_true(dv_str_eq(a->limits[k].resource, b->limits[k].resource));
            assert_int_equal(a->limits[k].amount, b->limits[k].amount);
            assert_int_equal(a->limits[k].is_claimed, b->limits[k].is_claimed);
        }
    }
}

static void what_a_typed_pod_must_not_have_is_refused(void **state)
{
    static const struct {
        const char *json;
        const char *why;
    } rows[] = {
        {"{\"name\":\"c\",\"resources\":{\"limits\":{\"a.io/a\":\"1500m\"}}}",
         "not a whole number"                                                                     },
        {"{\"name\":\"c\",\"resources\":{\"limits\":{\"a.io/a\":\"-1\"}}}",    "is negative"      },
        {"{\"name\":\"c\\u0000\"}",                                            "control character"},
        {"{\"name\":\"\"}",                                                    "has 0 bytes"      },
        {"",                                                                   "has 0 containers" },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_api_pod *pod = DV_NEW(arena, struct dv_api_pod);
        struct dv_pod_spec spec;
        struct dv_err err;
        const struct dv_json *doc =
            dv_json_parse(dv_str_printf(arena,
                                        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":"
                                        "\"u\"},\"spec\":{\"containers\":[%s]}}",
                                        rows[i].json),
                          NULL, arena, &err);

        assert_ok(dv_decode_json(&dv_message_pod, doc, DV_UNKNOWN_DROP, arena, pod, NULL, &err),
                  &err);
        assert_false(dv_pod_spec_read(pod, arena, &spec, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, rows[i].why);
    }
}

/* The API does not have it any more: what it held is given back. */
static void a_row_of_an_older_davitd_is_a_pod_of_the_api(void **state)
{
    struct world *world = *state;

    put_pod(world, "p1", DV_STR(POD(FROM_API)));
    world_close_node(world);
    world_open_node(world);
    expect_held(world, "");
}

/* A pod that somebody on the node wants is not the API's because it says so: the agent would give
 * back at the next start what the API knows nothing of. */
static void a_pod_cannot_say_that_the_api_wants_it(void **state)
{
    struct world *world = *state;

    assert_null(admit_by_hand(world, POD(FROM_API)));
    world_close_node(world);
    world_open_node(world);
    pass(world, 5000);
    assert_string_equal(held(world), "p1=g0 ");
    assert_null(release_by_hand(world, "p1"));
    expect_held(world, "");
}

/* The key of a mark in the store begins like this uid. */
static void a_uid_may_look_like_a_mark(void **state)
{
    struct world *world = *state;

    assert_null(
        admit_by_hand(world, "{\"metadata\":{\"name\":\"p1\",\"uid\":\"ended/1\"}," SPEC_JSON "}"));
    world_close_node(world);
    world_open_node(world);
    expect_held(world, "p1=g0 ");
    assert_false(dv_pods_has_ended(world->pods, DV_STR("1")));
}

/* ---- marks ---- */

struct place {
    char dir[64];
    char marks[80];
};

static int marks_start(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    assert_non_null(place);
    (void)snprintf(place->dir, sizeof(place->dir), "/tmp/dv-marks-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    (void)snprintf(place->marks, sizeof(place->marks), "%s/marks", place->dir);
    *state = place;
    return 0;
}

static bool is_nobody(const void *ctx, dv_str uid)
{
    (void)ctx;
    (void)uid;
    return false;
}

static int marks_end(void **state)
{
    struct place *place = *state;
    struct dv_pod_marks *marks = dv_pod_marks_open(dv_str_from_c(place->marks), DV_STR("x"));

    dv_pod_marks_sweep(marks, is_nobody, NULL);
    dv_pod_marks_close(marks);
    (void)rmdir(place->marks);
    (void)rmdir(place->dir);
    free(place);
    return 0;
}

static struct dv_pod_marks *open_marks(struct place *place, const char *boot_id)
{
    struct dv_pod_marks *marks =
        dv_pod_marks_open(dv_str_from_c(place->marks), dv_str_from_c(boot_id));

    assert_non_null(marks);
    return marks;
}

static void a_mark_stays_until_it_is_removed(void **state)
{
    struct dv_pod_marks *marks = open_marks(*state, "first");
    struct dv_err err;

    assert_false(dv_pod_marks_has(marks, DV_STR("u1")));
    dv_pod_marks_put(marks, DV_STR("u1"));
    dv_pod_marks_put(marks, DV_STR("u1")); /* twice is fine */
    dv_pod_marks_put(marks, DV_STR("u2"));
    dv_pod_marks_close(marks);
    marks = open_marks(*state, "first"); /* davitd was started anew */
    assert_true(dv_pod_marks_has(marks, DV_STR("u1")));
    assert_ok(dv_pod_marks_remove(marks, DV_STR("u1"), &err), &err);
    assert_ok(dv_pod_marks_remove(marks, DV_STR("u1"), &err), &err);
    assert_false(dv_pod_marks_has(marks, DV_STR("u1")));
    assert_true(dv_pod_marks_has(marks, DV_STR("u2")));
    dv_pod_marks_close(marks);
}

static void a_mark_of_another_boot_is_none(void **state)
{
    static const char *const others[] = {"second", "firs", "first2"};
    struct dv_pod_marks *marks = open_marks(*state, "first");

    dv_pod_marks_put(marks, DV_STR("u1"));
    dv_pod_marks_close(marks);
    for (size_t i = 0; i < DV_COUNT(others); i++) {
        marks = open_marks(*state, others[i]);
        assert_false(dv_pod_marks_has(marks, DV_STR("u1")));
        dv_pod_marks_close(marks);
    }
}

static bool is_second(const void *ctx, dv_str uid)
{
    (void)ctx;
    return dv_str_eq(uid, DV_STR("u2"));
}

static void marks_of_nobody_are_removed(void **state)
{
    struct dv_pod_marks *marks = open_marks(*state, "first");

    dv_pod_marks_put(marks, DV_STR("u1"));
    dv_pod_marks_put(marks, DV_STR("u2"));
    dv_pod_marks_sweep(marks, is_second, NULL);
    assert_false(dv_pod_marks_has(marks, DV_STR("u1")));
    assert_true(dv_pod_marks_has(marks, DV_STR("u2")));
    dv_pod_marks_close(marks);
}

static void a_uid_that_is_no_name_of_a_file_has_no_mark(void **state)
{
    static const char *const uids[] = {"", ".", "..", "../../x", "a/b", "a b", ".hidden"};
    struct place *place = *state;
    struct dv_pod_marks *marks = open_marks(place, "first");
    struct dv_err err;

    for (size_t i = 0; i < DV_COUNT(uids); i++) {
        dv_pod_marks_put(marks, dv_str_from_c(uids[i]));
        assert_false(dv_pod_marks_has(marks, dv_str_from_c(uids[i])));
        assert_ok(dv_pod_marks_remove(marks, dv_str_from_c(uids[i]), &err), &err);
    }
    dv_pod_marks_close(marks);
}

static void a_mark_that_cannot_be_removed_is_told(void **state)
{
    struct place *place = *state;
    struct dv_pod_marks *marks = open_marks(place, "first");
    char path[128];
    struct dv_err err;

    (void)snprintf(path, sizeof(path), "%s/u1", place->marks);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(dv_pod_marks_remove(marks, DV_STR("u1"), &err));
    assert_err(&err, err.code, "pod u1 has not been started");
    assert_int_equal(rmdir(path), 0);
    dv_pod_marks_close(marks);
}

static void without_a_directory_nothing_is_marked(void **state)
{
    struct dv_err err;

    (void)state;
    assert_null(dv_pod_marks_open(DV_STR(""), DV_STR("first")));
    assert_null(dv_pod_marks_open(DV_STR("/proc/no/such/place"), DV_STR("first")));
    assert_null(dv_pod_marks_open(DV_STR("/tmp"), DV_STR("")));
    dv_pod_marks_put(NULL, DV_STR("u1"));
    assert_false(dv_pod_marks_has(NULL, DV_STR("u1")));
    assert_ok(dv_pod_marks_remove(NULL, DV_STR("u1"), &err), &err);
    dv_pod_marks_sweep(NULL, is_second, NULL);
    dv_pod_marks_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_both_kinds_are_read),
        cmocka_unit_test(a_row_is_read_as_it_was_printed),
        cmocka_unit_test(a_deep_pod_is_read_again),
        cmocka_unit_test(a_pod_reads_the_same_typed_and_as_text),
        cmocka_unit_test(what_a_typed_pod_must_not_have_is_refused),
        world_test(a_row_of_an_older_davitd_is_a_pod_of_the_api),
        world_test(a_pod_cannot_say_that_the_api_wants_it),
        world_test(a_uid_may_look_like_a_mark),
        cmocka_unit_test_setup_teardown(a_mark_stays_until_it_is_removed, marks_start, marks_end),
        cmocka_unit_test_setup_teardown(a_mark_of_another_boot_is_none, marks_start, marks_end),
        cmocka_unit_test_setup_teardown(marks_of_nobody_are_removed, marks_start, marks_end),
        cmocka_unit_test_setup_teardown(a_uid_that_is_no_name_of_a_file_has_no_mark, marks_start,
                                        marks_end),
        cmocka_unit_test_setup_teardown(a_mark_that_cannot_be_removed_is_told, marks_start,
                                        marks_end),
        cmocka_unit_test_setup_teardown(without_a_directory_nothing_is_marked, marks_start,
                                        marks_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
