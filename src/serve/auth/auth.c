/* auth.c - users, and the rules of what they may ask for. */
#include "serve/auth.h"

#include <stddef.h>

#include "access/access.h"
#include "base/arena.h"
#include "base/buf.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "serve/auth/auth_rules.h"

#define REASON_BYTES_MAX 2048u

/* ---- users ---- */

bool dv_auth_is_in(const struct dv_api_user_info *user, dv_str group)
{
    for (size_t i = 0; i < user->n_groups; i++)
        if (dv_str_eq(user->groups[i], group))
            return true;
    return false;
}

struct dv_strs dv_auth_extra(const struct dv_api_user_info *user, dv_str key)
{
    for (size_t i = 0; i < user->n_extra; i++)
        if (dv_str_eq(user->extra[i].key, key))
            return user->extra[i].value;
    return (struct dv_strs){0};
}

void dv_auth_add_extra(struct dv_api_user_info *user, dv_str key, const dv_str *values,
                       size_t n_values, struct dv_arena *arena)
{
    struct dv_strs_entry *extra = DV_NEW_ARRAY(arena, struct dv_strs_entry, user->n_extra + 1);
    dv_str *copies = DV_NEW_ARRAY(arena, dv_str, n_values);

    if (n_values == 0)
        return;
    for (size_t i = 0; i < n_values; i++)
        copies[i] = values[i];
    for (size_t i = 0; i < user->n_extra; i++)
        extra[i] = user->extra[i];
    extra[user->n_extra++] = (struct dv_strs_entry){
        key, {copies, n_values}
    };
    user->extra = extra;
}

static dv_str extra_of(const struct dv_api_user_info *user, dv_str key)
{
    struct dv_strs values = dv_auth_extra(user, key);

    return values.n > 0 ? values.v[0] : DV_STR_NONE;
}

enum dv_auth_scope dv_auth_scope(const struct dv_api_user_info *user, dv_str *node, dv_str *driver)
{
    const dv_str prefix = DV_STR(DV_USER_NODE_PREFIX);
    bool is_anywhere;

    *node = *driver = DV_STR_NONE;
    if (dv_auth_is_in(user, DV_STR(DV_GROUP_ADMINS)))
        return DV_SCOPE_ADMIN;
    if (dv_auth_is_in(user, DV_STR(DV_GROUP_DRIVERS))) {
        *node = extra_of(user, DV_STR(DV_EXTRA_NODE));
        *driver = extra_of(user, DV_STR(DV_EXTRA_DRIVER));
        is_anywhere = dv_str_eq(extra_of(user, DV_STR(DV_EXTRA_ALL_NODES)), DV_STR("true"));
        return driver->n && is_anywhere == !node->n ? DV_SCOPE_DRIVER : DV_SCOPE_NONE;
    }
    if (dv_auth_is_in(user, DV_STR(DV_GROUP_NODES)) && dv_str_starts_with(user->username, prefix) &&
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

struct dv_api_user_info dv_auth_node_proxy(dv_str node, struct dv_arena *arena)
{
    dv_str name = dv_str_printf(arena, DV_USER_NODE_PROXY_PREFIX "%.*s", DV_FMT(node));

    return make_user(name, DV_STR(DV_GROUP_NODE_PROXIES), true, arena);
}

struct dv_api_user_info dv_auth_driver(dv_str driver, dv_str node, struct dv_arena *arena)
{
    dv_str name = dv_str_printf(arena, DV_USER_DRIVER_PREFIX "%.*s", DV_FMT(driver));
    struct dv_api_user_info user = make_user(name, DV_STR(DV_GROUP_DRIVERS), true, arena);
    dv_str *values = DV_NEW_ARRAY(arena, dv_str, 2);

    values[0] = node.n ? node : DV_STR("true");
    values[1] = driver;
    user.n_extra = 2;
    user.extra = DV_NEW_ARRAY(arena, struct dv_strs_entry, 2);
    user.extra[0] = (struct dv_strs_entry){
        node.n ? DV_STR(DV_EXTRA_NODE) : DV_STR(DV_EXTRA_ALL_NODES), {values, 1}
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

/* ---- verbs ---- */

unsigned dv_auth_verb(dv_str name)
{
    static const struct {
        dv_str name;
        unsigned bit;
    } verbs[] = {
        {DV_STR_INIT("get"),              DV_MAY_GET              },
        {DV_STR_INIT("list"),             DV_MAY_LIST             },
        {DV_STR_INIT("watch"),            DV_MAY_WATCH            },
        {DV_STR_INIT("create"),           DV_MAY_CREATE           },
        {DV_STR_INIT("update"),           DV_MAY_UPDATE           },
        {DV_STR_INIT("patch"),            DV_MAY_PATCH            },
        {DV_STR_INIT("delete"),           DV_MAY_DELETE           },
        {DV_STR_INIT("deletecollection"), DV_MAY_DELETE_COLLECTION},
    };

    for (size_t i = 0; i < DV_COUNT(verbs); i++)
        if (dv_str_eq(verbs[i].name, name))
            return verbs[i].bit;
    return 0;
}

bool dv_auth_refuse(const struct dv_auth_question *q, dv_str reason)
{
    *q->reason = reason;
    return false;
}

bool dv_auth_is_about(const struct dv_auth_question *q, dv_str group, dv_str resource)
{
    return dv_str_eq(q->request->group, group) && dv_str_eq(q->request->resource, resource);
}

/* Whether the selector demands this value. All parts of a selector have to hold, so one that
 * demands it is enough. The text is parsed as the list will parse it: a comma may be escaped, and
 * then ends no part. */
bool dv_auth_demands(const struct dv_auth_question *q, const char *label, dv_str value)
{
    dv_str demanded;

    return dv_field_selector_text_demands(q->request->field_selector, dv_str_from_c(label),
                                          q->arena, &demanded) &&
           dv_str_eq(demanded, value);
}

/* Whether the question is about the user itself: everybody who is authenticated may ask who they
 * are and what they may do. */
static bool is_about_oneself(const struct dv_auth_question *q)
{
    static const struct {
        dv_str group;
        dv_str resource;
    } reviews[] = {
        {DV_STR_INIT("authentication.k8s.io"), DV_STR_INIT("selfsubjectreviews")      },
        {DV_STR_INIT("authorization.k8s.io"),  DV_STR_INIT("selfsubjectaccessreviews")},
        {DV_STR_INIT("authorization.k8s.io"),  DV_STR_INIT("selfsubjectrulesreviews") },
    };

    for (size_t i = 0; i < DV_COUNT(reviews); i++)
        if (dv_auth_is_about(q, reviews[i].group, reviews[i].resource))
            return q->verb == DV_MAY_CREATE && !q->request->subresource.n;
    return false;
}

/* Whether the API itself asks what is served by the node that it has this name for. A node that was
 * broken into and shows the name to another node gets nothing there. */
static bool is_proxy_of_node(const struct dv_auth_question *q)
{
    const dv_str prefix = DV_STR(DV_USER_NODE_PROXY_PREFIX);
    dv_str user = q->user->username;

    return dv_auth_is_in(q->user, DV_STR(DV_GROUP_NODE_PROXIES)) && user.n > prefix.n &&
           dv_str_starts_with(user, prefix) &&
           dv_str_eq(dv_str_slice(user, prefix.n, user.n), q->request->name) &&
           dv_auth_is_about(q, DV_STR_NONE, DV_STR("nodes")) &&
           dv_str_eq(q->request->subresource, DV_STR("proxy")) &&
           (q->verb == DV_MAY_GET || q->verb == DV_MAY_CREATE);
}

/* ---- paths ---- */

static bool is_under(dv_str path, dv_str root)
{
    return dv_str_eq(path, root) ||
           (dv_str_starts_with(path, root) && path.n > root.n && path.p[root.n] == '/');
}

/* Whether the user may see what runs on a node: its own program may, and no driver. */
static bool may_see_node(enum dv_auth_scope scope, dv_str node,
                         const struct dv_auth_request *request)
{
    return scope == DV_SCOPE_NODE && dv_str_eq(request->verb, DV_STR("get")) &&
           dv_str_eq(request->path, DV_STR("/davit/v1/node")) && dv_str_eq(request->name, node);
}

/* Whether everybody may see it, whatever roles say: who watches davitd needs no rights for that. */
static bool is_path_open_to_all(const struct dv_auth_request *request)
{
    static const dv_str paths[] = {
        DV_STR_INIT("/version"),
        DV_STR_INIT("/healthz"),
        DV_STR_INIT("/livez"),
        DV_STR_INIT("/readyz"),
    };

    for (size_t i = 0; i < DV_COUNT(paths); i++)
        if (dv_str_eq(request->path, paths[i]))
            return dv_str_eq(request->verb, DV_STR("get"));
    return false;
}

/* Whether the path says what the API offers, which all of davit's own users may see. */
static bool is_discovery(const struct dv_auth_request *request)
{
    static const dv_str paths[] = {DV_STR_INIT("/api"), DV_STR_INIT("/apis"),
                                   DV_STR_INIT("/openapi")};

    for (size_t i = 0; i < DV_COUNT(paths); i++)
        if (is_under(request->path, paths[i]))
            return dv_str_eq(request->verb, DV_STR("get"));
    return false;
}

/* ---- roles ---- */

static struct dv_access_request as_access(const struct dv_auth_request *request)
{
    return (struct dv_access_request){
        .verb = request->verb,
        .path = request->path,
        .group = request->group,
        .resource = request->resource,
        .subresource = request->subresource,
        .namespace = request->namespace,
        .name = request->name,
    };
}

bool dv_auth_is_by_roles(const struct dv_api_user_info *user)
{
    dv_str node, driver;

    return dv_auth_scope(user, &node, &driver) == DV_SCOPE_NONE &&
           !dv_auth_is_in(user, DV_STR(DV_GROUP_NODE_PROXIES));
}

static bool decide_by_roles(const struct dv_auth_question *q)
{
    struct dv_access_request request = as_access(q->request);

    if (!q->relations || !q->relations->access)
        return false;
    /* Who makes tokens can make an administrator's: a role for all paths must not give that. */
    if (is_under(q->request->path, DV_STR("/davit/v1/tokens")))
        return dv_auth_refuse(q, DV_STR("tokens are made by administrators"));
    if (dv_access_allows(q->relations->access, q->user, &request))
        return true;
    return dv_auth_refuse(q, dv_access_reason(q->relations->access, q->user, &request, q->arena));
}

dv_str dv_auth_allowed_by(const struct dv_api_user_info *user,
                          const struct dv_auth_request *request,
                          const struct dv_auth_relations *relations, struct dv_arena *arena)
{
    struct dv_access_request asked = as_access(request);

    if (!dv_auth_is_by_roles(user) || !relations->access)
        return DV_STR_NONE;
    return dv_access_reason(relations->access, user, &asked, arena);
}

bool dv_auth_decide(const struct dv_api_user_info *user, const struct dv_auth_request *request,
                    const struct dv_auth_relations *relations, struct dv_arena *arena,
                    dv_str *reason)
{
    struct dv_auth_question q = {.user = user,
                                 .request = request,
                                 .relations = relations,
                                 .verb = dv_auth_verb(request->verb),
                                 .arena = arena,
                                 .reason = reason};
    enum dv_auth_scope scope = dv_auth_scope(user, &q.node, &q.driver);

    *reason = DV_STR_NONE;
    if (scope == DV_SCOPE_ADMIN)
        return true;
    if (request->path.n && is_path_open_to_all(request))
        return true;
    if (dv_auth_is_by_roles(user))
        return decide_by_roles(&q);
    if (request->path.n)
        return may_see_node(scope, q.node, request) || is_discovery(request);
    if (is_about_oneself(&q))
        return true;
    if (scope == DV_SCOPE_NONE)
        return is_proxy_of_node(&q);
    if (scope == DV_SCOPE_NODE)
        return dv_auth_decide_node(&q);
    return scope == DV_SCOPE_DRIVER && dv_auth_decide_driver(&q);
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
        if (request->namespace.n)
            dv_buf_printf(&buf, "in the namespace \"%.*s\"", DV_FMT(request->namespace));
        else
            dv_buf_add_c(&buf, "at the cluster scope");
    }
    if (reason.n)
        dv_buf_printf(&buf, ": %.*s", DV_FMT(reason));
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}
