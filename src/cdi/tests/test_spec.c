#include "cdi/shape.h"
#include "cdi/tests/test_cdi.h"

#include <string.h>

static const char whole[] =
    "cdiVersion: 1.1.0\n"
    "kind: vendor.com/gpu.mig\n"
    "annotations: {example.com/note: all of it}\n"
    "devices:\n"
    "- name: gpu0\n"
    "  annotations: {slot: '3'}\n"
    "  containerEdits:\n"
    "    env: [GPU=0, EMPTY=]\n"
    "    deviceNodes:\n"
    "    - {path: /dev/gpu0, hostPath: /dev/vendor/gpu0, type: c, major: 195, minor: 1,\n"
    "       fileMode: 0660, permissions: rw, uid: 0, gid: 44}\n"
    "    - {path: /dev/pipe, type: p, permissions: none}\n"
    "    netDevices: [{hostInterfaceName: ens1, name: eth1}]\n"
    "    hooks:\n"
    "    - {hookName: createContainer, path: /bin/hook, args: [hook, -x], env: [A=b], timeout: 3}\n"
    "    mounts:\n"
    "    - {hostPath: /lib/v, containerPath: /lib/v, options: [ro, bind]}\n"
    "    - {hostPath: tmpfs, containerPath: /tmp/v, type: tmpfs}\n"
    "    intelRdt: {closID: gold, l3CacheSchema: 'L3:0=f', memBwSchema: 'MB:0=50',\n"
    "               schemata: ['L2:0=1'], enableMonitoring: true}\n"
    "    additionalGids: [44, 0, 107]\n"
    "containerEdits:\n"
    "  env: [VENDOR=1]\n";

static void every_field_is_read(void **state)
{
    DV_CLEANUP(dv_cdi_spec_unrefp) struct dv_cdi_spec *spec = spec_of("/etc/cdi/a.yaml", whole);
    const struct dv_cdi_container_edits *edits;
    struct dv_err err;

    (void)state;
    assert_ok(check_spec(spec, &err), &err);
    assert_str(spec->path, "/etc/cdi/a.yaml");
    assert_str(spec->version, "1.1.0");
    assert_str(spec->vendor, "vendor.com");
    assert_str(spec->class, "gpu.mig");
    assert_str(spec->annotations[0].value, "all of it");
    assert_int_equal(spec->n_devices, 1);
    assert_str(spec->devices[0].full_name, "vendor.com/gpu.mig=gpu0");
    assert_str(spec->devices[0].annotations[0].key, "slot");
    assert_str(spec->edits.env[0], "VENDOR=1");
    edits = &spec->devices[0].edits;
    assert_int_equal(edits->n_env, 2);
    assert_str(edits->env[1], "EMPTY=");
    assert_int_equal(edits->n_nodes, 2);
    assert_str(edits->nodes[0].host_path, "/dev/vendor/gpu0");
    assert_int_equal(edits->nodes[0].type, DV_CDI_NODE_CHAR);
    assert_int_equal(edits->nodes[0].major, 195);
    assert_int_equal(edits->nodes[0].file_mode.value, 0660);
    assert_true(edits->nodes[0].uid.is_set && edits->nodes[0].uid.value == 0);
    assert_int_equal(edits->nodes[1].type, DV_CDI_NODE_FIFO);
    assert_false(edits->nodes[1].gid.is_set);
    assert_str(edits->net_devices[0].host_name, "ens1");
    assert_int_equal(edits->hooks[0].name, DV_CDI_HOOK_CREATE_CONTAINER);
    assert_int_equal(edits->hooks[0].timeout_s.value, 3);
    assert_str(edits->mounts[0].options[1], "bind");
    assert_str(edits->mounts[1].type, "tmpfs");
    assert_str(edits->rdt->clos_id, "gold");
    assert_true(edits->rdt->has_monitoring);
    assert_int_equal(edits->gids[2], 107);
}

static void written_and_read_again_it_is_the_same(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_cdi_spec_unrefp) struct dv_cdi_spec *spec = spec_of("a.yaml", whole);
    dv_str text = print_json(dv_cdi_write(&dv_cdi_spec_shape, spec, arena), arena);
    DV_CLEANUP(dv_cdi_spec_unrefp)
    struct dv_cdi_spec *again = spec_of("a.json", dv_str_to_c(text, arena));
    struct dv_err err;

    (void)state;
    assert_ok(check_spec(again, &err), &err);
    assert_str(print_json(dv_cdi_write(&dv_cdi_spec_shape, again, arena), arena),
               dv_str_to_c(text, arena));
    assert_true(dv_str_find(text, DV_STR("\"fileMode\":432")) < text.n);
    assert_true(dv_str_find(text, DV_STR("\"uid\":0")) < text.n);
    assert_true(dv_str_find(text, DV_STR("\"additionalGids\":[44,0,107]")) < text.n);
}

/* What each version brought, and that the one before it has it not. */
static void a_feature_needs_its_version(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct {
        const char *since;
        const char *before;
        const char *edits;
        const char *field;
    } cases[] = {
        {"0.4.0", "0.3.0", "{mounts: [{hostPath: a, containerPath: b, type: c}]}", "mounts[0]"},
        {"0.5.0", "0.4.0", "{deviceNodes: [{path: /a, hostPath: /b}]}", "deviceNodes[0].hostPath"},
        {"0.7.0", "0.6.0", "{additionalGids: [1]}", "additionalGids"},
        {"0.7.0", "0.6.0", "{intelRdt: {}}", "intelRdt"},
        {"0.7.0", "0.6.0", "{intelRdt: {enableCMT: true}}", "intelRdt"},
        {"1.1.0", "1.0.0", "{intelRdt: {schemata: []}}", "intelRdt.schemata"},
        {"1.1.0", "0.8.0", "{intelRdt: {enableMonitoring: true}}", "intelRdt.enableMonitoring"},
        {"1.1.0", "1.0.0", "{netDevices: [{hostInterfaceName: a, name: b}]}", "netDevices"},
    };
    /* clang-format on */

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        dv_str good = dv_str_printf(arena,
                                    "{cdiVersion: %s, kind: v.com/c, devices: [{name: d, "
                                    "containerEdits: %s}]}",
                                    cases[i].since, cases[i].edits);
        dv_str bad = dv_str_printf(arena,
                                   "{cdiVersion: v%s, kind: v.com/c, devices: [{name: d, "
                                   "containerEdits: %s}]}",
                                   cases[i].before, cases[i].edits);
        DV_CLEANUP(dv_cdi_spec_unrefp) struct dv_cdi_spec *yes = spec_of("a.yaml", good.p);
        DV_CLEANUP(dv_cdi_spec_unrefp) struct dv_cdi_spec *no = spec_of("a.yaml", bad.p);
        struct dv_err err;

        assert_ok(check_spec(yes, &err), &err);
        assert_false(check_spec(no, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].field);
        assert_err(&err, DV_INVALID_ARGUMENT,
                   dv_str_printf(arena, "needs cdiVersion %s; this spec has %s", cases[i].since,
                                 cases[i].before)
                       .p);
    }
}

static void specs_of_all_versions_are_taken(void **state)
{
    static const char *const texts[] = {
        ONE("0.3.0", "{env: [A=b]}"),
        ONE("v0.3.0", "{env: [A=b]}"),
        ONE("0.4.0", "{env: [A=b]}"),
        ONE("0.5.0", "{env: [A=b]}"),
        ONE("0.6.0", "{env: [A=b]}"),
        ONE("0.7.0", "{intelRdt: {enableCMT: true, enableMBM: true}}"),
        ONE("0.8.0", "{env: [A=b]}"),
        ONE("1.0.0", "{env: [A=b]}"),
        ONE("1.1.0", "{intelRdt: {enableCMT: false}}"),
        /* newer fields that say nothing */
        ONE("0.3.0", "{env: [A=b], mounts: [{hostPath: a, containerPath: b, type: ''}]}"),
        ONE("0.3.0", "{env: [A=b], additionalGids: [], netDevices: [], intelRdt: null}"),
        "{cdiVersion: 0.3.0, kind: v.com/c, annotations: {}, devices: [{name: d, annotations: "
        "null, containerEdits: {env: [A=b]}}]}",
        /* keys in any case, text without quotes */
        "{CDIVersion: 0.7.0, Kind: v.com/c, devices: [{name: 0, containerEdits: {additionalGIDs: "
        "[1]}}]}",
        ONE("0.5.0", "{hooks: [{hookName: prestart, path: /x, args: [1, true, x]}]}"),
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        DV_CLEANUP(dv_cdi_spec_unrefp) struct dv_cdi_spec *spec = spec_of("a.yaml", texts[i]);
        struct dv_err err;

        assert_ok(check_spec(spec, &err), &err);
    }
}

static void refuses_what_breaks_a_rule(void **state)
{
    /* clang-format 14 cannot lay out rows of long texts. */
    /* clang-format off */
    static const struct {
        const char *text;
        const char *want;
    } cases[] = {
        {"", "the file is empty"},
        {"[]", "expected an object, got an array"},
        {"{cdiVersion: 0.3.0", "line 1"},
        {"{kind: v.com/c, devices: [{name: d, containerEdits: {env: [A=b]}}]}",
         "\"cdiVersion\" is missing"},
        {ONE("0.2.0", "{env: [A=b]}"), "cdiVersion: \"0.2.0\" is not a version from 0.3.0"},
        {ONE("1.2.0", "{env: [A=b]}"), "\"1.2.0\" is not a version"},
        {ONE("0.3", "{env: [A=b]}"), "cdiVersion: \"0.3\" is not a version"},
        {ONE("no", "{env: [A=b]}"), "cdiVersion: \"\" is not a version"},
        {ONE("[]", "{env: [A=b]}"), "cdiVersion: \"\" is not a version"},
        {"{cdiVersion: 0.3.0, devices: [{name: d, containerEdits: {env: [A=b]}}]}",
         "\"kind\" is missing"},
        {"{cdiVersion: 0.3.0, kind: c, devices: [{name: d, containerEdits: {env: [A=b]}}]}",
         "kind: \"c\" is not VENDOR/CLASS"},
        {"{cdiVersion: 0.5.0, kind: v.com/c.d, devices: [{name: d, containerEdits: {env: [A=b]}}]}",
         "the class \"c.d\" has a dot, which needs cdiVersion 0.6.0"},
        {"{cdiVersion: 0.3.0, kind: v.com/c, devices: []}", "devices: there are no devices"},
        {"{cdiVersion: 0.3.0, kind: v.com/c}", "there are no devices"},
        {"{cdiVersion: 0.3.0, kind: v.com/c, devices: {}}", "devices: expected an array"},
        {"{cdiVersion: 0.3.0, kind: v.com/c, devices: [null]}", "devices[0]: expected an object"},
        {"{cdiVersion: 0.3.0, kind: v.com/c, devices: [{containerEdits: {env: [A=b]}}]}",
         "devices[0]: \"name\" is missing"},
        {"{cdiVersion: 0.3.0, kind: v.com/c, devices: [{name: '', containerEdits: {env: [A=b]}}]}",
         "devices[0].name: is empty"},
        {"{cdiVersion: 0.4.0, kind: v.com/c, devices: [{name: 0, containerEdits: {env: [A=b]}}]}",
         "\"0\" begins with a digit, which needs cdiVersion 0.5.0"},
        {"{cdiVersion: 0.5.0, kind: v.com/c, devices: [{name: a b, containerEdits: {env: [A=b]}}]}",
         "devices[0].name: the device name \"a b\" has a character outside"},
        {"{cdiVersion: 0.5.0, kind: v.com/c, devices: [{name: a, containerEdits: {env: [A=b]}},"
         "{name: a, containerEdits: {env: [A=b]}}]}",
         "devices[1].name: there is another device \"a\""},
        {"{cdiVersion: 0.5.0, kind: v.com/c, devices: [{name: a}]}",
         "devices[0]: device \"a\" changes nothing"},
        {ONE("0.5.0", "{}"), "device \"d\" changes nothing"},
        {"{cdiVersion: 0.5.0, kind: v.com/c, annotations: {a: b}, devices: [{name: a, "
         "containerEdits: {env: [A=b]}}]}",
         "annotations: needs cdiVersion 0.6.0"},
        {"{cdiVersion: 0.6.0, kind: v.com/c, annotations: {a/b/c: b}, devices: [{name: a, "
         "containerEdits: {env: [A=b]}}]}",
         "the annotation name \"b/c\" has a character outside"},
        {"{cdiVersion: 0.6.0, kind: v.com/c, annotations: {a_b/c: b}, devices: [{name: a, "
         "containerEdits: {env: [A=b]}}]}",
         "the annotation prefix \"a_b\" has a character outside"},
        {"{cdiVersion: 0.6.0, kind: v.com/c, annotations: {a: [b]}, devices: [{name: a, "
         "containerEdits: {env: [A=b]}}]}",
         "annotations.a: expected a string, got an array"},
        {"{cdiVersion: 0.6.0, kind: v.com/c, devices: [{name: a, annotations: {-a: b}, "
         "containerEdits: {env: [A=b]}}]}",
         "devices[0].annotations.-a: the annotation name \"-a\" does not begin"},
        {"{cdiVersion: 0.5.0, kind: v.com/c, colour: red, devices: [{name: a, containerEdits: {env:"
         " [A=b]}}]}",
         "colour: is not a field that CDI knows"},
        {"{cdiVersion: 0.5.0, kind: v.com/c, Kind: v.com/c, devices: [{name: a, containerEdits: "
         "{env: [A=b]}}]}",
         "Kind: is here twice, in different case"},
        {"{cdiVersion: 0.5.0, kind: v.com/c, kind: v.com/c, devices: [{name: a, containerEdits: "
         "{env: [A=b]}}]}",
         "kind"},
        {ONE("0.5.0", "{env: [A]}"), "env[0]: \"A\" is not NAME=value"},
        {ONE("0.5.0", "{env: [A=b, =b]}"), "env[1]: \"=b\" is not NAME=value"},
        {ONE("0.5.0", "{env: A=b}"), "env: expected an array"},
        {ONE("0.5.0", "{env: [null]}"), "env[0]: expected a string, got null"},
        {ONE("0.5.0", "{env: [\"A=\\0\"]}"), "has a NUL character"},
        {ONE("0.5.0", "{deviceNodes: [{}]}"), "deviceNodes[0]: \"path\" is missing"},
        {ONE("0.5.0", "{deviceNodes: [{path: ''}]}"), "deviceNodes[0].path: is empty"},
        {ONE("0.5.0", "{deviceNodes: [null]}"), "deviceNodes[0]: expected an object"},
        {ONE("0.5.0", "{deviceNodes: [{path: /a, type: x}]}"),
         "deviceNodes[0].type: \"x\" is not one that CDI knows"},
        {ONE("0.5.0", "{deviceNodes: [{path: /a, permissions: rwx}]}"),
         "\"rwx\" is not made of r, w and m"},
        {ONE("0.5.0", "{deviceNodes: [{path: /a, major: -1}]}"), "deviceNodes[0].major"},
        {ONE("0.5.0", "{deviceNodes: [{path: /a, minor: 4294967296}]}"),
         "4294967296 is more than 32 bits hold"},
        {ONE("0.5.0", "{deviceNodes: [{path: /a, uid: -1}]}"), "deviceNodes[0].uid"},
        {ONE("0.5.0", "{deviceNodes: [{path: /a, gid: 1.5}]}"), "deviceNodes[0].gid"},
        {ONE("0.5.0", "{deviceNodes: [{path: /a, fileMode: rw}]}"), "deviceNodes[0].fileMode"},
        {ONE("0.5.0", "{mounts: [{hostPath: /a}]}"), "mounts[0]: \"containerPath\" is missing"},
        {ONE("0.5.0", "{mounts: [{containerPath: /a}]}"), "mounts[0]: \"hostPath\" is missing"},
        {ONE("0.5.0", "{mounts: [{hostPath: /a, containerPath: /a, options: ro}]}"),
         "mounts[0].options: expected an array"},
        {ONE("0.5.0", "{hooks: [{path: /a}]}"), "hooks[0]: \"hookName\" is missing"},
        {ONE("0.5.0", "{hooks: [{hookName: prestop, path: /a}]}"),
         "hooks[0].hookName: \"prestop\" is not one that CDI knows"},
        {ONE("0.5.0", "{hooks: [{hookName: prestart}]}"), "hooks[0]: \"path\" is missing"},
        {ONE("0.5.0", "{hooks: [{hookName: prestart, path: a}]}"),
         "hooks[0].path: \"a\" does not begin with a slash"},
        {ONE("0.5.0", "{hooks: [{hookName: prestart, path: /a, env: [B]}]}"),
         "hooks[0].env[0]: \"B\" is not NAME=value"},
        {ONE("0.5.0", "{hooks: [{hookName: prestart, path: /a, timeout: 0}]}"),
         "hooks[0].timeout: must be more than 0 seconds"},
        {ONE("0.5.0", "{hooks: [{hookName: prestart, path: /a, timeout: -3}]}"),
         "hooks[0].timeout"},
        {ONE("0.7.0", "{intelRdt: {closID: ..}}"), "\"..\" cannot be the name of a directory"},
        {ONE("0.7.0", "{intelRdt: {closID: a/b}}"), "\"a/b\" cannot be the name"},
        {ONE("0.7.0", "{intelRdt: []}"), "intelRdt: expected an object"},
        {ONE("1.1.0", "{intelRdt: {enableMBM: true}}"),
         "enableMBM: is not in cdiVersion 1.1.0 any more"},
        {ONE("0.7.0", "{additionalGids: [-1]}"), "additionalGids[0]"},
        {ONE("1.1.0", "{netDevices: [{name: a}]}"), "\"hostInterfaceName\" is missing"},
        {ONE("1.1.0", "{netDevices: [{hostInterfaceName: a, name: ''}]}"), "name: is empty"},
        {ONE("1.1.0",
         "{netDevices: [{hostInterfaceName: a, name: b}, {hostInterfaceName: a, name: " "c}]}"),
         "interface \"a\" is here twice"},
        {ONE("1.1.0",
         "{netDevices: [{hostInterfaceName: a, name: b}, {hostInterfaceName: c, name: " "b}]}"),
         "two interfaces become \"b\""},
    };
    /* clang-format on */

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_cdi_spec_unrefp) struct dv_cdi_spec *spec = spec_of("x.yaml", cases[i].text);
        struct dv_err err;

        if (check_spec(spec, &err))
            fail_msg("taken: %s", cases[i].text);
        assert_err(&err, DV_INVALID_ARGUMENT, "CDI spec x.yaml: ");
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].want);
    }
}

static void the_root_class_of_rdt_is_a_class(void **state)
{
    DV_CLEANUP(dv_cdi_spec_unrefp)
    struct dv_cdi_spec *spec = spec_of("a.yaml", ONE("0.7.0", "{intelRdt: {closID: /}}"));
    struct dv_err err;

    (void)state;
    assert_ok(check_spec(spec, &err), &err);
}

static void one_look_tells_all_that_is_wrong(void **state)
{
    DV_CLEANUP(dv_cdi_spec_unrefp)
    struct dv_cdi_spec *spec = spec_of("a.yaml", "cdiVersion: 9.9.9\n"
                                                 "kind: nothing\n"
                                                 "devices:\n"
                                                 "- name: a\n"
                                                 "  containerEdits:\n"
                                                 "    env: [X]\n"
                                                 "    hooks: [{hookName: never, path: /a}]\n"
                                                 "- name: -b\n");
    static const char *const want[] = {
        "line 1, column 13: cdiVersion: \"9.9.9\" is not a version from 0.3.0 to 1.1.0",
        "line 6, column 11: devices[0].containerEdits.env[0]: \"X\" is not NAME=value",
        "line 7, column 24: devices[0].containerEdits.hooks[0].hookName: \"never\" is not one that "
        "CDI knows",
        "line 8, column 9: devices[1].name: the device name \"-b\" does not begin with a letter or "
        "digit",
        "line 8, column 3: devices[1]: device \"-b\" changes nothing in a container",
        "line 2, column 7: kind: \"nothing\" is not VENDOR/CLASS",
    };

    (void)state;
    assert_int_equal(spec->n_problems, DV_COUNT(want));
    for (size_t i = 0; i < DV_COUNT(want); i++)
        assert_str(spec->problems[i], want[i]);
}

static void json_is_read_as_json(void **state)
{
    DV_CLEANUP(dv_cdi_spec_unrefp)
    struct dv_cdi_spec *good = spec_of(
        "a.json", "{\"cdiVersion\":\"0.5.0\",\"kind\":\"v.com/c\",\"devices\":[{\"name\":\"0\","
                  "\"containerEdits\":{\"env\":[\"A=b\"]}}]}");
    DV_CLEANUP(dv_cdi_spec_unrefp)
    struct dv_cdi_spec *bad = spec_of("a.json", ONE("0.5.0", "{env: [A=b]}"));
    struct dv_err err;

    (void)state;
    assert_ok(check_spec(good, &err), &err);
    assert_false(check_spec(bad, &err));
    assert_true(dv_cdi_is_spec_path(DV_STR("/etc/cdi/a.json")));
    assert_true(dv_cdi_is_spec_path(DV_STR("a.yaml")));
    assert_false(dv_cdi_is_spec_path(DV_STR("a.yml")));
    assert_false(dv_cdi_is_spec_path(DV_STR("a.json.tmp")));
}

static void what_is_too_large_is_refused(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_cdi_spec *spec;
    struct dv_err err;
    char *deep = dv_arena_alloc(arena, 100, 1);

    (void)state;
    dv_buf_init(&buf, 2 * DV_CDI_SPEC_BYTES_MAX);
    while (buf.n <= DV_CDI_SPEC_BYTES_MAX)
        dv_buf_add_c(&buf, "                                ");
    spec = spec_of("a.json", dv_buf_c(&buf));
    assert_false(check_spec(spec, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "bytes: at most 4194304 are allowed");
    dv_cdi_spec_unref(spec);

    memset(deep, '[', 40);
    spec = spec_of("a.json", deep);
    assert_false(check_spec(spec, &err));
    dv_cdi_spec_unref(spec);

    dv_buf_clear(&buf);
    dv_buf_add_c(&buf, "{\"cdiVersion\":\"0.5.0\",\"kind\":\"v.com/c\",\"devices\":[0");
    for (unsigned i = 0; i < DV_CDI_SPEC_DEVICES_MAX; i++)
        dv_buf_add_c(&buf, ",0");
    dv_buf_add_c(&buf, "]}");
    spec = spec_of("a.json", dv_buf_c(&buf));
    assert_false(check_spec(spec, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "16385 devices: at most 16384 are allowed");
    dv_cdi_spec_unref(spec);
}

static void problems_end_somewhere(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_cdi_spec *spec;

    (void)state;
    dv_buf_init(&buf, PRINT_BYTES_MAX);
    dv_buf_add_c(&buf, "{\"cdiVersion\":\"0.5.0\",\"kind\":\"v.com/c\",\"devices\":[0");
    for (unsigned i = 0; i < 100; i++)
        dv_buf_add_c(&buf, ",0");
    dv_buf_add_c(&buf, "]}");
    spec = spec_of("a.json", dv_buf_c(&buf));
    assert_int_equal(spec->n_problems, DV_CDI_SPEC_PROBLEMS_MAX + 1);
    assert_str(spec->problems[DV_CDI_SPEC_PROBLEMS_MAX], "there is more that is wrong");
    dv_cdi_spec_unref(spec);
}

static void annotations_have_a_size(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_cdi_spec *spec;
    struct dv_err err;

    (void)state;
    dv_buf_init(&buf, DV_CDI_SPEC_BYTES_MAX);
    dv_buf_add_c(&buf, "{\"cdiVersion\":\"0.6.0\",\"kind\":\"v.com/c\",\"annotations\":{\"a\":\"");
    for (unsigned i = 0; i < 256 * 1024; i++)
        dv_buf_add_char(&buf, 'x');
    dv_buf_add_c(&buf, "\"},\"devices\":[{\"name\":\"d\","
                       "\"containerEdits\":{\"env\":[\"A=b\"]}}]}");
    spec = spec_of("a.json", dv_buf_c(&buf));
    assert_false(check_spec(spec, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "262145 bytes of annotations: at most 262144");
    dv_cdi_spec_unref(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_read),
        cmocka_unit_test(written_and_read_again_it_is_the_same),
        cmocka_unit_test(a_feature_needs_its_version),
        cmocka_unit_test(specs_of_all_versions_are_taken),
        cmocka_unit_test(refuses_what_breaks_a_rule),
        cmocka_unit_test(the_root_class_of_rdt_is_a_class),
        cmocka_unit_test(one_look_tells_all_that_is_wrong),
        cmocka_unit_test(json_is_read_as_json),
        cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(problems_end_somewhere),
        cmocka_unit_test(annotations_have_a_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
