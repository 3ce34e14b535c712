/* regex.h - regular expressions of RE2's syntax, matched by PCRE2 under limits.
 *
 * What RE2 does not know is refused: looking around, referring back, atomic and possessive forms,
 * conditions, recursion, verbs. What both know but read differently is rewritten. */
#ifndef DV_CEL_REGEX_H
#define DV_CEL_REGEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_arena;
struct dv_cel_build;
struct dv_cel_matcher;
struct dv_cel_regex;
struct dv_cel_val;

/* NULL, with an error value: not a regular expression. All of it is in `arena`. */
struct dv_cel_regex *dv_cel_regex_new(dv_str pattern, struct dv_arena *arena,
                                      struct dv_cel_val *error);

enum dv_cel_match {
    DV_CEL_MATCH_NO,
    DV_CEL_MATCH_YES,
    DV_CEL_MATCH_LIMIT, /* it takes too long to tell */
};
/* What matching needs, for many matches of one evaluation; it goes with the arena. */
struct dv_cel_matcher *dv_cel_matcher_new(struct dv_arena *arena);
/* How many steps it has gone back since it was last asked, at most: ten nanoseconds each. */
uint64_t dv_cel_matcher_take_steps(struct dv_cel_matcher *matcher);
/* The first match at or after byte `from`, which is 0 for a text's first search. */
enum dv_cel_match dv_cel_regex_find(const struct dv_cel_regex *regex, dv_str text, size_t from,
                                    struct dv_cel_matcher *matcher, size_t *start, size_t *end);
/* Whether there is a match anywhere: it can be told for some texts where finding the first match
 * takes too long. */
enum dv_cel_match dv_cel_regex_matches(const struct dv_cel_regex *regex, dv_str text,
                                       struct dv_cel_matcher *matcher);

/* RE2's syntax as PCRE2's. NULL, or what is wrong. */
const char *dv_cel_regex_translate(dv_str pattern, struct dv_cel_build *out);

#endif
