/* lib_regex.c - matches, find, findAll. */
#include <assert.h>

#include "base/vec.h"
#include "cel/check/decls.h"
#include "cel/functions/regex.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_value.h"

#define COMPILED_BYTE_WORK 20u

/* The regular expression of the call: a constant one was made before, another is made now. */
static const struct dv_cel_regex *regex_of(struct dv_cel_run *run, dv_str pattern,
                                           struct dv_cel_val *error)
{
    if (run->regex)
        return run->regex;
    dv_cel_run_work(run, pattern.n * COMPILED_BYTE_WORK);
    return dv_cel_regex_new(pattern, run->arena, error);
}

static struct dv_cel_matcher *matcher_of(struct dv_cel_run *run, const struct dv_cel_regex *regex)
{
    if (!run->matcher && dv_cel_regex_needs_matcher(regex))
        run->matcher = dv_cel_matcher_new(run->arena);
    return run->matcher;
}

static void count_steps(struct dv_cel_run *run)
{
    if (run->matcher)
        dv_cel_run_work(run, dv_cel_matcher_take_steps(run->matcher));
}

static struct dv_cel_val too_long(void)
{
    return dv_cel_error(DV_STR("the regular expression takes too long on this text"));
}

static bool find(struct dv_cel_run *run, const struct dv_cel_regex *regex, dv_str text, size_t from,
                 dv_str *found, struct dv_cel_val *error)
{
    enum dv_cel_match match;
    size_t start;
    size_t end;

    *error = dv_cel_null();
    match = dv_cel_regex_find(regex, text, from, matcher_of(run, regex), &start, &end);
    count_steps(run);
    switch (match) {
    case DV_CEL_MATCH_YES:
        *found = dv_str_slice(text, start, end);
        return true;
    case DV_CEL_MATCH_LIMIT:
        *error = too_long();
        return false;
    case DV_CEL_MATCH_NO:
        break;
    }
    return false;
}

static void fn_matches(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    const struct dv_cel_regex *regex = regex_of(run, args[1].s, out);
    enum dv_cel_match match;

    if (!regex)
        return;
    match = dv_cel_regex_matches(regex, args[0].s, matcher_of(run, regex));
    count_steps(run);
    *out = match == DV_CEL_MATCH_LIMIT ? too_long() : dv_cel_bool(match == DV_CEL_MATCH_YES);
}

static void fn_find(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    const struct dv_cel_regex *regex = regex_of(run, args[1].s, out);
    dv_str found = DV_STR_NONE;

    if (!regex)
        return;
    (void)find(run, regex, args[0].s, 0, &found, out);
    if (!dv_cel_is_error(out))
        *out = dv_cel_string(found);
}

/* Finds the first `max` matches that do not overlap; negative: all. An empty match right behind
 * another does not count. */
static void find_all(struct dv_cel_run *run, const struct dv_cel_val *args, int64_t max,
                     struct dv_cel_val *out)
{
    const struct dv_cel_regex *regex = regex_of(run, args[1].s, out);
    DV_VEC(struct dv_cel_val) matches = {0};
    struct dv_cel_val *elements;
    dv_str text = args[0].s;
    size_t from = 0;
    size_t last_end = SIZE_MAX;
    dv_str found;

    if (!regex)
        return;
    while (from <= text.n && (max < 0 || matches.n < (uint64_t)max) &&
           find(run, regex, text, from, &found, out) && !run->stop) {
        size_t start = text.p ? (size_t)(found.p - text.p) : 0;
        size_t before = from;

        if (found.n > 0 || start != last_end)
            *dv_vec_add_in(&matches, run->arena) = dv_cel_string(found);
        last_end = start + found.n;
        from = last_end;
        if (found.n == 0) {
            size_t n = dv_str_utf8_char(dv_str_slice(text, from, text.n));

            from += n > 0 ? n : 1;
        }
        assert(from > before); /* otherwise the loop would never end */
    }
    if (dv_cel_is_error(out))
        return;
    *out = dv_cel_list_new(matches.n, run->arena, &elements);
    for (size_t i = 0; i < matches.n; i++)
        elements[i] = matches.v[i];
}

static void fn_find_all(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    *out = dv_cel_null();
    find_all(run, args, -1, out);
}

static void fn_find_all_n(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    *out = dv_cel_null();
    find_all(run, args, args[2].i, out);
}

static const struct dv_cel_overload rows[] = {
    {"matches", "ss>b",    fn_matches,    DV_CEL_COST_ONE,     0},
    {"matches", ".ss>b",   fn_matches,    DV_CEL_COST_MATCHES, 0},
    {"find",    ".ss>s",   fn_find,       DV_CEL_COST_FIND,    0},
    {"findAll", ".ss>Ls",  fn_find_all,   DV_CEL_COST_FIND,    0},
    {"findAll", ".ssi>Ls", fn_find_all_n, DV_CEL_COST_FIND,    0},
};
const struct dv_cel_lib dv_cel_lib_regex = {rows, DV_COUNT(rows)};
