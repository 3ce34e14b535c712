#include "cel/cel_pattern.h"

#include <stddef.h>

#include "base/arena.h"
#include "cel/functions/regex.h"
#include "cel/value/cel_value.h"

struct dv_cel_pattern {
    struct dv_cel_regex *regex;
};

struct dv_cel_pattern *dv_cel_pattern_new(dv_str text, struct dv_arena *arena, dv_str *why)
{
    struct dv_cel_val error = dv_cel_null();
    struct dv_cel_regex *regex = dv_cel_regex_new(text, arena, &error);
    struct dv_cel_pattern *pattern;

    if (!regex) {
        *why = error.s;
        return NULL;
    }
    pattern = DV_NEW(arena, struct dv_cel_pattern);
    pattern->regex = regex;
    return pattern;
}

enum dv_cel_pattern_result dv_cel_pattern_find(const struct dv_cel_pattern *pattern, dv_str text,
                                               struct dv_arena *scratch, uint64_t *steps)
{
    struct dv_cel_matcher *matcher =
        dv_cel_regex_needs_matcher(pattern->regex) ? dv_cel_matcher_new(scratch) : NULL;
    enum dv_cel_match match = dv_cel_regex_matches(pattern->regex, text, matcher);

    *steps = text.n + (matcher ? dv_cel_matcher_take_steps(matcher) : 0);
    switch (match) {
    case DV_CEL_MATCH_NO:
        return DV_CEL_PATTERN_DIFFERS;
    case DV_CEL_MATCH_YES:
        return DV_CEL_PATTERN_MATCHES;
    case DV_CEL_MATCH_LIMIT:
        break;
    }
    return DV_CEL_PATTERN_TOO_COSTLY;
}
