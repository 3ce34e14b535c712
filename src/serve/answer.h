/* answer.h - answers that are long enough to be made in a place of their own. */
#ifndef DV_SERVE_ANSWER_H
#define DV_SERVE_ANSWER_H

#include "base/str.h"

struct ProtobufCMessage;
struct dv_arena;
struct dv_h2_msg;
struct dv_node;
struct dv_server_call;

/* Encodes the message and ends the call with it. */
void dv_serve_reply(struct dv_server_call *call, const struct ProtobufCMessage *message);
struct dv_h2_msg *dv_serve_encode(const struct ProtobufCMessage *message);

/* A ListDevicesResponse with one resource, or with all where that is empty. */
struct dv_h2_msg *dv_serve_device_list(const struct dv_node *node, dv_str resource);
/* A ListPluginsResponse. */
struct dv_h2_msg *dv_serve_plugin_list(const struct dv_node *node, struct dv_arena *arena);

#endif
