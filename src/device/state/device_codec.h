/* device_codec.h - keys of the store, for the files of this folder. */
#ifndef DV_DEVICE_CODEC_H
#define DV_DEVICE_CODEC_H

struct dv_buf;
struct dv_device_held;

/* Adds the key of the record. */
void dv_device_held_store_key(const struct dv_device_held *held, struct dv_buf *key);

#endif
