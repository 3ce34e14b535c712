/* kubelet_internal_checkpoint: every rule of reading, and what is written. */
#include "test_device_node.h"

#include "base/buf.h"
#include "device/kubelet_checkpoint.h"
#include "device/state/device_checkpoint.h"

#define ENTRY                                                                                      \
    "{\"PodUID\":\"pod-1\",\"ContainerName\":\"c1\",\"ResourceName\":\"example.com/a\","           \
    "\"DeviceIDs\":{\"0\":[\"d1\"]},\"AllocResp\":\"\"}"

/* Published files, and others made by the same rules. */
static void the_files_of_the_reference_are_read_and_written_alike(void **state)
{
    static const char *const files[] = {
        "{\"Data\":{\"PodDeviceEntries\":null,\"RegisteredDevices\":{}},\"Checksum\":3467439661}",
        "{\"Data\":{\"PodDeviceEntries\":null,\"RegisteredDevices\":{\"example.com/a\":[]}},"
        "\"Checksum\":4218149908}",
        "{\"Data\":{\"PodDeviceEntries\":[" ENTRY "],\"RegisteredDevices\":"
        "{\"example.com/a\":[\"d1\"]}},\"Checksum\":1842456991}",
        "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"pod-1\",\"ContainerName\":\"c1\","
        "\"ResourceName\":\"example.com/a\",\"DeviceIDs\":{\"-1\":[\"d9\"],\"0\":[\"d1\",\"d2\"],"
        "\"10\":[\"d4\"],\"2\":[\"d3\"]},\"AllocResp\":\"CggKAUsSA3ZhbA==\"}],"
        "\"RegisteredDevices\":{\"example.com/a\":[\"d1\",\"d2\"],\"example.com/b\":[]}},"
        "\"Checksum\":366957080}",
    };
    struct node *node = *state;

    for (size_t i = 0; i < DV_COUNT(files); i++) {
        struct dv_device_checkpoint checkpoint;
        struct dv_err err = {0};
        struct dv_buf buf;

        if (dv_device_checkpoint_decode(dv_str_from_c(files[i]), node->arena, &checkpoint, &err) !=
            DV_DEVICE_CHECKPOINT_OK)
            fail_msg("case %zu: %s", i, err.msg);
        dv_buf_init(&buf, 10000);
        dv_device_checkpoint_encode(&checkpoint, &buf);
        assert_string_equal(dv_buf_c(&buf), files[i]);
        dv_buf_fini(&buf);
    }
}

/* `data` is what stands for the members of Data; `text` is what of it is hashed. */
static void what_is_hashed_is_what_go_would_have_decoded(void **state)
{
    static const struct {
        const char *data;
        const char *records;
        const char *registered;
    } cases[] = {
        {"",                                                                       "[]",    "map[]"                           },
        {"\"PodDeviceEntries\":null",                                              "<nil>", "map[]"                           },
        {"\"RegisteredDevices\":null",                                             "[]",    "<nil>"                           },
        {"\"podDEVICEentries\":null",                                              "<nil>", "map[]"                           },
        {"\"PodDeviceEntrie\\u017f\":null",                                        "<nil>", "map[]"                           },
        {"\"PodDeviceEntries\":[],\"Other\":[{}]",                                 "[]",    "map[]"                           },
        {"\"RegisteredDevices\":{\"b\":[],\"a\":null,\"c\":[\"x\",\"y\"]}",        "[]",
         "map[a:<nil> b:[] c:[x y]]"                                                                                          },
 /* Of two values for a key the last counts; two objects are one. */
        {"\"RegisteredDevices\":{\"a\":[\"x\"],\"a\":[null]}",                     "[]",    "map[a:[]]"                       },
        {"\"RegisteredDevices\":{\"a\":[\"x\"]},\"RegisteredDevices\":{\"b\":[]}", "[]",
         "map[a:[x] b:[]]"                                                                                                    },
        {"\"RegisteredDevices\":{\"a\":[]},\"registereddevices\":null",            "[]",    "<nil>"                           },
        {"\"RegisteredDevices\":null,\"registereddevices\":{\"a\":[]}",            "[]",    "map[a:[]]"                       },
        {"\"RegisteredDevices\":{\"\\ud800\\u0041\":[\"\\ud83d\\ude42\"]}",        "[]",
         "map[\xef\xbf\xbd"
         "A:[\xf0\x9f\x99\x82]]"                                                                                              },
        {"\"RegisteredDevices\":{\"\xff\":[\"\xc3\"]}",                            "[]",    "map[\xef\xbf\xbd:[\xef\xbf\xbd]]"},
    };
    struct node *node = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_device_checkpoint checkpoint = {0};
        struct dv_err err;
        struct dv_buf text;
        dv_str file, wanted;
        uint32_t sum = 2166136261u;

        wanted = dv_str_printf(node->arena,
                               "(checkpoint.checkpointData){PodDeviceEntries:"
                               "([]checkpoint.PodDevicesEntry)%s RegisteredDevices:"
                               "(map[string][]string)%s}",
                               cases[i].records, cases[i].registered);
        for (size_t k = 0; k < wanted.n; k++)
            sum = (sum ^ (unsigned char)wanted.p[k]) * 16777619u;
        file = dv_str_printf(node->arena, " {\"Checksum\":%u,\"Data\":{%s}}\n", sum, cases[i].data);
        if (dv_device_checkpoint_decode(file, node->arena, &checkpoint, &err) !=
            DV_DEVICE_CHECKPOINT_OK)
            fail_msg("case %zu: %s: %.*s", i, err.msg, DV_FMT(file));
        dv_buf_init(&text, 10000);
        dv_device_checkpoint_text(&checkpoint, &text);
        assert_string_equal(dv_buf_c(&text), dv_str_to_c(wanted, node->arena));
        dv_buf_fini(&text);
    }
}

/* The same for one entry: `entry` are its members, `text` what follows its names. */
static void entries_are_decoded_as_go_does(void **state)
{
    static const struct {
        const char *entries; /* of PodDeviceEntries, once or more */
        const char *text;    /* DeviceIDs and AllocResp of the first entry */
    } cases[] = {
        {"[{}]",                                                                           "<nil>|<nil>"          },
        {"[null]",                                                                         "<nil>|<nil>"          },
        {"[{\"DeviceIDs\":{},\"AllocResp\":\"\"}]",                                        "map[]|[]"             },
        {"[{\"DeviceIDs\":null,\"AllocResp\":null}]",                                      "<nil>|<nil>"          },
        {"[{\"DeviceIDs\":{\"10\":[\"a\"],\"2\":[],\"-1\":null}}]",
         "map[-1:<nil> 2:[] 10:[a]]|<nil>"                                                                        },
        {"[{\"DeviceIDs\":{\"+1\":[\"a\"],\"01\":[\"b\"]}}]",                              "map[1:[b]]|<nil>"     },
        {"[{\"DeviceIDs\":{\"1\":[\"a\"],\"+1\":[\"b\"],\"1\":[\"c\"]}}]",                 "map[1:[c]]|<nil>"     },
        {"[{\"DeviceIDs\":{\"1\":[\"a\"]},\"deviceids\":{\"2\":[]}}]",                     "map[1:[a] 2:[]]|<nil>"},
        {"[{\"AllocResp\":[1,255,0]}]",                                                    "<nil>|[1 255 0]"      },
        {"[{\"AllocResp\":[]}]",                                                           "<nil>|[]"             },
        {"[{\"AllocResp\":[1,2,3],\"AllocResp\":[null,9]}]",                               "<nil>|[1 9]"          },
        {"[{\"AllocResp\":\"AQID\",\"AllocResp\":[null,null,null,4]}]",                    "<nil>|[1 2 3 4]"      },
        {"[{\"AllocResp\":[1,2,3],\"AllocResp\":[9],\"AllocResp\":[null,null]}]",          "<nil>|[9 2]"          },
        {"[{\"AllocResp\":[1,2,3],\"AllocResp\":[],\"AllocResp\":[null,null]}]",           "<nil>|[0 0]"          },
        {"[{\"AllocResp\":\"AQ\\r\\n==\\n\"}]",                                            "<nil>|[1]"            },
 /* Elements of a list that comes again are decoded onto those of the first. */
        {"[{\"AllocResp\":\"AQ==\"}],\"PodDeviceEntries\":[{\"DeviceIDs\":{}}]",           "map[]|[1]"            },
        {"[{\"AllocResp\":\"AQ==\"}],\"PodDeviceEntries\":[],\"PodDeviceEntries\":[{}]",
         "<nil>|<nil>"                                                                                            },
        {"[{\"AllocResp\":\"AQ==\"}],\"PodDeviceEntries\":null,\"PodDeviceEntries\":[{}]",
         "<nil>|<nil>"                                                                                            },
        {"[{\"AllocResp\":\"AQ==\"}],\"PodDeviceEntries\":[null]",                         "<nil>|[1]"            },
    };
    struct node *node = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str ids = dv_str_from_c(cases[i].text);
        struct dv_device_checkpoint checkpoint = {0};
        dv_str wanted, file, resp;
        struct dv_err err;
        uint32_t sum = 2166136261u;

        resp = dv_str_slice(ids, dv_str_find_char(ids, '|') + 1, ids.n);
        ids = dv_str_slice(ids, 0, dv_str_find_char(ids, '|'));
        wanted = dv_str_printf(node->arena,
                               "(checkpoint.checkpointData){PodDeviceEntries:"
                               "([]checkpoint.PodDevicesEntry)[{PodUID:(string) ContainerName:"
                               "(string) ResourceName:(string) DeviceIDs:"
                               "(checkpoint.DevicesPerNUMA)%.*s AllocResp:([]uint8)%.*s}] "
                               "RegisteredDevices:(map[string][]string)map[]}",
                               DV_FMT(ids), DV_FMT(resp));
        for (size_t k = 0; k < wanted.n; k++)
            sum = (sum ^ (unsigned char)wanted.p[k]) * 16777619u;
        file = dv_str_printf(node->arena, "{\"Data\":{\"PodDeviceEntries\":%s},\"Checksum\":%u}",
                             cases[i].entries, sum);
        if (dv_device_checkpoint_decode(file, node->arena, &checkpoint, &err) !=
            DV_DEVICE_CHECKPOINT_OK)
            fail_msg("case %zu: %s", i, err.msg);
    }
}

static void bad_files_get_their_verdicts(void **state)
{
    static const struct {
        const char *file;
        enum dv_device_verdict verdict;
    } cases[] = {
        {"",                                                                                 DV_DEVICE_CHECKPOINT_JSON_SYNTAX},
        {"hello",                                                                            DV_DEVICE_CHECKPOINT_JSON_SYNTAX},
        {"\xef\xbb\xbf{}",                                                                   DV_DEVICE_CHECKPOINT_JSON_SYNTAX},
        {"{} x",                                                                             DV_DEVICE_CHECKPOINT_JSON_SYNTAX},
        {"{\"Checksum\":1,}",                                                                DV_DEVICE_CHECKPOINT_JSON_SYNTAX},
        {"{}",                                                                               DV_DEVICE_CHECKPOINT_CORRUPT    },
        {"null",                                                                             DV_DEVICE_CHECKPOINT_CORRUPT    },
        {"[]",                                                                               DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"1",                                                                                DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"\"x\"",                                                                            DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Checksum\":\"1\"}",                                                             DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Checksum\":-1}",                                                                DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Checksum\":1.0}",                                                               DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Checksum\":1e0}",                                                               DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Checksum\":18446744073709551615}",                                              DV_DEVICE_CHECKPOINT_CORRUPT    },
        {"{\"Checksum\":18446744073709551616}",                                              DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Chec\\u212asum\":\"\"}",                                                        DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Checksum2\":\"\"}",                                                             DV_DEVICE_CHECKPOINT_CORRUPT    },
        {"{\"Data\":[]}",                                                                    DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Data\":{\"PodDeviceEntries\":{}}}",                                             DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Data\":{\"PodDeviceEntries\":[1]}}",                                            DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":1}]}}",                               DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":[]}]}}",                           DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":{\"a\":[]}}]}}",
         DV_DEVICE_CHECKPOINT_JSON_TYPE                                                                                      },
        {"{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":{\"+-1\":[]}}]}}",
         DV_DEVICE_CHECKPOINT_JSON_TYPE                                                                                      },
        {"{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":{\"9223372036854775808\":[]}}]}}",
         DV_DEVICE_CHECKPOINT_JSON_TYPE                                                                                      },
        {"{\"Data\":{\"PodDeviceEntries\":[{\"AllocResp\":\"AQ=\"}]}}",
         DV_DEVICE_CHECKPOINT_BASE64                                                                                         },
        {"{\"Data\":{\"PodDeviceEntries\":[{\"AllocResp\":[256]}]}}",
         DV_DEVICE_CHECKPOINT_JSON_TYPE                                                                                      },
        {"{\"Data\":{\"PodDeviceEntries\":[{\"AllocResp\":{}}]}}",                           DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Data\":{\"RegisteredDevices\":[]}}",                                            DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Data\":{\"RegisteredDevices\":{\"a\":[1]}}}",                                   DV_DEVICE_CHECKPOINT_JSON_TYPE  },
        {"{\"Data\":{\"RegisteredDevices\":{\"a\":{}}}}",                                    DV_DEVICE_CHECKPOINT_JSON_TYPE  },
    };
    struct node *node = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_device_checkpoint checkpoint;
        struct dv_err err;
        enum dv_device_verdict verdict = dv_device_checkpoint_decode(
            dv_str_from_c(cases[i].file), node->arena, &checkpoint, &err);

        if (verdict != cases[i].verdict)
            fail_msg("case %zu: %d: %s", i, (int)verdict, cases[i].file);
    }
}

/* The files of older releases: the first is published, the others are made by what is known. */
static void the_forms_of_older_releases_are_read(void **state)
{
#define FLAT(id)                                                                                   \
    "{\"PodUID\":\"p\",\"ContainerName\":\"c\",\"ResourceName\":\"" GPU "\","                      \
    "\"DeviceIDs\":[\"" id "\",\"d2\"],\"AllocResp\":\"CggKAUsSA3ZhbA==\"}"
#define SINGLE(pod, id)                                                                            \
    "{\"PodUID\":\"" pod "\",\"ContainerName\":\"c\",\"ResourceName\":\"" GPU "\","                \
    "\"DeviceID\":\"" id "\"}"
    static const struct {
        const char *file;
        const char *form;
        const char *held; /* of the pod p */
        size_t n_records;
        size_t n_response; /* bytes */
    } cases[] = {
        {"{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"13ac2284-0d19-44b7-b94f-055b032dba9b\","
         "\"ContainerName\":\"centos\",\"ResourceName\":\"example.com/deviceA\",\"DeviceIDs\":"
         "[\"DevA3\"],\"AllocResp\":\"CiIKHUVYQU1QTEVDT01ERVZJQ0VBX0RFVkEzX1RUWTEwEgEwGhwKCi9kZXY"
         "vdHR5MTASCi9kZXYvdHR5MTAaAnJ3\"},{\"PodUID\":\"86b9a017-c9ca-4069-815f-46ca3e53c1e4\","
         "\"ContainerName\":\"centos\",\"ResourceName\":\"example.com/deviceA\",\"DeviceIDs\":"
         "[\"DevA4\"],\"AllocResp\":\"CiIKHUVYQU1QTEVDT01ERVZJQ0VBX0RFVkE0X1RUWTExEgEwGhwKCi9kZXY"
         "vdHR5MTESCi9kZXYvdHR5MTEaAnJ3\"}],\"RegisteredDevices\":{\"example.com/deviceA\":"
         "[\"DevA1\",\"DevA2\",\"DevA3\",\"DevA4\"]}},\"Checksum\":405612085}",         "Kubernetes 1.11 to 1.19", NULL,                 2,          66},
        {"{\"PodDeviceEntries\":[" FLAT("d1") "],\"RegisteredDevices\":{\"" GPU "\":[\"d1\"]}}",
         "Kubernetes 1.9 and 1.10",                                                                                         "d1 d2",              1,          10},
        {"{\"Entries\":[" FLAT("d1") "]}",                                                       "Kubernetes 1.9",          "d1 d2",              1,          10},
        {"{\"Entries\":[" SINGLE("p",                                                            "d1") "," SINGLE("q",      "d3") "," SINGLE("p", "d2") "]}",
         "Kubernetes 1.8",                                                                                                                                        "d1 d2", 2, 0},
        {"{\"Entries\":null}",                                                                                     "Kubernetes 1.9",                                                                                                             NULL,                                                                                                                                 0,                                                                                                                        0                     },
    };
    struct node *node = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_device_state *into = dv_device_state_new(NULL);
        struct dv_device_state *before = node->state;
        struct dv_device_checkpoint checkpoint;
        const char *form;
        size_t n_left_out;
        struct dv_err err;

        if (!dv_device_checkpoint_decode_old(dv_str_from_c(cases[i].file), node->arena, &checkpoint,
                                             &form, &err))
            fail_msg("case %zu: %s", i, err.msg);
        assert_string_equal(form, cases[i].form);
        assert_int_equal(checkpoint.n_records, cases[i].n_records);
        if (checkpoint.n_records > 0)
            assert_int_equal(checkpoint.records[0].response.n, cases[i].n_response);
        node->state = into;
        dv_device_checkpoint_load(node->state, &checkpoint, node->now_ns, &n_left_out);
        assert_int_equal(n_left_out, 0);
        if (cases[i].held)
            assert_string_equal(node_held(node, "p", "c", GPU), cases[i].held);
        node->state = before;
        dv_device_state_free(into);
    }
}

static void what_is_no_old_form_or_damaged_is_told(void **state)
{
    static const struct {
        const char *file;
        const char *form; /* NULL: none */
        enum dv_code code;
    } cases[] = {
        {"x",                                                                     NULL,                      DV_INVALID_ARGUMENT},
        {"[]",                                                                    NULL,                      DV_INVALID_ARGUMENT},
        {"{\"Data\":{\"PodDeviceEntries\":[]},\"Checksum\":1}",                   NULL,                      DV_INVALID_ARGUMENT},
        {"{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":{}}]},\"Checksum\":1}", NULL,
         DV_INVALID_ARGUMENT                                                                                                    },
        {"{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":[]}]},\"Checksum\":1}",
         "Kubernetes 1.11 to 1.19",                                                                          DV_DATA_LOSS       },
        {"{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":[]}]}}",                "Kubernetes 1.11 to 1.19",
         DV_INVALID_ARGUMENT                                                                                                    },
        {"{\"Entries\":[{\"DeviceIDs\":[1]}]}",                                   "Kubernetes 1.9",          DV_INVALID_ARGUMENT},
        {"{\"Entries\":[{\"DeviceIDs\":[],\"AllocResp\":\"?\"}]}",                "Kubernetes 1.9",
         DV_INVALID_ARGUMENT                                                                                                    },
        {"{\"Entries\":[{\"DeviceID\":\"a\"},3]}",                                "Kubernetes 1.8",          DV_INVALID_ARGUMENT},
        {"{\"PodDeviceEntries\":[{\"DeviceIDs\":[]}],\"RegisteredDevices\":[]}",
         "Kubernetes 1.9 and 1.10",                                                                          DV_INVALID_ARGUMENT},
    };
    struct node *node = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_device_checkpoint checkpoint;
        const char *form;
        struct dv_err err;

        assert_false(dv_device_checkpoint_decode_old(dv_str_from_c(cases[i].file), node->arena,
                                                     &checkpoint, &form, &err));
        if (err.code != cases[i].code || !form != !cases[i].form)
            fail_msg("case %zu: %s: %s", i, form ? form : "none", err.msg);
        if (form)
            assert_string_equal(form, cases[i].form);
    }
}

static void a_state_goes_into_a_file_and_back(void **state)
{
    struct node *node = *state;
    struct dv_device_checkpoint checkpoint;
    struct dv_device_state *old = node->state;
    size_t n_left_out;
    struct dv_buf buf;
    struct dv_err err;

    node_register(node, GPU, "a.sock", "d1@0 d2@0,1 d3 d4!");
    node_register(node, NIC, "n.sock", "");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=3"));
    dv_buf_init(&buf, 10000);
    dv_device_checkpoint_take(node->state, node->arena, &checkpoint);
    dv_device_checkpoint_encode(&checkpoint, &buf);
    assert_int_equal(dv_device_checkpoint_decode(dv_buf_str(&buf), node->arena, &checkpoint, &err),
                     DV_DEVICE_CHECKPOINT_OK);
    assert_int_equal(checkpoint.n_registered, 2);
    assert_int_equal(checkpoint.registered[0].n_ids, 3);
    node->state = dv_device_state_new(NULL);
    dv_device_checkpoint_load(node->state, &checkpoint, node->now_ns, &n_left_out);
    dv_device_state_free(old);
    assert_int_equal(n_left_out, 0);
    assert_string_equal(node_placed(node, "p", "c", GPU), "-1:d3 0:d1,d2 1:d2");
    assert_string_equal(node_capacity(node, GPU), "0/0");
    assert_int_equal(node_info(node, NIC).plugin, DV_DEVICE_STOPPED);
    dv_buf_fini(&buf);
}

static void records_that_make_no_sense_are_left_out(void **state)
{
    static const dv_str ids[] = {DV_STR_INIT("d1")};
    static const struct dv_device_placed placed[] = {
        {-1, ids, 1},
    };
    static const struct dv_device_record records[] = {
        {DV_STR_INIT("p"), DV_STR_INIT("c"), DV_STR_INIT(GPU), placed, 1, DV_STR_INIT("\x0a")},
        {DV_STR_INIT("q"), DV_STR_INIT("c"), DV_STR_INIT(GPU), placed, 1, DV_STR_INIT("")    },
        {DV_STR_INIT("r"), DV_STR_INIT("c"), DV_STR_INIT(NIC), NULL,   0, {NULL, 0}          },
    };
    static const struct dv_device_checkpoint checkpoint = {.records = records, .n_records = 3};
    struct node *node = *state;
    size_t n_left_out;

    dv_device_checkpoint_load(node->state, &checkpoint, 1, &n_left_out);
    assert_int_equal(n_left_out, 1);
    assert_null(node_held(node, "p", "c", GPU));
    assert_string_equal(node_held(node, "q", "c", GPU), "d1");
    assert_string_equal(node_held(node, "r", "c", NIC), "");
    assert_true(node_info(node, NIC).is_known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        node_test(the_files_of_the_reference_are_read_and_written_alike),
        node_test(what_is_hashed_is_what_go_would_have_decoded),
        node_test(entries_are_decoded_as_go_does),
        node_test(bad_files_get_their_verdicts),
        node_test(the_forms_of_older_releases_are_read),
        node_test(what_is_no_old_form_or_damaged_is_told),
        node_test(a_state_goes_into_a_file_and_back),
        node_test(records_that_make_no_sense_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
