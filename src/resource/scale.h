/* scale.h - how many pods something wants, as autoscaling/v1 tells it. Pure. */
#ifndef DV_RESOURCE_SCALE_H
#define DV_RESOURCE_SCALE_H

#include <stdint.h>

struct dv_api_scale;
struct dv_arena;
struct dv_object;

/* The Scale of an object whose kind has one; its texts are the object's, or in the arena. */
void dv_scale_of(const struct dv_object *object, struct dv_arena *arena,
                 struct dv_api_scale *scale);
/* Sets how many pods the value of such an object wants. */
void dv_scale_set(const struct dv_object *object, void *value, int64_t replicas,
                  struct dv_arena *arena);

#endif
