#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "cli/client/cli_kinds.h"
#include "resource/resource.h"

static void kinds_are_found_by_all_their_names(void **state)
{
    static const struct {
        const char *word;
        enum dv_kind_id id;
    } cases[] = {
        {"pods",                                   DV_KIND_POD            },
        {"pod",                                    DV_KIND_POD            },
        {"po",                                     DV_KIND_POD            },
        {"Pod",                                    DV_KIND_POD            },
        {"nodes",                                  DV_KIND_NODE           },
        {"no",                                     DV_KIND_NODE           },
        {"ns",                                     DV_KIND_NAMESPACE      },
        {"ev",                                     DV_KIND_EVENT          },
        {"events.events.k8s.io",                   DV_KIND_EVENT          },
        {"leases",                                 DV_KIND_LEASE          },
        {"cm",                                     DV_KIND_CONFIG_MAP     },
        {"secret",                                 DV_KIND_SECRET         },
        {"sa",                                     DV_KIND_SERVICE_ACCOUNT},
        {"claims",                                 DV_KIND_CLAIM          },
        {"claim",                                  DV_KIND_CLAIM          },
        {"ResourceClaim",                          DV_KIND_CLAIM          },
        {"RESOURCECLAIMS",                         DV_KIND_CLAIM          },
        {"resourceclaims.resource.k8s.io",         DV_KIND_CLAIM          },
        {"resourceclaims.v1beta1.resource.k8s.io", DV_KIND_CLAIM          },
        {"templates",                              DV_KIND_TEMPLATE       },
        {"resourceclaimtemplates",                 DV_KIND_TEMPLATE       },
        {"slices",                                 DV_KIND_SLICE          },
        {"classes",                                DV_KIND_CLASS          },
        {"class",                                  DV_KIND_CLASS          },
        {"deviceclass",                            DV_KIND_CLASS          },
        {"pc",                                     DV_KIND_PRIORITY_CLASS },
        {"quota",                                  DV_KIND_RESOURCE_QUOTA },
        {"runtimeclasses",                         DV_KIND_RUNTIME_CLASS  },
        {"runtimeclass.node.k8s.io",               DV_KIND_RUNTIME_CLASS  },
        {"taintrules",                             DV_KIND_TAINT_RULE     },
        {"DeviceTaintRule",                        DV_KIND_TAINT_RULE     },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_ptr_equal(dv_cli_kind_find(dv_str_from_c(cases[i].word)), dv_kind(cases[i].id));
}

static void other_words_are_no_kinds(void **state)
{
    static const char *const words[] = {"",
                                        "p",
                                        "ingresses",
                                        "pods.apps",
                                        "resourceclaims.",
                                        "resourceclaims.v9.resource.k8s.io",
                                        ".resource.k8s.io",
                                        "all"};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(words); i++)
        assert_null(dv_cli_kind_find(dv_str_from_c(words[i])));
}

static void a_mistyped_kind_gets_the_nearest_name(void **state)
{
    static const struct {
        const char *word;
        const char *meant; /* "": none */
    } cases[] = {
        {"clams",           "claims"        },
        {"podz",            "pods"          },
        {"POSD",            "pods"          },
        {"resourceclam",    "resourceclaim" },
        {"ResourceSlicess", "resourceslices"},
        {"deviceclases",    "deviceclasses" },
        {"templatse",       "templates"     },
        {"tainrules",       "taintrules"    },
        {"configmpa",       "configmap"     },
        {"slcies.apps",     "slices"        },
        {"ingresses",       ""              },
        {"x",               ""              },
        {"",                ""              },
        {"networkpolicies", ""              },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str meant = dv_cli_kind_suggest(dv_str_from_c(cases[i].word));

        if (!dv_str_eq(meant, dv_str_from_c(cases[i].meant)))
            fail_msg("%s: %.*s", cases[i].word, DV_FMT(meant));
    }
}

static void a_word_of_any_length_is_only_refused(void **state)
{
    char text[4096];
    struct dv_err err;

    (void)state;
    memset(text, 'a', sizeof(text));
    assert_null(dv_cli_kind_require((dv_str){text, sizeof(text)}, &err));
    assert_int_equal(err.code, DV_NOT_FOUND);
}

/* "pod/a pod/b" of the targets that the words give; or "! message". */
static void check_targets(const char *const *given, const char *expected)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cli_targets targets;
    dv_str words[8];
    size_t n = 0;
    dv_str text = DV_STR("");
    struct dv_err err;

    for (; given[n]; n++)
        words[n] = dv_str_from_c(given[n]);
    if (!dv_cli_targets_parse(words, n, arena, &targets, &err)) {
        text = dv_str_printf(arena, "! %s", err.msg);
    } else {
        for (size_t i = 0; i < targets.n; i++)
            text = dv_str_printf(arena, "%.*s%s%.*s/%.*s", DV_FMT(text), i ? " " : "",
                                 DV_FMT(targets.v[i].kind->singular), DV_FMT(targets.v[i].name));
        if (targets.are_of_kinds)
            text = dv_str_printf(arena, "%.*s kinds", DV_FMT(text));
        if (targets.has_names)
            text = dv_str_printf(arena, "%.*s named", DV_FMT(text));
    }
    assert_string_equal(dv_str_to_c(text, arena), expected);
}

static void words_name_kinds_and_objects(void **state)
{
    static const struct {
        const char *words[6];
        const char *expected;
    } cases[] = {
        {{"pods"},                "pod/"                                                                        },
        {{"pods", "a", "b"},      "pod/a pod/b named"                                                           },
        {{"pods", "a", "a"},      "pod/a named"                                                                 },
        {{"po,claims"},           "pod/ resourceclaim/ kinds"                                                   },
        {{"po,pods"},             "pod/"                                                                        },
        {{"po,claims", "a"},      "pod/a resourceclaim/a kinds named"                                           },
        {{"claim/a", "pod/b"},    "resourceclaim/a pod/b kinds named"                                           },
        {{"claim/a", "claims/b"}, "resourceclaim/a resourceclaim/b named"                                       },
        {{"all"},                 "pod/ resourceclaim/ resourceclaimtemplate/ resourceslice/ deviceclass/ kinds"},
        {{NULL},                  "! name a kind"                                                               },
        {{"all", "x"},            "! all takes no names"                                                        },
        {{"pdos"},                "! there is no kind \"pdos\" (did you mean pods?)"                            },
        {{"clams"},               "! there is no kind \"clams\" (did you mean claims?)"                         },
        {{"ingresses"},           "! there is no kind \"ingresses\""                                            },
        {{"pods,"},               "! there is no kind \"\""                                                     },
        {{"pods", "a/b"},         "! \"a/b\" is no name of an object"                                           },
        {{"pods", ""},            "! \"\" is no name of an object"                                              },
        {{"pod/a", "b"},          "! \"b\" stands among KIND/NAME words and is none"                            },
        {{"pod/"},                "! \"pod/\" has no name after the slash"                                      },
        {{"pod/a/b"},             "! \"a/b\" is no name of an object"                                           },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        check_targets(cases[i].words, cases[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_found_by_all_their_names),
        cmocka_unit_test(other_words_are_no_kinds),
        cmocka_unit_test(a_mistyped_kind_gets_the_nearest_name),
        cmocka_unit_test(a_word_of_any_length_is_only_refused),
        cmocka_unit_test(words_name_kinds_and_objects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
