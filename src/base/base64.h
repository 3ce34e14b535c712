/* base64.h - bytes as text (RFC 4648): in the standard alphabet and padded, as Go's encoding/json
 * has them, or in the alphabet for URLs and without padding, as signed tokens have them. */
#ifndef DV_BASE_BASE64_H
#define DV_BASE_BASE64_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;

/* Decodes base64 into `arena`. CR and LF are skipped wherever they are, and the bits that padding
 * leaves over may be anything. False: it is not base64. */
DV_CHECKED bool dv_base64_decode(dv_str text, struct dv_arena *arena, dv_str *bytes);
void dv_base64_encode(dv_str bytes, struct dv_buf *buf);

/* Decodes base64url into `arena`. There is one text for each sequence of bytes: padding, line ends
 * and bits that are left over are refused. False: it is not that text. */
DV_CHECKED bool dv_base64url_decode(dv_str text, struct dv_arena *arena, dv_str *bytes);
void dv_base64url_encode(dv_str bytes, struct dv_buf *buf);

#endif
