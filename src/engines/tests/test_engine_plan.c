/* test_engine_plan.c - what was granted, as the words of each engine. */
#include "engines/tests/test_engine.h"

#include <string.h>

#include "cdi/cdi.h"
#include "oci/oci.h"

static const struct dv_cdi_annotation env[] = {
    {DV_STR_INIT("A"), DV_STR_INIT("1")},
};
static const struct dv_cdi_annotation annotations[] = {
    {DV_STR_INIT("v.com/x"), DV_STR_INIT("y")},
};
static const struct dv_oci_mount mounts[] = {
    {DV_STR_INIT("/in"), DV_STR_INIT("/host/in"), true},
};
static const struct dv_oci_device devices[] = {
    {DV_STR_INIT("/dev/a"), DV_STR_INIT("/dev/a"), DV_STR_INIT("rw")},
};
static const struct dv_oci_options whole = {
    .env = env,
    .n_env = 1,
    .mounts = mounts,
    .n_mounts = 1,
    .devices = devices,
    .n_devices = 1,
    .annotations = annotations,
    .n_annotations = 1,
};
static const struct dv_oci_options few = {
    .env = env,
    .n_env = 1,
    .devices = devices,
    .n_devices = 1,
};
static const struct dv_oci_options none = {0};

/* An index with the device v.com/c=d, whose edits are these. */
static struct dv_cdi_index *index_of(const char *edits, struct dv_arena *arena)
{
    struct dv_cdi_file file = {
        .path = DV_STR("/etc/cdi/v.yaml"),
        .text = dv_str_printf(arena,
                              "{cdiVersion: 1.1.0, kind: v.com/c, devices: [{name: d, "
                              "containerEdits: %s}]}",
                              edits),
    };
    struct dv_cdi_spec *spec = dv_cdi_spec_new(&file);
    struct dv_cdi_index *index = dv_cdi_index_new(&spec, 1);

    if (spec->n_problems > 0)
        fail_msg("%.*s", DV_FMT(spec->problems[0]));
    dv_cdi_spec_unref(spec);
    return index;
}

struct plan_case {
    const char *line;
    const struct dv_oci_options *options;
    const char *edits; /* of v.com/c=d; NULL: no CDI device was granted */
    struct dv_engine_facts facts;
    struct dv_engine_settings settings;
    const char *want; /* the words; or a part of the message, after '!' */
    const char *note; /* a part of the first one; NULL: none */
};

static void check(const struct plan_case *test)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_cdi_index_freep)
    struct dv_cdi_index *index = index_of(test->edits ? test->edits : "{env: [X=y]}", arena);
    const dv_str name = DV_STR("v.com/c=d");
    struct dv_cdi_edits edits;
    struct dv_engine_grant grant = {test->options, &name, test->edits ? 1 : 0, &edits, true};
    struct dv_engine_command command;
    struct dv_engine_plan plan;
    struct dv_err err;
    dv_str *words;
    size_t n = split_words(test->line, arena, &words);
    const char *got;

    assert_ok(dv_cdi_resolve(index, &name, 1, arena, &edits, &err), &err);
    assert_ok(dv_engine_parse(words, n, DV_STR_NONE, &command, &err), &err);
    if (!dv_engine_plan(&command, &test->facts, &grant, &test->settings, arena, &plan, &err)) {
        assert_int_equal(err.code, DV_FAILED_PRECONDITION);
        if (test->want[0] != '!' || !strstr(err.msg, test->want + 1))
            fail_msg("%s: %s", test->line, err.msg);
        return;
    }
    got = join_words(plan.words, plan.n_words, arena);
    if (strcmp(got, test->want) != 0)
        fail_msg("%s: %s", test->line, got);
    assert_int_equal(plan.n_notes > 0, test->note != NULL);
    if (test->note && dv_str_find(plan.notes[0], dv_str_from_c(test->note)) == plan.notes[0].n)
        fail_msg("%s: note %.*s", test->line, DV_FMT(plan.notes[0]));
}

#define WHOLE                                                                                      \
    "--device /dev/a:/dev/a:rw --mount type=bind,source=/host/in,target=/in,readonly --env A=1 "   \
    "--annotation v.com/x=y"
#define EDITS                                                                                      \
    "{env: [B=2], deviceNodes: [{path: /dev/b, hostPath: /dev/hb}, {path: /dev/c, permissions: "   \
    "rw}], mounts: [{hostPath: /l, containerPath: /l, options: [ro, nosuid, nodev, bind]}], "      \
    "additionalGids: [44]}"
#define EXPANDED                                                                                   \
    "--device /dev/hb:/dev/b:rwm --device /dev/c:/dev/c:rw "                                       \
    "--mount type=bind,source=/l,target=/l,readonly --env B=2 --group-add 44"
#define HOOK "{hooks: [{hookName: createContainer, path: /bin/hook}]}"

static const struct plan_case containers[] = {
    {.line = "podman run --rm img a b",
     .options = &whole,
     .want = "podman run " WHOLE " --rm img a b"                                                                                                                                                               },
    {                                                                                                                                                                                                     .line = "sudo docker run img",                                                 .options = &whole, .want = "sudo docker run " WHOLE " img"                                                                                             },
    {                                                                                                                                                                        .line = "nerdctl -n x run img",
     .options = &few,
     .want = "nerdctl -n x run --device /dev/a:/dev/a:rw --env A=1 img"                                                                                                          },
    {                                                                                                                                                                                                                                                                                                                                                                                                  .line = "docker create img",
     .options = &few,
     .want = "docker create --device /dev/a:/dev/a:rw --env A=1 img"                                                                                                                                                                                          },
 /* by name where the engine knows CDI */
    {                                                                                                                                                                                                                                                                                                                                                                                                   .line = "podman run img",
     .options = &none,
     .edits = EDITS,
     .facts = {.version = {4, 1}},
     .want = "podman run --device v.com/c=d img"},
    {                                                                                                                                                                                                                                                                                                                                                                                                 .line = "podman run img",
     .options = &none,
     .edits = EDITS,
     .facts = {.version = {4, 0}},
     .want = "podman run " EXPANDED " img"},
    {                                                                                                                                                                                                                                                                                                                                                 .line = "docker run img",
     .options = &none,
     .edits = EDITS,
     .facts = {.version = {28, 5}, .has_cdi = true},
     .want = "docker run --device v.com/c=d img"},
    {                                                                                                                                                                                                                                                                                                                                                                    .line = "docker run img",
     .options = &none,
     .edits = EDITS,
     .facts = {.version = {25, 0}},
     .want = "docker run " EXPANDED " img"},
    {                                                                                                                                                                                                                                                                                                                                                                            .line = "nerdctl run img",
     .options = &none,
     .edits = EDITS,
     .facts = {.version = {2, 1}},
     .want = "nerdctl run --device v.com/c=d img"},
    {                                                                                                                                                                                                                                                                                                                                                                                     .line = "nerdctl run img",
     .options = &none,
     .edits = EDITS,
     .facts = {.version = {2, 0}},
     .want = "nerdctl run " EXPANDED " img"},
    {                                                                                                                                                                                                                                                                                                                                                                                                   .line = "podman run img",
     .options = &none,
     .edits = HOOK,
     .facts = {.version = {5, 0}},
     .want = "podman run --device v.com/c=d img"},
 /* what cannot be said */
    {                                                                                                                                                                                                                                                                                                                                                                                                 .line = "podman run img",
     .options = &none,
     .edits = HOOK,
     .facts = {.version = {4, 0}},
     .want = "!podman 4.1 or newer"},
    {.line = "docker run img",
     .options = &none,
     .edits = HOOK,
     .facts = {.version = {25, 0}},
     .want = "!/etc/docker/daemon.json"},
    {                                                                                                                                                                                                                                                                                                                                                                                 .line = "nerdctl run img",                                                   .options = &none,                                                                                               .edits = HOOK,                                                                                                                                                                              .want = "!nerdctl.toml"},
    {                                                                                                                                                                                                                                                                                                                                                                               .line = "docker run img",
     .options = &none,
     .edits = HOOK,
     .want = "!/etc/cdi/v.yaml wants the hook /bin/hook (createContainer)"},
    {.line = "docker run img",
     .options = &none,
     .edits = "{netDevices: [{hostInterfaceName: e0, name: e1}]}",
     .want = "!a network device"},
    {                                                                                                                                                                                                                                                                                                                                            .line = "docker run img",
     .options = &none,
     .edits = "{intelRdt: {closID: x}}",
     .want = "!Intel RDT settings"},
    {                                                                                                                                                                                                                                                                                                                                                                                      .line = "docker run img",
     .options = &none,
     .edits = "{deviceNodes: [{path: '/dev/a:b', hostPath: /dev/a}]}",
     .want = "!/dev/a:b"},
    {                                                                                                                                                                                                                                                                                                                                                                                    .line = "docker run img",
     .options = &none,
     .edits = "{mounts: [{hostPath: '/a,b', containerPath: /c}]}",
     .want = "!/a,b"},
    {                                                                                                                                                                                                                                                                                                                                                                                              .line = "docker run img",
     .options = &none,
     .edits = "{mounts: [{hostPath: x, containerPath: /c, type: tmpfs}]}",
     .want = "!type tmpfs"},
    {                                                                                                                                                                                                                                                                                                                                                                                                  .line = "docker run img",
     .options = &none,
     .edits = "{mounts: [{hostPath: /x, containerPath: /c, options: [bind, idmap]}]}",
     .want = "!the option idmap"},
    {                                                                                                                                                                                                                                                                                                                                                                                            .line = "docker run img",
     .options = &none,
     .edits = "{deviceNodes: [{path: /dev/x, permissions: none}]}",
     .want = "!without permissions"},
    {                                                                                                                                                                                                                                                                                                                                                                                      .line = "podman create img",
     .options = &none,
     .settings = {.pid_file = DV_STR_INIT("/p")},
     .want = "!use podman run"},
 /* what can be done without */
    {                                                                                                                                                                                                                                                                                                                                                                                   .line = "docker run img",
     .options = &none,
     .edits = "{deviceNodes: [{path: /dev/x, fileMode: 438, uid: 0}]}",
     .want = "docker run --device /dev/x:/dev/x:rwm img",
     .note = "owner and mode"},
    {                                                                                                                                                                                                                                                                                                                                                                                        .line = "docker run img",
     .options = &whole,
     .facts = {.version = {23, 0}},
     .want = "docker run --device /dev/a:/dev/a:rw --mount "
             "type=bind,source=/host/in,target=/in,readonly --env A=1 img", .note = "since 24"},
 /* files that tell of the container's process */
    {                                                                                                                                                                                                                                                                                                                                                              .line = "podman run img",
     .options = &none,
     .settings = {.pid_file = DV_STR_INIT("/p")},
     .want = "podman run --pidfile /p img"},
    {                                                                                                                                                                                                                                                                                                                                                                                    .line = "podman run --pidfile /mine img",
     .options = &none,
     .settings = {.pid_file = DV_STR_INIT("/p")},
     .want = "podman run --pidfile /mine img"},
    {                                                                                                                                                                                                                                                                                                                                                                                                 .line = "docker run img",
     .options = &none,
     .settings = {.cid_file = DV_STR_INIT("/c")},
     .want = "docker run --cidfile /c img"},
    {                                                                                                                                                                                                                                                                                                                                                                                                 .line = "podman run img",
     .options = &none,
     .edits = "{mounts: [{hostPath: /x, containerPath: /c, options: [rw, rslave]}]}",
     .want = "podman run --mount type=bind,source=/x,target=/c,bind-propagation=rslave img"},
};

static void containers_get_options(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(containers); i++)
        check(&containers[i]);
}

static const struct plan_case others[] = {
    {.line = "runc run c",
     .options = &whole,
     .settings = {.bundle = DV_STR_INIT("/b2")},
     .want = "runc run --bundle /b2 c"                                                             },
    {.line = "crun run -b /b1 --detach c",
     .options = &whole,
     .settings = {.bundle = DV_STR_INIT("/b2"), .pid_file = DV_STR_INIT("/p")},
     .want = "crun run --bundle /b2 --pid-file /p --detach c"                                      },
    {.line = "runc run --bundle=/b1 c",
     .options = &none,
     .edits = HOOK,
     .settings = {.bundle = DV_STR_INIT("/b2")},
     .want = "runc run --bundle /b2 c"},
    {.line = "apptainer exec x.sif true",
     .options = &whole,
     .want = "apptainer exec --bind /dev/a:/dev/a --bind /host/in:/in:ro --env A=1 x.sif true"                                                                                                                                    },
    {.line = "apptainer exec --oci x.sif true",
     .options = &none,
     .edits = EDITS,
     .facts = {.version = {1, 4}},
     .want = "!the group 44"},
    {.line = "singularity exec --oci x.sif true",
     .options = &none,
     .edits = EDITS,
     .facts = {.version = {4, 1}},
     .want = "singularity exec --device v.com/c=d --oci x.sif true"},
    {.line = "singularity exec x.sif true",
     .options = &none,
     .edits = HOOK,
     .facts = {.version = {4, 1}},
     .want = "!with --oci"},
    {.line = "apptainer instance start x.sif me",
     .options = &none,
     .settings = {.pid_file = DV_STR_INIT("/p")},
     .want = "apptainer instance start --pid-file /p x.sif me"                                                                              },
    {.line = "systemd-run -u x sleep 1",
     .options = &whole,
     .want = "systemd-run --property 'DeviceAllow=/dev/a rw' --property "
             "BindReadOnlyPaths=/host/in:/in --setenv A=1 -u x sleep 1"                                                                                          },
    {.line = "systemd-run sleep 1",
     .options = &few,
     .settings = {.unit = DV_STR_INIT("davit-1")},
     .want = "systemd-run --property 'DeviceAllow=/dev/a rw' --setenv A=1 --unit davit-1 sleep 1"                           },
    {.line = "systemd-run sleep 1",
     .options = &none,
     .edits = EDITS,
     .want = "systemd-run --property 'DeviceAllow=/dev/hb rwm' --property BindPaths=/dev/hb:/dev/b "
             "--property 'DeviceAllow=/dev/c rw' --property BindReadOnlyPaths=/l:/l --property "
             "SupplementaryGroups=44 --setenv B=2 sleep 1"},
    {.line = "systemd-run --scope sleep 1",
     .options = &few,
     .want = "systemd-run --property 'DeviceAllow=/dev/a rw' --setenv A=1 --scope sleep 1"                                                        },
    {.line = "systemd-run --scope sleep 1",                                                                                            .options = &whole,                                                                        .want = "!leave --scope out"},
    {.line = "systemd-run sleep 1",                                                                .options = &none, .edits = HOOK,                         .want = "!a container engine"                                                                               },
};

static void other_engines_get_theirs(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(others); i++)
        check(&others[i]);
}

static const struct plan_case processes[] = {
    {.line = "python3 x.py",                                              .options = &few, .want = "python3 x.py"},
    {                                                                                    .line = "sudo -u ada python3 x.py",
     .options = &few,
     .want = "sudo -u ada env A=1 python3 x.py"                                                                },
    {                                                       .line = "sudo -E python3 x.py",                                     .options = &few,                                                    .want = "sudo -E python3 x.py" },
    { .line = "python3 x.py",                                                                   .options = &whole,                                                             .want = "!mounted on /in"                                                                                           },
    {                                                                                                                                                                 .line = "python3 x.py",
     .options = &whole,
     .settings = {.is_isolated = true},
     .want = "python3 x.py"},
    {          .line = "python3 x.py",                                                                   .options = &none,                                                             .edits = EDITS,                                                                                             .want = "!seen as /dev/b"},
    {                                                                                                                                                                                    .line = "python3 x.py",
     .options = &none,
     .edits = EDITS,
     .settings = {.is_isolated = true},
     .want = "python3 x.py"},
    {                                                                                                                                                                                  .line = "python3 x.py",
     .options = &none,
     .edits = HOOK,
     .want = "python3 x.py",
     .note = "1 hook of /etc/cdi/v.yaml (createContainer) is not run"},
    {                                                                                                         .line = "python3 x.py",
     .options = &none,
     .edits = "{mounts: [{hostPath: x, containerPath: x, type: tmpfs}]}",
     .want = "!type tmpfs"},
};

static void processes_are_told_by_their_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(processes); i++)
        check(&processes[i]);
}

static void a_process_gets_what_its_container_would(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_cdi_index_freep)
    struct dv_cdi_index *index = index_of(
        "{env: [A=2, NVIDIA_VISIBLE_DEVICES=GPU-1], deviceNodes: [{path: /dev/a, hostPath: "
        "/dev/x}], additionalGids: [44, 0, 44]}",
        arena);
    const dv_str name = DV_STR("v.com/c=d");
    const dv_str word = DV_STR("true");
    const struct dv_engine_facts facts = {0};
    const struct dv_engine_settings settings = {.is_isolated = true};
    struct dv_cdi_edits edits;
    struct dv_engine_grant grant = {&whole, &name, 1, &edits, true};
    struct dv_engine_command command;
    struct dv_engine_plan plan;
    struct dv_err err;

    (void)state;
    assert_ok(dv_cdi_resolve(index, &name, 1, arena, &edits, &err), &err);
    assert_ok(dv_engine_parse(&word, 1, DV_STR_NONE, &command, &err), &err);
    assert_ok(dv_engine_plan(&command, &facts, &grant, &settings, arena, &plan, &err), &err);
    assert_str(dv_str_from_c(join_words(plan.env, plan.n_env, arena)),
               "A=2 NVIDIA_VISIBLE_DEVICES=GPU-1 CUDA_VISIBLE_DEVICES=GPU-1");
    assert_int_equal(plan.n_nodes, 1); /* the same path: the CDI device's counts */
    assert_str(plan.nodes[0].host_path, "/dev/x");
    assert_int_equal(plan.n_mounts, 1);
    assert_true(plan.mounts[0].is_read_only);
    assert_int_equal(plan.n_gids, 1);
    assert_int_equal(plan.gids[0], 44);
}

static void words_are_printed_for_a_shell(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const dv_str words[] = {DV_STR("a"), DV_STR(""), DV_STR("b c"), DV_STR("it's"), DV_STR("$x")};

    (void)state;
    assert_str(dv_str_from_c(join_words(words, DV_COUNT(words), arena)),
               "a '' 'b c' 'it'\\''s' '$x'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(containers_get_options),
        cmocka_unit_test(other_engines_get_theirs),
        cmocka_unit_test(processes_are_told_by_their_environment),
        cmocka_unit_test(a_process_gets_what_its_container_would),
        cmocka_unit_test(words_are_printed_for_a_shell),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
