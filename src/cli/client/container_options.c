#include "cli/client/container_options.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "oci/oci.h"
#include "proto/davit_node_v1.pb-c.h"

static struct dv_cdi_annotation *pairs(NodeV1__KeyValue *const *from, size_t n,
                                       struct dv_arena *arena)
{
    struct dv_cdi_annotation *made = DV_NEW_ARRAY(arena, struct dv_cdi_annotation, n);

    for (size_t i = 0; i < n; i++)
        made[i] =
            (struct dv_cdi_annotation){dv_str_from_c(from[i]->key), dv_str_from_c(from[i]->value)};
    return made;
}

/* Where a link leads; the path itself when it is none, or leads nowhere, which is told later. */
static dv_str follow(const char *path, struct dv_arena *arena)
{
    char *real = realpath(path, NULL);
    dv_str copy = dv_str_copy(dv_str_from_c(real ? real : path), arena);

    free(real);
    return copy;
}

void dv_cli_options_read(const NodeV1__ContainerOptionsResponse *response, struct dv_arena *arena,
                         struct dv_oci_options *options)
{
    struct dv_oci_mount *mounts = DV_NEW_ARRAY(arena, struct dv_oci_mount, response->n_mounts);
    struct dv_oci_device *devices = DV_NEW_ARRAY(arena, struct dv_oci_device, response->n_devices);

    for (size_t i = 0; i < response->n_mounts; i++)
        mounts[i] = (struct dv_oci_mount){
            .container_path = dv_str_from_c(response->mounts[i]->container_path),
            .host_path = dv_str_from_c(response->mounts[i]->host_path),
            .is_read_only = response->mounts[i]->read_only,
        };
    for (size_t i = 0; i < response->n_devices; i++)
        devices[i] = (struct dv_oci_device){
            .container_path = dv_str_from_c(response->devices[i]->container_path),
            .host_path = follow(response->devices[i]->host_path, arena),
            .permissions = dv_str_from_c(response->devices[i]->permissions),
        };
    *options = (struct dv_oci_options){
        .env = pairs(response->envs, response->n_envs, arena),
        .n_env = response->n_envs,
        .mounts = mounts,
        .n_mounts = response->n_mounts,
        .devices = devices,
        .n_devices = response->n_devices,
        .annotations = pairs(response->annotations, response->n_annotations, arena),
        .n_annotations = response->n_annotations,
    };
}
