/* auth.c - users, and the rules of what they may ask for. */
#include "serve/auth.h"

#include "base/arena.h"
#include "base/buf.h"
#include "resource/resource.h"

#define REASON_BYTES_MAX 2048u
#define LEASE_SPACE "kube-node-lease"

/* ---- users ---- */

static bool is_in(const struct dv_api_user_info *user, dv_str group)
{
    for (size_t i = 0; i < user->n_groups; i++)
        if (dv_str_eq(user->groups[i], group))
            return true;
    return false;
}

static dv_str extra_of(const struct dv_api_user_info *user, dv_str key)
{
    for (size_t i = 0; i < user->n_extra; i++)
        if (dv_str_eq(user->extra[i].key, key) && user->extra[i].value.n)
            return user->extra[i].value.v[0];
    return DV_STR_NONE;
}

enum dv_auth_scope dv_auth_scope(const struct dv_api_user_info *user, dv_str *node, dv_str *driver)
{
    const dv_str prefix = DV_STR(DV_USER_NODE_PREFIX);

    *node = *driver = DV_STR_NONE;
    if (is_in(user, DV_STR(DV_GROUP_ADMINS)))
        return DV_SCOPE_ADMIN;
    if (is_in(user, DV_STR(DV_GROUP_DRIVERS))) {
        *node = extra_of(user, DV_STR(DV_EXTRA_NODE));
        *driver = extra_of(user, DV_STR(DV_EXTRA_DRIVER));
        return node->n && driver->n ? DV_SCOPE_DRIVER : DV_SCOPE_NONE;
    }
    if (is_in(user, DV_STR(DV_GROUP_NODES)) && dv_str_starts_with(user->username, prefix) &&
        user->username.n > prefix.n) {
        *node = dv_str_slice(user->username, prefix.n, user->username.n);
        return DV_SCOPE_NODE;
    }
    return DV_SCOPE_NONE;
}

static struct dv_api_user_info make_user(dv_str name, dv_str group, bool is_known,
                                         struct dv_arena *arena)
{
    struct dv_api_user_info user = {.username = name};

    user.groups = DV_NEW_ARRAY(arena, dv_str, 2);
    if (group.n)
        user.groups[user.n_groups++] = group;
    user.groups[user.n_groups++] =
        is_known ? DV_STR(DV_GROUP_AUTHENTICATED) : DV_STR(DV_GROUP_UNAUTHENTICATED);
    return user;
}

struct dv_api_user_info dv_auth_admin(dv_str name, struct dv_arena *arena)
{
    return make_user(name, DV_STR(DV_GROUP_ADMINS), true, arena);
}

struct dv_api_user_info dv_auth_node(dv_str node, struct dv_arena *arena)
{
    dv_str name = dv_str_printf(arena, DV_USER_NODE_PREFIX "%.*s", DV_FMT(node));

    return make_user(name, DV_STR(DV_GROUP_NODES), true, arena);
}

struct dv_api_user_info dv_auth_driver(dv_str driver, dv_str node, struct dv_arena *arena)
{
    dv_str name = dv_str_printf(arena, DV_USER_DRIVER_PREFIX "%.*s", DV_FMT(driver));
    struct dv_api_user_info user = make_user(name, DV_STR(DV_GROUP_DRIVERS), true, arena);
    dv_str *values = DV_NEW_ARRAY(arena, dv_str, 2);

    values[0] = node;
    values[1] = driver;
    user.n_extra = 2;
    user.extra = DV_NEW_ARRAY(arena, struct dv_strs_entry, 2);
    user.extra[0] = (struct dv_strs_entry){
        DV_STR(DV_EXTRA_NODE), {values, 1}
    };
    user.extra[1] = (struct dv_strs_entry){
        DV_STR(DV_EXTRA_DRIVER), {values + 1, 1}
    };
    return user;
}

struct dv_api_user_info dv_auth_anonymous(struct dv_arena *arena)
{
    return make_user(DV_STR(DV_USER_ANONYMOUS), DV_STR_NONE, false, arena);
}

/* ---- verbs and rules ---- */

enum {
    GET = 1,
    LIST = 2,
    WATCH = 4,
    CREATE = 8,
    UPDATE = 16,
    PATCH = 32,
    DELETE = 64,
    DELETE_COLLECTION = 128,
    READ = GET | LIST | WATCH,
    MANY = LIST | WATCH | DELETE_COLLECTION,
};

static unsigned verb_bit(dv_str verb)
{
    static const struct {
        dv_str name;
        unsigned bit;
    } verbs[] = {
        {DV_STR_INIT("get"),              GET              },
        {DV_STR_INIT("list"),             LIST             },
        {DV_STR_INIT("watch"),            WATCH            },
        {DV_STR_INIT("create"),           CREATE           },
        {DV_STR_INIT("update"),           UPDATE           },
        {DV_STR_INIT("patch"),            PATCH            },
        {DV_STR_INIT("delete"),           DELETE           },
        {DV_STR_INIT("deletecollection"), DELETE_COLLECTION},
    };

    for (size_t i = 0; i < DV_COUNT(verbs); i++)
        if (dv_str_eq(verbs[i].name, verb))
            return verbs[i].bit;
    return 0;
}

/* What else must hold. */
enum condition {
    ANYTHING,
    OWN_NODE,     /* the node itself; many only with metadata.name=NODE */
    OWN_PODS,     /* pods of the node; many only with spec.nodeName=NODE */
    OWN_SLICES,   /* slices of the node; many only with spec.nodeName=NODE */
    OF_OWN_PODS,  /* what a pod of the node refers to, by name */
    OWN_LEASE,    /* named as the node, in the namespace of such leases */
    OWN_DRIVER,   /* the driver's slices of the node: many only with both selectors */
    OWN_NODE_GET, /* the node itself */
    OWN_CHANGES,  /* resourceclaims/driver: named as the driver */
};

struct rule {
    dv_str group;
    dv_str resource;
    dv_str subresource;
    unsigned verbs;
    enum condition condition;
};

#define RESOURCE_GROUP DV_STR_INIT("resource.k8s.io")
#define AUTHN_GROUP DV_STR_INIT("authentication.k8s.io")
#define AUTHZ_GROUP DV_STR_INIT("authorization.k8s.io")
#define LEASE_GROUP DV_STR_INIT("coordination.k8s.io")
#define EVENT_GROUP DV_STR_INIT("events.k8s.io")

/* Everybody who has shown who he is. */
static const struct rule basic_rules[] = {
    {AUTHN_GROUP, DV_STR_INIT("selfsubjectreviews"),       {0}, CREATE, ANYTHING},
    {AUTHZ_GROUP, DV_STR_INIT("selfsubjectaccessreviews"), {0}, CREATE, ANYTHING},
    {AUTHZ_GROUP, DV_STR_INIT("selfsubjectrulesreviews"),  {0}, CREATE, ANYTHING},
};

static const struct rule node_rules[] = {
    {{0},            DV_STR_INIT("nodes"),                     {0},                     READ | CREATE | UPDATE | PATCH,         OWN_NODE   },
    {{0},            DV_STR_INIT("nodes"),                     DV_STR_INIT("status"),   UPDATE | PATCH,                         OWN_NODE   },
    {{0},            DV_STR_INIT("pods"),                      {0},                     READ | CREATE | DELETE,                 OWN_PODS   },
    {{0},            DV_STR_INIT("pods"),                      DV_STR_INIT("status"),   UPDATE | PATCH,                         OWN_PODS   },
    {{0},            DV_STR_INIT("pods"),                      DV_STR_INIT("eviction"), CREATE,                                 OWN_PODS   },
    {{0},            DV_STR_INIT("events"),                    {0},                     CREATE | UPDATE | PATCH,                ANYTHING   },
    {EVENT_GROUP,    DV_STR_INIT("events"),                    {0},                     CREATE | UPDATE | PATCH,                ANYTHING   },
    {{0},            DV_STR_INIT("secrets"),                   {0},                     READ,                                   OF_OWN_PODS},
    {{0},            DV_STR_INIT("configmaps"),                {0},                     READ,                                   OF_OWN_PODS},
    {{0},            DV_STR_INIT("serviceaccounts"),           {0},                     GET,                                    OF_OWN_PODS},
    {{0},            DV_STR_INIT("serviceaccounts"),           DV_STR_INIT("token"),    CREATE,                                 OF_OWN_PODS},
    {LEASE_GROUP,    DV_STR_INIT("leases"),                    {0},                     GET | CREATE | UPDATE | PATCH | DELETE, OWN_LEASE  },
    {RESOURCE_GROUP, DV_STR_INIT("resourceclaims"),            {0},                     GET,                                    OF_OWN_PODS},
    {RESOURCE_GROUP,
     DV_STR_INIT("resourceslices"),
     {0},
     GET | CREATE | UPDATE | PATCH | DELETE | MANY,
     OWN_SLICES                                                                                                                            },
    {AUTHN_GROUP,    DV_STR_INIT("tokenreviews"),              {0},                     CREATE,                                 ANYTHING   },
    {AUTHZ_GROUP,    DV_STR_INIT("subjectaccessreviews"),      {0},                     CREATE,                                 ANYTHING   },
    {AUTHZ_GROUP,    DV_STR_INIT("localsubjectaccessreviews"), {0},                     CREATE,                                 ANYTHING   },
};

static const struct rule driver_rules[] = {
    {{0},            DV_STR_INIT("nodes"),          {0},                   GET,                     OWN_NODE_GET},
    {{0},            DV_STR_INIT("events"),         {0},                   CREATE | UPDATE | PATCH, ANYTHING    },
    {EVENT_GROUP,    DV_STR_INIT("events"),         {0},                   CREATE | UPDATE | PATCH, ANYTHING    },
    {RESOURCE_GROUP, DV_STR_INIT("deviceclasses"),  {0},                   READ,                    ANYTHING    },
    {RESOURCE_GROUP, DV_STR_INIT("resourceclaims"), {0},                   GET,                     ANYTHING    },
    {RESOURCE_GROUP, DV_STR_INIT("resourceclaims"), DV_STR_INIT("status"), UPDATE | PATCH,
     ANYTHING                                                                                                   },
    {RESOURCE_GROUP,
     DV_STR_INIT("resourceslices"),
     {0},
     READ | CREATE | UPDATE | PATCH | DELETE,
     ANYTHING                                                                                                   },
    {RESOURCE_GROUP, DV_STR_INIT("resourceslices"), {0},                   DELETE_COLLECTION,       OWN_DRIVER  },
};

/* The pieces of a selector all have to hold, so that one which demands the value is enough. */
static bool demands(dv_str selector, const char *label, dv_str value, struct dv_arena *arena)
{
    dv_str rest = selector;
    dv_str piece;
    dv_str one = dv_str_printf(arena, "%s=%.*s", label, DV_FMT(value));
    dv_str two = dv_str_printf(arena, "%s==%.*s", label, DV_FMT(value));

    while (rest.n && dv_str_split(&rest, ',', &piece))
        if (dv_str_eq(piece, one) || dv_str_eq(piece, two))
            return true;
    return false;
}

struct question {
    const struct dv_auth_request *request;
    const struct dv_auth_relations *relations;
    dv_str node;
    dv_str driver;
    unsigned verb;
    struct dv_arena *arena;
    dv_str *reason;
};

static bool refuse(const struct question *q, dv_str reason)
{
    *q->reason = reason;
    return false;
}

static bool is_related(const struct question *q)
{
    if (q->relations && q->request->name.n &&
        q->relations->is_of_node(q->relations->ctx, q->node, q->request))
        return true;
    return refuse(q, dv_str_printf(q->arena,
                                   "no relationship found between node '%.*s' and this object",
                                   DV_FMT(q->node)));
}

static bool is_own_node(const struct question *q)
{
    dv_str name = q->request->name;

    if (q->verb & MANY)
        return demands(q->request->field_selector, "metadata.name", q->node, q->arena) ||
               refuse(q, dv_str_printf(q->arena,
                                       "node '%.*s' cannot read all nodes, only its own Node "
                                       "object",
                                       DV_FMT(q->node)));
    if (dv_str_eq(name, q->node) || (q->verb == CREATE && !name.n))
        return true;
    return refuse(q,
                  dv_str_printf(q->arena, "node '%.*s' cannot %s '%.*s', only its own Node object",
                                DV_FMT(q->node), q->verb == GET ? "read" : "change", DV_FMT(name)));
}

static bool is_own_pod(const struct question *q)
{
    if (q->verb & MANY)
        return demands(q->request->field_selector, "spec.nodeName", q->node, q->arena) ||
               refuse(q, DV_STR("can only list/watch pods with spec.nodeName field selector"));
    return (q->verb == CREATE && !q->request->name.n) || is_related(q);
}

static bool is_own_slice(const struct question *q)
{
    if (q->verb & MANY)
        return demands(q->request->field_selector, "spec.nodeName", q->node, q->arena) ||
               refuse(q, DV_STR("can only list/watch/deletecollection resourceslices with "
                                "nodeName field selector"));
    return q->verb == CREATE || is_related(q);
}

static bool is_of_own_pod(const struct question *q)
{
    if (!q->request->name.n)
        return refuse(q, DV_STR("can only get individual resources of this type"));
    return is_related(q);
}

static bool is_own_lease(const struct question *q)
{
    if (!dv_str_eq(q->request->space, DV_STR(LEASE_SPACE)))
        return refuse(q,
                      DV_STR("can only access leases in the \"" LEASE_SPACE "\" system namespace"));
    if (dv_str_eq(q->request->name, q->node) || (q->verb == CREATE && !q->request->name.n))
        return true;
    return refuse(q,
                  DV_STR("can only access node lease with the same name as the requesting node"));
}

static bool is_own_driver(const struct question *q)
{
    dv_str selector = q->request->field_selector;

    return (demands(selector, "spec.nodeName", q->node, q->arena) &&
            demands(selector, "spec.driver", q->driver, q->arena)) ||
           refuse(q, DV_STR("can only delete many slices with field selectors for the driver and "
                            "its node"));
}

static bool holds(enum condition condition, const struct question *q)
{
    switch (condition) {
    case ANYTHING:
        return true;
    case OWN_NODE:
    case OWN_NODE_GET:
        return is_own_node(q);
    case OWN_PODS:
        return is_own_pod(q);
    case OWN_SLICES:
        return is_own_slice(q);
    case OF_OWN_PODS:
        return is_of_own_pod(q);
    case OWN_LEASE:
        return is_own_lease(q);
    case OWN_DRIVER:
        return is_own_driver(q);
    case OWN_CHANGES:
        return dv_str_eq(q->request->name, q->driver);
    }
    return false;
}

static bool is_allowed_by(const struct rule *rules, size_t n, const struct question *q)
{
    const struct dv_auth_request *request = q->request;

    for (size_t i = 0; i < n; i++)
        if ((rules[i].verbs & q->verb) && dv_str_eq(rules[i].group, request->group) &&
            dv_str_eq(rules[i].resource, request->resource) &&
            dv_str_eq(rules[i].subresource, request->subresource))
            return holds(rules[i].condition, q);
    return false;
}

/* ---- paths ---- */

static bool is_under(dv_str path, dv_str root)
{
    return dv_str_eq(path, root) ||
           (dv_str_starts_with(path, root) && path.n > root.n && path.p[root.n] == '/');
}

/* What runs on a node is the business of its own program, and of no driver. */
static bool may_see_node(enum dv_auth_scope scope, dv_str node,
                         const struct dv_auth_request *request)
{
    return scope == DV_SCOPE_NODE && dv_str_eq(request->verb, DV_STR("get")) &&
           dv_str_eq(request->path, DV_STR("/davit/v1/node")) && dv_str_eq(request->name, node);
}

static bool is_path_open(const struct dv_api_user_info *user, const struct dv_auth_request *request)
{
    static const dv_str to_all[] = {
        DV_STR_INIT("/version"),
        DV_STR_INIT("/healthz"),
        DV_STR_INIT("/livez"),
        DV_STR_INIT("/readyz"),
    };
    static const dv_str to_known[] = {DV_STR_INIT("/api"), DV_STR_INIT("/apis"),
                                      DV_STR_INIT("/openapi")};

    if (!dv_str_eq(request->verb, DV_STR("get")))
        return false;
    for (size_t i = 0; i < DV_COUNT(to_all); i++)
        if (dv_str_eq(request->path, to_all[i]))
            return true;
    if (!is_in(user, DV_STR(DV_GROUP_AUTHENTICATED)))
        return false;
    for (size_t i = 0; i < DV_COUNT(to_known); i++)
        if (is_under(request->path, to_known[i]))
            return true;
    return false;
}

/* Verbs that stand for changes of status.devices: "associated-node:update" on the driver's name. */
static bool is_own_change(const struct question *q)
{
    return dv_str_eq(q->request->group, DV_STR("resource.k8s.io")) &&
           dv_str_eq(q->request->resource, DV_STR("resourceclaims")) &&
           dv_str_eq(q->request->subresource, DV_STR("driver")) &&
           (dv_str_eq(q->request->verb, DV_STR("associated-node:update")) ||
            dv_str_eq(q->request->verb, DV_STR("associated-node:patch"))) &&
           holds(OWN_CHANGES, q);
}

bool dv_auth_decide(const struct dv_api_user_info *user, const struct dv_auth_request *request,
                    const struct dv_auth_relations *relations, struct dv_arena *arena,
                    dv_str *reason)
{
    struct question q = {request, relations, {0}, {0}, verb_bit(request->verb), arena, reason};
    enum dv_auth_scope scope = dv_auth_scope(user, &q.node, &q.driver);

    *reason = DV_STR_NONE;
    if (scope == DV_SCOPE_ADMIN)
        return true;
    if (request->path.n)
        return may_see_node(scope, q.node, request) || is_path_open(user, request);
    if (is_in(user, DV_STR(DV_GROUP_AUTHENTICATED)) &&
        is_allowed_by(basic_rules, DV_COUNT(basic_rules), &q))
        return true;
    if (scope == DV_SCOPE_NODE)
        return is_allowed_by(node_rules, DV_COUNT(node_rules), &q);
    if (scope == DV_SCOPE_DRIVER)
        return is_own_change(&q) || is_allowed_by(driver_rules, DV_COUNT(driver_rules), &q);
    return false;
}

dv_str dv_auth_refusal(const struct dv_api_user_info *user, const struct dv_auth_request *request,
                       dv_str reason, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, REASON_BYTES_MAX);
    dv_buf_printf(&buf, "User \"%.*s\" cannot %.*s ", DV_FMT(user->username),
                  DV_FMT(request->verb));
    if (request->path.n) {
        dv_buf_printf(&buf, "path \"%.*s\"", DV_FMT(request->path));
    } else {
        dv_buf_printf(&buf, "resource \"%.*s", DV_FMT(request->resource));
        if (request->subresource.n)
            dv_buf_printf(&buf, "/%.*s", DV_FMT(request->subresource));
        dv_buf_printf(&buf, "\" in API group \"%.*s\" ", DV_FMT(request->group));
        if (request->space.n)
            dv_buf_printf(&buf, "in the namespace \"%.*s\"", DV_FMT(request->space));
        else
            dv_buf_add_c(&buf, "at the cluster scope");
    }
    if (reason.n)
        dv_buf_printf(&buf, ": %.*s", DV_FMT(reason));
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}
