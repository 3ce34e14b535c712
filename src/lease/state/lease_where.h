/* lease_where.h - a selector in its short form becomes CEL.
 *
 *     memory >= 40Gi && productName.startsWith("NVIDIA H")
 *     device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0 &&
 *         device.attributes["gpu.example.com"].productName.startsWith("NVIDIA H")
 *
 * Names are those of the attributes and capacities of the class's devices. Amounts may have the
 * units of quantities, and are compared with capacities; texts are compared with versions as
 * versions. A device that lacks a name is passed over, unless the selector says `||` or `?`: then
 * it decides itself. What says `device` is whole CEL, and stays as it is. Pure. */
#ifndef DV_LEASE_WHERE_H
#define DV_LEASE_WHERE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;

enum dv_lease_name_kind {
    DV_LEASE_ATTRIBUTE,
    DV_LEASE_VERSION, /* an attribute whose values are versions */
    DV_LEASE_CAPACITY,
};

/* What devices of a class have. */
struct dv_lease_name {
    dv_str name;   /* "memory" */
    dv_str domain; /* "gpu.example.com" */
    enum dv_lease_name_kind kind;
};

/* A selector may be as long as the API's; the CEL that it becomes is held to the same limit. */
#define DV_LEASE_WHERE_BYTES_MAX 4096u

/* Makes CEL of the text, in `arena`, and compiles it. DV_INVALID_ARGUMENT: "character 5: there is
 * no "memry"; did you mean "memory"?", or what the compiler says, at the place in `text`. */
DV_CHECKED bool dv_lease_where_expand(dv_str text, const struct dv_lease_name *names,
                                      size_t n_names, struct dv_arena *arena, dv_str *cel,
                                      struct dv_err *err);

/* Finds a name for "memory" or "gpu.example.com/memory"; NULL: there is none. */
const struct dv_lease_name *dv_lease_name_find(const struct dv_lease_name *names, size_t n_names,
                                               dv_str text);
/* Fails with what may have been meant: the nearest name, or some of those that there are. */
bool dv_lease_name_fail(const struct dv_lease_name *names, size_t n_names, dv_str text,
                        struct dv_err *err);

#endif
