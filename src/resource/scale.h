/* scale.h - how many pods something wants, as autoscaling/v1 tells it. Pure. */
#ifndef DV_RESOURCE_SCALE_H
#define DV_RESOURCE_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_api_custom_object;
struct dv_api_scale;
struct dv_arena;
struct dv_custom_version;
struct dv_object;

/* The Scale of an object whose kind has one; its texts are the object's, or in the arena. */
void dv_scale_of(const struct dv_object *object, struct dv_arena *arena,
                 struct dv_api_scale *scale);
/* Sets how many pods the value of such an object wants. */
void dv_scale_set(const struct dv_object *object, void *value, int64_t replicas,
                  struct dv_arena *arena);
/* Like these two, for an object of a kind that a definition made, whose version has a scale. False:
 * the object does not say how many it wants (*missing is the path), or what it says is no number.
 */
DV_CHECKED bool dv_scale_of_custom(const struct dv_object *object,
                                   const struct dv_custom_version *version, struct dv_arena *arena,
                                   struct dv_api_scale *scale, dv_str *missing);
DV_CHECKED bool dv_scale_set_custom(const struct dv_custom_version *version,
                                    struct dv_api_custom_object *object, int64_t replicas,
                                    struct dv_arena *arena);

#endif
