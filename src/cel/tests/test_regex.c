/* test_regex.c - RE2's syntax as Go reads it, and the bounds of matching. */
#include "cel/functions/regex.h"

#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "cel/value/build.h"
#include "cel/value/cel_value.h"
#include "support/dvtest.h"

static struct dv_cel_regex *read_regex(dv_str pattern, struct dv_arena *arena)
{
    struct dv_cel_val error;

    return dv_cel_regex_new(pattern, arena, &error);
}

/* `what` n times, into the arena. */
static dv_str repeat(const char *what, size_t n, struct dv_arena *arena)
{
    size_t size = strlen(what);
    char *p = dv_arena_alloc_array(arena, n * size + 1, 1, 1);

    for (size_t i = 0; i < n * size; i++)
        p[i] = what[i % size];
    return (dv_str){p, n * size};
}

static void reads_what_go_reads(void **state)
{
    /* NULL: refused. Else what of the text matches first, as Go says. */
    static const struct {
        const char *pattern, *text, *found;
    } rows[] = {
        {"\\p\xc3\xa9",           "",          NULL      }, /* a character cut in two never ended */
        {"\\P\xc3\xa9",           "",          NULL      },
        {"[\\p\xf0\x9d\x92\xb3]", "",          NULL      },
        {"a\\p\xe2\x84\xaa*",     "",          NULL      },
        {"\\p",                   "",          NULL      },
        {"\\P",                   "",          NULL      },
        {"[\\p",                  "",          NULL      },
        {"\\p{",                  "",          NULL      },
        {"\\p{\xc3\xa9}",         "",          NULL      },
        {"\\p{}",                 "",          NULL      },
        {"\\p^",                  "",          NULL      },
        {"\\pX",                  "",          NULL      },
        {"\\p{Nowhere}",          "",          NULL      },
        {"\\p{greek}",            "",          NULL      },
        {"\\p{L&}",               "",          NULL      },
        {"\\p{bidi_class:L}",     "",          NULL      },
        {"\\pLu",                 "zux",       "zu"      },
        {"\\p{Lu}+",              "abCDe",     "CD"      },
        {"\\p{^Greek}",           "\xce\xb1z", "z"       },
        {"[\\P{Greek}]",          "\xce\xb1z", "z"       },
        {"\\p{Any}",              "x",         "x"       },
        {"[\\d-z]+",              "a1-z",      "1-z"     },
        {"[a-\\d]",               "",          NULL      },
        {"[z-a]",                 "",          NULL      },
        {"[:alpha:]+",            "xalpha",    "alpha"   },
        {"[[:]]",                 "[]",        "[]"      },
        {"[[:alpha:][:digit:]]+", "-a1",       "a1"      },
        {"[[:alfa:]]",            "",          NULL      },
        {"[[.a.]]",               ".]",        ".]"      },
        {"[]a]+",                 "x]a",       "]a"      },
        {"[]",                    "",          NULL      },
        {"[a",                    "",          NULL      },
        {"[a-",                   "",          NULL      },
        {"[\\",                   "",          NULL      },
        {"\\",                    "",          NULL      },
        {"\\\xc3\xa9",            "",          NULL      },
        {"\\_",                   "a_",        "_"       },
        {"\\Q\\E*",               "",          NULL      },
        {"\\Qa.b\\E+",            "xa.bb",     "a.bb"    },
        {"\\Q\xc3\xa9",           "\xc3\xa9",  "\xc3\xa9"},
        {"^*a",                   "ba",        "a"       },
        {"\\b+a",                 "ba a",      "a"       },
        {"(?)a",                  "a",         "a"       },
        {"(?i-)a",                "",          NULL      },
        {"(?=a)",                 "",          NULL      },
        {"(?P<\xc3\xa9>a)",       "",          NULL      },
        {"(*UTF)a",               "",          NULL      },
        {"a*+",                   "",          NULL      },
        {"a{1001}",               "",          NULL      },
        {"(a{100}){11}",          "",          NULL      },
        {"((a{1000}){0}){2}",     "a",         ""        },
        {"a{,2}",                 "a{,2}",     "a{,2}"   },
        {"\xff",                  "",          NULL      },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        dv_str text = dv_str_from_c(rows[i].text);
        struct dv_cel_regex *regex = read_regex(dv_str_from_c(rows[i].pattern), arena);
        size_t start;
        size_t end;

        if ((regex != NULL) != (rows[i].found != NULL))
            fail_msg("%s: %s", rows[i].pattern, regex ? "taken" : "refused");
        if (!regex)
            continue;
        assert_int_equal(dv_cel_regex_find(regex, text, 0, dv_cel_matcher_new(arena), &start, &end),
                         DV_CEL_MATCH_YES);
        if (!dv_str_eq(dv_str_slice(text, start, end), dv_str_from_c(rows[i].found)))
            fail_msg("%s: found [%zu, %zu)", rows[i].pattern, start, end);
    }
}

/* Every character behind every beginning: each ends in a regular expression or in an error. */
static void ends_before_any_character(void **state)
{
    static const char *const starts[] = {"\\",  "\\p",  "\\P", "\\p{",  "\\x",   "\\x{",
                                         "\\Q", "[",    "[^",  "[a-",   "[\\",   "[\\p",
                                         "[[:", "[[:^", "(",   "(?",    "(?P<a", "(?i",
                                         "a{",  "a{1,", "a*",  "\\Q\\", "[a-\\", "(?i-"};
    static const char *const ends[] = {"", "a", ")", "]", "}", ":]"};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(starts); i++)
        for (size_t k = 0; k < DV_COUNT(ends); k++)
            for (uint32_t c = 0; c < 0x3000; c += c < 0x100 ? 1 : 0x3f) {
                DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
                struct dv_cel_build pattern = {.arena = arena};

                dv_cel_build_add(&pattern, dv_str_from_c(starts[i]));
                dv_cel_build_code_point(&pattern, c);
                dv_cel_build_add(&pattern, dv_str_from_c(ends[k]));
                (void)read_regex((dv_str){pattern.p, pattern.n}, arena); /* either is fine */
            }
}

static void refuses_what_is_too_large(void **state)
{
    static const char *const pieces[] = {"a", "[[:", "(a{10}){100}", "\\Q", "(", "\\pL", "^*"};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(pieces); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

        assert_null(read_regex(repeat(pieces[i], 40000, arena), arena));
    }
}

static void tells_what_backtracking_cannot(void **state)
{
    static const struct {
        const char *pattern, *text;
        enum dv_cel_match match;
    } rows[] = {
        {"(a+)+$",        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
         DV_CEL_MATCH_NO                                                                                       },
        {"(a|aa)+$",      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
         DV_CEL_MATCH_NO                                                                                       },
        {"^(a|a?)+$",     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
         DV_CEL_MATCH_NO                                                                                       },
        {"^(\\w+\\s?)*$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
         DV_CEL_MATCH_NO                                                                                       },
        {"(?m)(a|aa)+b$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\naaaaaaaaaaaaaaaaaaaaaaaaaac",
         DV_CEL_MATCH_YES                                                                                      },
        {"(a|aa)+b$",     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\naaaaaaaaaaaaaaaaaaaaaaaaaac",
         DV_CEL_MATCH_NO                                                                                       },
        {"(a?){25}a{25}", "aaaaaaaaaaaaaaaaaaaaaaaaa",                                         DV_CEL_MATCH_YES},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_cel_regex *regex = read_regex(dv_str_from_c(rows[i].pattern), arena);

        assert_non_null(regex);
        if (dv_cel_regex_matches(regex, dv_str_from_c(rows[i].text), dv_cel_matcher_new(arena)) !=
            rows[i].match)
            fail_msg("%s on %s", rows[i].pattern, rows[i].text);
    }
}

/* Each takes milliseconds, and took minutes or worse with the text as long as this without its
 * bound; the limit is far away for loaded machines and sanitizers. */
static void bounds_time_and_memory(void **state)
{
    static const char *const patterns[] = {
        "(a+)+$",       "(a|aa)+$",           "a{1,200}a{1,200}$",      "(a{1,1000})$",
        "(a*)*(a*)*b",  "(a{0,30}){0,30}$",   "((a|b?)*){500}$",        "(.*){10}[x-z]",
        "(\\w+\\s?)*$", "a*?a*?a*?a*?a*?b?$", "(((((a*)*)*)*)*)*[bc]$", ".{0,1000}.{0,1000}[xy]",
        "(?:a*a*a*b|)", "(\\pL{1,900}|x)$",   "(((a{10}){10}){10}|b)$", "[^b]*[^b]*[^b]*[cd]",
    };
    static const size_t lengths[] = {0, 1, 31, 64, 1000, 20000, 32768, 100000, 3000000};
    clock_t start = clock();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(patterns); i++)
        for (size_t k = 0; k < DV_COUNT(lengths); k++) {
            DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
            dv_str text = repeat("a", lengths[k], arena);
            struct dv_cel_regex *regex = read_regex(dv_str_from_c(patterns[i]), arena);
            size_t before = dv_arena_size_bytes(arena);

            assert_non_null(regex);
            (void)dv_cel_regex_matches(regex, text, dv_cel_matcher_new(arena));
            assert_true(dv_arena_size_bytes(arena) - before < (size_t)24 << 20);
        }
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_go_reads),
        cmocka_unit_test(ends_before_any_character),
        cmocka_unit_test(refuses_what_is_too_large),
        cmocka_unit_test(tells_what_backtracking_cannot),
        cmocka_unit_test(bounds_time_and_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
