/* kube_resources.c - the groups, versions and resources that are served. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "serve/wire/kube_route.h"

#define V1 DV_STR_INIT("v1")

static const dv_str only_v1[] = {V1};
static const dv_str resource_versions[] = {V1, DV_STR_INIT("v1beta2"), DV_STR_INIT("v1beta1"),
                                           DV_STR_INIT("v1alpha3")};

/* In the reference's order. */
static const struct dv_api_group groups[] = {
    {DV_STR_INIT("events.k8s.io"),         only_v1,           1},
    {DV_STR_INIT("authentication.k8s.io"), only_v1,           1},
    {DV_STR_INIT("authorization.k8s.io"),  only_v1,           1},
    {DV_STR_INIT("coordination.k8s.io"),   only_v1,           1},
    {DV_STR_INIT("resource.k8s.io"),       resource_versions, 4},
};

/* What is not a kind with objects: questions, and subresources that are none of every kind. */
static const struct {
    dv_str group;
    struct dv_api_resource resource;
} others[] = {
    {{0},
     {DV_STR_INIT("bindings"),
      {0},
      DV_STR_INIT("binding"),
      DV_STR_INIT("Binding"),
      {0},
      {0},
      NULL,
      NULL,
      DV_REVIEW_BINDING,
      true,
      DV_CAN_CREATE}},
    {{0},
     {DV_STR_INIT("namespaces"),
      DV_STR_INIT("finalize"),
      {0},
      DV_STR_INIT("Namespace"),
      {0},
      {0},
      NULL,
      NULL,
      DV_REVIEW_NONE,
      false,
      DV_CAN_UPDATE}},
    {{0},
     {DV_STR_INIT("pods"),
      DV_STR_INIT("binding"),
      {0},
      DV_STR_INIT("Binding"),
      {0},
      {0},
      NULL,
      NULL,
      DV_REVIEW_NONE,
      true,
      DV_CAN_CREATE}},
    {{0},
     {DV_STR_INIT("pods"),
      DV_STR_INIT("eviction"),
      {0},
      DV_STR_INIT("Eviction"),
      DV_STR_INIT("policy"),
      V1,
      NULL,
      NULL,
      DV_REVIEW_NONE,
      true,
      DV_CAN_CREATE}},
    {{0},
     {DV_STR_INIT("serviceaccounts"),
      DV_STR_INIT("token"),
      {0},
      DV_STR_INIT("TokenRequest"),
      DV_STR_INIT("authentication.k8s.io"),
      V1,
      NULL,
      NULL,
      DV_REVIEW_TOKEN_REQUEST,
      true,
      DV_CAN_CREATE}},
    {DV_STR_INIT("authentication.k8s.io"),
     {DV_STR_INIT("selfsubjectreviews"),
      {0},
      DV_STR_INIT("selfsubjectreview"),
      DV_STR_INIT("SelfSubjectReview"),
      {0},
      {0},
      NULL,
      NULL,
      DV_REVIEW_SELF,
      false,
      DV_CAN_CREATE}},
    {DV_STR_INIT("authentication.k8s.io"),
     {DV_STR_INIT("tokenreviews"),
      {0},
      DV_STR_INIT("tokenreview"),
      DV_STR_INIT("TokenReview"),
      {0},
      {0},
      NULL,
      NULL,
      DV_REVIEW_TOKEN,
      false,
      DV_CAN_CREATE}},
    {DV_STR_INIT("authorization.k8s.io"),
     {DV_STR_INIT("localsubjectaccessreviews"),
      {0},
      DV_STR_INIT("localsubjectaccessreview"),
      DV_STR_INIT("LocalSubjectAccessReview"),
      {0},
      {0},
      NULL,
      NULL,
      DV_REVIEW_LOCAL_ACCESS,
      true,
      DV_CAN_CREATE}},
    {DV_STR_INIT("authorization.k8s.io"),
     {DV_STR_INIT("selfsubjectaccessreviews"),
      {0},
      DV_STR_INIT("selfsubjectaccessreview"),
      DV_STR_INIT("SelfSubjectAccessReview"),
      {0},
      {0},
      NULL,
      NULL,
      DV_REVIEW_SELF_ACCESS,
      false,
      DV_CAN_CREATE}},
    {DV_STR_INIT("authorization.k8s.io"),
     {DV_STR_INIT("selfsubjectrulesreviews"),
      {0},
      DV_STR_INIT("selfsubjectrulesreview"),
      DV_STR_INIT("SelfSubjectRulesReview"),
      {0},
      {0},
      NULL,
      NULL,
      DV_REVIEW_SELF_RULES,
      false,
      DV_CAN_CREATE}},
    {DV_STR_INIT("authorization.k8s.io"),
     {DV_STR_INIT("subjectaccessreviews"),
      {0},
      DV_STR_INIT("subjectaccessreview"),
      DV_STR_INIT("SubjectAccessReview"),
      {0},
      {0},
      NULL,
      NULL,
      DV_REVIEW_ACCESS,
      false,
      DV_CAN_CREATE}},
};

const struct dv_api_group *dv_api_groups(size_t *n)
{
    *n = DV_COUNT(groups);
    return groups;
}

bool dv_api_has_version(dv_str group, dv_str version)
{
    if (!group.n)
        return dv_str_eq(version, DV_STR("v1"));
    for (size_t i = 0; i < DV_COUNT(groups); i++)
        for (size_t k = 0; dv_str_eq(groups[i].name, group) && k < groups[i].n_versions; k++)
            if (dv_str_eq(groups[i].versions[k], version))
                return true;
    return false;
}

typedef DV_VEC(struct dv_api_resource) resource_vec;

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

    if (kind->id == DV_KIND_NAMESPACE) /* many namespaces are never deleted at once */
        resource.verbs &= ~(unsigned)DV_CAN_DELETE_COLLECTION;
    *dv_vec_add_in(found, arena) = resource;
    if (!kind->has_status)
        return;
    resource.subresource = DV_STR("status");
    resource.singular = DV_STR_NONE;
    resource.verbs = DV_CAN_GET | DV_CAN_PATCH | DV_CAN_UPDATE;
    *dv_vec_add_in(found, arena) = resource;
}

static int compare(const void *a, const void *b)
{
    const struct dv_api_resource *x = a;
    const struct dv_api_resource *y = b;
    int order = dv_str_cmp(x->name, y->name);

    return order ? order : dv_str_cmp(x->subresource, y->subresource);
}

struct dv_api_resource *dv_api_resources(dv_str group, dv_str version, struct dv_arena *arena,
                                         size_t *n)
{
    resource_vec found = {0};

    for (unsigned id = 0; id < DV_N_KINDS; id++) {
        const struct dv_kind *kind = dv_kind((enum dv_kind_id)id);

        for (size_t i = 0; i < kind->n_versions; i++)
            if (dv_str_eq(kind->versions[i].group, group) &&
                dv_str_eq(kind->versions[i].version, version))
                add_kind(&found, kind, &kind->versions[i], arena);
    }
    for (size_t i = 0; i < DV_COUNT(others); i++)
        if (dv_str_eq(others[i].group, group) && dv_str_eq(version, DV_STR("v1")))
            *dv_vec_add_in(&found, arena) = others[i].resource;
    if (found.n)
        qsort(found.v, found.n, sizeof(found.v[0]), compare);
    *n = found.n;
    return found.v;
}
