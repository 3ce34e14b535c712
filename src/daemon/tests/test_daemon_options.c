#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "daemon/daemon_options.h"
#include "pod/runner.h"
#include "record/message.h"

#define WORDS_MAX 8

/* Splits "--a b" at blanks behind a program name. */
static int split(const char *line, char *copy, size_t size, char *argv[WORDS_MAX])
{
    int argc = 0;
    char *rest = NULL;

    (void)snprintf(copy, size, "davitd %s", line);
    for (char *word = strtok_r(copy, " ", &rest); word && argc < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return argc;
}

static bool parse(const char *line, struct dv_arena *arena, struct dv_options *options,
                  struct dv_err *err)
{
    char *copy = dv_arena_alloc(arena, 500, 1);
    char *argv[WORDS_MAX];

    return dv_options_parse(split(line, copy, 500, argv), argv, arena, options, err);
}

static void defaults_are_those_of_a_kubelet(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_options options;
    struct dv_err err;

    (void)state;
    assert_ok(parse("", arena, &options, &err), &err);
    assert_str(options.kubelet_dir, "/var/lib/kubelet");
    assert_str(options.listen, "127.0.0.1:6443");
    assert_true(options.node_name.n > 0);
    assert_int_equal(options.roles, DV_ROLE_API | DV_ROLE_CONTROL | DV_ROLE_SCHED | DV_ROLE_NODE);
    assert_int_equal(options.log_level, DV_LOG_INFO);
}

static void options_take_their_value_both_ways(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_options options;
    struct dv_err err;

    (void)state;
    assert_ok(parse("--kubelet-dir /k --state-dir=/s -v debug --insecure-http --roles=api,node",
                    arena, &options, &err),
              &err);
    assert_str(options.kubelet_dir, "/k");
    assert_str(options.state_dir, "/s");
    assert_int_equal(options.log_level, DV_LOG_DEBUG);
    assert_true(options.insecure_http);
    assert_int_equal(options.roles, DV_ROLE_API | DV_ROLE_NODE);
    assert_ok(parse("--insecure-http --listen [::1]:0", arena, &options, &err), &err);
    assert_ok(parse("--insecure-http --listen :0", arena, &options, &err), &err);
    assert_ok(
        parse("--insecure-http --listen none --node-listen 0.0.0.0:10250", arena, &options, &err),
        &err);
    assert_ok(parse("--kubeconfig /f", arena, &options, &err), &err);
    assert_int_equal(options.roles, DV_ROLE_NODE);
    assert_ok(parse("--kubeconfig /f --roles control,sched", arena, &options, &err), &err);
    assert_int_equal(options.roles, DV_ROLE_CONTROL | DV_ROLE_SCHED);
    assert_str(options.scheduler_name, "davit");
    assert_str(options.cri, "auto");
    assert_ok(parse("--cri unix:///run/c.sock", arena, &options, &err), &err);
    assert_str(options.cri, "unix:///run/c.sock");
    assert_str(options.cgroup_root, "auto");
    assert_int_equal(options.image_gc.high_percent, 85);
    assert_int_equal(options.image_gc.low_percent, 80);
    assert_int_equal(options.image_gc.min_age_ns, UINT64_C(120000000000));
    assert_ok(parse("--record /r --record-file-size 2 --record-files 3", arena, &options, &err),
              &err);
    assert_str(options.record, "/r");
    assert_int_equal(options.record_file_bytes, 2u * 1024u * 1024u);
    assert_int_equal(options.record_files, 3);
    assert_ok(parse("--record-blank env,config", arena, &options, &err), &err);
    assert_int_equal(options.record_blanks, DV_BLANK_ENV | DV_BLANK_CONFIG);
    assert_ok(parse("--image-gc 90:70", arena, &options, &err), &err);
    assert_int_equal(options.image_gc.high_percent, 90);
    assert_int_equal(options.image_gc.min_age_ns, UINT64_C(120000000000));
    assert_ok(parse("--image-gc 1:0:0", arena, &options, &err), &err);
    assert_int_equal(options.image_gc.min_age_ns, 0);
    assert_ok(parse("--image-gc off", arena, &options, &err), &err);
    assert_int_equal(options.image_gc.high_percent, 0);
    assert_ok(parse("--cgroup-root /davit/pods.1", arena, &options, &err), &err);
    assert_str(options.cgroup_root, "/davit/pods.1");
    assert_ok(parse("-h", arena, &options, &err), &err);
    assert_true(options.wants_help);
}

static void mistakes_are_named(void **state)
{
    static const struct {
        const char *line;
        const char *text;
    } cases[] = {
        {"--kubeletdir /k",                    "no option \"--kubeletdir\""                       },
        {"-kubelet-dir /k",                    "no option \"-kubelet-dir\""                       },
        {"word",                               "unexpected word \"word\""                         },
        {"--kubelet-dir",                      "--kubelet-dir needs a value (DIR)"                },
        {"--kubelet-dir k",                    "\"k\" is not an absolute path"                    },
        {"--node-name=",                       "a node cannot be called \"\""                     },
        {"--node-name Bad_Name",               "a node cannot be called \"Bad_Name\""             },
        {"--listen nonsense",                  "\"nonsense\" is neither none nor ADDRESS:PORT"    },
        {"--listen 127.0.0.1:65536",           "is neither none nor ADDRESS:PORT"                 },
        {"--listen example.com:80",            "is neither none nor ADDRESS:PORT"                 },
        {"--node-listen 10250",                "is neither none|auto nor ADDRESS:PORT"            },
        {"--node-healthz x:1",                 "is neither none|auto nor ADDRESS:PORT"            },
        {"--insecure-http --listen 0.0.0.0:0", "for loopback addresses, and --listen is 0.0.0.0:0"},
        {"--insecure-http --listen [::]:0",    "for loopback addresses"                           },
        {"--state-dir /a --state-dir /b",      "--state-dir is given twice"                       },
        {"--topology-policy strict",           "unknown policy: \"strict\""                       },
        {"--roles api,nodes",                  "\"nodes\" is no role"                             },
        {"--roles=",                           "\"\" is no role"                                  },
        {"--roles node",                       "needs --kubeconfig"                               },
        {"--kubeconfig /f --roles api",        "goes without the role api"                        },
        {"--insecure-http=maybe",              "true or false, not \"maybe\""                     },
        {"--log-format xml",                   "text or json, not \"xml\""                        },
        {"--cri containerd",                   "\"containerd\" is not auto, none or unix:///PATH" },
        {"--cri unix://run/c.sock",            "is not auto, none or unix:///PATH"                },
        {"--cgroup-root pods",                 "is not auto, none or the path of a cgroup"        },
        {"--cgroup-root /a/../b",              "is not auto, none or the path of a cgroup"        },
        {"--cgroup-root /a//b",                "is not auto, none or the path of a cgroup"        },
        {"--record-file-size 0",               "is not a number from 1 to 1024"                   },
        {"--record-files 1001",                "is not a number from 1 to 1000"                   },
        {"--record-blank env,hosts",           "\"hosts\" cannot be blanked"                      },
        {"--record here",                      "is not an absolute path"                          },
        {"--image-gc 85",                      "is not off or HIGH:LOW"                           },
        {"--image-gc 80:85",                   "is not off or HIGH:LOW"                           },
        {"--image-gc 101:80",                  "is not off or HIGH:LOW"                           },
        {"--image-gc 85:80:-1",                "is not off or HIGH:LOW"                           },
        {"--image-gc 85:80:1:1",               "is not off or HIGH:LOW"                           },
        {"--offer serial",                     "is not NAME=DEVICES"                              },
        {"--offer a=/dev/*",                   "is too wide"                                      },
        {"--offer-file here",                  "is not an absolute path"                          },
        {"-v loud",                            "not \"loud\""                                     },
        {"--config /nonexistent.yaml",         "/nonexistent.yaml"                                },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_options options = {.roles = 77};
        struct dv_err err;

        if (parse(cases[i].line, arena, &options, &err))
            fail_msg("accepted: %s", cases[i].line);
        if (!strstr(err.msg, cases[i].text))
            fail_msg("%s: \"%s\", expected \"%s\"", cases[i].line, err.msg, cases[i].text);
        assert_int_equal(options.roles, 77); /* written on success only */
    }
}

/* Parses with a configuration file of this text. */
static bool parse_with_file(const char *text, const char *line, struct dv_arena *arena,
                            struct dv_options *options, struct dv_err *err)
{
    char path[] = "/tmp/dv-options-XXXXXX";
    int fd = mkstemp(path);
    bool ok;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
    ok = parse(dv_str_to_c(dv_str_printf(arena, "--config %s %s", path, line), arena), arena,
               options, err);
    (void)unlink(path);
    return ok;
}

static void the_command_line_wins_over_the_file(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_options options;
    struct dv_err err;

    (void)state;
    assert_ok(parse_with_file("state-dir: /from-file\nnode-name: n1\nroles: api,node\n"
                              "insecure-http: true\nv: debug\n",
                              "--node-name n2", arena, &options, &err),
              &err);
    assert_str(options.state_dir, "/from-file");
    assert_str(options.node_name, "n2");
    assert_true(options.insecure_http);
    assert_int_equal(options.log_level, DV_LOG_DEBUG);
    assert_int_equal(options.roles, DV_ROLE_API | DV_ROLE_NODE);
}

static void offers_may_be_several(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_options options;
    struct dv_err err;

    (void)state;
    assert_ok(parse("--offer a=/dev/tty1 --offer=b=/dev/tty2", arena, &options, &err), &err);
    assert_int_equal(options.n_offers, 2);
    assert_str(options.offers[1], "b=/dev/tty2");
    assert_ok(parse_with_file("offer: [a=/dev/kvm, 'b=/dev/fuse,shared=2']\ndev-dir: /d\n", "",
                              arena, &options, &err),
              &err);
    assert_int_equal(options.n_offers, 2);
    assert_str(options.offers[1], "b=/dev/fuse,shared=2");
    assert_str(options.dev_dir, "/d");
}

static void a_file_of_comments_changes_nothing(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_options options;
    struct dv_err err;

    (void)state;
    assert_ok(parse_with_file("# v: debug\n", "--node-name n2", arena, &options, &err), &err);
    assert_int_equal(options.log_level, DV_LOG_INFO);
    assert_ok(parse_with_file("ledger: off\n", "--node-name n2", arena, &options, &err), &err);
    assert_str(options.ledger, "off"); /* which YAML takes for false */
}

static void mistakes_in_the_file_name_their_line(void **state)
{
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
        {"state-dir: /a\nstate_dir: /b\n", "line 2, column"                         },
        {"state-dir: [1]\n",               "expected a string"                      },
        {"- a\n",                          "expected an object"                     },
        {"state-dir: /a\nstate-dir: /b\n", "state-dir"                              },
        {"config: /x\n",                   "no such option"                         },
        {"state-dir: relative\n",          "\"relative\" is not an absolute path"   },
        {"v: info\nlisten: here\n",        "line 2: --listen: \"here\" is neither"  },
        {"# first\nbogus:\n  - 1\n",       "line 2, column 1: bogus: no such option"},
        {"state-dir: \"/a\\0b\"\n",        "has a zero byte"                        },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_options options;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;

        if (parse_with_file(cases[i].text, "", arena, &options, &err))
            fail_msg("accepted: %s", cases[i].text);
        if (!strstr(err.msg, cases[i].wanted) || !strstr(err.msg, "/tmp/dv-options-"))
            fail_msg("\"%s\", expected \"%s\"", err.msg, cases[i].wanted);
    }
}

static void help_names_every_option(void **state)
{
    struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, 1u << 16);
    dv_options_print_help(&buf);
    assert_non_null(strstr(dv_buf_c(&buf), "--kubelet-dir DIR"));
    assert_non_null(strstr(dv_buf_c(&buf), "-v LEVEL"));
    assert_non_null(strstr(dv_buf_c(&buf), "--help"));
    dv_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_a_kubelet),
        cmocka_unit_test(options_take_their_value_both_ways),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(the_command_line_wins_over_the_file),
        cmocka_unit_test(offers_may_be_several),
        cmocka_unit_test(a_file_of_comments_changes_nothing),
        cmocka_unit_test(mistakes_in_the_file_name_their_line),
        cmocka_unit_test(help_names_every_option),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
