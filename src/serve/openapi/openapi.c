/* openapi.c - prints OpenAPI documents: the paths of resources, and the schemas that they refer
 * to. */
#include "serve/openapi/openapi.h"

#include "base/buf.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "serve/openapi/openapi_schema.h"
#include "serve/wire/kube_route.h"

struct paths {
    struct dv_schemas *schemas;
    struct dv_buf *buf;
    bool is_next; /* a path was printed before */
};

/* Returns the message of a resource; a review has no version in the table, so its message is found
 * by its kind. */
static const struct dv_message *message_of(const struct dv_api_resource *resource)
{
    static const struct {
        const char *kind;
        const struct dv_message *message;
    } messages[] = {
        {"Binding",                 &dv_message_binding                   },
        {"Eviction",                &dv_message_eviction                  },
        {"TokenRequest",            &dv_message_token_request             },
        {"TokenReview",             &dv_message_token_review              },
        {"SelfSubjectReview",       &dv_message_self_subject_review       },
        {"SelfSubjectAccessReview", &dv_message_self_subject_access_review},
        {"SubjectAccessReview",     &dv_message_subject_access_review     },
        {"Namespace",               &dv_message_namespace                 },
    };

    if (resource->version)
        return resource->version->message;
    for (size_t i = 0; i < DV_COUNT(messages); i++)
        if (dv_str_eq(resource->kind, dv_str_from_c(messages[i].kind)))
            return messages[i].message;
    return NULL;
}

/* ---- operations ---- */

struct operation {
    const char *method;
    const char *action;
    unsigned flag;
    bool has_body;
    bool is_list;
    const char *params; /* names of query parameters, with commas */
};

#define LIST_PARAMS                                                                                \
    "allowWatchBookmarks,continue,fieldSelector,labelSelector,limit,resourceVersion,"              \
    "resourceVersionMatch,sendInitialEvents,timeoutSeconds,watch"
#define WRITE_PARAMS "dryRun,fieldManager,fieldValidation"
#define DELETE_PARAMS "dryRun,gracePeriodSeconds,orphanDependents,propagationPolicy"

static const struct operation of_collection[] = {
    {"get",    "list",             DV_CAN_LIST,              false, true,  LIST_PARAMS },
    {"post",   "post",             DV_CAN_CREATE,            true,  false, WRITE_PARAMS},
    {"delete", "deletecollection", DV_CAN_DELETE_COLLECTION, false, true,
     DELETE_PARAMS ",fieldSelector,labelSelector"                                      },
};
static const struct operation of_object[] = {
    {"get",    "get",    DV_CAN_GET,    false, false, ""                   },
    {"put",    "put",    DV_CAN_UPDATE, true,  false, WRITE_PARAMS         },
    {"patch",  "patch",  DV_CAN_PATCH,  true,  false, WRITE_PARAMS ",force"},
    {"delete", "delete", DV_CAN_DELETE, false, false, DELETE_PARAMS        },
    {"post",   "post",   DV_CAN_CREATE, true,  false, WRITE_PARAMS         },
};

static const struct operation of_log[] = {
    {"get", "get", DV_CAN_GET, false, false,
     "container,follow,insecureSkipTLSVerifyBackend,limitBytes,previous,sinceSeconds,sinceTime,"
     "stream,tailLines,timestamps"},
};

static const char *type_of_param(dv_str name)
{
    static const char *const flags[] = {
        "allowWatchBookmarks", "follow",   "force",
        "orphanDependents",    "previous", "insecureSkipTLSVerifyBackend",
        "sendInitialEvents",   "watch",    "timestamps"};
    static const char *const numbers[] = {"gracePeriodSeconds", "limit",     "limitBytes",
                                          "sinceSeconds",       "tailLines", "timeoutSeconds"};

    for (size_t i = 0; i < DV_COUNT(flags); i++)
        if (dv_str_eq(name, dv_str_from_c(flags[i])))
            return "boolean";
    for (size_t i = 0; i < DV_COUNT(numbers); i++)
        if (dv_str_eq(name, dv_str_from_c(numbers[i])))
            return "integer";
    return "string";
}

static void add_param(const struct paths *paths, dv_str name, const char *in, const char *type,
                      bool *is_next)
{
    bool is_path = dv_str_eq(dv_str_from_c(in), DV_STR("path"));

    dv_buf_printf(paths->buf, "%s{\"in\":\"%s\",\"name\":\"%.*s\"%s,", *is_next ? "," : "", in,
                  DV_FMT(name), is_path ? ",\"required\":true" : "");
    if (paths->schemas->is_v3)
        dv_buf_printf(paths->buf, "\"schema\":{\"type\":\"%s\",\"uniqueItems\":true}}", type);
    else
        dv_buf_printf(paths->buf, "\"type\":\"%s\",\"uniqueItems\":true}", type);
    *is_next = true;
}

static void add_query_params(const struct paths *paths, const char *names)
{
    dv_str rest = dv_str_from_c(names);
    dv_str name;
    bool is_next = false;

    dv_buf_add_c(paths->buf, "\"parameters\":[");
    while (rest.n && dv_str_split(&rest, ',', &name))
        add_param(paths, name, "query", type_of_param(name), &is_next);
    dv_buf_add_c(paths->buf, "],");
}

static void add_content(const struct paths *paths, dv_str schema)
{
    if (paths->schemas->is_v3)
        dv_buf_printf(paths->buf,
                      "\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"%s%.*s\"}}}",
                      paths->schemas->root, DV_FMT(schema));
    else
        dv_buf_printf(paths->buf, "\"schema\":{\"$ref\":\"%s%.*s\"}", paths->schemas->root,
                      DV_FMT(schema));
}

/* Says that the answer is text. */
static void add_text(const struct paths *paths)
{
    dv_buf_add_c(paths->buf, paths->schemas->is_v3
                                 ? "\"content\":{\"text/plain\":{\"schema\":{\"type\":\"string\"}}}"
                                 : "\"schema\":{\"type\":\"string\"}");
}

/* Adds the body. Patches come in four forms, of which custom objects take three, and clients
 * choose by the list of those that there are. */
static void add_body(const struct paths *paths, const struct operation *operation, dv_str schema,
                     bool is_custom)
{
    dv_buf_add_c(paths->buf, "\"requestBody\":{");
    if (operation->flag == DV_CAN_PATCH)
        dv_buf_printf(paths->buf,
                      "\"content\":{\"application/apply-patch+yaml\":{},"
                      "\"application/json-patch+json\":{},\"application/merge-patch+json\":{}%s}",
                      is_custom ? "" : ",\"application/strategic-merge-patch+json\":{}");
    else
        add_content(paths, schema);
    dv_buf_add_c(paths->buf, "},");
}

static void add_operation(const struct paths *paths, const struct operation *operation,
                          const struct dv_api_resource *resource, const char *scope)
{
    const struct dv_message *message = message_of(resource);
    bool is_elsewhere = resource->kind_group.n > 0;
    dv_str group = is_elsewhere ? resource->kind_group : paths->schemas->group;
    dv_str version = is_elsewhere ? resource->kind_version : paths->schemas->version;
    dv_str kind = resource->of && !is_elsewhere ? resource->kind : DV_STR_NONE;
    const struct dv_custom_version *custom =
        resource->names ? dv_custom_version_of(resource->version) : NULL;
    dv_str one = custom    ? dv_schemas_add_custom(paths->schemas, custom, false)
                 : message ? dv_schemas_add(paths->schemas, message, kind)
                           : DV_STR_NONE;
    dv_str answer = !operation->is_list ? one
                    : custom            ? dv_schemas_add_custom(paths->schemas, custom, true)
                             : dv_schemas_add_list(paths->schemas, message, resource->kind);

    dv_buf_printf(paths->buf, "\"%s\":{\"operationId\":\"%s%s%.*s%.*s%.*s%.*s\",",
                  operation->method, operation->action, scope, DV_FMT(paths->schemas->group),
                  DV_FMT(paths->schemas->version), DV_FMT(resource->name),
                  DV_FMT(resource->subresource));
    add_query_params(paths, operation->params);
    if (operation->has_body && paths->schemas->is_v3)
        add_body(paths, operation, one, custom != NULL);
    dv_buf_add_c(paths->buf, "\"responses\":{\"200\":{\"description\":\"OK\",");
    if (message)
        add_content(paths, answer);
    else
        add_text(paths);
    dv_buf_printf(paths->buf,
                  "}},\"x-kubernetes-action\":\"%s\",\"x-kubernetes-group-version-kind\":{"
                  "\"group\":\"%.*s\",\"kind\":\"%.*s\",\"version\":\"%.*s\"}}",
                  operation->action, DV_FMT(group), DV_FMT(resource->kind), DV_FMT(version));
}

/* ---- paths ---- */

struct place {
    const struct operation *operations;
    size_t n_operations;
    unsigned verbs;     /* verbs that the path has */
    bool has_namespace; /* .../namespaces/{namespace}/... */
    bool has_name;      /* .../{name} */
    const char *scope;  /* part of the ids of operations */
};

static void add_path(struct paths *paths, const struct dv_api_resource *resource,
                     const struct place *place)
{
    dv_str group = paths->schemas->group;
    dv_str version = paths->schemas->version;
    bool is_next = false;

    dv_buf_printf(paths->buf, "%s\"/%s%.*s%s%.*s/%s%.*s%s", paths->is_next ? "," : "",
                  group.n ? "apis/" : "api", DV_FMT(group), "/", DV_FMT(version),
                  place->has_namespace ? "namespaces/{namespace}/" : "", DV_FMT(resource->name),
                  place->has_name ? "/{name}" : "");
    if (resource->subresource.n)
        dv_buf_printf(paths->buf, "/%.*s", DV_FMT(resource->subresource));
    dv_buf_add_c(paths->buf, "\":{");
    for (size_t i = 0; i < place->n_operations; i++) {
        if (!(place->operations[i].flag & place->verbs & resource->verbs))
            continue;
        add_operation(paths, &place->operations[i], resource, place->scope);
        dv_buf_add_char(paths->buf, ',');
    }
    dv_buf_add_c(paths->buf, "\"parameters\":[");
    if (place->has_name)
        add_param(paths, DV_STR("name"), "path", "string", &is_next);
    if (place->has_namespace)
        add_param(paths, DV_STR("namespace"), "path", "string", &is_next);
    add_param(paths, DV_STR("pretty"), "query", "string", &is_next);
    dv_buf_add_c(paths->buf, "]}");
    paths->is_next = true;
}

static void add_resource(struct paths *paths, const struct dv_api_resource *resource)
{
    bool has_namespace = resource->is_namespaced;
    struct place object = {of_object,  DV_COUNT(of_object),
                           DV_CAN_ALL, has_namespace,
                           true,       has_namespace ? "Namespaced" : ""};
    struct place collection = {of_collection, DV_COUNT(of_collection),
                               DV_CAN_ALL,    has_namespace,
                               false,         has_namespace ? "Namespaced" : ""};
    struct place everywhere = {of_collection, DV_COUNT(of_collection), DV_CAN_LIST, false, false,
                               "All"};

    if (dv_str_eq(resource->subresource, DV_STR("log"))) {
        object.operations = of_log;
        object.n_operations = DV_COUNT(of_log);
        add_path(paths, resource, &object);
        return;
    }
    if (resource->is_empty || !message_of(resource))
        return; /* of what cannot be written nothing but its name is known */
    if (resource->subresource.n) {
        add_path(paths, resource, &object);
        return;
    }
    add_path(paths, resource, &collection);
    if (!resource->of)
        return;
    object.verbs &= ~(unsigned)DV_CAN_CREATE; /* creation belongs to the collection */
    add_path(paths, resource, &object);
    if (has_namespace)
        add_path(paths, resource, &everywhere);
}

static void add_paths(struct paths *paths, const struct dv_custom_set *customs, dv_str group,
                      dv_str version)
{
    size_t n;
    const struct dv_api_resource *resources =
        dv_api_resources(customs, group, version, paths->schemas->arena, &n);

    paths->schemas->group = group;
    paths->schemas->version = version;
    for (size_t i = 0; i < n; i++)
        add_resource(paths, &resources[i]);
}

/* Prints the schemas. Each adds those that it refers to, so the list grows meanwhile. */
static void add_schemas(struct dv_schemas *schemas, size_t *n_printed, struct dv_buf *buf)
{
    for (; *n_printed < schemas->list.n; (*n_printed)++) {
        dv_buf_printf(buf, "%s\"%.*s\":", *n_printed ? "," : "",
                      DV_FMT(schemas->list.v[*n_printed]->name));
        dv_schemas_print(schemas, *n_printed, buf);
    }
}

#define INFO "\"info\":{\"title\":\"davit\",\"version\":\"v1.36.4\"},"

void dv_openapi_v3(const struct dv_custom_set *customs, dv_str group, dv_str version,
                   struct dv_arena *arena, struct dv_buf *buf)
{
    struct dv_schemas schemas;
    struct paths paths = {&schemas, buf, false};
    size_t n_printed = 0;

    dv_schemas_init(&schemas, true, arena);
    dv_buf_add_c(buf, "{\"openapi\":\"3.0.0\"," INFO "\"paths\":{");
    add_paths(&paths, customs, group, version);
    dv_buf_add_c(buf, "},\"components\":{\"schemas\":{");
    (void)dv_schemas_add(&schemas, &dv_message_status, DV_STR_NONE);
    (void)dv_schemas_add(&schemas, &dv_message_delete_options, DV_STR_NONE);
    add_schemas(&schemas, &n_printed, buf);
    dv_buf_add_c(buf, "}}}");
    dv_schemas_fini(&schemas);
}

/* Prints everything. The schemas of a version are named while that version is set, so they are
 * printed into a text of their own as soon as its paths are. */
void dv_openapi_v2(const struct dv_custom_set *customs, struct dv_arena *arena, struct dv_buf *buf)
{
    struct dv_schemas schemas;
    struct paths paths = {&schemas, buf, false};
    struct dv_buf definitions;
    size_t n_groups;
    const struct dv_api_group *groups = dv_api_groups(customs, arena, &n_groups);
    size_t n_printed = 0;

    dv_schemas_init(&schemas, false, arena);
    dv_buf_init(&definitions, buf->max);
    dv_buf_add_c(buf, "{\"swagger\":\"2.0\"," INFO "\"paths\":{");
    add_paths(&paths, NULL, DV_STR_NONE, DV_STR("v1"));
    (void)dv_schemas_add(&schemas, &dv_message_status, DV_STR_NONE);
    (void)dv_schemas_add(&schemas, &dv_message_delete_options, DV_STR_NONE);
    add_schemas(&schemas, &n_printed, &definitions);
    for (size_t i = 0; i < n_groups; i++)
        for (size_t k = 0; k < groups[i].n_versions; k++) {
            add_paths(&paths, customs, groups[i].name, groups[i].versions[k]);
            add_schemas(&schemas, &n_printed, &definitions);
        }
    dv_buf_add_c(buf, "},\"definitions\":{");
    dv_buf_add(buf, dv_buf_str(&definitions));
    dv_buf_add_c(buf, "}}");
    dv_buf_fini(&definitions);
    dv_schemas_fini(&schemas);
}
