#include "test_values.h"

/* What JSON becomes when it is read and printed again. */
static const struct {
    const char *what;
    const struct dv_message *message;
    const char *text;
    const char *printed;
} round_trips[] = {
    {"null is absent",                                  &dv_message_device_class,
     "{\"metadata\":{\"name\":null,\"labels\":null},\"spec\":{\"selectors\":null}}",                                                                     "{\"metadata\":{},\"spec\":{}}"                                                  },
    {"what is always written",                          &dv_message_resource_claim,              "{}",
     "{\"metadata\":{},\"spec\":{\"devices\":{\"requests\":null}},\"status\":{}}"                                                                                                                                                         },
    {"an empty list is no absent one",                  &dv_message_resource_claim,
     "{\"spec\":{\"devices\":{\"requests\":[],\"config\":[]}}}",                                                                                         "{\"metadata\":{},\"spec\":{\"devices\":{\"requests\":[]}},\"status\":{}}"       },
    {"times",                                           &dv_message_event,
     "{\"metadata\":{\"creationTimestamp\":\"2024-02-29T23:59:59.75+01:30\"},"
     "\"eventTime\":\"2024-01-02T03:04:05.123456Z\",\"firstTimestamp\":\"0001-01-01T00:00:00Z\"}",                                                       "{\"metadata\":{\"creationTimestamp\":\"2024-02-29T22:29:59Z\"},\"involvedObject\":{},"
     "\"source\":{},\"firstTimestamp\":null,\"lastTimestamp\":null,\"eventTime\":"
     "\"2024-01-02T03:04:05.123456Z\",\"reportingComponent\":\"\",\"reportingInstance\":\"\"}"                                          },
    {"maps are sorted, null in them is the zero value", &dv_message_config_map,
     "{\"data\":{\"b\":\"2\",\"a\":\"1\",\"B\":null},\"binaryData\":{\"x\":\"AAEC\",\"y\":\"\"}}",                                                       "{\"metadata\":{},\"data\":{\"B\":\"\",\"a\":\"1\",\"b\":\"2\"},\"binaryData\":"
     "{\"x\":\"AAEC\",\"y\":\"\"}}"                                                                                                     },
    {"quantities are texts or numbers",                 &dv_message_resource_requirements,
     "{\"limits\":{\"a\":1.5,\"b\":\"1000m\",\"c\":\"2Ki\",\"d\":null,"
     "\"e\":123456789012345678901234567890}}",                                                                                                           "{\"limits\":{\"a\":\"1500m\",\"b\":\"1\",\"c\":\"2Ki\",\"d\":\"0\","
     "\"e\":\"123456789012345678901234567890\"}}"                                                                                                                                           },
    {"numbers or texts",                                &dv_message_http_get_action,             "{\"port\":\"http\",\"path\":\"<&>\"}",
     "{\"path\":\"\\u003c\\u0026\\u003e\",\"port\":\"http\"}"                                                                                                                                                                             },
    {"a number for a port",                             &dv_message_http_get_action,             "{\"port\":80}",                                        "{\"port\":80}"                                                                  },
    {"inline structs",                                  &dv_message_config_map_env_source,       "{\"name\":\"n\",\"optional\":false}",
     "{\"name\":\"n\",\"optional\":false}"                                                                                                                                                                                                },
    {"raw values lose their blanks when printed",       &dv_message_opaque_device_configuration,
     "{\"driver\":\"d\",\"parameters\": { \"a b\" : [ 1 , \"\\\" \\\\\" ],\n\"<\":1e400 } }",                                                            "{\"driver\":\"d\",\"parameters\":{\"a b\":[1,\"\\\" \\\\\"],\"\\u003c\":1e400}}"},
    {"characters that are escaped",                     &dv_message_local_object_reference,
     "{\"name\":\"\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\\\u007f\\u2028\\u2029\\u00e9\"}",                                                                 "{\"name\":\"\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\\x7f\\u2028\\u2029\xc3\xa9\"}" },
    {"pointers that are zero stay",                     &dv_message_exact_device_request,
     "{\"deviceClassName\":\"\",\"adminAccess\":false,\"capacity\":{}}",                                                                                 "{\"deviceClassName\":\"\",\"adminAccess\":false,\"capacity\":{}}"               },
    {"lists in maps",                                   &dv_message_user_info,                   "{\"extra\":{\"b\":[\"1\",null],\"a\":[],\"c\":null}}",
     "{\"extra\":{\"a\":[],\"b\":[\"1\",\"\"],\"c\":null}}"                                                                                                                                                                               },
    {"null in a list is the zero value",                &dv_message_device_claim,
     "{\"requests\":[null,{\"name\":\"a\"}]}",                                                                                                           "{\"requests\":[{\"name\":\"\"},{\"name\":\"a\"}]}"                              },
};

static void reads_what_the_api_accepts(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(round_trips); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        void *value = decoded(round_trips[i].message, round_trips[i].text, arena);
        dv_str printed = as_json(round_trips[i].message, value, arena);

        if (!dv_str_eq(printed, dv_str_from_c(round_trips[i].printed)))
            fail_msg("%s: got %.*s", round_trips[i].what, DV_FMT(printed));
    }
}

static const struct {
    const struct dv_message *message;
    const char *text;
    const char *why;
} refused[] = {
    {&dv_message_resource_claim,        "[]",                                                               "expected an object"           },
    {&dv_message_resource_claim,        "{\"kind\":1}",                                                     "kind: expected a string"      },
    {&dv_message_resource_claim,        "{\"spec\":{\"devices\":{\"requests\":{}}}}",
     "spec.devices.requests: expected an array"                                                                                            },
    {&dv_message_exact_device_request,  "{\"count\":1.0}",                                                  "count: "                      },
    {&dv_message_exact_device_request,  "{\"count\":9223372036854775808}",                                  "count: "                      },
    {&dv_message_exact_device_request,  "{\"count\":\"1\"}",                                                "count: expected"              },
    {&dv_message_exact_device_request,  "{\"adminAccess\":\"true\"}",                                       "adminAccess: expected"        },
    {&dv_message_container_port,        "{\"containerPort\":2147483648}",                                   "does not fit 32 bits"         },
    {&dv_message_http_get_action,       "{\"port\":-2147483649}",                                           "does not fit 32 bits"         },
    {&dv_message_http_get_action,       "{\"port\":{}}",                                                    "port: expected"               },
    {&dv_message_resource_requirements, "{\"limits\":{\"a\":\"1GiB\"}}",                                    "limits.a: "                   },
    {&dv_message_resource_requirements, "{\"limits\":{\"a\":true}}",                                        "expected a quantity"          },
    {&dv_message_object_meta,           "{\"creationTimestamp\":\"yesterday\"}",
     "creationTimestamp: \"yesterday\" is no time"                                                                                         },
    {&dv_message_object_meta,           "{\"creationTimestamp\":\"\"}",                                     "is no time"                   },
    {&dv_message_object_meta,           "{\"creationTimestamp\":0}",                                        "expected a string"            },
    {&dv_message_lease_spec,            "{\"renewTime\":\"2024-01-02T03:04:05Z\"}",                         "000000Z"                      },
    {&dv_message_lease_spec,            "{\"renewTime\":\"2024-01-02T03:04:05.1234567Z\"}",                 "000000Z"                      },
    {&dv_message_config_map,            "{\"binaryData\":{\"a\":\"A\"}}",                                   "binaryData.a: expected base64"},
    {&dv_message_config_map,            "{\"binaryData\":{\"a\":\"AAAA\\u0000\"}}",                         "expected base64"              },
    {&dv_message_user_info,             "{\"extra\":{\"a\":\"b\"}}",                                        "extra.a: expected an array"   },
    {&dv_message_pod,                   "{\"spec\":{\"resourceClaims\":[{\"name\":\"a\",\"source\":{}}]}}",
     "spec.resourceClaims[0].source: was removed in v1.31; write resourceClaimName"                                                        },
};

static void refuses_what_does_not_fit_and_says_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(refused); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        void *value = new_value(refused[i].message, arena);
        struct dv_err err;

        if (dv_decode_json(refused[i].message, parsed(refused[i].text, arena), DV_UNKNOWN_DROP,
                           arena, value, NULL, &err))
            fail_msg("accepted: %s", refused[i].text);
        assert_err(&err, DV_INVALID_ARGUMENT, refused[i].why);
    }
}

static void tells_unknown_and_repeated_fields_once(void **state)
{
    static const char *const wanted[] = {
        "duplicate field \"metadata.name\"",
        "duplicate field \"metadata.labels.a.b/c\"",
        "unknown field \"spec.devices.requests[1].x\"",
        "unknown field \"Spec\"",
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *doc =
        parsed("{\"apiVersion\":\"v\",\"kind\":\"k\",\"metadata\":{\"name\":\"1\","
               "\"name\":\"2\",\"name\":\"3\",\"labels\":{\"a.b/c\":\"\","
               "\"a.b/c\":\"x\"}},\"spec\":{\"devices\":{\"requests\":[{},"
               "{\"x\":{\"y\":1}}]}},\"Spec\":1}",
               arena);
    struct dv_api_resource_claim claim = {0};
    struct dv_decode_notes notes = {0};
    struct dv_err err;

    (void)state;
    assert_ok(dv_decode_json(&dv_message_resource_claim, doc, DV_UNKNOWN_DROP, arena, &claim,
                             &notes, &err),
              &err);
    assert_int_equal(notes.n, DV_COUNT(wanted));
    for (size_t i = 0; i < notes.n; i++)
        assert_str(notes.v[i], wanted[i]);
    assert_str(claim.metadata.name, "3");
}

static void stops_telling_after_a_hundred_fields(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_api_resource_claim claim = {0};
    struct dv_decode_notes notes = {0};
    struct dv_err err;

    (void)state;
    for (int i = 0; i < 1000; i++)
        dv_json_set(doc, dv_str_printf(arena, "x%d", i), dv_json_new_null(arena), arena);
    assert_ok(dv_decode_json(&dv_message_resource_claim, doc, DV_UNKNOWN_DROP, arena, &claim,
                             &notes, &err),
              &err);
    assert_int_equal(notes.n, 100);
}

static void keeps_unknown_fields_when_asked(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *doc = parsed("{\"kind\":\"k\",\"new\":[1, 2],\"metadata\":{\"x\":\"<\"},"
                                 "\"spec\":{\"config\":[{\"opaque\":{\"driver\":\"d\",\"y\":null},"
                                 "\"z\":1}]},\"other\":{}}",
                                 arena);
    struct dv_api_device_class class = {0};
    struct dv_object *object;
    struct dv_err err;

    (void)state;
    assert_ok(
        dv_decode_json(&dv_message_device_class, doc, DV_UNKNOWN_KEEP, arena, &class, NULL, &err),
        &err);
    object = dv_object_new(dv_kind(DV_KIND_CLASS), &class);
    assert_str(as_json(&dv_message_device_class, object->value, arena),
               "{\"metadata\":{\"x\":\"\\u003c\"},\"spec\":{\"config\":[{\"opaque\":{\"driver\":"
               "\"d\",\"parameters\":null,\"y\":null},\"z\":1}]},\"new\":[1,2],\"other\":{}}");
    dv_object_unref(object);
}

static void keeps_raw_values_as_they_were_sent(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *doc = parsed("{\"parameters\": { \"a\" :\t1 } }", arena);
    struct dv_api_opaque_device_configuration config = {0};
    struct dv_err err;

    (void)state;
    assert_ok(dv_decode_json(&dv_message_opaque_device_configuration, doc, DV_UNKNOWN_DROP, arena,
                             &config, NULL, &err),
              &err);
    assert_str(config.parameters, "{ \"a\" :\t1 }");
}

static void refuses_small_texts_of_large_objects(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *pods = dv_json_new_array(arena);
    struct dv_json *spec = dv_json_new_object(arena);
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_api_pod pod = {0};
    struct dv_err err;

    (void)state;
    for (int i = 0; i < 300000; i++)
        dv_json_append(pods, dv_json_new_object(arena));
    dv_json_set(spec, DV_STR("containers"), pods, arena);
    dv_json_set(doc, DV_STR("spec"), spec, arena);
    assert_false(dv_decode_json(&dv_message_pod, doc, DV_UNKNOWN_DROP, arena, &pod, NULL, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "spec.containers: more than");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_the_api_accepts),
        cmocka_unit_test(refuses_what_does_not_fit_and_says_where),
        cmocka_unit_test(tells_unknown_and_repeated_fields_once),
        cmocka_unit_test(stops_telling_after_a_hundred_fields),
        cmocka_unit_test(keeps_unknown_fields_when_asked),
        cmocka_unit_test(keeps_raw_values_as_they_were_sent),
        cmocka_unit_test(refuses_small_texts_of_large_objects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
