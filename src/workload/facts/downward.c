#include "workload/downward.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/name.h"
#include "base/visible.h"
#include "number/number.h"
#include "resource/resource.h"
#include "workload/workload.h"

/* What an object of the API may have at most, with every byte of it escaped. */
#define MAP_BYTES_MAX (16u * 1024u * 1024u)

static bool is_v6(dv_str ip)
{
    return dv_str_find_char(ip, ':') < ip.n;
}

/* Joins the texts with commas. */
static dv_str join(const struct dv_strs *texts, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str joined;

    if (texts->n == 0)
        return DV_STR("");
    dv_buf_init(&buf, MAP_BYTES_MAX);
    for (size_t i = 0; i < texts->n; i++) {
        if (i > 0)
            dv_buf_add_char(&buf, ',');
        dv_buf_add(&buf, texts->v[i]);
    }
    joined = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return joined;
}

/* Prints a map as lines `key="value"`, the last one without its end. */
static bool print_map(const struct dv_str_entry *entries, size_t n, struct dv_arena *arena,
                      dv_str *value, struct dv_err *err)
{
    struct dv_buf buf;
    bool is_good;

    dv_buf_init(&buf, MAP_BYTES_MAX);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            dv_buf_add_char(&buf, '\n');
        dv_buf_add(&buf, entries[i].key);
        dv_buf_add_char(&buf, '=');
        dv_go_quote(entries[i].value, &buf);
    }
    is_good = dv_buf_check(&buf, "map", err);
    if (is_good)
        *value = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return is_good;
}

/* Splits "metadata.labels['a']" into the path and the key; false when there is no key. */
static bool split_subscript(dv_str field, dv_str *path, dv_str *key)
{
    size_t open = dv_str_find(field, DV_STR("['"));

    if (!dv_str_ends_with(field, DV_STR("']")) || open == 0 || open + 2 > field.n - 2)
        return false;
    *path = dv_str_slice(field, 0, open);
    *key = dv_str_slice(field, open + 2, field.n - 2);
    return true;
}

/* The reference looks at the key of an annotation without regard to case. */
static bool is_annotation_key(dv_str key, struct dv_arena *arena)
{
    char *lower = dv_arena_alloc_raw(arena, key.n, 1);

    for (size_t i = 0; i < key.n; i++)
        lower[i] = key.p[i] >= 'A' && key.p[i] <= 'Z' ? (char)(key.p[i] - 'A' + 'a') : key.p[i];
    return dv_is_label_name((dv_str){lower, key.n});
}

static bool get_entry(const struct dv_workload_pod *pod, dv_str field, dv_str path, dv_str key,
                      struct dv_arena *arena, dv_str *value, struct dv_err *err)
{
    bool is_label = dv_str_eq(path, DV_STR("metadata.labels"));
    const struct dv_api_object_meta *meta = &pod->pod->metadata;
    const struct dv_str_entry *found;

    if (!is_label && !dv_str_eq(path, DV_STR("metadata.annotations")))
        return dv_fail(err, DV_INVALID_ARGUMENT, "fieldPath \"%.*s\" does not support subscript",
                       DV_FMT(field));
    if (!(is_label ? dv_is_label_name(key) : is_annotation_key(key, arena)))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "invalid key subscript in %.*s: not a qualified name", DV_FMT(field));
    if (is_label) {
        found = dv_entry_find(meta->labels, meta->n_labels, key);
        *value = found ? found->value : DV_STR("");
    } else {
        *value = dv_workload_annotation(pod, key);
    }
    return true;
}

bool dv_downward_file(const struct dv_workload_pod *pod,
                      const struct dv_api_object_field_selector *field, struct dv_arena *arena,
                      dv_str *value, struct dv_err *err)
{
    const struct dv_api_object_meta *meta = &pod->pod->metadata;
    dv_str path = field->field_path;
    dv_str key;

    if (split_subscript(field->field_path, &path, &key))
        return get_entry(pod, field->field_path, path, key, arena, value, err);
    if (dv_str_eq(path, DV_STR("metadata.labels")))
        return print_map(meta->labels, meta->n_labels, arena, value, err);
    if (dv_str_eq(path, DV_STR("metadata.annotations"))) {
        size_t n;
        const struct dv_str_entry *entries = dv_workload_annotations(pod, arena, &n);

        return print_map(entries, n, arena, value, err);
    }
    if (dv_str_eq(path, DV_STR("metadata.name")))
        *value = meta->name;
    else if (dv_str_eq(path, DV_STR("metadata.namespace")))
        *value = meta->namespace;
    else if (dv_str_eq(path, DV_STR("metadata.uid")))
        *value = pod->uid;
    else
        return dv_fail(err, DV_INVALID_ARGUMENT, "unsupported fieldPath: %.*s", DV_FMT(path));
    return true;
}

/* The pod's address of the node's family, and then one of the other family. */
static struct dv_strs sorted_ips(const struct dv_workload_node *node,
                                 const struct dv_workload_pod *pod, struct dv_arena *arena)
{
    struct dv_strs sorted = {.v = DV_NEW_ARRAY(arena, dv_str, 2)};
    bool is_v6_first = node->host_ips.n > 0 && is_v6(node->host_ips.v[0]);

    for (int family = 0; family < 2; family++)
        for (size_t i = 0; i < pod->ips.n; i++)
            if (is_v6(pod->ips.v[i]) == (is_v6_first == (family == 0))) {
                sorted.v[sorted.n++] = pod->ips.v[i];
                break;
            }
    return sorted;
}

static bool env_field(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                      dv_str path, struct dv_arena *arena, dv_str *value)
{
    const struct dv_api_pod_spec *spec = &pod->pod->spec;
    struct dv_strs ips = sorted_ips(node, pod, arena);

    /* Some old clients of v1 say spec.host. */
    if (dv_str_eq(path, DV_STR("spec.nodeName")) || dv_str_eq(path, DV_STR("spec.host")))
        *value = spec->node_name;
    else if (dv_str_eq(path, DV_STR("spec.serviceAccountName")))
        *value = spec->service_account_name;
    else if (dv_str_eq(path, DV_STR("status.hostIP")))
        *value = node->host_ips.n > 0 ? node->host_ips.v[0] : DV_STR("");
    else if (dv_str_eq(path, DV_STR("status.hostIPs")))
        *value = join(&node->host_ips, arena);
    else if (dv_str_eq(path, DV_STR("status.podIP")))
        *value = ips.n > 0 ? ips.v[0] : DV_STR("");
    else if (dv_str_eq(path, DV_STR("status.podIPs")))
        *value = join(&ips, arena);
    else
        return false;
    return true;
}

/* Whether there is such a field for an environment variable at all. */
static bool check_env_field(dv_str field, struct dv_err *err)
{
    static const dv_str known[] = {
        DV_STR_INIT("metadata.annotations"),
        DV_STR_INIT("metadata.labels"),
        DV_STR_INIT("metadata.name"),
        DV_STR_INIT("metadata.namespace"),
        DV_STR_INIT("metadata.uid"),
        /* The reference knows these and has no value for them. */
        DV_STR_INIT("spec.restartPolicy"),
        DV_STR_INIT("spec.schedulerName"),
        DV_STR_INIT("status.phase"),
    };
    dv_str path;
    dv_str key;

    if (split_subscript(field, &path, &key))
        return dv_str_eq(path, DV_STR("metadata.annotations")) ||
               dv_str_eq(path, DV_STR("metadata.labels")) ||
               dv_fail(err, DV_INVALID_ARGUMENT, "field label does not support subscript: %.*s",
                       DV_FMT(field));
    for (size_t i = 0; i < DV_COUNT(known); i++)
        if (dv_str_eq(field, known[i]))
            return true;
    return dv_fail(err, DV_INVALID_ARGUMENT, "field label not supported: %.*s", DV_FMT(field));
}

bool dv_downward_env(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                     const struct dv_api_object_field_selector *field, struct dv_arena *arena,
                     dv_str *value, struct dv_err *err)
{
    /* The API fills it in; a static pod may come without. */
    if (field->api_version.n > 0 && !dv_str_eq(field->api_version, DV_STR("v1")))
        return dv_fail(err, DV_INVALID_ARGUMENT, "unsupported pod version: %.*s",
                       DV_FMT(field->api_version));
    if (env_field(node, pod, field->field_path, arena, value))
        return true;
    return check_env_field(field->field_path, err) &&
           dv_downward_file(pod, field, arena, value, err);
}

/* ---- amounts of resources ---- */

static const dv_str limited[] = {DV_STR_INIT("cpu"), DV_STR_INIT("memory"),
                                 DV_STR_INIT("ephemeral-storage")};

static bool is_limited(dv_str resource)
{
    for (size_t i = 0; i < DV_COUNT(limited); i++)
        if (dv_str_eq(resource, limited[i]))
            return true;
    return false;
}

/* The amount that stands in for a limit that is absent or 0; NULL: nothing does. */
static const struct dv_quantity *default_limit(const struct dv_workload_node *node,
                                               const struct dv_api_resource_requirements *pod_level,
                                               dv_str resource)
{
    const struct dv_quantity *allocatable =
        dv_workload_amount(node->allocatable, node->n_allocatable, resource);
    const struct dv_quantity *of_pod = NULL;

    /* Ephemeral storage is nothing that a pod as a whole can be limited in. */
    if (allocatable && pod_level && !dv_str_eq(resource, DV_STR("ephemeral-storage")))
        of_pod = dv_workload_amount(pod_level->limits, pod_level->n_limits, resource);
    return of_pod && dv_quantity_sign(of_pod) != 0 ? of_pod : allocatable;
}

/* As the reference divides: in floating point, up to the next whole number. */
static int64_t divide(int64_t amount, int64_t divisor)
{
    double result = ceil((double)amount / (double)divisor);

    if (result >= (double)INT64_MAX)
        return INT64_MAX;
    return result <= (double)INT64_MIN ? INT64_MIN : (int64_t)result;
}

struct question {
    const struct dv_workload_node *node;
    const struct dv_api_container *container;
    const struct dv_api_resource_requirements *pod_level; /* NULL: does not count */
    bool has_defaults;                                    /* for limits that are absent */
};

static bool answer(const struct question *question,
                   const struct dv_api_resource_field_selector *field, struct dv_arena *arena,
                   dv_str *value, struct dv_err *err)
{
    const struct dv_api_resource_requirements *own = &question->container->resources;
    bool is_limit = dv_str_starts_with(field->resource, DV_STR("limits."));
    dv_str resource = dv_str_slice(field->resource, dv_str_find_char(field->resource, '.') + 1,
                                   field->resource.n);
    struct dv_quantity divisor = field->divisor;
    const struct dv_quantity *amount;
    int64_t result;

    if ((!is_limit && !dv_str_starts_with(field->resource, DV_STR("requests."))) ||
        (!is_limited(resource) && !dv_str_starts_with(resource, DV_STR("hugepages-"))))
        return dv_fail(err, DV_INVALID_ARGUMENT, "unsupported container resource : %.*s",
                       DV_FMT(field->resource));
    amount = is_limit ? dv_workload_amount(own->limits, own->n_limits, resource)
                      : dv_workload_amount(own->requests, own->n_requests, resource);
    if (is_limit && question->has_defaults && is_limited(resource) &&
        (!amount || dv_quantity_sign(amount) == 0)) {
        const struct dv_quantity *stand_in =
            default_limit(question->node, question->pod_level, resource);

        amount = stand_in ? stand_in : amount;
    }
    if (dv_quantity_sign(&divisor) == 0)
        divisor = dv_quantity_from_i64(1, DV_QUANTITY_DECIMAL_SI);
    result = dv_str_eq(resource, DV_STR("cpu"))
                 ? divide(dv_workload_milli(amount), dv_workload_milli(&divisor))
                 : divide(dv_workload_whole(amount), dv_workload_whole(&divisor));
    *value = dv_str_printf(arena, "%lld", (long long)result);
    return true;
}

/* Finds the container that a reference names; neither ephemeral ones nor absent ones count. */
static const struct dv_api_container *find_named(const struct dv_workload_pod *pod, dv_str name,
                                                 enum dv_workload_kind *kind, struct dv_err *err)
{
    const struct dv_api_container *container = dv_workload_container(pod->pod, name, kind);

    if (container && *kind != DV_WORKLOAD_EPHEMERAL)
        return container;
    (void)dv_fail(err, DV_NOT_FOUND, "container %.*s not found", DV_FMT(name));
    return NULL;
}

bool dv_downward_env_resource(const struct dv_workload_node *node,
                              const struct dv_workload_pod *pod,
                              const struct dv_api_container *container,
                              const struct dv_api_resource_field_selector *field,
                              struct dv_arena *arena, dv_str *value, struct dv_err *err)
{
    struct question question = {
        .node = node,
        .container = container,
        .pod_level = dv_workload_pod_level(pod->pod),
        .has_defaults = true,
    };
    enum dv_workload_kind kind;

    if (field->container_name.n > 0) {
        question.container = find_named(pod, field->container_name, &kind, err);
        if (!question.container)
            return false;
        question.has_defaults = kind == DV_WORKLOAD_REGULAR;
    }
    return answer(&question, field, arena, value, err);
}

bool dv_downward_file_resource(const struct dv_workload_node *node,
                               const struct dv_workload_pod *pod,
                               const struct dv_api_resource_field_selector *field,
                               struct dv_arena *arena, dv_str *value, struct dv_err *err)
{
    enum dv_workload_kind kind;
    struct question question = {
        .node = node,
        .container = find_named(pod, field->container_name, &kind, err),
        .has_defaults = true,
    };

    return question.container && answer(&question, field, arena, value, err);
}
