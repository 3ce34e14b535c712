/* json_cut.h - a JSON text in pieces.
 *
 * json.h keeps of a key that comes twice only the last. Go decodes both, one onto the other, and so
 * must whoever checks a sum over the outcome. This cuts text that dv_json_parse has accepted into
 * members and elements, each a text of its own; it finds where they end and knows nothing else. */
#ifndef DV_DEVICE_JSON_CUT_H
#define DV_DEVICE_JSON_CUT_H

#include <stdbool.h>

#include "base/str.h"

struct dv_device_cut {
    const char *at;
    const char *end;
};

/* Begins with the text between the braces or brackets, which may have blanks around it. */
void dv_device_cut_init(struct dv_device_cut *cut, dv_str container);
/* The next member or element, without blanks around it; false at the end. A key has its quotes. */
bool dv_device_cut_member(struct dv_device_cut *cut, dv_str *key, dv_str *value);
bool dv_device_cut_element(struct dv_device_cut *cut, dv_str *value);

#endif
