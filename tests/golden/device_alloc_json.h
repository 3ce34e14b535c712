/* device_alloc_json.h - outcomes as golden/device-alloc describes them. */
#ifndef DV_GOLDEN_DEVICE_ALLOC_JSON_H
#define DV_GOLDEN_DEVICE_ALLOC_JSON_H

struct dv_arena;
struct dv_device_options;
struct dv_device_status;
struct dv_json;

struct dv_json *options_to_json(const struct dv_device_options *options, struct dv_arena *arena);
struct dv_json *status_to_json(const struct dv_device_status *status, struct dv_arena *arena);
/* An outcome with numbers in place of lists of names, for steps with `expectCounts`. */
struct dv_json *outcome_to_counts(const struct dv_json *outcome, struct dv_arena *arena);

#endif
