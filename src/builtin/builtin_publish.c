/* builtin_publish.c - the devices as the API has them: slices, and the health of what is held. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/vec.h"
#include "builtin/builtin_state.h"
#include "davit/dra.h"

/* The API's limit for the text of an attribute. */
#define ATTRIBUTE_BYTES_MAX 64u
#define ATTRIBUTES_MAX 16u
/* A node of the device is still a container's, whose own device was unplugged. */
#define TAINT_KEY DV_OFFER_DRIVER "/node-in-use"

struct printing {
    struct dv_arena *arena;
    struct davit_dra_attribute *attributes;
    size_t n;
};

static void add_text(struct printing *printing, const char *name, dv_str text)
{
    if (text.n > 0 && text.n <= ATTRIBUTE_BYTES_MAX)
        printing->attributes[printing->n++] = (struct davit_dra_attribute){
            .name = name, .type = DAVIT_DRA_STRING, .text = dv_str_to_c(text, printing->arena)};
}

static dv_str last_part(dv_str path)
{
    size_t at = path.n;

    while (at > 0 && path.p[at - 1] != '/')
        at--;
    return dv_str_slice(path, at, path.n);
}

static void add_attributes(struct printing *printing, const struct dv_offer_device *device)
{
    const struct dv_offer_part *part = device->usb ? device->usb : device->pci;
    const struct dv_offer_node *node = device->n_nodes > 0 ? device->nodes[0] : NULL;

    add_text(printing, "offer", device->offer->name);
    if (device->cdi)
        add_text(printing, "cdiName", device->cdi->name);
    if (node)
        add_text(printing, "path", node->path);
    if (node && node->n_links > 0)
        add_text(printing, "link", last_part(node->links[0]));
    if (node && node->pci && node->pci->numa_node >= 0)
        printing->attributes[printing->n++] = (struct davit_dra_attribute){
            .name = "numaNode", .type = DAVIT_DRA_INT, .number = node->pci->numa_node};
    if (!part)
        return;
    add_text(printing, "vendor", part->vendor);
    add_text(printing, "product", part->product);
    add_text(printing, "class", part->class);
    add_text(printing, "serial", part->serial);
    add_text(printing, "vendorName", part->vendor_name);
    add_text(printing, "productName", part->product_name);
    add_text(printing, device->usb ? "usbPort" : "resource.kubernetes.io/pciBusID",
             last_part(part->path));
}

/* ---- slices ---- */

struct records {
    const struct dv_offer_record **v;
    size_t n;
};

/* The records of claims whose devices are not there any more: their containers can still use the
 * numbers that these had. */
static struct records find_displaced(const struct dv_builtin_driver *builtin,
                                     struct dv_arena *arena)
{
    DV_VEC(const struct dv_offer_record *) all = {0};
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&builtin->claims, &at)) != NULL;) {
        const struct dv_offer_record *record = &((struct dv_builtin_claim *)entry->value)->record;
        bool is_whole = true;

        for (size_t i = 0; i < record->n_devices && is_whole; i++)
            is_whole = dv_offer_find(&builtin->now->list, record->devices[i].name) != NULL;
        if (!is_whole)
            *dv_vec_add_in(&all, arena) = record;
    }
    return (struct records){all.v, all.n};
}

static void make_device(const struct dv_offer_device *device, bool is_taken, struct dv_arena *arena,
                        struct davit_dra_device *made)
{
    static const struct davit_dra_taint taint = {.key = TAINT_KEY, .effect = "NoSchedule"};
    struct printing printing = {arena,
                                DV_NEW_ARRAY(arena, struct davit_dra_attribute, ATTRIBUTES_MAX), 0};

    add_attributes(&printing, device);
    *made = (struct davit_dra_device){
        .name = dv_str_to_c(device->name, arena),
        .attributes = printing.attributes,
        .n_attributes = printing.n,
        .is_shareable = device->offer->is_shared,
        .taints = is_taken ? &taint : NULL,
        .n_taints = is_taken,
    };
    /* Whoever asks for the device without saying how much of it takes one of its places. */
    if (device->offer->is_shared && device->offer->n_shares > 0)
        made->more = dv_str_to_c(
            dv_str_printf(
                arena,
                "{\"capacity\":{\"uses\":{\"value\":\"%u\",\"requestPolicy\":{\"default\":"
                "\"1\",\"validRange\":{\"min\":\"1\",\"step\":\"1\"}}}}}",
                device->offer->n_shares),
            arena);
}

void dv_builtin_publish(struct dv_builtin_driver *builtin)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_offer_list *list = &builtin->now->list;
    struct davit_dra_device *devices =
        DV_NEW_ARRAY(arena, struct davit_dra_device, list->n_devices);
    struct davit_dra_pool pool = {
        .name = dv_str_to_c(builtin->options.node_name, arena),
        .devices = devices,
        .n_devices = list->n_devices,
    };
    struct records displaced = find_displaced(builtin, arena);
    struct davit_error error;

    if (!builtin->dra)
        return;
    builtin->has_taints = false;
    for (size_t i = 0; i < list->n_devices; i++) {
        bool is_taken =
            displaced.n > 0 && dv_offer_rival(&list->devices[i], displaced.v, displaced.n);

        builtin->has_taints = builtin->has_taints || is_taken;
        make_device(&list->devices[i], is_taken, arena, &devices[i]);
    }
    if (!davit_dra_publish(builtin->dra, &pool, 1, &error))
        dv_log(DV_LOG_ERROR, "builtin: the devices cannot be published",
               DV_F_C("error", error.message));
    dv_builtin_tell_health(builtin);
}

/* ---- health ---- */

/* Tells that what is held is there, or not any more: nobody else asks. */
void dv_builtin_tell_health(struct dv_builtin_driver *builtin)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_VEC(struct davit_dra_device_health) all = {0};
    const char *pool = dv_str_to_c(builtin->options.node_name, arena);
    const struct dv_map_entry *entry;
    struct davit_error error;
    struct dv_map seen;

    if (!builtin->dra)
        return;
    dv_map_init(&seen);
    for (size_t at = 0; (entry = dv_map_next(&builtin->claims, &at)) != NULL;) {
        struct dv_builtin_claim *claim = entry->value;

        for (size_t i = 0; i < claim->record.n_devices; i++) {
            dv_str name = claim->record.devices[i].name;
            bool is_there = dv_offer_find(&builtin->now->list, name) != NULL;

            if (dv_map_set(&seen, name, claim))
                continue; /* a shared device is held by several */
            *dv_vec_add_in(&all, arena) = (struct davit_dra_device_health){
                .pool = pool,
                .device = dv_str_to_c(name, arena),
                .health = is_there ? DAVIT_DRA_HEALTHY : DAVIT_DRA_UNHEALTHY,
                .message = is_there ? NULL : "it was unplugged, or is not offered any more",
            };
        }
    }
    dv_map_fini(&seen);
    if (!davit_dra_set_health(builtin->dra, all.v, all.n, &error))
        dv_log(DV_LOG_WARN, "builtin: the health of devices cannot be told",
               DV_F_C("error", error.message));
}
