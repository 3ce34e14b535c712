/* kube_json_error.h - what is wrong with a JSON text, in the words of the reference's reader. Pure.
 */
#ifndef DV_SERVE_KUBE_JSON_ERROR_H
#define DV_SERVE_KUBE_JSON_ERROR_H

#include <stdbool.h>

#include "base/str.h"

struct dv_buf;

/* Prints what is wrong: "unexpected end of JSON input", "invalid character 'x' looking for
 * beginning of value". False, with nothing printed, when the text is JSON. */
bool dv_json_error_print(dv_str text, struct dv_buf *buf);

#endif
