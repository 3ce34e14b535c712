/* http1_events.h - what a session makes of bytes, as text: one line an event, bodies put together.
 */
#ifndef DV_HTTP1_TESTS_HTTP1_EVENTS_H
#define DV_HTTP1_TESTS_HTTP1_EVENTS_H

#include <stddef.h>

#include "base/str.h"

struct dv_buf;

/* Adds the events of these bytes, given to a new session in pieces of `piece` bytes. Bodies in
 * parts are one text, so that the result must not depend on the pieces. */
void add_events(struct dv_buf *text, dv_str bytes, size_t piece);

#endif
