/* test_taints.c - what taints do, and what rules say, as tables. */
#include "support/dvtest.h"

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "control/taint.h"
#include "resource/resource.h"
#include "json/json.h"

static int set_up(void **state)
{
    *state = dv_arena_new();
    return 0;
}

static int tear_down(void **state)
{
    dv_arena_free(*state);
    return 0;
}

static void *read_as(const struct dv_message *message, const char *yaml, struct dv_arena *arena)
{
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, arena, &err);

    assert_ok(doc, &err);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err), &err);
    return value;
}

#define ADDED "timeAdded: \"1970-01-01T00:01:40Z\"" /* 100 */
#define NEVER (-1)

static void taints_are_tolerated_or_not(void **state)
{
    static const struct {
        const char *taint;
        const char *tolerations;
        int64_t at_s;
    } rows[] = {
        {"{key: k, effect: NoExecute, " ADDED "}",           "[]",                                           100      },
        {"{key: k, effect: NoExecute}",                      "[]",                                           50       }, /* when it was made */
        {"{key: k, effect: NoSchedule, " ADDED "}",          "[]",                                           NEVER    },
        {"{key: k, effect: None, " ADDED "}",                "[]",                                           NEVER    },
        {"{key: k, effect: Unheard, " ADDED "}",             "[]",                                           NEVER    },
        {"{key: k, effect: NoExecute, " ADDED "}",           "[{operator: Exists, effect: NoExecute}]",
         NEVER                                                                                                        },
        {"{key: k, effect: NoExecute, " ADDED "}",           "[{operator: Exists}]",                         100      },
        {"{key: k, effect: NoExecute, " ADDED "}",           "[{operator: Exists, effect: NoSchedule}]",     100      },
        {"{key: k, effect: NoExecute, " ADDED "}",
         "[{key: k, operator: Exists, effect: NoExecute}]",                                                  NEVER    },
        {"{key: k, effect: NoExecute, " ADDED "}",
         "[{key: j, operator: Exists, effect: NoExecute}]",                                                  100      },
        {"{key: k, effect: NoExecute, " ADDED "}",           "[{key: k, operator: Odd, effect: NoExecute}]",
         100                                                                                                          },
        {"{key: k, value: v, effect: NoExecute, " ADDED "}",
         "[{key: k, value: v, effect: NoExecute}]",                                                          NEVER    },
        {"{key: k, value: v, effect: NoExecute, " ADDED "}",
         "[{key: k, value: w, effect: NoExecute}]",                                                          100      },
        {"{key: k, effect: NoExecute, " ADDED "}",
         "[{operator: Exists, effect: NoExecute, tolerationSeconds: 7}]",                                    107      },
        {"{key: k, effect: NoExecute, " ADDED "}",
         "[{operator: Exists, effect: NoExecute, tolerationSeconds: -7}]",                                   100      },
        {"{key: k, effect: NoExecute, " ADDED "}",
         "[{operator: Exists, effect: NoExecute, tolerationSeconds: 7}, {operator: Exists, effect: "
         "NoExecute}, {operator: Exists, effect: NoExecute, tolerationSeconds: 5}]",                         105      },
        {"{key: k, effect: NoExecute, " ADDED "}",
         "[{operator: Exists, effect: NoExecute, tolerationSeconds: 9223372036854775807}]",                  INT64_MAX},
    };
    struct dv_arena *arena = *state;

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_api_device_request_allocation_result *result = read_as(
            &dv_message_device_request_allocation_result,
            dv_str_to_c(dv_str_printf(arena, "{tolerations: %s}", rows[i].tolerations), arena),
            arena);
        const struct dv_taint_source source = {
            .taint = read_as(&dv_message_device_taint, rows[i].taint, arena),
            .since = {.seconds = 50, .is_set = true}
        };
        struct dv_eviction eviction = {0};

        dv_taint_apply(result, &source, arena, &eviction);
        if (eviction.is_set != (rows[i].at_s != NEVER) ||
            (eviction.is_set && eviction.at_s != rows[i].at_s))
            fail_msg("%s with %s: %d %lld", rows[i].taint, rows[i].tolerations, eviction.is_set,
                     (long long)eviction.at_s);
    }
}

static void the_earliest_counts_for_all_reasons(void **state)
{
    const struct dv_api_device_taint late = {
        .effect = DV_STR("NoExecute"), .time_added = {.seconds = 9, .is_set = true}
    };
    const struct dv_api_device_taint early = {
        .effect = DV_STR("NoExecute"), .time_added = {.seconds = 3, .is_set = true}
    };
    const struct dv_taint_source sources[] = {
        {.taint = &late,        .rule = DV_STR("r1")},
        {.taint = &early      },
        {.taint = &late, .rule = DV_STR("r2")                    },
        {.taint = &early, .rule = DV_STR("r1")},
    };
    const struct dv_api_device_request_allocation_result result = {0};
    struct dv_eviction eviction = {0};
    struct dv_eviction pod = {0};

    dv_eviction_merge(&pod, &eviction, *state);
    assert_false(pod.is_set);
    for (size_t i = 0; i < DV_COUNT(sources); i++)
        dv_taint_apply(&result, &sources[i], *state, &eviction);
    assert_int_equal(eviction.at_s, 3);
    assert_int_equal(eviction.n_rules, 2);
    pod = (struct dv_eviction){.is_set = true, .at_s = 5};
    dv_eviction_merge(&pod, &eviction, *state);
    assert_int_equal(pod.at_s, 3);
    assert_int_equal(pod.n_rules, 2);
    assert_true(dv_eviction_eq(&pod, &eviction));
}

/* What a rule selects is found under the rule's word, and only then it is selected. */
static void words_find_what_is_selected(void **state)
{
    static const char *const names[] = {"a", "b", NULL};

    for (size_t i = 0; i < 27; i++) {
        const struct dv_api_device_taint_selector selector = {
            .driver = names[i % 3] ? dv_str_from_c(names[i % 3]) : DV_STR_NONE,
            .pool = names[i / 3 % 3] ? dv_str_from_c(names[i / 3 % 3]) : DV_STR_NONE,
            .device = names[i / 9] ? dv_str_from_c(names[i / 9]) : DV_STR_NONE};
        dv_str word = dv_taint_rule_word(&selector, *state);

        for (size_t j = 0; j < 8; j++) {
            dv_str driver = dv_str_from_c(names[j & 1]);
            dv_str pool = dv_str_from_c(names[j >> 1 & 1]);
            dv_str device = dv_str_from_c(names[j >> 2]);
            dv_str words[DV_TAINT_WORDS];
            bool is_found = false;

            dv_taint_words(driver, pool, device, *state, words);
            for (size_t k = 0; k < DV_TAINT_WORDS; k++)
                is_found = is_found || dv_str_eq(words[k], word);
            if (dv_taint_selects(&selector, driver, pool, device))
                assert_true(is_found);
        }
    }
    assert_int_equal(dv_taint_rule_word(NULL, *state).n, 0);
    assert_false(dv_taint_selects(NULL, DV_STR("a"), DV_STR("a"), DV_STR("a")));
}

#define NONE_END                                                                                   \
    " if the effect was NoExecute. This information will not be updated again. Recreate the "      \
    "DeviceTaintRule to trigger an update."

static void rules_say_what_they_do(void **state)
{
    static const struct {
        const char *effect;
        struct dv_rule_counts counts;
        const char *status;
        const char *reason;
        const char *message;
    } rows[] = {
        {"NoExecute",  {0},                                                    "False", "NotStarted",          ""},
        {"NoExecute",
         {.n_pods = 1, .n_namespaces = 1},
         "True",                                                                        "PodsPendingEviction",
         "1 pod needs to be evicted in 1 namespace."                                                             },
        {"NoExecute",
         {.n_pods = 2, .n_namespaces = 1},
         "True",                                                                        "PodsPendingEviction",
         "2 pods need to be evicted in 1 namespace."                                                             },
        {"NoExecute",
         {.n_pods = 3, .n_namespaces = 2},
         "True",                                                                        "PodsPendingEviction",
         "3 pods need to be evicted in 2 different namespaces."                                                  },
        {"NoExecute",
         {.n_pods = 1, .n_namespaces = 1, .n_evicted = 1},
         "True",                                                                        "PodsPendingEviction",
         "1 pod needs to be evicted in 1 namespace. 1 pod evicted since starting the controller."                },
        {"NoExecute",
         {.n_evicted = 2},
         "False",                                                                       "Completed",
         "2 pods evicted since starting the controller."                                                         },
        {"None",
         {.n_published = 3, .n_allocated = 1, .n_pods = 1, .n_namespaces = 1},
         "False",                                                                       "NoEffect",
         "3 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1 "
         "namespace" NONE_END                                                                                    },
        {"None",
         {.n_published = 1, .n_allocated = 3, .n_pods = 2, .n_namespaces = 2},
         "False",                                                                       "NoEffect",
         "1 published device selected. 3 allocated devices selected. 2 pods would be evicted in 2 "
         "different namespaces" NONE_END                                                                         },
        {"None",
         {.n_evicted = 1},
         "False",                                                                       "NoEffect",
         "0 published devices selected. 0 allocated devices selected. 0 pods would be evicted in 0 "
         "different namespaces" NONE_END " 1 pod evicted since starting the controller."                         },
        {"NoSchedule",
         {0},
         "False",                                                                       "OtherEffect",
         "Eviction only happens for the NoExecute effect."                                                       },
    };
    const struct dv_time now = {.seconds = 1704067200, .is_set = true};

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_api_device_taint_rule rule = {
            .metadata = {.name = DV_STR("r"), .uid = DV_STR("u"), .generation = 4},
            .spec = {.taint = {.effect = dv_str_from_c(rows[i].effect)}   }
        };
        struct dv_api_condition condition;

        dv_rule_condition(&rule, &rows[i].counts, now, *state, &condition);
        assert_str(condition.type, "EvictionInProgress");
        assert_str(condition.status, rows[i].status);
        assert_str(condition.reason, rows[i].reason);
        assert_str(condition.message, rows[i].message);
        assert_int_equal(condition.observed_generation, 4);
        assert_false(dv_rule_has_condition(&rule, &condition));
        assert_false(dv_rule_is_settled(&rule));
        rule.status.conditions = &condition;
        rule.status.n_conditions = 1;
        assert_true(dv_rule_has_condition(&rule, &condition));
        assert_int_equal(dv_rule_is_settled(&rule),
                         !dv_str_eq(rule.spec.taint.effect, DV_STR("NoExecute")));
        rule.metadata.generation = 5;
        assert_false(dv_rule_is_settled(&rule));
    }
}

static void the_status_is_applied_with_the_uid(void **state)
{
    const struct dv_api_device_taint_rule rule = {
        .metadata = {.name = DV_STR("r"), .uid = DV_STR("u"), .generation = 4},
        .spec = {.taint = {.effect = DV_STR("NoExecute")}   }
    };
    struct dv_api_condition condition;
    struct dv_buf text;

    dv_rule_condition(&rule, &(struct dv_rule_counts){0},
                      (struct dv_time){.seconds = 1704067200, .is_set = true}, *state, &condition);
    dv_buf_init(&text, SIZE_MAX);
    dv_json_print(dv_rule_status(&rule, &condition, DV_STR("g/v"), *state), NULL, &text);
    assert_str(dv_buf_str(&text),
               "{\"apiVersion\":\"g/v\",\"kind\":\"DeviceTaintRule\",\"metadata\":{\"name\":\"r\","
               "\"uid\":\"u\"},\"status\":{\"conditions\":[{\"type\":\"EvictionInProgress\","
               "\"status\":\"False\",\"observedGeneration\":4,\"lastTransitionTime\":"
               "\"2024-01-01T00:00:00Z\",\"reason\":\"NotStarted\",\"message\":\"\"}]}}");
    dv_buf_fini(&text);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ROW(taints_are_tolerated_or_not),        ROW(the_earliest_counts_for_all_reasons),
        ROW(words_find_what_is_selected),        ROW(rules_say_what_they_do),
        ROW(the_status_is_applied_with_the_uid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
