#include "verify/kit/plugin_gift.h"

#include <stddef.h>
#include <string.h>

#include "proto/deviceplugin_v1beta1.pb-c.h"

static bool has_env(dv_gift *gift, const char *key, const char *value)
{
    for (size_t i = 0; i < gift->n_envs; i++)
        if (strcmp(gift->envs[i]->key, key) == 0 && strcmp(gift->envs[i]->value, value) == 0)
            return true;
    return false;
}

static bool has_annotation(dv_gift *gift, const char *key, const char *value)
{
    for (size_t i = 0; i < gift->n_annotations; i++)
        if (strcmp(gift->annotations[i]->key, key) == 0 &&
            strcmp(gift->annotations[i]->value, value) == 0)
            return true;
    return false;
}

/* One node of the host may be in containers under several paths, which tell devices apart. */
static bool has_node(dv_gift *gift, const DpV1beta1__DeviceSpec *node)
{
    for (size_t i = 0; i < gift->n_devices; i++)
        if (strcmp(gift->devices[i]->host_path, node->host_path) == 0 &&
            strcmp(gift->devices[i]->container_path, node->container_path) == 0 &&
            strcmp(gift->devices[i]->permissions, node->permissions) == 0)
            return true;
    return false;
}

static bool has_cdi(dv_gift *gift, const char *name)
{
    for (size_t i = 0; i < gift->n_cdi_devices; i++)
        if (strcmp(gift->cdi_devices[i]->name, name) == 0)
            return true;
    return false;
}

static bool has_mount(dv_gift *gift, const DpV1beta1__Mount *mount)
{
    for (size_t i = 0; i < gift->n_mounts; i++)
        if (strcmp(gift->mounts[i]->host_path, mount->host_path) == 0 &&
            strcmp(gift->mounts[i]->container_path, mount->container_path) == 0 &&
            gift->mounts[i]->read_only == mount->read_only)
            return true;
    return false;
}

bool dv_gift_is_same(dv_gift *a, dv_gift *b)
{
    if (a->n_envs != b->n_envs || a->n_devices != b->n_devices || a->n_mounts != b->n_mounts ||
        a->n_cdi_devices != b->n_cdi_devices || a->n_annotations != b->n_annotations)
        return false;
    for (size_t i = 0; i < a->n_envs; i++)
        if (!has_env(b, a->envs[i]->key, a->envs[i]->value))
            return false;
    for (size_t i = 0; i < a->n_devices; i++)
        if (!has_node(b, a->devices[i]))
            return false;
    for (size_t i = 0; i < a->n_mounts; i++)
        if (!has_mount(b, a->mounts[i]))
            return false;
    for (size_t i = 0; i < a->n_cdi_devices; i++)
        if (!has_cdi(b, a->cdi_devices[i]->name))
            return false;
    for (size_t i = 0; i < a->n_annotations; i++)
        if (!has_annotation(b, a->annotations[i]->key, a->annotations[i]->value))
            return false;
    return true;
}

bool dv_gift_is_empty(dv_gift *gift)
{
    return gift->n_envs + gift->n_devices + gift->n_mounts + gift->n_cdi_devices +
               gift->n_annotations ==
           0;
}

bool dv_gift_has_host_path(dv_gift *gift, const char *path)
{
    for (size_t i = 0; i < gift->n_devices; i++)
        if (strcmp(gift->devices[i]->host_path, path) == 0)
            return true;
    return false;
}
