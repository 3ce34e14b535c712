/* kube_relations.c - what a node has to do with: its pods, and what they refer to. */
#include "base/arena.h"
#include "cluster/embedded.h"
#include "resource/resource.h"
#include "serve/auth.h"
#include "serve/kube_call.h"

static bool uses_claim(const struct dv_api_pod *pod, dv_str name)
{
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++)
        if (dv_str_eq(pod->spec.resource_claims[i].resource_claim_name, name))
            return true;
    for (size_t i = 0; i < pod->status.n_resource_claim_statuses; i++)
        if (dv_str_eq(pod->status.resource_claim_statuses[i].resource_claim_name, name))
            return true;
    return pod->status.extended_resource_claim_status &&
           dv_str_eq(pod->status.extended_resource_claim_status->resource_claim_name, name);
}

static bool uses_env(const struct dv_api_container *containers, size_t n, dv_str name, bool secret)
{
    for (size_t i = 0; i < n; i++) {
        const struct dv_api_container *container = &containers[i];

        for (size_t k = 0; k < container->n_env_from; k++) {
            const struct dv_api_env_from_source *from = &container->env_from[k];

            if (secret ? from->secret_ref &&
                             dv_str_eq(from->secret_ref->local_object_reference.name, name)
                       : from->config_map_ref &&
                             dv_str_eq(from->config_map_ref->local_object_reference.name, name))
                return true;
        }
        for (size_t k = 0; k < container->n_env; k++) {
            const struct dv_api_env_var_source *from = container->env[k].value_from;

            if (from &&
                (secret
                     ? from->secret_key_ref &&
                           dv_str_eq(from->secret_key_ref->local_object_reference.name, name)
                     : from->config_map_key_ref &&
                           dv_str_eq(from->config_map_key_ref->local_object_reference.name, name)))
                return true;
        }
    }
    return false;
}

static bool uses_volume(const struct dv_api_pod *pod, dv_str name, bool secret)
{
    for (size_t i = 0; i < pod->spec.n_volumes; i++) {
        const struct dv_api_volume_source *source = &pod->spec.volumes[i].volume_source;

        if (secret ? source->secret && dv_str_eq(source->secret->secret_name, name)
                   : source->config_map &&
                         dv_str_eq(source->config_map->local_object_reference.name, name))
            return true;
        for (size_t k = 0; source->projected && k < source->projected->n_sources; k++) {
            const struct dv_api_volume_projection *from = &source->projected->sources[k];

            if (secret ? from->secret && dv_str_eq(from->secret->local_object_reference.name, name)
                       : from->config_map &&
                             dv_str_eq(from->config_map->local_object_reference.name, name))
                return true;
        }
    }
    return false;
}

static bool uses_text(const struct dv_api_pod *pod, dv_str name, bool secret)
{
    for (size_t i = 0; secret && i < pod->spec.n_image_pull_secrets; i++)
        if (dv_str_eq(pod->spec.image_pull_secrets[i].name, name))
            return true;
    return uses_volume(pod, name, secret) ||
           uses_env(pod->spec.containers, pod->spec.n_containers, name, secret) ||
           uses_env(pod->spec.init_containers, pod->spec.n_init_containers, name, secret);
}

static bool uses(const struct dv_api_pod *pod, const struct dv_auth_request *request)
{
    if (dv_str_eq(request->resource, DV_STR("resourceclaims")))
        return uses_claim(pod, request->name);
    if (dv_str_eq(request->resource, DV_STR("secrets")))
        return uses_text(pod, request->name, true);
    if (dv_str_eq(request->resource, DV_STR("configmaps")))
        return uses_text(pod, request->name, false);
    if (dv_str_eq(request->resource, DV_STR("serviceaccounts")))
        return dv_str_eq(pod->spec.service_account_name, request->name);
    return false;
}

static bool is_slice_of(const struct dv_kube *kube, dv_str node, dv_str name)
{
    const struct dv_object *object =
        dv_embedded_get(kube->options.embedded, dv_kind(DV_KIND_SLICE), DV_STR_NONE, name);
    const struct dv_api_resource_slice *slice = object ? object->value : NULL;

    return slice && dv_str_eq(slice->spec.node_name, node);
}

bool dv_kube_is_of_node(void *ctx, dv_str node, const struct dv_auth_request *request)
{
    const struct dv_kube *kube = ctx;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_api_status *failure;
    struct dv_list_page page;
    struct dv_list_query query = {
        .kind = dv_kind(DV_KIND_POD),
        .space = request->space,
        .field_selector = dv_str_printf(scratch, "spec.nodeName=%.*s", DV_FMT(node)),
    };

    if (dv_str_eq(request->resource, DV_STR("resourceslices")))
        return is_slice_of(kube, node, request->name);
    if (dv_str_eq(request->resource, DV_STR("pods")))
        query.field_selector = dv_str_printf(scratch, "spec.nodeName=%.*s,metadata.name=%.*s",
                                             DV_FMT(node), DV_FMT(request->name));
    query.version = &query.kind->versions[0];
    if (!dv_embedded_list(kube->options.embedded, &query, scratch, &page, &failure))
        return false; /* a name that no selector can have: no such pod either */
    if (dv_str_eq(request->resource, DV_STR("pods")))
        return page.n_objects > 0;
    for (size_t i = 0; i < page.n_objects; i++)
        if (uses(page.objects[i]->value, request))
            return true;
    return false;
}
