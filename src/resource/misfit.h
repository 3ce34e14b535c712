/* misfit.h - why a document does not fit a message, in the words of the reference. Pure. */
#ifndef DV_RESOURCE_MISFIT_H
#define DV_RESOURCE_MISFIT_H

#include <stdbool.h>

#include "base/str.h"

struct dv_arena;
struct dv_json;
struct dv_message;

/* "json: cannot unmarshal array into Go struct field ResourceClaim.metadata of type v1.ObjectMeta".
 * False when nothing is found that the reference would say: there is always our own reader's word.
 */
bool dv_misfit_find(const struct dv_message *message, const struct dv_json *doc,
                    struct dv_arena *arena, dv_str *why);

/* `parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`; false when it is a
 * time. */
bool dv_misfit_time(dv_str text, bool with_micros, struct dv_arena *arena, dv_str *why);

#endif
