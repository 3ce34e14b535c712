/* Offers as they are written: options and files. */
#include "offer/offer.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "support/dvtest.h"

#define LINE_BYTES_MAX 65536u

static dv_str print(const struct dv_offers *offers, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, LINE_BYTES_MAX);
    for (size_t i = 0; i < offers->n; i++) {
        dv_offer_print(&offers->v[i], &buf);
        dv_buf_add_char(&buf, '\n');
    }
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static void options_are_read_and_completed(void **state)
{
    static const struct {
        const char *text;
        const char *printed;
    } cases[] = {
        {"serial=/dev/ttyUSB*",
         "serial=/dev/ttyUSB*,access=rw,env=DAVIT_SERIAL,resource=davit.node/"
         "serial,class=serial\n"                                                                          },
        {"kvm=/dev/kvm,shared",
         "kvm=/dev/kvm,shared,access=rw,env=DAVIT_KVM,resource=davit.node/kvm,class=kvm\n"                },
        {"kvm=/dev/kvm,shared=1",
         "kvm=/dev/kvm,access=rw,env=DAVIT_KVM,resource=davit.node/kvm,class=kvm\n"                       },
        {"kvm=/dev/kvm,shared=8,access=r",
         "kvm=/dev/kvm,shared=8,access=r,env=DAVIT_KVM,resource=davit.node/kvm,class=kvm\n"               },
        {"my-cam=usb:046D:0825,/dev/media*,group=usb,as=/dev/cam,mode=0660,owner=1000:44,env=CAM",
         "my-cam=usb:046D:0825,/dev/media*,group=usb,access=rw,as=/dev/cam,env=CAM,mode=0660,"
         "owner=1000:44,resource=davit.node/my-cam,class=my-cam\n"                                        },
        {"gpu=cdi:nvidia.com/gpu=GPU-*,pci:class:0302,pci:3b:00.0,resource=nvidia.com/gpu,"
         "class=gpu.nvidia.com,owner=7",                                                  "gpu=cdi:nvidia.com/gpu=GPU-*,pci:class:0302,pci:3b:00.0,access=rw,env=DAVIT_GPU,owner=7,"
         "resource=nvidia.com/gpu,class=gpu.nvidia.com\n"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_offers offers = {0};
        struct dv_err err;

        if (!dv_offers_add_text(&offers, dv_str_from_c(cases[i].text), arena, &err))
            fail_msg("%s: %s", cases[i].text, err.msg);
        assert_string_equal(dv_str_to_c(print(&offers, arena), arena), cases[i].printed);
    }
}

static void bad_options_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *text;
        const char *reason;
    } cases[] = {
        {"serial",                                        "is not NAME=DEVICES"                        },
        {"=/dev/kvm",                                     "\"\" is no name of an offer"                },
        {"Serial=/dev/ttyUSB0",                           "\"Serial\" is no name of an offer"          },
        {"a.b=/dev/ttyUSB0",                              "\"a.b\" is no name"                         },
        {"a-name-that-is-longer-than-it-may-be=/dev/kvm", "is no name of an offer"                     },
        {"serial=",                                       "nothing stands before or behind a comma"    },
        {"serial=shared",                                 "serial: selects no devices"                 },
        {"serial=/dev/ttyUSB*,",                          "nothing stands before or behind a comma"    },
        {"serial=ttyUSB0",                                "\"ttyUSB0\" is neither devices"             },
        {"serial=/etc/passwd",                            "is no path of a device below /dev/"         },
        {"serial=/dev/",                                  "is no path of a device below /dev/"         },
        {"serial=/dev/../etc/shadow",                     "is too wide"                                },
        {"serial=/dev/x/../../etc",                       "has an empty part"                          },
        {"serial=/dev/a//b",                              "has an empty part"                          },
        {"serial=/dev/*",                                 "is too wide"                                },
        {"serial=/dev/?ty",                               "is too wide"                                },
        {"serial=/dev/[a-z]*",                            "is too wide"                                },
        {"serial=/dev/tty[0-9",                           "has a \"[\" without its \"]\""              },
        {"serial=/dev/a[b/c]",                            "has a \"[\" without its \"]\""              },
        {"cam=usb:46d:0825",                              "is not usb:VENDOR[:PRODUCT[:SERIAL]]"       },
        {"cam=usb:",                                      "is not usb:"                                },
        {"cam=usb:*",                                     "is not usb:"                                },
        {"gpu=pci:10de:2204:1",                           "is not pci:"                                },
        {"gpu=pci:zz:00.0",                               "is not pci:"                                },
        {"gpu=pci:class:3",                               "is not pci:"                                },
        {"gpu=cdi:nvidia",                                "is not cdi:VENDOR/CLASS[=NAME]"             },
        {"gpu=cdi:nvidia.com/gpu=",                       "is not cdi:"                                },
        {"x=/dev/kvm,shared=0",                           "shared: \"0\" is not true, false, or how"   },
        {"x=/dev/kvm,shared=-1",                          "shared: \"-1\""                             },
        {"x=/dev/kvm,group=all",                          "group: \"all\" is not node, usb or pci"     },
        {"x=/dev/kvm,access=x",                           "access: \"x\" is not r, w or rw"            },
        {"x=/dev/kvm,as=/etc/x",                          "as: \"/etc/x\" is not a path below /dev/"   },
        {"x=/dev/kvm,as=/dev/x*",                         "as: \"/dev/x*\""                            },
        {"x=/dev/kvm,env=1X",                             "env: \"1X\" is not the name"                },
        {"x=/dev/kvm,env=A-B",                            "env: \"A-B\""                               },
        {"x=/dev/kvm,mode=0980",                          "mode: \"0980\""                             },
        {"x=/dev/kvm,mode=77777777777777",                "mode:"                                      },
        {"x=/dev/kvm,owner=root",                         "owner: \"root\""                            },
        {"x=/dev/kvm,owner=1:4294967295",                 "owner:"                                     },
        {"x=/dev/kvm,resource=serial",                    "resource: \"serial\" is not the name"       },
        {"x=/dev/kvm,resource=kubernetes.io/x",           "resource:"                                  },
        {"x=/dev/kvm,class=Not_A_Class",                  "class: \"Not_A_Class\""                     },
        {"x=/dev/kvm,shard=2",                            "no setting \"shard\"; there are shared, gro"},
        {"first=/dev/null",                               "first (--offer) has its name already"       },
        {"x=/dev/null,class=first",                       "has its class already"                      },
        {"x=/dev/null,resource=davit.node/first",         "has its resource already"                   },
        {"x=/dev/nu\033ll",                               "has a character that cannot be seen"        },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_offers offers = {0};
        struct dv_err err;

        assert_true(dv_offers_add_text(&offers, DV_STR("first=/dev/zero"), arena, &err));
        if (dv_offers_add_text(&offers, dv_str_from_c(cases[i].text), arena, &err))
            fail_msg("%s is taken", cases[i].text);
        assert_int_equal(err.code, DV_INVALID_ARGUMENT);
        if (!strstr(err.msg, cases[i].reason))
            fail_msg("%s: %s", cases[i].text, err.msg);
        assert_int_equal(offers.n, 1);
    }
}

static void a_file_says_the_same_as_options(void **state)
{
    static const char text[] = "# my devices\n"
                               "offers:\n"
                               "- name: serial\n"
                               "  devices: [/dev/ttyUSB*, usb:0403:6001]\n"
                               "- name: kvm\n"
                               "  devices: /dev/kvm\n"
                               "  shared: true\n"
                               "- name: fuse\n"
                               "  devices:\n"
                               "  - /dev/fuse\n"
                               "  shared: 16\n"
                               "  mode: \"0666\"\n"
                               "  owner: 0:0\n";
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_offers offers = {0};
    struct dv_err err;

    (void)state;
    if (!dv_offers_add_file(&offers, DV_STR("o.yaml"), dv_str_from_c(text), arena, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(
        dv_str_to_c(print(&offers, arena), arena),
        "serial=/dev/ttyUSB*,usb:0403:6001,access=rw,env=DAVIT_SERIAL,resource=davit.node/serial,"
        "class=serial\n"
        "kvm=/dev/kvm,shared,access=rw,env=DAVIT_KVM,resource=davit.node/kvm,class=kvm\n"
        "fuse=/dev/fuse,shared=16,access=rw,env=DAVIT_FUSE,mode=0666,owner=0:0,"
        "resource=davit.node/fuse,class=fuse\n");
    assert_string_equal(dv_str_to_c(offers.v[1].origin, arena), "o.yaml:5");
}

static void a_file_with_mistakes_names_line_and_reason(void **state)
{
    static const struct {
        const char *text;
        const char *place;
        const char *reason;
    } cases[] = {
        {"offers: 3",                                                             "line 1", "expected an array"          },
        {"offer: []",                                                             "line 1", "no such key; there is offer"},
        {"offers:\n- serial",                                                     "line 2", "expected an object"         },
        {"offers:\n- name: a\n  device: /dev/kvm\n",                              "line 3", "no setting \"device\""      },
        {"offers:\n- name: a\n",                                                  "line 2", "selects no devices"         },
        {"offers:\n- devices: /dev/kvm\n",                                        "line 2", "is no name of an offer"     },
        {"offers:\n- name: a\n  devices: /etc/x\n",                               "line 3", "below /dev/"                },
        {"offers:\n- name: a\n  devices: [/dev/a, 3]\n",                          "line 3", "selects no devices"         },
        {"offers:\n- name: a\n  devices: [[/dev/a]]\n",                           "line 3", "expected a string"          },
        {"offers:\n- name: a\n  devices: /dev/a,/dev/b\n",                        "line 3", "a list"                     },
        {"offers:\n- name: a\n  devices: /dev/a\n  mode: 0660\n",                 "line 4", "needs quotes"               },
        {"offers:\n- name: a\n  devices: /dev/a\n  shared: maybe\n",              "line 4", "shared: \"maybe\""          },
        {"offers:\n- name: a\n  devices: /dev/a\n- name: a\n  devices: /dev/b\n", "line 4",
         "has its name already"                                                                                          },
        {"offers:\n- name: a\n  name: b\n  devices: /dev/a\n",                    "line 3", ""                           },
        {"offers: [",                                                             "line",   ""                           },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_offers offers = {0};
        struct dv_err err;

        if (dv_offers_add_file(&offers, DV_STR("o.yaml"), dv_str_from_c(cases[i].text), arena,
                               &err))
            fail_msg("%s is taken", cases[i].text);
        if (!strstr(err.msg, cases[i].place) || !strstr(err.msg, cases[i].reason) ||
            !strstr(err.msg, "o.yaml"))
            fail_msg("%s: %s", cases[i].text, err.msg);
    }
}

static void an_empty_file_offers_nothing(void **state)
{
    static const char *const texts[] = {"", "# nothing\n", "offers:\n", "offers: []\n"};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_offers offers = {0};
        struct dv_err err;
        bool is_null = strcmp(texts[i], "offers:\n") == 0;

        assert_int_equal(
            dv_offers_add_file(&offers, DV_STR("o"), dv_str_from_c(texts[i]), arena, &err),
            !is_null);
        assert_int_equal(offers.n, 0);
    }
}

static void patterns_match_paths(void **state)
{
    static const struct {
        const char *pattern;
        const char *path;
        bool matches;
    } cases[] = {
        {"/dev/ttyUSB*",                 "/dev/ttyUSB0",                       true },
        {"/dev/ttyUSB*",                 "/dev/ttyUSB",                        true },
        {"/dev/ttyUSB*",                 "/dev/ttyUSB/x",                      false},
        {"/dev/ttyUSB?",                 "/dev/ttyUSB10",                      false},
        {"/dev/tty[SU]*[0-9]",           "/dev/ttyUSB3",                       true },
        {"/dev/tty[!S]*",                "/dev/ttyS0",                         false},
        {"/dev/tty[!S]*",                "/dev/ttyUSB0",                       true },
        {"/dev/tty[-a]",                 "/dev/tty-",                          true },
        {"/dev/[x]",                     "/dev//",                             false},
        {"/dev/serial/by-id/*FTDI*-if*", "/dev/serial/by-id/usb-FTDI_x-if00",  true },
        {"/dev/*/by-id/*",               "/dev/serial/by-id/a",                true },
        {"/dev/*/by-id",                 "/dev/serial/x/by-id",                false},
        {"/dev/*b/d",                    "/dev/ab/c",                          false},
        {"/dev/a*a*a*a*a*a*a*a*b",       "/dev/aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
        {"/dev/kvm",                     "/dev/kvm",                           true },
        {"/dev/kvm",                     "/dev/kvmx",                          false},
        {"/dev/kvm*",                    "/dev/kv",                            false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        if (dv_offer_glob(dv_str_from_c(cases[i].pattern), dv_str_from_c(cases[i].path)) !=
            cases[i].matches)
            fail_msg("%s and %s", cases[i].pattern, cases[i].path);
}

static void events_of_the_kernel_are_read(void **state)
{
    static const char add[] = "add@/devices/usb1/1-4/ttyUSB0/tty/ttyUSB0\0ACTION=add\0"
                              "SUBSYSTEM=tty\0DEVNAME=ttyUSB0\0SEQNUM=7";
    static const char *const bad[] = {"", "libudev", "add", "@/x", "add@", "add@x"};
    struct dv_uevent event;

    (void)state;
    assert_true(dv_uevent_parse((dv_str){add, sizeof(add)}, &event));
    assert_true(dv_str_eq(event.action, DV_STR("add")));
    assert_true(dv_str_eq(event.subsystem, DV_STR("tty")));
    assert_true(dv_str_eq(event.node, DV_STR("ttyUSB0")));
    assert_true(dv_str_eq(event.sys_path, DV_STR("/devices/usb1/1-4/ttyUSB0/tty/ttyUSB0")));
    for (size_t i = 0; i < DV_COUNT(bad); i++)
        assert_false(dv_uevent_parse(dv_str_from_c(bad[i]), &event));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_read_and_completed),
        cmocka_unit_test(bad_options_are_refused_with_the_reason),
        cmocka_unit_test(a_file_says_the_same_as_options),
        cmocka_unit_test(a_file_with_mistakes_names_line_and_reason),
        cmocka_unit_test(an_empty_file_offers_nothing),
        cmocka_unit_test(patterns_match_paths),
        cmocka_unit_test(events_of_the_kernel_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
