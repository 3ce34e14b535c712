/* What cannot be seen is escaped, or refused. */
#include <string.h>

#include "base/visible.h"

#include "base/arena.h"
#include "support/dvtest.h"

/* NOLINTBEGIN(misc-misleading-bidirectional): that they mislead is what is tried */
static const struct {
    dv_str text;
    const char *printed; /* NULL: as it is */
} cases[] = {
    {DV_STR_INIT(""),                               NULL             },
    {DV_STR_INIT("gpu-0 \"a\" \\"),                 NULL             },
    {DV_STR_INIT("Gerät 装置 \xf0\x9f\x9a\xa2"), NULL             },
    {DV_STR_INIT("a\0b"),                           "a\\x00b"        },
    {DV_STR_INIT("\033[31mred"),                    "\\x1b[31mred"   },
    {DV_STR_INIT("a\nb\rc\td"),                     "a\\nb\\rc\\td"  },
    {DV_STR_INIT("\x7f"),                           "\\x7f"          },
    {DV_STR_INIT("\xc2\x9b"
                 "31m"),
     "\\u009b31m"                                                    }, /* C1: CSI */
    {DV_STR_INIT("a\xe2\x80\xae"
                 "b"),
     "a\\u202eb"                                                     }, /* override */
    {DV_STR_INIT("\xe2\x81\xa6"),                   "\\u2066"        }, /* isolate */
    {DV_STR_INIT("\xd8\x9c"),                       "\\u061c"        },
    {DV_STR_INIT("\xe2\x80\xa8"),                   "\\u2028"        },
    {DV_STR_INIT("\xef\xbb\xbf"),                   "\\ufeff"        },
    {DV_STR_INIT("\xf3\xa0\x80\x81"),               "\\u{e0001}"     },
    {DV_STR_INIT("\xff\xc3"),                       "\\xff\\xc3"     }, /* not UTF-8 */
    {DV_STR_INIT("\xed\xa0\x80"),                   "\\xed\\xa0\\x80"}, /* a surrogate */
};
/* NOLINTEND(misc-misleading-bidirectional) */

static void what_cannot_be_seen_is_escaped(void **state)
{
    struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str printed = dv_str_visible(cases[i].text, arena);
        dv_str wanted = cases[i].printed ? dv_str_from_c(cases[i].printed) : cases[i].text;

        if (!dv_str_eq(printed, wanted) || dv_str_is_visible(cases[i].text) == !!cases[i].printed)
            fail_msg("case %zu: %.*s", i, DV_FMT(printed));
        assert_true(dv_str_eq(dv_str_visible(printed, arena), printed)); /* again: the same */
    }
    dv_arena_free(arena);
}

static void an_error_is_visible_whatever_it_quotes(void **state)
{
    struct dv_err err;

    (void)state;
    /* NOLINTNEXTLINE(misc-misleading-bidirectional): that it misleads is what is tried */
    (void)dv_fail(&err, DV_UNKNOWN, "driver says: %s", "\033]0;x\a two\nlines \xe2\x80\xae");
    assert_string_equal(err.msg, "driver says: \\x1b]0;x\\x07 two\nlines \\u202e");
    (void)dv_wrap(&err, "outer \x9b");
    assert_string_equal(err.msg, "outer \\x9b: driver says: \\x1b]0;x\\x07 two\nlines \\u202e");
}

static void an_error_of_many_escapes_is_cut(void **state)
{
    char text[400];
    struct dv_err err;

    (void)state;
    memset(text, 1, sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)dv_fail(&err, DV_UNKNOWN, "%s", text);
    assert_in_range(strlen(err.msg), DV_ERR_MSG_BYTES - 8, DV_ERR_MSG_BYTES - 1);
    assert_true(dv_str_is_visible(dv_str_from_c(err.msg)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_seen_is_escaped),
        cmocka_unit_test(an_error_is_visible_whatever_it_quotes),
        cmocka_unit_test(an_error_of_many_escapes_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
