/* test_lease_word.c - what a word without a domain stands for. */
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "lease/state/lease_word.h"
#include "support/dvtest.h"

static void fits_by_its_parts(void **state)
{
    static const struct {
        const char *word;
        const char *name;
        const char *resource; /* NULL: it is no class */
        bool fits;
    } rows[] = {
        {"gpu",            "nvidia.com/gpu",     NULL,              true },
        {"gpu",            "nvidia.com/mig-gpu", NULL,              false},
        {"gpu",            "gpu.com/nic",        NULL,              false},
        {"com",            "com",                NULL,              false},
        {"gpu",            "gpu",                "",                true },
        {"gpu",            "gpu.nvidia.com",     "",                true },
        {"gpu.nvidia.com", "gpu.nvidia.com",     "",                true },
        {"gpu",            "nvidia.gpu",         "",                true },
        {"gpu",            "a.gpu.b",            "",                false},
        {"gpu",            "gpus",               "",                false},
        {"gpu",            "fast",               "nvidia.com/gpu",  true },
        {"gpu",            "fast",               "nvidia.com/gpus", false},
        {"fast",           "fast",               "nvidia.com/gpu",  true },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_lease_candidate candidate = {
            .name = dv_str_from_c(rows[i].name),
            .is_class = rows[i].resource != NULL,
            .resource = rows[i].resource ? dv_str_from_c(rows[i].resource) : DV_STR("")};

        if (dv_lease_word_fits(dv_str_from_c(rows[i].word), &candidate) != rows[i].fits)
            fail_msg("row %zu: %s", i, rows[i].word);
    }
}

static void the_only_one_is_found(void **state)
{
    static const struct dv_lease_candidate all[] = {
        {DV_STR_INIT("amd.com/gpu"),     false, DV_STR_INIT("")                 },
        {DV_STR_INIT("example.com/nic"), false, DV_STR_INIT("")                 },
        {DV_STR_INIT("gpu.nvidia.com"),  true,  DV_STR_INIT("")                 },
        {DV_STR_INIT("serial"),          true,  DV_STR_INIT("davit.node/serial")},
    };
    static const struct {
        const char *word;
        size_t n; /* so many candidates there are */
        bool needs_class;
        int found; /* -1: none */
        const char *text;
    } rows[] = {
        {"gpu",    2, false, 0,  ""                                                           },
        {"nic",    4, false, 1,  ""                                                           },
        {"serial", 4, true,  3,  ""                                                           },
        {"gpu",    4, false, -1, "\"gpu\" may be amd.com/gpu, class gpu.nvidia.com: say which"},
        {"gpu",    4, true,  2,  ""                                                           },
        {"gpu",    2, true,  -1, "about devices of classes, and \"gpu\" is amd.com/gpu here"  },
        {"tpu",    4, false, -1,
         "there is amd.com/gpu, example.com/nic, class gpu.nvidia.com, class serial"          },
        {"gpu",    0, false, -1, "there are no resources and no classes"                      },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_err err = {0};
        const struct dv_lease_candidate *found = dv_lease_word_find(
            dv_str_from_c(rows[i].word), all, rows[i].n, rows[i].needs_class, &err);

        assert_ptr_equal(found, rows[i].found < 0 ? NULL : &all[rows[i].found]);
        if (!found)
            assert_int_equal(err.code, DV_INVALID_ARGUMENT);
        if (!found && !strstr(err.msg, rows[i].text))
            fail_msg("row %zu: %s", i, err.msg);
    }
}

/* A machine with many of them, and a word of any length, make a line that is not cut within a name.
 */
static void many_are_counted(void **state)
{
    struct dv_lease_candidate all[100];
    char names[100][64];
    char word[300];
    struct dv_err err = {0};

    (void)state;
    memset(word, 'w', sizeof(word));
    for (size_t i = 0; i < DV_COUNT(all); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "vendor-number-%zu.example.com/gpu", i);
        all[i] = (struct dv_lease_candidate){.name = dv_str_from_c(names[i])};
    }
    assert_null(dv_lease_word_find(DV_STR("gpu"), all, DV_COUNT(all), false, &err));
    assert_non_null(strstr(err.msg, "more: say which"));
    assert_null(dv_lease_word_find((dv_str){word, sizeof(word)}, all, DV_COUNT(all), false, &err));
    assert_non_null(strstr(err.msg, "vendor-number-0.example.com/gpu"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_by_its_parts),
        cmocka_unit_test(the_only_one_is_found),
        cmocka_unit_test(many_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
