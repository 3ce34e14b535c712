/* holdings_slices.c - the devices of this node's slices, found by name.
 *
 * A pod may have tens of thousands of devices of claims, and the node's slices as many devices: the
 * index is made when it is first asked for after a slice has changed. */
#include "pod/admission/holdings_slices.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/key.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "resource/resource.h"

/* Names of the API are shorter; a device of a longer name is in no slice. */
#define KEY_BYTES_MAX 4096u

static dv_str print_key(dv_str driver, dv_str pool, dv_str device, struct dv_buf *key)
{
    dv_buf_clear(key);
    dv_key_add(key, driver);
    dv_key_add(key, pool);
    dv_key_add(key, device);
    return dv_buf_str(key);
}

/* Adds the devices of a slice; of two slices with the same device the first one counts. */
static void add_slice(struct dv_holdings_slices *slices, const struct dv_object *object,
                      struct dv_buf *key)
{
    const struct dv_api_resource_slice_spec *spec =
        &((const struct dv_api_resource_slice *)object->value)->spec;
    dv_str *name = DV_NEW(slices->arena, dv_str);

    *name = dv_str_copy(object->meta->name, slices->arena);
    for (size_t i = 0; i < spec->n_devices; i++) {
        dv_str text = print_key(spec->driver, spec->pool.name, spec->devices[i].name, key);

        if (!dv_map_get(&slices->by_device, text))
            (void)dv_map_set(&slices->by_device, dv_str_copy(text, slices->arena), name);
    }
}

static void make_index(struct dv_holdings_slices *slices, struct dv_buf *key)
{
    const struct dv_object *object;

    slices->arena = dv_arena_new();
    dv_map_init(&slices->by_device);
    for (size_t at = 0; (object = dv_view_next(slices->view, &at)) != NULL;)
        add_slice(slices, object, key);
}

const struct dv_api_device *dv_holdings_slices_find(struct dv_holdings_slices *slices,
                                                    dv_str driver, dv_str pool, dv_str device,
                                                    size_t *n)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf key = {0};
    const struct dv_api_resource_slice *slice;
    const struct dv_object *object;
    const dv_str *name;

    *n = 0;
    if (!slices->view)
        return NULL;
    dv_buf_init(&key, KEY_BYTES_MAX);
    if (!slices->arena)
        make_index(slices, &key);
    name = dv_map_get(&slices->by_device, print_key(driver, pool, device, &key));
    object = name ? dv_view_get(slices->view, DV_STR(""), *name) : NULL;
    if (!object)
        return NULL;
    slice = object->value;
    *n = slice->spec.n_devices;
    return slice->spec.devices;
}

void dv_holdings_slices_forget(struct dv_holdings_slices *slices)
{
    if (!slices->arena)
        return;
    dv_map_fini(&slices->by_device);
    dv_arena_free(slices->arena);
    slices->arena = NULL;
}
