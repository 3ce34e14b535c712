/* held.c - what containers hold. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/row.h"
#include "base/str.h"
#include "device/state/device_codec.h"
#include "device/state/device_state.h"

/* -- Finding -------------------------------------------------------------------------------- */

/* Makes the key of what a container holds of a resource. It is unique
 * while the resource lives, which it does while something is held. A pod's address would do, but
 * comes again with the next pod, and a map is slow with keys that come and go. */
static dv_str make_key(struct dv_device_state *state, const struct dv_device_pod *pod,
                       dv_str container, const struct dv_device_resource *resource)
{
    dv_buf_clear(&state->key);
    dv_buf_add(&state->key, (dv_str){(const char *)&pod->serial, sizeof(pod->serial)});
    dv_buf_add(&state->key, (dv_str){(const char *)&resource, sizeof(resource)});
    dv_buf_add(&state->key, container);
    return dv_buf_str(&state->key);
}

struct dv_device_held *dv_device_held_find(struct dv_device_state *state,
                                           const struct dv_device_pod *pod, dv_str container,
                                           const struct dv_device_resource *resource)
{
    if (!pod || !resource || dv_list_is_empty(&pod->held))
        return NULL;
    return dv_map_get(&state->held, make_key(state, pod, container, resource));
}

/* -- Adding --------------------------------------------------------------------------------- */

static int placement_cmp(const void *a, const void *b)
{
    const struct dv_device_placement *x = a;
    const struct dv_device_placement *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static void copy_placements(struct dv_device_held *held,
                            const struct dv_device_placement *placements, size_t n)
{
    held->placements = dv_alloc(n * sizeof(placements[0]));
    held->n_placements = n;
    for (size_t i = 0; i < n; i++) {
        held->placements[i] = placements[i];
        held->placements[i].order = i;
    }
    qsort(held->placements, n, sizeof(placements[0]), placement_cmp);
}

/* Copies the container's name, the response and the key, one behind the other. */
static void copy_text(struct dv_device_held *held, dv_str container, dv_str response, dv_str key)
{
    char *text = dv_alloc(container.n + response.n + key.n);

    held->text = text;
    memcpy(text, container.p ? container.p : "", container.n);
    held->container = (dv_str){text, container.n};
    text += container.n;
    memcpy(text, response.p ? response.p : "", response.n);
    held->response = (dv_str){text, response.n};
    text += response.n;
    memcpy(text, key.p, key.n);
    held->key = (dv_str){text, key.n};
}

static bool holds(const struct dv_device_held *held, const struct dv_device *device)
{
    struct dv_link *last = device->holders.head.prev;

    /* Only the newest holder can be the one that is being made. */
    return !dv_list_is_empty(&device->holders) &&
           DV_CONTAINER(last, struct dv_device_holding, in_device)->held == held;
}

static void hold_devices(struct dv_device_held *held)
{
    for (size_t i = 0; i < held->n_placements; i++) {
        struct dv_device *device = held->placements[i].device;
        struct dv_device_holding *holding = &held->holdings[held->n_holdings];

        if (!device || holds(held, device))
            continue;
        *holding = (struct dv_device_holding){.device = device, .held = held};
        dv_list_push(&device->holders, &holding->in_device);
        held->n_holdings++;
        dv_device_refresh(device);
    }
}

struct dv_device_held *dv_device_held_add(struct dv_device_pod *pod, dv_str container,
                                          struct dv_device_resource *resource,
                                          const struct dv_device_placement *placements,
                                          size_t n_placements, dv_str response)
{
    struct dv_device_state *state = pod->state;
    struct dv_device_held *old = dv_device_held_find(state, pod, container, resource);
    struct dv_device_held *held =
        dv_alloc(sizeof(*held) + n_placements * sizeof(held->holdings[0]));

    held->pod = pod;
    held->resource = resource;
    copy_placements(held, placements, n_placements);
    copy_text(held, container, response, make_key(state, pod, container, resource));
    hold_devices(held);
    if (old) /* last: devices that both hold stay taken throughout */
        dv_device_held_remove(old);
    (void)dv_map_set(&state->held, held->key, held); /* the old one is out */
    dv_list_push(&pod->held, &held->in_pod);
    dv_list_push(&state->dirty, &held->in_dirty);
    resource->n_records++;
    resource->has_allocated = true;
    dv_device_pod_refresh(pod);
    return held;
}

/* -- Removing ------------------------------------------------------------------------------- */

void dv_device_held_remove(struct dv_device_held *held)
{
    struct dv_device_state *state = held->pod->state;

    if (held->is_saved) {
        struct dv_buf *key = dv_vec_add(&state->gone);

        dv_buf_init(key, DV_ROW_BYTES_MAX);
        dv_device_held_store_key(held, key);
    }
    (void)dv_map_remove(&state->held, held->key); /* its memory is freed next */
    dv_link_remove(&held->in_pod);
    dv_link_remove(&held->in_dirty);
    for (size_t i = 0; i < held->n_holdings; i++) {
        struct dv_device *device = held->holdings[i].device;

        dv_link_remove(&held->holdings[i].in_device);
        dv_device_refresh(device);
        dv_device_drop(device);
    }
    held->resource->n_records--;
    dv_device_pod_refresh(held->pod);
    free(held->placements);
    free(held->text);
    free(held);
}

/* -- As values ------------------------------------------------------------------------------ */

void dv_device_held_describe(const struct dv_device_held *held, struct dv_arena *arena,
                             struct dv_device_record *record)
{
    DV_VEC(struct dv_device_placed) placed = {0};
    dv_str *ids = DV_NEW_ARRAY(arena, dv_str, held->n_placements);

    for (size_t i = 0; i < held->n_placements; i++) {
        const struct dv_device_placement *placement = &held->placements[i];

        if (i == 0 || placement->node != held->placements[i - 1].node)
            *dv_vec_add_in(&placed, arena) =
                (struct dv_device_placed){.node = placement->node, .ids = ids};
        if (placement->device) {
            *ids++ = placement->device->id;
            placed.v[placed.n - 1].n_ids++;
        }
    }
    *record = (struct dv_device_record){
        .pod_uid = held->pod->uid,
        .container = held->container,
        .resource = held->resource->name,
        .placed = placed.v ? placed.v : DV_NEW_ARRAY(arena, struct dv_device_placed, 0),
        .n_placed = placed.n,
        .response = held->response,
    };
}

static int held_ptr_cmp(const void *a, const void *b)
{
    const struct dv_device_held *const *x = a;
    const struct dv_device_held *const *y = b;

    return dv_str_cmp((*x)->resource->name, (*y)->resource->name);
}

size_t dv_device_held_of(const struct dv_device_state *state, dv_str pod_uid, dv_str container,
                         struct dv_arena *arena, struct dv_device_held ***held)
{
    const struct dv_device_pod *pod = dv_device_pod_find(state, pod_uid);
    DV_VEC(struct dv_device_held *) v = {0};
    struct dv_link *link;

    if (!pod)
        return 0;
    DV_LIST_EACH (&pod->held, link) {
        struct dv_device_held *one = DV_CONTAINER(link, struct dv_device_held, in_pod);

        if (dv_str_eq(one->container, container))
            *dv_vec_add_in(&v, arena) = one;
    }
    if (v.n > 0)
        qsort(v.v, v.n, sizeof(v.v[0]), held_ptr_cmp);
    *held = v.v;
    return v.n;
}

struct dv_device_held *dv_device_held_restore(struct dv_device_state *state,
                                              const struct dv_device_record *record)
{
    struct dv_device_resource *resource = dv_device_resource_ensure(state, record->resource);
    struct dv_device_pod *pod = dv_device_pod_ensure(state, record->pod_uid);
    DV_VEC(struct dv_device_placement) placements = {0};
    struct dv_device_held *held;

    for (size_t i = 0; i < record->n_placed; i++) {
        const struct dv_device_placed *placed = &record->placed[i];

        if (placed->n_ids == 0)
            dv_vec_add(&placements)->node = placed->node;
        for (size_t k = 0; k < placed->n_ids; k++)
            *dv_vec_add(&placements) = (struct dv_device_placement){
                .node = placed->node,
                .device = dv_device_ensure(resource, placed->ids[k]),
            };
    }
    held = dv_device_held_add(pod, record->container, resource, placements.v, placements.n,
                              record->response);
    dv_vec_fini(&placements);
    return held;
}

size_t dv_device_records_of_pod(const struct dv_device_state *state, dv_str pod_uid,
                                struct dv_arena *arena, const struct dv_device_record **records)
{
    const struct dv_device_pod *pod = dv_device_pod_find(state, pod_uid);
    DV_VEC(struct dv_device_record) v = {0};
    struct dv_link *link;

    if (pod)
        DV_LIST_EACH (&pod->held, link)
            dv_device_held_describe(DV_CONTAINER(link, struct dv_device_held, in_pod), arena,
                                    dv_vec_add_in(&v, arena));
    *records = v.v;
    return v.n;
}
