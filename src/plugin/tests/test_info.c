#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "pb/pb.h"
#include "plugin/info.h"
#include "plugin/plugin.h"
#include "plugin/plugin_check.h"

#define SOCKET "/var/lib/kubelet/plugins_registry/a.sock"

/* ---- decoding ---- */

static void an_info_is_decoded(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_plugin_info info;
    struct dv_plugin_info copy;
    struct dv_buf buf;
    struct dv_err err;

    (void)state;
    dv_buf_init(&buf, 1000);
    dv_pb_add_bytes(&buf, 1, DV_STR("DRAPlugin"));
    dv_pb_add_bytes(&buf, 2, DV_STR("gpu.example.com"));
    dv_pb_add_bytes(&buf, 3, DV_STR("/var/lib/kubelet/plugins/gpu/dra.sock"));
    dv_pb_add_bytes(&buf, 4, DV_STR("v1.DRAPlugin"));
    dv_pb_add_bytes(&buf, 4, DV_STR("v1beta1.DRAPlugin"));
    dv_pb_add_bytes(&buf, 99, DV_STR("from the future"));
    assert_ok(dv_plugin_info_decode(dv_buf_str(&buf), DV_STR(SOCKET), arena, &info, &err), &err);
    dv_buf_fini(&buf);
    dv_plugin_info_copy(&info, arena, &copy);
    assert_str(copy.socket, SOCKET);
    assert_str(copy.type, "DRAPlugin");
    assert_str(copy.name, "gpu.example.com");
    assert_str(copy.endpoint, "/var/lib/kubelet/plugins/gpu/dra.sock");
    assert_int_equal(copy.n_versions, 2);
    assert_str(copy.versions[0], "v1.DRAPlugin");
    assert_str(copy.versions[1], "v1beta1.DRAPlugin");
    assert_ok(dv_plugin_info_check(&copy, &err), &err);
}

static void an_empty_endpoint_is_the_socket_that_was_asked(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_plugin_info info;
    struct dv_err err;

    (void)state;
    assert_ok(dv_plugin_info_decode(DV_STR(""), DV_STR(SOCKET), arena, &info, &err), &err);
    assert_str(info.endpoint, SOCKET);
    assert_str(info.name, "");
    assert_int_equal(info.n_versions, 0);
}

static void what_is_no_info_is_refused(void **state)
{
    static const struct {
        dv_str bytes;
        const char *text;
    } cases[] = {
        {DV_STR_INIT("\x0a\x05"
                     "abc"),
         "PluginInfo"                               },
        {DV_STR_INIT("\x0a\x01\xff"),   "UTF-8"     },
        {DV_STR_INIT("\x1a\x03/\0x"),   "PluginInfo"},
        {DV_STR_INIT("GET / HTTP/1.1"), "PluginInfo"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_plugin_info info;
        struct dv_err err;

        assert_false(dv_plugin_info_decode(cases[i].bytes, DV_STR(SOCKET), arena, &info, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].text);
    }
}

/* ---- limits ---- */

static void what_is_over_long_is_named(void **state)
{
    static char long_text[1000];
    static const struct {
        size_t type, name, endpoint, version, n_versions;
        const char *text; /* NULL: fine */
    } cases[] = {
        {63,  317, 107, 253, 64, NULL                                           },
        {0,   0,   1,   0,   0,  NULL                                           },
        {64,  1,   1,   1,   1,  "type of 64 bytes is longer than 63: x"        },
        {1,   318, 1,   1,   1,  "name of 318 bytes is longer than 317: x"      },
        {1,   1,   200, 1,   1,  "endpoint of 200 bytes is longer than 107: x"  },
        {1,   1,   1,   254, 2,  "supported version of 254 bytes is longer than"},
        {1,   1,   1,   1,   65, "65 supported versions are more than 64"       },
        {999, 1,   1,   1,   1,  "type of 999 bytes"                            },
    };
    dv_str versions[65];

    (void)state;
    memset(long_text, 'x', sizeof(long_text));
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_plugin_info info = {
            .type = {long_text, cases[i].type    },
            .name = {long_text, cases[i].name    },
            .endpoint = {long_text, cases[i].endpoint},
            .versions = versions,
            .n_versions = cases[i].n_versions,
        };
        struct dv_err err;

        for (size_t j = 0; j < DV_COUNT(versions); j++)
            versions[j] = (dv_str){long_text, cases[i].version};
        if (!cases[i].text) {
            assert_ok(dv_plugin_info_check(&info, &err), &err);
            continue;
        }
        assert_false(dv_plugin_info_check(&info, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].text);
    }
}

static void an_endpoint_is_an_absolute_path_without_detours(void **state)
{
    static const struct {
        dv_str endpoint;
        const char *text; /* NULL: fine */
    } cases[] = {
        {DV_STR_INIT("/a"),                   NULL                    },
        {DV_STR_INIT("/a/b..c/.d/...e.sock"), NULL                    },
        {DV_STR_INIT("//a//b"),               NULL                    },
        {DV_STR_INIT(""),                     "not an absolute path"  },
        {DV_STR_INIT("a.sock"),               "not an absolute path"  },
        {DV_STR_INIT("../a.sock"),            "not an absolute path"  },
        {DV_STR_INIT("unix:///a"),            "not an absolute path"  },
        {DV_STR_INIT("/a/../b.sock"),         "has \"..\" in its path"},
        {DV_STR_INIT("/.."),                  "has \"..\" in its path"},
        {DV_STR_INIT("/a/./b"),               "has \".\" in its path" },
        {DV_STR_INIT("/"),                    "names a directory"     },
        {DV_STR_INIT("/a/"),                  "names a directory"     },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;

        if (!cases[i].text) {
            assert_ok(dv_plugin_endpoint_check_text(cases[i].endpoint, &err), &err);
            continue;
        }
        assert_false(dv_plugin_endpoint_check_text(cases[i].endpoint, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].text);
    }
}

static void inside_means_below(void **state)
{
    static const struct {
        dv_str dir, path;
        bool is_inside;
    } cases[] = {
        {DV_STR_INIT("/a/b"), DV_STR_INIT("/a/b/c"),   true },
        {DV_STR_INIT("/a/b"), DV_STR_INIT("/a/b/c/d"), true },
        {DV_STR_INIT("/a/b"), DV_STR_INIT("/a/b"),     false},
        {DV_STR_INIT("/a/b"), DV_STR_INIT("/a/b/"),    false},
        {DV_STR_INIT("/a/b"), DV_STR_INIT("/a/bc"),    false},
        {DV_STR_INIT("/a/b"), DV_STR_INIT("/a"),       false},
        {DV_STR_INIT("/"),    DV_STR_INIT("/a"),       true },
        {DV_STR_INIT("/"),    DV_STR_INIT("/"),        false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_int_equal(dv_plugin_is_inside(cases[i].dir, cases[i].path), cases[i].is_inside);
}

/* ---- texts ---- */

static void a_failure_is_utf8_and_the_first_one_counts(void **state)
{
    struct dv_plugin_failure failure;

    (void)state;
    dv_plugin_failure_init(&failure);
    assert_int_equal(failure.err.code, DV_OK);
    assert_false(
        dv_plugin_failure_set(&failure, DV_NOT_FOUND, "at socket %s", "/r/\xff\xc3\xa9\xc3"));
    assert_string_equal(dv_buf_c(&failure.text),
                        "RegisterPlugin error -- at socket /r/\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd");
    assert_false(dv_plugin_failure_set(&failure, DV_INTERNAL, "later"));
    assert_err(&failure.err, DV_NOT_FOUND, "at socket /r/");
    dv_plugin_failure_fini(&failure);
}

static void a_failure_is_neither_success_nor_cancellation(void **state)
{
    static const enum dv_code codes[] = {DV_OK, DV_CANCELLED};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(codes); i++) {
        struct dv_plugin_failure failure;

        dv_plugin_failure_init(&failure);
        assert_false(dv_plugin_failure_set(&failure, codes[i], "x"));
        assert_err(&failure.err, DV_UNKNOWN, "RegisterPlugin error -- x");
        dv_plugin_failure_fini(&failure);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_info_is_decoded),
        cmocka_unit_test(an_empty_endpoint_is_the_socket_that_was_asked),
        cmocka_unit_test(what_is_no_info_is_refused),
        cmocka_unit_test(what_is_over_long_is_named),
        cmocka_unit_test(an_endpoint_is_an_absolute_path_without_detours),
        cmocka_unit_test(inside_means_below),
        cmocka_unit_test(a_failure_is_utf8_and_the_first_one_counts),
        cmocka_unit_test(a_failure_is_neither_success_nor_cancellation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
