#include "support/dvtest.h"

#include "device/device.h"
#include "device/state/bits.h"

#define A60 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A240 A60 A60 A60 A60

static void resource_names_are_judged_as_the_reference_does(void **state)
{
    static const struct {
        const char *name;
        bool is_valid;
    } cases[] = {
        {"vendor.io/gpu",        true },
        {"a/b",                  true },
        {"a/B_c.d-E",            true },
        {"1.2-3.x/9",            true },
        {A240 "aaaa/x",          true }, /* 244 bytes before the slash */
        {A240 "aaaaa/x",         false},
        {A60 A60 ".a/x",         true }, /* no limit for a label */
        {"v.io/" A60 "aaa",      true },
        {"v.io/" A60 "aaaa",     false},
        {"gpu",                  false}, /* native */
        {"",                     false},
        {"/",                    false},
        {"/x",                   false},
        {"v.io/",                false},
        {"v.io/a/b",             false},
        {"kubernetes.io/x",      false},
        {"foo.kubernetes.io/x",  false},
        {"mykubernetes.io/x",    false},
        {"v.io/kubernetes.io",   true },
        {"kubernetes.io.v.io/x", true },
        {"requests.v.io/x",      false},
        {"requests/x",           true },
        {"V.io/x",               false},
        {"-v.io/x",              false},
        {"v-.io/x",              false},
        {"v..io/x",              false},
        {".v.io/x",              false},
        {"v.io./x",              false},
        {"v_a.io/x",             false},
        {"v.io/-x",              false},
        {"v.io/x-",              false},
        {"v.io/x.",              false},
        {"v.io/_x",              false},
        {"v.io/x y",             false},
        {"v.io/x\n",             false},
        {"v\xc3\xa4.io/x",       false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;

        if (dv_device_name_check(dv_str_from_c(cases[i].name), &err) != cases[i].is_valid)
            fail_msg("case %zu: %s", i, cases[i].name);
    }
}

static void a_bad_name_is_in_the_error(void **state)
{
    struct dv_err err;

    (void)state;
    assert_false(dv_device_name_check(DV_STR("cpu"), &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "the ResourceName \"cpu\" is invalid");
}

static void ids_have_a_natural_order(void **state)
{
    static const char *const sorted[] = {
        "",
        "0",
        "00",
        "01",
        "1",
        "2",
        "10",
        "d",
        "d0a",
        "d00b",
        "d1",
        "d1-1",
        "d1-2",
        "d1-10",
        "d09",
        "d9",
        "d10",
        "d10a",
        "d10b",
        "da",
        "gpu-",
        "gpu0",
        "gpu18446744073709551615",
        "gpu18446744073709551616",
        "x",
        "\xc3\xa4",
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(sorted); i++) {
        for (size_t k = 0; k < DV_COUNT(sorted); k++) {
            int order = dv_str_natural_cmp(dv_str_from_c(sorted[i]), dv_str_from_c(sorted[k]));

            if ((order > 0) - (order < 0) != (i > k) - (i < k))
                fail_msg("\"%s\" and \"%s\"", sorted[i], sorted[k]);
        }
    }
}

static void a_set_finds_its_next_member(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 4097, 300000};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(sizes); i++) {
        size_t n = sizes[i];
        struct dv_device_bits bits;

        dv_device_bits_init(&bits, n);
        assert_int_equal(dv_device_bits_next(&bits, 0), SIZE_MAX);
        for (size_t k = 0; k < n; k += 1 + k / 2)
            dv_device_bits_set(&bits, k, true);
        for (size_t k = 0, next = 0; k < n; k = next) {
            next = k + 1 + k / 2;
            assert_int_equal(dv_device_bits_next(&bits, k), k);
            assert_int_equal(dv_device_bits_next(&bits, k + 1), next < n ? next : SIZE_MAX);
        }
        for (size_t k = 0; k < n; k += 1 + k / 2)
            dv_device_bits_set(&bits, k, false);
        assert_int_equal(dv_device_bits_next(&bits, 0), SIZE_MAX);
        if (n > 0) {
            dv_device_bits_set(&bits, n - 1, true);
            dv_device_bits_set(&bits, n - 1, true); /* twice is as once */
            assert_int_equal(dv_device_bits_next(&bits, 0), n - 1);
            assert_int_equal(dv_device_bits_next(&bits, n), SIZE_MAX);
        }
        dv_device_bits_fini(&bits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resource_names_are_judged_as_the_reference_does),
        cmocka_unit_test(a_bad_name_is_in_the_error),
        cmocka_unit_test(ids_have_a_natural_order),
        cmocka_unit_test(a_set_finds_its_next_member),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
