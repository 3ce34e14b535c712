#include "support/dvtest.h"

#include <string.h>

#include "cli/cli.h"

static void only_a_terminal_of_someone_who_wants_them_gets_colours(void **state)
{
    static const struct {
        bool is_terminal;
        const char *no_color;
        const char *term;
        bool has_colours;
    } cases[] = {
        {true,  NULL, "xterm", true },
        {true,  "",   "xterm", true }, /* empty is as unset */
        {true,  "1",  "xterm", false},
        {true,  "0",  "xterm", false}, /* whatever it is set to */
        {true,  NULL, "dumb",  false},
        {true,  NULL, "",      false},
        {true,  NULL, NULL,    false},
        {false, NULL, "xterm", false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_int_equal(dv_cli_may_colour(cases[i].is_terminal, cases[i].no_color, cases[i].term),
                         cases[i].has_colours);
}

static void a_cell_is_coloured_as_a_whole_or_not(void **state)
{
    (void)state;
    assert_string_equal(dv_cli_colour_of("unhealthy"), DV_COLOUR_TROUBLE);
    assert_true(strlen(dv_cli_colour_of("healthy")) > 0);
    assert_string_not_equal(dv_cli_colour_of("healthy"), dv_cli_colour_of("unhealthy"));
    assert_string_equal(dv_cli_colour_of("healthy-pod"), "");
    assert_string_equal(dv_cli_colour_of("-"), "");
    assert_string_equal(dv_cli_colour_of(""), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_terminal_of_someone_who_wants_them_gets_colours),
        cmocka_unit_test(a_cell_is_coloured_as_a_whole_or_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
