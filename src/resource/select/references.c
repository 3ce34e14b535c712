/* references.c - the names that a pod's spec refers to: secrets, config maps, volumes and the
 * like. */
#include "resource/references.h"

#include <stddef.h>

#include "base/defs.h"
#include "base/map.h"
#include "resource/resource.h"

struct walk {
    dv_visit_reference *visit;
    void *ctx;
};

static bool tell(const struct walk *walk, enum dv_reference_kind kind, dv_str name,
                 const char *what)
{
    const struct dv_reference reference = {kind, name, dv_str_from_c(what)};

    return walk->visit(walk->ctx, &reference);
}

static bool tell_secret(const struct walk *walk, dv_str name)
{
    return tell(walk, DV_REFERENCE_SECRET, name, "secrets");
}

static bool tell_config_map(const struct walk *walk, dv_str name)
{
    return tell(walk, DV_REFERENCE_CONFIG_MAP, name, "configmaps");
}

/* ---- containers ---- */

static bool walk_env(const struct walk *walk, const struct dv_api_container *container,
                     enum dv_reference_kind kind)
{
    for (size_t i = 0; i < container->n_env_from; i++) {
        const struct dv_api_env_from_source *from = &container->env_from[i];

        if (kind == DV_REFERENCE_SECRET && from->secret_ref &&
            !tell_secret(walk, from->secret_ref->local_object_reference.name))
            return false;
        if (kind == DV_REFERENCE_CONFIG_MAP && from->config_map_ref &&
            !tell_config_map(walk, from->config_map_ref->local_object_reference.name))
            return false;
    }
    for (size_t i = 0; i < container->n_env; i++) {
        const struct dv_api_env_var_source *from = container->env[i].value_from;

        if (kind == DV_REFERENCE_SECRET && from && from->secret_key_ref &&
            !tell_secret(walk, from->secret_key_ref->local_object_reference.name))
            return false;
        if (kind == DV_REFERENCE_CONFIG_MAP && from && from->config_map_key_ref &&
            !tell_config_map(walk, from->config_map_key_ref->local_object_reference.name))
            return false;
    }
    return true;
}

static bool walk_containers(const struct walk *walk, const struct dv_api_pod_spec *spec,
                            enum dv_reference_kind kind)
{
    for (size_t i = 0; i < spec->n_init_containers; i++)
        if (!walk_env(walk, &spec->init_containers[i], kind))
            return false;
    for (size_t i = 0; i < spec->n_containers; i++)
        if (!walk_env(walk, &spec->containers[i], kind))
            return false;
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        if (!walk_env(walk, &spec->ephemeral_containers[i].ephemeral_container_common, kind))
            return false;
    return true;
}

/* ---- volumes ---- */

static bool walk_volume_secrets(const struct walk *walk, const struct dv_api_volume_source *source)
{
    const struct dv_api_local_object_reference *const refs[] = {
        source->iscsi ? source->iscsi->secret_ref : NULL,
        source->rbd ? source->rbd->secret_ref : NULL,
        source->flex_volume ? source->flex_volume->secret_ref : NULL,
        source->cinder ? source->cinder->secret_ref : NULL,
        source->cephfs ? source->cephfs->secret_ref : NULL,
        source->scale_io ? source->scale_io->secret_ref : NULL,
        source->storageos ? source->storageos->secret_ref : NULL,
        source->csi ? source->csi->node_publish_secret_ref : NULL,
    };

    if (source->secret && !tell_secret(walk, source->secret->secret_name))
        return false;
    if (source->azure_file && !tell_secret(walk, source->azure_file->secret_name))
        return false;
    for (size_t i = 0; i < DV_COUNT(refs); i++)
        if (refs[i] && !tell_secret(walk, refs[i]->name))
            return false;
    for (size_t i = 0; source->projected && i < source->projected->n_sources; i++) {
        const struct dv_api_secret_projection *secret = source->projected->sources[i].secret;

        if (secret && !tell_secret(walk, secret->local_object_reference.name))
            return false;
    }
    return true;
}

static bool walk_volume_config_maps(const struct walk *walk,
                                    const struct dv_api_volume_source *source)
{
    if (source->config_map &&
        !tell_config_map(walk, source->config_map->local_object_reference.name))
        return false;
    for (size_t i = 0; source->projected && i < source->projected->n_sources; i++) {
        const struct dv_api_config_map_projection *map = source->projected->sources[i].config_map;

        if (map && !tell_config_map(walk, map->local_object_reference.name))
            return false;
    }
    return true;
}

static bool walk_projection(const struct walk *walk, const struct dv_api_volume_projection *source)
{
    if (source->service_account_token)
        return tell(walk, DV_REFERENCE_OTHER, DV_STR_NONE,
                    "serviceaccounts (via projected volumes)");
    if (source->cluster_trust_bundle)
        return tell(walk, DV_REFERENCE_OTHER, DV_STR_NONE, "clustertrustbundles");
    if (source->pod_certificate)
        return tell(walk, DV_REFERENCE_OTHER, DV_STR_NONE, "podcertificates");
    return true;
}

static bool walk_other_volume(const struct walk *walk, const struct dv_api_volume_source *source)
{
    for (size_t i = 0; source->projected && i < source->projected->n_sources; i++)
        if (!walk_projection(walk, &source->projected->sources[i]))
            return false;
    if (source->persistent_volume_claim)
        return tell(walk, DV_REFERENCE_OTHER, source->persistent_volume_claim->claim_name,
                    "persistentvolumeclaims");
    if (source->ephemeral)
        return tell(walk, DV_REFERENCE_OTHER, DV_STR_NONE, "persistentvolumeclaims");
    if (source->csi)
        return tell(walk, DV_REFERENCE_OTHER, source->csi->driver, "csidrivers");
    if (source->glusterfs)
        return tell(walk, DV_REFERENCE_OTHER, DV_STR_NONE, "endpoints");
    return true;
}

/* ---- pods ---- */

static bool walk_secrets(const struct walk *walk, const struct dv_api_pod_spec *spec)
{
    for (size_t i = 0; i < spec->n_image_pull_secrets; i++)
        if (!tell_secret(walk, spec->image_pull_secrets[i].name))
            return false;
    for (size_t i = 0; i < spec->n_volumes; i++)
        if (!walk_volume_secrets(walk, &spec->volumes[i].volume_source))
            return false;
    return walk_containers(walk, spec, DV_REFERENCE_SECRET);
}

static bool walk_config_maps(const struct walk *walk, const struct dv_api_pod_spec *spec)
{
    for (size_t i = 0; i < spec->n_volumes; i++)
        if (!walk_volume_config_maps(walk, &spec->volumes[i].volume_source))
            return false;
    return walk_containers(walk, spec, DV_REFERENCE_CONFIG_MAP);
}

void dv_pod_index_claim_statuses(const struct dv_api_pod *pod, struct dv_map *by_entry)
{
    dv_map_init(by_entry);
    /* backwards, so that of equal names the first one counts */
    for (size_t i = pod->status.n_resource_claim_statuses; i > 0; i--)
        (void)dv_map_set(by_entry, pod->status.resource_claim_statuses[i - 1].name,
                         &pod->status.resource_claim_statuses[i - 1]);
}

/* The name of the claim. A status without its entry in the spec is ignored. */
static dv_str claim_name(const struct dv_map *statuses,
                         const struct dv_api_pod_resource_claim *claim)
{
    const struct dv_api_pod_resource_claim_status *status;

    if (claim->resource_claim_name.n > 0)
        return claim->resource_claim_name;
    status = dv_map_get(statuses, claim->name);
    return status ? status->resource_claim_name : DV_STR_NONE;
}

static bool walk_claims(const struct walk *walk, const struct dv_api_pod *pod)
{
    DV_CLEANUP(dv_map_fini) struct dv_map statuses = {0};

    dv_pod_index_claim_statuses(pod, &statuses);
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++)
        if (!tell(walk, DV_REFERENCE_CLAIM, claim_name(&statuses, &pod->spec.resource_claims[i]),
                  "resourceclaims"))
            return false;
    return !pod->status.extended_resource_claim_status ||
           tell(walk, DV_REFERENCE_CLAIM,
                pod->status.extended_resource_claim_status->resource_claim_name, "resourceclaims");
}

bool dv_pod_visit_references(const struct dv_api_pod *pod, dv_visit_reference *visit, void *ctx)
{
    const struct walk walk = {visit, ctx};
    const struct dv_api_pod_spec *spec = &pod->spec;
    dv_str account =
        spec->service_account_name.n > 0 ? spec->service_account_name : spec->service_account;

    if (account.n > 0 && !tell(&walk, DV_REFERENCE_SERVICE_ACCOUNT, account, "serviceaccounts"))
        return false;
    if (!walk_secrets(&walk, spec) || !walk_config_maps(&walk, spec) || !walk_claims(&walk, pod))
        return false;
    for (size_t i = 0; i < spec->n_volumes; i++)
        if (!walk_other_volume(&walk, &spec->volumes[i].volume_source))
            return false;
    return true;
}

bool dv_pod_is_mirror(const struct dv_api_pod *pod)
{
    return dv_entry_find(pod->metadata.annotations, pod->metadata.n_annotations,
                         DV_STR(DV_MIRROR_ANNOTATION)) != NULL;
}
