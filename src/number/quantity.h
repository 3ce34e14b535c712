/* quantity.h - what the reader and the arithmetic of quantities share. */
#ifndef DV_RESOURCE_QUANTITY_H
#define DV_RESOURCE_QUANTITY_H

#include "number/number.h"

struct dv_arena;
struct dv_decimal;

/* The quantity that the reference keeps as this big decimal: as value and scale where they hold it,
 * else copied into `arena`. */
struct dv_quantity dv_quantity_from_decimal(const struct dv_decimal *decimal,
                                            enum dv_quantity_format format, struct dv_arena *arena);

#endif
