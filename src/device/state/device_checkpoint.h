/* device_checkpoint.h - a checkpoint and its checksum, for the files of this folder and tests. */
#ifndef DV_DEVICE_CHECKPOINT_H
#define DV_DEVICE_CHECKPOINT_H

#include <stdint.h>

#include "device/kubelet_checkpoint.h"

/* The text whose hash is the checksum: the content as Go prints it, with its types. */
void dv_device_checkpoint_text(const struct dv_device_checkpoint *checkpoint, struct dv_buf *buf);
uint32_t dv_device_checkpoint_sum(const struct dv_device_checkpoint *checkpoint);
/* Like dv_device_checkpoint_decode, but returns the file's checksum instead of comparing it. */
DV_CHECKED enum dv_device_verdict dv_device_checkpoint_read(dv_str bytes, struct dv_arena *arena,
                                                            struct dv_device_checkpoint *checkpoint,
                                                            uint64_t *checksum, struct dv_err *err);

#endif
