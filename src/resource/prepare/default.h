/* default.h - the parts of dv_default. */
#ifndef DV_RESOURCE_DEFAULT_H
#define DV_RESOURCE_DEFAULT_H

#include <stddef.h>

#include "base/str.h"

struct dv_api_object_field_selector;
struct dv_api_pod;
struct dv_api_volume;
struct dv_arena;
struct dv_quantity_entry;

static inline void dv_default_str(dv_str *text, dv_str value)
{
    if (text->n == 0)
        *text = value;
}

void dv_default_pod(struct dv_api_pod *pod, struct dv_arena *arena);
void dv_default_volume(struct dv_api_volume *volume, struct dv_arena *arena);
/* Rounds amounts up to thousandths, away from zero: the API has nothing finer. */
void dv_default_quantities(struct dv_quantity_entry *entries, size_t n, struct dv_arena *arena);
void dv_default_field_ref(struct dv_api_object_field_selector *ref); /* NULL is fine */
/* The pull policy for an image by its tag: "Always" where the image may change under its name. */
dv_str dv_default_pull_policy(dv_str image);

#endif
