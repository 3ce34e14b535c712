#include "cel/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/arena.h"
#include "cel/build.h"
#include "cel/value.h"

/* Backtracking is what RE2 does not need: past so many steps, or so much memory, we give up. A
 * typical selector takes a few dozen. */
#define MATCH_LIMIT 500000u
#define HEAP_LIMIT_KIB 4096u

struct dv_cel_regex {
    pcre2_code *code;
};

struct dv_cel_matcher {
    pcre2_match_context *context;
    pcre2_match_data *data;
};

static void *allocate(PCRE2_SIZE n, void *arena)
{
    return dv_arena_alloc_raw(arena, n, _Alignof(max_align_t));
}

static void forget(void *p, void *arena)
{
    (void)p; /* goes with the arena */
    (void)arena;
}

static pcre2_code *compile(dv_str pattern, struct dv_arena *arena)
{
    pcre2_general_context *general = pcre2_general_context_create(allocate, forget, arena);
    pcre2_compile_context *context = pcre2_compile_context_create(general);
    PCRE2_SIZE at;
    int code;

    (void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    (void)pcre2_set_bsr(context, PCRE2_BSR_ANYCRLF);
    return pcre2_compile((PCRE2_SPTR)(pattern.p ? pattern.p : ""), pattern.n,
                         PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C |
                             PCRE2_NO_DOTSTAR_ANCHOR,
                         &code, &at, context);
}

struct dv_cel_regex *dv_cel_regex_new(dv_str pattern, struct dv_arena *arena,
                                      struct dv_cel_val *error)
{
    struct dv_cel_regex *regex = DV_NEW(arena, struct dv_cel_regex);
    struct dv_cel_build translated = {.arena = arena};
    const char *problem = dv_cel_regex_translate(pattern, &translated);

    if (!problem) {
        regex->code = compile((dv_str){translated.p, translated.n}, arena);
        if (regex->code)
            return regex;
        problem = "not supported";
    }
    *error = dv_cel_error_printf(arena, "error parsing regexp: %s: `%.*s`", problem,
                                 DV_FMT(dv_str_slice(pattern, 0, 100)));
    return NULL;
}

struct dv_cel_matcher *dv_cel_matcher_new(struct dv_arena *arena)
{
    struct dv_cel_matcher *matcher = DV_NEW(arena, struct dv_cel_matcher);
    pcre2_general_context *general = pcre2_general_context_create(allocate, forget, arena);

    matcher->context = pcre2_match_context_create(general);
    matcher->data = pcre2_match_data_create(1, general);
    (void)pcre2_set_match_limit(matcher->context, MATCH_LIMIT);
    (void)pcre2_set_heap_limit(matcher->context, HEAP_LIMIT_KIB);
    return matcher;
}

enum dv_cel_match dv_cel_regex_find(const struct dv_cel_regex *regex, dv_str text, size_t from,
                                    struct dv_cel_matcher *matcher, size_t *start, size_t *end)
{
    PCRE2_SIZE *range;
    int rc = pcre2_match(regex->code, (PCRE2_SPTR)(text.p ? text.p : ""), text.n, from, 0,
                         matcher->data, matcher->context);

    if (rc == PCRE2_ERROR_NOMATCH)
        return DV_CEL_MATCH_NO;
    if (rc < 0)
        return DV_CEL_MATCH_LIMIT;
    range = pcre2_get_ovector_pointer(matcher->data);
    *start = range[0];
    *end = range[1];
    return DV_CEL_MATCH_YES;
}
