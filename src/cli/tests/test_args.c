#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cli/cli.h"

static const struct dv_cli_verb get = {
    .name = "get", .options = "output everywhere select w managed", .peer = DV_PEER_API};
static const struct dv_cli_verb removal = {
    .name = "delete", .options = "everywhere select files delete gone dry", .peer = DV_PEER_API};
static const struct dv_cli_verb admit = {.name = "admit", .options = "f wait"};

/* The error's text, or NULL; all in `arena`. */
static const char *parse(const struct dv_cli_verb *verb, struct dv_cli *cli,
                         const char *const *words, bool *wants_help, struct dv_arena *arena)
{
    char *args[32];
    int n = 0;
    struct dv_err err;

    for (; words[n]; n++) {
        size_t size = strlen(words[n]) + 1;

        args[n] = memcpy(DV_NEW_ARRAY(arena, char, size), words[n], size);
    }
    *cli = (struct dv_cli){.arena = arena, .has_headers = true, .timeout_ms = 1};
    if (dv_cli_parse(cli, verb, n, args, wants_help, &err))
        return NULL;
    return dv_str_to_c(dv_str_from_c(err.msg), arena);
}

static void options_are_written_in_several_ways(void **state)
{
    static const char *const ways[][4] = {
        {"-n",  "ml"},
        {"-n=ml"    },
        {"-nml"},
        {"--namespace",     "ml"},
        {"--namespace=ml"},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(ways); i++) {
        struct dv_cli cli;
        bool wants_help = false;

        assert_null(parse(&get, &cli, ways[i], &wants_help, arena));
        assert_true(dv_str_eq(cli.namespace, DV_STR("ml")));
        assert_int_equal(cli.n_words, 0);
        assert_false(wants_help);
    }
}

static void words_and_options_may_be_mixed(void **state)
{
    static const char *const words[] = {"pods", "-Aw", "-oyaml", "a",         "--no-headers",
                                        "-l",   "a=b", "--",     "--not-one", NULL};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cli cli;
    bool wants_help = false;

    (void)state;
    assert_null(parse(&get, &cli, words, &wants_help, arena));
    assert_true(cli.is_everywhere && cli.watches && !cli.has_headers);
    assert_int_equal(cli.output, DV_OUTPUT_YAML);
    assert_true(dv_str_eq(cli.labels, DV_STR("a=b")));
    assert_int_equal(cli.n_words, 3);
}

static void help_is_asked_for_anywhere(void **state)
{
    static const char *const ways[][4] = {
        {"-h"    },
        {"--help"},
        {"pods",   "-h"},
        {"-Ah"       }
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(ways); i++) {
        struct dv_cli cli;
        bool wants_help = false;

        assert_null(parse(&get, &cli, ways[i], &wants_help, arena));
        assert_true(wants_help);
    }
}

static void a_name_means_what_the_verb_says(void **state)
{
    static const char *const for_admit[] = {"-f", "pod.yaml", "--wait", "30", NULL};
    static const char *const for_delete[] = {"-f",           "a", "-f",      "b",
                                             "--wait=false", "-", "--force", NULL};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cli cli;
    bool wants_help = false;

    (void)state;
    assert_null(parse(&admit, &cli, for_admit, &wants_help, arena));
    assert_true(dv_str_eq(cli.wait, DV_STR("30")));
    assert_null(parse(&removal, &cli, for_delete, &wants_help, arena));
    assert_true(cli.skips_waiting && cli.is_forced);
    assert_int_equal(cli.n_files, 2);
    assert_true(dv_str_eq(cli.files[1], DV_STR("b")));
    assert_int_equal(cli.n_words, 1); /* "-" is a word */
}

static void durations_have_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms; /* 0: refused */
    } cases[] = {
        {"1",           1000         },
        {"90s",         90000        },
        {"5m",          300000       },
        {"2h",          7200000      },
        {"1000000000",  1000000000000},
        {"0",           0            },
        {"0s",          0            },
        {"-1",          0            },
        {"1.5",         0            },
        {"s",           0            },
        {"7d",          604800000    },
        {"1w",          0            },
        {"1000000001",  0            },
        {"4000000000h", 0            },
        {"1mm",         0            },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const char *words[] = {"--timeout", cases[i].text, NULL};
        struct dv_cli cli;
        bool wants_help = false;
        const char *error = parse(&get, &cli, words, &wants_help, arena);

        assert_int_equal(error == NULL, cases[i].ms > 0);
        if (!error)
            assert_int_equal(cli.timeout_ms, cases[i].ms);
        else
            assert_true(strncmp(error, "--timeout takes SECONDS, and not ", 33) == 0);
    }
}

static void mistakes_are_named(void **state)
{
    static const struct {
        const struct dv_cli_verb *verb;
        const char *words[24];
        const char *message;
    } cases[] = {
        {&get,     {"--colour"},                                                                "it has no option --colour"                                      },
        {&get,     {"--colour=red"},                                                            "it has no option --colour=red"                                  },
        {&get,     {"-x"},                                                                      "it has no option -x"                                            },
        {&get,     {"-Ax"},                                                                     "it has no option -Ax"                                           },
        {&get,     {"--outptu", "yaml"},                                                        "it has no option --outptu; did you mean --output?"              },
        {&get,     {"--namespce=ml"},                                                           "it has no option --namespce=ml; did you mean --namespace?"      },
        {&get,     {"--A"},                                                                     "it has no option --A"                                           },
        {&get,     {"-namespace"},                                                              NULL                                                             },
        {&get,     {"--socket", "x"},                                                           "it has no option --socket"                                      },
        {&get,     {"-f", "x"},                                                                 "it has no option -f"                                            },
        {&admit,   {"--kubeconfig", "x"},                                                       "it has no option --kubeconfig"                                  },
        {&get,     {"-o"},                                                                      "-o needs a value: wide|json|yaml|name|jsonpath=TEMPLATE"        },
        {&get,     {"-o", "xml"},                                                               "-o takes wide|json|yaml|name|jsonpath=TEMPLATE, and not \"xml\""},
        {&get,     {"-n", ""},                                                                  "-n needs a value: NAMESPACE"                                    },
        {&get,     {"--namespace="},                                                            "-n needs a value: NAMESPACE"                                    },
        {&admit,   {"-o", "xml"},                                                               "-o takes wide|json|yaml|name|jsonpath=TEMPLATE, and not \"xml\""},
        {&get,     {"--no-headers=no"},                                                         "--no-headers takes no value"                                    },
        {&get,     {"-A=true"},                                                                 "-A takes no value"                                              },
        {&removal, {"--wait=maybe"},                                                            "--wait takes true|false, and not \"maybe\""                     },
        {&removal, {"--wait="},                                                                 "--wait needs a value: [=true|false]"                            },
        {&removal, {"--dry-run=client"},                                                        "--dry-run takes server|none, and not \"client\""                },
        {&removal, {"--grace-period", "-1"},                                                    "--grace-period takes SECONDS, and not \"-1\""                   },
        {&admit,
         {"1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "1", "2", "3", "4", "5", "6", "7"},
         "too many words"                                                                                                                                        },
        {&get,
         {"1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "1", "2", "3", "4", "5", "6", "7"},
         NULL                                                                                                                                                    },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_cli cli;
        bool wants_help = false;
        const char *error = parse(cases[i].verb, &cli, cases[i].words, &wants_help, arena);

        if (!cases[i].message)
            assert_null(error);
        else
            assert_string_equal(error ? error : "", cases[i].message);
    }
}

static void help_shows_what_a_verb_has_once(void **state)
{
    struct dv_buf buf;
    dv_str text;
    dv_str rest;
    size_t at;

    (void)state;
    dv_buf_init(&buf, 1 << 16);
    dv_cli_print_options(&removal, &buf);
    text = dv_buf_str(&buf);
    at = dv_str_find(text, DV_STR("--timeout SECONDS"));
    assert_true(at < text.n);
    rest = dv_str_slice(text, at + 1, text.n);
    assert_int_equal(dv_str_find(rest, DV_STR("--timeout")), rest.n);
    assert_true(dv_str_find(text, DV_STR("      --wait[=true|false]")) < text.n);
    assert_true(dv_str_find(text, DV_STR("  -f, --filename FILE|DIR|-")) < text.n);
    assert_int_equal(dv_str_find(text, DV_STR("--socket")), text.n);
    dv_buf_fini(&buf);
}

static const struct dv_cli_verb *verb_named(const char *name)
{
    for (size_t i = 0; i < dv_n_verbs; i++)
        if (strcmp(dv_verbs[i].name, name) == 0)
            return &dv_verbs[i];
    fail_msg("there is no verb %s", name);
    return NULL;
}

static void options_belong_to_their_verbs(void **state)
{
    static const struct {
        const char *verb;
        const char *words[8];
        bool is_taken;
    } cases[] = {
        {"token",   {"create", "--driver", "d", "--node", "n", "--ttl", "24h"}, true },
        {"token",   {"create", "--admin", "a", "--write-kubeconfig", "f"},      true },
        {"token",   {"list", "-o", "json", "--no-headers"},                     true },
        {"token",   {"list", "-o", "wide"},                                     false},
        {"token",   {"create", "--ttl", "0"},                                   false},
        {"explain", {"claim", "c", "-f", "a", "-f", "b", "--all"},              true },
        {"explain", {"claim", "c", "--node", "n", "-n", "ml"},                  true },
        {"explain", {"claim", "c", "--driver", "d"},                            false},
        {"cdi",     {"inject", "--bundle", "b", "--cdi-dirs", "a:b"},           true },
        {"cdi",     {"list", "-o", "yaml", "--no-headers"},                     true },
        {"cdi",     {"inject", "--pod", "p", "-c", "c", "--socket", "s"},       true },
        {"cdi",     {"list", "--kubeconfig", "k"},                              false},
        {"get",     {"pods", "--node", "n"},                                    false},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_cli cli;
        bool wants_help = false;

        assert_int_equal(
            parse(verb_named(cases[i].verb), &cli, cases[i].words, &wants_help, arena) == NULL,
            cases[i].is_taken);
    }
}

static void helps_fit_a_terminal(void **state)
{
    (void)state;
    for (size_t i = 0; i < dv_n_verbs; i++) {
        dv_str rest = dv_str_from_c(dv_verbs[i].help);
        dv_str line;

        assert_ptr_equal(verb_named(dv_verbs[i].name), &dv_verbs[i]);
        while (dv_str_split(&rest, '\n', &line))
            assert_true(line.n <= 100);
        assert_true(strlen(dv_verbs[i].summary) <= 64);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_written_in_several_ways),
        cmocka_unit_test(words_and_options_may_be_mixed),
        cmocka_unit_test(help_is_asked_for_anywhere),
        cmocka_unit_test(a_name_means_what_the_verb_says),
        cmocka_unit_test(durations_have_units),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(help_shows_what_a_verb_has_once),
        cmocka_unit_test(options_belong_to_their_verbs),
        cmocka_unit_test(helps_fit_a_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
