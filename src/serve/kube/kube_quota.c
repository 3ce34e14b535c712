/* kube_quota.c - the quotas of nodes and drivers, kept current by views of what is stored. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/metric.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "serve/auth.h"
#include "serve/auth/quota.h"
#include "serve/kube/kube_call.h"

/* Of Events and pods only those count that say who they are of: there may be ten thousands of
 * others. */
static const struct {
    enum dv_kind_id kind;
    dv_str annotation;
} kinds[] = {
    {DV_KIND_EVENT, DV_STR_INIT(DV_ANNOTATION_AUTHOR)},
    {DV_KIND_SLICE, {0}                              },
    {DV_KIND_POD,   DV_STR_INIT(DV_MIRROR_ANNOTATION)},
};
_Static_assert(DV_COUNT(kinds) == DV_KUBE_QUOTA_KINDS, "a view for each kind");

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    const struct dv_kube *kube = ctx;

    dv_quota_changed(kube->quota, old, now);
}

void dv_kube_open_quota(struct dv_kube *kube)
{
    struct dv_err err;

    kube->quota = dv_quota_new();
    for (size_t i = 0; i < DV_COUNT(kinds); i++) {
        struct dv_view_options options = {.kind = dv_kind(kinds[i].kind),
                                          .annotation = kinds[i].annotation,
                                          .changed = on_changed,
                                          .ctx = kube};

        kube->quota_views[i] =
            dv_view_open(dv_embedded_cluster(kube->options.embedded), &options, &err);
        assert(kube->quota_views[i]); /* opening fails only for a bad selector, and this has none */
    }
}

void dv_kube_close_quota(struct dv_kube *kube)
{
    for (size_t i = 0; i < DV_COUNT(kube->quota_views); i++) {
        if (kube->quota_views[i])
            dv_view_close(kube->quota_views[i]);
        kube->quota_views[i] = NULL;
    }
}

/* Checks an Event. It has to say who writes it, or it would count for nobody; a finalizer is
 * refused, because that would keep the Event for ever. */
static bool check_event(struct dv_kube_call *call, const struct dv_object *old, const void *value,
                        dv_str node, dv_str driver)
{
    const struct dv_api_object_meta *meta = value;
    const struct dv_kind *kind = call->route.kind;

    if (meta->n_finalizers > (old ? old->meta->n_finalizers : 0))
        call->denial.reason = DV_STR("finalizers of Events are for administrators");
    else if (!old && !dv_quota_is_owner(kind, value, node, driver))
        call->denial.reason = DV_STR("an Event is made by POST");
    else if (old && dv_quota_is_owner(kind, old->value, node, driver) &&
             !dv_quota_is_owner(kind, value, node, driver))
        call->denial.reason =
            DV_STR("the annotation " DV_ANNOTATION_AUTHOR " of an Event stays as it is");
    return call->denial.reason.n == 0;
}

bool dv_kube_admit_quota(struct dv_kube_call *call, const struct dv_object *old, const void *value,
                         dv_str node, dv_str driver)
{
    struct dv_kube *kube = call->kube;
    const struct dv_quota_write write = {
        .kind = call->route.kind, .old = old, .value = value, .node = node, .driver = driver};
    struct dv_err err;

    if (!value)
        return true; /* it is a deletion */
    if (write.kind->id == DV_KIND_EVENT && !check_event(call, old, value, node, driver))
        return false;
    if (dv_quota_take(kube->quota, &write, &call->hold, &err))
        return true;
    call->over_quota = dv_str_copy(dv_str_from_c(err.msg), call->arena);
    if (kube->quota_refusals)
        dv_counter_add(dv_family_counter(kube->quota_refusals, &write.kind->plural), 1);
    return false;
}
