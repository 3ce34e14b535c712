#include "lib/common/lib_message.h"

#include "http2/http2.h"
#include "pb/pb.h"

struct dv_h2_msg *dv_lib_encode(const struct ProtobufCMessage *message)
{
    size_t n = dv_pb_size(message);
    struct dv_h2_msg *msg = dv_h2_msg_new(n);

    dv_pb_encode(message, dv_h2_msg_data(msg), n);
    return msg;
}
