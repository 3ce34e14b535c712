/* test_engine_words.c - which engine a command is for, and where options go. */
#include "engines/tests/test_engine.h"

#include <string.h>

/* `want`: the line with | where options go and ^ before the first word behind them. */
static const struct {
    const char *line;
    const char *forced;
    enum dv_engine_kind kind;
    const char *want;
} found[] = {
    {"python3 train.py",                           "",       DV_ENGINE_PLAIN,       "|^python3 train.py"                },
    {"/opt/podman-tools/run podman run",           "",       DV_ENGINE_PLAIN,       "|^/opt/podman-tools/run podman run"},
    {"podman run img",                             "",       DV_ENGINE_PODMAN,      "podman run | ^img"                 },
    {"/usr/bin/podman run img",                    "",       DV_ENGINE_PODMAN,      "/usr/bin/podman run | ^img"        },
    {"podman run --rm -it img bash -d",            "",       DV_ENGINE_PODMAN,      "podman run | --rm -it ^img bash -d"},
    {"podman --root /x --remote run -v /a:/b img", "",       DV_ENGINE_PODMAN,
     "podman --root /x --remote run | -v /a:/b ^img"                                                                    },
    {"podman container run img",                   "",       DV_ENGINE_PODMAN,      "podman container run | ^img"       },
    {"podman create img",                          "",       DV_ENGINE_PODMAN,      "podman create | ^img"              },
    {"podman run --name=x --env A=b -- img",       "",       DV_ENGINE_PODMAN,
     "podman run | --name=x --env A=b -- ^img"                                                                          },
    {"docker --context x run img",                 "",       DV_ENGINE_DOCKER,      "docker --context x run | ^img"     },
    {"docker --context run run img",               "",       DV_ENGINE_DOCKER,      "docker --context run run | ^img"   },
    {"docker --never-heard-of run img",            "",       DV_ENGINE_DOCKER,      "docker --never-heard-of run | ^img"},
    {"docker -D -H unix:///x run img",             "",       DV_ENGINE_DOCKER,      "docker -D -H unix:///x run | ^img" },
    {"docker run -itd -p 80:80 img",               "",       DV_ENGINE_DOCKER,      "docker run | -itd -p 80:80 ^img"   },
    {"docker run -p80:80 img -p",                  "",       DV_ENGINE_DOCKER,      "docker run | -p80:80 ^img -p"      },
    {"sudo podman run img",                        "",       DV_ENGINE_PODMAN,      "sudo podman run | ^img"            },
    {"sudo -u ada -E podman run img",              "",       DV_ENGINE_PODMAN,      "sudo -u ada -E podman run | ^img"  },
    {"sudo -n A=b nice -n 5 docker run img",       "",       DV_ENGINE_DOCKER,
     "sudo -n A=b nice -n 5 docker run | ^img"                                                                          },
    {"env X=y docker run img",                     "",       DV_ENGINE_DOCKER,      "env X=y docker run | ^img"         },
    {"env - X=y docker run img",                   "",       DV_ENGINE_DOCKER,      "env - X=y docker run | ^img"       },
    {"timeout -k 5 10m nerdctl run img",           "",       DV_ENGINE_NERDCTL,
     "timeout -k 5 10m nerdctl run | ^img"                                                                              },
    {"taskset -c 0-3 python3 x.py",                "",       DV_ENGINE_PLAIN,       "taskset -c 0-3 |^python3 x.py"     },
    {"nice",                                       "",       DV_ENGINE_PLAIN,       "|^nice"                            },
    {"sudo -l",                                    "",       DV_ENGINE_PLAIN,       "|^sudo -l"                         },
    {"sudo -s podman run img",                     "",       DV_ENGINE_PLAIN,       "|^sudo -s podman run img"          },
    {"runc --root /x run -b /bundle -d c1",        "",       DV_ENGINE_RUNC,
     "runc --root /x run | -b /bundle -d ^c1"                                                                           },
    {"crun --debug run c1",                        "",       DV_ENGINE_RUNC,        "crun --debug run | ^c1"            },
    {"apptainer exec --nv x.sif python3",          "",       DV_ENGINE_APPTAINER,
     "apptainer exec | --nv ^x.sif python3"                                                                             },
    {"singularity -q run --oci x.sif",             "",       DV_ENGINE_APPTAINER,
     "singularity -q run | --oci ^x.sif"                                                                                },
    {"apptainer instance start x.sif me",          "",       DV_ENGINE_APPTAINER,
     "apptainer instance start | ^x.sif me"                                                                             },
    {"systemd-run --user -u x --wait sleep 5",     "",       DV_ENGINE_SYSTEMD_RUN,
     "systemd-run | --user -u x --wait ^sleep 5"                                                                        },
    {"my-podman run img",                          "podman", DV_ENGINE_PODMAN,      "my-podman run | ^img"              },
    {"podman ps",                                  "plain",  DV_ENGINE_PLAIN,       "|^podman ps"                       },
    {"my-crun run c1",                             "crun",   DV_ENGINE_RUNC,        "my-crun run | ^c1"                 },
};

static const char *mark(const struct dv_engine_command *command, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, 4096);
    for (size_t i = 0; i < command->n_words; i++) {
        dv_buf_add_c(&buf, i > 0 ? " " : "");
        if (i == command->options)
            dv_buf_add_c(&buf, command->kind == DV_ENGINE_PLAIN ? "|" : "| ");
        if (i == command->rest)
            dv_buf_add_c(&buf, "^");
        dv_buf_add(&buf, command->words[i]);
    }
    return dv_str_to_c(dv_buf_str(&buf), arena);
}

static void finds_engines_and_where_options_go(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(found); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_engine_command command;
        struct dv_err err;
        dv_str *words;
        size_t n = split_words(found[i].line, arena, &words);

        assert_ok(dv_engine_parse(words, n, dv_str_from_c(found[i].forced), &command, &err), &err);
        if (command.kind != found[i].kind || strcmp(mark(&command, arena), found[i].want) != 0)
            fail_msg("%s: %s, %s", found[i].line, dv_engine_name(command.kind),
                     mark(&command, arena));
    }
}

static const struct {
    const char *line;
    const char *forced;
    const char *message; /* a part of it */
} refused[] = {
    {"",                                 "",       "there is no command"             },
    {"podman",                           "",       "told nothing to do"              },
    {"podman run",                       "",       "not told what to start"          },
    {"podman run --rm",                  "",       "not told what to start"          },
    {"podman ps",                        "",       "--engine plain"                  },
    {"podman exec c true",               "",       "only podman run does"            },
    {"docker compose up",                "",       "davit lease take"                },
    {"docker -H tcp://far:2375 run img", "",       "another machine (tcp://far:2375)"},
    {"podman --url ssh://far run img",   "",       "another machine"                 },
    {"podman run --restart=always img",  "",       "--restart always"                },
    {"runc run --config x.json c1",      "",       "config.json"                     },
    {"apptainer start x.sif",            "",       "apptainer start starts nothing"  },
    {"docker run img",                   "dokcer", "no engine \"dokcer\""            },
    {"python3 x.py",                     "podman", "podman x.py starts nothing"      },
};

static void refuses_what_starts_nothing_here(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(refused); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_engine_command command;
        struct dv_err err;
        dv_str *words;
        size_t n = split_words(refused[i].line, arena, &words);

        if (dv_engine_parse(words, n, dv_str_from_c(refused[i].forced), &command, &err))
            fail_msg("%s: taken", refused[i].line);
        assert_int_equal(err.code, DV_INVALID_ARGUMENT);
        if (!strstr(err.msg, refused[i].message))
            fail_msg("%s: %s", refused[i].line, err.msg);
    }
}

static struct dv_engine_command parse(const char *line, struct dv_arena *arena)
{
    struct dv_engine_command command;
    struct dv_err err;
    dv_str *words;
    size_t n = split_words(line, arena, &words);

    assert_ok(dv_engine_parse(words, n, DV_STR_NONE, &command, &err), &err);
    return command;
}

static void knows_what_outlives_its_command(void **state)
{
    static const struct {
        const char *line;
        bool is_detached;
    } cases[] = {
        {"podman run img -d",              false},
        {"podman run -d img",              true },
        {"podman run -itd img",            true },
        {"docker run --detach img",        true },
        {"docker run --detach=false img",  false},
        {"docker run --name -d img",       false},
        {"runc run c",                     false},
        {"runc run --detach c",            true },
        {"runc create c",                  true },
        {"apptainer run x.sif",            false},
        {"apptainer instance start x.sif", true },
        {"systemd-run sleep 1",            true },
        {"systemd-run --wait sleep 1",     false},
        {"systemd-run -t sh",              false},
        {"systemd-run --scope sleep 1",    false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

        if (parse(cases[i].line, arena).is_detached != cases[i].is_detached)
            fail_msg("%s", cases[i].line);
    }
}

static void knows_the_files_and_units_that_are_named(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_engine_command command;

    (void)state;
    command = parse("podman run --pidfile /p --cidfile=/c img", arena);
    assert_str(command.pid_file, "/p");
    assert_str(command.cid_file, "/c");
    command = parse("runc run --pid-file /p -b bundle c1", arena);
    assert_str(command.pid_file, "/p");
    assert_str(command.bundle, "bundle");
    assert_int_equal(command.bundle_word, 4);
    assert_int_equal(command.n_bundle_words, 2);
    command = parse("systemd-run --user --unit=train python3", arena);
    assert_str(command.unit, "train");
    assert_true(command.is_user);
    assert_false(parse("env A=b true", arena).loses_env);
    assert_true(parse("env -i A=b true", arena).loses_env);
    assert_true(parse("sudo true", arena).loses_env);
    assert_false(parse("sudo -E true", arena).loses_env);
}

static void reads_versions(void **state)
{
    static const struct {
        const char *text;
        uint32_t major;
        uint32_t minor;
    } cases[] = {
        {"podman version 4.3.1\n",          4,  3},
        {"nerdctl version v2.1.0-beta.1",   2,  1},
        {"apptainer version 1.3.4-1.el9",   1,  3},
        {"singularity-ce version 4.1.1",    4,  1},
        {"28.5.2\n",                        28, 5},
        {"crun version 1.8.1\ncommit: 1.2", 1,  8},
        {"",                                0,  0},
        {"version 99999999999.1",           0,  0},
        {"no version. here",                0,  0},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_engine_version version = dv_engine_version_parse(dv_str_from_c(cases[i].text));

        if (version.major != cases[i].major || version.minor != cases[i].minor)
            fail_msg("%s: %u.%u", cases[i].text, version.major, version.minor);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_engines_and_where_options_go),
        cmocka_unit_test(refuses_what_starts_nothing_here),
        cmocka_unit_test(knows_what_outlives_its_command),
        cmocka_unit_test(knows_the_files_and_units_that_are_named),
        cmocka_unit_test(reads_versions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
