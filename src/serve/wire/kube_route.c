/* kube_route.c - parses paths: /api/v1/namespaces/NS/RESOURCE/NAME/SUBRESOURCE and all others. */
#include "serve/wire/kube_route.h"

#include <string.h>

#include "base/arena.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "rest/rest.h"

/* The longest path is /apis/GROUP/VERSION/watch/namespaces/NS/RESOURCE/NAME/SUBRESOURCE; one
 * segment more is kept to notice that there are too many. */
#define SEGMENTS_MAX 10u

struct segments {
    dv_str v[SEGMENTS_MAX];
    size_t n;
    bool is_more;  /* there are more than fit */
    bool is_empty; /* one of them is empty, other than the last */
};

/* Decodes the path. A slash that was sent as %2f separates like any other, as in the reference. */
static dv_str decode(dv_str path, struct dv_arena *arena)
{
    char *text = dv_arena_alloc(arena, path.n + 1, 1);
    size_t n = 0;
    dv_str rest = path;
    dv_str segment;

    while (dv_rest_path_next(&rest, arena, &segment)) {
        text[n++] = '/';
        if (segment.n)
            memcpy(text + n, segment.p, segment.n);
        n += segment.n;
    }
    return (dv_str){text, n};
}

static void split(dv_str path, struct segments *segments)
{
    dv_str rest = dv_str_slice(path, 1, path.n);
    dv_str piece;

    if (rest.n && rest.p[rest.n - 1] == '/')
        rest.n--; /* a slash at the end changes nothing */
    while (rest.n && dv_str_split(&rest, '/', &piece)) {
        if (!piece.n)
            segments->is_empty = true;
        if (segments->n == SEGMENTS_MAX) {
            segments->is_more = true;
            return;
        }
        segments->v[segments->n++] = piece;
    }
}

/* ---- resources ---- */

static const struct {
    dv_str group;
    dv_str resource;
    enum dv_review review;
} reviews[] = {
    {{0},                                  DV_STR_INIT("bindings"),                  DV_REVIEW_BINDING},
    {DV_STR_INIT("authentication.k8s.io"), DV_STR_INIT("tokenreviews"),              DV_REVIEW_TOKEN  },
    {DV_STR_INIT("authentication.k8s.io"), DV_STR_INIT("selfsubjectreviews"),        DV_REVIEW_SELF   },
    {DV_STR_INIT("authorization.k8s.io"),  DV_STR_INIT("subjectaccessreviews"),      DV_REVIEW_ACCESS },
    {DV_STR_INIT("authorization.k8s.io"),  DV_STR_INIT("selfsubjectaccessreviews"),
     DV_REVIEW_SELF_ACCESS                                                                            },
    {DV_STR_INIT("authorization.k8s.io"),  DV_STR_INIT("localsubjectaccessreviews"),
     DV_REVIEW_LOCAL_ACCESS                                                                           },
    {DV_STR_INIT("authorization.k8s.io"),  DV_STR_INIT("selfsubjectrulesreviews"),
     DV_REVIEW_SELF_RULES                                                                             },
};

static enum dv_review find_review(const struct dv_route *route)
{
    for (size_t i = 0; i < DV_COUNT(reviews); i++)
        if (dv_str_eq(reviews[i].group, route->group) &&
            dv_str_eq(reviews[i].resource, route->resource))
            return reviews[i].review;
    return DV_REVIEW_NONE;
}

static bool find_subresource(struct dv_route *route)
{
    static const struct {
        enum dv_kind_id kind;
        dv_str name;
        enum dv_subresource sub;
    } known[] = {
        {DV_KIND_POD,             DV_STR_INIT("binding"),     DV_SUB_BINDING },
        {DV_KIND_POD,             DV_STR_INIT("eviction"),    DV_SUB_EVICTION},
        {DV_KIND_NAMESPACE,       DV_STR_INIT("finalize"),    DV_SUB_FINALIZE},
 /* These are no objects. */
        {DV_KIND_POD,             DV_STR_INIT("attach"),      DV_SUB_NONE    },
        {DV_KIND_POD,             DV_STR_INIT("exec"),        DV_SUB_NONE    },
        {DV_KIND_POD,             DV_STR_INIT("log"),         DV_SUB_NONE    },
        {DV_KIND_POD,             DV_STR_INIT("portforward"), DV_SUB_NONE    },
        {DV_KIND_SERVICE_ACCOUNT, DV_STR_INIT("token"),       DV_SUB_NONE    },
    };

    const struct dv_custom_version *custom =
        dv_kind_is_custom(route->kind) ? dv_custom_version_of(route->api_version) : NULL;

    route->sub = DV_SUB_NONE;
    if (!route->subresource.n)
        return true;
    if (dv_str_eq(route->subresource, DV_STR("status"))) {
        route->sub = DV_SUB_STATUS;
        return custom ? custom->has_status : route->kind->has_status;
    }
    if (dv_str_eq(route->subresource, DV_STR("scale"))) {
        route->sub = DV_SUB_SCALE;
        return custom ? custom->scale != NULL : route->kind->has_scale;
    }
    for (size_t i = 0; i < DV_COUNT(known); i++)
        if (known[i].kind == route->kind->id && dv_str_eq(known[i].name, route->subresource)) {
            route->sub = known[i].sub;
            return true;
        }
    return false;
}

/* Whether a namespaced resource has a namespace wherever it has a name, and a cluster-wide one has
 * none. */
static bool is_scope_right(const struct dv_route *route)
{
    if (route->kind->id == DV_KIND_NAMESPACE)
        return true;
    if (route->kind->is_namespaced)
        return route->namespace.n || !route->name.n;
    return !route->namespace.n;
}

static bool is_stream(dv_str subresource)
{
    return dv_str_eq(subresource, DV_STR("attach")) || dv_str_eq(subresource, DV_STR("exec")) ||
           dv_str_eq(subresource, DV_STR("portforward"));
}

static void find_kind(struct dv_route *route)
{
    size_t n;
    const struct dv_kind *empty = dv_empty_kinds(&n);
    const struct dv_custom_version *custom;

    route->kind =
        dv_kind_by_plural(route->group, route->version, route->resource, &route->api_version);
    if (!route->kind) {
        route->kind = dv_custom_set_find(route->customs, route->group, route->version,
                                         route->resource, true, &custom);
        if (route->kind)
            route->api_version = &custom->api;
    }
    for (size_t i = 0; !route->kind && i < n; i++)
        if (dv_str_eq(empty[i].plural, route->resource) &&
            dv_str_eq(empty[i].versions->group, route->group) &&
            dv_str_eq(empty[i].versions->version, route->version)) {
            route->kind = &empty[i];
            route->api_version = empty[i].versions;
            route->is_empty = true;
        }
}

static void find_resource(struct dv_route *route)
{
    route->what = DV_ROUTE_NO_RESOURCE;
    if (!route->resource.n)
        return;
    find_kind(route);
    if (route->kind) {
        if (!find_subresource(route) || !is_scope_right(route))
            return;
        route->what = DV_ROUTE_OBJECTS;
        if (dv_str_eq(route->subresource, DV_STR("token"))) {
            route->what = DV_ROUTE_REVIEW;
            route->review = DV_REVIEW_TOKEN_REQUEST;
        } else if (dv_str_eq(route->subresource, DV_STR("log"))) {
            route->what = route->is_watch ? DV_ROUTE_NO_RESOURCE : DV_ROUTE_LOG;
        } else if (route->kind->id == DV_KIND_POD && is_stream(route->subresource)) {
            route->what = route->is_watch ? DV_ROUTE_NO_RESOURCE : DV_ROUTE_STREAM;
        }
        return;
    }
    if (route->name.n || !dv_api_has_version(route->customs, route->group, route->version))
        return;
    route->review = find_review(route);
    if (route->review != DV_REVIEW_NONE)
        route->what = DV_ROUTE_REVIEW;
}

/* Parses what follows the version. */
static void parse_resource(const dv_str *v, size_t n, bool is_more, struct dv_route *route)
{
    size_t i = 0;

    route->is_resource = true;
    if (n > 1 && dv_str_eq(v[0], DV_STR("watch"))) {
        route->is_watch = true;
        i++;
    }
    if (i < n && dv_str_eq(v[i], DV_STR("namespaces")) && i + 1 < n) {
        route->namespace = v[i + 1];
        if (i + 2 < n && !dv_str_eq(v[i + 2], DV_STR("status")) &&
            !dv_str_eq(v[i + 2], DV_STR("finalize")))
            i += 2;
    }
    route->resource = i < n ? v[i] : DV_STR_NONE;
    route->name = i + 1 < n ? v[i + 1] : DV_STR_NONE;
    route->subresource = i + 2 < n ? v[i + 2] : DV_STR_NONE;
    if (i + 3 < n || is_more)
        route->what = DV_ROUTE_NO_RESOURCE;
    else
        find_resource(route);
}

/* ---- everything ---- */

static void parse_core(const struct segments *s, struct dv_route *route)
{
    if (s->n == 1) {
        route->what = DV_ROUTE_CORE;
        return;
    }
    route->version = s->v[1];
    if (s->n == 2)
        route->what = dv_api_has_version(route->customs, DV_STR_NONE, route->version)
                          ? DV_ROUTE_RESOURCES
                          : DV_ROUTE_NO_RESOURCE;
    else
        parse_resource(s->v + 2, s->n - 2, s->is_more, route);
}

static void parse_groups(const struct segments *s, struct dv_route *route)
{
    if (s->n == 1) {
        route->what = DV_ROUTE_GROUPS;
        return;
    }
    route->group = s->v[1];
    if (s->n == 2) {
        route->what =
            dv_api_has_group(route->customs, route->group) ? DV_ROUTE_GROUP : DV_ROUTE_NO_PAGE;
        return;
    }
    route->version = s->v[2];
    if (s->n > 3)
        parse_resource(s->v + 3, s->n - 3, s->is_more, route);
    else
        route->what = dv_api_has_version(route->customs, route->group, route->version)
                          ? DV_ROUTE_RESOURCES
                          : DV_ROUTE_NO_RESOURCE;
    if (!dv_api_has_group(route->customs, route->group))
        route->what = DV_ROUTE_NO_PAGE;
}

static void parse_openapi(const struct segments *s, struct dv_route *route)
{
    size_t prefix = sizeof("/openapi/v3/") - 1;

    if (s->n == 2 && dv_str_eq(s->v[1], DV_STR("v2"))) {
        route->what = DV_ROUTE_OPENAPI_V2;
    } else if (s->n >= 2 && dv_str_eq(s->v[1], DV_STR("v3"))) {
        route->what = DV_ROUTE_OPENAPI_V3;
        route->openapi = dv_str_slice(route->path, prefix, route->path.n);
    }
}

/* Parses what is told about signed tokens. */
static void parse_openid(const struct segments *s, struct dv_route *route)
{
    if (s->n == 2 && dv_str_eq(s->v[0], DV_STR(".well-known")) &&
        dv_str_eq(s->v[1], DV_STR("openid-configuration")))
        route->what = DV_ROUTE_ISSUER;
    else if (s->n == 3 && dv_str_eq(s->v[0], DV_STR("openid")) &&
             dv_str_eq(s->v[1], DV_STR("v1")) && dv_str_eq(s->v[2], DV_STR("jwks")))
        route->what = DV_ROUTE_KEYS;
}

static void parse_page(const struct segments *s, struct dv_route *route)
{
    static const struct {
        dv_str name;
        enum dv_route_what what;
    } pages[] = {
        {DV_STR_INIT("version"), DV_ROUTE_VERSION_INFO},
        {DV_STR_INIT("metrics"), DV_ROUTE_METRICS     },
        {DV_STR_INIT("healthz"), DV_ROUTE_HEALTH      },
        {DV_STR_INIT("livez"),   DV_ROUTE_HEALTH      },
        {DV_STR_INIT("readyz"),  DV_ROUTE_HEALTH      },
    };

    for (size_t i = 0; i < DV_COUNT(pages); i++)
        if (dv_str_eq(s->v[0], pages[i].name) &&
            (s->n == 1 || (s->n == 2 && pages[i].what == DV_ROUTE_HEALTH))) {
            route->what = pages[i].what;
            route->name = s->n == 2 ? s->v[1] : DV_STR_NONE;
        }
}

static void parse_explain(const struct segments *s, struct dv_route *route)
{
    static const struct {
        dv_str name;
        enum dv_kind_id kind;
    } kinds[] = {
        {DV_STR_INIT("pods"),   DV_KIND_POD  },
        {DV_STR_INIT("claims"), DV_KIND_CLAIM}
    };

    for (size_t i = 0; s->n == 6 && i < DV_COUNT(kinds); i++)
        if (dv_str_eq(s->v[3], kinds[i].name)) {
            route->what = DV_ROUTE_EXPLAIN;
            route->kind = dv_kind(kinds[i].kind);
            route->namespace = s->v[4];
            route->name = s->v[5];
        }
}

/* Parses davit's own paths, which Kubernetes does not have. */
static void parse_own(const struct segments *s, struct dv_route *route)
{
    if (s->n < 3 || !dv_str_eq(s->v[1], DV_STR("v1")))
        return;
    if (dv_str_eq(s->v[2], DV_STR("explain"))) {
        parse_explain(s, route);
    } else if (dv_str_eq(s->v[2], DV_STR("tokens")) && s->n <= 4) {
        route->what = DV_ROUTE_TOKENS;
        route->name = s->n == 4 ? s->v[3] : DV_STR_NONE;
    } else if (dv_str_eq(s->v[2], DV_STR("node")) && s->n == 3) {
        route->what = DV_ROUTE_NODE;
    }
}

void dv_route_parse(dv_str path, const struct dv_custom_set *customs, struct dv_arena *arena,
                    struct dv_route *route)
{
    struct segments s = {0};

    *route = (struct dv_route){
        .what = DV_ROUTE_NO_PAGE, .path = decode(path, arena), .customs = customs};
    split(route->path, &s);
    if (s.is_empty)
        return;
    if (!s.n)
        route->what = DV_ROUTE_ROOT;
    else if (dv_str_eq(s.v[0], DV_STR("api")))
        parse_core(&s, route);
    else if (dv_str_eq(s.v[0], DV_STR("apis")))
        parse_groups(&s, route);
    else if (dv_str_eq(s.v[0], DV_STR("openapi")))
        parse_openapi(&s, route);
    else if (dv_str_eq(s.v[0], DV_STR("davit")))
        parse_own(&s, route);
    else if (dv_str_eq(s.v[0], DV_STR(".well-known")) || dv_str_eq(s.v[0], DV_STR("openid")))
        parse_openid(&s, route);
    else
        parse_page(&s, route);
}

/* Returns the verb; empty when the method is no verb of resources. */
static dv_str resource_verb(const struct dv_route *route, dv_str method, bool is_watch)
{
    static const struct {
        dv_str method;
        dv_str of_one;
        dv_str of_many;
    } verbs[] = {
        {DV_STR_INIT("POST"),   DV_STR_INIT("create"), DV_STR_INIT("create")          },
        {DV_STR_INIT("GET"),    DV_STR_INIT("get"),    DV_STR_INIT("list")            },
        {DV_STR_INIT("HEAD"),   DV_STR_INIT("get"),    DV_STR_INIT("list")            },
        {DV_STR_INIT("PUT"),    DV_STR_INIT("update"), DV_STR_INIT("update")          },
        {DV_STR_INIT("PATCH"),  DV_STR_INIT("patch"),  DV_STR_INIT("patch")           },
        {DV_STR_INIT("DELETE"), DV_STR_INIT("delete"), DV_STR_INIT("deletecollection")},
    };
    bool is_one = route->name.n > 0;

    if (dv_str_eq(method, DV_STR("GET")) && route->what == DV_ROUTE_STREAM)
        return DV_STR("create"); /* WebSockets begin with GET, and do no less than with POST */
    if (dv_str_eq(method, DV_STR("GET")) && (route->is_watch || (is_watch && !is_one)))
        return DV_STR("watch");
    for (size_t i = 0; i < DV_COUNT(verbs); i++)
        if (dv_str_eq(verbs[i].method, method))
            return is_one ? verbs[i].of_one : verbs[i].of_many;
    return DV_STR_NONE;
}

dv_str dv_route_verb(const struct dv_route *route, dv_str method, bool is_watch,
                     struct dv_arena *arena)
{
    dv_str verb = route->is_resource ? resource_verb(route, method, is_watch) : DV_STR_NONE;
    char *lower;

    if (verb.n)
        return verb;
    lower = dv_arena_alloc(arena, method.n + 1, 1);
    for (size_t i = 0; i < method.n; i++)
        lower[i] =
            (char)(method.p[i] >= 'A' && method.p[i] <= 'Z' ? method.p[i] + 32 : method.p[i]);
    return (dv_str){lower, method.n};
}
