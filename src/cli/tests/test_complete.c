#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cli/cli.h"

/* The candidates for the last word with blanks between, or the line for the shell. */
static const char *complete(const char *const *words, struct dv_arena *arena)
{
    dv_str given[16];
    size_t n = 0;
    struct dv_buf buf;
    struct dv_buf plain;
    const char *answer;
    dv_str rest;
    dv_str line;

    for (; words[n]; n++)
        given[n] = dv_str_from_c(words[n]);
    dv_buf_init(&buf, 1 << 20);
    dv_buf_init(&plain, 1 << 20);
    dv_cli_complete(given, n, arena, &buf);
    rest = dv_buf_str(&buf);
    while (rest.n > 0 && dv_str_split(&rest, '\n', &line)) {
        if (plain.n > 0)
            dv_buf_add_char(&plain, ' ');
        dv_buf_add(&plain, dv_str_slice(line, 0, dv_str_find_char(line, '\t')));
    }
    answer = dv_str_to_c(dv_buf_str(&plain), arena);
    dv_buf_fini(&buf);
    dv_buf_fini(&plain);
    return answer;
}

static void the_tables_say_what_may_come_next(void **state)
{
    static const struct {
        const char *words[8];
        const char *answer;
    } cases[] = {
        {{"plu"},                                   "plugins"                                  },
        {{"de"},                                    "describe delete devices"                  },
        {{"xyz"},                                   ""                                         },
        {{"verify", "explain", "allocate.cd"},      "allocate.cdi-names allocate.cdi-host"     },
        {{"verify", "dra", "--only", "prepare.on"}, "prepare.one"                              },
        {{"verify", "dra", "--skip", "allocate."},  ""                                         },
        {{"verify", "dra", "--attach", ""},         ":folders"                                 },
        {{"nosuchverb", ""},                        ""                                         },
        {{"help", "co"},                            "container completion"                     },
        {{"container", ""},                         "started ended"                            },
        {{"completion", ""},                        "bash zsh fish for"                        },
        {{"completion", "z"},                       "zsh"                                      },
        {{"completion", "bash", ""},                ""                                         },
        {{"state", ""},                             "backup restore import export"             },
        {{"state", "import", ""},                   ""                                         },
        {{"get", "sl"},                             "slices"                                   },
        {{"get", "pods,cla"},                       "pods,claims pods,classes"                 },
        {{"delete", "taint"},                       "taintrules"                               },
        {{"get", "po", "a"},                        ":names get pods -o name --timeout 2"      },
        {{"get", "pods", "a", "-n", "ml", "b"},     ":names get pods -o name --timeout 2 -n ml"},
        {{"get", "pods", "-n", "$(x)", "b"},        ":names get pods -o name --timeout 2"      },
        {{"get", "claim/x"},                        ":names get claims -o name --timeout 2"    },
        {{"get", "nokind/x"},                       ""                                         },
        {{"get", "nokind", ""},                     ""                                         },
        {{"explain", "cl"},                         "claim"                                    },
        {{"explain", "claim", ""},                  ":names get claims -o name --timeout 2"    },
        {{"explain", "claim", "x", ""},             ""                                         },
        {{"cdi", ""},                               "list resolve check inject"                },
        {{"cdi", "check", ""},                      ":files"                                   },
        {{"cdi", "list", ""},                       ""                                         },
        {{"get", "--no"},                           "--no-headers"                             },
        {{"get", "pods", "-o", ""},                 "wide json yaml name jsonpath="            },
        {{"get", "pods", "--output", "y"},          "yaml"                                     },
        {{"get", "pods", "--output=y"},             "--output=yaml"                            },
        {{"delete", "pods", "--wait=f"},            "--wait=false"                             },
        {{"delete", "pods", "--dry-run", "pods"},   ":names get pods -o name --timeout 2"      },
        {{"devices", "example.com/gpu", ""},
         ":words devices example.com/gpu -o jsonpath={range.resources[*].devices[*]}{.id}{\"\\n\"}"
         "{end}{range.pools[*].devices[*]}{.name}{\"\\n\"}{end} --timeout 2"                   },
        {{"devices", "$(x)", ""},                   ""                                         },
        {{"devices", "-o", "w"},                    "wide"                                     },
        {{"apply", "-f", ""},                       ":files"                                   },
        {{"apply", ""},                             ""                                         },
        {{"cdi", "inject", "--bundle", ""},         ":folders"                                 },
        {{"get", "pods", "-n", ""},                 ":names get namespaces -o name --timeout 2"},
        {{"--socket", ""},                          ":files"                                   },
        {{"--socket", "/x", "plu"},                 "plugins"                                  },
        {{"-n", "ml", "get", "sl"},                 "slices"                                   },
        {{"-n", "ml", "get", "po", ""},             ":names get pods -o name --timeout 2 -n ml"},
        {{"get", "po", "-nml", ""},                 ":names get pods -o name --timeout 2 -n ml"},
        {{"get", "po", "-n=ml", ""},                ":names get pods -o name --timeout 2 -n ml"},
        {{"--socket", "status", "release", ""},
         ":words status -o name --timeout 2 --socket status"                                   },
        {{"release", "--socket=/r/d.sock", ""},
         ":words status -o name --timeout 2 --socket /r/d.sock"                                },
        {{"release", "--socket", "$(x) y", ""},     ":words status -o name --timeout 2"        },
        {{"get", "po", "--kubeconfig", "/k", ""},
         ":names get pods -o name --timeout 2 --kubeconfig /k"                                 },
        {{"lease", "give", ""},                     ":words leases -o name --timeout 2"        },
        {{"run", "--class", ""},
         ":words get classes -o jsonpath={range.items[*]}{.metadata.name}{\"\\n\"}{end} --timeout "
         "2"                                                                                   },
        {{"logs", "pod/a", "-c", ""},
         ":words get pod a -o jsonpath={range.spec.initContainers[*]}{.name}{\"\\n\"}{end}"
         "{range.spec.containers[*]}{.name}{\"\\n\"}{end} --timeout 2"                         },
        {{"options", "a", "-c", ""},                ""                                         },
        {{"get", "pods", "--", "-"},                ":names get pods -o name --timeout 2"      },
        {{"status", ""},                            ""                                         },
        {{"version", "--"},                         "--output --json --help"                   },
        {{"version", "-"},                          "--output -o --json --help"                },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_string_equal(complete(cases[i].words, arena), cases[i].answer);
}

static void an_empty_line_may_go_on_with_any_verb(void **state)
{
    static const char *const nothing[] = {NULL};
    static const char *const empty[] = {"", NULL};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const char *answer = complete(empty, arena);
    const char *at = answer;

    (void)state;
    assert_string_equal(complete(nothing, arena), answer);
    for (size_t i = 0; i < dv_n_verbs; i++) {
        at = strstr(at, dv_verbs[i].name);
        assert_non_null(at);
    }
}

static void every_option_of_every_verb_is_offered(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < dv_n_verbs; i++) {
        const char *words[] = {dv_verbs[i].name, "-", NULL};
        const char *answer = complete(words, arena);
        struct dv_cli_option option;

        for (size_t k = 0; dv_cli_option_get(&dv_verbs[i], k, &option); k++)
            assert_non_null(strstr(answer, option.name));
        assert_non_null(strstr(answer, "--help"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tables_say_what_may_come_next),
        cmocka_unit_test(an_empty_line_may_go_on_with_any_verb),
        cmocka_unit_test(every_option_of_every_verb_is_offered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
