/* regex.h - regular expressions of RE2's syntax, matched by PCRE2 under limits.
 *
 * What RE2 does not know is refused: looking around, referring back, atomic and possessive forms,
 * conditions, recursion, verbs. What both know but read differently is rewritten. */
#ifndef DV_CEL_REGEX_H
#define DV_CEL_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_arena;
struct dv_cel_build;
struct dv_cel_matcher;
struct dv_cel_regex;
struct dv_cel_val;

/* Compiles a regular expression into `arena`. NULL, with an error value: it is none. */
struct dv_cel_regex *dv_cel_regex_new(dv_str pattern, struct dv_arena *arena,
                                      struct dv_cel_val *error);

enum dv_cel_match {
    DV_CEL_MATCH_NO,
    DV_CEL_MATCH_YES,
    DV_CEL_MATCH_LIMIT, /* it takes too long to tell */
};
/* Whether matching needs a matcher; NULL will do for patterns that are plain text. */
bool dv_cel_regex_needs_matcher(const struct dv_cel_regex *regex);
/* The memory that matching needs, for many matches of one evaluation; the arena frees it. */
struct dv_cel_matcher *dv_cel_matcher_new(struct dv_arena *arena);
/* The number of steps back since this was last asked, at most: each takes about ten nanoseconds. */
uint64_t dv_cel_matcher_take_steps(struct dv_cel_matcher *matcher);
/* Finds the first match at or after byte `from`, which is 0 for a text's first search. */
enum dv_cel_match dv_cel_regex_find(const struct dv_cel_regex *regex, dv_str text, size_t from,
                                    struct dv_cel_matcher *matcher, size_t *start, size_t *end);
/* Whether there is a match anywhere. For some texts this can be told where finding the first match
 * takes too long. */
enum dv_cel_match dv_cel_regex_matches(const struct dv_cel_regex *regex, dv_str text,
                                       struct dv_cel_matcher *matcher);

/* Translates RE2's syntax into PCRE2's. NULL, or what is wrong. */
const char *dv_cel_regex_translate(dv_str pattern, struct dv_cel_build *out);

#endif
