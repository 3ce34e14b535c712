#include "support/dvtest.h"

#include "access/access.h"
#include "base/arena.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "serve/auth.h"

enum who {
    ADMIN,
    NODE,
    DRIVER,
    NETWORK, /* a driver of devices without a node */
    WIDENED, /* a driver who may also read pods and nodes */
    PROXY,   /* the API, as a client of node n1 */
    VIEWER,
    NOBODY,
};

static struct dv_api_user_info user_of(enum who who, struct dv_arena *arena)
{
    static const dv_str also[] = {DV_STR_INIT("pods: get,list, watch"), DV_STR_INIT("nodes:list"),
                                  DV_STR_INIT("nodes/status: get")};
    struct dv_api_user_info viewer = dv_auth_admin(DV_STR("viewer"), arena);
    struct dv_err err;

    viewer.groups++; /* the second says only that he is known */
    viewer.n_groups--;
    switch (who) {
    case ADMIN:
        return dv_auth_admin(DV_STR("root"), arena);
    case NODE:
        return dv_auth_node(DV_STR("n1"), arena);
    case DRIVER:
        return dv_auth_driver(DV_STR("gpu.example.com"), DV_STR("n1"), arena);
    case NETWORK:
        return dv_auth_driver(DV_STR("gpu.example.com"), DV_STR_NONE, arena);
    case WIDENED:
        viewer = dv_auth_driver(DV_STR("gpu.example.com"), DV_STR("n1"), arena);
        assert_true(dv_auth_widen(&viewer, also, DV_COUNT(also), arena, &err));
        return viewer;
    case PROXY:
        return dv_auth_node_proxy(DV_STR("n1"), arena);
    case VIEWER:
        return viewer;
    case NOBODY:
        break;
    }
    return dv_auth_anonymous(arena);
}

/* The roles and bindings that always exist. */
static struct dv_access *make_access(struct dv_arena *arena)
{
    struct dv_access *access = dv_access_new();
    size_t n;
    const struct dv_access_default *all = dv_access_defaults(arena, &n);

    for (size_t i = 0; i < n; i++) {
        struct dv_object *object = dv_object_new(all[i].kind, all[i].value);

        dv_access_changed(access, NULL, object);
        dv_object_unref(object);
    }
    return access;
}

/* Everything whose name begins with "own" belongs to the node. */
static bool is_of_node(void *ctx, dv_str node, const struct dv_auth_request *request)
{
    (void)ctx;
    assert_str(node, "n1");
    return dv_str_starts_with(request->name, DV_STR("own"));
}

static bool is_of_driver(void *ctx, dv_str node, dv_str driver,
                         const struct dv_auth_request *request)
{
    (void)ctx;
    (void)node;
    assert_str(driver, "gpu.example.com");
    return dv_str_starts_with(request->name, DV_STR("own"));
}

#define CORE ""
#define RESOURCE "resource.k8s.io"

static void everybody_may_do_what_the_table_says(void **state)
{
    static const struct {
        enum who who;
        const char *verb;
        const char *group;
        const char *resource;
        const char *subresource;
        const char *namespace;
        const char *name;
        const char *selector;
        bool want;
    } cases[] = {
        {ADMIN,   "delete",                 CORE,                    "nodes",              "",        "",                "n9",    "",                                   true },
        {VIEWER,  "get",                    CORE,                    "pods",               "",        "a",               "p",     "",                                   false},
        {VIEWER,  "create",                 "authentication.k8s.io", "selfsubjectreviews", "",        "",                "",      "",                                   true },
        {VIEWER,  "create",                 "authentication.k8s.io", "tokenreviews",       "",        "",                "",      "",                                   false},
        {NOBODY,  "create",                 "authentication.k8s.io", "selfsubjectreviews", "",        "",                "",      "",                                   false},
        {PROXY,   "get",                    CORE,                    "nodes",              "proxy",   "",                "n1",    "",                                   true },
        {PROXY,   "create",                 CORE,                    "nodes",              "proxy",   "",                "n1",    "",                                   true },
        {PROXY,   "get",                    CORE,                    "nodes",              "proxy",   "",                "n2",    "",                                   false},
        {PROXY,   "get",                    CORE,                    "nodes",              "proxy",   "",                "",      "",                                   false},
        {PROXY,   "delete",                 CORE,                    "nodes",              "proxy",   "",                "n1",    "",                                   false},
        {PROXY,   "get",                    CORE,                    "nodes",              "",        "",                "n1",    "",                                   false},
        {PROXY,   "get",                    CORE,                    "nodes",              "log",     "",                "n1",    "",                                   false},
        {PROXY,   "get",                    RESOURCE,                "nodes",              "proxy",   "",                "n1",    "",                                   false},
        {PROXY,   "get",                    CORE,                    "pods",               "",        "a",               "n1",    "",                                   false},
        {VIEWER,  "get",                    CORE,                    "nodes",              "proxy",   "",                "n1",    "",                                   false},
        {NODE,    "get",                    CORE,                    "nodes",              "proxy",   "",                "n1",    "",                                   false},
        {NODE,    "get",                    CORE,                    "nodes",              "",        "",                "n1",    "",                                   true },
        {NODE,    "get",                    CORE,                    "nodes",              "",        "",                "n2",    "",                                   false},
        {NODE,    "list",                   CORE,                    "nodes",              "",        "",                "",      "",                                   false},
        {NODE,    "list",                   CORE,                    "nodes",              "",        "",                "n1",    "metadata.name=n1",                   true },
        {NODE,    "patch",                  CORE,                    "nodes",              "status",  "",                "n1",    "",                                   true },
        {NODE,    "patch",                  CORE,                    "nodes",              "status",  "",                "n2",    "",                                   true },
        {NODE,    "create",                 CORE,                    "nodes",              "status",  "",                "n1",    "",                                   false},
        {NODE,    "list",                   CORE,                    "nodes",              "",        "",                "n2",    "metadata.name=n2",                   false},
        {NODE,    "watch",                  CORE,                    "pods",               "",        "",                "",      "spec.nodeName=n1",                   true },
        {NODE,    "watch",                  CORE,                    "pods",               "",        "",                "",      "spec.nodeName=n10",                  false},
        {NODE,    "watch",                  CORE,                    "pods",               "",        "",                "",      "a=b,spec.nodeName==n1",              true },
        {NODE,    "patch",                  CORE,                    "pods",               "status",  "a",               "own-p", "",                                   true },
        {NODE,    "patch",                  CORE,                    "pods",               "status",  "a",               "p",     "",                                   true },
        {NODE,    "patch",                  CORE,                    "pods",               "",        "a",               "own-p", "",                                   false},
        {NODE,    "deletecollection",       CORE,                    "pods",               "",        "a",               "",      "spec.nodeName=n1",                   false},
        {NODE,    "list",                   CORE,                    "pods",               "",        "a",               "own-p", "metadata.name=own-p",                true },
        {NODE,    "list",                   CORE,                    "pods",               "",        "",                "",      "status.phase!=a\\,spec.nodeName=n1", false},
        {NODE,    "create",                 CORE,                    "pods",               "binding", "a",               "own-p", "",                                   false},
        {NODE,    "list",                   CORE,                    "events",             "",        "a",               "",      "",                                   false},
        {NODE,    "list",                   RESOURCE,                "resourceclaims",     "",        "a",               "own-c", "metadata.name=own-c",                false},
        {NODE,    "list",                   CORE,                    "secrets",            "",        "a",               "own-s", "metadata.name=own-s",                true },
        {NODE,    "list",                   CORE,                    "secrets",            "",        "",                "own-s", "metadata.name=own-s",                false},
        {NODE,    "watch",                  CORE,                    "configmaps",         "",        "",                "own-m", "metadata.name=own-m",                false},
        {NODE,    "update",                 CORE,                    "secrets",            "",        "a",               "own-s", "",                                   false},
        {NODE,    "get",                    CORE,                    "serviceaccounts",    "",        "a",               "own-a", "",                                   true },
        {NODE,    "list",                   CORE,                    "serviceaccounts",    "",        "a",               "own-a", "metadata.name=own-a",                false},
        {NODE,    "create",                 CORE,                    "serviceaccounts",    "token",   "a",               "own-a", "",                                   true },
        {NODE,    "create",                 CORE,                    "serviceaccounts",    "token",   "a",               "a",     "",                                   false},
        {NODE,    "create",                 CORE,                    "serviceaccounts",    "",        "a",               "",      "",                                   false},
        {NODE,    "get",                    RESOURCE,                "deviceclasses",      "",        "",                "c",     "",                                   false},
        {NODE,    "update",                 RESOURCE,                "resourceslices",     "",        "",                "own-s", "",                                   true },
        {NODE,    "update",                 RESOURCE,                "resourceslices",     "",        "",                "s",     "",                                   false},
        {NODE,    "deletecollection",       RESOURCE,                "resourceslices",     "",        "",                "",      "spec.nodeName=n1",
         true                                                                                                                                                                },
        {NODE,    "deletecollection",       RESOURCE,                "resourceslices",     "",        "",                "",      "spec.nodeName!=n1",
         false                                                                                                                                                               },
        {NODE,    "list",                   "coordination.k8s.io",   "leases",             "",        "kube-node-lease", "n1",
         "metadata.name=n1",                                                                                                                                            false},
        {NODE,    "create",                 CORE,                    "events",             "",        "a",               "",      "",                                   true },
        {NODE,    "get",                    RESOURCE,                "resourceclaims",     "",        "a",               "own-c", "",                                   true },
        {NODE,    "get",                    RESOURCE,                "resourceclaims",     "",        "a",               "c",     "",                                   false},
        {NODE,    "list",                   RESOURCE,                "resourceclaims",     "",        "a",               "",      "",                                   false},
        {NODE,    "patch",                  RESOURCE,                "resourceclaims",     "status",  "a",               "own-c", "",                                   false},
        {NODE,    "list",                   RESOURCE,                "resourceslices",     "",        "",                "",      "spec.nodeName=n1",                   true },
        {NODE,    "list",                   RESOURCE,                "resourceslices",     "",        "",                "",      "",                                   false},
        {NODE,    "get",                    CORE,                    "secrets",            "",        "a",               "own-s", "",                                   true },
        {NODE,    "list",                   CORE,                    "secrets",            "",        "a",               "",      "",                                   false},
        {NODE,    "update",                 "coordination.k8s.io",   "leases",             "",        "kube-node-lease", "n1",    "",                                   true },
        {NODE,    "update",                 "coordination.k8s.io",   "leases",             "",        "kube-node-lease", "n2",    "",                                   false},
        {NODE,    "update",                 "coordination.k8s.io",   "leases",             "",        "default",         "n1",    "",                                   false},
        {NODE,    "watch",                  "node.k8s.io",           "runtimeclasses",     "",        "",                "",      "",                                   true },
        {NODE,    "get",                    "node.k8s.io",           "runtimeclasses",     "",        "",                "r",     "",                                   true },
        {NODE,    "create",                 "node.k8s.io",           "runtimeclasses",     "",        "",                "r",     "",                                   false},
        {NODE,    "delete",                 CORE,                    "nodes",              "",        "",                "n1",    "",                                   false},
        {DRIVER,  "get",                    CORE,                    "nodes",              "",        "",                "n1",    "",                                   true },
        {DRIVER,  "get",                    CORE,                    "nodes",              "",        "",                "n2",    "",                                   false},
        {DRIVER,  "get",                    RESOURCE,                "resourceclaims",     "",        "a",               "own-c", "",                                   true },
        {DRIVER,  "get",                    RESOURCE,                "resourceclaims",     "",        "a",               "c",     "",                                   false},
        {DRIVER,  "list",                   RESOURCE,                "resourceslices",     "",        "",                "",      "",                                   false},
        {DRIVER,  "list",                   RESOURCE,                "resourceslices",     "",        "",                "",
         "spec.nodeName=n1,spec.driver=gpu.example.com",                                                                                                                true },
        {DRIVER,  "watch",                  RESOURCE,                "resourceslices",     "",        "",                "",      "spec.driver=gpu.example.com",
         false                                                                                                                                                               },
        {DRIVER,  "get",                    RESOURCE,                "resourceslices",     "",        "",                "own-s", "",                                   true },
        {DRIVER,  "get",                    RESOURCE,                "resourceslices",     "",        "",                "s",     "",                                   false},
        {DRIVER,  "delete",                 RESOURCE,                "resourceslices",     "",        "",                "s",     "",                                   false},
        {DRIVER,  "list",                   CORE,                    "events",             "",        "a",               "",      "",                                   false},
        {DRIVER,  "list",                   CORE,                    "pods",               "",        "a",               "",      "",                                   false},
        {NETWORK, "list",                   RESOURCE,                "resourceslices",     "",        "",                "",      "spec.driver=gpu.example.com",
         true                                                                                                                                                                },
        {NETWORK, "list",                   RESOURCE,                "resourceslices",     "",        "",                "",      "",                                   false},
        {NETWORK, "get",                    CORE,                    "nodes",              "",        "",                "n1",    "",                                   false},
        {NETWORK, "get",                    CORE,                    "nodes",              "",        "",                "",      "",                                   false},
        {NETWORK, "get",                    RESOURCE,                "resourceclaims",     "",        "a",               "own-c", "",                                   true },
        {NETWORK, "arbitrary-node:update",  RESOURCE,                "resourceclaims",     "driver",  "a",
         "gpu.example.com",                                                                                                       "",                                   true },
        {NETWORK, "associated-node:update", RESOURCE,                "resourceclaims",     "driver",  "a",
         "gpu.example.com",                                                                                                       "",                                   false},
        {WIDENED, "list",                   CORE,                    "pods",               "",        "",                "",      "",                                   true },
        {WIDENED, "watch",                  CORE,                    "pods",               "",        "a",               "",      "",                                   true },
        {WIDENED, "delete",                 CORE,                    "pods",               "",        "a",               "p",     "",                                   false},
        {WIDENED, "get",                    CORE,                    "pods",               "status",  "a",               "p",     "",                                   false},
        {WIDENED, "list",                   CORE,                    "nodes",              "",        "",                "",      "",                                   true },
        {WIDENED, "watch",                  CORE,                    "nodes",              "",        "",                "",      "",                                   false},
        {WIDENED, "get",                    CORE,                    "nodes",              "",        "",                "n1",    "",                                   true },
        {WIDENED, "get",                    CORE,                    "nodes",              "status",  "",                "n2",    "",                                   true },
        {WIDENED, "get",                    CORE,                    "secrets",            "",        "a",               "s",     "",                                   false},
        {DRIVER,  "list",                   RESOURCE,                "resourceclaims",     "",        "a",               "",      "",                                   false},
        {DRIVER,  "update",                 RESOURCE,                "resourceclaims",     "",        "a",               "c",     "",                                   false},
        {DRIVER,  "update",                 RESOURCE,                "resourceclaims",     "status",  "a",               "c",     "",                                   true },
        {DRIVER,  "watch",                  RESOURCE,                "deviceclasses",      "",        "",                "",      "",                                   true },
        {DRIVER,  "create",                 RESOURCE,                "deviceclasses",      "",        "",                "",      "",                                   false},
        {DRIVER,  "create",                 RESOURCE,                "resourceslices",     "",        "",                "",      "",                                   true },
        {DRIVER,  "deletecollection",       RESOURCE,                "resourceslices",     "",        "",                "",
         "spec.nodeName=n1,spec.driver=gpu.example.com",                                                                                                                true },
        {DRIVER,  "deletecollection",       RESOURCE,                "resourceslices",     "",        "",                "",      "spec.nodeName=n1",
         false                                                                                                                                                               },
        {DRIVER,  "get",                    CORE,                    "secrets",            "",        "a",               "s",     "",                                   false},
        {DRIVER,  "associated-node:update", RESOURCE,                "resourceclaims",     "driver",  "a",
         "gpu.example.com",                                                                                                       "",                                   true },
        {DRIVER,  "associated-node:update", RESOURCE,                "resourceclaims",     "driver",  "a",
         "nic.example.com",                                                                                                       "",                                   false},
        {DRIVER,  "arbitrary-node:update",  RESOURCE,                "resourceclaims",     "driver",  "a",
         "gpu.example.com",                                                                                                       "",                                   false},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_access *access = make_access(arena);
    const struct dv_auth_relations relations = {is_of_node, is_of_driver, NULL, access};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_api_user_info user = user_of(cases[i].who, arena);
        struct dv_auth_request request = {
            .verb = dv_str_from_c(cases[i].verb),
            .group = dv_str_from_c(cases[i].group),
            .resource = dv_str_from_c(cases[i].resource),
            .subresource = dv_str_from_c(cases[i].subresource),
            .namespace = dv_str_from_c(cases[i].namespace),
            .name = dv_str_from_c(cases[i].name),
            .field_selector = dv_str_from_c(cases[i].selector),
        };
        dv_str reason;

        if (dv_auth_decide(&user, &request, &relations, arena, &reason) != cases[i].want)
            fail_msg("case %zu: %s %s", i, cases[i].verb, cases[i].resource);
    }
    dv_access_free(access);
}

static void paths_are_open_to_those_who_need_them(void **state)
{
    static const struct {
        enum who who;
        const char *path;
        const char *node; /* that the path is about */
        bool want;
    } cases[] = {
        {NOBODY, "/version",           "",   true },
        {NOBODY, "/readyz",            "",   true },
        {NOBODY, "/api",               "",   false},
        {VIEWER, "/api",               "",   true },
        {VIEWER, "/apis/x/v1",         "",   true },
        {VIEWER, "/apisx",             "",   false},
        {VIEWER, "/openapi/v3/api/v1", "",   true },
        {VIEWER, "/metrics",           "",   false},
        {DRIVER, "/metrics",           "",   false},
        {ADMIN,  "/metrics",           "",   true },
        {ADMIN,  "/davit/v1/node",     "n2", true },
        {NODE,   "/davit/v1/node",     "n1", true },
        {NODE,   "/davit/v1/node",     "n2", false},
        {NODE,   "/davit/v1/node",     "",   false},
        {NODE,   "/davit/v1/tokens",   "n1", false},
        {DRIVER, "/davit/v1/node",     "n1", false},
        {VIEWER, "/davit/v1/node",     "n1", false},
        {NOBODY, "/davit/v1/node",     "n1", false},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_access *access = make_access(arena);
    const struct dv_auth_relations relations = {.access = access};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_api_user_info user = user_of(cases[i].who, arena);
        struct dv_auth_request request = {.verb = DV_STR("get"),
                                          .path = dv_str_from_c(cases[i].path),
                                          .name = dv_str_from_c(cases[i].node)};
        dv_str reason;

        if (dv_auth_decide(&user, &request, &relations, arena, &reason) != cases[i].want)
            fail_msg("case %zu: %s", i, cases[i].path);
    }
    dv_access_free(access);
}

/* No role widens what davit's own users may, whatever names them. */
static void roles_are_for_others_than_our_own_users(void **state)
{
    static const enum who all[] = {NODE, DRIVER, NETWORK, PROXY, VIEWER};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_access *access = make_access(arena);
    struct dv_api_subject group = {.kind = DV_STR("Group"), .name = DV_STR("system:authenticated")};
    const struct dv_api_role_binding binding = {
        .metadata = {.name = DV_STR("b")             },
        .subjects = &group,
        .n_subjects = 1,
        .role_ref = { .kind = DV_STR("ClusterRole"), .name = DV_STR("cluster-admin")}
    };
    struct dv_object *object = dv_object_new(dv_kind(DV_KIND_CLUSTER_ROLE_BINDING), &binding);
    const struct dv_auth_relations relations = {is_of_node, is_of_driver, NULL, access};
    const struct dv_auth_request request = {
        .verb = DV_STR("get"), .resource = DV_STR("secrets"), .namespace = DV_STR("a")};
    const struct dv_auth_request tokens = {.verb = DV_STR("post"),
                                           .path = DV_STR("/davit/v1/tokens")};

    (void)state;
    dv_access_changed(access, NULL, object);
    dv_object_unref(object);
    for (size_t i = 0; i < DV_COUNT(all); i++) {
        struct dv_api_user_info user = user_of(all[i], arena);
        dv_str reason;

        assert_int_equal(dv_auth_decide(&user, &request, &relations, arena, &reason),
                         all[i] == VIEWER);
        assert_int_equal(dv_auth_allowed_by(&user, &request, &relations, arena).n > 0,
                         all[i] == VIEWER);
        assert_false(dv_auth_decide(&user, &tokens, &relations, arena, &reason));
    }
    dv_access_free(access);
}

static void a_group_without_a_name_gives_nothing(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_user_info user = dv_auth_node(DV_STR(""), arena);
    dv_str node, driver;

    (void)state;
    assert_int_equal(dv_auth_scope(&user, &node, &driver), DV_SCOPE_NONE);
    user = dv_auth_driver(DV_STR(""), DV_STR("n1"), arena);
    assert_int_equal(dv_auth_scope(&user, &node, &driver), DV_SCOPE_NONE);
    user = dv_auth_driver(DV_STR("d"), DV_STR(""), arena);
    assert_int_equal(dv_auth_scope(&user, &node, &driver), DV_SCOPE_DRIVER);
    assert_str(node, "");
    user.extra[0].key = DV_STR("davit.dev/other"); /* neither on a node nor on none */
    assert_int_equal(dv_auth_scope(&user, &node, &driver), DV_SCOPE_NONE);
}

static void refusals_read_as_the_references(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_user_info user = user_of(VIEWER, arena);
    struct dv_auth_request request = {.verb = DV_STR("patch"),
                                      .group = DV_STR(RESOURCE),
                                      .resource = DV_STR("resourceclaims"),
                                      .subresource = DV_STR("status"),
                                      .namespace = DV_STR("a")};
    struct dv_auth_request path = {.verb = DV_STR("get"), .path = DV_STR("/nope")};

    (void)state;
    assert_str(dv_auth_refusal(&user, &request, DV_STR_NONE, arena),
               "User \"viewer\" cannot patch resource \"resourceclaims/status\" in API group "
               "\"resource.k8s.io\" in the namespace \"a\"");
    request.namespace = DV_STR_NONE;
    assert_str(dv_auth_refusal(&user, &request, DV_STR("why"), arena),
               "User \"viewer\" cannot patch resource \"resourceclaims/status\" in API group "
               "\"resource.k8s.io\" at the cluster scope: why");
    assert_str(dv_auth_refusal(&user, &path, DV_STR_NONE, arena),
               "User \"viewer\" cannot get path \"/nope\"");
}

/* ---- writes ---- */

static bool may_write(const struct dv_api_user_info *user, const struct dv_auth_request *request,
                      const struct dv_auth_change *change)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_auth_denial denial;
    bool is_allowed = dv_auth_check_write(user, request, change, arena, &denial);

    assert_int_equal(is_allowed, denial.reason.n == 0);
    return is_allowed;
}

static struct dv_api_resource_slice slice_of(const char *driver, const char *node)
{
    struct dv_api_resource_slice slice = {0};

    slice.metadata.name = DV_STR("s");
    slice.spec.driver = dv_str_from_c(driver);
    slice.spec.node_name = dv_str_from_c(node);
    slice.spec.pool.name = dv_str_from_c(*node ? node : "net");
    return slice;
}

static void slices_are_written_by_their_own_driver_on_their_own_node(void **state)
{
    static const struct {
        enum who who;
        const char *driver;
        const char *node;
        bool want;
    } cases[] = {
        {ADMIN,   "nic.example.com", "n2", true },
        {DRIVER,  "gpu.example.com", "n1", true },
        {DRIVER,  "gpu.example.com", "n2", false},
        {DRIVER,  "gpu.example.com", "",   false},
        {DRIVER,  "nic.example.com", "n1", false},
        {NODE,    "nic.example.com", "n1", true },
        {NODE,    "nic.example.com", "n2", false},
        {NETWORK, "gpu.example.com", "",   true },
        {NETWORK, "gpu.example.com", "n1", false},
        {NETWORK, "nic.example.com", "",   false},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_auth_request request = {
        .verb = DV_STR("update"), .group = DV_STR(RESOURCE), .resource = DV_STR("resourceslices")};
    struct dv_api_resource_slice own = slice_of("gpu.example.com", "n1");

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_api_user_info user = user_of(cases[i].who, arena);
        struct dv_api_resource_slice slice = slice_of(cases[i].driver, cases[i].node);
        struct dv_object old = {.value = &slice, .meta = &slice.metadata};

        assert_int_equal(may_write(&user, &request, &(struct dv_auth_change){.value = &slice}),
                         cases[i].want);
        assert_int_equal(may_write(&user, &request, &(struct dv_auth_change){.old = &old}),
                         cases[i].want);
        /* nor is what is another's made its own */
        assert_int_equal(
            may_write(&user, &request, &(struct dv_auth_change){.old = &old, .value = &own}),
            cases[i].want && cases[i].who != NETWORK);
    }
}

static void a_node_makes_no_lease_for_another(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_auth_request request = {.verb = DV_STR("create"),
                                      .group = DV_STR("coordination.k8s.io"),
                                      .resource = DV_STR("leases")};
    struct dv_api_user_info user = user_of(NODE, arena);
    struct dv_api_lease lease = {.metadata = {.name = DV_STR("n1")}};
    const struct dv_auth_change change = {.value = &lease};
    struct dv_auth_denial denial;

    (void)state;
    assert_true(dv_auth_check_write(&user, &request, &change, arena, &denial));
    lease.metadata.name = DV_STR("n2");
    assert_false(dv_auth_check_write(&user, &request, &change, arena, &denial));
    assert_str(denial.reason,
               "can only access node lease with the same name as the requesting node");
}

struct claim {
    struct dv_api_resource_claim claim;
    struct dv_api_allocation_result allocation;
    struct dv_api_device_request_allocation_result result;
    struct dv_api_node_selector selector;
    struct dv_api_node_selector_term term;
    struct dv_api_node_selector_requirement requirement;
    dv_str node;
};

/* Allocated to a driver on a node. */
static void claim_init(struct claim *claim, const char *driver, const char *node)
{
    *claim = (struct claim){.node = dv_str_from_c(node)};
    claim->requirement = (struct dv_api_node_selector_requirement){
        DV_STR("metadata.name"), DV_STR("In"), .values = &claim->node, .n_values = 1};
    claim->term.match_fields = &claim->requirement;
    claim->term.n_match_fields = 1;
    claim->selector.node_selector_terms = &claim->term;
    claim->selector.n_node_selector_terms = 1;
    claim->result.driver = dv_str_from_c(driver);
    claim->allocation.devices.results = &claim->result;
    claim->allocation.devices.n_results = 1;
    claim->allocation.node_selector = &claim->selector;
    claim->claim.status.allocation = &claim->allocation;
}

static bool may_report(const struct claim *was, const struct dv_api_allocated_device_status *before,
                       size_t n_before, const struct dv_api_allocated_device_status *after,
                       size_t n_after, bool is_reserved)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_user_info user = user_of(DRIVER, arena);
    struct dv_auth_request request = {.verb = DV_STR("patch"),
                                      .group = DV_STR(RESOURCE),
                                      .resource = DV_STR("resourceclaims"),
                                      .subresource = DV_STR("status")};
    struct dv_api_resource_claim old_claim = was->claim;
    struct dv_api_resource_claim claim = was->claim;
    struct dv_api_resource_claim_consumer_reference pod = {.name = DV_STR("p")};
    struct dv_api_allocated_device_status devices[2][2] = {0};
    struct dv_object old = {.value = &old_claim, .meta = &old_claim.metadata};

    for (size_t i = 0; i < n_before; i++)
        devices[0][i] = before[i];
    for (size_t i = 0; i < n_after; i++)
        devices[1][i] = after[i];
    old_claim.status.devices = devices[0];
    old_claim.status.n_devices = n_before;
    claim.status.devices = devices[1];
    claim.status.n_devices = n_after;
    if (is_reserved) {
        claim.status.reserved_for = &pod;
        claim.status.n_reserved_for = 1;
    }
    return may_write(&user, &request, &(struct dv_auth_change){.old = &old, .value = &claim});
}

static void drivers_report_their_own_devices_of_their_own_claims(void **state)
{
    const struct dv_api_allocated_device_status mine[] = {
        {.driver = DV_STR("gpu.example.com"), .pool = DV_STR("p"), .device = DV_STR("d")}
    };
    const struct dv_api_allocated_device_status theirs[] = {
        {.driver = DV_STR("nic.example.com"), .pool = DV_STR("p"), .device = DV_STR("d")}
    };
    const struct dv_api_allocated_device_status both[] = {mine[0], theirs[0]};
    struct claim claim;

    (void)state;
    claim_init(&claim, "gpu.example.com", "n1");
    assert_true(may_report(&claim, NULL, 0, mine, 1, false));
    assert_true(may_report(&claim, mine, 1, NULL, 0, false));
    assert_true(may_report(&claim, theirs, 1, both, 2, false));
    assert_false(may_report(&claim, NULL, 0, theirs, 1, false));
    assert_false(may_report(&claim, both, 2, mine, 1, false));
    assert_false(may_report(&claim, NULL, 0, mine, 1, true)); /* reservedFor is not its own */
    claim_init(&claim, "gpu.example.com", "n2");
    assert_false(may_report(&claim, NULL, 0, mine, 1, false));
    claim_init(&claim, "nic.example.com", "n1");
    assert_false(may_report(&claim, NULL, 0, mine, 1, false));
    claim.claim.status.allocation = NULL;
    assert_false(may_report(&claim, NULL, 0, mine, 1, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_may_do_what_the_table_says),
        cmocka_unit_test(paths_are_open_to_those_who_need_them),
        cmocka_unit_test(roles_are_for_others_than_our_own_users),
        cmocka_unit_test(a_group_without_a_name_gives_nothing),
        cmocka_unit_test(refusals_read_as_the_references),
        cmocka_unit_test(slices_are_written_by_their_own_driver_on_their_own_node),
        cmocka_unit_test(a_node_makes_no_lease_for_another),
        cmocka_unit_test(drivers_report_their_own_devices_of_their_own_claims),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
