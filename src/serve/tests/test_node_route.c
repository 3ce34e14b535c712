/* What requests to the node's own API are for, and which rights they need. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "serve/kubelet/node_route.h"

static void knows_paths_and_rights(void **state)
{
    static const struct {
        const char *method;
        const char *path;
        enum dv_node_route_id id;
        const char *verb;
        const char *subresources;
    } rows[] = {
        {"GET",    "/healthz",               DV_NODE_HEALTH,           "get",    "healthz proxy"},
        {"GET",    "/healthz/ping",          DV_NODE_UNKNOWN,          "get",    "healthz proxy"},
        {"GET",    "/healthzz",              DV_NODE_UNKNOWN,          "get",    "proxy"        },
        {"GET",    "/pods",                  DV_NODE_PODS,             "get",    "pods proxy"   },
        {"GET",    "/pods/",                 DV_NODE_PODS,             "get",    "pods proxy"   },
        {"GET",    "/pods/a",                DV_NODE_UNKNOWN,          "get",    "pods proxy"   },
        {"GET",    "/%70ods",                DV_NODE_PODS,             "get",    "pods proxy"   },
        {"GET",    "/pods%2F",               DV_NODE_UNKNOWN,          "get",    "proxy"        },
        {"GET",    "/runningpods/",          DV_NODE_RUNNING_PODS,     "get",    "proxy"        },
        {"POST",   "/runningpods",           DV_NODE_RUNNING_PODS,     "create", "proxy"        },
        {"GET",    "/metrics",               DV_NODE_METRICS,          "get",    "metrics"      },
        {"GET",    "/metrics/nothing",       DV_NODE_UNKNOWN,          "get",    "metrics"      },
        {"GET",    "/metrics/resource",      DV_NODE_RESOURCE_METRICS, "get",    "metrics"      },
        {"GET",    "/stats/summary",         DV_NODE_SUMMARY,          "get",    "stats"        },
        {"GET",    "/stats/summary/",        DV_NODE_UNKNOWN,          "get",    "stats"        },
        {"GET",    "/stats",                 DV_NODE_UNKNOWN,          "get",    "stats"        },
        {"GET",    "/logs/a",                DV_NODE_UNKNOWN,          "get",    "log"          },
        {"PUT",    "/configz",               DV_NODE_CONFIG,           "update", "configz proxy"},
        {"GET",    "/containerLogs/a/b/c",   DV_NODE_LOGS,             "get",    "proxy"        },
        {"GET",    "/containerLogs/a/b",     DV_NODE_UNKNOWN,          "get",    "proxy"        },
        {"GET",    "/containerLogs/a/b/c/d", DV_NODE_UNKNOWN,          "get",    "proxy"        },
        {"POST",   "/exec/a/b/uid/c",        DV_NODE_EXEC,             "create", "proxy"        },
        {"POST",   "/exec/a/b",              DV_NODE_UNKNOWN,          "create", "proxy"        },
        {"GET",    "/attach/a/b/c",          DV_NODE_ATTACH,           "get",    "proxy"        },
        {"POST",   "/run/a/b/uid/c",         DV_NODE_RUN,              "create", "proxy"        },
        {"GET",    "/run/a/b/c",             DV_NODE_RUN,              "get",    "proxy"        },
        {"POST",   "/portForward/a/b",       DV_NODE_PORT_FORWARD,     "create", "proxy"        },
        {"POST",   "/portForward/a/b/uid",   DV_NODE_PORT_FORWARD,     "create", "proxy"        },
        {"POST",   "/portForward/a/b/uid/c", DV_NODE_UNKNOWN,          "create", "proxy"        },
        {"PATCH",  "/exec/a/b/c",            DV_NODE_EXEC,             "patch",  "proxy"        },
        {"DELETE", "/",                      DV_NODE_UNKNOWN,          "delete", "proxy"        },
        {"HEAD",   "//pods",                 DV_NODE_UNKNOWN,          "",       "proxy"        },
        {"GET",    "/pods/../metrics",       DV_NODE_UNKNOWN,          "get",    "pods proxy"   },
        {"GET",    "/stats/1/2/3/4/5/6",     DV_NODE_UNKNOWN,          "get",    "stats"        },
        {"GET",    "/pods/1/2/3/4/5/6",      DV_NODE_UNKNOWN,          "get",    "pods proxy"   },
    };
    struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_node_route route;
        struct dv_buf text;

        dv_buf_init(&text, 1024);
        dv_node_route_parse(dv_str_from_c(rows[i].method), dv_str_from_c(rows[i].path), arena,
                            &route);
        for (size_t k = 0; k < route.n_subresources; k++)
            dv_buf_printf(&text, "%s%.*s", k > 0 ? " " : "", DV_FMT(route.subresources[k]));
        assert_string_equal(dv_buf_c(&text), rows[i].subresources);
        assert_int_equal(route.id, rows[i].id);
        assert_str(route.verb, rows[i].verb);
        dv_buf_fini(&text);
    }
    dv_arena_free(arena);
}

static void says_what_is_lacking(void **state)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_node_route route;
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, 1024);
    dv_node_route_parse(DV_STR("GET"), DV_STR("/pods"), arena, &route);
    dv_node_route_print_refusal(&route, DV_STR("bob"), false, &text);
    assert_string_equal(
        dv_buf_c(&text),
        "Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[pods proxy])");
    dv_buf_clear(&text);
    dv_node_route_parse(DV_STR("POST"), DV_STR("/exec/a/b/c"), arena, &route);
    dv_node_route_print_refusal(&route, DV_STR("bob"), true, &text);
    assert_string_equal(
        dv_buf_c(&text),
        "Authorization error (user=bob, verb=create, resource=nodes, subresource(s)=[proxy])");
    dv_buf_fini(&text);
    dv_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_paths_and_rights),
        cmocka_unit_test(says_what_is_lacking),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
