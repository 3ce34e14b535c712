/* What a node tells of itself: what pods hold outside the API, counted; and how its status becomes
 * part of its object, which is what a strategic merge patch would do. */
#include "support/dvtest.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "pb/pb.h"
#include "pod/agent/node_merge.h"
#include "pod/agent/outside.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "support/growth.h"
#include "json/json.h"

#define GPU "vendor.io/gpu"
#define TEXT_BYTES_MAX 65536u

/* ---- outside the API ---- */

/* The plugin lists d0, d1, ..., of which the first n_sick are not healthy. */
static void list(struct dv_device_state *state, size_t n, size_t n_sick)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_device_diff diff;
    struct dv_buf bytes;
    struct dv_err err;

    dv_buf_init(&bytes, 1u << 24);
    for (size_t i = 0; i < n; i++) {
        size_t mark = dv_pb_begin(&bytes, 1);
        char id[32];

        (void)snprintf(id, sizeof(id), "d%zu", i);
        dv_pb_add_bytes(&bytes, 1, dv_str_from_c(id));
        dv_pb_add_bytes(&bytes, 2, i < n_sick ? DV_STR("Unhealthy") : DV_STR("Healthy"));
        dv_pb_end(&bytes, mark);
    }
    assert_ok(dv_device_apply_list(state, DV_STR(GPU), dv_buf_str(&bytes), arena, &diff, &err),
              &err);
    dv_buf_fini(&bytes);
}

static dv_str uid_of(struct dv_arena *arena, size_t i)
{
    return dv_str_printf(arena, "uid-%zu", i);
}

/* A state in which the containers of pod i hold device i, one of them for two NUMA nodes; and all
 * devices are listed. */
static struct dv_device_state *make_state(size_t n_pods)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_device_plugin_options options = {0};
    struct dv_device_record *records = DV_NEW_ARRAY(arena, struct dv_device_record, 2 * n_pods);
    const struct dv_device_checkpoint checkpoint = {.records = records, .n_records = 2 * n_pods};
    struct dv_device_state *state = dv_device_state_new(NULL);
    size_t n_left_out;
    struct dv_err err;

    for (size_t i = 0; i < 2 * n_pods; i++) {
        struct dv_device_placed *placed = DV_NEW_ARRAY(arena, struct dv_device_placed, 2);
        dv_str *id = DV_NEW(arena, dv_str);

        *id = dv_str_printf(arena, "d%zu", i / 2);
        placed[0] = (struct dv_device_placed){.node = 0, .ids = id, .n_ids = 1};
        placed[1] = (struct dv_device_placed){.node = 1, .ids = id, .n_ids = 1};
        records[i] = (struct dv_device_record){
            .pod_uid = uid_of(arena, i / 2),
            .container = i % 2 == 0 ? DV_STR("init") : DV_STR("main"),
            .resource = DV_STR(GPU),
            .placed = placed,
            .n_placed = i % 2 == 0 ? 1 : 2,
        };
    }
    dv_device_checkpoint_load(state, &checkpoint, 1, &n_left_out);
    assert_int_equal(n_left_out, 0);
    assert_ok(dv_device_connect(state, DV_STR(GPU), DV_STR("gpu.sock"), &options, &err), &err);
    list(state, n_pods, 0);
    return state;
}

static void each_healthy_device_counts_once(void **state)
{
    struct dv_device_state *devices = make_state(3);
    struct dv_outside *outside = dv_outside_new();

    (void)state;
    assert_int_equal(dv_outside_count(outside, devices, DV_STR(GPU)), 0);
    assert_true(dv_outside_set(outside, devices, DV_STR("uid-0"), true));
    assert_true(dv_outside_set(outside, devices, DV_STR("uid-1"), true));
    assert_true(dv_outside_set(outside, devices, DV_STR("uid-1"), true)); /* again, and no more */
    assert_false(dv_outside_set(outside, devices, DV_STR("uid-2"), false));
    assert_false(dv_outside_set(outside, devices, DV_STR("nobody"), true));
    assert_int_equal(dv_outside_count(outside, devices, DV_STR(GPU)), 2);
    assert_int_equal(dv_outside_count(outside, devices, DV_STR("vendor.io/other")), 0);

    list(devices, 3, 1); /* the first is sick now */
    assert_int_equal(dv_outside_count(outside, devices, DV_STR(GPU)), 1);
    list(devices, 1, 0); /* the others are gone */
    assert_int_equal(dv_outside_count(outside, devices, DV_STR(GPU)), 1);
    (void)dv_device_disconnect(devices, DV_STR(GPU), DV_STR("gpu.sock"), 1);
    assert_int_equal(dv_outside_count(outside, devices, DV_STR(GPU)), 0);

    assert_true(dv_outside_set(outside, devices, DV_STR("uid-0"), false));
    assert_false(dv_outside_set(outside, devices, DV_STR("uid-0"), false));
    dv_outside_free(outside);
    dv_device_state_free(devices);
}

/* All pods come, one by one, and after each the sum is asked for. */
static void fill(void *ctx, size_t n)
{
    struct dv_device_state *devices = ctx;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_outside *outside = dv_outside_new();

    for (size_t i = 0; i < n; i++) {
        assert_true(dv_outside_set(outside, devices, uid_of(arena, i), true));
        assert_int_equal(dv_outside_count(outside, devices, DV_STR(GPU)), i + 1);
    }
    dv_outside_free(outside);
}

static void a_change_costs_what_the_pod_holds(void **state)
{
    const size_t n = 2000;
    struct dv_device_state *devices = make_state(GROWTH_TIMES * n);

    (void)state;
    assert_true(growth_is_linear(fill, devices, n));
    dv_device_state_free(devices);
}

/* ---- its status in its object ---- */

static void read_status(const char *text, struct dv_arena *arena, struct dv_api_node_status *status)
{
    struct dv_err err;
    struct dv_json *doc = dv_yaml_parse(dv_str_from_c(text), NULL, arena, &err);

    if (!doc ||
        !dv_decode_json(&dv_message_node_status, doc, DV_UNKNOWN_DROP, arena, status, NULL, &err))
        fail_msg("%s: %s", text, err.msg);
}

static dv_str print_status(const struct dv_api_node_status *status, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_encode_json_text(&dv_message_node_status, status, NULL, DV_STR_NONE, &buf);
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

/* The same by a patch. */
static void patch(const struct dv_api_node_status *told, struct dv_arena *arena,
                  struct dv_api_node_status *stored)
{
    struct dv_json *doc = dv_encode_json(&dv_message_node_status, stored, NULL, DV_STR_NONE, arena);
    struct dv_err err;
    struct dv_json *merged =
        dv_patch_strategic(&dv_message_node_status, doc,
                           dv_encode_patch(&dv_message_node_status, told, arena), arena, &err);

    assert_non_null(merged);
    *stored = (struct dv_api_node_status){0};
    assert_true(dv_decode_json(&dv_message_node_status, merged, DV_UNKNOWN_DROP, arena, stored,
                               NULL, &err));
}

static const struct {
    const char *stored;
    const char *told;
} cases[] = {
    {"{}",                                                                                         "{capacity: {pods: 110, cpu: 2}, allocatable: {cpu: 2}}"},
 /* amounts of others stay, and the order is that of names */
    {"{capacity: {cpu: 1, z: 7, b: 3}, allocatable: {a.io/x: 4}}",
     "{capacity: {zz: 1, a: 2, cpu: 2, b: 4}, allocatable: {a.io/x: 0, cpu: 2}}"                                                                           },
    {"{conditions: [{type: Mine, status: \"True\", reason: r}, {type: Ready, status: Unknown}]}",
     "{conditions: [{type: Ready, status: \"True\", reason: q}, {type: New, status: \"False\"}]}"                                                          },
    {"{runtimeHandlers: [{name: runc}], declaredFeatures: [a], images: [{names: [i]}], phase: p}",
     "{nodeInfo: {machineID: m, kubeletVersion: v}, daemonEndpoints: {kubeletEndpoint: {Port: "
     "10}}}"                                                                                                                                               },
    {"{runtimeHandlers: [{name: runc}], declaredFeatures: [a]}",                                   "{declaredFeatures: [b]}"                               },
};

static void a_status_is_merged_as_a_patch_would(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_arena *arena = dv_arena_new();
        struct dv_api_node_status told = {0}, merged = {0}, patched = {0};

        read_status(cases[i].told, arena, &told);
        read_status(cases[i].stored, arena, &merged);
        read_status(cases[i].stored, arena, &patched);
        dv_node_status_merge(&told, arena, &merged);
        patch(&told, arena, &patched);
        assert_str(print_status(&merged, arena), dv_str_to_c(print_status(&patched, arena), arena));
        dv_arena_free(arena);
    }
}

static void addresses_are_replaced_and_what_is_stored_is_not_touched(void **state)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_api_node_status told = {0}, stored = {0}, merged;
    dv_str before;

    (void)state;
    read_status("{addresses: [{type: InternalIP, address: 10.0.0.1}], capacity: {cpu: 1},"
                " conditions: [{type: Ready, status: Unknown}]}",
                arena, &stored);
    read_status("{addresses: [{type: Hostname, address: n1}], capacity: {cpu: 2},"
                " conditions: [{type: Ready, status: \"True\"}]}",
                arena, &told);
    before = print_status(&stored, arena);
    merged = stored;
    dv_node_status_merge(&told, arena, &merged);
    assert_int_equal(merged.n_addresses, 1);
    assert_str(merged.addresses[0].address, "n1");
    assert_str(print_status(&stored, arena), dv_str_to_c(before, arena));
    dv_arena_free(arena);
}

static void an_annotation_is_set_and_removed(void **state)
{
    struct dv_str_entry one = {DV_STR("a"), DV_STR("1")};
    struct dv_api_object_meta meta = {.annotations = &one, .n_annotations = 1};
    struct dv_arena *arena = dv_arena_new();
    const dv_str value = DV_STR("2");

    (void)state;
    dv_node_annotate(DV_STR("k"), NULL, arena, &meta);
    assert_int_equal(meta.n_annotations, 1);
    dv_node_annotate(DV_STR("k"), &value, arena, &meta);
    assert_int_equal(meta.n_annotations, 2);
    assert_str(meta.annotations[1].value, "2");
    dv_node_annotate(DV_STR("a"), NULL, arena, &meta);
    assert_int_equal(meta.n_annotations, 1);
    assert_str(meta.annotations[0].key, "k");
    assert_str(one.value, "1");
    dv_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_healthy_device_counts_once),
        cmocka_unit_test(a_change_costs_what_the_pod_holds),
        cmocka_unit_test(a_status_is_merged_as_a_patch_would),
        cmocka_unit_test(addresses_are_replaced_and_what_is_stored_is_not_touched),
        cmocka_unit_test(an_annotation_is_set_and_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
