/* kube_route.h - what the path of a request names. Pure. */
#ifndef DV_SERVE_KUBE_ROUTE_H
#define DV_SERVE_KUBE_ROUTE_H

#include <stdbool.h>

#include "base/str.h"
#include "cluster/cluster.h"

struct dv_api_custom_resource_definition_names;
struct dv_api_version;
struct dv_arena;
struct dv_custom_set;
struct dv_kind;

enum dv_route_what {
    DV_ROUTE_NO_PAGE,     /* nothing of ours: 404 as plain text */
    DV_ROUTE_NO_RESOURCE, /* in the API, but nothing is there: 404 as a Status */
    DV_ROUTE_ROOT,        /* the index of paths */
    DV_ROUTE_VERSION_INFO,
    DV_ROUTE_HEALTH,
    DV_ROUTE_METRICS,
    DV_ROUTE_OPENAPI_V2,
    DV_ROUTE_OPENAPI_V3, /* `openapi` is what is behind it; empty: the index */
    DV_ROUTE_CORE,       /* /api */
    DV_ROUTE_GROUPS,     /* /apis */
    DV_ROUTE_GROUP,      /* /apis/GROUP */
    DV_ROUTE_RESOURCES,  /* /api/v1, /apis/GROUP/VERSION */
    DV_ROUTE_OBJECTS,    /* objects of `kind` */
    DV_ROUTE_REVIEW,     /* a review of type `review` */
    DV_ROUTE_LOG,        /* pods/NAME/log */
    DV_ROUTE_STREAM,     /* pods/NAME/exec, /attach, /portforward */
    DV_ROUTE_ISSUER,     /* /.well-known/openid-configuration */
    DV_ROUTE_KEYS,       /* /openid/v1/jwks */
    DV_ROUTE_TOKENS,     /* /davit/v1/tokens, with `name` when it is one of them */
    DV_ROUTE_NODE,       /* /davit/v1/node */
    DV_ROUTE_EXPLAIN,    /* /davit/v1/explain/pods/NAMESPACE/NAME, or claims: `kind` */
};

/* Resources that are only posted and answered, and never stored. */
enum dv_review {
    DV_REVIEW_NONE,
    DV_REVIEW_BINDING, /* "bindings": the old place of pods/NAME/binding */
    DV_REVIEW_TOKEN,
    DV_REVIEW_SELF,
    DV_REVIEW_ACCESS,
    DV_REVIEW_SELF_ACCESS,
    DV_REVIEW_LOCAL_ACCESS,
    DV_REVIEW_SELF_RULES,
    DV_REVIEW_TOKEN_REQUEST, /* serviceaccounts/NAME/token */
};

struct dv_route {
    enum dv_route_what what;
    dv_str path; /* decoded */
    /* It has the form of a resource's path, whether that resource exists or not. */
    bool is_resource;
    dv_str group;
    dv_str version;
    dv_str resource;
    dv_str namespace;
    dv_str name;
    dv_str subresource;
    enum dv_subresource sub; /* which of the kind's subresources it is */
    dv_str openapi;
    const struct dv_kind *kind;
    const struct dv_api_version *api_version;
    enum dv_review review;
    bool is_watch; /* it has the old form of a watch, /watch/... */
    bool is_empty; /* the kind has no objects, ever: see dv_empty_kinds */
    const struct dv_custom_set *customs;
};

/* Parses `path`, which is as the request has it. `customs` are the kinds that definitions make
 * (NULL: none). */
void dv_route_parse(dv_str path, const struct dv_custom_set *customs, struct dv_arena *arena,
                    struct dv_route *route);
/* Returns the verb as authorization knows it, "get", "list", ...; the method in lower case for a
 * path that is no resource. */
dv_str dv_route_verb(const struct dv_route *route, dv_str method, bool is_watch,
                     struct dv_arena *arena);

/* ---- the resources that there are ---- */

enum dv_verb_flag {
    DV_CAN_CREATE = 1,
    DV_CAN_DELETE = 2,
    DV_CAN_DELETE_COLLECTION = 4,
    DV_CAN_GET = 8,
    DV_CAN_LIST = 16,
    DV_CAN_PATCH = 32,
    DV_CAN_UPDATE = 64,
    DV_CAN_WATCH = 128,
    DV_CAN_ALL = 255,
};

struct dv_api_group {
    dv_str name;
    const dv_str *versions; /* the preferred first */
    size_t n_versions;
};

/* A resource or subresource of a group and version. */
struct dv_api_resource {
    dv_str name;        /* "pods" */
    dv_str subresource; /* "status"; empty: the resource itself */
    dv_str singular;
    dv_str kind;
    dv_str kind_group; /* the kind's group where that is another one */
    dv_str kind_version;
    const struct dv_kind *of; /* NULL: a review, which is not stored */
    const struct dv_api_version *version;
    /* Of a kind that a definition made; NULL: it is built in. */
    const struct dv_api_custom_resource_definition_names *names;
    enum dv_review review;
    bool is_namespaced;
    bool is_empty;  /* of a kind that has no objects, ever */
    unsigned verbs; /* enum dv_verb_flag */
};

/* Returns the kinds that clients list and watch before they do anything, and of which davit has no
 * objects: a scheduler waits until it has seen all volumes and services. Their `id` is DV_N_KINDS.
 */
const struct dv_kind *dv_empty_kinds(size_t *n);
/* Returns all groups but the core one, in order, those of `customs` (may be NULL) behind the
 * others. What is not built in is in the arena. */
const struct dv_api_group *dv_api_groups(const struct dv_custom_set *customs,
                                         struct dv_arena *arena, size_t *n);
bool dv_api_has_group(const struct dv_custom_set *customs, dv_str group); /* but the core one */
bool dv_api_has_version(const struct dv_custom_set *customs, dv_str group, dv_str version);
/* Returns all resources, sorted by name, in the arena. */
struct dv_api_resource *dv_api_resources(const struct dv_custom_set *customs, dv_str group,
                                         dv_str version, struct dv_arena *arena, size_t *n);

#endif
