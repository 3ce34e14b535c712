/* msg.c - messages of a call, counted, with room for the prefix that gRPC puts before them. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "http2/http2.h"
#include "http2/session.h"

struct dv_h2_msg *dv_h2_msg_new(size_t n)
{
    struct dv_h2_msg *msg;
    size_t total;

    if (n > UINT32_MAX || !dv_size_add(n, sizeof(*msg) + PREFIX_BYTES, &total))
        abort();                   /* no message of ours comes near the protocol's 4 GiB */
    msg = dv_realloc(NULL, total); /* not zeroed: the caller fills it */
    msg->n_refs = 1;
    msg->n = n + PREFIX_BYTES;
    msg->bytes[0] = 0; /* not compressed */
    msg->bytes[1] = (uint8_t)(n >> 24);
    msg->bytes[2] = (uint8_t)(n >> 16);
    msg->bytes[3] = (uint8_t)(n >> 8);
    msg->bytes[4] = (uint8_t)n;
    return msg;
}

struct dv_h2_msg *dv_h2_msg_copy(dv_str payload)
{
    struct dv_h2_msg *msg = dv_h2_msg_new(payload.n);

    if (payload.n > 0)
        memcpy(msg->bytes + PREFIX_BYTES, payload.p, payload.n);
    return msg;
}

void *dv_h2_msg_data(struct dv_h2_msg *msg)
{
    return msg->bytes + PREFIX_BYTES;
}

size_t dv_h2_msg_size(const struct dv_h2_msg *msg)
{
    return msg->n - PREFIX_BYTES;
}

struct dv_h2_msg *dv_h2_msg_ref(struct dv_h2_msg *msg)
{
    msg->n_refs++;
    return msg;
}

void dv_h2_msg_unref(struct dv_h2_msg *msg)
{
    if (msg && --msg->n_refs == 0)
        free(msg);
}
