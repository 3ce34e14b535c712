/* device_pods.c - pods: which are active, and what they lend within themselves. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "device/state/device_state.h"

struct dv_device_pod *dv_device_pod_find(const struct dv_device_state *state, dv_str uid)
{
    return dv_map_get(&state->pods, uid);
}

struct dv_device_pod *dv_device_pod_ensure(struct dv_device_state *state, dv_str uid)
{
    struct dv_device_pod *pod = dv_device_pod_find(state, uid);
    char *text;

    if (pod)
        return pod;
    pod = dv_alloc(sizeof(*pod) + uid.n);
    text = (char *)(pod + 1);
    memcpy(text, uid.p ? uid.p : "", uid.n);
    pod->state = state;
    pod->uid = (dv_str){text, uid.n};
    pod->serial = ++state->n_pods_ever;
    dv_list_init(&pod->held);
    dv_list_init(&pod->lent);
    (void)dv_map_set(&state->pods, pod->uid, pod); /* is not there yet */
    return pod;
}

void dv_device_pod_free(struct dv_device_pod *pod)
{
    assert(dv_list_is_empty(&pod->held) && dv_list_is_empty(&pod->lent) && pod->n_operations == 0);
    (void)dv_map_remove(&pod->state->pods, pod->uid); /* gone is what we want */
    dv_link_remove(&pod->in_inactive);
    free(pod);
}

void dv_device_pod_drop(struct dv_device_pod *pod)
{
    if (!pod->is_active && pod->n_admissions == 0 && pod->n_operations == 0 &&
        dv_list_is_empty(&pod->held) && dv_list_is_empty(&pod->lent))
        dv_device_pod_free(pod);
}

void dv_device_pod_refresh(struct dv_device_pod *pod)
{
    bool is_to_collect = !pod->is_active && !dv_list_is_empty(&pod->held);

    if (is_to_collect && !dv_link_is_in(&pod->in_inactive))
        dv_list_push(&pod->state->inactive, &pod->in_inactive);
    else if (!is_to_collect)
        dv_link_remove(&pod->in_inactive);
}

/* -- Lending -------------------------------------------------------------------------------- */

void dv_device_lend(struct dv_device_pod *pod, struct dv_device *device)
{
    struct dv_device_pod *other = device->lender;

    if (other == pod)
        return;
    dv_device_unlend(device);
    if (other)
        dv_device_pod_drop(other);
    device->lender = pod;
    dv_device_keep(device);
    dv_list_push(&pod->lent, &device->in_lender);
    if (!dv_link_is_in(&pod->in_lenders))
        dv_list_push(&pod->state->lenders, &pod->in_lenders);
}

/* When a pod is admitted again, devices that its sidecars or regular containers have are lent too,
 * until that container's turn comes. */
bool dv_device_is_lendable(const struct dv_device *device)
{
    struct dv_link *link;

    DV_LIST_EACH (&device->holders, link)
        if (!DV_CONTAINER(link, struct dv_device_holding, in_device)->held->is_lending)
            return false;
    return device->n_reserved == 0;
}

/* Ends the loan. The device and the pod stay known, for callers that still need them. */
void dv_device_unlend(struct dv_device *device)
{
    struct dv_device_pod *pod = device->lender;

    if (!pod)
        return;
    device->lender = NULL;
    dv_device_keep(device);
    dv_link_remove(&device->in_lender);
    if (dv_list_is_empty(&pod->lent))
        dv_link_remove(&pod->in_lenders);
}

static void unlend_all(struct dv_device_pod *pod)
{
    struct dv_link *link;

    while ((link = dv_list_first(&pod->lent)) != NULL) {
        struct dv_device *device = DV_CONTAINER(link, struct dv_device, in_lender);

        dv_device_unlend(device);
        dv_device_drop(device);
    }
}

void dv_device_unlend_others(struct dv_device_pod *pod)
{
    struct dv_list *lenders = &pod->state->lenders;
    struct dv_link *next;

    for (struct dv_link *link = lenders->head.next; link != &lenders->head; link = next) {
        struct dv_device_pod *other = DV_CONTAINER(link, struct dv_device_pod, in_lenders);

        next = link->next;
        if (other == pod || other->n_admissions > 0 || other->n_operations > 0)
            continue;
        unlend_all(other);
        dv_device_pod_drop(other);
    }
}

/* -- Collection ----------------------------------------------------------------------------- */

void dv_device_rebuild_allocated(struct dv_device_state *state)
{
    const struct dv_map_entry *entry;
    struct dv_link *link;

    while ((link = dv_list_shift(&state->leaked)) != NULL) {
        struct dv_device *device = DV_CONTAINER(link, struct dv_device, in_leaked);

        dv_device_refresh(device);
        dv_device_drop(device);
    }
    for (size_t at = 0; (entry = dv_map_next(&state->resources, &at)) != NULL;) {
        struct dv_device_resource *resource = entry->value;

        resource->has_allocated = resource->n_records > 0 || resource->n_taken > 0;
        dv_device_resource_drop(resource);
    }
}

static void collect_pod(struct dv_device_pod *pod)
{
    struct dv_link *link;

    while ((link = dv_list_first(&pod->held)) != NULL)
        dv_device_held_remove(DV_CONTAINER(link, struct dv_device_held, in_pod));
    if (!pod->state->opts.is_strict) /* the reference keeps it until another pod is handled */
        unlend_all(pod);
    dv_device_pod_drop(pod);
}

size_t dv_device_collect(struct dv_device_state *state)
{
    struct dv_link *link;
    size_t n = 0;

    if (!state->is_ready)
        return 0;
    while ((link = dv_list_shift(&state->inactive)) != NULL) {
        collect_pod(DV_CONTAINER(link, struct dv_device_pod, in_inactive));
        n++;
    }
    if (n > 0)
        dv_device_rebuild_allocated(state);
    return n;
}

/* -- What the agent says -------------------------------------------------------------------- */

void dv_device_activate_pod(struct dv_device_state *state, dv_str pod_uid)
{
    struct dv_device_pod *pod = dv_device_pod_ensure(state, pod_uid);

    pod->is_active = true;
    dv_device_pod_refresh(pod);
}

void dv_device_deactivate_pod(struct dv_device_state *state, dv_str pod_uid)
{
    struct dv_device_pod *pod = dv_device_pod_find(state, pod_uid);

    if (!pod)
        return;
    pod->is_active = false;
    dv_device_pod_refresh(pod);
    dv_device_pod_drop(pod);
}

void dv_device_begin_admission(struct dv_device_state *state, dv_str pod_uid)
{
    dv_device_pod_ensure(state, pod_uid)->n_admissions++;
}

void dv_device_end_admission(struct dv_device_state *state, dv_str pod_uid)
{
    struct dv_device_pod *pod = dv_device_pod_find(state, pod_uid);

    if (!pod || pod->n_admissions == 0)
        return;
    pod->n_admissions--;
    dv_device_pod_drop(pod);
}
