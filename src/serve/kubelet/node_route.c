#include "serve/kubelet/node_route.h"

#include "base/buf.h"
#include "base/defs.h"
#include "rest/rest.h"

/* How many more segments a path has than its row names. */
enum rest { NOTHING, SLASH_OR_NOTHING, TWO_OR_THREE_NAMES, THREE_NAMES, THREE_OR_FOUR_NAMES };

static const struct {
    dv_str first;
    dv_str second; /* empty: there is none */
    enum rest rest;
    enum dv_node_route_id id;
} paths[] = {
    {DV_STR_INIT("healthz"),       {0},                     NOTHING,             DV_NODE_HEALTH          },
    {DV_STR_INIT("pods"),          {0},                     SLASH_OR_NOTHING,    DV_NODE_PODS            },
    {DV_STR_INIT("runningpods"),   {0},                     SLASH_OR_NOTHING,    DV_NODE_RUNNING_PODS    },
    {DV_STR_INIT("metrics"),       {0},                     NOTHING,             DV_NODE_METRICS         },
    {DV_STR_INIT("metrics"),       DV_STR_INIT("resource"), NOTHING,             DV_NODE_RESOURCE_METRICS},
    {DV_STR_INIT("stats"),         DV_STR_INIT("summary"),  NOTHING,             DV_NODE_SUMMARY         },
    {DV_STR_INIT("configz"),       {0},                     NOTHING,             DV_NODE_CONFIG          },
    {DV_STR_INIT("containerLogs"), {0},                     THREE_NAMES,         DV_NODE_LOGS            },
    {DV_STR_INIT("exec"),          {0},                     THREE_OR_FOUR_NAMES, DV_NODE_EXEC            },
    {DV_STR_INIT("attach"),        {0},                     THREE_OR_FOUR_NAMES, DV_NODE_ATTACH          },
    {DV_STR_INIT("run"),           {0},                     THREE_OR_FOUR_NAMES, DV_NODE_RUN             },
    {DV_STR_INIT("portForward"),   {0},                     TWO_OR_THREE_NAMES,  DV_NODE_PORT_FORWARD    },
};

static const struct {
    dv_str method;
    dv_str verb;
} verbs[] = {
    {DV_STR_INIT("GET"),    DV_STR_INIT("get")   },
    {DV_STR_INIT("POST"),   DV_STR_INIT("create")},
    {DV_STR_INIT("PUT"),    DV_STR_INIT("update")},
    {DV_STR_INIT("PATCH"),  DV_STR_INIT("patch") },
    {DV_STR_INIT("DELETE"), DV_STR_INIT("delete")},
};

/* Paths whose clients need another right than `proxy`, or may have another one. */
static const struct {
    dv_str first;
    dv_str subresource;
    bool is_proxy_enough;
} rights[] = {
    {DV_STR_INIT("metrics"), DV_STR_INIT("metrics"), false},
    {DV_STR_INIT("stats"),   DV_STR_INIT("stats"),   false},
    {DV_STR_INIT("logs"),    DV_STR_INIT("log"),     false},
    {DV_STR_INIT("pods"),    DV_STR_INIT("pods"),    true },
    {DV_STR_INIT("healthz"), DV_STR_INIT("healthz"), true },
    {DV_STR_INIT("configz"), DV_STR_INIT("configz"), true },
};

static void find_rights(struct dv_node_route *route, dv_str method)
{
    const dv_str proxy = DV_STR("proxy");

    for (size_t i = 0; i < DV_COUNT(verbs); i++)
        if (dv_str_eq(verbs[i].method, method))
            route->verb = verbs[i].verb;
    for (size_t i = 0; i < DV_COUNT(rights); i++) {
        if (!dv_str_eq(rights[i].first, route->segments[0]))
            continue;
        route->subresources[route->n_subresources++] = rights[i].subresource;
        if (!rights[i].is_proxy_enough)
            return;
    }
    route->subresources[route->n_subresources++] = proxy;
}

/* Whether the segments are those of the row. */
static bool is_path(const struct dv_node_route *route, size_t i)
{
    size_t n = paths[i].second.n > 0 ? 2 : 1;

    if (route->n_segments < n || !dv_str_eq(paths[i].first, route->segments[0]) ||
        (n == 2 && !dv_str_eq(paths[i].second, route->segments[1])))
        return false;
    switch (paths[i].rest) {
    case SLASH_OR_NOTHING:
        return route->n_segments == n || (route->n_segments == n + 1 && route->segments[n].n == 0);
    case TWO_OR_THREE_NAMES:
        return route->n_segments == n + 2 || route->n_segments == n + 3;
    case THREE_NAMES:
        return route->n_segments == n + 3;
    case THREE_OR_FOUR_NAMES:
        return route->n_segments == n + 3 || route->n_segments == n + 4;
    case NOTHING:
        break;
    }
    return route->n_segments == n;
}

/* Streams are begun with GET (WebSocket) and POST (SPDY), and a command is run with POST alone; all
 * else is only read. */
static bool is_method_of(dv_str method, enum dv_node_route_id id)
{
    if (dv_str_eq(method, DV_STR("POST")))
        return id == DV_NODE_EXEC || id == DV_NODE_ATTACH || id == DV_NODE_PORT_FORWARD ||
               id == DV_NODE_RUN;
    return dv_str_eq(method, DV_STR("GET")) && id != DV_NODE_RUN;
}

void dv_node_route_parse(dv_str method, dv_str path, struct dv_arena *arena,
                         struct dv_node_route *route)
{
    bool is_long = false;
    dv_str segment;

    *route = (struct dv_node_route){.id = DV_NODE_UNKNOWN};
    while (!is_long && dv_rest_path_next(&path, arena, &segment)) {
        is_long = route->n_segments == DV_NODE_SEGMENTS_MAX;
        if (!is_long)
            route->segments[route->n_segments++] = segment;
    }
    find_rights(route, method);
    for (size_t i = 0; !is_long && i < DV_COUNT(paths); i++)
        if (is_path(route, i))
            route->id = paths[i].id;
    route->is_allowed_method = is_method_of(method, route->id);
}

void dv_node_route_print_refusal(const struct dv_node_route *route, dv_str user, bool is_error,
                                 struct dv_buf *buf)
{
    dv_buf_printf(buf, "%s (user=%.*s, verb=%.*s, resource=nodes, subresource(s)=[",
                  is_error ? "Authorization error" : "Forbidden", DV_FMT(user),
                  DV_FMT(route->verb));
    for (size_t i = 0; i < route->n_subresources; i++)
        dv_buf_printf(buf, "%s%.*s", i > 0 ? " " : "", DV_FMT(route->subresources[i]));
    dv_buf_add_c(buf, "])");
}
