/* cel_pattern.h - what schemas ask of texts, as expressions do: regular expressions of RE2's
 * syntax, matched under the same limits, and formats by their names. */
#ifndef DV_CEL_PATTERN_H
#define DV_CEL_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct dv_arena;
struct dv_cel_pattern;

enum dv_cel_pattern_result {
    DV_CEL_PATTERN_DIFFERS,
    DV_CEL_PATTERN_MATCHES,
    DV_CEL_PATTERN_TOO_COSTLY, /* it takes too long to tell */
};

/* Compiles a pattern into `arena`. NULL: it is none, and *why, in the arena, says what is wrong. */
struct dv_cel_pattern *dv_cel_pattern_new(dv_str text, struct dv_arena *arena, dv_str *why);
/* Whether it matches anywhere in the text, and how many steps of some ten nanoseconds that took. A
 * pattern is immutable: any thread may use it, each with an arena of its own. */
enum dv_cel_pattern_result dv_cel_pattern_find(const struct dv_cel_pattern *pattern, dv_str text,
                                               struct dv_arena *scratch, uint64_t *steps);

/* Whether a text has the format that OpenAPI calls so: "date-time", "ipv4". Of formats that nobody
 * here knows every text has. */
bool dv_cel_has_format(dv_str format, dv_str text, struct dv_arena *scratch);

#endif
