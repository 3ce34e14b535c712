#include "test_values.h"

#include "pb/pb.h"

/* Bytes, and what they mean. */
static const struct {
    const char *what;
    const struct dv_message *message;
    dv_str bytes;
    const char *json;
} readings[] = {
    {"nothing at all",                                  &dv_message_device_class,                {"", 0},                                                 "{\"metadata\":{},\"spec\":{}}"},
    {"fields in another order, the last of two counts", &dv_message_resource_pool,
     DV_STR_INIT("\x18\x02\x0a\x01"
                 "a\x10\x05\x0a\x01"
                 "b\x18\x03"),
     "{\"name\":\"b\",\"generation\":5,\"resourceSliceCount\":3}"                                                                                                                        },
    {"parts of a message are merged",                   &dv_message_device_class,
     DV_STR_INIT("\x0a\x03\x0a\x01"
                 "a\x0a\x04\x2a\x02u1"),
     "{\"metadata\":{\"name\":\"a\",\"uid\":\"u1\"},\"spec\":{}}"                                                                                                                        },
    {"lists in parts of a message are joined",          &dv_message_device_class,
     DV_STR_INIT("\x0a\x03\x72\x01"
                 "a\x0a\x03\x72\x01"
                 "b"),
     "{\"metadata\":{\"finalizers\":[\"a\",\"b\"]},\"spec\":{}}"                                                                                                                         },
    {"unknown fields and other wire types are skipped", &dv_message_resource_pool,
     DV_STR_INIT("\x08\x01\x0a\x01"
                 "a\x7a\x01x\xa5\x06"
                 "1234\x11"
                 "12345678"),
     "{\"name\":\"a\",\"generation\":0,\"resourceSliceCount\":0}"                                                                                                                        },
    {"packed numbers",                                  &dv_message_device_attribute,
     DV_STR_INIT("\x32\x04\x01\xac\x02\x03\x30\x04\x3a\x02\x01\x00"),
     "{\"ints\":[1,300,3,4],\"bools\":[true,false]}"                                                                                                                                     },
    {"negative numbers",                                &dv_message_container_port,
     DV_STR_INIT("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\xff\xff\xff\xff\x0f"),
     "{\"hostPort\":-1,\"containerPort\":-1}"                                                                                                                                            },
    {"of a key that comes twice the last entry counts", &dv_message_label_selector,
     DV_STR_INIT("\x0a\x06\x0a\x01"
                 "b\x12\x01"
                 "1\x0a\x06\x12\x01"
                 "2\x0a\x01"
                 "a\x0a\x06\x0a\x01"
                 "b\x12\x01"
                 "3\x0a\x03\x0a\x01"
                 "c"),
     "{\"matchLabels\":{\"a\":\"2\",\"b\":\"3\",\"c\":\"\"}}"                                                                                                                            },
    {"times",                                           &dv_message_lease_spec,                  DV_STR_INIT("\x22\x06\x08\x01\x10\xc0\x84\x3d\x1a\x00"),
     "{\"renewTime\":\"1970-01-01T00:00:01.001000Z\"}"                                                                                                                                   },
    {"raw values",                                      &dv_message_allocated_device_status,     DV_STR_INIT("\x2a\x04\x0a\x02{}"),
     "{\"driver\":\"\",\"pool\":\"\",\"device\":\"\",\"conditions\":null,\"data\":{}}"                                                                                                   },
    {"v1beta1: a request",                              &dv_message_v1beta1_device_request,
     DV_STR_INIT("\x0a\x01r\x12\x01"
                 "c\x28\x02"),
     "{\"name\":\"r\",\"deviceClassName\":\"c\",\"count\":2}"                                                                                                                            },
    {"v1beta1: empty is unset",                         &dv_message_v1beta1_resource_slice_spec,
     DV_STR_INIT("\x1a\x00\x28\x00"),
     "{\"driver\":\"\",\"pool\":{\"name\":\"\",\"generation\":0,\"resourceSliceCount\":0}}"                                                                                              },
};

static void reads_what_other_encoders_write(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(readings); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        void *value = new_value(readings[i].message, arena);
        struct dv_err err;
        dv_str printed;

        assert_ok(dv_decode_pb(readings[i].message, readings[i].bytes, arena, value, &err), &err);
        printed = as_json(readings[i].message, value, arena);
        if (!dv_str_eq(printed, dv_str_from_c(readings[i].json)))
            fail_msg("%s: got %.*s", readings[i].what, DV_FMT(printed));
    }
}

static const struct {
    const char *what;
    const struct dv_message *message;
    dv_str bytes;
    const char *why;
} refused[] = {
    {"a length past the end",  &dv_message_resource_pool,
     DV_STR_INIT("\x0a\x02"
                 "a"),
     "ResourcePool in protobuf"                                                                                            },
    {"text that is not UTF-8", &dv_message_resource_pool,           DV_STR_INIT("\x0a\x01\xff"),      "name"               },
    {"not a quantity",         &dv_message_counter,                 DV_STR_INIT("\x0a\x03\x0a\x01x"), "value"              },
    {"not JSON",               &dv_message_allocated_device_status, DV_STR_INIT("\x2a\x03\x0a\x01{"), "data"               },
    {"a time of no year",      &dv_message_lease_spec,
     DV_STR_INIT("\x22\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),                                 "a time out of range"},
    {"too many nanoseconds",   &dv_message_lease_spec,
     DV_STR_INIT("\x22\x06\x10\x80\x94\xeb\xdc\x03"),                                                 "a time out of range"},
};

static void refuses_what_cannot_be_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(refused); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        void *value = new_value(refused[i].message, arena);
        struct dv_err err;

        if (dv_decode_pb(refused[i].message, refused[i].bytes, arena, value, &err))
            fail_msg("accepted: %s", refused[i].what);
        assert_err(&err, DV_INVALID_ARGUMENT, refused[i].why);
    }
}

static void refuses_small_bytes_of_large_objects(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_api_pod_spec spec = {0};
    struct dv_err err;

    (void)state;
    dv_buf_init(&buf, SIZE_MAX);
    for (int i = 0; i < 300000; i++)
        dv_pb_add_bytes(&buf, 2, DV_STR_NONE);
    assert_false(dv_decode_pb(&dv_message_pod_spec, dv_buf_str(&buf), arena, &spec, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "more than");
}

static void writes_what_is_not_optional_even_when_empty(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    void *pool = decoded(&dv_message_resource_pool, "{}", arena);
    void *request = decoded(&dv_message_v1beta1_device_request, "{\"name\":\"r\"}", arena);
    dv_str bytes = as_pb(&dv_message_v1beta1_device_request, request, arena);

    (void)state;
    assert_true(dv_str_eq(as_pb(&dv_message_resource_pool, pool, arena),
                          DV_STR("\x0a\x00\x10\x00\x18\x00")));
    assert_true(dv_str_eq(bytes, DV_STR("\x0a\x01r\x12\x00\x22\x00\x28\x00")));
}

static void an_envelope_says_what_is_in_it(void **state)
{
    struct dv_pb_envelope envelope = {DV_STR("v1"), DV_STR("Pod"), DV_STR("\x0a\x00")};
    struct dv_pb_envelope again;
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_err err;

    (void)state;
    dv_buf_init(&buf, 1000);
    dv_pb_envelope_encode(&envelope, &buf);
    assert_ok(dv_pb_envelope_decode(dv_buf_str(&buf), &again, &err), &err);
    assert_str(again.api_version, "v1");
    assert_str(again.kind, "Pod");
    assert_true(dv_str_eq(again.object, envelope.object));
}

static void refuses_bodies_without_the_mark(void **state)
{
    struct dv_pb_envelope envelope;
    struct dv_err err;

    (void)state;
    assert_false(dv_pb_envelope_decode(DV_STR("{\"kind\":1}"), &envelope, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "does not begin with");
    assert_false(dv_pb_envelope_decode(DV_STR("k8s\0\x0a"), &envelope, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "protobuf body");
    assert_false(dv_pb_envelope_decode(DV_STR("k8s\0\x1a\x04gzip"), &envelope, &err));
    assert_err(&err, DV_UNIMPLEMENTED, "gzip");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_other_encoders_write),
        cmocka_unit_test(refuses_what_cannot_be_read),
        cmocka_unit_test(refuses_small_bytes_of_large_objects),
        cmocka_unit_test(writes_what_is_not_optional_even_when_empty),
        cmocka_unit_test(an_envelope_says_what_is_in_it),
        cmocka_unit_test(refuses_bodies_without_the_mark),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
