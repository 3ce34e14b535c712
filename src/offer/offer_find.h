/* offer_find.h - how devices are found, in three files: what an offer selects (offer_match.c),
 * which nodes are one device and whose they are (offer_apply.c), and what a device is called
 * (offer_name.c). */
#ifndef DV_OFFER_FIND_H
#define DV_OFFER_FIND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct dv_arena;
struct dv_offer;
struct dv_offer_device;
struct dv_offer_list;
struct dv_offer_match;
struct dv_offer_node;
struct dv_offer_part;
struct dv_offer_snapshot;

/* -- offer_match.c */

/* Whether a path, USB or PCI selector selects the node. */
bool dv_offer_match_node(const struct dv_offer_match *match, const struct dv_offer_node *node);
/* Whether a USB or PCI selector selects that device. */
bool dv_offer_match_part(const struct dv_offer_match *match, const struct dv_offer_part *part);
/* Indexes of the snapshot's CDI devices that the selector selects, into `arena`: each physical
 * device once, by the best of its names, without those that stand for several. */
size_t dv_offer_match_cdi(const struct dv_offer_match *match,
                          const struct dv_offer_snapshot *snapshot, struct dv_arena *arena,
                          size_t **found);

/* -- offer_name.c */

/* Sets `key` and `place` of a device from what it consists of; `is_whole`: it is all of a USB or
 * PCI device. */
void dv_offer_describe(struct dv_offer_device *device, bool is_whole, struct dv_arena *arena);
/* Names all devices; see dv_offer_apply. */
void dv_offer_name_all(struct dv_offer_device *devices, size_t n_devices,
                       const struct dv_offer_list *before, struct dv_arena *arena);
/* The last part of a path, "1-4" of ".../usb1/1-4". */
dv_str dv_offer_last_part(dv_str path);

#endif
