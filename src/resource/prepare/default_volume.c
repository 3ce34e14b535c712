/* default_volume.c - the defaults of volumes. */
#include "resource/prepare/default.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "resource/codec/layout.h"
#include "resource/resource.h"

static const int64_t mode_0644 = 420;
static const int64_t hour_s = 3600;
static const int64_t day_s = 86400;
static const bool no = false;

static void default_mode(const int64_t **mode)
{
    if (!*mode)
        *mode = &mode_0644;
}

static void default_optional(dv_str *text, dv_str value)
{
    if (!text->p)
        *text = value;
}

static void default_files(struct dv_api_downward_api_volume_file *files, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dv_default_field_ref(files[i].field_ref);
}

static void default_projection(struct dv_api_volume_projection *projection)
{
    if (projection->downward_api)
        default_files(projection->downward_api->items, projection->downward_api->n_items);
    if (projection->service_account_token && !projection->service_account_token->expiration_seconds)
        projection->service_account_token->expiration_seconds = &hour_s;
    if (projection->pod_certificate && !projection->pod_certificate->max_expiration_seconds)
        projection->pod_certificate->max_expiration_seconds = &day_s;
}

static void default_projected(struct dv_api_projected_volume_source *projected)
{
    default_mode(&projected->default_mode);
    for (size_t i = 0; i < projected->n_sources; i++)
        default_projection(&projected->sources[i]);
}

static void default_rbd(struct dv_api_rbd_volume_source *rbd)
{
    dv_default_str(&rbd->pool, DV_STR("rbd"));
    dv_default_str(&rbd->user, DV_STR("admin"));
    dv_default_str(&rbd->keyring, DV_STR("/etc/ceph/keyring"));
}

static void default_azure_disk(struct dv_api_azure_disk_volume_source *disk)
{
    default_optional(&disk->caching_mode, DV_STR("ReadWrite"));
    default_optional(&disk->kind, DV_STR("Shared"));
    default_optional(&disk->fs_type, DV_STR("ext4"));
    if (!disk->read_only)
        disk->read_only = &no;
}

static void default_scale_io(struct dv_api_scale_io_volume_source *scale_io)
{
    dv_default_str(&scale_io->storage_mode, DV_STR("ThinProvisioned"));
    dv_default_str(&scale_io->fs_type, DV_STR("xfs"));
}

static void default_ephemeral(struct dv_api_ephemeral_volume_source *ephemeral,
                              struct dv_arena *arena)
{
    struct dv_api_persistent_volume_claim_spec *spec;

    if (!ephemeral->volume_claim_template)
        return;
    spec = &ephemeral->volume_claim_template->spec;
    default_optional(&spec->volume_mode, DV_STR("Filesystem"));
    dv_default_quantities(spec->resources.limits, spec->resources.n_limits, arena);
    dv_default_quantities(spec->resources.requests, spec->resources.n_requests, arena);
}

/* Volumes that come from disks of a storage system. */
static void default_disk(struct dv_api_volume_source *source, struct dv_arena *arena)
{
    if (source->iscsi)
        dv_default_str(&source->iscsi->iscsi_interface, DV_STR("default"));
    if (source->rbd)
        default_rbd(source->rbd);
    if (source->azure_disk)
        default_azure_disk(source->azure_disk);
    if (source->scale_io)
        default_scale_io(source->scale_io);
    if (source->ephemeral)
        default_ephemeral(source->ephemeral, arena);
}

/* Whether the source is of no kind: every member is a pointer, and none is set. */
static bool is_no_source(const struct dv_api_volume_source *source)
{
    const struct dv_message *message = &dv_message_volume_source;

    for (size_t i = 0; i < message->n_fields; i++)
        if (dv_load_pointer((const char *)source + message->fields[i].offset))
            return false;
    return true;
}

void dv_default_volume(struct dv_api_volume *volume, struct dv_arena *arena)
{
    struct dv_api_volume_source *source = &volume->volume_source;

    if (is_no_source(source))
        source->empty_dir = DV_NEW(arena, struct dv_api_empty_dir_volume_source);
    if (source->host_path)
        default_optional(&source->host_path->type, DV_STR(""));
    if (source->secret)
        default_mode(&source->secret->default_mode);
    if (source->config_map)
        default_mode(&source->config_map->default_mode);
    if (source->downward_api) {
        default_mode(&source->downward_api->default_mode);
        default_files(source->downward_api->items, source->downward_api->n_items);
    }
    if (source->projected)
        default_projected(source->projected);
    if (source->image && source->image->pull_policy.n == 0)
        source->image->pull_policy = dv_default_pull_policy(source->image->reference);
    default_disk(source, arena);
}
