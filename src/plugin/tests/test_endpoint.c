#include "support/dvtest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/plugin_endpoint.h"
#include "support/scratch.h"

/* The plugin directories are kubelet and other; what leads outside of them is refused. */
static int make_scratch(void **state)
{
    static const char *const dirs[] = {"kubelet", "kubelet/dir", "other", "outside"};
    static const char *const files[] = {"kubelet/file", "outside/b.sock"};
    static const struct {
        const char *to, *at;
    } links[] = {
        {"dir",               "kubelet/inside"       },
        {"../outside",        "kubelet/escape"       },
        {"../outside/b.sock", "kubelet/escape.sock"  },
        {"/no/such/file",     "kubelet/dangling.sock"},
        {"nowhere",           "kubelet/dangling"     },
        {"round.sock",        "kubelet/round.sock"   },
    };
    static char scratch[32];
    int dir;

    (void)snprintf(scratch, sizeof(scratch), "/tmp/dv-endpoint-XXXXXX");
    assert_non_null(mkdtemp(scratch));
    dir = open(scratch, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    assert_true(dir >= 0);
    for (size_t i = 0; i < DV_COUNT(dirs); i++)
        assert_int_equal(mkdirat(dir, dirs[i], 0700), 0);
    for (size_t i = 0; i < DV_COUNT(files); i++)
        assert_int_equal(mknodat(dir, files[i], S_IFREG | 0600, 0), 0);
    for (size_t i = 0; i < DV_COUNT(links); i++)
        assert_int_equal(symlinkat(links[i].to, dir, links[i].at), 0);
    (void)close(dir); /* was only passed through */
    *state = scratch;
    return 0;
}

static int remove_scratch(void **state)
{
    scratch_remove(*state);
    return 0;
}

static void an_endpoint_must_lead_into_the_plugin_directories(void **state)
{
    static const struct {
        const char *endpoint; /* below the scratch directory, unless it begins with '/' */
        const char *text;     /* NULL: fine */
    } cases[] = {
        {"kubelet/a.sock",             NULL                                        },
        {"kubelet/no/such/dir/a.sock", NULL                                        },
        {"kubelet/dir/a.sock",         NULL                                        },
        {"kubelet/inside/a.sock",      NULL                                        },
        {"other/a.sock",               NULL                                        },
        {"outside/a.sock",             "/outside/a.sock is outside of "            },
        {"/nope.sock",                 "endpoint /nope.sock is outside of "        },
        {"/no/such/dir/nope.sock",     "is outside of "                            },
        {"kubelet/escape/a.sock",      "/outside/a.sock, is outside of "           },
        {"kubelet/escape/x/y/a.sock",  "/outside/x/y/a.sock, is outside of "       },
        {"kubelet/escape.sock",        "/outside/b.sock, is outside of "           },
        {"kubelet/dangling.sock",      "kubelet/dangling.sock is a link to nowhere"},
        {"kubelet/dangling/a.sock",    "kubelet/dangling is a link to nowhere"     },
        {"kubelet/round.sock",         "Too many levels of symbolic links"         },
        {"kubelet/file/a.sock",        "Not a directory"                           },
        {"kubelet",                    "kubelet is outside of "                    },
        {"kubelets/a.sock",            "and the other plugin directories"          },
    };
    const char *scratch = *state;
    char roots[3][64];
    dv_str allowed[3];

    for (size_t i = 0; i < DV_COUNT(roots); i++) {
        (void)snprintf(roots[i], sizeof(roots[i]), "%s/%s", scratch,
                       (const char *[]){"kubelet", "not-there", "other"}[i]);
        allowed[i] = dv_str_from_c(roots[i]);
    }
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        bool is_whole = cases[i].endpoint[0] == '/';
        struct dv_err err = {0};
        char path[128];
        bool is_fine;

        (void)snprintf(path, sizeof(path), "%s%s%s", is_whole ? "" : scratch, is_whole ? "" : "/",
                       cases[i].endpoint);
        is_fine = dv_plugin_endpoint_check(dv_str_from_c(path), allowed, DV_COUNT(allowed), &err);
        if (is_fine != !cases[i].text || (!is_fine && !strstr(err.msg, cases[i].text)))
            fail_msg("%s: %s", path, is_fine ? "accepted" : err.msg);
    }
}

static void a_root_that_is_a_link_is_followed(void **state)
{
    char root[64];
    char path[96];
    dv_str allowed;
    struct dv_err err;

    (void)snprintf(root, sizeof(root), "%s/kubelet/inside", (const char *)*state);
    (void)snprintf(path, sizeof(path), "%s/kubelet/dir/a.sock", (const char *)*state);
    allowed = dv_str_from_c(root);
    assert_ok(dv_plugin_endpoint_check(dv_str_from_c(path), &allowed, 1, &err), &err);
    (void)snprintf(path, sizeof(path), "%s/kubelet/a.sock", (const char *)*state);
    assert_false(dv_plugin_endpoint_check(dv_str_from_c(path), &allowed, 1, &err));
    assert_err(&err, DV_PERMISSION_DENIED, "is outside of ");
}

static void without_roots_nothing_is_inside(void **state)
{
    struct dv_err err;

    (void)state;
    assert_false(dv_plugin_endpoint_check(DV_STR("/a.sock"), NULL, 0, &err));
    assert_err(&err, DV_PERMISSION_DENIED, "/a.sock");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_endpoint_must_lead_into_the_plugin_directories),
        cmocka_unit_test(a_root_that_is_a_link_is_followed),
        cmocka_unit_test(without_roots_nothing_is_inside),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
