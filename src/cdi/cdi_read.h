/* cdi_read.h - a document into the structs of cdi.h, by the tables of shape.h.
 *
 * Reading goes on after a problem, so that one look at a file tells all that is wrong with it. */
#ifndef DV_CDI_READ_H
#define DV_CDI_READ_H

#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "cdi/shape.h"

struct dv_arena;
struct dv_json;

struct dv_cdi_reader {
    struct dv_arena *arena; /* of the spec: everything that stays is copied there */
    enum dv_cdi_release release;
    dv_str *problems; /* room for DV_CDI_SPEC_PROBLEMS_MAX + 1 */
    size_t n_problems;
};

/* Reads the whole object at `node` into `value`, a zeroed struct of `shape`, and checks it. */
void dv_cdi_read(struct dv_cdi_reader *reader, const struct dv_cdi_shape *shape,
                 const struct dv_json *node, void *value);
/* The member of that name, in any case if there is none in this one, as Go's reader finds it; NULL
 * when there is none, and when it is null. */
struct dv_json *dv_cdi_member(const struct dv_json *node, dv_str key);
/* Notes that something is wrong at `node`. */
void dv_cdi_complain(struct dv_cdi_reader *reader, const struct dv_json *node, const char *fmt, ...)
    DV_PRINTF(3, 4);

#endif
