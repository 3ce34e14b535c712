/* kube_resources.c - the table of groups, versions and resources that are served. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "serve/wire/kube_route.h"

#define V1 DV_STR_INIT("v1")
/* Of a kind whose definition is being deleted, with all of its objects. */
#define TERMINATING_VERBS                                                                          \
    (DV_CAN_DELETE | DV_CAN_DELETE_COLLECTION | DV_CAN_GET | DV_CAN_LIST | DV_CAN_WATCH)

static const dv_str only_v1[] = {V1};
static const dv_str resource_versions[] = {V1, DV_STR_INIT("v1beta2"), DV_STR_INIT("v1beta1"),
                                           DV_STR_INIT("v1alpha3")};

/* The groups are in the reference's order. */
static const struct dv_api_group groups[] = {
    {DV_STR_INIT("apps"),                  only_v1,           1},
    {DV_STR_INIT("events.k8s.io"),         only_v1,           1},
    {DV_STR_INIT("authentication.k8s.io"), only_v1,           1},
    {DV_STR_INIT("authorization.k8s.io"),  only_v1,           1},
    {DV_STR_INIT(DV_BATCH_GROUP),          only_v1,           1},
    {DV_STR_INIT("policy"),                only_v1,           1},
    {DV_STR_INIT(DV_RBAC_GROUP),           only_v1,           1},
    {DV_STR_INIT("storage.k8s.io"),        only_v1,           1},
    {DV_STR_INIT(DV_ADMISSION_GROUP),      only_v1,           1},
    {DV_STR_INIT(DV_CUSTOM_GROUP),         only_v1,           1},
    {DV_STR_INIT("scheduling.k8s.io"),     only_v1,           1},
    {DV_STR_INIT("discovery.k8s.io"),      only_v1,           1},
    {DV_STR_INIT(DV_NETWORKING_GROUP),     only_v1,           1},
    {DV_STR_INIT("coordination.k8s.io"),   only_v1,           1},
    {DV_STR_INIT("node.k8s.io"),           only_v1,           1},
    {DV_STR_INIT("resource.k8s.io"),       resource_versions, 4},
};

/* clang-format off */
/* Resources that are no kind with objects: reviews, and subresources that not every kind has. */
static const struct {
    dv_str group;
    struct dv_api_resource resource;
} others[] = {
    {.resource = {.name = DV_STR_INIT("bindings"),
                  .singular = DV_STR_INIT("binding"),
                  .kind = DV_STR_INIT("Binding"),
                  .review = DV_REVIEW_BINDING,
                  .is_namespaced = true,
                  .verbs = DV_CAN_CREATE}},
    {.resource = {.name = DV_STR_INIT("namespaces"),
                  .subresource = DV_STR_INIT("finalize"),
                  .kind = DV_STR_INIT("Namespace"),
                  .verbs = DV_CAN_UPDATE}},
    {.resource = {.name = DV_STR_INIT("pods"),
                  .subresource = DV_STR_INIT("attach"),
                  .kind = DV_STR_INIT("PodAttachOptions"),
                  .is_namespaced = true,
                  .verbs = DV_CAN_CREATE | DV_CAN_GET}},
    {.resource = {.name = DV_STR_INIT("pods"),
                  .subresource = DV_STR_INIT("exec"),
                  .kind = DV_STR_INIT("PodExecOptions"),
                  .is_namespaced = true,
                  .verbs = DV_CAN_CREATE | DV_CAN_GET}},
    {.resource = {.name = DV_STR_INIT("pods"),
                  .subresource = DV_STR_INIT("portforward"),
                  .kind = DV_STR_INIT("PodPortForwardOptions"),
                  .is_namespaced = true,
                  .verbs = DV_CAN_CREATE | DV_CAN_GET}},
    {.resource = {.name = DV_STR_INIT("pods"),
                  .subresource = DV_STR_INIT("binding"),
                  .kind = DV_STR_INIT("Binding"),
                  .is_namespaced = true,
                  .verbs = DV_CAN_CREATE}},
    {.resource = {.name = DV_STR_INIT("pods"),
                  .subresource = DV_STR_INIT("eviction"),
                  .kind = DV_STR_INIT("Eviction"),
                  .kind_group = DV_STR_INIT("policy"),
                  .kind_version = V1,
                  .is_namespaced = true,
                  .verbs = DV_CAN_CREATE}},
    {.resource = {.name = DV_STR_INIT("pods"),
                  .subresource = DV_STR_INIT("log"),
                  .kind = DV_STR_INIT("Pod"),
                  .is_namespaced = true,
                  .verbs = DV_CAN_GET}},
    {.resource = {.name = DV_STR_INIT("serviceaccounts"),
                  .subresource = DV_STR_INIT("token"),
                  .kind = DV_STR_INIT("TokenRequest"),
                  .kind_group = DV_STR_INIT("authentication.k8s.io"),
                  .kind_version = V1,
                  .review = DV_REVIEW_TOKEN_REQUEST,
                  .is_namespaced = true,
                  .verbs = DV_CAN_CREATE}},
    {.group = DV_STR_INIT("authentication.k8s.io"),
     .resource = {.name = DV_STR_INIT("selfsubjectreviews"),
                  .singular = DV_STR_INIT("selfsubjectreview"),
                  .kind = DV_STR_INIT("SelfSubjectReview"),
                  .review = DV_REVIEW_SELF,
                  .verbs = DV_CAN_CREATE}},
    {.group = DV_STR_INIT("authentication.k8s.io"),
     .resource = {.name = DV_STR_INIT("tokenreviews"),
                  .singular = DV_STR_INIT("tokenreview"),
                  .kind = DV_STR_INIT("TokenReview"),
                  .review = DV_REVIEW_TOKEN,
                  .verbs = DV_CAN_CREATE}},
    {.group = DV_STR_INIT("authorization.k8s.io"),
     .resource = {.name = DV_STR_INIT("localsubjectaccessreviews"),
                  .singular = DV_STR_INIT("localsubjectaccessreview"),
                  .kind = DV_STR_INIT("LocalSubjectAccessReview"),
                  .review = DV_REVIEW_LOCAL_ACCESS,
                  .is_namespaced = true,
                  .verbs = DV_CAN_CREATE}},
    {.group = DV_STR_INIT("authorization.k8s.io"),
     .resource = {.name = DV_STR_INIT("selfsubjectaccessreviews"),
                  .singular = DV_STR_INIT("selfsubjectaccessreview"),
                  .kind = DV_STR_INIT("SelfSubjectAccessReview"),
                  .review = DV_REVIEW_SELF_ACCESS,
                  .verbs = DV_CAN_CREATE}},
    {.group = DV_STR_INIT("authorization.k8s.io"),
     .resource = {.name = DV_STR_INIT("selfsubjectrulesreviews"),
                  .singular = DV_STR_INIT("selfsubjectrulesreview"),
                  .kind = DV_STR_INIT("SelfSubjectRulesReview"),
                  .review = DV_REVIEW_SELF_RULES,
                  .verbs = DV_CAN_CREATE}},
    {.group = DV_STR_INIT("authorization.k8s.io"),
     .resource = {.name = DV_STR_INIT("subjectaccessreviews"),
                  .singular = DV_STR_INIT("subjectaccessreview"),
                  .kind = DV_STR_INIT("SubjectAccessReview"),
                  .review = DV_REVIEW_ACCESS,
                  .verbs = DV_CAN_CREATE}},
};
/* clang-format on */

/* Adds a version to those of its group that were found, in order of preference. */
static void add_version(dv_str *versions, size_t *n, dv_str version)
{
    size_t at = 0;

    while (at < *n && dv_api_version_cmp(versions[at], version) < 0)
        at++;
    if (at < *n && dv_str_eq(versions[at], version))
        return;
    memmove(&versions[at + 1], &versions[at], (*n - at) * sizeof(versions[0]));
    versions[at] = version;
    (*n)++;
}

/* The group of the kinds from i on, which are sorted by group; returns the index behind them. */
static size_t custom_group(const struct dv_custom_set *customs, size_t i, struct dv_arena *arena,
                           struct dv_api_group *group)
{
    size_t size = 0;
    size_t end = i;
    dv_str *versions;

    *group = (struct dv_api_group){.name = customs->v[i]->custom->group};
    for (; end < customs->n && dv_str_eq(customs->v[end]->custom->group, group->name); end++)
        size += customs->v[end]->custom->n_versions;
    versions = DV_NEW_ARRAY(arena, dv_str, size + 1);
    for (; i < end; i++)
        for (size_t k = 0; k < customs->v[i]->custom->n_versions; k++)
            if (customs->v[i]->custom->versions[k].is_served)
                add_version(versions, &group->n_versions,
                            customs->v[i]->custom->versions[k].api.version);
    group->versions = versions;
    return end;
}

const struct dv_api_group *dv_api_groups(const struct dv_custom_set *customs,
                                         struct dv_arena *arena, size_t *n)
{
    struct dv_api_group *all;

    *n = DV_COUNT(groups);
    if (!customs || customs->n == 0)
        return groups;
    all = DV_NEW_ARRAY(arena, struct dv_api_group, *n + customs->n);
    memcpy(all, groups, sizeof(groups));
    for (size_t i = 0; i < customs->n;) {
        i = custom_group(customs, i, arena, &all[*n]);
        *n += all[*n].n_versions > 0;
    }
    return all;
}

static bool has_custom(const struct dv_custom_set *customs, dv_str group, dv_str version)
{
    for (size_t i = 0; customs && i < customs->n; i++) {
        const struct dv_custom *custom = customs->v[i]->custom;

        for (size_t k = 0; dv_str_eq(custom->group, group) && k < custom->n_versions; k++)
            if (custom->versions[k].is_served &&
                (!version.n || dv_str_eq(custom->versions[k].api.version, version)))
                return true;
    }
    return false;
}

bool dv_api_has_group(const struct dv_custom_set *customs, dv_str group)
{
    for (size_t i = 0; i < DV_COUNT(groups); i++)
        if (dv_str_eq(groups[i].name, group))
            return true;
    return has_custom(customs, group, DV_STR_NONE);
}

bool dv_api_has_version(const struct dv_custom_set *customs, dv_str group, dv_str version)
{
    if (!group.n)
        return dv_str_eq(version, DV_STR("v1"));
    for (size_t i = 0; i < DV_COUNT(groups); i++)
        for (size_t k = 0; dv_str_eq(groups[i].name, group) && k < groups[i].n_versions; k++)
            if (dv_str_eq(groups[i].versions[k], version))
                return true;
    return version.n > 0 && has_custom(customs, group, version);
}

typedef DV_VEC(struct dv_api_resource) resource_vec;

static void add_scale(resource_vec *found, const struct dv_kind *kind, struct dv_arena *arena)
{
    *dv_vec_add_in(found, arena) =
        (struct dv_api_resource){.name = kind->plural,
                                 .subresource = DV_STR("scale"),
                                 .kind = DV_STR("Scale"),
                                 .kind_group = DV_STR("autoscaling"),
                                 .kind_version = DV_STR("v1"),
                                 .is_namespaced = kind->is_namespaced,
                                 .verbs = DV_CAN_GET | DV_CAN_PATCH | DV_CAN_UPDATE};
}

static void add_kind(resource_vec *found, const struct dv_kind *kind,
                     const struct dv_api_version *version, struct dv_arena *arena)
{
    struct dv_api_resource resource = {
        .name = kind->plural,
        .singular = kind->singular,
        .kind = kind->name,
        .of = kind,
        .version = version,
        .is_namespaced = kind->is_namespaced,
        .verbs = DV_CAN_ALL,
    };

    if (kind->id == DV_KIND_NAMESPACE) /* namespaces cannot be deleted as a collection */
        resource.verbs &= ~(unsigned)DV_CAN_DELETE_COLLECTION;
    *dv_vec_add_in(found, arena) = resource;
    resource.singular = DV_STR_NONE;
    resource.verbs = DV_CAN_GET | DV_CAN_PATCH | DV_CAN_UPDATE;
    if (kind->has_status) {
        resource.subresource = DV_STR("status");
        *dv_vec_add_in(found, arena) = resource;
    }
    if (kind->has_scale)
        add_scale(found, kind, arena);
}

/* Adds the kinds of the group that have no objects. */
static void add_empty(resource_vec *found, dv_str group, dv_str version, struct dv_arena *arena)
{
    size_t n;
    const struct dv_kind *kinds = dv_empty_kinds(&n);

    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(kinds[i].versions->group, group) &&
            dv_str_eq(kinds[i].versions->version, version))
            *dv_vec_add_in(found, arena) = (struct dv_api_resource){
                .name = kinds[i].plural,
                .singular = kinds[i].singular,
                .kind = kinds[i].name,
                .of = &kinds[i],
                .version = kinds[i].versions,
                .is_namespaced = kinds[i].is_namespaced,
                .is_empty = true,
                .verbs = DV_CAN_GET | DV_CAN_LIST | DV_CAN_WATCH,
            };
}

/* Adds a kind that a definition made, in the version. */
static void add_custom(resource_vec *found, const struct dv_kind *kind,
                       const struct dv_custom_version *version, struct dv_arena *arena)
{
    struct dv_api_resource resource = {
        .name = kind->plural,
        .singular = version->custom->names->singular,
        .kind = kind->name,
        .of = kind,
        .version = &version->api,
        .names = version->custom->names,
        .is_namespaced = kind->is_namespaced,
        .verbs = version->custom->is_terminating ? TERMINATING_VERBS : DV_CAN_ALL,
    };

    *dv_vec_add_in(found, arena) = resource;
    resource.singular = DV_STR_NONE;
    resource.verbs = DV_CAN_GET | DV_CAN_PATCH | DV_CAN_UPDATE;
    resource.subresource = DV_STR("status");
    if (version->has_status)
        *dv_vec_add_in(found, arena) = resource;
    if (version->scale)
        add_scale(found, kind, arena);
}

static int compare(const void *a, const void *b)
{
    const struct dv_api_resource *x = a;
    const struct dv_api_resource *y = b;
    int order = dv_str_cmp(x->name, y->name);

    return order ? order : dv_str_cmp(x->subresource, y->subresource);
}

struct dv_api_resource *dv_api_resources(const struct dv_custom_set *customs, dv_str group,
                                         dv_str version, struct dv_arena *arena, size_t *n)
{
    resource_vec found = {0};

    for (unsigned id = 0; id < DV_N_KINDS; id++) {
        const struct dv_kind *kind = dv_kind((enum dv_kind_id)id);

        for (size_t i = 0; i < kind->n_versions; i++)
            if (dv_str_eq(kind->versions[i].group, group) &&
                dv_str_eq(kind->versions[i].version, version))
                add_kind(&found, kind, &kind->versions[i], arena);
    }
    add_empty(&found, group, version, arena);
    for (size_t i = 0; customs && i < customs->n; i++) {
        const struct dv_custom_version *custom =
            dv_custom_version_find(customs->v[i]->custom, version);

        if (custom && custom->is_served && dv_str_eq(custom->api.group, group))
            add_custom(&found, customs->v[i], custom, arena);
    }
    for (size_t i = 0; i < DV_COUNT(others); i++)
        if (dv_str_eq(others[i].group, group) && dv_str_eq(version, DV_STR("v1")))
            *dv_vec_add_in(&found, arena) = others[i].resource;
    if (found.n)
        qsort(found.v, found.n, sizeof(found.v[0]), compare);
    *n = found.n;
    return found.v;
}
