#include "test_values.h"

#include <string.h>

#include "resource/codec/value_blocks.h"

/* The same object in two versions; reading the one and printing the other is the conversion. */
static const struct {
    const struct dv_message *message;
    const char *text;
    const struct dv_message *other;
    const char *other_text;
} versions[] = {
    {&dv_message_device_request,
     "{\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"c\",\"selectors\":[{\"cel\":"
     "{\"expression\":\"true\"}}],\"allocationMode\":\"All\",\"adminAccess\":false,"
     "\"tolerations\":[{\"key\":\"k\"}],\"capacity\":{}}}",                              &dv_message_v1beta1_device_request,
     "{\"name\":\"r\",\"deviceClassName\":\"c\",\"selectors\":[{\"cel\":{\"expression\":"
     "\"true\"}}],\"allocationMode\":\"All\",\"adminAccess\":false,\"tolerations\":"
     "[{\"key\":\"k\"}],\"capacity\":{}}"                                              },
    {&dv_message_device_request,
     "{\"name\":\"r\",\"firstAvailable\":[{\"name\":\"s\",\"deviceClassName\":\"c\"}]}", &dv_message_v1beta1_device_request,
     "{\"name\":\"r\",\"deviceClassName\":\"\",\"firstAvailable\":[{\"name\":\"s\","
     "\"deviceClassName\":\"c\"}]}"                                                    },
    {&dv_message_resource_slice_spec,
     "{\"driver\":\"d\",\"pool\":{\"name\":\"p\",\"generation\":1,\"resourceSliceCount\":1},"
     "\"nodeName\":\"n\",\"devices\":[{\"name\":\"a\",\"attributes\":{\"x\":{\"int\":0}},"
     "\"allNodes\":false},{\"name\":\"b\"}]}",                                           &dv_message_v1beta1_resource_slice_spec,
     "{\"driver\":\"d\",\"pool\":{\"name\":\"p\",\"generation\":1,\"resourceSliceCount\":1},"
     "\"nodeName\":\"n\",\"devices\":[{\"name\":\"a\",\"basic\":{\"attributes\":{\"x\":{\"int\":0}"
     "},\"allNodes\":false}},{\"name\":\"b\",\"basic\":{}}]}"                          },
    {&dv_message_resource_slice_spec,
     "{\"driver\":\"d\",\"pool\":{\"name\":\"p\",\"generation\":1,\"resourceSliceCount\":1},"
     "\"allNodes\":true}",                                                               &dv_message_v1beta1_resource_slice_spec,
     "{\"driver\":\"d\",\"pool\":{\"name\":\"p\",\"generation\":1,\"resourceSliceCount\":1},"
     "\"allNodes\":true}"                                                              },
    {&dv_message_event,
     "{\"metadata\":{\"name\":\"e\"},\"involvedObject\":{\"kind\":\"Pod\"},\"reason\":\"r\","
     "\"message\":\"m\",\"source\":{\"host\":\"h\"},\"firstTimestamp\":\"2024-01-01T00:00:00Z\","
     "\"lastTimestamp\":null,\"count\":3,\"type\":\"Normal\",\"eventTime\":null,\"series\":"
     "{\"count\":2,\"lastObservedTime\":null},\"action\":\"a\",\"reportingComponent\":\"c\","
     "\"reportingInstance\":\"i\"}",                                                     &dv_message_events_event,
     "{\"metadata\":{\"name\":\"e\"},\"eventTime\":null,\"series\":{\"count\":2,"
     "\"lastObservedTime\":null},\"reportingController\":\"c\",\"reportingInstance\":\"i\","
     "\"action\":\"a\",\"reason\":\"r\",\"regarding\":{\"kind\":\"Pod\"},\"note\":\"m\",\"type\":"
     "\"Normal\",\"deprecatedSource\":{\"host\":\"h\"},\"deprecatedFirstTimestamp\":"
     "\"2024-01-01T00:00:00Z\",\"deprecatedLastTimestamp\":null,\"deprecatedCount\":3}"},
};

static void versions_are_converted_without_loss(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(versions); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        void *value = decoded(versions[i].message, versions[i].text, arena);
        void *other = decoded(versions[i].other, versions[i].other_text, arena);
        void *from_pb = new_value(versions[i].message, arena);
        struct dv_err err;

        assert_str(as_json(versions[i].other, value, arena), versions[i].other_text);
        assert_str(as_json(versions[i].message, other, arena), versions[i].text);
        assert_true(dv_message_eq(versions[i].message, value, other));
        assert_ok(dv_decode_pb(versions[i].other, as_pb(versions[i].other, value, arena), arena,
                               from_pb, &err),
                  &err);
        assert_str(as_json(versions[i].message, from_pb, arena), versions[i].text);
    }
}

static void unknown_fields_move_with_the_device(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_device device = {0};
    struct dv_err err;

    (void)state;
    assert_ok(dv_decode_json(&dv_message_v1beta1_device,
                             parsed("{\"name\":\"a\",\"basic\":{\"x\":1},\"y\":2}", arena),
                             DV_UNKNOWN_KEEP, arena, &device, NULL, &err),
              &err);
    assert_str(as_json(&dv_message_device, &device, arena), "{\"name\":\"a\",\"x\":1,\"y\":2}");
    assert_str(as_json(&dv_message_v1beta1_device, &device, arena),
               "{\"name\":\"a\",\"basic\":{\"x\":1,\"y\":2}}");
}

static const struct {
    const char *what;
    const struct dv_message *message;
    const char *a;
    const char *b;
    bool is_equal;
} pairs[] = {
    {"empty lists",                   &dv_message_object_meta,                 "{}",
     "{\"labels\":{},\"finalizers\":[],\"name\":\"\"}",                                                                                                                                     true },
    {"optional texts",                &dv_message_device_toleration,           "{}",                                               "{\"tolerationSeconds\":0}",                             false},
    {"optional structs",              &dv_message_device_request,              "{}",                                               "{\"exactly\":{}}",                                      false},
    {"optional texts that are empty", &dv_message_device_constraint,           "{}",
     "{\"matchAttribute\":\"\"}",                                                                                                                                                           false},
    {"quantities by number",          &dv_message_counter,                     "{\"value\":\"1Ki\"}",                              "{\"value\":1024}",                                      true },
    {"quantities in maps",            &dv_message_resource_requirements,       "{\"limits\":{\"a\":\"1\"}}",
     "{\"limits\":{\"a\":\"1000m\"}}",                                                                                                                                                      true },
    {"keys of maps",                  &dv_message_resource_requirements,       "{\"limits\":{\"a\":\"1\"}}",
     "{\"limits\":{\"b\":\"1\"}}",                                                                                                                                                          false},
    {"times by instant",              &dv_message_object_meta,
     "{\"creationTimestamp\":\"2024-01-01T00:00:00Z\"}",                                                                           "{\"creationTimestamp\":\"2024-01-01T01:00:00+01:00\"}", true },
    {"times",                         &dv_message_object_meta,                 "{\"creationTimestamp\":\"2024-01-01T00:00:00Z\"}", "{}",
     false                                                                                                                                                                                       },
    {"numbers and texts",             &dv_message_tcp_socket_action,           "{\"port\":80}",                                    "{\"port\":\"80\"}",
     false                                                                                                                                                                                       },
    {"the order of lists",            &dv_message_object_meta,                 "{\"finalizers\":[\"a\",\"b\"]}",
     "{\"finalizers\":[\"b\",\"a\"]}",                                                                                                                                                      false},
    {"inline structs",                &dv_message_config_map_env_source,       "{\"name\":\"a\"}",                                 "{\"name\":\"b\"}",
     false                                                                                                                                                                                       },
    {"raw values by their bytes",     &dv_message_opaque_device_configuration,
     "{\"parameters\":{\"a\":1}}",                                                                                                 "{\"parameters\":{\"a\": 1}}",                           false},
};

static void equal_is_what_means_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(pairs); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        void *a = decoded(pairs[i].message, pairs[i].a, arena);
        void *b = decoded(pairs[i].message, pairs[i].b, arena);

        if (dv_message_eq(pairs[i].message, a, b) != pairs[i].is_equal ||
            dv_message_eq(pairs[i].message, b, a) != pairs[i].is_equal)
            fail_msg("%s", pairs[i].what);
    }
}

static const char slice_text[] =
    "{\"metadata\":{\"name\":\"s\",\"resourceVersion\":\"42\",\"labels\":{\"a\":\"\"},"
    "\"finalizers\":[],\"managedFields\":[{\"fieldsV1\":{\"f:a\":{}}}]},\"spec\":{\"driver\":\"d\","
    "\"pool\":{\"name\":\"p\",\"generation\":1,\"resourceSliceCount\":1},\"nodeName\":\"n\","
    "\"devices\":[{\"name\":\"a\",\"attributes\":{\"i\":{\"int\":1},\"s\":{\"string\":\"\"},"
    "\"l\":{\"ints\":[1,2],\"strings\":[\"x\",\"\"]}},\"capacity\":{\"m\":{\"value\":"
    "\"123456789012345678901234567890123\"},\"k\":{\"value\":\"1Gi\"}}}]}}";

static void an_object_is_a_copy_in_one_block(void **state)
{
    struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *later = dv_arena_new();
    struct dv_api_resource_slice *slice = decoded(&dv_message_resource_slice, slice_text, arena);
    dv_str before = as_json(&dv_message_resource_slice, slice, later);
    struct dv_object *object = dv_object_new(dv_kind(DV_KIND_SLICE), slice);

    (void)state;
    dv_arena_free(arena); /* nothing may point there now: the address sanitizer looks */
    assert_true(dv_str_eq(as_json(&dv_message_resource_slice, object->value, later), before));
    assert_str(object->meta->name, "s");
    assert_int_equal(object->version, 42);
    assert_null(object->meta->finalizers); /* was empty */
    assert_ptr_equal(dv_object_ref(object), object);
    dv_object_unref(object);
    dv_object_unref(object);
    dv_object_unref(NULL);
}

static void a_copy_keeps_empty_lists(void **state)
{
    struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *later = dv_arena_new();
    struct dv_api_resource_slice *slice = decoded(&dv_message_resource_slice, slice_text, arena);
    dv_str before = as_json(&dv_message_resource_slice, slice, later);
    struct dv_api_resource_slice copy = {0};

    (void)state;
    dv_message_copy(&dv_message_resource_slice, slice, later, &copy);
    dv_arena_free(arena);
    assert_true(dv_str_eq(as_json(&dv_message_resource_slice, &copy, later), before));
    assert_non_null(copy.metadata.finalizers);
    assert_int_equal(copy.metadata.n_finalizers, 0);
}

static void entries_are_found_and_set_by_key(void **state)
{
    static const char *const keys[] = {"m", "a", "z", "m", "b"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_str_entry *entries = NULL;
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(keys); i++)
        dv_entry_set(&entries, &n, dv_str_from_c(keys[i]), dv_str_printf(arena, "%zu", i), arena);
    assert_int_equal(n, 4);
    assert_str(dv_entry_find(entries, n, DV_STR("m"))->value, "3");
    assert_str(entries[0].key, "a");
    assert_str(entries[1].key, "b");
    assert_str(entries[3].key, "z");
    assert_null(dv_entry_find(entries, n, DV_STR("c")));
    assert_null(dv_entry_find(NULL, 0, DV_STR("c")));
}

static void a_document_has_its_version_in_front(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_kind *kind = dv_kind(DV_KIND_CLASS);
    void *class = decoded(&dv_message_device_class, "{\"metadata\":{\"name\":\"<\"}}", arena);
    struct dv_json *doc =
        dv_encode_json(&dv_message_device_class, class, &kind->versions[0], kind->name, arena);
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, 1000);
    dv_json_print(doc, NULL, &buf);
    assert_str(dv_buf_str(&buf), "{\"kind\":\"DeviceClass\",\"apiVersion\":\"resource.k8s.io/v1\","
                                 "\"metadata\":{\"name\":\"<\"},\"spec\":{}}");
}

/* ---- memory for values ---- */

#define N_BLOCKS 2000u

struct block {
    unsigned char *p;
    size_t n;
};

static unsigned char mark_of(const struct block *block)
{
    return (unsigned char)((uintptr_t)block->p >> 4);
}

static void take(struct dv_value_blocks *blocks, struct block *block, size_t n)
{
    block->n = n;
    block->p = dv_value_take(blocks, n);
    assert_int_equal((uintptr_t)block->p % _Alignof(max_align_t), 0);
    memset(block->p, mark_of(block), n);
}

static void give(struct dv_value_blocks *blocks, struct block *block)
{
    for (size_t i = 0; i < block->n; i++)
        assert_int_equal(block->p[i], mark_of(block));
    dv_value_give(blocks, block->p);
    *block = (struct block){0};
}

static void blocks_of_all_sizes_keep_what_is_in_them(void **state)
{
    static struct block all[N_BLOCKS];
    struct dv_value_blocks blocks = {0};

    (void)state;
    /* One after the other goes, in another order than they came, and the next ones come. */
    for (size_t i = 0; i < 5 * (size_t)N_BLOCKS; i++) {
        struct block *block = &all[i * 7 % N_BLOCKS];

        if (block->p)
            give(&blocks, block);
        take(&blocks, block, i % 97 == 0 ? 40000 + i * 31 : i * 13 % 5000);
    }
    assert_int_equal(blocks.n_blocks, N_BLOCKS);
    for (size_t i = 0; i < N_BLOCKS; i++)
        give(&blocks, &all[i]);
    assert_int_equal(blocks.n_blocks, 0);
}

static void with_the_last_block_all_memory_is_given_back(void **state)
{
    struct dv_value_blocks blocks = {0};
    struct block one;
    struct block large;

    (void)state;
    take(&blocks, &one, 0);
    take(&blocks, &large, 1000000);
    give(&blocks, &one);
    give(&blocks, &large);
    assert_null(blocks.filling);
    assert_null(blocks.spare);
    take(&blocks, &one, 10);
    give(&blocks, &one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_converted_without_loss),
        cmocka_unit_test(unknown_fields_move_with_the_device),
        cmocka_unit_test(equal_is_what_means_the_same),
        cmocka_unit_test(an_object_is_a_copy_in_one_block),
        cmocka_unit_test(a_copy_keeps_empty_lists),
        cmocka_unit_test(entries_are_found_and_set_by_key),
        cmocka_unit_test(a_document_has_its_version_in_front),
        cmocka_unit_test(blocks_of_all_sizes_keep_what_is_in_them),
        cmocka_unit_test(with_the_last_block_all_memory_is_given_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
