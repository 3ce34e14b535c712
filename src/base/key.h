/* key.h - several texts as one key of bytes, which sorts as the texts do, one after the other.
 *
 * A text is its bytes, 0x00 as 0x00 0xff, then 0x00 0x01. */
#ifndef DV_BASE_KEY_H
#define DV_BASE_KEY_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;

void dv_key_add(struct dv_buf *key, dv_str text);
/* Takes the first text off *key, into `arena`. False, and nothing is taken: the key is cut off. */
DV_CHECKED bool dv_key_take(dv_str *key, struct dv_arena *arena, dv_str *text);

#endif
