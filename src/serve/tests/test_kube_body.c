#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "cluster/cluster.h"
#include "resource/misfit.h"
#include "resource/resource.h"
#include "serve/wire/kube_accept.h"
#include "serve/wire/kube_body.h"
#include "serve/wire/kube_json_error.h"
#include "json/json.h"

static const struct dv_body_kind claim_kind = {DV_STR_INIT("ResourceClaim"),
                                               DV_STR_INIT("resource.k8s.io"), DV_STR_INIT("v1"),
                                               &dv_message_resource_claim};

static void broken_json_is_told_as_the_reference_tells_it(void **state)
{
    static const struct {
        const char *text;
        const char *want; /* empty: it is JSON */
    } cases[] = {
        {"",                  "unexpected end of JSON input"                                    },
        {"{",                 "unexpected end of JSON input"                                    },
        {"{\"a\"",            "unexpected end of JSON input"                                    },
        {"{\"a\":[1,",        "unexpected end of JSON input"                                    },
        {"x",                 "invalid character 'x' looking for beginning of value"            },
        {"\xc3\xbf",          "invalid character '\xc3\x83' looking for beginning of value"     },
        {"\x81",              "invalid character '\\u0081' looking for beginning of value"      },
        {"[1 2]",             "invalid character '2' after array element"                       },
        {"{a:1}",             "invalid character 'a' looking for beginning of object key string"},
        {"{\"a\" 1}",         "invalid character '1' after object key"                          },
        {"{\"a\":1 \"b\"}",   "invalid character '\"' after object key:value pair"              },
        {"{\"a\":1}}",        "invalid character '}' after top-level value"                     },
        {"tru",               "unexpected end of JSON input"                                    },
        {"trux",              "invalid character 'x' in literal true (expecting 'e')"           },
        {"\"\\x\"",           "invalid character 'x' in string escape code"                     },
        {"\"\\u12g4\"",       "invalid character 'g' in \\u hexadecimal character escape"       },
        {"\"a\nb\"",          "invalid character '\\n' in string literal"                       },
        {"-x",                "invalid character 'x' in numeric literal"                        },
        {"1.x",               "invalid character 'x' after decimal point in numeric literal"    },
        {"1e'",               "invalid character '\\'' in exponent of numeric literal"          },
        {"[1,]",              "invalid character ']' looking for beginning of value"            },
        {" {\"a\":[{},[]]} ", ""                                                                },
        {"-0.5e+3",           ""                                                                },
    };
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, 4096);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_buf_clear(&text);
        assert_int_equal(dv_json_error_print(dv_str_from_c(cases[i].text), &text),
                         cases[i].want[0] != '\0');
        assert_str(dv_buf_str(&text), cases[i].want);
    }
    dv_buf_fini(&text);
}

static void the_first_misfit_of_a_document_is_named(void **state)
{
#define FIELD "json: cannot unmarshal "
    static const struct {
        const char *text;
        const char *want; /* empty: none */
    } cases[] = {
        {"{\"metadata\":{\"name\":\"x\"}}",                                           ""                                                  },
        {"{\"metadata\":null,\"unknown\":[]}",                                        ""                                                  },
        {"[]",                                                                        FIELD "array into Go value of type v1.ResourceClaim"},
        {"{\"metadata\":[]}",
         FIELD "array into Go struct field ResourceClaim.metadata of type v1.ObjectMeta"                                                  },
        {"{\"metadata\":{\"labels\":{\"a\":1}}}",
         FIELD "number into Go struct field ObjectMeta.metadata.labels of type string"                                                    },
        {"{\"metadata\":{\"labels\":[]}}",
         FIELD "array into Go struct field ObjectMeta.metadata.labels of type map[string]string"                                          },
        {"{\"metadata\":{\"generation\":1.5}}",
         FIELD "number 1.5 into Go struct field ObjectMeta.metadata.generation of type int64"                                             },
        {"{\"metadata\":{\"creationTimestamp\":7}}",                                  FIELD "number into Go value of type string"         },
        {"{\"spec\":{\"devices\":{\"requests\":\"x\"}}}",
         FIELD "string into Go struct field DeviceClaim.spec.devices.requests of type "
               "[]v1.DeviceRequest"                                                                                                       },
        {"{\"spec\":{\"devices\":{\"requests\":[{\"exactly\":{\"count\":\"1\"}}]}}}",
         FIELD "string into Go struct field ExactDeviceRequest.spec.devices.requests.exactly.count "
               "of type int64"                                                                                                            },
        {"{\"spec\":{\"devices\":{\"requests\":[{\"exactly\":{\"capacity\":{\"requests\":{\"a\":"
         "\"x\"}}}}]}}}",                                                    "quantities must match the regular expression "
         "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"                                               },
        {"{\"spec\":{\"devices\":{\"requests\":[{\"exactly\":{\"capacity\":{\"requests\":{\"a\":"
         "\"1KiMi\"}}}}]}}}",                                                "unable to parse quantity's suffix"                 },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_json *doc = dv_json_parse(dv_str_from_c(cases[i].text), NULL, arena, &err);
        dv_str why = DV_STR_NONE;

        assert_non_null(doc);
        assert_int_equal(dv_misfit_find(&dv_message_resource_claim, doc, arena, &why),
                         cases[i].want[0] != '\0');
        assert_str(why, cases[i].want);
    }
}

static void times_fail_where_they_stop_to_be_times(void **state)
{
    static const struct {
        const char *text;
        bool with_micros;
        const char *want; /* behind `parsing time "TEXT"`; empty: it is a time */
    } cases[] = {
        {"2026-01-02T03:04:05Z",          false, ""                                                             },
        {"2026-01-02T03:04:05.123+02:00", false, ""                                                             },
        {"2026-01-02T03:04:05.123456Z",   true,  ""                                                             },
        {"2026-01-02T03:04:05Z",          true,
         " as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\""                          },
        {"yesterday",                     false,
         " as \"2006-01-02T15:04:05Z07:00\": cannot parse \"yesterday\" as \"2006\""                            },
        {"2026-01-02",                    false, " as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"T\""},
        {"2026-13-02T03:04:05Z",          false, ": month out of range"                                         },
        {"2026-01-02T03:04:05",           false,
         " as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"Z07:00\""                                   },
        {"2026-01-02T03:04:05Zx",         false, ": extra text: \"x\""                                          },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str why = DV_STR_NONE;
        dv_str want = DV_STR_NONE;

        if (cases[i].want[0])
            want = dv_str_printf(arena, "parsing time \"%s\"%s", cases[i].text, cases[i].want);
        assert_int_equal(
            dv_misfit_time(dv_str_from_c(cases[i].text), cases[i].with_micros, arena, &why),
            want.n > 0);
        assert_str(why, dv_str_to_c(want, arena));
    }
}

static void bodies_are_refused_with_the_references_words(void **state)
{
#define TYPE "the object provided is unrecognized (must be of type ResourceClaim): "
#define VERSION "ResourceClaim in version \"v1\" cannot be handled as a ResourceClaim: "
#define PARSE TYPE "couldn't get version/kind; json parse error: "
    static const struct {
        const char *body;
        enum dv_media media;
        enum dv_field_validation validation;
        const char *want; /* empty: it is read */
    } cases[] = {
        {"{}",                                                                      DV_MEDIA_JSON,     DV_VALIDATE_STRICT, ""                                            },
        {"null",                                                                    DV_MEDIA_JSON,     DV_VALIDATE_STRICT, ""                                            },
        {"",                                                                        DV_MEDIA_JSON,     DV_VALIDATE_WARN,   PARSE "unexpected end of JSON input (<empty>)"},
        {"{",                                                                       DV_MEDIA_JSON,     DV_VALIDATE_WARN,   PARSE "unexpected end of JSON input ({)"      },
        {"{\"kind\":7}",                                                            DV_MEDIA_JSON,     DV_VALIDATE_WARN,
         PARSE "json: cannot unmarshal number into Go struct field .kind of type string "
               "({\"kind\":7})"                                                                                                                                          },
        {"{\"kind\":\"Nope\"}",                                                     DV_MEDIA_JSON,     DV_VALIDATE_WARN,
         "Nope in version \"v1\" cannot be handled as a ResourceClaim: no kind \"Nope\" is "
         "registered for version \"resource.k8s.io/v1\" in scheme "
         "\"pkg/api/legacyscheme/scheme.go:30\""                                                                                                                         },
        {"{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}",                                DV_MEDIA_JSON,     DV_VALIDATE_WARN,
         "Pod in version \"v1\" cannot be handled as a ResourceClaim: converting (v1.Pod) to "
         "(resource.ResourceClaim): unknown conversion"                                                                                                                  },
        {"{\"apiVersion\":\"resource.k8s.io/v1beta1\",\"kind\":\"ResourceClaim\"}", DV_MEDIA_JSON,
         DV_VALIDATE_WARN,                                                                                                 "the API version in the data (resource.k8s.io/v1beta1) does not match the expected API "
         "version (resource.k8s.io/v1)"                                                                                                        },
        {"{\"nope\":1,\"spec\":{\"x\":2}}",                                         DV_MEDIA_JSON,     DV_VALIDATE_STRICT,
         VERSION "strict decoding error: unknown field \"nope\", unknown field \"spec.x\""                                                                               },
        {"{\"nope\":1}",                                                            DV_MEDIA_JSON,     DV_VALIDATE_WARN,   ""                                            },
        {"metadata:\n  name: a\n  name: b\nx: 1\n",                                 DV_MEDIA_YAML,     DV_VALIDATE_STRICT,
         VERSION "strict decoding error: yaml: unmarshal errors:\n  line 3: key \"name\" already "
                 "set in map, unknown field \"x\""                                                                                                                       },
        {"nomagic",                                                                 DV_MEDIA_PROTOBUF, DV_VALIDATE_WARN,
         TYPE "provided data does not appear to be a protobuf message, expected prefix [107 56 115 "
              "0] (6e6f6d61676963)"                                                                                                                                      },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_decode_notes warnings;
        struct dv_api_status *failure = NULL;
        void *value;
        bool is_read = dv_body_decode(dv_str_from_c(cases[i].body), cases[i].media, &claim_kind,
                                      cases[i].validation, arena, &value, &warnings, &failure);

        assert_int_equal(is_read, cases[i].want[0] == '\0');
        if (failure)
            assert_str(failure->message, cases[i].want);
    }
}

static void an_object_in_protobuf_is_read_as_in_json(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_resource_claim claim = {.metadata = {.name = DV_STR("c")}};
    const struct dv_api_resource_claim *read;
    struct dv_pb_envelope envelope = {DV_STR("resource.k8s.io/v1"), DV_STR("ResourceClaim"), {0}};
    struct dv_decode_notes warnings;
    struct dv_api_status *failure;
    struct dv_buf object, body;
    void *value;

    (void)state;
    dv_buf_init(&object, 4096);
    dv_buf_init(&body, 4096);
    dv_encode_pb(&dv_message_resource_claim, &claim, &object);
    envelope.object = dv_buf_str(&object);
    dv_pb_envelope_encode(&envelope, &body);
    assert_true(dv_body_decode(dv_buf_str(&body), DV_MEDIA_PROTOBUF, &claim_kind,
                               DV_VALIDATE_STRICT, arena, &value, &warnings, &failure));
    read = value;
    assert_str(read->metadata.name, "c");
    dv_buf_fini(&object);
    dv_buf_fini(&body);
}

static void patches_must_be_of_their_kind(void **state)
{
    static const struct {
        const char *body;
        enum dv_patch_type type;
        const char *want; /* empty: it is one */
    } cases[] = {
        {"[]",        DV_PATCH_JSON,      ""                                                  },
        {"{}",        DV_PATCH_JSON,
         "error decoding patch: json: cannot unmarshal object into Go value of type "
         "[]handlers.jsonPatchOp"                                                             },
        {"[{",        DV_PATCH_JSON,      "error decoding patch: unexpected end of JSON input"},
        {"{}",        DV_PATCH_MERGE,     ""                                                  },
        {"null",      DV_PATCH_MERGE,     "Invalid JSON Patch"                                },
        {"[]",        DV_PATCH_STRATEGIC,
         "json: cannot unmarshal array into Go value of type map[string]interface {}"         },
        {"null",      DV_PATCH_JSON,      ""                                                  },
        {"null",      DV_PATCH_STRATEGIC, ""                                                  },
        {"null",      DV_PATCH_APPLY,     "invalid object type: /, Kind="                     },
        {"",          DV_PATCH_APPLY,     "invalid object type: /, Kind="                     },
        {"[]",        DV_PATCH_APPLY,
         "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
         "unmarshal "
         "array into Go value of type map[string]interface {}"                                },
        {"{",         DV_PATCH_STRATEGIC, "unexpected end of JSON input"                      },
        {"a: {b: c}", DV_PATCH_APPLY,     ""                                                  },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_api_status *failure = NULL;
        struct dv_json *patch =
            dv_body_patch(dv_str_from_c(cases[i].body), cases[i].type, arena, &failure);

        assert_int_equal(patch != NULL, cases[i].want[0] == '\0');
        if (failure)
            assert_str(failure->message, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_json_is_told_as_the_reference_tells_it),
        cmocka_unit_test(the_first_misfit_of_a_document_is_named),
        cmocka_unit_test(times_fail_where_they_stop_to_be_times),
        cmocka_unit_test(bodies_are_refused_with_the_references_words),
        cmocka_unit_test(an_object_in_protobuf_is_read_as_in_json),
        cmocka_unit_test(patches_must_be_of_their_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
