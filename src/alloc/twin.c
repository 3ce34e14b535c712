/* twin.c - finds twins: devices of a pool that nothing but their name tells apart. Where one of
 * them leads nowhere, so do the others, so that the search need not try them (bound.c). */
#include "alloc/inventory.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/str.h"
#include "resource/resource.h"

static bool is_true(const bool *flag)
{
    return flag && *flag;
}

static struct dv_api_device nameless(const struct dv_api_device *api)
{
    struct dv_api_device copy = *api;

    copy.name = DV_STR_NONE;
    return copy;
}

/* A hash of all that decides about a device but its name: what it publishes, and for which nodes it
 * is. */
uint64_t dv_alloc_device_content(struct dv_inventory *inventory,
                                 const struct dv_alloc_device *device)
{
    const struct dv_api_resource_slice_spec *spec = device->slice->spec;
    struct dv_api_device api = nameless(device->api);
    struct dv_buf *buf = &inventory->text;

    dv_buf_clear(buf);
    dv_buf_printf(buf, "%zu:%.*s %d%d", spec->node_name.n, DV_FMT(spec->node_name),
                  is_true(spec->all_nodes), is_true(spec->per_device_node_selection));
    if (spec->node_selector)
        dv_encode_pb(&dv_message_node_selector, spec->node_selector, buf);
    dv_buf_add_char(buf, 0);
    dv_encode_pb(&dv_message_device, &api, buf);
    return dv_hash(dv_buf_str(buf));
}

static bool same_nodes(const struct dv_api_resource_slice_spec *a,
                       const struct dv_api_resource_slice_spec *b)
{
    if (a == b)
        return true;
    return dv_str_eq(a->node_name, b->node_name) &&
           is_true(a->all_nodes) == is_true(b->all_nodes) &&
           is_true(a->per_device_node_selection) == is_true(b->per_device_node_selection) &&
           !a->node_selector == !b->node_selector &&
           (!a->node_selector ||
            dv_message_eq(&dv_message_node_selector, a->node_selector, b->node_selector));
}

/* Compares in full: equal hashes are no proof. */
static bool are_twins(const struct dv_alloc_place *a, const struct dv_alloc_place *b)
{
    struct dv_api_device left;
    struct dv_api_device right;

    if (a->pool != b->pool || a->device->content != b->device->content)
        return false;
    left = nameless(a->device->api);
    right = nameless(b->device->api);
    return same_nodes(a->device->slice->spec, b->device->slice->spec) &&
           dv_message_eq(&dv_message_device, &left, &right);
}

void dv_alloc_view_find_twins(struct dv_inventory *inventory, struct dv_alloc_node_view *view)
{
    size_t n_slots = 4;
    /* A hash table with open addressing: place + 1 of the last device with that content. */
    uint32_t *last;

    while (n_slots < 2 * view->n_places)
        n_slots *= 2;
    last = DV_NEW_ARRAY(inventory->scratch, uint32_t, n_slots);
    for (uint32_t i = 0; i < view->n_places; i++) {
        struct dv_alloc_place *place = &view->places[i];
        size_t at = place->device->content & (n_slots - 1);

        while (last[at] && !are_twins(&view->places[last[at] - 1], place))
            at = (at + 1) & (n_slots - 1);
        place->twin = last[at] ? last[at] - 1 : NO_PLACE;
        last[at] = i + 1;
    }
    dv_arena_reset(inventory->scratch);
}
