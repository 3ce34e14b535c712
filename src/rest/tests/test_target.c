#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "rest/rest.h"
#include "rest/target.h"

/* "[a][b]?n=v&" of a target, decoded; or "!" and the error. */
static const char *explain(const char *target, struct dv_buf *text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    dv_str path;
    dv_str query;
    dv_str name;
    dv_str value;

    dv_buf_clear(text);
    if (!dv_rest_target_parse(dv_str_from_c(target), &path, &query, &err)) {
        assert_int_equal(err.code, DV_INVALID_ARGUMENT);
        dv_buf_printf(text, "!%s", err.msg);
        return dv_buf_c(text);
    }
    while (dv_rest_path_next(&path, arena, &value))
        dv_buf_printf(text, "[%.*s]", DV_FMT(value));
    dv_buf_add_char(text, '?');
    while (dv_rest_query_next(&query, arena, &name, &value))
        dv_buf_printf(text, "%.*s=%.*s&", DV_FMT(name), DV_FMT(value));
    return dv_buf_c(text);
}

static void targets_are_split_and_decoded(void **state)
{
    static const struct {
        const char *target;
        const char *want;
    } cases[] = {
        {"/",                                "[]?"                          },
        {"/a",                               "[a]?"                         },
        {"/a/",                              "[a][]?"                       },
        {"//a",                              "[][a]?"                       },
        {"/a%2fb/%2E%2e/c+d",                "[a/b][..][c+d]?"              },
        {"/a?",                              "[a]?"                         },
        {"/a?b",                             "[a]?b=&"                      },
        {"/a?b=",                            "[a]?b=&"                      },
        {"/a?=b",                            "[a]?=b&"                      },
        {"/a?b=c=d&e=%3D%26%3f/?",           "[a]?b=c=d&e==&?/?&"           },
        {"/a?&&b&&c=1&",                     "[a]?b=&c=1&"                  },
        {"/a?b+c=d+%2B+e",                   "[a]?b c=d + e&"               },
        {"/%c3%bc/%F0%9F%98%80",             "[\xc3\xbc][\xf0\x9f\x98\x80]?"},
        {"http://host:80/a?b",               "[a]?b=&"                      },
        {"HTTPS://host",                     "[]?"                          },
        {"http://host/",                     "[]?"                          },
        {"/?labelSelector=a%3Db%2Cc%21%3Dd", "[]?labelSelector=a=b,c!=d&"   },
    };
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, 1000);
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_string_equal(explain(cases[i].target, &text), cases[i].want);
    dv_buf_fini(&text);
}

static void bad_targets_are_refused_by_what_is_wrong(void **state)
{
    static const struct {
        const char *target;
        const char *want; /* the beginning */
    } cases[] = {
        {"",              "!the request target \"\" is no path"              },
        {"*",             "!the request target \"*\" is no path"             },
        {"a/b",           "!the request target \"a/b\" is no path"           },
        {"host:443",      "!the request target \"host:443\" is no path"      },
        {"http://host?a", "!the request target \"?a\" is no path"            },
        {"ftp://host/",   "!the request target \"ftp://host/\" is no path"   },
        {"/a b",          "!the request target has a byte 0x20 that must"    },
        {"/a\tb",         "!the request target has a byte 0x09 that must"    },
        {"/\x7f",         "!the request target has a byte 0x7f that must"    },
        {"/\xc3\xbc",     "!the request target has a byte 0xc3 that must"    },
        {"/a#b",          "!the request target has a byte 0x23 that must"    },
        {"/%",            "!bad encoding in the request target at \"%\""     },
        {"/%4",           "!bad encoding in the request target at \"%4\""    },
        {"/%4g",          "!bad encoding in the request target at \"%4g\""   },
        {"/%%41",         "!bad encoding in the request target at \"%%41\""  },
        {"/%00",          "!bad encoding in the request target at \"%00\""   },
        {"/?a=%00",       "!bad encoding in the request target at \"%00\""   },
        {"/?a=%e",        "!bad encoding in the request target at \"%e\""    },
        {"/%80",          "!bad encoding in the request target at \"%80\""   },
        {"/%c3",          "!bad encoding in the request target at \"%c3\""   },
        {"/%c3x",         "!the request target is not UTF-8 at \"%c3x\""     },
        {"/%c3%28",       "!the request target is not UTF-8 at \"%c3%28\""   },
        {"/%c0%80",       "!bad encoding in the request target at \"%c0%80\""},
        {"/%ed%a0%80",    "!the request target is not UTF-8 at \"%ed%a0%80\""},
        {"/?%c3&%bc",     "!the request target is not UTF-8 at \"%c3&%bc\""  },
    };
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, 1000);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const char *got = explain(cases[i].target, &text);

        if (strncmp(got, cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("%s: got %s, want %s", cases[i].target, got, cases[i].want);
    }
    dv_buf_fini(&text);
}

static void arguments_are_found_by_name(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str query = DV_STR("watch=true&a%20b=c%20d&watch=false&empty");
    dv_str value = DV_STR("untouched");

    (void)state;
    assert_false(dv_rest_query_get(query, DV_STR("absent"), arena, &value));
    assert_str(value, "untouched");
    assert_true(dv_rest_query_get(query, DV_STR("watch"), arena, &value));
    assert_str(value, "true");
    assert_true(dv_rest_query_get(query, DV_STR("a b"), arena, &value));
    assert_str(value, "c d");
    assert_true(dv_rest_query_get(query, DV_STR("empty"), arena, &value));
    assert_str(value, "");
    assert_false(dv_rest_query_get(DV_STR(""), DV_STR(""), arena, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_split_and_decoded),
        cmocka_unit_test(bad_targets_are_refused_by_what_is_wrong),
        cmocka_unit_test(arguments_are_found_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
