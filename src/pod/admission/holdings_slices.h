/* holdings_slices.h - the devices of this node's slices, found by name. */
#ifndef DV_POD_HOLDINGS_SLICES_H
#define DV_POD_HOLDINGS_SLICES_H

#include <stddef.h>

#include "base/map.h"
#include "base/str.h"

struct dv_api_device;
struct dv_arena;
struct dv_view;

struct dv_holdings_slices {
    struct dv_view *view;    /* NULL: slices are not known */
    struct dv_map by_device; /* the name of the slice, by driver, pool and device */
    struct dv_arena *arena;  /* of the keys; NULL: the index is to be made anew */
};

/* The devices of the slice that lists this one, whose attributes tell which physical device it is;
 * NULL: there is none. They are there until the next turn of the loop. */
const struct dv_api_device *dv_holdings_slices_find(struct dv_holdings_slices *slices,
                                                    dv_str driver, dv_str pool, dv_str device,
                                                    size_t *n);
/* To be called when a slice has changed, and at the end. */
void dv_holdings_slices_forget(struct dv_holdings_slices *slices);

#endif
