/* Whatever slices are there: after the plan has been carried out they are as wanted, and there is
 * nothing left to do. The input says what is there and what is wanted, a byte a decision. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "lib/dra/dra_slices.h"
#include "resource/resource.h"

#define SLICES_MAX 8u
#define DEVICES_MAX 4u
#define OBJECTS_MAX (2u * SLICES_MAX)

struct input {
    const uint8_t *at;
    const uint8_t *end;
};

static unsigned take(struct input *input, unsigned below)
{
    return input->at < input->end ? *input->at++ % below : 0;
}

static struct dv_api_device *make_devices(struct input *input, struct dv_arena *arena, size_t *n)
{
    static struct dv_api_device_taint taint = {.key = DV_STR_INIT("k"),
                                               .effect = DV_STR_INIT("NoExecute")};
    struct dv_api_device *devices = DV_NEW_ARRAY(arena, struct dv_api_device, DEVICES_MAX);

    *n = take(input, DEVICES_MAX + 1);
    for (size_t i = 0; i < *n; i++) {
        unsigned kind = take(input, 16);

        devices[i].name = dv_str_printf(arena, "d%u", kind / 2);
        devices[i].taints = kind % 2 ? &taint : NULL;
        devices[i].n_taints = kind % 2;
    }
    return devices;
}

static struct dv_lib_desired *make_desired(struct input *input, struct dv_arena *arena)
{
    struct dv_lib_desired *desired = DV_NEW(arena, struct dv_lib_desired);

    *desired = (struct dv_lib_desired){
        .driver = DV_STR("d"),
        .pool = DV_STR("p"),
        .node_name = DV_STR("n"),
        .generation = take(input, 4),
        .slices = DV_NEW_ARRAY(arena, struct dv_lib_slice, SLICES_MAX),
        .n_slices = 1 + take(input, SLICES_MAX),
    };
    for (size_t i = 0; i < desired->n_slices; i++)
        desired->slices[i].devices = make_devices(input, arena, &desired->slices[i].n_devices);
    return desired;
}

static struct dv_object *make_object(struct input *input, struct dv_arena *arena, size_t i)
{
    struct dv_api_resource_slice slice = {0};
    unsigned number = take(input, 12);

    slice.metadata.name = number < 10 ? dv_str_printf(arena, "%05x-%zu", number, i)
                                      : dv_str_printf(arena, "random-%zu", i);
    slice.spec.driver = DV_STR("d");
    slice.spec.node_name = DV_STR("n");
    slice.spec.pool = (struct dv_api_resource_pool){DV_STR("p"), take(input, 4),
                                                    1 + take(input, SLICES_MAX), NULL};
    slice.spec.devices = make_devices(input, arena, &slice.spec.n_devices);
    return dv_object_new(dv_kind(DV_KIND_SLICE), &slice);
}

static struct dv_object *write_slice(const struct dv_lib_desired *desired, size_t number,
                                     const struct dv_lib_slice_plan *plan,
                                     const struct dv_object *old, struct dv_arena *arena)
{
    struct dv_api_resource_slice slice = {0};

    slice.metadata.name =
        old ? old->meta->name
            : dv_str_printf(arena, "%.*sabcde",
                            DV_FMT(dv_lib_slice_prefix(number, desired->n_slices, desired->driver,
                                                       DV_STR("n"), arena)));
    dv_lib_slice_fill(desired, number, plan->generation,
                      old ? &((const struct dv_api_resource_slice *)old->value)->spec : NULL, arena,
                      &slice.spec);
    return dv_object_new(dv_kind(DV_KIND_SLICE), &slice);
}

static void remove_object(struct dv_object **objects, size_t *n, struct dv_object *object)
{
    for (size_t i = 0; i < *n; i++)
        if (objects[i] == object) {
            objects[i] = objects[--*n];
            dv_object_unref(object);
            return;
        }
    assert(false); /* the plan names what is not there */
}

static void carry_out(const struct dv_lib_desired *desired, const struct dv_lib_slice_plan *plan,
                      struct dv_object **objects, size_t *n, struct dv_arena *arena)
{
    for (size_t i = 0; i < plan->n_deletes; i++)
        remove_object(objects, n, plan->deletes[i]);
    for (size_t i = 0; i < plan->n_updates; i++) {
        struct dv_object *made =
            write_slice(desired, plan->updates[i].number, plan, plan->updates[i].old, arena);

        remove_object(objects, n, plan->updates[i].old);
        objects[(*n)++] = made;
    }
    for (size_t i = 0; i < plan->n_creates; i++)
        objects[(*n)++] = write_slice(desired, plan->creates[i], plan, NULL, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct input input = {data, data + size};
    const struct dv_lib_desired *desired = make_desired(&input, arena);
    struct dv_object *objects[OBJECTS_MAX + SLICES_MAX];
    struct dv_lib_slice_plan plan;
    size_t n = take(&input, OBJECTS_MAX + 1);
    int64_t before = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t generation;

        objects[i] = make_object(&input, arena, i);
        generation =
            ((const struct dv_api_resource_slice *)objects[i]->value)->spec.pool.generation;
        before = generation > before ? generation : before;
    }
    dv_lib_slices_plan(desired, objects, n, arena, &plan);
    assert(plan.generation >= before && plan.generation >= desired->generation);
    assert(plan.n_creates == 0 || plan.generation > before);
    carry_out(desired, &plan, objects, &n, arena);
    assert(n == desired->n_slices);
    dv_lib_slices_plan(desired, objects, n, arena, &plan);
    assert(plan.n_deletes + plan.n_updates + plan.n_creates == 0);
    dv_lib_slices_plan(NULL, objects, n, arena, &plan);
    assert(plan.n_deletes == n);
    while (n > 0)
        dv_object_unref(objects[--n]);
    return 0;
}
