#include "upgrade/wire/outbox.h"

/* A buffer beyond this is given back once it is far larger than what it held last. */
#define KEPT_BYTES (64u * 1024u)
#define FAR_LARGER 8u
/* Far above what any session lets wait: they look before they add. */
#define UNSENT_BYTES_MAX (64u * 1024u * 1024u)

void dv_outbox_init(struct dv_outbox *outbox)
{
    dv_buf_init(&outbox->filled, UNSENT_BYTES_MAX);
    dv_buf_init(&outbox->pulled, UNSENT_BYTES_MAX);
}

void dv_outbox_fini(struct dv_outbox *outbox)
{
    dv_buf_fini(&outbox->filled);
    dv_buf_fini(&outbox->pulled);
}

bool dv_outbox_pull(struct dv_outbox *outbox, dv_str *bytes)
{
    struct dv_buf sent = outbox->pulled;

    if (sent.size > KEPT_BYTES && sent.n < sent.size / FAR_LARGER) {
        dv_buf_fini(&sent);
        dv_buf_init(&sent, UNSENT_BYTES_MAX);
    }
    dv_buf_clear(&sent);
    outbox->pulled = outbox->filled;
    outbox->filled = sent;
    *bytes = dv_buf_str(&outbox->pulled);
    return bytes->n > 0;
}
