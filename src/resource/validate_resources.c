/* validate_resources.c - amounts of resources that containers ask for and nodes have. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "number/number.h"
#include "resource/checks.h"
#include "resource/resource.h"

static bool is_one_of(dv_str name, const dv_str *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(name, names[i]))
            return true;
    return false;
}

static bool is_huge_page(dv_str name)
{
    return dv_str_starts_with(name, DV_STR("hugepages-"));
}

static bool is_container_resource(dv_str name)
{
    static const dv_str names[] = {
        DV_STR_INIT("cpu"),
        DV_STR_INIT("memory"),
        DV_STR_INIT("ephemeral-storage"),
    };

    return is_one_of(name, names, DV_COUNT(names)) || is_huge_page(name);
}

/* What objects are counted as: never in parts. */
static bool is_object_count(dv_str name)
{
    static const dv_str names[] = {
        DV_STR_INIT("pods"),
        DV_STR_INIT("services"),
        DV_STR_INIT("replicationcontrollers"),
        DV_STR_INIT("resourcequotas"),
        DV_STR_INIT("secrets"),
        DV_STR_INIT("configmaps"),
        DV_STR_INIT("persistentvolumeclaims"),
        DV_STR_INIT("services.nodeports"),
        DV_STR_INIT("services.loadbalancers"),
    };

    return is_one_of(name, names, DV_COUNT(names));
}

static bool is_standard_resource(dv_str name)
{
    static const dv_str quotas[] = {
        DV_STR_INIT("requests.cpu"),
        DV_STR_INIT("requests.memory"),
        DV_STR_INIT("requests.storage"),
        DV_STR_INIT("requests.ephemeral-storage"),
        DV_STR_INIT("limits.cpu"),
        DV_STR_INIT("limits.memory"),
        DV_STR_INIT("limits.ephemeral-storage"),
        DV_STR_INIT("storage"),
    };

    return is_container_resource(name) || is_object_count(name) ||
           is_one_of(name, quotas, DV_COUNT(quotas)) ||
           dv_str_starts_with(name, DV_STR("requests.hugepages-"));
}

/* Whether more may be asked for than there is. */
static bool can_overcommit(dv_str name)
{
    return dv_is_native_resource_name(name) && !is_huge_page(name);
}

static bool is_whole(const struct dv_quantity *value)
{
    int64_t milli;

    return !dv_quantity_to_milli_ceil(value, &milli) || milli % 1000 == 0;
}

void dv_check_resource_value(struct dv_problems *problems, const struct path *path, dv_str resource,
                             const struct dv_quantity *value)
{
    if (dv_quantity_sign(value) < 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL,
                       dv_bad_quantity(value, problems->arena),
                       "must be greater than or equal to 0");
    if ((is_object_count(resource) || dv_is_extended_resource_name(resource)) && !is_whole(value))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL,
                       dv_bad_quantity(value, problems->arena), "must be an integer");
}

static void add_name(struct dv_problems *problems, const struct path *path, dv_str name,
                     const char *text)
{
    dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL, dv_bad_str(name), "%s", text);
}

static void check_name(struct dv_problems *problems, const struct path *path, dv_str name)
{
    bool has_domain = dv_str_find_char(name, '/') < name.n;

    if (!dv_is_label_name(name))
        dv_check_label_name(problems, path, NULL, name);
    else if (!has_domain && !is_standard_resource(name))
        add_name(problems, path, name, "must be a standard resource type or fully qualified");
    if (!has_domain && !is_container_resource(name))
        add_name(problems, path, name, "must be a standard resource for containers");
    if (has_domain && !dv_is_native_resource_name(name) && !dv_is_extended_resource_name(name))
        add_name(problems, path, name, "doesn't follow extended resource name standard");
}

static void check_amounts(struct dv_problems *problems, const struct path *path,
                          const struct dv_quantity_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct path item = dv_path_key(path, entries[i].key);

        check_name(problems, &item, entries[i].key);
        dv_check_resource_value(problems, &item, entries[i].key, &entries[i].value);
    }
}

static const struct dv_quantity *find_amount(const struct dv_quantity_entry *entries, size_t n,
                                             dv_str name)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(entries[i].key, name))
            return &entries[i].value;
    return NULL;
}

static void check_limit(struct dv_problems *problems, const struct path *path,
                        const struct dv_quantity_entry *request, const struct dv_quantity *limit)
{
    struct path requests = dv_path_name(path, "requests");
    dv_str name = request->key;
    int order;

    if (!limit) {
        if (!can_overcommit(name))
            dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, "limits", dv_bad_none(),
                           "Limit must be set for non overcommitable resources");
        return;
    }
    order = dv_quantity_cmp(&request->value, limit);
    if (order == 0 || (order < 0 && can_overcommit(name)))
        return;
    dv_problem_add(problems, DV_PROBLEM_INVALID, &requests, NULL,
                   dv_bad_quantity(&request->value, problems->arena), "must be %s %.*s limit of %s",
                   can_overcommit(name) ? "less than or equal to" : "equal to", DV_FMT(name),
                   dv_str_to_c(dv_quantity_text(limit, problems->arena), problems->arena));
}

static void check_requests(struct dv_problems *problems, const struct path *path,
                           const struct dv_api_resource_requirements *resources)
{
    struct path requests = dv_path_name(path, "requests");

    for (size_t i = 0; i < resources->n_requests; i++) {
        const struct dv_quantity_entry *entry = &resources->requests[i];

        check_amounts(problems, &requests, entry, 1);
        check_limit(problems, path, entry,
                    find_amount(resources->limits, resources->n_limits, entry->key));
    }
}

static bool has_any(const struct dv_quantity_entry *entries, size_t n, bool (*is)(dv_str name))
{
    for (size_t i = 0; i < n; i++)
        if (is(entries[i].key))
            return true;
    return false;
}

static bool is_cpu_or_memory(dv_str name)
{
    return dv_str_eq(name, DV_STR("cpu")) || dv_str_eq(name, DV_STR("memory"));
}

static void check_huge_pages(struct dv_problems *problems, const struct path *path,
                             const struct dv_api_resource_requirements *resources)
{
    if (!has_any(resources->limits, resources->n_limits, is_huge_page) &&
        !has_any(resources->requests, resources->n_requests, is_huge_page))
        return;
    if (!has_any(resources->limits, resources->n_limits, is_cpu_or_memory) &&
        !has_any(resources->requests, resources->n_requests, is_cpu_or_memory))
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, path, NULL, dv_bad_none(),
                       "HugePages require cpu or memory");
}

/* -- Claims --------------------------------------------------------------------------------- */

static bool has_claim(const struct dv_api_pod *pod, dv_str name)
{
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++)
        if (dv_str_eq(pod->spec.resource_claims[i].name, name))
            return true;
    return false;
}

/* The names in order, each once. */
static dv_str list_claims(const struct dv_api_pod *pod, struct dv_arena *arena)
{
    dv_str text = DV_STR("");
    dv_str last = DV_STR("");

    for (;;) {
        const dv_str *next = NULL;

        for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
            const dv_str *name = &pod->spec.resource_claims[i].name;

            if (dv_str_cmp(*name, last) > 0 && (!next || dv_str_cmp(*name, *next) < 0))
                next = name;
        }
        if (!next)
            return text;
        text =
            dv_str_printf(arena, "%.*s%s%.*s", DV_FMT(text), text.n > 0 ? ", " : "", DV_FMT(*next));
        last = *next;
    }
}

/* A claim is listed once as a whole, or several times with different requests. */
static bool is_listed_before(const struct dv_api_container_claim *claims, size_t n)
{
    const struct dv_api_container_claim *claim = &claims[n];

    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(claims[i].name, claim->name) &&
            (claims[i].request.n == 0 || claim->request.n == 0 ||
             dv_str_eq(claims[i].request, claim->request)))
            return true;
    return false;
}

static void check_claim(struct dv_problems *problems, const struct path *path,
                        const struct dv_api_container_claim *claims, size_t i,
                        const struct dv_api_pod *pod)
{
    dv_str name = claims[i].name;

    if (name.n == 0) {
        dv_required(problems, path, NULL);
        return;
    }
    if (claims[i].request.n > 0)
        dv_check_dns_label(problems, path, "request", claims[i].request);
    if (is_listed_before(claims, i))
        dv_problem_add(problems, DV_PROBLEM_DUPLICATE, path, NULL,
                       dv_bad_str(claims[i].request.n > 0
                                      ? dv_str_printf(problems->arena, "%.*s/%.*s", DV_FMT(name),
                                                      DV_FMT(claims[i].request))
                                      : name),
                       "%s", "");
    if (has_claim(pod, name))
        return;
    if (pod->spec.n_resource_claims == 0)
        dv_problem_add(problems, DV_PROBLEM_NOT_FOUND, path, NULL, dv_bad_str(name),
                       "must be one of the names in pod.spec.resourceClaims which is empty");
    else
        dv_problem_add(problems, DV_PROBLEM_NOT_FOUND, path, NULL, dv_bad_str(name),
                       "must be one of the names in pod.spec.resourceClaims: %.*s",
                       DV_FMT(list_claims(pod, problems->arena)));
}

void dv_check_resources(struct dv_problems *problems, const struct path *path,
                        const struct dv_api_resource_requirements *resources,
                        const struct dv_api_pod *pod)
{
    struct path limits = dv_path_name(path, "limits");
    struct path claims = dv_path_name(path, "claims");

    check_amounts(problems, &limits, resources->limits, resources->n_limits);
    check_requests(problems, path, resources);
    check_huge_pages(problems, path, resources);
    for (size_t i = 0; i < resources->n_claims; i++) {
        struct path item = dv_path_index(&claims, i);

        check_claim(problems, &item, resources->claims, i, pod);
    }
}
