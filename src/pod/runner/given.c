#include "pod/runner/given.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "resource/resource.h"
#include "workload/workload.h"

static const struct dv_str_entry *entries(const struct dv_device_pair *pairs, size_t n,
                                          struct dv_arena *arena)
{
    struct dv_str_entry *list = DV_NEW_ARRAY(arena, struct dv_str_entry, n);

    for (size_t i = 0; i < n; i++)
        list[i] = (struct dv_str_entry){pairs[i].name, pairs[i].value};
    return list;
}

static const struct dv_workload_given_mount *mounts_of(const struct dv_device_options *options,
                                                       struct dv_arena *arena)
{
    struct dv_workload_given_mount *list =
        DV_NEW_ARRAY(arena, struct dv_workload_given_mount, options->n_mounts);

    for (size_t i = 0; i < options->n_mounts; i++)
        list[i] = (struct dv_workload_given_mount){
            .container_path = options->mounts[i].container_path,
            .host_path = options->mounts[i].host_path,
            .is_read_only = options->mounts[i].is_read_only,
        };
    return list;
}

static const struct dv_workload_device *nodes_of(const struct dv_device_options *options,
                                                 struct dv_arena *arena)
{
    struct dv_workload_device *list =
        DV_NEW_ARRAY(arena, struct dv_workload_device, options->n_nodes);

    for (size_t i = 0; i < options->n_nodes; i++)
        list[i] = (struct dv_workload_device){
            .container_path = options->nodes[i].container_path,
            .host_path = options->nodes[i].host_path,
            .permissions = options->nodes[i].permissions,
        };
    return list;
}

static void log_conflicts(dv_str container, const struct dv_device_options *options)
{
    for (size_t i = 0; i < options->n_conflicts; i++)
        dv_log(DV_LOG_ERROR, "pod: two plugins set the same thing; the first counts",
               DV_F_STR("container", container), DV_F_C("part", options->conflicts[i].part),
               DV_F_STR("name", options->conflicts[i].name),
               DV_F_STR("kept", options->conflicts[i].kept),
               DV_F_STR("dropped", options->conflicts[i].dropped));
}

bool dv_given_gather(struct dv_device_manager *devices, struct dv_claim_manager *claims,
                     const struct dv_api_pod *pod, dv_str uid,
                     const struct dv_api_container *container, struct dv_arena *arena,
                     struct dv_workload_given *given, struct dv_err *err)
{
    struct dv_device_options options = {0};
    struct dv_claim_cdi_name *names = NULL;
    struct dv_claim_lookup lookup;
    size_t n_names = 0;
    bool is_known;
    dv_str *ids;

    if (dv_device_container_options(dv_device_manager_state(devices), uid, container->name, arena,
                                    &options))
        log_conflicts(container->name, &options);
    dv_claim_lookup_init(&lookup, pod);
    is_known = !claims || dv_claim_cdi_names(dv_claim_manager_state(claims), &lookup, container,
                                             arena, &names, &n_names, err);
    dv_claim_lookup_fini(&lookup);
    if (!is_known)
        return false;
    /* the names of claims come first, as in the reference */
    ids = DV_NEW_ARRAY(arena, dv_str, n_names + options.n_cdi_names);
    for (size_t i = 0; i < n_names; i++)
        ids[i] = names[i].id;
    for (size_t i = 0; i < options.n_cdi_names; i++)
        ids[n_names + i] = options.cdi_names[i];
    *given = (struct dv_workload_given){
        .envs = entries(options.envs, options.n_envs, arena),
        .n_envs = options.n_envs,
        .mounts = mounts_of(&options, arena),
        .n_mounts = options.n_mounts,
        .devices = nodes_of(&options, arena),
        .n_devices = options.n_nodes,
        .annotations = entries(options.annotations, options.n_annotations, arena),
        .n_annotations = options.n_annotations,
        .cdi_names = ids,
        .n_cdi_names = n_names + options.n_cdi_names,
    };
    return true;
}

static const struct dv_str_entry *copy_entries(const struct dv_str_entry *list, size_t n,
                                               struct dv_arena *arena)
{
    struct dv_str_entry *copy = DV_NEW_ARRAY(arena, struct dv_str_entry, n);

    for (size_t i = 0; i < n; i++)
        copy[i] = (struct dv_str_entry){dv_str_copy(list[i].key, arena),
                                        dv_str_copy(list[i].value, arena)};
    return copy;
}

void dv_given_copy(const struct dv_workload_given *given, struct dv_arena *arena,
                   struct dv_workload_given *copy)
{
    struct dv_workload_given_mount *mounts =
        DV_NEW_ARRAY(arena, struct dv_workload_given_mount, given->n_mounts);
    struct dv_workload_device *devices =
        DV_NEW_ARRAY(arena, struct dv_workload_device, given->n_devices);
    dv_str *names = DV_NEW_ARRAY(arena, dv_str, given->n_cdi_names);

    for (size_t i = 0; i < given->n_mounts; i++)
        mounts[i] = (struct dv_workload_given_mount){
            .container_path = dv_str_copy(given->mounts[i].container_path, arena),
            .host_path = dv_str_copy(given->mounts[i].host_path, arena),
            .is_read_only = given->mounts[i].is_read_only,
        };
    for (size_t i = 0; i < given->n_devices; i++)
        devices[i] = (struct dv_workload_device){
            .container_path = dv_str_copy(given->devices[i].container_path, arena),
            .host_path = dv_str_copy(given->devices[i].host_path, arena),
            .permissions = dv_str_copy(given->devices[i].permissions, arena),
        };
    for (size_t i = 0; i < given->n_cdi_names; i++)
        names[i] = dv_str_copy(given->cdi_names[i], arena);
    *copy = *given;
    copy->envs = copy_entries(given->envs, given->n_envs, arena);
    copy->annotations = copy_entries(given->annotations, given->n_annotations, arena);
    copy->mounts = mounts;
    copy->devices = devices;
    copy->cdi_names = names;
}
