/* validate_resources.c - amounts of resources that containers ask for and nodes have. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/name.h"
#include "number/number.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"

/* More bytes than the names in a request can have. */
#define NAMES_BYTES_MAX (8u * 1024u * 1024u)

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

/* Whether the resource counts objects, which are never fractions. */
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

/* Whether more of the resource may be limited than is requested. */
static bool can_overcommit(dv_str name)
{
    return dv_is_native_resource_name(name) && !is_huge_page(name);
}

static bool is_whole(const struct dv_quantity *value)
{
    int64_t milli;

    return !dv_quantity_to_milli_ceil(value, &milli) || milli % 1000 == 0;
}

void dv_check_resource_value(struct dv_problems *problems, const struct dv_field_path *path,
                             dv_str resource, const struct dv_quantity *value)
{
    if (dv_quantity_sign(value) < 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL,
                       dv_bad_quantity(value, problems->arena),
                       "must be greater than or equal to 0");
    if ((is_object_count(resource) || dv_is_extended_resource_name(resource)) && !is_whole(value))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL,
                       dv_bad_quantity(value, problems->arena), "must be an integer");
}

static void add_name(struct dv_problems *problems, const struct dv_field_path *path, dv_str name,
                     const char *text)
{
    dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL, dv_bad_str(name), "%s", text);
}

static bool has_domain(dv_str name)
{
    return dv_str_find_char(name, '/') < name.n;
}

/* The rules of all names of resources. */
static void check_any_name(struct dv_problems *problems, const struct dv_field_path *path,
                           dv_str name)
{
    if (!dv_is_label_name(name))
        dv_check_label_name(problems, path, NULL, name);
    else if (!has_domain(name) && !is_standard_resource(name))
        add_name(problems, path, name, "must be a standard resource type or fully qualified");
}

static void check_name(struct dv_problems *problems, const struct dv_field_path *path, dv_str name)
{
    check_any_name(problems, path, name);
    if (!has_domain(name) && !is_container_resource(name))
        add_name(problems, path, name, "must be a standard resource for containers");
    if (has_domain(name) && !dv_is_native_resource_name(name) &&
        !dv_is_extended_resource_name(name))
        add_name(problems, path, name, "doesn't follow extended resource name standard");
}

bool dv_is_quota_resource(dv_str name)
{
    return !dv_str_eq(name, DV_STR("storage")) && is_standard_resource(name);
}

void dv_check_quota_amounts(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_quantity_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_key(path, entries[i].key);

        check_any_name(problems, &item, entries[i].key);
        if (!has_domain(entries[i].key) && !dv_is_quota_resource(entries[i].key))
            add_name(problems, &item, entries[i].key, "must be a standard resource for quota");
        dv_check_resource_value(problems, &item, entries[i].key, &entries[i].value);
    }
}

static void check_amounts(struct dv_problems *problems, const struct dv_field_path *path,
                          const struct dv_quantity_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_key(path, entries[i].key);

        check_name(problems, &item, entries[i].key);
        dv_check_resource_value(problems, &item, entries[i].key, &entries[i].value);
    }
}

static void check_limit(struct dv_problems *problems, const struct dv_field_path *path,
                        const struct dv_quantity_entry *request, const struct dv_quantity *limit)
{
    struct dv_field_path requests = dv_path_name(path, "requests");
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

static void check_requests(struct dv_problems *problems, const struct dv_field_path *path,
                           const struct dv_api_resource_requirements *resources)
{
    struct dv_field_path requests = dv_path_name(path, "requests");

    for (size_t i = 0; i < resources->n_requests; i++) {
        const struct dv_quantity_entry *entry = &resources->requests[i];

        check_amounts(problems, &requests, entry, 1);
        check_limit(problems, path, entry,
                    dv_quantity_find(resources->limits, resources->n_limits, entry->key));
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

static void check_huge_pages(struct dv_problems *problems, const struct dv_field_path *path,
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

/* Lists the names in order; claims without one are left out. */
static dv_str list_claims(const struct dv_map *claims, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    dv_str *names = DV_NEW_ARRAY(arena, dv_str, claims->n);
    const struct dv_map_entry *entry;
    size_t at = 0;
    size_t n = 0;

    dv_buf_init(&text, NAMES_BYTES_MAX);
    while ((entry = dv_map_next(claims, &at)) != NULL)
        if (entry->key.n > 0)
            names[n++] = entry->key;
    qsort(names, n, sizeof(names[0]), dv_str_compare);
    for (size_t i = 0; i < n; i++) {
        dv_buf_add_c(&text, i > 0 ? ", " : "");
        dv_buf_add(&text, names[i]);
    }
    return dv_str_copy(dv_buf_str(&text), arena);
}

/* The claims of one container that were listed before. */
struct listed {
    struct dv_map names;    /* with a request or without */
    struct dv_map whole;    /* without one */
    struct dv_map requests; /* "name/request": a name has no slash, or is told for that */
};

/* A claim is listed once as a whole, or several times with different requests. Returns what was
 * listed before, the claim or its request; an empty text when nothing was. */
static dv_str list_claim(struct listed *listed, struct dv_api_container_claim *claim,
                         struct dv_arena *arena)
{
    bool is_known = dv_map_get(&listed->whole, claim->name) != NULL;
    bool is_named = dv_map_set(&listed->names, claim->name, claim) != NULL;
    dv_str key;

    if (claim->request.n == 0) {
        (void)dv_map_set(&listed->whole, claim->name, claim);
        return is_named ? claim->name : DV_STR_NONE;
    }
    key = dv_str_printf(arena, "%.*s/%.*s", DV_FMT(claim->name), DV_FMT(claim->request));
    if (dv_map_set(&listed->requests, key, claim))
        return key;
    return is_known ? claim->name : DV_STR_NONE;
}

static void check_claim(struct dv_problems *problems, const struct dv_field_path *path,
                        struct dv_api_container_claim *claim, struct listed *listed,
                        const struct dv_map *claims)
{
    dv_str name = claim->name;
    dv_str before;

    if (name.n == 0) {
        dv_required(problems, path, NULL);
        return;
    }
    if (claim->request.n > 0)
        dv_check_dns_label(problems, path, "request", claim->request);
    before = list_claim(listed, claim, problems->arena);
    if (before.n > 0)
        dv_problem_add(problems, DV_PROBLEM_DUPLICATE, path, NULL, dv_bad_str(before), "%s", "");
    if (dv_map_get(claims, name) || dv_problems_are_full(problems))
        return;
    if (claims->n == 0)
        dv_problem_add(problems, DV_PROBLEM_NOT_FOUND, path, NULL, dv_bad_str(name),
                       "must be one of the names in pod.spec.resourceClaims which is empty");
    else
        dv_problem_add(problems, DV_PROBLEM_NOT_FOUND, path, NULL, dv_bad_str(name),
                       "must be one of the names in pod.spec.resourceClaims: %.*s",
                       DV_FMT(list_claims(claims, problems->arena)));
}

void dv_check_resources(struct dv_problems *problems, const struct dv_field_path *path,
                        const struct dv_api_resource_requirements *resources,
                        const struct dv_map *claims)
{
    struct dv_field_path limits = dv_path_name(path, "limits");
    struct dv_field_path claims_path = dv_path_name(path, "claims");
    struct listed listed;

    check_amounts(problems, &limits, resources->limits, resources->n_limits);
    check_requests(problems, path, resources);
    check_huge_pages(problems, path, resources);
    if (resources->n_claims == 0)
        return;
    dv_map_init(&listed.names);
    dv_map_init(&listed.whole);
    dv_map_init(&listed.requests);
    for (size_t i = 0; i < resources->n_claims; i++) {
        struct dv_field_path item = dv_path_index(&claims_path, i);

        check_claim(problems, &item, &resources->claims[i], &listed, claims);
    }
    dv_map_fini(&listed.names);
    dv_map_fini(&listed.whole);
    dv_map_fini(&listed.requests);
}
