/* vap.c - the index of policies and bindings. A change of any of them settles anew which policies
 * count and which kinds they are about: both are few, and a write then costs one look. */
#include "vap/vap.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "resource/resource.h"
#include "vap/vap_index.h"
#include "vap/vap_match.h"

struct dv_vap *dv_vap_new(void)
{
    struct dv_vap *vap = DV_ALLOC(struct dv_vap);

    dv_map_init(&vap->policies);
    dv_map_init(&vap->bindings);
    return vap;
}

void dv_vap_free(struct dv_vap *vap)
{
    const struct dv_map_entry *entry;

    if (!vap)
        return;
    for (size_t at = 0; (entry = dv_map_next(&vap->policies, &at));)
        dv_vap_policy_unref(entry->value);
    for (size_t at = 0; (entry = dv_map_next(&vap->bindings, &at));)
        dv_vap_binding_unref(entry->value);
    dv_map_fini(&vap->policies);
    dv_map_fini(&vap->bindings);
    dv_vec_fini(&vap->active);
    free(vap);
}

/* ---- what counts ---- */

static int compare_bindings(const void *a, const void *b)
{
    return dv_str_cmp((*(struct dv_vap_binding *const *)a)->object->meta->name,
                      (*(struct dv_vap_binding *const *)b)->object->meta->name);
}

/* The last name first: the reference has no order, and this one is that of its recordings. */
static int compare_policies(const void *a, const void *b)
{
    return dv_str_cmp((*(struct dv_vap_policy *const *)b)->object->meta->name,
                      (*(struct dv_vap_policy *const *)a)->object->meta->name);
}

static void join_bindings(struct dv_vap *vap)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&vap->policies, &at));)
        dv_vec_clear(&((struct dv_vap_policy *)entry->value)->bindings);
    for (size_t at = 0; (entry = dv_map_next(&vap->bindings, &at));) {
        struct dv_vap_binding *binding = entry->value;
        struct dv_vap_policy *policy = dv_map_get(&vap->policies, binding->value->spec.policy_name);

        if (policy)
            *dv_vec_add(&policy->bindings) = binding;
    }
}

static void settle(struct dv_vap *vap)
{
    const struct dv_map_entry *entry;

    join_bindings(vap);
    dv_vec_clear(&vap->active);
    for (size_t at = 0; (entry = dv_map_next(&vap->policies, &at));) {
        struct dv_vap_policy *policy = entry->value;

        if (policy->bindings.n == 0)
            continue;
        qsort(policy->bindings.v, policy->bindings.n, sizeof(policy->bindings.v[0]),
              compare_bindings);
        *dv_vec_add(&vap->active) = policy;
    }
    if (vap->active.n > 0)
        qsort(vap->active.v, vap->active.n, sizeof(vap->active.v[0]), compare_policies);
    vap->is_about[DV_KIND_CUSTOM] = vap->active.n > 0;
    for (int id = 0; id < DV_N_KINDS; id++) {
        const struct dv_kind *kind = dv_kind((enum dv_kind_id)id);

        vap->is_about[id] = false;
        for (size_t i = 0; i < vap->active.n && !dv_vap_is_exempt(kind); i++)
            vap->is_about[id] |= dv_vap_match_is_about(&vap->active.v[i]->match, kind);
    }
}

void dv_vap_changed(struct dv_vap *vap, const struct dv_object *old, struct dv_object *now)
{
    dv_str name = now ? now->meta->name : old->meta->name;
    enum dv_kind_id id = (now ? now : old)->kind->id;

    if (id == DV_KIND_VALIDATING_POLICY) {
        struct dv_vap_policy *policy = now ? dv_vap_policy_new(now) : NULL;

        dv_vap_policy_unref(policy ? dv_map_set(&vap->policies, now->meta->name, policy)
                                   : dv_map_remove(&vap->policies, name));
    } else {
        struct dv_vap_binding *binding = now ? dv_vap_binding_new(now) : NULL;

        dv_vap_binding_unref(binding ? dv_map_set(&vap->bindings, now->meta->name, binding)
                                     : dv_map_remove(&vap->bindings, name));
    }
    settle(vap);
}

/* Rules name kinds that definitions make by their texts alone: each is looked at in full. */
bool dv_vap_is_about(const struct dv_vap *vap, const struct dv_kind *kind)
{
    return vap->is_about[kind->id];
}
