/* discovery.c - prints which groups, versions and resources the API has, in the forms that clients
 * ask for. */
#include "serve/openapi/discovery.h"

#include "base/base64.h"
#include "base/buf.h"
#include "pb/pb.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "serve/wire/kube_route.h"

#define TEXT_BYTES_MAX 1024u
#define LIST_BYTES_MAX (64u << 10)
/* How many bytes of a hash are shown: as many as the reference shows. */
#define HASH_BYTES 8u

/* ---- groups ---- */

static void add_version(dv_str group, dv_str version, struct dv_buf *buf)
{
    dv_buf_printf(buf, "{\"groupVersion\":\"%.*s/%.*s\",\"version\":\"%.*s\"}", DV_FMT(group),
                  DV_FMT(version), DV_FMT(version));
}

static void add_group(const struct dv_api_group *group, struct dv_buf *buf)
{
    dv_buf_printf(buf, "\"name\":\"%.*s\",\"versions\":[", DV_FMT(group->name));
    for (size_t i = 0; i < group->n_versions; i++) {
        if (i)
            dv_buf_add_char(buf, ',');
        add_version(group->name, group->versions[i], buf);
    }
    dv_buf_add_c(buf, "],\"preferredVersion\":");
    add_version(group->name, group->versions[0], buf);
    dv_buf_add_char(buf, '}');
}

void dv_discovery_core(dv_str address, struct dv_buf *buf)
{
    dv_buf_add_c(buf, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],"
                      "\"serverAddressByClientCIDRs\":[{\"clientCIDR\":\"0.0.0.0/0\","
                      "\"serverAddress\":");
    dv_buf_add_json(buf, address);
    dv_buf_add_c(buf, "}]}");
}

void dv_discovery_groups(const struct dv_custom_set *customs, struct dv_arena *arena,
                         struct dv_buf *buf)
{
    size_t n;
    const struct dv_api_group *groups = dv_api_groups(customs, arena, &n);

    dv_buf_add_c(buf, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[");
    for (size_t i = 0; i < n; i++) {
        dv_buf_add_c(buf, i ? ",{" : "{");
        add_group(&groups[i], buf);
    }
    dv_buf_add_c(buf, "]}");
}

void dv_discovery_group(const struct dv_custom_set *customs, dv_str group, struct dv_arena *arena,
                        struct dv_buf *buf)
{
    size_t n;
    const struct dv_api_group *groups = dv_api_groups(customs, arena, &n);

    for (size_t i = 0; i < n; i++) {
        if (!dv_str_eq(groups[i].name, group))
            continue;
        dv_buf_add_c(buf, "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",");
        add_group(&groups[i], buf);
    }
}

/* APIGroup {1: name, 2: versions, 3: the preferred one}, each {1: group/version, 2: version}. */
static void add_version_protobuf(uint32_t number, dv_str group, dv_str version, struct dv_buf *buf)
{
    struct dv_buf text;
    size_t mark;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    dv_buf_printf(&text, "%.*s/%.*s", DV_FMT(group), DV_FMT(version));
    mark = dv_pb_begin(buf, number);
    dv_pb_add_bytes(buf, 1, dv_buf_str(&text));
    dv_pb_add_bytes(buf, 2, version);
    dv_pb_end(buf, mark);
    dv_buf_fini(&text);
}

void dv_discovery_groups_protobuf(const struct dv_custom_set *customs, struct dv_arena *arena,
                                  struct dv_buf *buf)
{
    struct dv_buf list;
    size_t n;
    const struct dv_api_group *groups = dv_api_groups(customs, arena, &n);
    struct dv_pb_envelope envelope = {.api_version = DV_STR("v1"), .kind = DV_STR("APIGroupList")};

    dv_buf_init(&list, LIST_BYTES_MAX);
    for (size_t i = 0; i < n; i++) {
        size_t mark = dv_pb_begin(&list, 1);

        dv_pb_add_bytes(&list, 1, groups[i].name);
        for (size_t k = 0; k < groups[i].n_versions; k++)
            add_version_protobuf(2, groups[i].name, groups[i].versions[k], &list);
        add_version_protobuf(3, groups[i].name, groups[i].versions[0], &list);
        dv_pb_end(&list, mark);
    }
    envelope.object = dv_buf_str(&list);
    dv_pb_envelope_encode(&envelope, buf);
    dv_buf_fini(&list);
}

/* ---- resources ---- */

static void add_verbs(unsigned verbs, struct dv_buf *buf)
{
    static const struct {
        unsigned flag;
        const char *name;
    } names[] = {
        {DV_CAN_CREATE,            "create"          },
        {DV_CAN_DELETE,            "delete"          },
        {DV_CAN_DELETE_COLLECTION, "deletecollection"},
        {DV_CAN_GET,               "get"             },
        {DV_CAN_LIST,              "list"            },
        {DV_CAN_PATCH,             "patch"           },
        {DV_CAN_UPDATE,            "update"          },
        {DV_CAN_WATCH,             "watch"           },
    };
    bool is_next = false;

    dv_buf_add_c(buf, "\"verbs\":[");
    for (size_t i = 0; i < DV_COUNT(names); i++) {
        if (!(verbs & names[i].flag))
            continue;
        dv_buf_printf(buf, "%s\"%s\"", is_next ? "," : "", names[i].name);
        is_next = true;
    }
    dv_buf_add_char(buf, ']');
}

static void add_texts(const char *name, const dv_str *texts, size_t n, struct dv_buf *buf)
{
    if (n == 0)
        return;
    dv_buf_printf(buf, ",\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
        if (i)
            dv_buf_add_char(buf, ',');
        dv_buf_add_json(buf, texts[i]);
    }
    dv_buf_add_char(buf, ']');
}

/* Adds the other names that people may write for the resource. */
static void add_names(const struct dv_api_resource *resource, struct dv_buf *buf)
{
    static const dv_str all[] = {DV_STR_INIT("all")};
    const struct dv_kind *kind = resource->of;

    if (!kind || resource->subresource.n)
        return;
    if (resource->names) {
        add_texts("shortNames", resource->names->short_names, resource->names->n_short_names, buf);
        add_texts("categories", resource->names->categories, resource->names->n_categories, buf);
        return;
    }
    add_texts("shortNames", kind->short_names, kind->n_short_names, buf);
    add_texts("categories", all, kind->is_in_all, buf);
}

/* Adds a hash of the group, version and kind that objects are stored in: where it changes, objects
 * have to be migrated. */
static void add_storage_hash(const struct dv_kind *kind, struct dv_buf *buf)
{
    /* The reference stores taint rules in the oldest version that it knows. */
    const struct dv_api_version *version =
        &kind->versions[kind->id == DV_KIND_TAINT_RULE ? kind->n_versions - 1 : 0];
    unsigned char digest[DV_REST_SHA256_BYTES];
    struct dv_buf text;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    dv_buf_printf(&text, "%.*s/%.*s/%.*s", DV_FMT(version->group), DV_FMT(version->version),
                  DV_FMT(kind->name));
    dv_rest_sha256(dv_buf_str(&text), digest);
    dv_buf_fini(&text);
    dv_buf_add_c(buf, ",\"storageVersionHash\":\"");
    dv_base64_encode((dv_str){(const char *)digest, HASH_BYTES}, buf);
    dv_buf_add_char(buf, '"');
}

static void add_resource(const struct dv_api_resource *resource, struct dv_buf *buf)
{
    dv_buf_printf(buf, "{\"name\":\"%.*s", DV_FMT(resource->name));
    if (resource->subresource.n)
        dv_buf_printf(buf, "/%.*s", DV_FMT(resource->subresource));
    dv_buf_printf(buf, "\",\"singularName\":\"%.*s\",\"namespaced\":%s", DV_FMT(resource->singular),
                  resource->is_namespaced ? "true" : "false");
    if (resource->kind_group.n)
        dv_buf_printf(buf, ",\"group\":\"%.*s\",\"version\":\"%.*s\"", DV_FMT(resource->kind_group),
                      DV_FMT(resource->kind_version));
    dv_buf_printf(buf, ",\"kind\":\"%.*s\",", DV_FMT(resource->kind));
    add_verbs(resource->verbs, buf);
    add_names(resource, buf);
    if (resource->of && !resource->subresource.n && !resource->is_empty)
        add_storage_hash(resource->of, buf);
    dv_buf_add_char(buf, '}');
}

void dv_discovery_resources(const struct dv_custom_set *customs, dv_str group, dv_str version,
                            struct dv_arena *arena, struct dv_buf *buf)
{
    size_t n;
    const struct dv_api_resource *resources = dv_api_resources(customs, group, version, arena, &n);

    /* The reference's list for the core group does not name its own apiVersion. */
    dv_buf_printf(buf, "{\"kind\":\"APIResourceList\",%s\"groupVersion\":\"%.*s%s%.*s\",",
                  group.n ? "\"apiVersion\":\"v1\"," : "", DV_FMT(group), group.n ? "/" : "",
                  DV_FMT(version));
    dv_buf_add_c(buf, "\"resources\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            dv_buf_add_char(buf, ',');
        add_resource(&resources[i], buf);
    }
    dv_buf_add_c(buf, "]}");
}

/* ---- all at once ---- */

static void add_response_kind(const struct dv_api_resource *resource, struct dv_buf *buf)
{
    dv_buf_printf(
        buf, "\"responseKind\":{\"group\":\"%.*s\",\"version\":\"%.*s\",\"kind\":\"%.*s\"},",
        DV_FMT(resource->kind_group), DV_FMT(resource->kind_version), DV_FMT(resource->kind));
}

/* Adds the resource at i with the subresources after it. Returns the index of the next resource. */
static size_t add_whole(const struct dv_api_resource *resources, size_t n, size_t i,
                        struct dv_buf *buf)
{
    const struct dv_api_resource *resource = &resources[i++];
    bool is_first = true;

    dv_buf_printf(buf, "{\"resource\":\"%.*s\",", DV_FMT(resource->name));
    add_response_kind(resource, buf);
    dv_buf_printf(buf, "\"scope\":\"%s\",\"singularResource\":\"%.*s\",",
                  resource->is_namespaced ? "Namespaced" : "Cluster", DV_FMT(resource->singular));
    add_verbs(resource->verbs, buf);
    add_names(resource, buf);
    for (; i < n && dv_str_eq(resources[i].name, resource->name); i++) {
        dv_buf_printf(buf, "%s{\"subresource\":\"%.*s\",", is_first ? ",\"subresources\":[" : ",",
                      DV_FMT(resources[i].subresource));
        add_response_kind(&resources[i], buf);
        add_verbs(resources[i].verbs, buf);
        dv_buf_add_char(buf, '}');
        is_first = false;
    }
    dv_buf_add_c(buf, is_first ? "}" : "]}");
    return i;
}

static void add_whole_version(const struct dv_custom_set *customs, dv_str group, dv_str version,
                              struct dv_arena *arena, struct dv_buf *buf)
{
    size_t n;
    const struct dv_api_resource *resources = dv_api_resources(customs, group, version, arena, &n);

    dv_buf_printf(buf, "{\"version\":\"%.*s\",\"resources\":[", DV_FMT(version));
    for (size_t i = 0; i < n;) {
        if (i)
            dv_buf_add_char(buf, ',');
        i = add_whole(resources, n, i, buf);
    }
    dv_buf_add_c(buf, "],\"freshness\":\"Current\"}");
}

static void add_whole_group(const struct dv_custom_set *customs, const struct dv_api_group *group,
                            struct dv_arena *arena, struct dv_buf *buf)
{
    dv_buf_printf(buf, "{\"metadata\":{\"name\":\"%.*s\"},\"versions\":[", DV_FMT(group->name));
    for (size_t i = 0; i < group->n_versions; i++) {
        if (i)
            dv_buf_add_char(buf, ',');
        add_whole_version(customs, group->name, group->versions[i], arena, buf);
    }
    dv_buf_add_c(buf, "]}");
}

void dv_discovery_aggregated(const struct dv_custom_set *customs, bool is_core,
                             struct dv_arena *arena, struct dv_buf *buf)
{
    size_t n;
    const struct dv_api_group *groups = dv_api_groups(customs, arena, &n);

    dv_buf_add_c(buf, "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/"
                      "v2\",\"metadata\":{},\"items\":[");
    if (is_core) {
        dv_buf_add_c(buf, "{\"metadata\":{},\"versions\":[");
        add_whole_version(customs, DV_STR_NONE, DV_STR("v1"), arena, buf);
        dv_buf_add_c(buf, "]}");
    }
    for (size_t i = 0; !is_core && i < n; i++) {
        if (i)
            dv_buf_add_char(buf, ',');
        add_whole_group(customs, &groups[i], arena, buf);
    }
    dv_buf_add_c(buf, "]}");
}

void dv_discovery_paths(const struct dv_custom_set *customs, struct dv_arena *arena,
                        struct dv_buf *buf)
{
    static const char *const others[] = {"/healthz",    "/livez",      "/metrics",
                                         "/openapi/v2", "/openapi/v3", "/openid/v1/jwks",
                                         "/readyz",     "/version"};
    size_t n;
    const struct dv_api_group *groups = dv_api_groups(customs, arena, &n);

    dv_buf_add_c(
        buf, "{\"paths\":[\"/.well-known/openid-configuration\",\"/api\",\"/api/v1\",\"/apis\"");
    for (size_t i = 0; i < n; i++) {
        dv_buf_printf(buf, ",\"/apis/%.*s\"", DV_FMT(groups[i].name));
        for (size_t k = 0; k < groups[i].n_versions; k++)
            dv_buf_printf(buf, ",\"/apis/%.*s/%.*s\"", DV_FMT(groups[i].name),
                          DV_FMT(groups[i].versions[k]));
    }
    for (size_t i = 0; i < DV_COUNT(others); i++)
        dv_buf_printf(buf, ",\"%s\"", others[i]);
    dv_buf_add_c(buf, "]}");
}
