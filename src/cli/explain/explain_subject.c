/* explain_subject.c - finds the claims that an explanation is about. */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/explain/cli_explain.h"
#include "cli/explain/world.h"
#include "resource/resource.h"

static void obstruct(struct dv_cli_explain_subject *subject, dv_str text, struct dv_arena *arena)
{
    *dv_vec_add_in(&subject->obstacles, arena) = text;
}

/* The class whose name is most like this one; empty: there is none. */
static dv_str similar_class(const struct dv_cli_world *world, dv_str name)
{
    const struct dv_cli_things *classes = &world->of[DV_KIND_CLASS];
    size_t best = dv_str_distance_max(name);
    dv_str similar = DV_STR_NONE;

    for (size_t i = 0; i < classes->n; i++) {
        size_t distance = dv_str_distance(name, classes->v[i]->name);

        if (distance < best) {
            best = distance;
            similar = classes->v[i]->name;
        }
    }
    return similar;
}

static void check_class(const struct dv_cli_world *world, struct dv_cli_explain_subject *subject,
                        const struct dv_api_resource_claim *claim, dv_str request, dv_str class)
{
    dv_str similar;

    if (dv_cli_world_find(world, DV_KIND_CLASS, DV_STR_NONE, class))
        return;
    similar = similar_class(world, class);
    subject->is_hopeless = true;
    obstruct(subject,
             dv_str_printf(world->arena,
                           "request %.*s of claim %.*s/%.*s is for the class %.*s, which is not "
                           "there%s%.*s%s",
                           DV_FMT(request), DV_FMT(claim->metadata.namespace),
                           DV_FMT(claim->metadata.name), DV_FMT(class),
                           similar.n ? "; did you mean " : "", DV_FMT(similar),
                           similar.n ? "?" : ""),
             world->arena);
}

static void check_classes(const struct dv_cli_world *world, struct dv_cli_explain_subject *subject,
                          const struct dv_api_resource_claim *claim)
{
    const struct dv_api_device_claim *devices = &claim->spec.devices;

    for (size_t i = 0; i < devices->n_requests; i++) {
        const struct dv_api_device_request *request = &devices->requests[i];

        if (request->exactly)
            check_class(world, subject, claim, request->name, request->exactly->device_class_name);
        for (size_t k = 0; k < request->n_first_available; k++)
            check_class(world, subject, claim,
                        dv_str_printf(world->arena, "%.*s/%.*s", DV_FMT(request->name),
                                      DV_FMT(request->first_available[k].name)),
                        request->first_available[k].device_class_name);
    }
}

static void add_claim(const struct dv_cli_world *world, struct dv_cli_explain_subject *subject,
                      const struct dv_api_resource_claim *claim)
{
    struct dv_arena *arena = world->arena;
    struct dv_cli_claims *claims =
        claim->status.allocation ? &subject->allocated : &subject->pending;

    if (claim->metadata.deletion_timestamp.is_set)
        obstruct(subject,
                 dv_str_printf(arena, "claim %.*s/%.*s is being deleted",
                               DV_FMT(claim->metadata.namespace), DV_FMT(claim->metadata.name)),
                 arena);
    if (!claim->status.allocation)
        check_classes(world, subject, claim);
    *dv_vec_add_in(claims, arena) = claim;
}

static const struct dv_api_pod_resource_claim_status *status_of(const struct dv_api_pod *pod,
                                                                dv_str name)
{
    for (size_t i = 0; i < pod->status.n_resource_claim_statuses; i++)
        if (dv_str_eq(pod->status.resource_claim_statuses[i].name, name))
            return &pod->status.resource_claim_statuses[i];
    return NULL;
}

/* The claim as it will be when it is made. */
static void add_future_claim(const struct dv_cli_world *world, const struct dv_api_pod *pod,
                             const struct dv_api_pod_resource_claim *entry,
                             struct dv_cli_explain_subject *subject)
{
    const struct dv_api_resource_claim_template *template = dv_cli_world_find(
        world, DV_KIND_TEMPLATE, pod->metadata.namespace, entry->resource_claim_template_name);
    struct dv_api_resource_claim *claim;

    if (!template) {
        obstruct(subject,
                 dv_str_printf(world->arena,
                               "the pod's claim %.*s is not made yet, and its template %.*s is not "
                               "there",
                               DV_FMT(entry->name), DV_FMT(entry->resource_claim_template_name)),
                 world->arena);
        return;
    }
    claim = DV_NEW(world->arena, struct dv_api_resource_claim);
    claim->metadata.namespace = pod->metadata.namespace;
    claim->metadata.name =
        dv_str_printf(world->arena, "%.*s-%.*s", DV_FMT(pod->metadata.name), DV_FMT(entry->name));
    claim->spec = template->spec.spec;
    add_claim(world, subject, claim);
}

static void add_entry(const struct dv_cli_world *world, const struct dv_api_pod *pod,
                      const struct dv_api_pod_resource_claim *entry,
                      struct dv_cli_explain_subject *subject)
{
    const struct dv_api_pod_resource_claim_status *status = status_of(pod, entry->name);
    const struct dv_api_resource_claim *claim;
    dv_str name = entry->resource_claim_name;

    if (name.n == 0 && status)
        name = status->resource_claim_name;
    if (name.n == 0 && status)
        return; /* it was found not to need one */
    if (name.n == 0) {
        add_future_claim(world, pod, entry, subject);
        return;
    }
    claim = dv_cli_world_find(world, DV_KIND_CLAIM, pod->metadata.namespace, name);
    if (claim)
        add_claim(world, subject, claim);
    else
        obstruct(subject,
                 dv_str_printf(world->arena, "the pod's claim %.*s is not there", DV_FMT(name)),
                 world->arena);
}

/* Fails, and names the namespace that has the object: perhaps the user forgot -n. */
static bool fail_absent(const struct dv_cli_world *world, enum dv_kind_id kind, dv_str namespace,
                        dv_str name, struct dv_err *err)
{
    const char *word = kind == DV_KIND_POD ? "pod" : "claim";
    const struct dv_cli_things *things = &world->of[kind];

    for (size_t i = 0; i < things->n; i++)
        if (dv_str_eq(things->v[i]->name, name))
            return dv_fail(err, DV_NOT_FOUND,
                           "there is no %s %.*s in the namespace %.*s; there is one in %.*s: give "
                           "-n %.*s",
                           word, DV_FMT(name), DV_FMT(namespace), DV_FMT(things->v[i]->namespace),
                           DV_FMT(things->v[i]->namespace));
    return dv_fail(err, DV_NOT_FOUND, "there is no %s %.*s in the namespace %.*s", word,
                   DV_FMT(name), DV_FMT(namespace));
}

bool dv_cli_explain_subject_find(const struct dv_cli_world *world, enum dv_kind_id kind,
                                 dv_str namespace, dv_str name,
                                 struct dv_cli_explain_subject *subject, struct dv_err *err)
{
    const void *value = dv_cli_world_find(world, kind, namespace, name);
    const struct dv_api_pod *pod;

    *subject = (struct dv_cli_explain_subject){
        .what = dv_str_printf(world->arena, "%s %.*s/%.*s", kind == DV_KIND_POD ? "pod" : "claim",
                              DV_FMT(namespace), DV_FMT(name)),
    };
    if (!value)
        return fail_absent(world, kind, namespace, name, err);
    if (kind == DV_KIND_CLAIM) {
        add_claim(world, subject, value);
        return true;
    }
    pod = value;
    subject->node = pod->spec.node_name;
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++)
        add_entry(world, pod, &pod->spec.resource_claims[i], subject);
    return true;
}
