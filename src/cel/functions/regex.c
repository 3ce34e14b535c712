#include "cel/functions/regex.h"

#include <assert.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/arena.h"
#include "cel/value/build.h"
#include "cel/value/cel_value.h"

/* Backtracking is what RE2 does not need: past so many steps (some milliseconds), or so much
 * memory, we give up. A typical selector takes a few dozen. PCRE2 begins to count again at each
 * character where a match could start, so each gets a share. A longer text is not looked at. */
#define STEPS_MAX 200000u
#define STEPS_FROM_ONE_START_MIN 8u
#define STEPS_FROM_ONE_START_MAX 50000u
/* A match is tried with few steps first: PCRE2 does not tell how many it took, only that they were
 * not enough. */
#define STEPS_FACTOR 8u
#define HEAP_LIMIT_KIB 4096u
#define TEXT_BYTES_MAX (32u << 10)
/* What backtracking cannot tell, as with (a+)+$, is asked again without it: all states at once,
 * character by character. PCRE2 compares each state with all others, hence their square. */
#define CHARACTERS_TIMES_SQUARED_STATES_MAX 16000000u
#define STATES_MAX 1000u
#define COMPARISONS_A_STEP 256u /* few texts have so many states at once */
#define INTS_FOR_A_STATE 6u     /* three, in the list of this character and in that of the next */
/* What is longer may be too large for the reference. */
#define PLAIN_BYTES_MAX 256u

struct dv_cel_regex {
    pcre2_code *code; /* NULL: it is plain */
    dv_str translated;
    /* A plain pattern is a text to look for, without anything that means something else. */
    dv_str plain;
    bool is_at_start; /* ^ is before it */
    bool is_at_end;   /* $ is behind it */
};

struct dv_cel_matcher {
    struct dv_arena *arena;
    pcre2_match_context *context;
    pcre2_match_data *data;
    uint64_t n_steps;
};

static void *allocate(PCRE2_SIZE n, void *arena)
{
    return dv_arena_alloc_raw(arena, n, _Alignof(max_align_t));
}

static void forget(void *p, void *arena)
{
    (void)p; /* the arena frees it */
    (void)arena;
}

static pcre2_code *compile(dv_str pattern, uint32_t options, struct dv_arena *arena)
{
    pcre2_general_context *general = pcre2_general_context_create(allocate, forget, arena);
    pcre2_compile_context *context = pcre2_compile_context_create(general);
    PCRE2_SIZE at;
    int code;

    (void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    (void)pcre2_set_bsr(context, PCRE2_BSR_ANYCRLF);
    return pcre2_compile((PCRE2_SPTR)(pattern.p ? pattern.p : ""), pattern.n,
                         PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_DOTSTAR_ANCHOR |
                             /* Nobody asks for groups, and they make each step back take more
                              * memory. */
                             PCRE2_NO_AUTO_CAPTURE |
                             /* A possessive a{1,1000} would count as one step, however much it
                              * reads. */
                             PCRE2_NO_AUTO_POSSESS | options,
                         &code, &at, context);
}

static bool parse_plain(dv_str pattern, struct dv_cel_regex *regex)
{
    bool is_at_start = dv_str_take(&pattern, '^');
    bool is_at_end = pattern.n > 0 && pattern.p[pattern.n - 1] == '$';

    if (is_at_end)
        pattern.n--;
    if (pattern.n == 0 || pattern.n > PLAIN_BYTES_MAX || !dv_str_is_utf8(pattern))
        return false;
    for (size_t i = 0; i < pattern.n; i++)
        if (pattern.p[i] == '\0' || strchr("\\.+*?()|[]{}^$", pattern.p[i]))
            return false;
    regex->plain = pattern;
    regex->is_at_start = is_at_start;
    regex->is_at_end = is_at_end;
    return true;
}

/* Like dv_cel_regex_find, for a plain pattern. */
static bool find_plain(const struct dv_cel_regex *regex, dv_str text, size_t from, size_t *start,
                       size_t *end)
{
    size_t n = regex->plain.n;

    if (text.n - from < n)
        return false;
    *start = from;
    if (regex->is_at_end)
        *start = text.n - n;
    else if (!regex->is_at_start)
        *start = from + dv_str_find(dv_str_slice(text, from, text.n), regex->plain);
    *end = *start + n;
    return (!regex->is_at_start || *start == 0) && *end <= text.n &&
           memcmp(text.p + *start, regex->plain.p, n) == 0;
}

struct dv_cel_regex *dv_cel_regex_new(dv_str pattern, struct dv_arena *arena,
                                      struct dv_cel_val *error)
{
    struct dv_cel_regex *regex = DV_NEW(arena, struct dv_cel_regex);
    struct dv_cel_build translated = {.arena = arena};
    const char *problem;

    if (parse_plain(pattern, regex)) {
        regex->plain = dv_str_copy(regex->plain, arena);
        return regex;
    }
    problem = dv_cel_regex_translate(pattern, &translated);
    if (!problem) {
        regex->translated = (dv_str){translated.p, translated.n};
        regex->code = compile(regex->translated, PCRE2_DOLLAR_ENDONLY, arena);
        if (regex->code)
            return regex;
        problem = "not supported";
    }
    *error = dv_cel_error_printf(arena, "error parsing regexp: %s: `%.*s`", problem,
                                 DV_FMT(dv_str_slice(pattern, 0, 100)));
    return NULL;
}

bool dv_cel_regex_needs_matcher(const struct dv_cel_regex *regex)
{
    return regex->code != NULL;
}

struct dv_cel_matcher *dv_cel_matcher_new(struct dv_arena *arena)
{
    struct dv_cel_matcher *matcher = DV_NEW(arena, struct dv_cel_matcher);
    pcre2_general_context *general = pcre2_general_context_create(allocate, forget, arena);

    matcher->arena = arena;
    matcher->context = pcre2_match_context_create(general);
    matcher->data = pcre2_match_data_create(1, general);
    (void)pcre2_set_heap_limit(matcher->context, HEAP_LIMIT_KIB);
    return matcher;
}

static PCRE2_SPTR bytes_of(dv_str text)
{
    return (PCRE2_SPTR)(text.p ? text.p : "");
}

static uint32_t steps_from_one_start(size_t n_starts)
{
    size_t steps = STEPS_MAX / n_starts;

    if (steps < STEPS_FROM_ONE_START_MIN)
        return STEPS_FROM_ONE_START_MIN;
    return steps < STEPS_FROM_ONE_START_MAX ? (uint32_t)steps : STEPS_FROM_ONE_START_MAX;
}

/* The number of states for a text of this length: the root of its share of the limit. */
static size_t states_for(size_t n_characters)
{
    size_t n = 0;

    while (n < STATES_MAX &&
           (n + 1) * (n + 1) <= CHARACTERS_TIMES_SQUARED_STATES_MAX / n_characters)
        n++;
    return n;
}

/* Whether there is a match at or after byte `from`, found without backtracking. */
static enum dv_cel_match has_match(const struct dv_cel_regex *regex, dv_str text, size_t from,
                                   struct dv_cel_matcher *matcher)
{
    int space[2 + STATES_MAX * INTS_FOR_A_STATE];
    struct dv_cel_build anywhere = {.arena = matcher->arena};
    pcre2_code *code;
    int rc;

    /* With PCRE2_DOLLAR_ENDONLY this matcher does not find the ends of lines (PCRE2 10.42).
     * Without, $ is also before a newline at the end, of which there is none then. */
    if (text.n > 0 && text.p[text.n - 1] == '\n')
        return DV_CEL_MATCH_LIMIT;
    /* A pattern that begins with anything takes one pass over the text, instead of one from each of
     * its characters. */
    dv_cel_build_add(&anywhere, DV_STR("(?s:.)*?(?:"));
    dv_cel_build_add(&anywhere, regex->translated);
    dv_cel_build_add(&anywhere, DV_STR(")"));
    code = compile((dv_str){anywhere.p, anywhere.n}, PCRE2_ANCHORED, matcher->arena);
    if (!code)
        return DV_CEL_MATCH_LIMIT; /* the pattern has become too long by these few bytes */
    matcher->n_steps += CHARACTERS_TIMES_SQUARED_STATES_MAX / COMPARISONS_A_STEP;
    (void)pcre2_set_match_limit(matcher->context, steps_from_one_start(text.n + 1));
    rc = pcre2_dfa_match(code, bytes_of(text), text.n, from, PCRE2_DFA_SHORTEST, matcher->data,
                         matcher->context, space,
                         2 + states_for(text.n - from + 1) * INTS_FOR_A_STATE);
    if (rc == PCRE2_ERROR_NOMATCH)
        return DV_CEL_MATCH_NO;
    return rc >= 0 ? DV_CEL_MATCH_YES : DV_CEL_MATCH_LIMIT;
}

static int match(const struct dv_cel_regex *regex, dv_str text, size_t from,
                 struct dv_cel_matcher *matcher)
{
    uint32_t most = steps_from_one_start(text.n + 1);
    uint32_t limit = STEPS_FROM_ONE_START_MIN;

    for (;;) {
        int rc;

        (void)pcre2_set_match_limit(matcher->context, limit);
        /* The text is checked to be UTF-8 by the first search; searches behind a match need not do
         * it again. */
        rc = pcre2_match(regex->code, bytes_of(text), text.n, from,
                         from > 0 ? PCRE2_NO_UTF_CHECK : 0, matcher->data, matcher->context);
        if (rc != PCRE2_ERROR_MATCHLIMIT)
            return rc;
        matcher->n_steps += limit + (uint64_t)limit * (text.n - from) / STEPS_FACTOR;
        if (limit == most)
            return rc;
        limit = limit < most / STEPS_FACTOR ? limit * STEPS_FACTOR : most;
    }
}

uint64_t dv_cel_matcher_take_steps(struct dv_cel_matcher *matcher)
{
    uint64_t n = matcher->n_steps;

    matcher->n_steps = 0;
    return n;
}

enum dv_cel_match dv_cel_regex_find(const struct dv_cel_regex *regex, dv_str text, size_t from,
                                    struct dv_cel_matcher *matcher, size_t *start, size_t *end)
{
    PCRE2_SIZE *range;
    int rc;

    assert(from <= text.n);
    if (!regex->code)
        return find_plain(regex, text, from, start, end) ? DV_CEL_MATCH_YES : DV_CEL_MATCH_NO;
    if (text.n > TEXT_BYTES_MAX)
        return DV_CEL_MATCH_LIMIT;
    rc = match(regex, text, from, matcher);
    if (rc == PCRE2_ERROR_NOMATCH)
        return DV_CEL_MATCH_NO;
    if (rc < 0)
        return has_match(regex, text, from, matcher) == DV_CEL_MATCH_NO ? DV_CEL_MATCH_NO
                                                                        : DV_CEL_MATCH_LIMIT;
    range = pcre2_get_ovector_pointer(matcher->data);
    *start = range[0];
    *end = range[1];
    return DV_CEL_MATCH_YES;
}

enum dv_cel_match dv_cel_regex_matches(const struct dv_cel_regex *regex, dv_str text,
                                       struct dv_cel_matcher *matcher)
{
    size_t start;
    size_t end;
    enum dv_cel_match match = dv_cel_regex_find(regex, text, 0, matcher, &start, &end);

    if (match == DV_CEL_MATCH_LIMIT && text.n <= TEXT_BYTES_MAX)
        match = has_match(regex, text, 0, matcher);
    return match;
}
