/* prepare_account.c - what a pod gets from its service account: the work of the reference's
 * admission plugin ServiceAccount. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "resource/prepare.h"
#include "resource/references.h"
#include "resource/resource.h"

#define MOUNT_PATH "/var/run/secrets/kubernetes.io/serviceaccount"

static const int64_t token_s = 3607; /* the reference's: an hour, and known by the odd seconds */
static const int64_t file_mode = 0644;

/* ---- mirror pods ---- */

static bool is_no_secret(void *ctx, const struct dv_reference *reference)
{
    (void)ctx;
    return reference->kind != DV_REFERENCE_SECRET;
}

static bool has_token(const struct dv_api_volume *volume)
{
    const struct dv_api_projected_volume_source *projected = volume->volume_source.projected;

    for (size_t i = 0; projected && i < projected->n_sources; i++)
        if (projected->sources[i].service_account_token)
            return true;
    return false;
}

const char *dv_mirror_pod_fault(const struct dv_api_pod *pod)
{
    if (pod->spec.service_account_name.n > 0)
        return "a mirror pod may not reference service accounts";
    if (!dv_pod_visit_references(pod, is_no_secret, NULL))
        return "a mirror pod may not reference secrets";
    for (size_t i = 0; i < pod->spec.n_volumes; i++)
        if (has_token(&pod->spec.volumes[i]))
            return "a mirror pod may not use ServiceAccountToken volume projections";
    return NULL;
}

/* ---- the volume ---- */

static struct dv_api_projected_volume_source *make_source(struct dv_arena *arena)
{
    struct dv_api_projected_volume_source *source =
        DV_NEW(arena, struct dv_api_projected_volume_source);
    struct dv_api_volume_projection *parts =
        DV_NEW_ARRAY(arena, struct dv_api_volume_projection, 3);
    struct dv_api_key_to_path *item = DV_NEW(arena, struct dv_api_key_to_path);
    struct dv_api_downward_api_volume_file *file =
        DV_NEW(arena, struct dv_api_downward_api_volume_file);

    parts[0].service_account_token = DV_NEW(arena, struct dv_api_service_account_token_projection);
    *parts[0].service_account_token = (struct dv_api_service_account_token_projection){
        .path = DV_STR("token"), .expiration_seconds = &token_s};
    *item = (struct dv_api_key_to_path){.key = DV_STR("ca.crt"), .path = DV_STR("ca.crt")};
    parts[1].config_map = DV_NEW(arena, struct dv_api_config_map_projection);
    *parts[1].config_map = (struct dv_api_config_map_projection){
        .local_object_reference = {.name = DV_STR(DV_ROOT_CA_CONFIG_MAP)},
        .items = item,
        .n_items = 1};
    file->path = DV_STR("namespace");
    file->field_ref = DV_NEW(arena, struct dv_api_object_field_selector);
    *file->field_ref = (struct dv_api_object_field_selector){
        .api_version = DV_STR("v1"), .field_path = DV_STR("metadata.namespace")};
    parts[2].downward_api = DV_NEW(arena, struct dv_api_downward_api_projection);
    *parts[2].downward_api = (struct dv_api_downward_api_projection){.items = file, .n_items = 1};
    *source = (struct dv_api_projected_volume_source){
        .sources = parts, .n_sources = 3, .default_mode = &file_mode};
    return source;
}

/* A container that has something of its own at that path keeps it. */
static bool add_mount(struct dv_api_container *container, dv_str volume, struct dv_arena *arena)
{
    size_t n = container->n_volume_mounts;
    struct dv_api_volume_mount *mounts;

    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(container->volume_mounts[i].mount_path, DV_STR(MOUNT_PATH)))
            return false;
    mounts = DV_NEW_ARRAY(arena, struct dv_api_volume_mount, n + 1);
    if (n > 0)
        memcpy(mounts, container->volume_mounts, n * sizeof(mounts[0]));
    mounts[n] = (struct dv_api_volume_mount){
        .name = volume, .read_only = true, .mount_path = DV_STR(MOUNT_PATH)};
    container->volume_mounts = mounts;
    container->n_volume_mounts = n + 1;
    return true;
}

static void add_volume(struct dv_api_pod_spec *spec, dv_str new_name, struct dv_arena *arena)
{
    struct dv_api_volume *volumes = DV_NEW_ARRAY(arena, struct dv_api_volume, spec->n_volumes + 1);
    dv_str name = new_name;
    bool is_there = false;
    bool is_needed = false;

    for (size_t i = 0; i < spec->n_volumes && !is_there; i++) {
        is_there = dv_str_starts_with(spec->volumes[i].name, DV_STR(DV_API_ACCESS_VOLUME));
        name = is_there ? spec->volumes[i].name : name;
    }
    for (size_t i = 0; i < spec->n_init_containers; i++)
        is_needed |= add_mount(&spec->init_containers[i], name, arena);
    for (size_t i = 0; i < spec->n_containers; i++)
        is_needed |= add_mount(&spec->containers[i], name, arena);
    if (is_there || !is_needed)
        return;
    if (spec->n_volumes > 0)
        memcpy(volumes, spec->volumes, spec->n_volumes * sizeof(volumes[0]));
    volumes[spec->n_volumes] = (struct dv_api_volume){.name = name};
    volumes[spec->n_volumes++].volume_source.projected = make_source(arena);
    spec->volumes = volumes;
}

/* ---- the account ---- */

static bool wants_volume(const struct dv_api_pod_spec *spec,
                         const struct dv_api_service_account *account)
{
    if (spec->automount_service_account_token)
        return *spec->automount_service_account_token;
    return !account || !account->automount_service_account_token ||
           *account->automount_service_account_token;
}

void dv_pod_add_account(struct dv_api_pod *pod, const struct dv_api_service_account *account,
                        dv_str volume_name, struct dv_arena *arena)
{
    struct dv_api_pod_spec *spec = &pod->spec;

    if (spec->service_account_name.n == 0)
        spec->service_account_name = spec->service_account = DV_STR(DV_DEFAULT_ACCOUNT);
    if (wants_volume(spec, account))
        add_volume(spec, volume_name, arena);
    if (spec->n_image_pull_secrets > 0 || !account || account->n_image_pull_secrets == 0)
        return;
    spec->n_image_pull_secrets = account->n_image_pull_secrets;
    spec->image_pull_secrets =
        DV_NEW_ARRAY(arena, struct dv_api_local_object_reference, spec->n_image_pull_secrets);
    for (size_t i = 0; i < spec->n_image_pull_secrets; i++)
        spec->image_pull_secrets[i].name = dv_str_copy(account->image_pull_secrets[i].name, arena);
}
