#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "serve/wire/kube_route.h"

/* "what group/version resource ns=.. name=.. sub=.." */
static const char *explain(const char *path, struct dv_buf *text)
{
    static const char *const whats[] = {
        [DV_ROUTE_NO_PAGE] = "no page",
        [DV_ROUTE_NO_RESOURCE] = "no resource",
        [DV_ROUTE_ROOT] = "root",
        [DV_ROUTE_VERSION_INFO] = "version",
        [DV_ROUTE_HEALTH] = "health",
        [DV_ROUTE_METRICS] = "metrics",
        [DV_ROUTE_TOKENS] = "tokens",
        [DV_ROUTE_NODE] = "node",
        [DV_ROUTE_EXPLAIN] = "explain",
        [DV_ROUTE_OPENAPI_V2] = "openapi v2",
        [DV_ROUTE_OPENAPI_V3] = "openapi v3",
        [DV_ROUTE_CORE] = "core",
        [DV_ROUTE_GROUPS] = "groups",
        [DV_ROUTE_GROUP] = "group",
        [DV_ROUTE_RESOURCES] = "resources",
        [DV_ROUTE_OBJECTS] = "objects",
        [DV_ROUTE_REVIEW] = "review",
        [DV_ROUTE_LOG] = "log",
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_route route;

    dv_route_parse(dv_str_from_c(path), NULL, arena, &route);
    dv_buf_clear(text);
    dv_buf_printf(text, "%s|%.*s|%.*s|%.*s|%.*s|%.*s|%.*s%s", whats[route.what],
                  DV_FMT(route.group), DV_FMT(route.version), DV_FMT(route.resource),
                  DV_FMT(route.namespace), DV_FMT(route.name), DV_FMT(route.subresource),
                  route.is_watch ? " watched" : "");
    return dv_buf_c(text);
}

static void paths_name_what_is_there(void **state)
{
    static const struct {
        const char *path;
        const char *want;
    } cases[] = {
        {"/",                                                           "root||||||"                           },
        {"/version",                                                    "version||||||"                        },
        {"/version/x",                                                  "no page||||||"                        },
        {"/livez/etcd",                                                 "health|||||etcd|"                     },
        {"/nope",                                                       "no page||||||"                        },
        {"/davit/v1/tokens",                                            "tokens||||||"                         },
        {"/davit/v1/tokens/x",                                          "tokens|||||x|"                        },
        {"/davit/v1/tokens/x/y",                                        "no page||||||"                        },
        {"/davit/v1/node",                                              "node||||||"                           },
        {"/davit/v1/node/x",                                            "no page||||||"                        },
        {"/davit/v1/nodes",                                             "no page||||||"                        },
        {"/davit/v1/explain/pods/ns/p",                                 "explain||||ns|p|"                     },
        {"/davit/v1/explain/claims/ns/c",                               "explain||||ns|c|"                     },
        {"/davit/v1/explain/nodes/ns/c",                                "no page||||||"                        },
        {"/davit/v1/explain/pods/ns",                                   "no page||||||"                        },
        {"/davit/v1/explain/pods/ns/p/x",                               "no page||||||"                        },
        {"/davit/v2/tokens",                                            "no page||||||"                        },
        {"//api/v1/pods",                                               "no page||||||"                        },
        {"/openapi/v2",                                                 "openapi v2||||||"                     },
        {"/openapi/v3/apis/resource.k8s.io/v1",                         "openapi v3||||||"                     },
        {"/api",                                                        "core||||||"                           },
        {"/api/v1",                                                     "resources||v1||||"                    },
        {"/api/v2",                                                     "no resource||v2||||"                  },
        {"/apis",                                                       "groups||||||"                         },
        {"/apis/",                                                      "groups||||||"                         },
        {"/apis/resource.k8s.io",                                       "group|resource.k8s.io|||||"           },
        {"/apis/nope.example.com",                                      "no page|nope.example.com|||||"        },
        {"/apis/nope.example.com/v1/things",                            "no page|nope.example.com|v1|things|||"},
        {"/apis/resource.k8s.io/v9",                                    "no resource|resource.k8s.io|v9||||"   },
        {"/api/v1/pods",                                                "objects||v1|pods|||"                  },
        {"/api/v1/pods/p",                                              "no resource||v1|pods||p|"             },
        {"/api/v1/namespaces",                                          "objects||v1|namespaces|||"            },
        {"/api/v1/namespaces/a",                                        "objects||v1|namespaces|a|a|"          },
        {"/api/v1/namespaces/a/status",                                 "objects||v1|namespaces|a|a|status"    },
        {"/api/v1/namespaces/a/finalize",                               "objects||v1|namespaces|a|a|finalize"  },
        {"/api/v1/namespaces/a/pods/p/status",                          "objects||v1|pods|a|p|status"          },
        {"/api/v1/namespaces/a/pods/p/log",                             "log||v1|pods|a|p|log"                 },
        {"/api/v1/watch/namespaces/a/pods/p/log",                       "no resource||v1|pods|a|p|log watched" },
        {"/api/v1/namespaces/a/nodes/n/log",                            "no resource||v1|nodes|a|n|log"        },
        {"/api/v1/namespaces/a/pods/p/nope",                            "no resource||v1|pods|a|p|nope"        },
        {"/api/v1/namespaces/a/pods/p%2Fstatus",                        "objects||v1|pods|a|p|status"          },
        {"/api/v1/namespaces/a/pods/../configmaps",                     "no resource||v1|pods|a|..|configmaps" },
        {"/api/v1/namespaces/a/pods/p/status/x",                        "no resource||v1|pods|a|p|status"      },
        {"/api/v1/namespaces/a/nodes",                                  "no resource||v1|nodes|a||"            },
        {"/api/v1/nodes/n/status/",                                     "objects||v1|nodes||n|status"          },
        {"/api/v1/namespaces/a/serviceaccounts/s/token",                "review||v1|serviceaccounts|a|s|token" },
        {"/api/v1/watch/namespaces/a/pods/p",                           "objects||v1|pods|a|p| watched"        },
        {"/apis/resource.k8s.io/v1beta1/namespaces/a/resourceclaims/c",
         "objects|resource.k8s.io|v1beta1|resourceclaims|a|c|"                                                 },
        {"/apis/resource.k8s.io/v1/devicetaintrules",
         "no resource|resource.k8s.io|v1|devicetaintrules|||"                                                  },
        {"/apis/authentication.k8s.io/v1/tokenreviews",
         "review|authentication.k8s.io|v1|tokenreviews|||"                                                     },
        {"/a/b/c/d/e/f/g/h/i/j/k/l/m/n",                                "no page||||||"                        },
        {"/api/v1/a/b/c/d/e/f/g/h/i/j/k/l/m/n",                         "no resource||v1|a||b|c"               },
    };
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, 4096);
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_string_equal(explain(cases[i].path, &text), cases[i].want);
    dv_buf_fini(&text);
}

static void methods_are_verbs_of_what_is_named(void **state)
{
    static const struct {
        const char *path;
        const char *method;
        bool is_watch;
        const char *verb;
    } cases[] = {
        {"/api/v1/pods",                "GET",     false, "list"            },
        {"/api/v1/pods",                "GET",     true,  "watch"           },
        {"/api/v1/watch/pods",          "GET",     false, "watch"           },
        {"/api/v1/namespaces/a/pods/p", "GET",     true,  "get"             },
        {"/api/v1/namespaces/a/pods",   "POST",    false, "create"          },
        {"/api/v1/namespaces/a/pods/p", "PUT",     false, "update"          },
        {"/api/v1/namespaces/a/pods/p", "PATCH",   false, "patch"           },
        {"/api/v1/namespaces/a/pods/p", "DELETE",  false, "delete"          },
        {"/api/v1/namespaces/a/pods",   "DELETE",  false, "deletecollection"},
        {"/api/v1/namespaces/a/pods",   "OPTIONS", false, "options"         },
        {"/api",                        "GET",     false, "get"             },
        {"/metrics",                    "POST",    false, "post"            },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_route route;

        dv_route_parse(dv_str_from_c(cases[i].path), NULL, arena, &route);
        assert_str(dv_route_verb(&route, dv_str_from_c(cases[i].method), cases[i].is_watch, arena),
                   cases[i].verb);
    }
}

static void resources_are_sorted_with_their_subresources(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    size_t n;
    struct dv_api_resource *resources =
        dv_api_resources(NULL, DV_STR_NONE, DV_STR("v1"), arena, &n);

    (void)state;
    assert_true(n > 10);
    for (size_t i = 1; i < n; i++)
        assert_true(dv_str_cmp(resources[i - 1].name, resources[i].name) <= 0);
    resources = dv_api_resources(NULL, DV_STR("resource.k8s.io"), DV_STR("v1alpha3"), arena, &n);
    assert_int_equal(n, 2);
    assert_str(resources[0].name, "devicetaintrules");
    assert_str(resources[1].subresource, "status");
    (void)dv_api_resources(NULL, DV_STR("nope"), DV_STR("v1"), arena, &n);
    assert_int_equal(n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_name_what_is_there),
        cmocka_unit_test(methods_are_verbs_of_what_is_named),
        cmocka_unit_test(resources_are_sorted_with_their_subresources),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
