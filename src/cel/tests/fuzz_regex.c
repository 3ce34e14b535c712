/* fuzz_regex.c - a regular expression and, after a newline, a text: what RE2's syntax allows
 * compiles or is refused, a match lies within the text, whether there is one is the same however it
 * is asked, and a group around it all changes nothing. */
#include "cel/functions/regex.h"

#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "cel/value/build.h"
#include "cel/value/cel_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BYTES_MAX 1000u

static struct dv_cel_regex *regex_in_a_group(dv_str pattern, struct dv_arena *arena)
{
    struct dv_cel_build group = {.arena = arena};
    struct dv_cel_val error;

    if (dv_str_find(pattern, DV_STR("\\Q")) < pattern.n)
        return NULL; /* it may go on to the end, and swallow the bracket */
    dv_cel_build_add(&group, DV_STR("(?:"));
    dv_cel_build_add(&group, pattern);
    dv_cel_build_add(&group, DV_STR(")"));
    return dv_cel_regex_new((dv_str){group.p, group.n}, arena, &error);
}

static void check_match(const struct dv_cel_regex *regex, const struct dv_cel_regex *group,
                        dv_str text, struct dv_arena *arena)
{
    struct dv_cel_matcher *matcher = dv_cel_matcher_new(arena);
    size_t range[4];
    enum dv_cel_match match = dv_cel_regex_find(regex, text, 0, matcher, &range[0], &range[1]);
    enum dv_cel_match any = dv_cel_regex_matches(regex, text, matcher);

    assert(match == DV_CEL_MATCH_LIMIT || match == any);
    if (match == DV_CEL_MATCH_YES)
        assert(range[0] <= range[1] && range[1] <= text.n);
    if (!group || !dv_str_is_utf8(text) ||
        dv_cel_regex_find(group, text, 0, matcher, &range[2], &range[3]) != DV_CEL_MATCH_YES)
        return;
    assert(any != DV_CEL_MATCH_NO);
    if (match == DV_CEL_MATCH_YES)
        assert(range[0] == range[2] && range[1] == range[3]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str input = {(const char *)data, size};
    size_t end = dv_str_find_char(input, '\n');
    dv_str pattern = dv_str_slice(input, 0, end);
    const struct dv_cel_regex *regex;
    struct dv_cel_val error;

    if (size > BYTES_MAX)
        return 0;
    regex = dv_cel_regex_new(pattern, arena, &error);
    if (!regex) {
        assert(dv_cel_is_error(&error) && error.s.n > 0);
        return 0;
    }
    check_match(regex, regex_in_a_group(pattern, arena), dv_str_slice(input, end + 1, size), arena);
    return 0;
}
