/* offer_match.c - what the selectors of an offer select. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/map.h"
#include "offer/offer.h"
#include "offer/offer_find.h"

/* Devices of a CDI kind are held against each other up to this number; a spec for more has no names
 * for several of them. */
#define CDI_COMPARED_MAX 512u

/* ---- nodes and what they belong to ---- */

static bool is_id(dv_str wanted, dv_str id)
{
    return wanted.n == 0 || dv_str_eq_nocase(wanted, id);
}

bool dv_offer_match_part(const struct dv_offer_match *match, const struct dv_offer_part *part)
{
    if (match->kind != (part->bus == DV_OFFER_BUS_USB ? DV_OFFER_USB : DV_OFFER_PCI) ||
        !is_id(match->vendor, part->vendor) || !is_id(match->product, part->product))
        return false;
    if (match->kind == DV_OFFER_USB)
        return match->pattern.n == 0 || dv_offer_glob(match->pattern, part->serial);
    return (match->address.n == 0 || dv_str_eq(match->address, dv_offer_last_part(part->path))) &&
           dv_str_starts_with(part->class, match->class);
}

bool dv_offer_match_node(const struct dv_offer_match *match, const struct dv_offer_node *node)
{
    if (match->kind == DV_OFFER_USB)
        return node->usb && dv_offer_match_part(match, node->usb);
    /* What is plugged into a USB controller is not the controller's. */
    if (match->kind == DV_OFFER_PCI)
        return node->pci && !node->usb && dv_offer_match_part(match, node->pci);
    if (match->kind != DV_OFFER_PATH)
        return false;
    for (size_t i = 0; i < node->n_links; i++)
        if (dv_offer_glob(match->pattern, node->links[i]))
            return true;
    return dv_offer_glob(match->pattern, node->path);
}

/* ---- CDI ---- */

/* Whether the name has the form of a UUID, perhaps behind a word: it stays when numbers change. */
static bool is_lasting(dv_str name)
{
    size_t n_hex = 0;

    for (size_t i = 0; i < name.n; i++)
        n_hex += dv_is_hex(name.p[i]);
    return name.n >= 36 && n_hex >= 32;
}

static bool is_better(dv_str a, dv_str b)
{
    if (is_lasting(a) != is_lasting(b))
        return is_lasting(a);
    return dv_str_natural_cmp(a, b) < 0;
}

/* The nodes as one text, to compare them by. The snapshot has them sorted. */
static dv_str join(const dv_str *nodes, size_t n, struct dv_arena *arena)
{
    dv_str *texts = DV_NEW_ARRAY(arena, dv_str, 2 * n);

    for (size_t i = 0; i < n; i++) {
        texts[2 * i] = nodes[i];
        texts[2 * i + 1] = DV_STR("\n");
    }
    return dv_str_concat(texts, 2 * n, arena);
}

static bool has_all(const struct dv_offer_cdi *large, const struct dv_offer_cdi *small)
{
    size_t i = 0;

    for (size_t k = 0; k < small->n_nodes; k++) {
        while (i < large->n_nodes && dv_str_cmp(large->nodes[i], small->nodes[k]) < 0)
            i++;
        if (i == large->n_nodes || !dv_str_eq(large->nodes[i], small->nodes[k]))
            return false;
    }
    return true;
}

/* Whether the device stands for several: it has all nodes of another, and more. */
static bool is_several(const struct dv_offer_snapshot *snapshot, const size_t *found, size_t n,
                       size_t at)
{
    const struct dv_offer_cdi *one = &snapshot->cdi[found[at]];

    if (dv_str_eq(one->device, DV_STR("all")))
        return true;
    for (size_t i = 0; i < n && n <= CDI_COMPARED_MAX; i++) {
        const struct dv_offer_cdi *other = &snapshot->cdi[found[i]];

        if (i != at && other->n_nodes > 0 && other->n_nodes < one->n_nodes && has_all(one, other))
            return true;
    }
    return false;
}

size_t dv_offer_match_cdi(const struct dv_offer_match *match,
                          const struct dv_offer_snapshot *snapshot, struct dv_arena *arena,
                          size_t **found)
{
    size_t *all = DV_NEW_ARRAY(arena, size_t, snapshot->n_cdi);
    size_t *kept = DV_NEW_ARRAY(arena, size_t, snapshot->n_cdi);
    struct dv_map by_nodes;
    size_t n = 0, n_kept = 0;

    dv_map_init(&by_nodes);
    for (size_t i = 0; i < snapshot->n_cdi; i++) {
        const struct dv_offer_cdi *cdi = &snapshot->cdi[i];
        dv_str key;
        size_t *first;

        if (!dv_str_eq(cdi->kind, match->cdi_kind) ||
            (match->pattern.n > 0 && !dv_offer_glob(match->pattern, cdi->device)))
            continue;
        key = cdi->n_nodes > 0 ? join(cdi->nodes, cdi->n_nodes, arena) : cdi->device;
        first = dv_map_get(&by_nodes, key);
        if (!first) {
            all[n] = i;
            dv_map_set(&by_nodes, key, &all[n++]);
        } else if (is_better(cdi->device, snapshot->cdi[*first].device)) {
            *first = i;
        }
    }
    dv_map_fini(&by_nodes);
    for (size_t i = 0; i < n; i++)
        if (!is_several(snapshot, all, n, i))
            kept[n_kept++] = all[i];
    *found = kept;
    return n_kept;
}
