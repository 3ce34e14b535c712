/* alloc_inventory.h - the handle of an inventory. */
#ifndef DV_LIB_ALLOC_INVENTORY_H
#define DV_LIB_ALLOC_INVENTORY_H

#include "base/map.h"

struct dv_inventory;

struct davit_inventory {
    struct dv_inventory *inventory;
    struct dv_map items; /* "Kind/namespace/name" -> struct item */
};

#endif
