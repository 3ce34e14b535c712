/* fuzz_regex.c - a regular expression and, after a newline, a text: what RE2's syntax allows
 * compiles or is refused, and a match lies within the text. */
#include "cel/regex.h"

#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "cel/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BYTES_MAX 1000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str input = {(const char *)data, size};
    size_t end = dv_str_find_char(input, '\n');
    dv_str text = dv_str_slice(input, end + 1, size);
    const struct dv_cel_regex *regex;
    struct dv_cel_val error;
    size_t from;
    size_t to;

    if (size > BYTES_MAX)
        return 0;
    regex = dv_cel_regex_new(dv_str_slice(input, 0, end), arena, &error);
    if (!regex) {
        assert(dv_cel_is_error(&error) && error.s.n > 0);
        return 0;
    }
    if (dv_cel_regex_find(regex, text, 0, dv_cel_matcher_new(arena), &from, &to) ==
        DV_CEL_MATCH_YES)
        assert(from <= to && to <= text.n);
    return 0;
}
