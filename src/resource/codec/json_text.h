/* json_text.h - pieces of JSON text as Go's encoding/json writes them for the API servers. */
#ifndef DV_RESOURCE_JSON_TEXT_H
#define DV_RESOURCE_JSON_TEXT_H

#include <stdbool.h>

#include "base/str.h"

struct dv_buf;

/* Adds the text with its quotes; < > & U+2028 U+2029 as \u003c and so on, bytes that are not UTF-8
 * as U+FFFD. */
void dv_json_text_add_str(struct dv_buf *buf, dv_str text);
/* Adds a JSON text without its blanks, and with the same escapes. */
void dv_json_text_add_raw(struct dv_buf *buf, dv_str text);
/* Whether no byte is one that dv_json_text_add_raw drops or escapes, wherever it stands: so it is
 * with nearly all that our own printers have made. */
bool dv_json_text_is_plain(dv_str text);

#endif
