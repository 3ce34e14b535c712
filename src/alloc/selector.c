/* selector.c - selectors, compiled once, with their verdicts on devices: two bits for each device,
 * so that the same selector is evaluated on a device once as long as both exist, for all claims and
 * nodes. */
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "cel/cel.h"
#include "resource/resource.h"

/* How many compiled selectors are kept. Classes have a few each, and most claims of a cluster have
 * the same ones. */
#define SELECTORS_MAX 4096u

#define BITS 64u

/* What devices may take as CEL sees them: about a KiB each. A verdict is remembered, so that a
 * device is needed again for a new selector only, and it is made in the time of a few evaluations.
 */
#define CEL_BYTES_MAX (512u * 1024u)

static void selector_free(struct dv_inventory *inventory, struct dv_alloc_selector *selector)
{
    dv_map_remove(&inventory->selectors, selector->text);
    dv_link_remove(&selector->link);
    inventory->n_selectors--;
    free(selector->known);
    free(selector->matches);
    dv_arena_free(selector->arena);
    free(selector);
}

bool dv_inventory_is_new_selector(const struct dv_inventory *inventory, dv_str text)
{
    return !dv_map_get(&inventory->selectors, text);
}

struct dv_alloc_selector *dv_inventory_selector(struct dv_inventory *inventory, dv_str text)
{
    struct dv_alloc_selector *selector = dv_map_get(&inventory->selectors, text);
    struct dv_cel_options options = {
        .env = DV_CEL_ENV_STORED,
        .features = {inventory->features.consumable_capacity, inventory->features.list_attributes},
        .skip_estimate = true,
    };

    if (selector) {
        dv_link_remove(&selector->link);
        dv_list_push_front(&inventory->selectors_by_use, &selector->link);
        return selector;
    }
    selector = DV_ALLOC(struct dv_alloc_selector);
    selector->arena = dv_arena_new();
    selector->text = dv_str_copy(text, selector->arena);
    selector->expr = dv_cel_compile(selector->text, &options, selector->arena, &selector->err);
    dv_map_set(&inventory->selectors, selector->text, selector);
    dv_list_push_front(&inventory->selectors_by_use, &selector->link);
    inventory->n_selectors++;
    return selector;
}

/* Forgets the selectors that were not used for longest, down to the limit. Not while a search is
 * under way: it has pointers to them. */
void dv_inventory_trim_selectors(struct dv_inventory *inventory)
{
    while (inventory->n_selectors > SELECTORS_MAX)
        selector_free(inventory, DV_CONTAINER(inventory->selectors_by_use.head.prev,
                                              struct dv_alloc_selector, link));
}

void dv_inventory_free_selectors(struct dv_inventory *inventory)
{
    while (!dv_list_is_empty(&inventory->selectors_by_use))
        selector_free(inventory, DV_CONTAINER(inventory->selectors_by_use.head.next,
                                              struct dv_alloc_selector, link));
}

void dv_inventory_forget_slot(struct dv_inventory *inventory, uint32_t slot)
{
    for (struct dv_link *link = inventory->selectors_by_use.head.next;
         link != &inventory->selectors_by_use.head; link = link->next) {
        struct dv_alloc_selector *selector = DV_CONTAINER(link, struct dv_alloc_selector, link);

        if (slot / BITS < selector->n_words)
            selector->known[slot / BITS] &= ~(1ull << slot % BITS);
    }
}

/* ---- devices as CEL sees them ---- */

static struct dv_cel_attribute attribute_of(dv_str name, const struct dv_api_device_attribute *api)
{
    struct dv_cel_attribute attribute = {.name = name};

    if (api->int_) {
        attribute.kind = DV_CEL_ATTRIBUTE_INT;
        attribute.i = *api->int_;
    } else if (api->bool_) {
        attribute.kind = DV_CEL_ATTRIBUTE_BOOL;
        attribute.b = *api->bool_;
    } else if (api->string.p) {
        attribute.kind = DV_CEL_ATTRIBUTE_STRING;
        attribute.s = api->string;
    } else if (api->version.p) {
        attribute.kind = DV_CEL_ATTRIBUTE_VERSION;
        attribute.s = api->version;
    } else if (api->ints) {
        attribute.kind = DV_CEL_ATTRIBUTE_INTS;
        attribute.ints = api->ints;
        attribute.n = api->n_ints;
    } else if (api->bools) {
        attribute.kind = DV_CEL_ATTRIBUTE_BOOLS;
        attribute.bools = api->bools;
        attribute.n = api->n_bools;
    } else if (api->strings) {
        attribute.kind = DV_CEL_ATTRIBUTE_STRINGS;
        attribute.strings = api->strings;
        attribute.n = api->n_strings;
    } else if (api->versions) {
        attribute.kind = DV_CEL_ATTRIBUTE_VERSIONS;
        attribute.strings = api->versions;
        attribute.n = api->n_versions;
    }
    return attribute;
}

struct dv_cel_device *dv_alloc_cel_device(const struct dv_api_device *api, dv_str driver,
                                          bool has_lists, struct dv_arena *arena)
{
    struct dv_cel_attribute *attributes =
        DV_NEW_ARRAY(arena, struct dv_cel_attribute, api->n_attributes);
    struct dv_cel_capacity *capacities =
        DV_NEW_ARRAY(arena, struct dv_cel_capacity, api->n_capacity);
    struct dv_cel_device_input input = {
        .driver = driver,
        .attributes = attributes,
        .n_attributes = api->n_attributes,
        .capacities = capacities,
        .n_capacities = api->n_capacity,
        .allow_multiple_allocations =
            api->allow_multiple_allocations && *api->allow_multiple_allocations,
        .list_type_attributes = has_lists,
    };

    for (size_t i = 0; i < api->n_attributes; i++)
        attributes[i] = attribute_of(api->attributes[i].key, &api->attributes[i].value);
    for (size_t i = 0; i < api->n_capacity; i++)
        capacities[i] =
            (struct dv_cel_capacity){api->capacity[i].key, api->capacity[i].value.value};
    return dv_cel_device_new(&input, arena);
}

struct dv_cel_device *dv_inventory_cel_device(struct dv_inventory *inventory,
                                              struct dv_alloc_device *device)
{
    if (device->cel_version == inventory->cel_version)
        return device->cel;
    if (dv_arena_used_bytes(inventory->cel) > CEL_BYTES_MAX) {
        dv_arena_reset(inventory->cel);
        inventory->cel_version++;
    }
    device->cel = dv_alloc_cel_device(device->api, device->slice->pool->driver,
                                      inventory->features.list_attributes, inventory->cel);
    device->cel_version = inventory->cel_version;
    return device->cel;
}

/* ---- verdicts ---- */

static void make_room(struct dv_alloc_selector *selector, uint32_t n_slots)
{
    size_t n_words = (n_slots + BITS - 1) / BITS;
    size_t added;

    if (n_words <= selector->n_words)
        return;
    n_words += n_words / 2;
    added = (n_words - selector->n_words) * sizeof(uint64_t);
    selector->known = dv_realloc(selector->known, n_words * sizeof(uint64_t));
    selector->matches = dv_realloc(selector->matches, n_words * sizeof(uint64_t));
    memset(selector->known + selector->n_words, 0, added);
    memset(selector->matches + selector->n_words, 0, added);
    selector->n_words = n_words;
}

bool dv_selector_recall(const struct dv_alloc_selector *selector,
                        const struct dv_alloc_device *device, bool *matches)
{
    size_t word = device->slot / BITS;
    uint64_t bit = 1ull << device->slot % BITS;

    if (word >= selector->n_words || !(selector->known[word] & bit))
        return false;
    *matches = (selector->matches[word] & bit) != 0;
    return true;
}

bool dv_selector_evaluate(struct dv_inventory *inventory, struct dv_alloc_selector *selector,
                          struct dv_alloc_device *device, struct dv_cel_budget *budget,
                          bool *matches, struct dv_err *err)
{
    size_t word = device->slot / BITS;
    uint64_t bit = 1ull << device->slot % BITS;
    bool is_match;
    bool is_ok;

    if (!selector->expr) {
        *err = selector->err;
        return false;
    }
    is_ok = dv_cel_eval(selector->expr, dv_inventory_cel_device(inventory, device), budget,
                        inventory->scratch, &is_match, err);
    dv_arena_reset(inventory->scratch);
    if (!is_ok)
        /* A failure is not remembered, because its message names the values of this device. */
        return false;
    make_room(selector, inventory->n_slots);
    selector->known[word] |= bit;
    if (is_match)
        selector->matches[word] |= bit;
    else
        selector->matches[word] &= ~bit;
    *matches = is_match;
    return true;
}
