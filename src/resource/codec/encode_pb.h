/* encode_pb.h - what objects in protobuf and in rows of the store have in common. */
#ifndef DV_RESOURCE_ENCODE_PB_H
#define DV_RESOURCE_ENCODE_PB_H

#include <stdint.h>

struct dv_buf;
struct dv_quantity;

/* Adds a field with the message that the API has for a quantity: its text. */
void dv_encode_pb_quantity(struct dv_buf *buf, uint32_t number, const struct dv_quantity *quantity);

#endif
