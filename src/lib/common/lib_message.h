/* lib_message.h - generated messages as calls carry them. */
#ifndef DV_LIB_MESSAGE_H
#define DV_LIB_MESSAGE_H

struct ProtobufCMessage;
struct dv_h2_msg;

/* With one reference. */
struct dv_h2_msg *dv_lib_encode(const struct ProtobufCMessage *message);

#endif
