/* test_lease_where.c - selectors in their short form: what they become, and what is said of
 * mistakes. */
#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "lease/state/lease_where.h"
#include "support/dvtest.h"

static const struct dv_lease_name names[] = {
    {DV_STR_INIT("memory"),        DV_STR_INIT("gpu.example.com"),        DV_LEASE_CAPACITY },
    {DV_STR_INIT("productName"),   DV_STR_INIT("gpu.example.com"),        DV_LEASE_ATTRIBUTE},
    {DV_STR_INIT("index"),         DV_STR_INIT("gpu.example.com"),        DV_LEASE_ATTRIBUTE},
    {DV_STR_INIT("driverVersion"), DV_STR_INIT("gpu.example.com"),        DV_LEASE_VERSION  },
    {DV_STR_INIT("pcieRoot"),      DV_STR_INIT("resource.kubernetes.io"), DV_LEASE_ATTRIBUTE},
};

#define ATTR "device.attributes[\"gpu.example.com\"]"
#define CAP "device.capacity[\"gpu.example.com\"]"

static void becomes_cel(void **state)
{
    static const struct {
        const char *text;
        const char *cel;
    } cases[] = {
        {"memory >= 40Gi && productName.startsWith(\"NVIDIA H\")",
         "\"memory\" in " CAP " && \"productName\" in " ATTR " && " CAP
         ".memory.compareTo(quantity(\"40Gi\")) >= 0 && " ATTR
         ".productName.startsWith(\"NVIDIA H\")"                                                                      },
        {"40Gi<=memory",
         "\"memory\" in " CAP " && quantity(\"40Gi\").compareTo(" CAP ".memory) <= 0"                                 },
        {"memory == 1024",
         "\"memory\" in " CAP " && " CAP ".memory.compareTo(quantity(\"1024\")) == 0"                                 },
        {"driverVersion < '535.0.0' || index == 2",
         ATTR ".driverVersion.compareTo(semver('535.0.0')) < 0 || " ATTR ".index == 2"                                },
        {"index in [0, 1]",                                        "\"index\" in " ATTR " && " ATTR ".index in [0, 1]"},
        {"pcieRoot == \"pci0000:00\"",
         "\"pcieRoot\" in device.attributes[\"resource.kubernetes.io\"] && "
         "device.attributes[\"resource.kubernetes.io\"].pcieRoot == \"pci0000:00\""                                   },
        {"[\"A\", \"B\"].exists(x, x == productName)",
         "\"productName\" in " ATTR " && [\"A\", \"B\"].exists(x, x == " ATTR ".productName)"                         },
        {"device.driver == \"gpu.example.com\"",                   "device.driver == \"gpu.example.com\""             },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_err err = {0};
        dv_str cel = DV_STR("");

        if (!dv_lease_where_expand(dv_str_from_c(cases[i].text), names, DV_COUNT(names), arena,
                                   &cel, &err))
            fail_msg("%s: %s", cases[i].text, err.msg);
        assert_string_equal(dv_str_to_c(cel, arena), cases[i].cel);
    }
}

static void says_where_a_mistake_is_and_what_may_be_meant(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"memry >= 40Gi",                "character 1: there is no \"memry\"; did you mean \"memory\"?"},
        {"memory >= 40Gi && model == 1", "character 19: there is no \"model\"; there are memory, "
                                         "productName, index, driverVersion, "
                                         "pcieRoot"            },
        {"memory >= 40GB",
         "character 11: \"40GB\" is no amount; units are k, M, G, T, P, E and Ki, "
         "Mi, Gi, Ti, Pi, Ei"                                                                          },
        {"productName == \"A",           "character 16: the text has no end"                           },
        {"",                             "says nothing"                                                },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_err err = {0};
        dv_str cel;

        assert_false(dv_lease_where_expand(dv_str_from_c(cases[i].text), names, DV_COUNT(names),
                                           arena, &cel, &err));
        assert_int_equal(err.code, DV_INVALID_ARGUMENT);
        assert_string_equal(err.msg, cases[i].message);
    }
}

/* What the compiler finds wrong is told at its place in what was written, not in what it became. */
static void tells_the_compilers_errors_at_their_place(void **state)
{
    static const struct {
        const char *text;
        const char *begins;
    } cases[] = {
        {"index == 1 && index + ",      "character 2"   }, /* at or behind the last word */
        {"index == 1 && nosuch(index)", "character 21: "},
        {"device.foo == 1",             "character 7: " },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_err err = {0};
        dv_str cel;

        assert_false(dv_lease_where_expand(dv_str_from_c(cases[i].text), names, DV_COUNT(names),
                                           arena, &cel, &err));
        if (!dv_str_starts_with(dv_str_from_c(err.msg), dv_str_from_c(cases[i].begins)))
            fail_msg("%s: %s", cases[i].text, err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(becomes_cel),
        cmocka_unit_test(says_where_a_mistake_is_and_what_may_be_meant),
        cmocka_unit_test(tells_the_compilers_errors_at_their_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
