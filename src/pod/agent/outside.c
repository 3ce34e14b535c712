/* outside.c - the devices that are held outside the API, by resource and id, each with the number
 * of its holders; and for each pod which they are. */
#include "pod/agent/outside.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/vec.h"
#include "device/device.h"

struct sum {
    dv_str resource;
    size_t n_healthy;      /* of the devices */
    uint64_t health;       /* dv_device_health_version when they were looked at */
    struct dv_map devices; /* struct taken, by id */
    char text[];
};

struct taken {
    struct sum *sum;
    dv_str id;
    size_t n_holders; /* a container that has it for two NUMA nodes counts twice */
    bool is_healthy;  /* as it is counted */
    char text[];
};

struct holder {
    dv_str uid;
    DV_VEC(struct taken *) taken;
    char text[];
};

struct dv_outside {
    struct dv_map sums;    /* struct sum, by resource */
    struct dv_map holders; /* struct holder, by uid */
};

static struct sum *sum_of(struct dv_outside *outside, const struct dv_device_state *state,
                          dv_str resource)
{
    struct sum *sum = dv_map_get(&outside->sums, resource);

    if (sum)
        return sum;
    sum = dv_alloc(sizeof(*sum) + resource.n);
    memcpy(sum->text, resource.p, resource.n);
    sum->resource = (dv_str){sum->text, resource.n};
    sum->health = dv_device_health_version(state, resource);
    dv_map_init(&sum->devices);
    (void)dv_map_set(&outside->sums, sum->resource, sum); /* there was none */
    return sum;
}

static void set_health(struct taken *taken, bool is_healthy)
{
    taken->sum->n_healthy -= taken->is_healthy;
    taken->sum->n_healthy += is_healthy;
    taken->is_healthy = is_healthy;
}

static struct taken *take(struct dv_outside *outside, const struct dv_device_state *state,
                          dv_str resource, dv_str id)
{
    struct sum *sum = sum_of(outside, state, resource);
    struct taken *taken = dv_map_get(&sum->devices, id);

    if (!taken) {
        taken = dv_alloc(sizeof(*taken) + id.n);
        memcpy(taken->text, id.p, id.n);
        taken->id = (dv_str){taken->text, id.n};
        taken->sum = sum;
        (void)dv_map_set(&sum->devices, taken->id, taken); /* there was none */
        set_health(taken, dv_device_is_healthy(state, resource, id));
    }
    taken->n_holders++;
    return taken;
}

static void free_sum(struct dv_outside *outside, struct sum *sum)
{
    (void)dv_map_remove(&outside->sums, sum->resource); /* it is `sum` */
    dv_map_fini(&sum->devices);
    free(sum);
}

static void give_back(struct dv_outside *outside, struct taken *taken)
{
    struct sum *sum = taken->sum;

    if (--taken->n_holders > 0)
        return;
    set_health(taken, false);
    (void)dv_map_remove(&sum->devices, taken->id); /* it is `taken` */
    free(taken);
    if (sum->devices.n == 0)
        free_sum(outside, sum);
}

/* Takes the pod out. False: it held nothing. */
static bool drop(struct dv_outside *outside, dv_str pod_uid)
{
    struct holder *holder = dv_map_remove(&outside->holders, pod_uid);

    if (!holder)
        return false;
    for (size_t i = 0; i < holder->taken.n; i++)
        give_back(outside, holder->taken.v[i]);
    dv_vec_fini(&holder->taken);
    free(holder);
    return true;
}

static void add_record(struct dv_outside *outside, const struct dv_device_state *state,
                       struct holder *holder, const struct dv_device_record *record)
{
    for (size_t i = 0; i < record->n_placed; i++)
        for (size_t k = 0; k < record->placed[i].n_ids; k++)
            *dv_vec_add(&holder->taken) =
                take(outside, state, record->resource, record->placed[i].ids[k]);
}

bool dv_outside_set(struct dv_outside *outside, const struct dv_device_state *state, dv_str pod_uid,
                    bool is_outside)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    bool has_held = drop(outside, pod_uid);
    const struct dv_device_record *records = NULL;
    size_t n = is_outside ? dv_device_records_of_pod(state, pod_uid, arena, &records) : 0;
    struct holder *holder;

    if (n == 0)
        return has_held;
    holder = dv_alloc(sizeof(*holder) + pod_uid.n);
    memcpy(holder->text, pod_uid.p, pod_uid.n);
    holder->uid = (dv_str){holder->text, pod_uid.n};
    (void)dv_map_set(&outside->holders, holder->uid, holder); /* it was dropped */
    for (size_t i = 0; i < n; i++)
        add_record(outside, state, holder, &records[i]);
    return true;
}

/* Asks for the health of the devices again when it may have changed. A change of another resource
 * costs nothing here, however many devices pods hold. */
static void refresh(struct sum *sum, const struct dv_device_state *state)
{
    uint64_t health = dv_device_health_version(state, sum->resource);
    const struct dv_map_entry *entry;

    if (health == sum->health)
        return;
    for (size_t at = 0; (entry = dv_map_next(&sum->devices, &at)) != NULL;)
        set_health(entry->value, dv_device_is_healthy(state, sum->resource, entry->key));
    sum->health = health;
}

size_t dv_outside_count(struct dv_outside *outside, const struct dv_device_state *state,
                        dv_str resource)
{
    struct sum *sum = dv_map_get(&outside->sums, resource);

    if (!sum)
        return 0;
    refresh(sum, state);
    return sum->n_healthy;
}

struct dv_outside *dv_outside_new(void)
{
    struct dv_outside *outside = DV_ALLOC(struct dv_outside);

    dv_map_init(&outside->sums);
    dv_map_init(&outside->holders);
    return outside;
}

void dv_outside_free(struct dv_outside *outside)
{
    const struct dv_map_entry *entry;

    if (!outside)
        return;
    for (size_t at = 0; (entry = dv_map_next(&outside->holders, &at)) != NULL;)
        (void)drop(outside, entry->key); /* with the last of them the sums go */
    dv_map_fini(&outside->holders);
    dv_map_fini(&outside->sums);
    free(outside);
}
