/* checkpoint_json.h - for golden_checkpoints.c: what is loaded, to be compared. */
#ifndef DV_GOLDEN_CHECKPOINT_JSON_H
#define DV_GOLDEN_CHECKPOINT_JSON_H

struct dv_arena;
struct dv_device_checkpoint;
struct dv_json;

/* {"allocated", "podDevices", "registered"} of a new state that was loaded from it. */
struct dv_json *loaded_to_json(const struct dv_device_checkpoint *checkpoint,
                               struct dv_arena *arena);

#endif
