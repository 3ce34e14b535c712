/* outbox.h - bytes that wait to go out. One buffer is filled while the other one is being sent. */
#ifndef DV_UPGRADE_OUTBOX_H
#define DV_UPGRADE_OUTBOX_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

struct dv_outbox {
    struct dv_buf filled; /* add to this one; who adds checks its limits first */
    struct dv_buf pulled;
};

void dv_outbox_init(struct dv_outbox *outbox);
void dv_outbox_fini(struct dv_outbox *outbox);
/* Returns all that was added, borrowed until the next pull; false when there is nothing. */
bool dv_outbox_pull(struct dv_outbox *outbox, dv_str *bytes);

#endif
