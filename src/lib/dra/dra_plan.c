/* dra_plan.c - plans the ResourceSlices of a driver: which of those in the API stay, are updated or
 * deleted, and which are created, so that as few as possible change. Pure; dra_publish.c carries it
 * out. */
#include "lib/dra/dra_slices.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "resource/resource.h"

/* The fewest hexadecimal digits of a slice's number; it has more only where there are more
 * slices. */
#define NUMBER_DIGITS_MIN 5

/* ---- names ---- */

static int count_digits(size_t n_slices)
{
    int digits = 1;

    for (size_t last = n_slices > 0 ? n_slices - 1 : 0; last > 0xf; last >>= 4)
        digits++;
    return digits > NUMBER_DIGITS_MIN ? digits : NUMBER_DIGITS_MIN;
}

dv_str dv_lib_slice_prefix(size_t number, size_t n_slices, dv_str driver, dv_str owner,
                           struct dv_arena *arena)
{
    return dv_str_printf(arena, "%0*zx-%.*s-%.*s%s", count_digits(n_slices), number, DV_FMT(driver),
                         DV_FMT(owner), owner.n ? "-" : "");
}

bool dv_lib_slice_number(dv_str name, size_t n_slices, size_t *number)
{
    size_t n = dv_str_find_char(name, '-');
    size_t read = 0;

    if (n == name.n || n != (size_t)count_digits(n_slices))
        return false;
    for (size_t i = 0; i < n; i++) {
        int digit = dv_hex_value(name.p[i]);

        if (digit < 0 || dv_is_upper(name.p[i]))
            return false;
        read = read << 4 | (size_t)digit;
    }
    if (read >= n_slices)
        return false;
    *number = read;
    return true;
}

/* ---- filling in ---- */

static bool is_same_taint(const struct dv_api_device_taint *a, const struct dv_api_device_taint *b)
{
    return dv_str_eq(a->key, b->key) && dv_str_eq(a->value, b->value) &&
           dv_str_eq(a->effect, b->effect);
}

/* Whether two times are equal up to a second: they travel in whole seconds, and a server
 * may round. */
static bool may_keep_time(const struct dv_time *wanted, const struct dv_time *stored)
{
    return stored->is_set && (!wanted->is_set || llabs(wanted->seconds - stored->seconds) <= 1);
}

static void keep_times(struct dv_api_device *device, const struct dv_api_device *old,
                       struct dv_arena *arena)
{
    struct dv_api_device_taint *taints =
        DV_NEW_ARRAY(arena, struct dv_api_device_taint, device->n_taints);

    for (size_t i = 0; i < device->n_taints; i++) {
        taints[i] = device->taints[i];
        for (size_t k = 0; k < old->n_taints; k++)
            if (is_same_taint(&taints[i], &old->taints[k]) &&
                may_keep_time(&taints[i].time_added, &old->taints[k].time_added)) {
                taints[i].time_added = old->taints[k].time_added;
                break;
            }
    }
    device->taints = taints;
}

const struct dv_api_device *dv_lib_slice_device(const struct dv_api_resource_slice_spec *spec,
                                                dv_str name, size_t guess)
{
    if (guess < spec->n_devices && dv_str_eq(spec->devices[guess].name, name))
        return &spec->devices[guess];
    for (size_t i = 0; i < spec->n_devices; i++)
        if (dv_str_eq(spec->devices[i].name, name))
            return &spec->devices[i];
    return NULL;
}

static struct dv_api_device *fill_devices(const struct dv_lib_slice *slice,
                                          const struct dv_api_resource_slice_spec *old,
                                          struct dv_arena *arena)
{
    struct dv_api_device *devices;

    if (slice->n_devices == 0)
        return NULL; /* absent: beside counters even an empty list is refused */
    devices = DV_NEW_ARRAY(arena, struct dv_api_device, slice->n_devices);
    for (size_t i = 0; i < slice->n_devices; i++) {
        const struct dv_api_device *before;

        devices[i] = slice->devices[i];
        before =
            old && devices[i].n_taints > 0 ? dv_lib_slice_device(old, devices[i].name, i) : NULL;
        if (before)
            keep_times(&devices[i], before, arena);
    }
    return devices;
}

void dv_lib_slice_fill(const struct dv_lib_desired *desired, size_t number, int64_t generation,
                       const struct dv_api_resource_slice_spec *old, struct dv_arena *arena,
                       struct dv_api_resource_slice_spec *spec)
{
    static const bool yes = true;
    const struct dv_lib_slice *slice = &desired->slices[number];

    *spec = (struct dv_api_resource_slice_spec){
        .driver = desired->driver,
        .pool = {desired->pool, generation, (int64_t)desired->n_slices, NULL},
        .node_name = desired->node_name.n ? desired->node_name : DV_STR_NONE,
        .node_selector = desired->node_selector,
        .all_nodes = desired->is_for_all_nodes ? &yes : NULL,
        .per_device_node_selection = desired->is_per_device ? &yes : NULL,
        .devices = fill_devices(slice, old, arena),
        .n_devices = slice->n_devices,
        .shared_counters = slice->n_counters ? slice->counters : NULL,
        .n_shared_counters = slice->n_counters,
    };
}

/* ---- the plan ---- */

static const struct dv_api_resource_slice_spec *spec_of(const struct dv_object *object)
{
    return &((const struct dv_api_resource_slice *)object->value)->spec;
}

static int compare_names(const void *a, const void *b)
{
    return dv_str_cmp((*(struct dv_object *const *)a)->meta->name,
                      (*(struct dv_object *const *)b)->meta->name);
}

static struct dv_object **sort_by_name(struct dv_object *const *existing, size_t n,
                                       struct dv_arena *arena)
{
    struct dv_object **sorted = DV_NEW_ARRAY(arena, struct dv_object *, n);

    for (size_t i = 0; i < n; i++)
        sorted[i] = existing[i];
    qsort(sorted, n, sizeof(struct dv_object *), compare_names);
    return sorted;
}

static int64_t newest_generation(struct dv_object *const *existing, size_t n)
{
    int64_t newest = 0;

    for (size_t i = 0; i < n; i++)
        if (spec_of(existing[i])->pool.generation > newest)
            newest = spec_of(existing[i])->pool.generation;
    return newest;
}

/* Finds for each slice the existing object that becomes it, NULL: none; all other objects are
 * deleted. */
static struct dv_object **match(const struct dv_lib_desired *desired, struct dv_object **existing,
                                size_t n, int64_t generation, struct dv_arena *arena,
                                struct dv_lib_slice_plan *plan)
{
    struct dv_object **by_number = DV_NEW_ARRAY(arena, struct dv_object *, desired->n_slices);

    for (size_t i = 0; i < n; i++) {
        size_t number;

        if (spec_of(existing[i])->pool.generation == generation &&
            dv_lib_slice_number(existing[i]->meta->name, desired->n_slices, &number) &&
            !by_number[number])
            by_number[number] = existing[i];
        else
            plan->deletes[plan->n_deletes++] = existing[i];
    }
    return by_number;
}

static bool is_as_wanted(const struct dv_lib_desired *desired, size_t number,
                         const struct dv_object *object, struct dv_arena *arena)
{
    const struct dv_api_resource_slice_spec *old = spec_of(object);
    struct dv_api_resource_slice_spec spec;

    dv_lib_slice_fill(desired, number, old->pool.generation, old, arena, &spec);
    return dv_message_eq(&dv_message_resource_slice_spec, &spec, old);
}

void dv_lib_slices_plan(const struct dv_lib_desired *desired, struct dv_object *const *existing,
                        size_t n_existing, struct dv_arena *arena, struct dv_lib_slice_plan *plan)
{
    struct dv_object **sorted = sort_by_name(existing, n_existing, arena);
    int64_t current = newest_generation(existing, n_existing);
    struct dv_object **by_number;
    size_t n_slices = desired ? desired->n_slices : 0;
    bool *differs = DV_NEW_ARRAY(arena, bool, n_slices);
    size_t n_differing = 0;

    *plan = (struct dv_lib_slice_plan){.generation = current};
    if (!desired) {
        plan->deletes = sorted;
        plan->n_deletes = n_existing;
        return;
    }
    plan->deletes = DV_NEW_ARRAY(arena, struct dv_object *, n_existing);
    plan->updates = DV_NEW_ARRAY(arena, struct dv_lib_slice_update, n_slices);
    plan->creates = DV_NEW_ARRAY(arena, size_t, n_slices);
    by_number = match(desired, sorted, n_existing, current, arena, plan);
    for (size_t i = 0; i < n_slices; i++) {
        if (!by_number[i])
            plan->creates[plan->n_creates++] = i;
        else if ((differs[i] = !is_as_wanted(desired, i, by_number[i], arena)))
            n_differing++;
    }
    /* One slice that is changed in place is seen whole or not at all. Several are seen together
     * only under a new generation. */
    if (desired->generation > current)
        plan->generation = desired->generation;
    else if (plan->n_creates > 0 || n_differing > 1)
        plan->generation = current < INT64_MAX ? current + 1 : current;
    for (size_t i = 0; i < n_slices; i++)
        if (by_number[i] && (differs[i] || plan->generation != current))
            plan->updates[plan->n_updates++] = (struct dv_lib_slice_update){by_number[i], i};
}
