/* visible.h - text from outside that a person will read.
 *
 * A name or a message may hold characters that steer a terminal, end a line, or turn the direction
 * of what follows. Names with them are refused; other text is printed with them escaped, by the
 * functions here and nothing else: \n \r \t, \x1b for a control character or a byte that is not
 * UTF-8, \u202e for a character that only changes how others look. What is escaped stays so when
 * it is escaped again. */
#ifndef DV_BASE_VISIBLE_H
#define DV_BASE_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct dv_arena;
struct dv_buf;

/* UTF-8, and nothing in it needs an escape. The empty text is. */
bool dv_str_is_visible(dv_str s);
/* Bytes of the first character of `s`, or of the byte that begins none, and whether it can be
 * printed as it is; `s` is not empty. */
size_t dv_visible_char(dv_str s, bool *is_visible);
void dv_buf_add_visible(struct dv_buf *buf, dv_str s);
dv_str dv_str_visible(dv_str s, struct dv_arena *arena); /* `s` itself when it is visible */
/* Escapes a C string where it stands, but not line ends and tabs; what no longer fits is cut. */
void dv_visible_in_place(char *text, size_t size);

/* Adds the text in quotes, as Go's %q writes it: messages of the reference show texts so. */
void dv_go_quote(dv_str text, struct dv_buf *buf);

#endif
