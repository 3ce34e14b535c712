/* kube_relations.c - finds what a node or a driver is related to: pods and what they refer to,
 * claims and slices. */
#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "resource/object_pool.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "serve/auth.h"
#include "serve/kube/kube_call.h"

static const struct dv_object *find(const struct dv_kube *kube, enum dv_kind_id kind,
                                    dv_str namespace, dv_str name)
{
    return dv_embedded_get(kube->options.embedded, dv_kind(kind), namespace, name);
}

/* ---- nodes ---- */

struct search {
    enum dv_reference_kind kind;
    dv_str name;
};

static bool is_another(void *ctx, const struct dv_reference *reference)
{
    const struct search *search = ctx;

    return reference->kind != search->kind || !dv_str_eq(reference->name, search->name);
}

/* Whether the pod uses the object. Mirror pods do not count: a node makes them itself, and could
 * name any secret in one. */
static bool uses(const struct dv_api_pod *pod, const struct search *search)
{
    struct search copy = *search;

    return !dv_pod_is_mirror(pod) && !dv_pod_visit_references(pod, is_another, &copy);
}

static bool is_used(const struct dv_kube *kube, dv_str node, dv_str namespace,
                    const struct search *search)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_api_status *failure;
    struct dv_list_page page;
    struct dv_list_query query = {
        .kind = dv_kind(DV_KIND_POD),
        .namespace = namespace,
        .field_selector = dv_str_printf(scratch, "spec.nodeName=%.*s", DV_FMT(node)),
    };

    query.version = &query.kind->versions[0];
    if (!dv_embedded_list(kube->options.embedded, &query, scratch, &page, &failure))
        return false; /* no selector can have such a name, so there is no such pod either */
    for (size_t i = 0; i < page.n_objects; i++)
        if (uses(dv_object_unpack(page.objects[i])->value, search))
            return true;
    return false;
}

static bool is_slice_of(const struct dv_kube *kube, dv_str node, dv_str name)
{
    const struct dv_object *object = find(kube, DV_KIND_SLICE, DV_STR_NONE, name);
    const struct dv_api_resource_slice *slice = object ? object->value : NULL;

    return slice && dv_str_eq(slice->spec.node_name, node);
}

static bool is_pod_of(const struct dv_kube *kube, dv_str node, dv_str namespace, dv_str name)
{
    const struct dv_object *object = find(kube, DV_KIND_POD, namespace, name);
    const struct dv_api_pod *pod = object ? object->value : NULL;

    return pod && dv_str_eq(pod->spec.node_name, node);
}

static bool is_of_node(void *ctx, dv_str node, const struct dv_auth_request *request)
{
    static const struct {
        dv_str resource;
        enum dv_reference_kind kind;
    } kinds[] = {
        {DV_STR_INIT("resourceclaims"),  DV_REFERENCE_CLAIM          },
        {DV_STR_INIT("secrets"),         DV_REFERENCE_SECRET         },
        {DV_STR_INIT("configmaps"),      DV_REFERENCE_CONFIG_MAP     },
        {DV_STR_INIT("serviceaccounts"), DV_REFERENCE_SERVICE_ACCOUNT},
    };
    const struct dv_kube *kube = ctx;

    if (dv_str_eq(request->resource, DV_STR("resourceslices")))
        return is_slice_of(kube, node, request->name);
    /* A request without a namespace is for all of them. */
    if (!request->namespace.n || !request->name.n)
        return false;
    if (dv_str_eq(request->resource, DV_STR("pods")))
        return is_pod_of(kube, node, request->namespace, request->name);
    for (size_t i = 0; i < DV_COUNT(kinds); i++)
        if (dv_str_eq(request->resource, kinds[i].resource))
            return is_used(kube, node, request->namespace,
                           &(struct search){kinds[i].kind, request->name});
    return false;
}

/* ---- drivers ---- */

static bool is_of_driver(void *ctx, dv_str node, dv_str driver,
                         const struct dv_auth_request *request)
{
    const struct dv_kube *kube = ctx;
    bool is_claim = dv_str_eq(request->resource, DV_STR("resourceclaims"));
    const struct dv_object *object =
        find(kube, is_claim ? DV_KIND_CLAIM : DV_KIND_SLICE, request->namespace, request->name);
    const struct dv_api_resource_slice *slice;

    if (!object)
        return true;
    if (is_claim)
        return dv_auth_is_claim_of(object->value, driver, node,
                                   find(kube, DV_KIND_NODE, DV_STR_NONE, node));
    slice = object->value;
    return dv_str_eq(slice->spec.driver, driver) && dv_str_eq(slice->spec.node_name, node);
}

struct dv_auth_relations dv_kube_relations(struct dv_kube *kube)
{
    return (struct dv_auth_relations){is_of_node, is_of_driver, kube, kube->access};
}

/* ---- pools ---- */

/* Whether a slice that may be packed is of the pool. */
struct pool_seen {
    dv_str name;
    bool is_it;
};

static void see_pool(void *ctx, dv_str text)
{
    struct pool_seen *seen = ctx;

    seen->is_it = dv_str_eq(text, seen->name);
}

static bool is_of_pool(struct dv_object *object, dv_str pool)
{
    struct pool_seen seen = {.name = pool};
    const struct dv_api_resource_slice *slice;

    if (dv_object_each_text(object, DV_STR("spec.pool.name"), see_pool, &seen))
        return seen.is_it;
    slice = object->value;
    return dv_str_eq(slice->spec.pool.name, pool);
}

void dv_kube_look_at_pool(const struct dv_kube *kube, dv_str node,
                          const struct dv_api_resource_slice *slice, struct dv_auth_change *change)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_api_status *failure;
    struct dv_list_page page;
    dv_str owner = DV_STR_NONE;
    size_t n = 0;
    bool is_shared = false;
    bool is_named;
    struct dv_list_query query = {
        .kind = dv_kind(DV_KIND_SLICE),
        .field_selector = dv_str_printf(scratch, "spec.driver=%.*s", DV_FMT(slice->spec.driver)),
    };

    query.version = &query.kind->versions[0];
    if (!dv_embedded_list(kube->options.embedded, &query, scratch, &page, &failure))
        return; /* no driver has such a name, and the slice is refused for it */
    for (size_t i = 0; i < page.n_objects; i++) {
        const struct dv_api_resource_slice *other;

        if (!is_of_pool(page.objects[i], slice->spec.pool.name))
            continue;
        other = dv_object_unpack(page.objects[i])->value;
        if (n++ == 0)
            owner = other->spec.node_name;
        is_shared |= !owner.n || !dv_str_eq(other->spec.node_name, owner);
        if (dv_str_eq(other->spec.node_name, node))
            continue;
        is_named = dv_str_eq(other->spec.node_name, dv_auth_pool_owner(other->spec.pool.name));
        if (!change->rival || is_named)
            change->rival = page.objects[i];
        if (is_named) /* the pool belongs to that node, whoever else has slices in it */
            return;
    }
    change->is_pool_shared = is_shared;
}
