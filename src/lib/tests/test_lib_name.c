#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "lib/common/lib_name.h"

static const char long_prefix[] =
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; /* 245 */

static void resource_names_are_those_that_agents_accept(void **state)
{
    static const struct {
        const char *name;
        const char *refusal; /* NULL: it is a good one */
    } rows[] = {
        {"example.com/tty",                                                        NULL                 },
        {"e/T_t.y-0",                                                              NULL                 },
        {"a-b.c0/x",                                                               NULL                 },
        {"tty",                                                                    "vendor.example/name"},
        {"",                                                                       "vendor.example/name"},
        {"a/b/c",                                                                  "vendor.example/name"},
        {"kubernetes.io/x",                                                        "kubernetes.io"      },
        {"foo.kubernetes.io/x",                                                    "kubernetes.io"      },
        {"mykubernetes.io/x",                                                      "kubernetes.io"      },
        {"requests.example.com/x",                                                 "requests."          },
        {"/x",                                                                     "before the slash"   },
        {"Example.com/x",                                                          "before the slash"   },
        {"-a.com/x",                                                               "before the slash"   },
        {"a..com/x",                                                               "before the slash"   },
        {"a.com./x",                                                               "before the slash"   },
        {"a_b.com/x",                                                              "before the slash"   },
        {"a.com/",                                                                 "after the slash"    },
        {"a.com/-x",                                                               "after the slash"    },
        {"a.com/x.",                                                               "after the slash"    },
        {"a.com/x y",                                                              "after the slash"    },
        {"a.com/0123456789012345678901234567890123456789012345678901234567890123",
         "after the slash"                                                                              },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++)
        if (rows[i].refusal) {
            assert_false(dv_lib_resource_check(dv_str_from_c(rows[i].name), &err));
            assert_err(&err, DV_INVALID_ARGUMENT, rows[i].refusal);
        } else {
            assert_ok(dv_lib_resource_check(dv_str_from_c(rows[i].name), &err), &err);
        }
    assert_int_equal(strlen(long_prefix), 245);
    assert_true(dv_lib_resource_check(dv_str_printf(arena, "%s/x", long_prefix + 1), &err));
    assert_false(dv_lib_resource_check(dv_str_printf(arena, "%s/x", long_prefix), &err));
}

static void sockets_are_named_after_the_resource_or_as_given(void **state)
{
    static const struct {
        const char *dir;
        const char *name;
        const char *path; /* NULL: refused */
        const char *registry_path;
    } rows[] = {
        {"/d",  "",                            "/d/example.com_tty.sock", "/d/example.com_tty-reg.sock"},
        {"/d/", "x.sock",                      "/d/x.sock",               "/d/x-reg.sock"              },
        {"/d",  "x",                           "/d/x",                    "/d/x-reg.sock"              },
        {"/d",  "a/b",                         NULL,                      NULL                         },
        {"/d",  "..",                          NULL,                      NULL                         },
        {"/d",  ".x.sock",                     NULL,                      NULL                         },
        {"/d",  "kubelet.sock",                NULL,                      NULL                         },
        {"/d",  "kubelet_internal_checkpoint", NULL,                      NULL                         },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str resource = DV_STR("example.com/tty");
    struct dv_err err;
    dv_str path;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        dv_str dir = dv_str_from_c(rows[i].dir);
        dv_str name = dv_str_from_c(rows[i].name);
        bool is_good = dv_lib_socket_path(dir, name, resource, arena, &path, &err);

        assert_int_equal(is_good, rows[i].path != NULL);
        if (is_good)
            assert_str(path, rows[i].path);
        else
            assert_err(&err, DV_INVALID_ARGUMENT, rows[i].name);
        is_good = dv_lib_registry_path(dir, name, resource, arena, &path, &err);
        assert_int_equal(is_good, rows[i].path != NULL);
        if (is_good)
            assert_str(path, rows[i].registry_path);
    }
    assert_false(
        dv_lib_socket_path(dv_str_from_c(long_prefix), DV_STR(""), resource, arena, &path, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "longer than 107");
    assert_ok(dv_lib_agent_path(DV_STR("/d"), arena, &path, &err), &err);
    assert_str(path, "/d/kubelet.sock");
    assert_str(dv_lib_file_name(path), "kubelet.sock");
    assert_str(dv_lib_file_name(DV_STR("x")), "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resource_names_are_those_that_agents_accept),
        cmocka_unit_test(sockets_are_named_after_the_resource_or_as_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
