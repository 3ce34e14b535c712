#include <string.h>

#include "cdi/tests/test_cdi.h"

#define X10 "xxxxxxxxxx"
#define X50 X10 X10 X10 X10 X10
#define X250 X50 X50 X50 X50 X50

static void a_name_has_a_vendor_a_class_and_a_device(void **state)
{
    static const struct {
        const char *text;
        const char *vendor;
        const char *class;
        const char *device;
    } cases[] = {
        {"vendor.com/gpu=0",                "vendor.com",  "gpu",             "0"             },
        {"v/c=d",                           "v",           "c",               "d"             },
        {"foo.bar.baz/foo-bar123.B_az=a:b", "foo.bar.baz", "foo-bar123.B_az", "a:b"           },
        {"Vendor_1/C2=GPU-8f3a:1.2_x",      "Vendor_1",    "C2",              "GPU-8f3a:1.2_x"},
        {"v." X50 "/c" X50 "=d" X250,       "v." X50,      "c" X50,           "d" X250        },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_cdi_name name;
        struct dv_err err;

        assert_ok(dv_cdi_name_parse(dv_str_from_c(cases[i].text), &name, &err), &err);
        assert_str(name.vendor, cases[i].vendor);
        assert_str(name.class, cases[i].class);
        assert_str(name.device, cases[i].device);
    }
}

static void refuses_what_is_no_name(void **state)
{
    static const struct {
        const char *text;
        const char *want;
    } cases[] = {
        {"",                         "not a name like vendor.com/class=device"            },
        {"/dev/null",                "not a name like"                                    },
        {"vendor.com/gpu",           "not a name like"                                    },
        {"=0",                       "\"\" is not VENDOR/CLASS"                           },
        {"gpu=0",                    "\"gpu\" is not VENDOR/CLASS"                        },
        {"/gpu=0",                   "the vendor is empty"                                },
        {"vendor.com/=0",            "the class is empty"                                 },
        {"vendor.com/gpu=",          "the device name is empty"                           },
        {"1vendor/gpu=0",            "the vendor \"1vendor\" does not begin with a letter"},
        {"vendor./gpu=0",            "does not end with a letter or digit"                },
        {"ven dor/gpu=0",            "has a character outside"                            },
        {"vendor/gpu/x=0",           "the class \"gpu/x\" has a character outside"        },
        {"vendor/_gpu=0",            "the class \"_gpu\" does not begin with a letter"    },
        {"vendor/gpu=-0",            "does not begin with a letter or digit"              },
        {"vendor/gpu=0:",            "does not end with a letter or digit"                },
        {"vendor/gpu=a=b",           "the device name \"a=b\" has a character outside"    },
        {"vendor/gpu=a,b",           "has a character outside"                            },
        {"vendor/gpu=\xc3\xa9",      "does not begin with a letter or digit"              },
        {"v/c" X50 X10 "xxx=0",      "the class has 64 bytes: at most 63 are allowed"     },
        {"v" X250 "xxx/c=0",         "the vendor has 254 bytes: at most 253 are allowed"  },
        {"v/c=" X250 X250 X10 "xxx", "the device name has 513 bytes: at most 512"         },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_cdi_name name;
        struct dv_err err;

        assert_false(dv_cdi_name_parse(dv_str_from_c(cases[i].text), &name, &err));
        assert_int_equal(err.code, DV_INVALID_ARGUMENT);
        if (!strstr(err.msg, cases[i].want) && strlen(err.msg) + 1 < DV_ERR_MSG_BYTES)
            fail_msg("%s: got \"%s\", want \"...%s...\"", cases[i].text, err.msg, cases[i].want);
    }
}

static void an_annotation_names_its_devices(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    dv_str *again;
    size_t n;

    (void)state;
    assert_true(dv_cdi_annotation_is_request(DV_STR("cdi.k8s.io/vendor.gpu_0_1")));
    assert_false(dv_cdi_annotation_is_request(DV_STR("example.com/x")));
    assert_ok(dv_cdi_annotation_parse(DV_STR("v.com/c=a,v.com/c=b"), arena, &again, &n, &err),
              &err);
    assert_int_equal(n, 2);
    assert_str(again[0], "v.com/c=a");
    assert_str(again[1], "v.com/c=b");
}

static void refuses_an_annotation_that_is_none(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    dv_str *names;
    size_t n;

    (void)state;
    assert_false(dv_cdi_annotation_parse(DV_STR("v.com/c=a,"), arena, &names, &n, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "CDI device \"\"");
    assert_false(dv_cdi_annotation_parse(DV_STR_NONE, arena, &names, &n, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_has_a_vendor_a_class_and_a_device),
        cmocka_unit_test(refuses_what_is_no_name),
        cmocka_unit_test(an_annotation_names_its_devices),
        cmocka_unit_test(refuses_an_annotation_that_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
