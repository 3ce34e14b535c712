/* pod_parse.c - what davit needs to know of a Pod object. Pure. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "device/device.h"
#include "number/number.h"
#include "pod/admission/pod_parse.h"
#include "pod/pod.h"
#include "resource/resource.h"
#include "json/json.h"

struct containers {
    struct dv_pod_container *v;
    size_t n;
    size_t size;
};

bool dv_pod_optional_str(const struct dv_json *object, dv_str key, dv_str *value,
                         struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(object, key);

    if (!node || dv_json_is(node, DV_JSON_NULL)) {
        *value = DV_STR("");
        return true;
    }
    return dv_json_as_str(node, value, err);
}

bool dv_pod_has_control(dv_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == '\x7f')
            return true;
    return false;
}

/* Refuses control characters: a zero byte would end the id in C strings, and two pods would become
 * one. */
static bool check_id(const struct dv_json *node, dv_str value, struct dv_err *err)
{
    if (value.n > DV_POD_NAME_BYTES_MAX)
        return dv_json_fail(node, err, "is too long: %zu bytes, where up to %u are kept", value.n,
                            DV_POD_NAME_BYTES_MAX);
    return !dv_pod_has_control(value) ||
           dv_json_fail(node, err,
                        "has a control character: send it without (letters, "
                        "digits, '-' and '.' are fine)");
}

/* The value is empty when the member is absent. */
static bool optional_id(const struct dv_json *object, dv_str key, dv_str *value, struct dv_err *err)
{
    return dv_pod_optional_str(object, key, value, err) &&
           (value->n == 0 || check_id(dv_json_get(object, key), *value, err));
}

static bool name_str(const struct dv_json *object, dv_str key, dv_str *value, struct dv_err *err)
{
    const struct dv_json *node = dv_json_require(object, key, err);

    if (!node || !dv_json_as_str(node, value, err))
        return false;
    if (value->n == 0 || dv_str_find_char(*value, '/') < value->n)
        return dv_json_fail(node, err, "is not a name: it %s",
                            value->n == 0 ? "is empty" : "has a slash");
    return check_id(node, *value, err);
}

bool dv_pod_is_extended(dv_str resource)
{
    return dv_str_find_char(resource, '/') < resource.n;
}

const char *dv_pod_whole_amount(const struct dv_quantity *quantity, int64_t *amount)
{
    struct dv_quantity whole;

    if (dv_quantity_sign(quantity) < 0)
        return "is negative";
    if (!dv_quantity_to_i64_ceil(quantity, amount))
        return "is more than any node has";
    whole = dv_quantity_from_i64(*amount, DV_QUANTITY_DECIMAL_SI);
    return dv_quantity_cmp(&whole, quantity) == 0
               ? NULL
               : "is not a whole number: devices cannot be divided";
}

static bool parse_amount(const struct dv_json *node, struct dv_arena *arena, int64_t *amount,
                         struct dv_err *err)
{
    struct dv_quantity quantity;
    struct dv_err bad;
    const char *why;
    dv_str text;

    if (dv_json_is(node, DV_JSON_NUMBER))
        text = dv_json_number_text(node);
    else if (!dv_json_as_str(node, &text, err))
        return false;
    if (!dv_quantity_parse_json(text, arena, &quantity, &bad))
        return dv_json_fail(node, err, "%s", bad.msg);
    why = dv_pod_whole_amount(&quantity, amount);
    return !why || dv_json_fail(node, err, "%.*s %s", DV_FMT(text), why);
}

static int compare_limits(const void *a, const void *b)
{
    return dv_str_cmp(((const struct dv_device_limit *)a)->resource,
                      ((const struct dv_device_limit *)b)->resource);
}

void dv_pod_sort_limits(struct dv_pod_container *container)
{
    if (container->n_limits > 0)
        qsort(container->limits, container->n_limits, sizeof(container->limits[0]), compare_limits);
}

/* Finds a limit by bisection: a pod of 3 MiB may have tens of thousands of them. */
static struct dv_device_limit *find_limit(const struct dv_pod_container *container, dv_str resource)
{
    struct dv_device_limit wanted = {.resource = resource};

    if (container->n_limits == 0)
        return NULL;
    return bsearch(&wanted, container->limits, container->n_limits, sizeof(wanted), compare_limits);
}

/* Refuses a request that has no limit of the same amount, as the API does: devices cannot be
 * overcommitted. */
static bool check_requests(const struct dv_json *resources,
                           const struct dv_pod_container *container, struct dv_arena *arena,
                           struct dv_err *err)
{
    const struct dv_json *request = dv_json_first(dv_json_get(resources, DV_STR("requests")));

    for (; request; request = dv_json_next(request)) {
        dv_str resource = dv_json_key(request);
        const struct dv_device_limit *limit;
        int64_t amount;

        if (!dv_pod_is_extended(resource))
            continue;
        if (!parse_amount(request, arena, &amount, err))
            return false;
        limit = find_limit(container, resource);
        if (!limit)
            return dv_json_fail(request, err, "needs a limit of the same amount");
        if (limit->amount != amount)
            return dv_json_fail(request, err, "is not the same as the limit");
    }
    return true;
}

static bool parse_limits(const struct dv_json *resources, struct dv_arena *arena,
                         struct dv_pod_container *container, struct dv_err *err)
{
    const struct dv_json *limits = dv_json_get(resources, DV_STR("limits"));
    const struct dv_json *limit;

    if (limits && !dv_json_is(limits, DV_JSON_NULL) && !dv_json_expect(limits, DV_JSON_OBJECT, err))
        return false;
    container->limits = DV_NEW_ARRAY(arena, struct dv_device_limit, dv_json_n(limits));
    for (limit = dv_json_first(limits); limit; limit = dv_json_next(limit)) {
        struct dv_device_limit *made = &container->limits[container->n_limits];

        if (!dv_pod_is_extended(dv_json_key(limit)))
            continue;
        if (!parse_amount(limit, arena, &made->amount, err))
            return false;
        if (dv_pod_has_control(dv_json_key(limit)))
            return dv_json_fail(limits, err, "the name of a resource has a control character");
        made->resource = dv_json_key(limit);
        container->n_limits++;
    }
    dv_pod_sort_limits(container);
    return check_requests(resources, container, arena, err);
}

static bool parse_container(const struct dv_json *node, bool is_init, struct dv_arena *arena,
                            struct dv_pod_container *container, struct dv_err *err)
{
    dv_str policy;

    if (!dv_json_expect(node, DV_JSON_OBJECT, err) ||
        !name_str(node, DV_STR("name"), &container->name, err) ||
        !dv_pod_optional_str(node, DV_STR("restartPolicy"), &policy, err))
        return false;
    container->kind = DV_DEVICE_REGULAR;
    if (is_init)
        container->kind = dv_str_eq(policy, DV_STR("Always")) ? DV_DEVICE_SIDECAR : DV_DEVICE_INIT;
    return parse_limits(dv_json_get(node, DV_STR("resources")), arena, container, err);
}

static bool parse_containers(const struct dv_json *list, bool is_init, struct dv_arena *arena,
                             struct containers *containers, struct dv_err *err)
{
    const struct dv_json *node;

    if (!list || dv_json_is(list, DV_JSON_NULL))
        return true;
    if (!dv_json_expect(list, DV_JSON_ARRAY, err))
        return false;
    for (node = dv_json_first(list); node; node = dv_json_next(node)) {
        struct dv_pod_container *container;

        if (containers->n == DV_POD_CONTAINERS_MAX)
            return dv_json_fail(list, err, "more than %u containers", DV_POD_CONTAINERS_MAX);
        container = dv_vec_add_in(containers, arena);
        if (!parse_container(node, is_init, arena, container, err))
            return false;
        for (size_t i = 0; i + 1 < containers->n; i++)
            if (dv_str_eq(containers->v[i].name, container->name))
                return dv_json_fail(node, err, "a container of this name is there already");
    }
    return true;
}

void dv_pod_mark_claimed(struct dv_pod_spec *spec, dv_str container, dv_str resource)
{
    for (size_t i = 0; i < spec->n_containers; i++) {
        struct dv_device_limit *limit = dv_str_eq(spec->containers[i].name, container)
                                            ? find_limit(&spec->containers[i], resource)
                                            : NULL;

        if (limit)
            limit->is_claimed = true;
    }
}

static bool mark_claimed(const struct dv_json *pod, struct dv_pod_spec *spec, struct dv_err *err)
{
    const struct dv_json *status =
        dv_json_get(dv_json_get(pod, DV_STR("status")), DV_STR("extendedResourceClaimStatus"));
    const struct dv_json *mapping = dv_json_first(dv_json_get(status, DV_STR("requestMappings")));

    for (; mapping; mapping = dv_json_next(mapping)) {
        dv_str container;
        dv_str resource;

        if (!dv_pod_optional_str(mapping, DV_STR("containerName"), &container, err) ||
            !dv_pod_optional_str(mapping, DV_STR("resourceName"), &resource, err))
            return false;
        dv_pod_mark_claimed(spec, container, resource);
    }
    return true;
}

/* Decodes the typed object of a pod that uses claims; other pods need nothing of it. */
static bool decode_object(const struct dv_json *pod, struct dv_arena *arena,
                          struct dv_pod_spec *spec, struct dv_err *err)
{
    const struct dv_json *claims =
        dv_json_get(dv_json_get(pod, DV_STR("spec")), DV_STR("resourceClaims"));
    const struct dv_json *extended =
        dv_json_get(dv_json_get(pod, DV_STR("status")), DV_STR("extendedResourceClaimStatus"));
    struct dv_api_pod *object;

    if (dv_json_n(claims) == 0 && dv_json_n(extended) == 0)
        return true;
    object = DV_NEW(arena, struct dv_api_pod);
    if (!dv_decode_json(dv_kind(DV_KIND_POD)->versions[0].message, pod, DV_UNKNOWN_DROP, arena,
                        object, NULL, err))
        return false;
    object->metadata.namespace = spec->ref.namespace;
    spec->object = object;
    return true;
}

const struct dv_api_container *dv_pod_spec_container(const struct dv_pod_spec *spec, dv_str name)
{
    const struct dv_api_pod_spec *body = spec->object ? &spec->object->spec : NULL;

    for (size_t i = 0; body && i < body->n_init_containers; i++)
        if (dv_str_eq(body->init_containers[i].name, name))
            return &body->init_containers[i];
    for (size_t i = 0; body && i < body->n_containers; i++)
        if (dv_str_eq(body->containers[i].name, name))
            return &body->containers[i];
    return NULL;
}

bool dv_pod_parse_pid(dv_str text, uint32_t *pid)
{
    return dv_str_to_u32(text, pid) && *pid > 0 && *pid <= INT32_MAX;
}

static bool parse_owner(const struct dv_json *annotations, struct dv_pod_spec *spec,
                        struct dv_err *err)
{
    dv_str pid;

    if (!dv_pod_optional_str(annotations, DV_STR(DV_POD_OWNER_PID), &pid, err) ||
        !dv_pod_optional_str(annotations, DV_STR(DV_POD_OWNER_CGROUP), &spec->owner_cgroup, err))
        return false;
    if (dv_pod_has_control(spec->owner_cgroup)) /* a path with a zero byte would be cut short */
        return dv_json_fail(dv_json_get(annotations, DV_STR(DV_POD_OWNER_CGROUP)), err,
                            "has a control character");
    if (pid.n > 0 && !dv_pod_parse_pid(pid, &spec->owner_pid))
        return dv_json_fail(dv_json_get(annotations, DV_STR(DV_POD_OWNER_PID)), err,
                            "is not the number of a process");
    if (pid.n > 0 && spec->owner_cgroup.n > 0)
        return dv_json_fail(annotations, err,
                            "has two owners, a process and a control group: one can be watched");
    return true;
}

static bool parse_names(const struct dv_json *pod, struct dv_pod_spec *spec, struct dv_err *err)
{
    struct dv_pod_ref *ref = &spec->ref;
    const struct dv_json *annotations;
    const struct dv_json *metadata = dv_json_require(pod, DV_STR("metadata"), err);

    if (!metadata || !dv_json_expect(metadata, DV_JSON_OBJECT, err) ||
        !name_str(metadata, DV_STR("name"), &ref->name, err) ||
        !optional_id(metadata, DV_STR("namespace"), &ref->namespace, err) ||
        !optional_id(metadata, DV_STR("uid"), &ref->uid, err))
        return false;
    annotations = dv_json_get(metadata, DV_STR("annotations"));
    if (!parse_owner(annotations, spec, err))
        return false;
    if (ref->namespace.n == 0)
        ref->namespace = DV_STR("default");
    return true;
}

static bool check_kind(const struct dv_json *pod, struct dv_err *err)
{
    dv_str kind;

    if (!dv_json_expect(pod, DV_JSON_OBJECT, err) ||
        !dv_pod_optional_str(pod, DV_STR("kind"), &kind, err))
        return false;
    if (kind.n > 0 && !dv_str_eq(kind, DV_STR("Pod")))
        return dv_json_fail(dv_json_get(pod, DV_STR("kind")), err, "is %.*s, not Pod",
                            DV_FMT(dv_str_slice(kind, 0, 64)));
    return true;
}

bool dv_pod_spec_parse_tree(const struct dv_json *pod, struct dv_arena *arena,
                            struct dv_pod_spec *spec, struct dv_err *err)
{
    struct containers containers = {0};
    struct dv_pod_spec made = {0};
    const struct dv_json *body;

    if (!check_kind(pod, err) || !parse_names(pod, &made, err))
        return dv_wrap(err, "pod");
    body = dv_json_require(pod, DV_STR("spec"), err);
    if (!body || !dv_json_expect(body, DV_JSON_OBJECT, err) ||
        !parse_containers(dv_json_get(body, DV_STR("initContainers")), true, arena, &containers,
                          err) ||
        !parse_containers(dv_json_get(body, DV_STR("containers")), false, arena, &containers, err))
        return dv_wrap(err, "pod %.*s/%.*s", DV_FMT(made.ref.namespace), DV_FMT(made.ref.name));
    made.containers = containers.v;
    made.n_containers = containers.n;
    if (containers.n == 0 || containers.v[containers.n - 1].kind != DV_DEVICE_REGULAR)
        return dv_fail(err, DV_INVALID_ARGUMENT, "pod %.*s/%.*s: spec.containers is empty",
                       DV_FMT(made.ref.namespace), DV_FMT(made.ref.name));
    if (!mark_claimed(pod, &made, err) || !decode_object(pod, arena, &made, err))
        return dv_wrap(err, "pod %.*s/%.*s", DV_FMT(made.ref.namespace), DV_FMT(made.ref.name));
    *spec = made;
    return true;
}

bool dv_pod_spec_parse(dv_str json, struct dv_arena *arena, struct dv_pod_spec *spec,
                       struct dv_err *err)
{
    struct dv_json_opts opts = {.bytes_max = DV_POD_BYTES_MAX, .refuse_duplicates = true};
    const struct dv_json *pod = dv_json_parse(dv_str_copy(json, arena), &opts, arena, err);

    return pod ? dv_pod_spec_parse_tree(pod, arena, spec, err) : dv_wrap(err, "pod");
}
