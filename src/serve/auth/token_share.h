/* token_share.h - how many tokens there may be. Pure. */
#ifndef DV_SERVE_TOKEN_SHARE_H
#define DV_SERVE_TOKEN_SHARE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"

struct dv_err;

/* Whether there is room for one more token beside `n` others. DV_RESOURCE_EXHAUSTED: the text says
 * how many there may be, and what to do. */
DV_CHECKED bool dv_token_share_has_room(size_t n, bool is_by_admin, struct dv_err *err);

#endif
