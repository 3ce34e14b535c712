#include "support/dvtest.h"

#include "base/buf.h"
#include "number/number.h"

static void reads_what_semver_org_says(void **state)
{
    static const struct {
        const char *text;
        uint64_t numbers[3];
        const char *pre;
        const char *build;
    } cases[] = {
        {"0.0.0",                    {0, 0, 0},          "",         ""   },
        {"1.2.3",                    {1, 2, 3},          "",         ""   },
        {"10.20.30-rc.1",            {10, 20, 30},       "rc.1",     ""   },
        {"1.0.0--",                  {1, 0, 0},          "-",        ""   },
        {"1.0.0-0a.0.x-y",           {1, 0, 0},          "0a.0.x-y", ""   },
        {"1.0.0+001",                {1, 0, 0},          "",         "001"},
        {"1.0.0+a-b",                {1, 0, 0},          "",         "a-b"},
        {"1.0.0-a+b.c",              {1, 0, 0},          "a",        "b.c"},
        {"18446744073709551615.0.1", {UINT64_MAX, 0, 1}, "",         ""   },
    };
    struct dv_version version;
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

        dv_buf_init(&buf, 100);
        assert_ok(dv_version_parse(dv_str_from_c(cases[i].text), &version, &err), &err);
        assert_true(version.major == cases[i].numbers[0] && version.minor == cases[i].numbers[1] &&
                    version.patch == cases[i].numbers[2]);
        assert_str(version.pre, cases[i].pre);
        assert_str(version.build, cases[i].build);
        dv_version_print(&version, &buf);
        assert_string_equal(dv_buf_c(&buf), cases[i].text);
        assert_true(dv_version_is_well_formed(dv_str_from_c(cases[i].text)));
    }
}

static void refuses_what_is_no_version(void **state)
{
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        {"",               "it is not major.minor.patch"                      },
        {"1",              "it is not major.minor.patch"                      },
        {"1.2",            "it is not major.minor.patch"                      },
        {"1.2.3.4",        "it is not major.minor.patch"                      },
        {"1.2-a.3",        "it is not major.minor.patch"                      },
        {"v1.2.3",         "major is not a number"                            },
        {" 1.2.3",         "major is not a number"                            },
        {"1..3",           "minor is not a number"                            },
        {"1.2.x",          "patch is not a number"                            },
        {"1.2.3 ",         "patch is not a number"                            },
        {"01.2.3",         "major has a leading zero"                         },
        {"1.2.00",         "patch has a leading zero"                         },
        {"1.2.3-",         "an identifier of the pre-release is empty"        },
        {"1.2.3-a..b",     "an identifier of the pre-release is empty"        },
        {"1.2.3-a.01",     "an identifier of the pre-release is a number with"},
        {"1.2.3-a_b",      "an identifier of the pre-release has something"   },
        {"1.2.3+",         "an identifier of the build is empty"              },
        {"1.2.3+a+b",      "an identifier of the build has something"         },
        {"1.2.3+\xc3\xa4", "an identifier of the build has something"         },
    };
    struct dv_version version;
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        if (dv_version_parse(dv_str_from_c(cases[i].text), &version, &err))
            fail_msg("\"%s\"", cases[i].text);
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].why);
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].text);
        assert_false(dv_version_is_well_formed(dv_str_from_c(cases[i].text)));
    }
    assert_false(dv_version_parse(DV_STR_NONE, &version, &err));
}

static void a_number_too_large_is_still_well_formed(void **state)
{
    static const char *const texts[] = {"18446744073709551616.0.0", "0.0.99999999999999999999",
                                        "1.0.0-18446744073709551616"};
    struct dv_version version;
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        assert_true(dv_version_is_well_formed(dv_str_from_c(texts[i])));
        assert_false(dv_version_parse(dv_str_from_c(texts[i]), &version, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, "is too large");
    }
}

static void tolerates_what_cel_normalizes(void **state)
{
    static const struct {
        const char *text;
        const char *printed; /* NULL: refused */
    } cases[] = {
        {"1.2.3",         "1.2.3"     },
        {"v1.2.3",        "1.2.3"     },
        {"v1",            "1.0.0"     },
        {"1.2",           "1.2.0"     },
        {"01.002.0003",   "1.2.3"     },
        {"00.0.000",      "0.0.0"     },
        {"v01.2.03-a+01", "1.2.3-a+01"},
        {"1.2.-rc",       "1.2.0-rc"  },
        {"1.2.+b",        "1.2.0+b"   },
        {"vv1",           NULL        },
        {"V1",            NULL        },
        {"v",             NULL        },
        {"",              NULL        },
        {" 1",            NULL        },
        {"1.",            NULL        },
        {"1.2.",          NULL        },
        {"1.2.-",         NULL        },
        {".1.2",          NULL        },
        {"1-rc",          NULL        },
        {"1.2+b",         NULL        },
        {"1.2.3.4",       NULL        },
        {"1.2.3-01",      NULL        },
    };
    struct dv_version version;
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
        bool is_ok = dv_version_parse_tolerant(dv_str_from_c(cases[i].text), &version, &err);

        dv_buf_init(&buf, 100);
        if (is_ok != (cases[i].printed != NULL))
            fail_msg("\"%s\"", cases[i].text);
        if (!is_ok)
            continue;
        dv_version_print(&version, &buf);
        assert_string_equal(dv_buf_c(&buf), cases[i].printed);
    }
}

static void compares_by_precedence(void **state)
{
    /* Ascending; what is in one row is equal. */
    static const char *const rows[][2] = {
        {"0.0.0-0",                    "0.0.0-0+x"                   },
        {"0.9.10",                     "0.9.10+1"                    },
        {"1.0.0-1",                    "1.0.0-1"                     },
        {"1.0.0-2",                    "1.0.0-2"                     },
        {"1.0.0-11",                   "1.0.0-11"                    },
        {"1.0.0-18446744073709551615", "1.0.0-18446744073709551615+a"},
        {"1.0.0--1",                   "1.0.0--1"                    },
        {"1.0.0-Z",                    "1.0.0-Z"                     },
        {"1.0.0-alpha",                "1.0.0-alpha+a.b"             },
        {"1.0.0-alpha.1",              "1.0.0-alpha.1"               },
        {"1.0.0-alpha.1.0",            "1.0.0-alpha.1.0"             },
        {"1.0.0-alpha.beta",           "1.0.0-alpha.beta"            },
        {"1.0.0-alpha0",               "1.0.0-alpha0"                },
        {"1.0.0-rc.1",                 "1.0.0-rc.1"                  },
        {"1.0.0",                      "1.0.0+zzz"                   },
        {"1.0.1",                      "1.0.1+0"                     },
        {"1.2.0",                      "1.2.0"                       },
        {"1.10.0",                     "1.10.0"                      },
        {"2.0.0",                      "2.0.0"                       },
        {"18446744073709551615.0.0",   "18446744073709551615.0.0"    },
    };
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows) * 2; i++)
        for (size_t k = 0; k < DV_COUNT(rows) * 2; k++) {
            int want = (i / 2 > k / 2) - (i / 2 < k / 2);
            struct dv_version a;
            struct dv_version b;

            assert_ok(dv_version_parse(dv_str_from_c(rows[i / 2][i % 2]), &a, &err), &err);
            assert_ok(dv_version_parse(dv_str_from_c(rows[k / 2][k % 2]), &b, &err), &err);
            if (dv_version_cmp(&a, &b) != want)
                fail_msg("%s and %s", rows[i / 2][i % 2], rows[k / 2][k % 2]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_semver_org_says),
        cmocka_unit_test(refuses_what_is_no_version),
        cmocka_unit_test(a_number_too_large_is_still_well_formed),
        cmocka_unit_test(tolerates_what_cel_normalizes),
        cmocka_unit_test(compares_by_precedence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
