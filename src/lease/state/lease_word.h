/* lease_word.h - what a word without a domain stands for: "gpu" for nvidia.com/gpu, or for the
 * class gpu.nvidia.com, whichever of them there is. */
#ifndef DV_LEASE_WORD_H
#define DV_LEASE_WORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct dv_err;

/* A resource that plugins offer, or a device class. */
struct dv_lease_candidate {
    dv_str name;
    bool is_class;
    dv_str resource; /* the extended resource that the class serves; empty: none */
};

/* Whether it has neither a domain nor a vendor. */
bool dv_lease_is_word(dv_str text);
/* A resource fits by what follows its vendor, a class by its name, its first or its last part, or
 * by the resource that it serves. */
bool dv_lease_word_fits(dv_str word, const struct dv_lease_candidate *candidate);
/* The only one that fits; of classes alone where conditions are set, which resources have not.
 * NULL, DV_INVALID_ARGUMENT: several fit, or none; the text names them, or what there is. */
const struct dv_lease_candidate *dv_lease_word_find(dv_str word,
                                                    const struct dv_lease_candidate *candidates,
                                                    size_t n, bool needs_class, struct dv_err *err);

#endif
