/* device_text.h - the devices of the node in words: the same in devices, status and top. */
#ifndef DV_CLI_DEVICE_TEXT_H
#define DV_CLI_DEVICE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct NodeV1__DeviceCounts;
struct NodeV1__Holder;
struct NodeV1__PodStatus;
struct NodeV1__PoolDevice;
struct dv_arena;

/* "50 free, 147 held (3 leased, 1 not well), 1 blocked, 2 tainted, 1 unhealthy, 4 gone": without
 * what there is none of, but for free and held. NULL counts are zeros. */
const char *dv_device_counts_text(const struct NodeV1__DeviceCounts *counts,
                                  struct dv_arena *arena);
/* "free", "held", "held, unhealthy". */
const char *dv_device_state_text(const char *state, const char *trouble, struct dv_arena *arena);
/* "ml/train-0:main", "ml/train-0", "claim ml/fast", "lease/k3x of ann"; of several, all. */
const char *dv_device_holders_text(struct NodeV1__Holder *const *holders, size_t n_holders,
                                   struct dv_arena *arena);
/* Who keeps a driver's device from others: its holders, or, of one that is blocked, the devices
 * that have what it shares with them ("shared with gpu-0-a"). */
const char *dv_device_keepers_text(const struct NodeV1__PoolDevice *device, struct dv_arena *arena);
/* The claims of the holders, each once: "ml/fast". */
const char *dv_device_claims_text(struct NodeV1__Holder *const *holders, size_t n_holders,
                                  struct dv_arena *arena);
/* Since when the first of them has it, unix time; 0: nobody has, or it is not known. */
int64_t dv_device_since_ms(struct NodeV1__Holder *const *holders, size_t n_holders);
/* "0", "0,1"; empty where none is told. */
const char *dv_device_numa_text(const int64_t *nodes, size_t n_nodes, struct dv_arena *arena);
/* What the pod has and is not well, each once: "main: example.com/gpu gpu0 Unhealthy", and of a
 * claim, whose devices have no names there, "main: claim gpu Unknown". Empty: all is. */
const char *dv_device_ill_text(const struct NodeV1__PodStatus *pod, struct dv_arena *arena);

#endif
