/* index.h - what is inside an index. */
#ifndef DV_CDI_INDEX_H
#define DV_CDI_INDEX_H

#include <stddef.h>

#include "base/map.h"
#include "base/str.h"

struct dv_cdi_entry;
struct dv_cdi_spec;

/* A device that two specs of one priority have. A third one is held against the first. */
struct dv_cdi_conflict {
    dv_str name;
    const struct dv_cdi_spec *first;
    const struct dv_cdi_spec *second;
};

struct dv_cdi_index {
    struct dv_cdi_spec **specs; /* as given, refused ones too */
    size_t n_specs;
    size_t n_refused;
    struct dv_map by_name; /* of struct dv_cdi_entry */
    struct dv_cdi_entry *entries;
    struct dv_cdi_conflict *conflicts; /* also those that a higher priority has settled */
    size_t n_conflicts;
    size_t conflicts_size;
};

#endif
