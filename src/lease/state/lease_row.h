/* lease_row.h - a lease as its row in the store. Pure. */
#ifndef DV_LEASE_ROW_H
#define DV_LEASE_ROW_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"
#include "lease/lease_spec.h"

struct dv_arena;
struct dv_buf;
struct dv_err;

void dv_lease_row_print(const struct dv_lease_spec *spec, struct dv_buf *buf);
/* Reads a row; the spec points into `text` and `arena`. */
DV_CHECKED bool dv_lease_row_parse(dv_str text, struct dv_arena *arena, struct dv_lease_spec *spec,
                                   struct dv_err *err);

#endif
