/* parts.h - what a plugin has opened on the loop, counted, so that its memory is given back after
 * the last of it is closed. */
#ifndef DV_LIB_PARTS_H
#define DV_LIB_PARTS_H

#include <stddef.h>

#include "loop/loop.h"

struct dv_lib_parts {
    struct dv_loop *loop;
    size_t n; /* open or closing; the owner itself is one */
    struct dv_task task;
    void (*all_closed)(struct dv_lib_parts *parts);
};

/* Begins to count; the owner is the first part. */
void dv_lib_parts_init(struct dv_lib_parts *parts, struct dv_loop *loop,
                       void (*all_closed)(struct dv_lib_parts *parts));
void dv_lib_parts_add(struct dv_lib_parts *parts);
/* Tells that one part is closed; `all_closed` runs later in the turn in which the last one is. */
dv_closed_fn dv_lib_part_closed; /* its ctx: struct dv_lib_parts */

#endif
