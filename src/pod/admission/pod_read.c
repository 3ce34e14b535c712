/* pod_read.c - what davit needs to know of a Pod that an API has checked: a typed object, so that
 * nothing is printed and parsed to get here. Pure. */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "pod/admission/pod_parse.h"
#include "pod/pod.h"
#include "resource/resource.h"

/* The API has checked more than this. What is checked again is what would make two pods one, or
 * break the rows of the store. */
static bool check_id(const char *field, dv_str value, struct dv_err *err)
{
    if (value.n == 0 || value.n > DV_POD_NAME_BYTES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%s has %zu bytes, where 1 to %u are kept", field,
                       value.n, DV_POD_NAME_BYTES_MAX);
    return !dv_pod_has_control(value) ||
           dv_fail(err, DV_INVALID_ARGUMENT, "%s has a control character", field);
}

static bool read_limits(const struct dv_api_resource_requirements *resources,
                        struct dv_arena *arena, struct dv_pod_container *container,
                        struct dv_err *err)
{
    container->limits = DV_NEW_ARRAY(arena, struct dv_device_limit, resources->n_limits);
    for (size_t i = 0; i < resources->n_limits; i++) {
        const struct dv_quantity_entry *entry = &resources->limits[i];
        struct dv_device_limit *limit = &container->limits[container->n_limits];
        const char *why;

        if (!dv_pod_is_extended(entry->key))
            continue;
        why = dv_pod_has_control(entry->key) ? "has a control character in its name"
                                             : dv_pod_whole_amount(&entry->value, &limit->amount);
        if (why)
            return dv_fail(err, DV_INVALID_ARGUMENT, "container %.*s: limit of %.*s %s",
                           DV_FMT(container->name), DV_FMT(entry->key), why);
        limit->resource = entry->key;
        container->n_limits++;
    }
    dv_pod_sort_limits(container);
    return true;
}

static enum dv_device_container_kind kind_of(const struct dv_api_container *container, bool is_init)
{
    if (!is_init)
        return DV_DEVICE_REGULAR;
    return dv_str_eq(container->restart_policy, DV_STR("Always")) ? DV_DEVICE_SIDECAR
                                                                  : DV_DEVICE_INIT;
}

static bool read_containers(const struct dv_api_container *containers, size_t n, bool is_init,
                            struct dv_arena *arena, struct dv_pod_spec *spec, struct dv_err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct dv_pod_container *made = &spec->containers[spec->n_containers++];

        made->name = containers[i].name;
        made->kind = kind_of(&containers[i], is_init);
        if (!check_id("the name of a container", made->name, err) ||
            !read_limits(&containers[i].resources, arena, made, err))
            return false;
    }
    return true;
}

static dv_str annotation(const struct dv_api_pod *pod, const char *key)
{
    const struct dv_str_entry *entry =
        dv_entry_find(pod->metadata.annotations, pod->metadata.n_annotations, dv_str_from_c(key));

    return entry ? entry->value : DV_STR("");
}

static bool read_owner(const struct dv_api_pod *pod, struct dv_pod_spec *spec, struct dv_err *err)
{
    dv_str pid = annotation(pod, DV_POD_OWNER_PID);

    spec->owner_cgroup = annotation(pod, DV_POD_OWNER_CGROUP);
    if (pid.n > 0 && !dv_pod_parse_pid(pid, &spec->owner_pid))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "annotation " DV_POD_OWNER_PID " is not the number of a process");
    if (dv_pod_has_control(spec->owner_cgroup))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "annotation " DV_POD_OWNER_CGROUP " has a control character");
    return pid.n == 0 || spec->owner_cgroup.n == 0 ||
           dv_fail(err, DV_INVALID_ARGUMENT,
                   "it has two owners, a process and a control group: one can be watched");
}

/* Copies the struct alone, and not what it points to: a pod may be megabytes long. */
static struct dv_api_pod *copy_pod(const struct dv_api_pod *pod, struct dv_arena *arena)
{
    struct dv_api_pod *copy = DV_NEW(arena, struct dv_api_pod);

    *copy = *pod;
    return copy;
}

static bool read_body(const struct dv_api_pod *pod, struct dv_arena *arena,
                      struct dv_pod_spec *spec, struct dv_err *err)
{
    const struct dv_api_pod_extended_resource_claim_status *extended =
        pod->status.extended_resource_claim_status;
    size_t n = pod->spec.n_init_containers + pod->spec.n_containers;

    if (pod->spec.n_containers == 0 || n > DV_POD_CONTAINERS_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "it has %zu containers", n);
    spec->containers = DV_NEW_ARRAY(arena, struct dv_pod_container, n);
    if (!read_owner(pod, spec, err) ||
        !read_containers(pod->spec.init_containers, pod->spec.n_init_containers, true, arena, spec,
                         err) ||
        !read_containers(pod->spec.containers, pod->spec.n_containers, false, arena, spec, err))
        return false;
    for (size_t i = 0; extended && i < extended->n_request_mappings; i++)
        dv_pod_mark_claimed(spec, extended->request_mappings[i].container_name,
                            extended->request_mappings[i].resource_name);
    if (pod->spec.n_resource_claims > 0 || extended)
        spec->object = copy_pod(pod, arena);
    return true;
}

bool dv_pod_spec_read(const struct dv_api_pod *pod, struct dv_arena *arena,
                      struct dv_pod_spec *spec, struct dv_err *err)
{
    struct dv_pod_spec made = {.origin = DV_POD_ORIGIN_API};

    made.ref = (struct dv_pod_ref){pod->metadata.uid, pod->metadata.namespace, pod->metadata.name};
    if (!check_id("metadata.uid", made.ref.uid, err) ||
        !check_id("metadata.namespace", made.ref.namespace, err) ||
        !check_id("metadata.name", made.ref.name, err) || !read_body(pod, arena, &made, err))
        return dv_wrap(err, "pod %.*s/%.*s", DV_FMT(pod->metadata.namespace),
                       DV_FMT(pod->metadata.name));
    *spec = made;
    return true;
}
