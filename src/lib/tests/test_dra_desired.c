/* From a driver's pools to slices, and which mistakes in them are refused; claims as drivers see
 * them. */
#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "davit/dra.h"
#include "lib/dra/dra_claim.h"
#include "lib/dra/dra_slices.h"
#include "resource/resource.h"
#include "support/arena.h"
#include "json/json.h"

#define DRIVER "gpu.example.com"

static const char *print_slice(const struct dv_lib_desired *desired, size_t number,
                               struct dv_arena *arena)
{
    struct dv_api_resource_slice_spec spec;
    const char *text;
    struct dv_buf buf;

    dv_buf_init(&buf, 65536);
    dv_lib_slice_fill(desired, number, 1, NULL, arena, &spec);
    dv_encode_json_text(&dv_message_resource_slice_spec, &spec, NULL, DV_STR_NONE, &buf);
    text = dv_str_to_c(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static void all_that_a_device_has_becomes_its_slice(void **state)
{
    const struct davit_dra_attribute attributes[] = {
        {.name = "version", .type = DAVIT_DRA_VERSION, .text = "1.2.3"},
        {.name = "model",   .type = DAVIT_DRA_STRING,  .text = "A9"   },
        {.name = "index",   .type = DAVIT_DRA_INT,     .number = -3   },
        {.name = "fast",    .type = DAVIT_DRA_BOOL,    .number = 1    },
    };
    const struct davit_dra_amount capacity[] = {
        {"memory", "40Gi"}
    };
    const struct davit_dra_amount counters[] = {
        {"cores", "8"}
    };
    const struct davit_dra_counters uses[] = {
        {"whole", counters, 1}
    };
    const struct davit_dra_taint taints[] = {
        {.key = "example.com/bad", .value = "very", .effect = "NoSchedule", .added_s = 1000000000}
    };
    const struct davit_dra_device devices[] = {
        {
         .name = "gpu-0",
         .attributes = attributes,
         .n_attributes = 4,
         .capacity = capacity,
         .n_capacity = 1,
         .consumes = uses,
         .n_consumes = 1,
         .taints = taints,
         .n_taints = 1,
         .is_shareable = true,
         .more = "{\"name\":\"other\",\"attributes\":{\"model\":{\"string\":\"B\"},"
                    "\"a\":{\"int\":1}},\"bindsToNode\":true}", },
    };
    struct davit_dra_pool pool = {
        .name = "p", .devices = devices, .n_devices = 1, .counter_sets = uses, .n_counter_sets = 1};
    struct dv_lib_desired desired;
    struct dv_err err;

    assert_ok(dv_lib_desired_make(&pool, DV_STR(DRIVER), DV_STR("node-1"), *state, &desired, &err),
              &err);
    assert_int_equal(desired.n_slices, 2);
    assert_string_equal(print_slice(&desired, 0, *state),
                        "{\"driver\":\"gpu.example.com\",\"pool\":{\"name\":\"p\",\"generation\":1,"
                        "\"resourceSliceCount\":2},\"nodeName\":\"node-1\",\"sharedCounters\":[{"
                        "\"name\":\"whole\",\"counters\":{\"cores\":{\"value\":\"8\"}}}]}");
    assert_string_equal(
        print_slice(&desired, 1, *state),
        "{\"driver\":\"gpu.example.com\",\"pool\":{\"name\":\"p\",\"generation\":1,"
        "\"resourceSliceCount\":2},\"nodeName\":\"node-1\",\"devices\":[{\"name\":\"gpu-0\","
        "\"attributes\":{\"a\":{\"int\":1},\"fast\":{\"bool\":true},\"index\":{\"int\":-3},"
        "\"model\":{\"string\":\"A9\"},\"version\":{\"version\":\"1.2.3\"}},\"capacity\":{"
        "\"memory\":{\"value\":\"40Gi\"}},\"consumesCounters\":[{\"counterSet\":\"whole\","
        "\"counters\":{\"cores\":{\"value\":\"8\"}}}],\"taints\":[{\"key\":\"example.com/bad\","
        "\"value\":\"very\",\"effect\":\"NoSchedule\",\"timeAdded\":\"2001-09-09T01:46:40Z\"}],"
        "\"bindsToNode\":true,\"allowMultipleAllocations\":true}]}");
}

static void a_pool_is_of_a_node_of_some_or_of_all(void **state)
{
    static const struct {
        struct davit_dra_pool pool;
        const char *text; /* somewhere in the slice */
    } rows[] = {
        {{.name = "p", .place = DAVIT_DRA_ALL_NODES},                "\"allNodes\":true"              },
        {{.name = "p", .place = DAVIT_DRA_PER_DEVICE},               "\"perDeviceNodeSelection\":true"},
        {{.name = "p",
          .place = DAVIT_DRA_SOME_NODES,
          .node_selector = "{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"a\","
                           "\"operator\":\"Exists\"}]}]}"},
         "\"nodeSelector\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"a\""             },
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_lib_desired desired;
        struct dv_err err;

        assert_ok(dv_lib_desired_make(&rows[i].pool, DV_STR(DRIVER), DV_STR("node-1"), *state,
                                      &desired, &err),
                  &err);
        assert_non_null(strstr(print_slice(&desired, 0, *state), rows[i].text));
        assert_null(strstr(print_slice(&desired, 0, *state), "nodeName"));
    }
}

static void mistakes_in_a_pool_are_refused(void **state)
{
    static const struct davit_dra_amount eight[] = {
        {"cores", "8"}
    };
    static const struct davit_dra_amount bad[] = {
        {"cores", "8 apples"}
    };
    static const struct davit_dra_amount unknown[] = {
        {"wheels", "4"}
    };
    static const struct davit_dra_amount twice[] = {
        {"cores", "1"},
        {"cores", "2"}
    };
    static const struct davit_dra_counters sets[] = {
        {"s", eight, 1},
        {"s", eight, 1}
    };
    static const struct davit_dra_counters bad_set[] = {
        {"s", bad, 1}
    };
    static const struct davit_dra_counters twice_set[] = {
        {"s", twice, 2}
    };
    static const struct davit_dra_counters other_set[] = {
        {"t", eight, 1}
    };
    static const struct davit_dra_counters other_counter[] = {
        {"s", unknown, 1}
    };
    static const struct davit_dra_attribute same[] = {
        {.name = "a", .text = "x"},
        {.name = "a", .text = "y"}
    };
    static const struct davit_dra_attribute no_text[] = {{.name = "a"}};
    static const struct davit_dra_attribute no_type[] = {
        {.name = "a", .type = 9, .text = ""}
    };
    static const struct davit_dra_device same_names[] = {{.name = "a"}, {.name = "a"}};
    static const struct davit_dra_device no_name[] = {{0}};
    static const struct davit_dra_device not_utf8[] = {{.name = "\xff"}};
    static const struct davit_dra_device not_json[] = {
        {.name = "a", .more = "{"}
    };
    static const struct davit_dra_device not_object[] = {
        {.name = "a", .more = "[]"}
    };
    static const struct davit_dra_device not_device[] = {
        {.name = "a", .more = "{\"taints\":1}"}
    };
    static const struct davit_dra_device same_attributes[] = {
        {.name = "a", .attributes = same, .n_attributes = 2}
    };
    static const struct davit_dra_device textless[] = {
        {.name = "a", .attributes = no_text, .n_attributes = 1}
    };
    static const struct davit_dra_device typeless[] = {
        {.name = "a", .attributes = no_type, .n_attributes = 1}
    };
    static const struct davit_dra_device bad_capacity[] = {
        {.name = "a", .capacity = bad, .n_capacity = 1}
    };
    static const struct davit_dra_device same_capacity[] = {
        {.name = "a", .capacity = twice, .n_capacity = 2}
    };
    static const struct davit_dra_device unknown_set[] = {
        {.name = "a", .consumes = other_set, .n_consumes = 1}
    };
    static const struct davit_dra_device unknown_counter[] = {
        {.name = "a", .consumes = other_counter, .n_consumes = 1}
    };
    static const struct davit_dra_taint keyless[] = {{.effect = "NoSchedule"}};
    static const struct davit_dra_device bad_taint[] = {
        {.name = "a", .taints = keyless, .n_taints = 1}
    };
    static const struct {
        struct davit_dra_pool pool;
        const char *node;
        const char *text;
    } rows[] = {
        {{.name = "p", .devices = same_names, .n_devices = 2},               "n", "\"a\" is there twice"        },
        {{.name = "p", .devices = no_name, .n_devices = 1},                  "n", "its name is missing"         },
        {{.name = "p", .devices = not_utf8, .n_devices = 1},                 "n", "not UTF-8"                   },
        {{.name = "p", .devices = not_json, .n_devices = 1},                 "n", "device a: more: "            },
        {{.name = "p", .devices = not_object, .n_devices = 1},               "n", "device a: more: "            },
        {{.name = "p", .devices = not_device, .n_devices = 1},               "n", "device a: more: "            },
        {{.name = "p", .devices = same_attributes, .n_devices = 1},          "n", "attribute \"a\" is the"      },
        {{.name = "p", .devices = textless, .n_devices = 1},                 "n", "a is missing"                },
        {{.name = "p", .devices = typeless, .n_devices = 1},                 "n", "no type 9"                   },
        {{.name = "p", .devices = bad_capacity, .n_devices = 1},             "n", "device a: cores: "           },
        {{.name = "p", .devices = same_capacity, .n_devices = 1},            "n", "capacity \"cores\" is th"    },
        {{.name = "p", .devices = bad_taint, .n_devices = 1},                "n", "a taint's key is missing"    },
        {{.name = "p", .counter_sets = sets, .n_counter_sets = 2},           "n", "counter set \"s\" is t"      },
        {{.name = "p", .counter_sets = bad_set, .n_counter_sets = 1},        "n", "counter set s: cores"        },
        {{.name = "p", .counter_sets = twice_set, .n_counter_sets = 1},      "n", "\"cores\" is there"          },
        {{.name = "p",
          .counter_sets = sets,
          .n_counter_sets = 1,
          .devices = unknown_set,
          .n_devices = 1},
         "n",                                                                     "no counter set \"t\""        },
        {{.name = "p",
          .counter_sets = sets,
          .n_counter_sets = 1,
          .devices = unknown_counter,
          .n_devices = 1},
         "n",                                                                     "s has no counter \"wheels\"" },
        {{.name = "p"},                                                      "",  "this node, which has no name"},
        {{.name = "p", .place = DAVIT_DRA_SOME_NODES},                       "n", "no node_selector"            },
        {{.name = "p", .place = DAVIT_DRA_SOME_NODES, .node_selector = "1"}, "n", "node_selector"               },
        {{.name = "p", .place = 9},                                          "n", "no place 9"                  },
        {{0},                                                                "n", "a pool's name is missing"    },
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_lib_desired desired;
        struct dv_err err;

        if (dv_lib_desired_make(&rows[i].pool, DV_STR(DRIVER), dv_str_from_c(rows[i].node), *state,
                                &desired, &err))
            fail_msg("accepted, but should be refused: %s", rows[i].text);
        assert_err(&err, DV_INVALID_ARGUMENT, rows[i].text);
    }
}

/* ---- claims ---- */

#define CLAIM(status)                                                                              \
    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"c\",\"uid\":\"u1\"},"                          \
    "\"spec\":{\"devices\":{}}" status "}"

static bool view_claim(const char *json, struct dv_arena *arena, struct davit_dra_claim *view,
                       struct dv_err *err)
{
    struct dv_api_resource_claim *claim = DV_NEW(arena, struct dv_api_resource_claim);
    const struct dv_json *doc = dv_json_parse(dv_str_from_c(json), NULL, arena, err);

    assert_ok(doc != NULL, err);
    assert_ok(dv_decode_json(dv_kind(DV_KIND_CLAIM)->versions[0].message, doc, DV_UNKNOWN_KEEP,
                             arena, claim, NULL, err),
              err);
    return dv_lib_claim_view(claim, DV_STR(DRIVER), DV_STR("u1"), arena, view, err);
}

static void a_driver_sees_its_own_results_and_configs(void **state)
{
    struct davit_dra_claim view;
    struct dv_err err;

    assert_ok(
        view_claim(CLAIM(",\"status\":{\"allocation\":{\"devices\":{\"results\":["
                         "{\"request\":\"r\",\"driver\":\"other.example.com\",\"pool\":\"p\","
                         "\"device\":\"x\"},"
                         "{\"request\":\"r/small\",\"driver\":\"gpu.example.com\",\"pool\":\"p\","
                         "\"device\":\"d\",\"shareID\":\"s\",\"adminAccess\":true,"
                         "\"consumedCapacity\":{\"memory\":\"1Gi\"}}],"
                         "\"config\":[{\"source\":\"FromClass\",\"requests\":[\"r\"],\"opaque\":{"
                         "\"driver\":\"gpu.example.com\",\"parameters\":{\"a\":1}}},"
                         "{\"source\":\"FromClaim\",\"opaque\":{\"driver\":\"gpu.example.com\","
                         "\"parameters\":{}}},"
                         "{\"source\":\"FromClaim\",\"opaque\":{\"driver\":\"other.example.com\","
                         "\"parameters\":{}}}]}}}"),
                   *state, &view, &err),
        &err);
    assert_string_equal(view.ref.claim_namespace, "ns");
    assert_string_equal(view.ref.name, "c");
    assert_string_equal(view.ref.uid, "u1");
    assert_int_equal(view.n_results, 1);
    assert_string_equal(view.results[0].request, "r/small");
    assert_string_equal(view.results[0].device, "d");
    assert_string_equal(view.results[0].share_id, "s");
    assert_true(view.results[0].is_admin);
    assert_non_null(strstr(view.results[0].json, "\"memory\":\"1Gi\""));
    assert_int_equal(view.n_configs, 2);
    assert_true(view.configs[0].is_from_class);
    assert_string_equal(view.configs[0].parameters, "{\"a\":1}");
    assert_true(davit_dra_config_is_for(&view.configs[0], "r"));
    assert_true(davit_dra_config_is_for(&view.configs[0], "r/small"));
    assert_false(davit_dra_config_is_for(&view.configs[0], "q"));
    assert_true(davit_dra_config_is_for(&view.configs[1], "q"));
    assert_non_null(strstr(view.json, "\"apiVersion\":\"resource.k8s.io/v1\""));
}

static void a_claim_that_is_not_the_one_or_not_ready_is_refused(void **state)
{
    struct davit_dra_claim view;
    struct dv_err err;

    assert_false(view_claim(CLAIM(""), *state, &view, &err));
    assert_err(&err, DV_FAILED_PRECONDITION, "claim ns/c not allocated");
    assert_false(view_claim("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"c\",\"uid\":\"u2\"},"
                            "\"status\":{\"allocation\":{}}}",
                            *state, &view, &err));
    assert_err(&err, DV_FAILED_PRECONDITION, "claim ns/c got replaced");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define DESIRED_TEST(name) arena_test(name)
        DESIRED_TEST(all_that_a_device_has_becomes_its_slice),
        DESIRED_TEST(a_pool_is_of_a_node_of_some_or_of_all),
        DESIRED_TEST(mistakes_in_a_pool_are_refused),
        DESIRED_TEST(a_driver_sees_its_own_results_and_configs),
        DESIRED_TEST(a_claim_that_is_not_the_one_or_not_ready_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
