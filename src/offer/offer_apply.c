/* offer_apply.c - from offers and what the machine has to devices. A node is one offer's: the first
 * that selects it has it, so that nothing is offered twice. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "offer/offer.h"
#include "offer/offer_find.h"

/* What else is to be said of an offer is told as a number. */
#define NOTES_MAX 8u

struct hit {
    const struct dv_offer_node *node;
    size_t index;
    dv_str key; /* those with the same are one device */
    bool is_whole;
};

struct finding {
    const struct dv_offers *offers;
    const struct dv_offer_snapshot *snapshot;
    struct dv_arena *arena;
    const struct dv_offer **owners; /* of each node of the snapshot */
    struct dv_map by_path;          /* "/dev/x": its owner's slot */
    size_t n_notes;                 /* of the offer that is looked at */
    bool is_full;
    DV_VEC(struct hit) hits;
    DV_VEC(struct dv_offer_device) devices;
    DV_VEC(struct dv_offer_note) notes;
};

static void note(struct finding *finding, const struct dv_offer *offer, dv_str text)
{
    if (finding->n_notes++ < NOTES_MAX)
        *dv_vec_add_in(&finding->notes, finding->arena) = (struct dv_offer_note){offer, text};
}

/* ---- nodes ---- */

/* Makes the key of the device that the node is a part of. */
static dv_str group_of(const struct dv_offer *offer, const struct dv_offer_match *match,
                       const struct dv_offer_node *node, bool *is_whole)
{
    enum dv_offer_group group = offer->group;

    if (group == DV_OFFER_GROUP_AUTO)
        group = match->kind == DV_OFFER_USB   ? DV_OFFER_GROUP_USB
                : match->kind == DV_OFFER_PCI ? DV_OFFER_GROUP_PCI
                                              : DV_OFFER_GROUP_NODE;
    *is_whole = true;
    if (group == DV_OFFER_GROUP_USB && node->usb)
        return node->usb->path;
    if (group == DV_OFFER_GROUP_PCI && node->pci && !node->usb)
        return node->pci->path;
    *is_whole = false;
    return node->path;
}

static size_t match_nodes(struct finding *finding, const struct dv_offer *offer,
                          const struct dv_offer_match *match)
{
    const struct dv_offer_snapshot *snapshot = finding->snapshot;
    size_t n = 0;

    for (size_t i = 0; i < snapshot->n_nodes; i++) {
        const struct dv_offer_node *node = &snapshot->nodes[i];
        struct hit hit = {node, i, DV_STR(""), false};

        if (!dv_offer_match_node(match, node))
            continue;
        n++;
        if (finding->owners[i] == offer)
            continue; /* another selector of the same offer has it, too */
        if (finding->owners[i]) {
            note(finding, offer,
                 dv_str_printf(finding->arena, "%.*s is offered as %.*s", DV_FMT(node->path),
                               DV_FMT(finding->owners[i]->name)));
            continue;
        }
        finding->owners[i] = offer;
        hit.key = group_of(offer, match, node, &hit.is_whole);
        *dv_vec_add_in(&finding->hits, finding->arena) = hit;
    }
    return n;
}

/* Tells of USB and PCI devices that are there and have no node: no driver of the kernel serves
 * them. */
static size_t count_bare(const struct finding *finding, const struct dv_offer_match *match)
{
    const struct dv_offer_snapshot *snapshot = finding->snapshot;
    size_t n = 0;

    for (size_t i = 0; i < snapshot->n_parts; i++) {
        bool has_node = false;

        if (!dv_offer_match_part(match, &snapshot->parts[i]))
            continue;
        for (size_t k = 0; k < snapshot->n_nodes && !has_node; k++)
            has_node = snapshot->nodes[k].usb == &snapshot->parts[i] ||
                       snapshot->nodes[k].pci == &snapshot->parts[i];
        n += !has_node;
    }
    return n;
}

static int by_key(const void *a, const void *b)
{
    const struct hit *left = a;
    const struct hit *right = b;
    int order = dv_str_natural_cmp(left->key, right->key);

    return order != 0 ? order : dv_str_natural_cmp(left->node->path, right->node->path);
}

static struct dv_offer_device *add_device(struct finding *finding, const struct dv_offer *offer)
{
    struct dv_offer_device *device;

    if (finding->devices.n == DV_OFFER_DEVICES_MAX) {
        if (!finding->is_full)
            note(finding, offer,
                 dv_str_printf(finding->arena,
                               "there are more than %u devices in all; the rest is "
                               "left out",
                               DV_OFFER_DEVICES_MAX));
        finding->is_full = true;
        return NULL;
    }
    device = dv_vec_add_in(&finding->devices, finding->arena);
    device->offer = offer;
    return device;
}

static void add_group(struct finding *finding, const struct dv_offer *offer, const struct hit *hits,
                      size_t n)
{
    struct dv_offer_device *device = add_device(finding, offer);

    if (!device)
        return;
    device->nodes = DV_NEW_ARRAY(finding->arena, const struct dv_offer_node *, n);
    for (size_t i = 0; i < n; i++)
        device->nodes[i] = hits[i].node;
    device->n_nodes = n;
    device->usb = hits[0].node->usb;
    device->pci = device->usb ? NULL : hits[0].node->pci;
    dv_offer_describe(device, hits[0].is_whole, finding->arena);
}

static void add_groups(struct finding *finding, const struct dv_offer *offer)
{
    size_t from = 0;

    if (finding->hits.n > 0)
        qsort(finding->hits.v, finding->hits.n, sizeof(struct hit), by_key);
    for (size_t i = 1; i <= finding->hits.n; i++) {
        if (i < finding->hits.n && dv_str_eq(finding->hits.v[i].key, finding->hits.v[from].key))
            continue;
        add_group(finding, offer, &finding->hits.v[from], i - from);
        from = i;
    }
}

/* ---- CDI ---- */

/* The offer that has one of the device's nodes already; NULL: none has. */
static const struct dv_offer *owner_of(const struct finding *finding,
                                       const struct dv_offer_cdi *cdi)
{
    for (size_t i = 0; i < cdi->n_nodes; i++) {
        const struct dv_offer *const *owner = dv_map_get(&finding->by_path, cdi->nodes[i]);

        if (owner && *owner)
            return *owner;
    }
    return NULL;
}

static void add_cdi(struct finding *finding, const struct dv_offer *offer,
                    const struct dv_offer_cdi *cdi)
{
    const struct dv_offer_snapshot *snapshot = finding->snapshot;
    struct dv_offer_device *device = add_device(finding, offer);

    if (!device)
        return;
    device->cdi = cdi;
    device->nodes = DV_NEW_ARRAY(finding->arena, const struct dv_offer_node *, cdi->n_nodes);
    for (size_t i = 0; i < cdi->n_nodes; i++) {
        const struct dv_offer **owner = dv_map_get(&finding->by_path, cdi->nodes[i]);
        const struct dv_offer_node *node;

        if (!owner)
            continue; /* the spec names a node that is not there, or not below /dev */
        *owner = offer;
        node = &snapshot->nodes[owner - finding->owners];
        device->nodes[device->n_nodes++] = node;
        if (!device->usb)
            device->usb = node->usb;
        if (!device->pci && !device->usb)
            device->pci = node->pci;
    }
    dv_offer_describe(device, false, finding->arena);
}

static size_t match_cdi(struct finding *finding, const struct dv_offer *offer,
                        const struct dv_offer_match *match)
{
    size_t *found;
    size_t n = dv_offer_match_cdi(match, finding->snapshot, finding->arena, &found);

    for (size_t i = 0; i < n; i++) {
        const struct dv_offer_cdi *cdi = &finding->snapshot->cdi[found[i]];
        const struct dv_offer *owner = owner_of(finding, cdi);

        if (owner == offer)
            continue; /* another selector of the same offer has it, too */
        if (owner)
            note(finding, offer,
                 dv_str_printf(finding->arena, "%.*s has a node that is offered as %.*s",
                               DV_FMT(cdi->name), DV_FMT(owner->name)));
        else
            add_cdi(finding, offer, cdi);
    }
    return n;
}

/* ---- all ---- */

static void look_for(struct finding *finding, const struct dv_offer *offer)
{
    dv_vec_clear(&finding->hits);
    finding->n_notes = 0;
    for (size_t i = 0; i < offer->n_matches; i++) {
        const struct dv_offer_match *match = &offer->matches[i];
        bool is_cdi = match->kind == DV_OFFER_CDI;
        size_t n = is_cdi ? match_cdi(finding, offer, match) : match_nodes(finding, offer, match);
        size_t n_bare = is_cdi ? 0 : count_bare(finding, match);

        if (n_bare > 0)
            note(finding, offer,
                 dv_str_printf(finding->arena, "%.*s: %zu matching without a node below /dev",
                               DV_FMT(match->text), n_bare));
        else if (n == 0)
            note(finding, offer,
                 dv_str_printf(finding->arena, "%.*s: nothing matches now", DV_FMT(match->text)));
    }
    add_groups(finding, offer);
    if (finding->n_notes > NOTES_MAX)
        *dv_vec_add_in(&finding->notes, finding->arena) = (struct dv_offer_note){
            offer, dv_str_printf(finding->arena, "and %zu more", finding->n_notes - NOTES_MAX)};
}

/* The order in which devices are taken: by their nodes, as a person counts them. */
static int by_offer_and_node(const void *a, const void *b)
{
    const struct dv_offer_device *left = a;
    const struct dv_offer_device *right = b;
    int order = 0;

    if (left->offer != right->offer) /* both are in one array */
        return left->offer < right->offer ? -1 : 1;
    if (left->n_nodes > 0 && right->n_nodes > 0)
        order = dv_str_natural_cmp(left->nodes[0]->path, right->nodes[0]->path);
    else if (left->n_nodes != right->n_nodes)
        order = left->n_nodes > 0 ? -1 : 1;
    return order != 0 ? order : dv_str_natural_cmp(left->name, right->name);
}

void dv_offer_apply(const struct dv_offers *offers, const struct dv_offer_snapshot *snapshot,
                    const struct dv_offer_list *before, struct dv_arena *arena,
                    struct dv_offer_list *list)
{
    struct finding finding = {.offers = offers, .snapshot = snapshot, .arena = arena};

    finding.owners = DV_NEW_ARRAY(arena, const struct dv_offer *, snapshot->n_nodes);
    dv_map_init(&finding.by_path);
    for (size_t i = 0; i < snapshot->n_nodes; i++)
        dv_map_set(&finding.by_path, snapshot->nodes[i].path, &finding.owners[i]);
    for (size_t i = 0; i < offers->n; i++)
        look_for(&finding, &offers->v[i]);
    dv_map_fini(&finding.by_path);
    if (snapshot->is_cut && offers->n > 0)
        *dv_vec_add_in(&finding.notes, arena) = (struct dv_offer_note){
            &offers->v[0], DV_STR("there are more device nodes than are looked at")};
    dv_offer_name_all(finding.devices.v, finding.devices.n, before, arena);
    if (finding.devices.n > 0)
        qsort(finding.devices.v, finding.devices.n, sizeof(struct dv_offer_device),
              by_offer_and_node);
    *list = (struct dv_offer_list){finding.devices.v, finding.devices.n, finding.notes.v,
                                   finding.notes.n};
}

const struct dv_offer_device *dv_offer_find(const struct dv_offer_list *list, dv_str name)
{
    for (size_t i = 0; i < list->n_devices; i++)
        if (dv_str_eq(list->devices[i].name, name))
            return &list->devices[i];
    return NULL;
}
