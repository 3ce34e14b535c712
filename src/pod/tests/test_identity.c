#include "support/dvtest.h"

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "cdi/cdi.h"
#include "claim/claim.h"
#include "device/device.h"
#include "pod/ledger/pod_identity.h"
#include "resource/resource.h"

#define BYTES_MAX 4096u
#define UUID "8f6a1e0c-1111-2222-3333-44445555666f"
#define WORD "dead1e0c-1111-2222-3333-44445555666f"

/* "kind:text" of each, with spaces between. */
static const char *print_set(const struct dv_identities *set, struct dv_arena *arena)
{
    static const char *const kinds[] = {"pci", "uuid", "node", "path"};
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, BYTES_MAX);
    for (size_t i = 0; i < set->n; i++)
        dv_buf_printf(&buf, "%s%s:%.*s", i > 0 ? " " : "", kinds[set->v[i].kind],
                      DV_FMT(set->v[i].text));
    return dv_str_to_c(dv_buf_str(&buf), arena);
}

static const char *parse(const char *text, struct dv_arena *arena)
{
    struct dv_identities set = {0};
    struct dv_identity identity;

    if (!dv_identity_parse(dv_str_from_c(text), arena, &identity))
        return "-";
    dv_identities_add(&set, identity, arena);
    return print_set(&set, arena);
}

static void texts_are_parsed(void **state)
{
    static const struct {
        const char *text;
        const char *want;
    } cases[] = {
        {"0000:3b:00.0",                         "pci:0000:3b:00.0" },
        {"0000:3B:1F.7",                         "pci:0000:3b:1f.7" },
        {"3b:00.0",                              "pci:0000:3b:00.0" },
        {"00000000:3B:00.0",                     "pci:0000:3b:00.0" },
        {"10000:e1:00.0",                        "pci:10000:e1:00.0"},
        {"pci-0000:3b:00.0",                     "pci:0000:3b:00.0" },
        {"0000:3b:00.0::2",                      "pci:0000:3b:00.0" },
        {"0000:3b:20.0",                         "-"                }, /* 32 devices on a bus */
        {"0000:3b:00.8",                         "-"                },
        {"0000:3b:00",                           "-"                },
        {"000:3b:00.0",                          "-"                },
        {"000000000:3b:00.0",                    "-"                },
        {"0000:00:00.0",                         "-"                }, /* nobody has set it */
        {"0000:3b:00.0/1",                       "-"                },
        {"00:11:22:33:44:55",                    "-"                },
        {"pci0000:3b",                           "-"                }, /* a root complex */
        {"1.2.3",                                "-"                },
        {"gpu0",                                 "-"                },
        {"",                                     "-"                },
        {UUID,                                   "uuid:" UUID       },
        {"8F6A1E0C-1111-2222-3333-44445555666F", "uuid:" UUID       },
        {"GPU-" UUID,                            "uuid:" UUID       },
        {"MIG-" UUID,                            "uuid:" UUID       },
        {"GPU-" UUID "::7",                      "uuid:" UUID       },
        {"GPU-" WORD,                            "uuid:" WORD       },
        {WORD,                                   "uuid:" WORD       }, /* begins as a word does */
        {"MIG-GPU-" UUID "/1/0",                 "-"                }, /* only a part of it */
        {UUID "-1",                              "-"                },
        {"00000000-0000-0000-0000-000000000000", "-"                },
        {"8f6a1e0c-1111-2222-3333-44445555666g", "-"                },
        {"8f6a1e0c11112222333344445555666f",     "-"                },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const char *got = parse(cases[i].text, arena);

        if (!dv_str_eq(dv_str_from_c(got), dv_str_from_c(cases[i].want)))
            fail_msg("\"%s\": got %s, want %s", cases[i].text, got, cases[i].want);
    }
}

/* ---- CDI ---- */

/* /dev/gpuN is char 240:N, /dev/diskN block 8:N. */
static bool look(const struct dv_identity_host *host, dv_str path, struct dv_identity_node *node)
{
    bool is_disk = dv_str_starts_with(path, DV_STR("/dev/disk"));

    (void)host;
    if (!is_disk && !dv_str_starts_with(path, DV_STR("/dev/gpu")))
        return false;
    *node =
        (struct dv_identity_node){is_disk, is_disk ? 8 : 240, (uint32_t)(path.p[path.n - 1] - '0')};
    return true;
}

static const struct dv_identity_host machine = {look};

static struct dv_cdi_index *index_of(const char *text)
{
    struct dv_cdi_file file = {.path = DV_STR("v.yaml"), .text = dv_str_from_c(text)};
    struct dv_cdi_spec *spec = dv_cdi_spec_new(&file);
    struct dv_cdi_index *index = dv_cdi_index_new(&spec, 1);

    if (spec->n_problems > 0)
        fail_msg("%.*s", DV_FMT(spec->problems[0]));
    dv_cdi_spec_unref(spec);
    return index;
}

#define SPEC(devices)                                                                              \
    "{cdiVersion: 0.6.0, kind: v.com/c, containerEdits: {deviceNodes: [{path: /dev/own}]}, "       \
    "devices: [" devices "]}"
#define DEVICE(name, nodes) "{name: " name ", containerEdits: {deviceNodes: [" nodes "]}}"
#define NODE(path) "{path: " path "}"

static const char *of_name(const char *spec, const char *device, struct dv_arena *arena)
{
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = index_of(spec);
    dv_str name = dv_str_printf(arena, "v.com/c=%s", device);
    struct dv_identities set = {0};
    struct dv_identities same = {0};
    struct dv_cdi_edits edits;
    struct dv_err err;

    dv_identities_add_cdi_names(&set, index, &name, 1, &machine, arena);
    if (dv_cdi_resolve(index, &name, 1, arena, &edits, &err)) {
        dv_identities_add_edits(&same, index, &edits, &machine, arena);
        assert_string_equal(print_set(&same, arena), print_set(&set, arena));
    }
    return print_set(&set, arena);
}

#define TWO                                                                                        \
    SPEC(DEVICE("a", NODE("/dev/gpu0") "," NODE("/dev/ctl")) "," DEVICE(                           \
        "b", NODE("/dev/gpu1") "," NODE("/dev/ctl")))
#define NAMES                                                                                      \
    SPEC(DEVICE("a", NODE("/dev/gpu0") "," NODE("/dev/ctl")) "," DEVICE(                           \
        "all",                                                                                     \
        NODE("/dev/gpu0") "," NODE("/dev/gpu1") "," NODE(                                          \
            "/dev/ctl")) "," DEVICE("b",                                                           \
                                    NODE("/dev/gpu1") "," NODE(                                    \
                                        "/dev/ctl")) "," DEVICE("uuid-a",                          \
                                                                NODE("/dev/ctl") "," NODE(         \
                                                                    "/dev//gpu0") "," NODE("/dev/" \
                                                                                           "gpu"   \
                                                                                           "0")))
#define PARTS                                                                                      \
    SPEC(DEVICE("m0", NODE("/dev/gpu0") "," NODE("/dev/cap1")) "," DEVICE(                         \
        "m1", NODE("/dev/gpu0") "," NODE("/dev/cap2")))
#define DISK SPEC(DEVICE("a", NODE("/dev/disk3")))
#define VFIO SPEC(DEVICE("a", NODE("/dev/vfio/vfio") "," NODE("/dev/vfio/12")))
/* Here a path is only what the container calls it. */
#define NUMBERS                                                                                    \
    SPEC(DEVICE("a", "{path: /dev/x, type: c, major: 9, minor: 1}") "," DEVICE(                    \
        "b", "{path: /dev/x, type: c, major: 9, minor: 2}"))
#define BOTH SPEC(DEVICE("a", "{path: /dev/gpu3, major: 240, minor: 3}"))
#define OTHER SPEC(DEVICE("a", "{path: /dev/gpu3, type: b, major: 9, minor: 3}"))
#define RENAMED                                                                                    \
    SPEC(DEVICE("a", "{path: /dev/x, hostPath: /dev/gpu4}") "," DEVICE(                            \
        "b", "{path: /dev/x, hostPath: /dev/gpu5}"))
#define PIPE SPEC(DEVICE("a", "{path: /dev/pipe, type: p}"))
#define GPU0 "node:char 240:0 path:/dev/gpu0"
#define GPU1 "node:char 240:1 path:/dev/gpu1"

static void nodes_of_one_device_identify_it(void **state)
{
    static const struct {
        const char *spec;
        const char *device;
        const char *want;
    } cases[] = {
        {TWO,     "a",      GPU0                            },
        {TWO,     "b",      GPU1                            },
        {TWO,     "c",      ""                              },
        {NAMES,   "a",      GPU0                            },
        {NAMES,   "uuid-a", GPU0                            },
        {NAMES,   "all",    GPU0 " " GPU1                   },
        {PARTS,   "m0",     "path:/dev/cap1"                },
        {PARTS,   "m1",     "path:/dev/cap2"                },
        {DISK,    "a",      "node:block 8:3 path:/dev/disk3"},
        {VFIO,    "a",      "path:/dev/vfio/12"             },
        {NUMBERS, "b",      "node:char 9:2"                 },
        {BOTH,    "a",      "node:char 240:3 path:/dev/gpu3"},
        {OTHER,   "a",      "node:block 9:3"                },
        {RENAMED, "a",      "node:char 240:4 path:/dev/gpu4"},
        {PIPE,    "a",      ""                              },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_string_equal(of_name(cases[i].spec, cases[i].device, arena), cases[i].want);
}

static void names_of_several_kinds_are_told_apart(void **state)
{
    struct dv_cdi_file files[] = {
        {.path = DV_STR("v.yaml"), .text = DV_STR(SPEC(DEVICE("a", NODE("/dev/gpu0"))))                       },
        {.path = DV_STR("w.yaml"),
         .text = DV_STR("{cdiVersion: 0.6.0, kind: w.com/c, devices: [" DEVICE(
             "a",                                                  NODE("/dev/gpu0") "," NODE("/dev/w")) "]}")},
    };
    struct dv_cdi_spec *specs[] = {dv_cdi_spec_new(&files[0]), dv_cdi_spec_new(&files[1])};
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = dv_cdi_index_new(specs, 2);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str names[] = {DV_STR("v.com/c=a"), DV_STR("w.com/c=a"), DV_STR("w.com/c=none")};
    struct dv_identities set = {0};

    (void)state;
    dv_identities_add_cdi_names(&set, index, names, DV_COUNT(names), NULL, arena);
    assert_string_equal(print_set(&set, arena), "path:/dev/gpu0 path:/dev/w");
    dv_cdi_spec_unref(specs[0]);
    dv_cdi_spec_unref(specs[1]);
}

/* A driver with a name for each claim on a device: all have its nodes, and it is still one. */
static void many_names_for_one_device_leave_it_one(void **state)
{
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = dv_cdi_index_new(NULL, 0);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str names[] = {DV_STR("v.com/c=claim-0"), DV_STR("v.com/c=claim-999")};

    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        struct dv_cdi_file file = {
            .path = dv_str_printf(arena, "%u.yaml", i),
            .text = dv_str_printf(arena,
                                  SPEC("{name: claim-%u, containerEdits: {deviceNodes: "
                                       "[{path: /dev/gpu%u}, {path: /dev/ctl}]}}"),
                                  i, i % 8),
        };
        struct dv_cdi_spec *spec = dv_cdi_spec_new(&file);

        dv_cdi_index_add(index, spec);
        dv_cdi_spec_unref(spec);
    }
    for (size_t i = 0; i < DV_COUNT(names); i++) {
        struct dv_identities set = {0};

        dv_identities_add_cdi_names(&set, index, &names[i], 1, NULL, arena);
        assert_string_equal(print_set(&set, arena), i == 0 ? "path:/dev/gpu0" : "path:/dev/gpu7");
    }
}

/* ---- attributes ---- */

static struct dv_api_device_attribute_entry text_attribute(const char *key, const char *text)
{
    return (struct dv_api_device_attribute_entry){.key = dv_str_from_c(key),
                                                  .value = {.string = dv_str_from_c(text)}};
}

static void attributes_identify_unless_devices_share_them(void **state)
{
    dv_str list[] = {DV_STR("0000:05:00.1"), DV_STR("other")};
    struct dv_api_device_attribute_entry first[] = {
        text_attribute("resource.kubernetes.io/pciBusID", "0000:3b:00.0"),
        text_attribute("uuid", "GPU-" UUID),
        text_attribute("parent", "0000:01:00.0"),
        text_attribute("model", "x100"),
        {.key = DV_STR("functions"), .value = {.strings = list, .n_strings = DV_COUNT(list)}},
    };
    struct dv_api_device_attribute_entry second[] = {
        text_attribute("resource.kubernetes.io/pciBusID", "0000:3b:00.0"),
        text_attribute("uuid", "GPU-aaaaaaaa-1111-2222-3333-44445555666f"),
        text_attribute("parent", "0000:01:00.0"),
    };
    struct dv_api_device devices[] = {
        {.name = DV_STR("gpu-0"), .attributes = first,  .n_attributes = DV_COUNT(first) },
        {.name = DV_STR("gpu-1"), .attributes = second, .n_attributes = DV_COUNT(second)},
    };
    DV_CLEANUP(dv_cdi_index_freep)
    struct dv_cdi_index *index = index_of(SPEC(DEVICE("a", NODE("/dev/gpu0"))));
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str cdi_id = DV_STR("v.com/c=a");
    struct dv_claim_device prepared = {
        .pool = DV_STR("p"), .name = DV_STR("gpu-0"), .cdi_ids = &cdi_id, .n_cdi_ids = 1};
    struct dv_identities set;

    (void)state;
    dv_identities_of_claim_device(&prepared, devices, DV_COUNT(devices), index, &machine, arena,
                                  &set);
    assert_string_equal(print_set(&set, arena), "pci:0000:3b:00.0 uuid:" UUID
                                                " pci:0000:05:00.1 node:char 240:0 path:/dev/gpu0");
    dv_identities_of_claim_device(&prepared, NULL, 0, index, &machine, arena, &set);
    assert_string_equal(print_set(&set, arena), "node:char 240:0 path:/dev/gpu0");
}

/* ---- records ---- */

static void add_field(struct dv_buf *buf, char number, dv_str text)
{
    dv_buf_add_char(buf, (char)(number << 3 | 2));
    dv_buf_add_char(buf, (char)text.n); /* short ones only */
    dv_buf_add(buf, text);
}

/* A pair of texts, or one, as a field. */
static void add_pair(struct dv_buf *buf, char number, const char *first, const char *second)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf inner;

    dv_buf_init(&inner, BYTES_MAX);
    add_field(&inner, 1, dv_str_from_c(first));
    if (second)
        add_field(&inner, 2, dv_str_from_c(second));
    add_field(buf, number, dv_buf_str(&inner));
}

static void a_record_gives_ids_nodes_and_cdi_names(void **state)
{
    DV_CLEANUP(dv_cdi_index_freep)
    struct dv_cdi_index *index =
        index_of(SPEC(DEVICE("a", NODE("/dev/gpu7")) "," DEVICE("b", NODE("/dev/gpu8"))));
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf response;
    dv_str first[] = {DV_STR("GPU-" UUID), DV_STR("0000:3b:00.0")};
    dv_str second[] = {DV_STR("0000:3b:00.0"), DV_STR("plain")};
    struct dv_device_placed placed[] = {
        {0, first,  DV_COUNT(first) },
        {1, second, DV_COUNT(second)},
    };
    struct dv_device_record record = {
        .resource = DV_STR("v.com/gpu"), .placed = placed, .n_placed = DV_COUNT(placed)};
    struct dv_identities set;
    struct dv_err err;
    dv_str *ids;
    size_t n_ids;

    (void)state;
    dv_buf_init(&response, BYTES_MAX);
    add_pair(&response, 2, "/lib/x", "/lib/x"); /* a mount */
    add_pair(&response, 3, "/dev/g", "/dev/gpu0");
    add_pair(&response, 3, "/dev/nvidiactl", "/dev/nvidiactl");
    add_pair(&response, 4, "cdi.k8s.io/x", "v.com/c=b");
    add_pair(&response, 4, "cdi.k8s.io/y", "not a name");
    add_pair(&response, 5, "v.com/c=a", NULL);
    record.response = dv_buf_str(&response);
    assert_ok(dv_identities_of_record(&record, index, &machine, arena, &set, &ids, &n_ids, &err),
              &err);
    assert_int_equal(n_ids, 3);
    assert_str(ids[0], "0000:3b:00.0");
    assert_str(ids[2], "plain");
    assert_string_equal(print_set(&set, arena),
                        "pci:0000:3b:00.0 uuid:" UUID
                        " node:char 240:0 path:/dev/gpu0 node:char 240:7 path:/dev/gpu7 "
                        "node:char 240:8 path:/dev/gpu8");
    /* Without directories of specs, names say nothing, and the rest is as before. */
    assert_ok(dv_identities_of_record(&record, NULL, &machine, arena, &set, &ids, &n_ids, &err),
              &err);
    assert_string_equal(print_set(&set, arena),
                        "pci:0000:3b:00.0 uuid:" UUID " node:char 240:0 path:/dev/gpu0");
    record.response = DV_STR("\x1a\x7f");
    assert_false(
        dv_identities_of_record(&record, index, &machine, arena, &set, &ids, &n_ids, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "resource v.com/gpu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_parsed),
        cmocka_unit_test(nodes_of_one_device_identify_it),
        cmocka_unit_test(names_of_several_kinds_are_told_apart),
        cmocka_unit_test(many_names_for_one_device_leave_it_one),
        cmocka_unit_test(attributes_identify_unless_devices_share_them),
        cmocka_unit_test(a_record_gives_ids_nodes_and_cdi_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
