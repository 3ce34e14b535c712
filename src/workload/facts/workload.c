#include "workload/workload.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "number/number.h"
#include "resource/resource.h"

#define SEEN DV_STR("kubernetes.io/config.seen")
#define SOURCE DV_STR("kubernetes.io/config.source")

const struct dv_workload_handler *dv_workload_handler_find(const struct dv_workload_node *node,
                                                           dv_str name)
{
    for (size_t i = 0; i < node->n_handlers; i++)
        if (dv_str_eq(node->handlers[i].name, name))
            return &node->handlers[i];
    return NULL;
}

struct dv_str_entry *dv_workload_annotations(const struct dv_workload_pod *pod,
                                             struct dv_arena *arena, size_t *n)
{
    const struct dv_api_object_meta *meta = &pod->pod->metadata;
    struct dv_str_entry *entries =
        DV_NEW_ARRAY(arena, struct dv_str_entry, meta->n_annotations + 2);
    size_t at = 0;

    for (size_t i = 0; i < meta->n_annotations; i++)
        if (!dv_str_eq(meta->annotations[i].key, SEEN) &&
            !dv_str_eq(meta->annotations[i].key, SOURCE))
            entries[at++] = meta->annotations[i];
    entries[at++] = (struct dv_str_entry){SEEN, pod->seen};
    entries[at++] = (struct dv_str_entry){SOURCE, pod->source};
    qsort(entries, at, sizeof(entries[0]), dv_str_compare);
    *n = at;
    return entries;
}

dv_str dv_workload_annotation(const struct dv_workload_pod *pod, dv_str key)
{
    const struct dv_api_object_meta *meta = &pod->pod->metadata;
    const struct dv_str_entry *found;

    if (dv_str_eq(key, SEEN))
        return pod->seen;
    if (dv_str_eq(key, SOURCE))
        return pod->source;
    found = dv_entry_find(meta->annotations, meta->n_annotations, key);
    return found ? found->value : DV_STR("");
}

static const struct dv_api_container *find(const struct dv_api_container *containers, size_t n,
                                           dv_str name)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(containers[i].name, name))
            return &containers[i];
    return NULL;
}

const struct dv_api_container *dv_workload_container(const struct dv_api_pod *pod, dv_str name,
                                                     enum dv_workload_kind *kind)
{
    const struct dv_api_pod_spec *spec = &pod->spec;
    enum dv_workload_kind ignored;
    const struct dv_api_container *found = find(spec->containers, spec->n_containers, name);

    if (!kind)
        kind = &ignored;
    *kind = DV_WORKLOAD_REGULAR;
    if (found)
        return found;
    found = find(spec->init_containers, spec->n_init_containers, name);
    if (found) {
        *kind = dv_str_eq(found->restart_policy, DV_STR("Always")) ? DV_WORKLOAD_SIDECAR
                                                                   : DV_WORKLOAD_INIT;
        return found;
    }
    *kind = DV_WORKLOAD_EPHEMERAL;
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        if (dv_str_eq(spec->ephemeral_containers[i].ephemeral_container_common.name, name))
            return &spec->ephemeral_containers[i].ephemeral_container_common;
    return NULL;
}

dv_str dv_workload_pod_dir(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                           struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s/pods/%.*s", DV_FMT(node->root_dir), DV_FMT(pod->uid));
}

dv_str dv_workload_log_dir(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                           struct dv_arena *arena)
{
    const struct dv_api_object_meta *meta = &pod->pod->metadata;

    return dv_str_printf(arena, "%.*s/%.*s_%.*s_%.*s", DV_FMT(node->log_dir),
                         DV_FMT(meta->namespace), DV_FMT(meta->name), DV_FMT(pod->uid));
}

dv_str dv_workload_log_link(dv_str pod, dv_str namespace, dv_str container, dv_str id,
                            struct dv_arena *arena)
{
    const dv_str suffix = DV_STR(".log");
    dv_str name = dv_str_printf(arena, "%.*s_%.*s_%.*s-%.*s", DV_FMT(pod), DV_FMT(namespace),
                                DV_FMT(container), DV_FMT(id));

    return dv_str_printf(arena, "%.*s%.*s", DV_FMT(dv_str_slice(name, 0, NAME_MAX - suffix.n)),
                         DV_FMT(suffix));
}

static int compare_config_map(const void *name, const void *at)
{
    const struct dv_api_config_map *const *config_map = at;

    return dv_str_cmp(*(const dv_str *)name, (*config_map)->metadata.name);
}

static int compare_secret(const void *name, const void *at)
{
    const struct dv_api_secret *const *secret = at;

    return dv_str_cmp(*(const dv_str *)name, (*secret)->metadata.name);
}

const struct dv_api_config_map *dv_workload_config_map(const struct dv_workload_objects *objects,
                                                       dv_str name)
{
    const struct dv_api_config_map *const *found = NULL;

    if (objects->n_config_maps > 0)
        found = bsearch(&name, objects->config_maps, objects->n_config_maps,
                        sizeof(objects->config_maps[0]), compare_config_map);
    return found ? *found : NULL;
}

const struct dv_api_secret *dv_workload_secret(const struct dv_workload_objects *objects,
                                               dv_str name)
{
    const struct dv_api_secret *const *found = NULL;

    if (objects->n_secrets > 0)
        found = bsearch(&name, objects->secrets, objects->n_secrets, sizeof(objects->secrets[0]),
                        compare_secret);
    return found ? *found : NULL;
}

const struct dv_quantity *dv_workload_amount(const struct dv_quantity_entry *entries, size_t n,
                                             dv_str resource)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(entries[i].key, resource))
            return &entries[i].value;
    return NULL;
}

int64_t dv_workload_whole(const struct dv_quantity *amount)
{
    int64_t value = 0;

    if (amount && !dv_quantity_to_i64_ceil(amount, &value))
        return dv_quantity_sign(amount) < 0 ? INT64_MIN : INT64_MAX;
    return value;
}

int64_t dv_workload_milli(const struct dv_quantity *amount)
{
    int64_t value = 0;

    if (amount && !dv_quantity_to_milli_ceil(amount, &value))
        return dv_quantity_sign(amount) < 0 ? INT64_MIN : INT64_MAX;
    return value;
}

/* Whether any of them is a resource that a pod as a whole may have. */
static bool is_any_of_pods(const struct dv_quantity_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(entries[i].key, DV_STR("cpu")) ||
            dv_str_eq(entries[i].key, DV_STR("memory")) ||
            dv_str_starts_with(entries[i].key, DV_STR("hugepages-")))
            return true;
    return false;
}

const struct dv_api_resource_requirements *dv_workload_pod_level(const struct dv_api_pod *pod)
{
    const struct dv_api_resource_requirements *resources = pod->spec.resources;

    return resources && (is_any_of_pods(resources->limits, resources->n_limits) ||
                         is_any_of_pods(resources->requests, resources->n_requests))
               ? resources
               : NULL;
}
