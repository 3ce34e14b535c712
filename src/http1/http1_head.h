/* http1_head.h - a request's line and its fields: what each line says, and what they say together.
 */
#ifndef DV_HTTP1_HEAD_H
#define DV_HTTP1_HEAD_H

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "http1/http1.h"

/* Notes a refusal. Returns false. */
bool dv_h1_refuse(struct dv_h1 *h1, unsigned status, enum dv_code code, const char *fmt, ...)
    DV_PRINTF(4, 5);

/* Lines come without their ends; they lie in h1->text. On failure the refusal is noted. */
DV_CHECKED bool dv_h1_take_request_line(struct dv_h1 *h1, dv_str line);
/* Notes the field, unless it is one of a trailer, which only has to be good. */
DV_CHECKED bool dv_h1_take_field(struct dv_h1 *h1, dv_str line, bool is_kept);
/* The empty line has come: finds out how the body comes. */
DV_CHECKED bool dv_h1_take_head_end(struct dv_h1 *h1);

#endif
