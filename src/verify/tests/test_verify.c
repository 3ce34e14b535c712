#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "claim/claim.h"
#include "support/dvtest.h"
#include "verify/kit/skew.h"
#include "verify/kit/trial.h"
#include "verify/kit/verify_case.h"
#include "verify/runner/case_needs.h"
#include "verify/runner/selection.h"
#include "verify/runner/verify_report.h"
#include "verify/verify.h"

#define TEXT_BYTES_MAX 65536u

/* ---- which cases ---- */

static size_t count(const dv_str *only, size_t n_only, const dv_str *skip, size_t n_skip)
{
    const struct dv_verify_options options = {
        .kind = DV_VERIFY_DRA, .only = only, .n_only = n_only, .skip = skip, .n_skip = n_skip};
    struct dv_selection at = {0};
    size_t n = 0;

    while (dv_selection_next(&options, &at))
        n++;
    return n;
}

static void only_and_skip_choose_cases(void **state)
{
    const dv_str one = DV_STR("prepare.one");
    const dv_str group = DV_STR("prepare.*");
    const dv_str both[] = {one, group};
    size_t n_all = count(NULL, 0, NULL, 0);
    size_t n_group = count(&group, 1, NULL, 0);

    (void)state;
    assert_int_equal(count(&one, 1, NULL, 0), 1);
    assert_true(n_group > 10 && n_group < n_all);
    assert_int_equal(count(both, 2, NULL, 0), n_group); /* none twice */
    assert_int_equal(count(NULL, 0, &group, 1), n_all - n_group);
    assert_int_equal(count(&group, 1, &one, 1), n_group - 1);
    assert_int_equal(count(&one, 1, &group, 1), 0);
}

static void tells_a_pattern_that_no_case_has(void **state)
{
    static const struct {
        const char *pattern;
        bool is_strange;
    } rows[] = {
        {"prepare.one",    false},
        {"prepare*",       false},
        {"*",              false},
        {"allocate.one",   true }, /* of device plugins */
        {"prepare.on",     true },
        {"prepare.one.*",  true },
        {"prepare.*.more", true },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        dv_str pattern = dv_str_from_c(rows[i].pattern);
        const struct dv_verify_options only = {
            .kind = DV_VERIFY_DRA, .only = &pattern, .n_only = 1};
        const struct dv_verify_options skip = {
            .kind = DV_VERIFY_DRA, .skip = &pattern, .n_skip = 1};

        assert_int_equal(dv_selection_stranger(&only).n > 0, rows[i].is_strange);
        assert_int_equal(dv_selection_stranger(&skip).n > 0, rows[i].is_strange);
    }
}

static void requires_cases_and_words_apart(void **state)
{
    const dv_str required[] = {DV_STR("slices"), DV_STR("prepare.cdi*"), DV_STR("health.first")};
    const struct dv_verify_options options = {
        .kind = DV_VERIFY_DRA, .required = required, .n_required = DV_COUNT(required)};
    const dv_str strange = DV_STR("prepare.no-such");
    const struct dv_verify_options wrong = {
        .kind = DV_VERIFY_DRA, .required = &strange, .n_required = 1};

    (void)state;
    assert_true(dv_selection_is_required(&options, "prepare.cdi-ids"));
    assert_true(dv_selection_is_required(&options, "health.first"));
    assert_false(dv_selection_is_required(&options, "health.names"));
    assert_false(dv_selection_is_required(&options, "slices.own")); /* the word is no beginning */
    assert_int_equal(dv_selection_stranger(&options).n, 0);
    assert_true(dv_str_eq(dv_selection_stranger(&wrong), strange));
}

static void ids_are_unique_and_texts_are_there(void **state)
{
    (void)state;
    for (int kind = 0; kind < (int)DV_VERIFY_N_KINDS; kind++) {
        const struct dv_verify_options options = {.kind = (enum dv_verify_kind)kind};
        struct dv_selection at = {0};
        const struct dv_verify_case *test;

        while ((test = dv_selection_next(&options, &at))) {
            struct dv_selection later = at;
            const struct dv_verify_case *other;

            assert_true(strlen(test->proves) > 10 && strlen(test->matters) > 10 &&
                        strlen(test->protocol) > 10);
            while ((other = dv_selection_next(&options, &later)))
                assert_string_not_equal(test->id, other->id);
        }
    }
}

/* ---- which cases apply ---- */

static const struct dv_verify_hook hooks[] = {
    {DV_STR_INIT("start"), DV_STR_INIT("a")},
    {DV_STR_INIT("stop"),  DV_STR_INIT("b")},
    {DV_STR_INIT("kill"),  DV_STR_INIT("c")},
};

static void tells_why_a_case_does_not_apply(void **state)
{
    static const struct dv_facts plain = {.n_devices = 1};
    static const struct dv_facts rich = {.n_devices = 2, .has_slices = true, .has_health = true};
    static const struct {
        unsigned needs;
        const char *exec;
        const char *attach;
        size_t n_hooks;
        const struct dv_facts *facts;
        const char *words; /* of the reason; NULL: it applies */
    } rows[] = {
        {0,                                   "x",            "",   0, &plain, NULL                },
        {0,                                   "x",            "",   0, NULL,   "see probe"         },
        {DV_NEEDS_SLICES,                     "x",            "",   0, &plain, "no slices"         },
        {DV_NEEDS_SLICES | DV_NEEDS_TWO,      "x",            "",   0, &rich,  NULL                },
        {DV_NEEDS_TWO,                        "x",            "",   0, &plain, "fewer than two"    },
        {DV_NEEDS_INSTANCE,                   "x",            "",   0, &rich,  "{instance}"        },
        {DV_NEEDS_INSTANCE,                   "x {instance}", "",   0, &rich,  NULL                },
        {DV_NEEDS_PROCESS | DV_NEEDS_RESTART, "x",            "",   0, &rich,  NULL                },
        {DV_NEEDS_SLICES,                     "",             "/d", 0, &rich,  NULL                },
        {DV_NEEDS_PROCESS,                    "",             "/d", 3, &rich,  "--exec"            },
        {DV_NEEDS_RESTART,                    "",             "/d", 0, &rich,  "start, stop and"   },
        {DV_NEEDS_RESTART,                    "",             "/d", 2, &rich,  "start, stop and"   },
        {DV_NEEDS_RESTART,                    "",             "/d", 3, &rich,  NULL                },
        {DV_NEEDS_RESTART | DV_NEEDS_PREFER,  "",             "/d", 3, &rich,  "GetPreferredAlloca"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_verify_options options = {.exec = dv_str_from_c(rows[i].exec),
                                                  .attach = dv_str_from_c(rows[i].attach),
                                                  .hooks = hooks,
                                                  .n_hooks = rows[i].n_hooks};
        const struct dv_verify_case test = {.id = "a.case", .needs = rows[i].needs};
        const char *miss = dv_needs_miss(&options, rows[i].facts, &test);

        assert_int_equal(miss == NULL, rows[i].words == NULL);
        if (miss)
            assert_non_null(strstr(miss, rows[i].words));
    }
}

static void refuses_hooks_that_no_case_has(void **state)
{
    static const struct {
        const char *name;
        const char *command;
        const char *attach;
        bool is_good;
    } rows[] = {
        {"healthy", "true",             "",   true },
        {"healthy", "kill -USR1 {pid}", "",   true },
        {"healthy", "kill -USR1 {pid}", "/d", false},
        {"kill",    "systemctl kill x", "/d", true },
        {"healty",  "true",             "",   false},
        {"",        "true",             "",   false},
        {"healthy", "",                 "",   false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_verify_hook hook = {dv_str_from_c(rows[i].name),
                                            dv_str_from_c(rows[i].command)};
        const struct dv_verify_options options = {
            .attach = dv_str_from_c(rows[i].attach), .hooks = &hook, .n_hooks = 1};
        struct dv_err err;

        assert_int_equal(dv_needs_check_hooks(&options, &err), rows[i].is_good);
    }
}

/* Nobody else can see the processes of a driver that runs already, or start a second one. */
static void only_cases_that_look_into_the_process_need_one_of_ours(void **state)
{
    size_t n_left[DV_VERIFY_N_KINDS] = {0};
    static const struct dv_facts all = {.n_devices = 2,
                                        .has_prefer = true,
                                        .has_prestart = true,
                                        .has_health = true,
                                        .has_slices = true,
                                        .is_classic = true,
                                        .has_watcher = true};

    (void)state;
    for (int kind = 0; kind < (int)DV_VERIFY_N_KINDS; kind++) {
        const struct dv_verify_options options = {.kind = (enum dv_verify_kind)kind,
                                                  .attach = DV_STR("/d"),
                                                  .hooks = hooks,
                                                  .n_hooks = DV_COUNT(hooks)};
        struct dv_selection at = {0};
        const struct dv_verify_case *test;

        while ((test = dv_selection_next(&options, &at)))
            n_left[kind] += !dv_needs_miss(&options, &all, test);
    }
    assert_true(n_left[DV_VERIFY_DEVICE_PLUGIN] >= 54);
    assert_true(n_left[DV_VERIFY_DRA] >= 66);
}

/* ---- reports ---- */

static struct dv_verify_result results[] = {
    {.id = "a.good",   .proves = "it is good", .outcome = DV_PASSED, .took_ms = 1234            },
    {.id = "a.bad",
     .proves = "it is bad",
     .outcome = DV_FAILED,
     .reason = DV_STR_INIT("<\"a\" & 'b'>\n\x1b[31m\xff]]>")                                    },
    {.id = "a.left",
     .proves = "it is left out",
     .outcome = DV_SKIPPED,
     .reason = DV_STR_INIT("no # hash\nok 9")                                                   },
    {.id = "a.broken", .proves = "-",          .outcome = DV_BROKEN, .reason = DV_STR_INIT("us")},
};

static dv_str print(void (*print_report)(const struct dv_verify_report *, struct dv_buf *),
                    struct dv_buf *buf)
{
    static const struct dv_verify_options options = {.kind = DV_VERIFY_DRA};
    const struct dv_verify_report report = {.options = &options,
                                            .name = DV_STR("x\"y"),
                                            .results = results,
                                            .n_results = DV_COUNT(results),
                                            .took_ms = 61005};

    dv_buf_init(buf, TEXT_BYTES_MAX);
    print_report(&report, buf);
    return dv_buf_str(buf);
}

static bool has(dv_str text, const char *part)
{
    return dv_str_find(text, dv_str_from_c(part)) < text.n;
}

static void junit_escapes_what_xml_cannot_have(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str text = print(dv_report_print_junit, &buf);

    (void)state;
    assert_true(has(text, "tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"61.005\""));
    assert_true(has(text, "name=\"a.good\" time=\"1.234\"/>"));
    assert_true(has(text, "&lt;&quot;a&quot; &amp; 'b'"));
    assert_false(has(text, "\x1b"));
    assert_false(has(text, "\xff"));
    assert_true(has(text, "<error message=\"us\"/>"));
}

static void tap_has_one_line_a_case(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str text = print(dv_report_print_tap, &buf);
    size_t n_ok = 0;
    dv_str line;

    (void)state;
    assert_true(dv_str_starts_with(text, DV_STR("TAP version 13\n1..4\nok 1 - a.good\n")));
    assert_true(has(text, "not ok 2 - a.bad\n"));
    assert_true(has(text, "ok 3 - a.left # SKIP "));
    assert_true(has(text, "not ok 4 - a.broken\n"));
    while (text.n > 0 && dv_str_split(&text, '\n', &line))
        n_ok +=
            dv_str_starts_with(line, DV_STR("ok ")) || dv_str_starts_with(line, DV_STR("not ok "));
    assert_int_equal(n_ok, 4); /* what a driver says makes none of its own */
}

static void json_escapes_texts(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str text = print(dv_report_print_json, &buf);

    (void)state;
    assert_true(has(text, "{\"kind\":\"dra\",\"name\":\"x\\\"y\",\"passed\":1,\"failed\":1,"
                          "\"skipped\":1,\"broken\":1,\"ms\":61005,"));
    assert_true(has(text, "\\\"a\\\" & 'b'"));
    assert_false(has(text, "\x1b"));
    assert_true(has(text, "\"id\":\"a.left\",\"outcome\":\"skipped\""));
}

/* ---- releases ---- */

static void releases_choose_services(void **state)
{
    static const struct {
        const char *release;
        const char *version; /* that the driver lists */
        bool is_taken;
        enum dv_dra_service service;
    } rows[] = {
        {"1.31", "1.0.0",             true,  DV_DRA_V1ALPHA3},
        {"1.31", "v1.DRAPlugin",      false, DV_DRA_V1      },
        {"1.32", "v1beta1.DRAPlugin", true,  DV_DRA_V1BETA1 },
        {"1.33", "1.0.0",             true,  DV_DRA_V1ALPHA3},
        {"1.34", "v1.DRAPlugin",      true,  DV_DRA_V1      },
        {"1.34", "v1beta1.DRAPlugin", true,  DV_DRA_V1BETA1 },
        {"1.36", "1.0.0",             false, DV_DRA_V1      },
        {"",     "v1.DRAPlugin",      true,  DV_DRA_V1      },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_skew *release = dv_skew_find(dv_str_from_c(rows[i].release));
        dv_str version = dv_str_from_c(rows[i].version);
        enum dv_dra_service service;

        assert_non_null(release);
        assert_int_equal(dv_skew_choose(release, &version, 1, &service), rows[i].is_taken);
        if (rows[i].is_taken)
            assert_int_equal(service, rows[i].service);
    }
    assert_null(dv_skew_find(DV_STR("1.30")));
    assert_false(dv_skew_has_api(dv_skew_find(DV_STR("1.32")), DV_STR("v1")));
    assert_true(dv_skew_has_api(dv_skew_find(DV_STR("1.33")), DV_STR("v1beta2")));
    assert_false(dv_skew_find(DV_STR("1.33"))->has_health);
}

/* ---- placeholders ---- */

static void placeholders_are_replaced_once(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_trial trial = {
        .arena = arena,
        .node = DV_STR("{cdi}"),
        .paths = {.cdi = DV_STR("/c"), .run = DV_STR("/r")}
    };
    static const struct {
        const char *text;
        const char *expanded;
    } rows[] = {
        {"plain",                 "plain"              },
        {"a {cdi}{run} b",        "a /c/r b"           },
        {"{node}",                "{cdi}"              }, /* values are not read again */
        {"{instance}-{instance}", "i1-i1"              },
        {"{unknown} ${HOME} {",   "{unknown} ${HOME} {"},
        {"{{cdi}}",               "{/c}"               },
        {"",                      ""                   },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_str(dv_trial_expand(&trial, dv_str_from_c(rows[i].text), DV_STR("i1")),
                   rows[i].expanded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_and_skip_choose_cases),
        cmocka_unit_test(tells_a_pattern_that_no_case_has),
        cmocka_unit_test(requires_cases_and_words_apart),
        cmocka_unit_test(ids_are_unique_and_texts_are_there),
        cmocka_unit_test(tells_why_a_case_does_not_apply),
        cmocka_unit_test(refuses_hooks_that_no_case_has),
        cmocka_unit_test(only_cases_that_look_into_the_process_need_one_of_ours),
        cmocka_unit_test(junit_escapes_what_xml_cannot_have),
        cmocka_unit_test(tap_has_one_line_a_case),
        cmocka_unit_test(json_escapes_texts),
        cmocka_unit_test(releases_choose_services),
        cmocka_unit_test(placeholders_are_replaced_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
