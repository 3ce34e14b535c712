#include "support/dvtest.h"

#include <string.h>

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "pb/pb.h"
#include "pb/tests/test_hex.h"
#include "pb/tests/test_pb_memory.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "proto/dra_v1.pb-c.h"
#include "proto/health_v1alpha1.pb-c.h"
#include "proto/podresources_v1.pb-c.h"
#include "proto/pods_v1alpha1.pb-c.h"
#include "proto/resource_v1alpha2.pb-c.h"

static const ProtobufCMessageDescriptor *const device = &dp_v1beta1__device__descriptor;
static const ProtobufCMessageDescriptor *const allocated =
    &dp_v1beta1__container_allocate_response__descriptor;
static const ProtobufCMessageDescriptor *const prefer =
    &dp_v1beta1__container_preferred_allocation_request__descriptor;
static const ProtobufCMessageDescriptor *const dra_device = &dra_v1__device__descriptor;
static const ProtobufCMessageDescriptor *const prepared =
    &dra_v1__node_prepare_resources_response__descriptor;
static const ProtobufCMessageDescriptor *const cpus = &podres_v1__container_resources__descriptor;
static const ProtobufCMessageDescriptor *const health = &health_v1alpha1__device_health__descriptor;
static const ProtobufCMessageDescriptor *const mount = &dp_v1beta1__mount__descriptor;
static const ProtobufCMessageDescriptor *const pods =
    &pods_v1alpha1__list_pods_response__descriptor;
static const ProtobufCMessageDescriptor *const devices =
    &dp_v1beta1__list_and_watch_response__descriptor;
static const ProtobufCMessageDescriptor *const containers =
    &dp_v1beta1__allocate_response__descriptor;
static const ProtobufCMessageDescriptor *const pod = &podres_v1__pod_resources__descriptor;
static const ProtobufCMessageDescriptor *const states =
    &health_v1alpha1__node_watch_resources_response__descriptor;
static const ProtobufCMessageDescriptor *const attribute =
    &resource_v1alpha2__named_resources_attribute_value__descriptor;

static dv_str encoded(const ProtobufCMessage *message, struct dv_arena *arena)
{
    size_t n = dv_pb_size(message);
    char *bytes = dv_arena_alloc(arena, n, 1);

    dv_pb_encode(message, bytes, n);
    return (dv_str){bytes, n};
}

static dv_str decoded_and_encoded(const ProtobufCMessageDescriptor *type, dv_str bytes,
                                  const char *why, struct dv_arena *arena)
{
    struct dv_err err;
    const ProtobufCMessage *message = dv_pb_decode(type, bytes, arena, &err);

    if (!message)
        fail_msg("%s: %s", why, err.msg);
    return encoded(message, arena);
}

static void what_a_peer_writes_is_written_the_same(void **state)
{
    const struct {
        const ProtobufCMessageDescriptor *type;
        const char *hex;
        const char *why;
    } cases[] = {
        {device,     "",                                       "nothing"                         },
        {device,     "0a0161 120162",                          "strings"                         },
        {device,     "1a00",                                   "an empty topology"               },
        {device,     "1a020a00",                               "NUMA node 0"                     },
        {device,     "1a040a000a00",                           "NUMA node 0, twice"              },
        {device,     "1a060a000a020801",                       "NUMA nodes 0 and 1"              },
        {device,     "0801 0d01020304",                        "wrong wire types, unknown fields"},
        {device,     "20012a01783501020304390102030405060708", "unknown fields"                  },
        {device,     "23 2801 2b2c 24",                        "unknown groups"                  },
        {dra_device, "0a0161 0a0162 220163",                   "lists of strings"                },
        {dra_device, "2a00",                                   "an empty share"                  },
        {allocated,  "0a060a0161120162",                       "a map entry"                     },
        {allocated,  "0a050a01611200",                         "a map entry with an empty value" },
        {allocated,  "0a040a001200",                           "and an empty key"                },
        {prepared,   "0a080a01751203120178",                   "a map of messages"               },
        {prepared,   "0a050a01751200",                         "an empty message in it"          },
        {cpus,       "1a03000102",                             "packed numbers"                  },
        {cpus,       "1a0affffffffffffffffff01",               "a negative one"                  },
        {prefer,     "18ffffffffffffffffff01",                 "a negative int32"                },
        {health,     "1063",                                   "an enum number without a name"   },
        {pods,       "0a00 0a0300ff80",                        "bytes that are not text"         },
        {attribute,  "1000",                                   "proto2: false that is present"   },
        {attribute,  "2a00 32020a00",                          "proto2: strings too"             },
        {attribute,  "3800 420408010802",                      "proto2: numbers one by one"      },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str bytes = bytes_of_hex(cases[i].hex, arena);
        dv_str got = decoded_and_encoded(cases[i].type, bytes, cases[i].why, arena);

        if (!dv_str_eq(got, bytes))
            fail_msg("%s: not %s", cases[i].why, cases[i].hex);
    }
}

static void what_is_odd_is_read_as_go_reads_it(void **state)
{
    const struct {
        const ProtobufCMessageDescriptor *type;
        const char *hex;
        const char *again;
        const char *why;
    } cases[] = {
        {device,     "0a001200",                   "",                       "empty texts"        },
        {device,     "1201620a0161",               "0a0161120162",           "another order"      },
        {device,     "0a01610a0162",               "0a0162",                 "a string twice"     },
        {device,     "08010a0161",                 "0a01610801",             "unknown first"      },
        {device,     "1a020a001a040a020801",       "1a060a000a020801",       "a message in parts" },
        {device,     "8a00810078",                 "0a0178",                 "overlong tag"       },
        {dra_device, "2a01612a00",                 "2a00",                   "a share, emptied"   },
        {allocated,  "0a030a0161",                 "0a050a01611200",         "entry without value"},
        {allocated,  "0a03120162",                 "0a050a00120162",         "entry without key"  },
        {allocated,  "0a00",                       "0a040a001200",           "entry without both" },
        {allocated,  "0a0520010a0161",             "0a050a01611200",         "unknown in an entry"},
        {allocated,  "0a030a01610a060a0161120163", "0a060a0161120163",       "one key twice"      },
        {prepared,   "0a030a0175",                 "0a050a01751200",         "entry of no message"},
        {prepared,   "0a0a0a017512031201781200",   "0a080a01751203120178",   "a value in parts"   },
        {cpus,       "180018011802",               "1a03000102",             "numbers one by one" },
        {cpus,       "18011a0202031804",           "1a0401020304",           "both ways"          },
        {cpus,       "1a00",                       "",                       "a packed nothing"   },
        {prefer,     "18ffffffff0f",               "18ffffffffffffffffff01", "-1 in 32 bits"      },
        {prefer,     "188180808010",               "1801",                   "over 32 bits"       },
        {mount,      "1802",                       "1801",                   "a bool of 2"        },
        {mount,      "1800",                       "",                       "a written false"    },
        {attribute,  "32020a002a00",               "2a0032020a00",           "proto2 reordered"   },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str bytes = bytes_of_hex(cases[i].hex, arena);
        dv_str want = bytes_of_hex(cases[i].again, arena);
        dv_str got = decoded_and_encoded(cases[i].type, bytes, cases[i].why, arena);

        if (!dv_str_eq(got, want))
            fail_msg("%s: not %s", cases[i].why, cases[i].again);
    }
}

static void bad_bytes_are_refused_with_their_place(void **state)
{
    const struct {
        const ProtobufCMessageDescriptor *type;
        const char *hex;
        const char *want;
    } cases[] = {
        {device,    "0a02ff",             "v1beta1.Device: byte 1: a field is longer"             },
        {device,    "0a01ff",             "v1beta1.Device: ID: byte 2: a string that is not UTF-8"},
        {device,    "0a01ff0a0161",       "ID: byte 2: a string that is not UTF-8"                },
        {device,    "0a03610062",         "ID: byte 2: a string with a zero byte"                 },
        {device,    "1a040a0208ff",       "Device: topology: nodes: byte 5: a number is cut off"  },
        {device,    "0c",                 "byte 1: the end of a group that did not begin"         },
        {device,    "23",                 "byte 1: a group is cut off"                            },
        {cpus,      "1a020180",           "cpu_ids: byte 3: a number is cut off"                  },
        {allocated, "0a030a01ff",         "envs: key: byte 4: a string that is not UTF-8"         },
        {prepared,  "0a0712051203006100", "claims: value: error: byte 6: a string with a zero"    },
        {prepared,  "0a071205120500ff00", "claims: value: byte 5: a field is longer"              },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;

        assert_null(dv_pb_decode(cases[i].type, bytes_of_hex(cases[i].hex, arena), arena, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].want);
    }
}

static void nothing_of_the_input_is_kept(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str input = bytes_of_hex("0a0161 1a040a020801 2a0178 2b2c", arena);
    char *copy = dv_arena_alloc(arena, input.n, 1);
    DpV1beta1__Device *decoded;
    struct dv_err err;

    (void)state;
    memcpy(copy, input.p, input.n);
    decoded = dv_pb_decode(device, (dv_str){copy, input.n}, arena, &err);
    assert_non_null(decoded);
    memset(copy, 0xee, input.n);
    assert_true(dv_str_eq(encoded(&decoded->base, arena), input));
}

/* What a plugin could send to make us take much: each unit is repeated to a megabyte. */
static void memory_is_bounded_by_the_input(void **state)
{
    const struct {
        const ProtobufCMessageDescriptor *type;
        const char *unit;
        const char *why;
    } cases[] = {
        {devices,    "0a00",     "empty devices"     },
        {containers, "0a00",     "empty containers"  },
        {pod,        "1a00",     "empty containers"  },
        {states,     "0a020a00", "empty names"       },
        {prepared,   "0a00",     "one entry again"   },
        {allocated,  "0a00",     "one entry again"   },
        {device,     "1a020a00", "a message in parts"},
        {device,     "0a00",     "a string again"    },
        {device,     "2000",     "unknown numbers"   },
        {device,     "2b2c",     "unknown groups"    },
        {dra_device, "0a00",     "empty strings"     },
        {cpus,       "1800",     "numbers one by one"},
        {pods,       "0a00",     "empty bytes"       },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *units = dv_arena_new();
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        dv_str unit = bytes_of_hex(cases[i].unit, units);
        size_t n = 1024u * 1024u / unit.n;
        char *bytes = dv_arena_alloc_array(units, n, unit.n, 1);
        struct dv_err err;

        for (size_t k = 0; k < n; k++)
            memcpy(bytes + k * unit.n, unit.p, unit.n);
        assert_ok(dv_pb_decode(cases[i].type, (dv_str){bytes, n * unit.n}, arena, &err), &err);
        if (dv_arena_size_bytes(arena) > MEMORY_FACTOR * n * unit.n + MEMORY_FLAT)
            fail_msg("%s %s: %zu bytes", cases[i].type->name, cases[i].why,
                     dv_arena_size_bytes(arena));
    }
}

static void entries_are_made_with_both_fields(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DraV1__NodePrepareResourceResponse nothing = DRA_V1__NODE_PREPARE_RESOURCE_RESPONSE__INIT;
    DpV1beta1__ContainerAllocateResponse__EnvsEntry *envs[2];
    DraV1__NodePrepareResourcesResponse__ClaimsEntry *claims[1];
    DpV1beta1__ContainerAllocateResponse container = DP_V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    DraV1__NodePrepareResourcesResponse response = DRA_V1__NODE_PREPARE_RESOURCES_RESPONSE__INIT;

    (void)state;
    envs[0] = dv_pb_entry_new(&dp_v1beta1__container_allocate_response__envs_entry__descriptor, "a",
                              "", arena);
    envs[1] = dv_pb_entry_new(&dp_v1beta1__container_allocate_response__envs_entry__descriptor, "",
                              "b", arena);
    container.envs = envs;
    container.n_envs = DV_COUNT(envs);
    assert_true(dv_str_eq(encoded(&container.base, arena),
                          bytes_of_hex("0a050a01611200 0a050a00120162", arena)));

    claims[0] = dv_pb_entry_new(&dra_v1__node_prepare_resources_response__claims_entry__descriptor,
                                "uid", &nothing, arena);
    response.claims = claims;
    response.n_claims = DV_COUNT(claims);
    assert_true(
        dv_str_eq(encoded(&response.base, arena), bytes_of_hex("0a070a037569641200", arena)));
}

static void only_map_entries_are_taken_for_such(void **state)
{
    (void)state;
    assert_true(
        dv_pb_is_map_entry(&dra_v1__node_unprepare_resources_response__claims_entry__descriptor));
    assert_true(dv_pb_is_map_entry(
        &dp_v1beta1__container_allocate_response__annotations_entry__descriptor));
    assert_false(dv_pb_is_map_entry(&dra_v1__node_unprepare_resources_response__descriptor));
    assert_false(dv_pb_is_map_entry(&pods_v1alpha1__watch_pods_event__descriptor));
}

/* A message with every scalar type, single and repeated, which the APIs do not have. */
struct scalars {
    ProtobufCMessage base;
    int32_t i32;
    int32_t s32;
    int64_t s64;
    uint32_t f32;
    uint64_t f64;
    float real;
    double large;
    size_t n_s32s, n_s64s, n_f32s, n_f64s, n_bools;
    int32_t *s32s;
    int64_t *s64s;
    uint32_t *f32s;
    uint64_t *f64s;
    protobuf_c_boolean *bools;
};

static const ProtobufCMessageDescriptor scalars_type;

static void scalars_init(ProtobufCMessage *message)
{
    struct scalars zero = {.base = PROTOBUF_C_MESSAGE_INIT(&scalars_type)};

    memcpy(message, &zero, sizeof(zero));
}

#define SINGLE(number, kind, name)                                                                 \
    {                                                                                              \
#name, (number), PROTOBUF_C_LABEL_NONE, PROTOBUF_C_TYPE_##kind, 0,                         \
            offsetof(struct scalars, name), NULL, NULL, 0, 0, NULL, NULL                           \
    }
#define LIST(number, kind, name)                                                                   \
    {                                                                                              \
#name, (number), PROTOBUF_C_LABEL_REPEATED, PROTOBUF_C_TYPE_##kind,                        \
            offsetof(struct scalars, n_##name), offsetof(struct scalars, name), NULL, NULL,        \
            PROTOBUF_C_FIELD_FLAG_PACKED, 0, NULL, NULL                                            \
    }

static const ProtobufCFieldDescriptor scalar_fields[] = {
    SINGLE(1, INT32, i32),    SINGLE(2, SINT32, s32),   SINGLE(3, SINT64, s64),
    SINGLE(4, FIXED32, f32),  SINGLE(5, FIXED64, f64),  SINGLE(6, FLOAT, real),
    SINGLE(7, DOUBLE, large), LIST(8, SINT32, s32s),    LIST(9, SINT64, s64s),
    LIST(10, SFIXED32, f32s), LIST(11, SFIXED64, f64s), LIST(12, BOOL, bools),
};
static const ProtobufCIntRange scalar_ranges[] = {
    {1, 0                      },
    {0, DV_COUNT(scalar_fields)}
};
static const ProtobufCMessageDescriptor scalars_type = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "test.Scalars",
    .short_name = "Scalars",
    .sizeof_message = sizeof(struct scalars),
    .n_fields = DV_COUNT(scalar_fields),
    .fields = scalar_fields,
    .n_field_ranges = 1,
    .field_ranges = scalar_ranges,
    .message_init = scalars_init,
};

static void every_scalar_type_is_read(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    int32_t s32s[] = {0, -1, 1, INT32_MIN, INT32_MAX};
    int64_t s64s[] = {0, -1, 1, INT64_MIN, INT64_MAX};
    uint32_t f32s[] = {0, 1, UINT32_MAX};
    uint64_t f64s[] = {0, 1, UINT64_MAX};
    protobuf_c_boolean bools[] = {1, 0, 1};
    struct scalars message = {
        .base = PROTOBUF_C_MESSAGE_INIT(&scalars_type),
        .i32 = -7,
        .s32 = -8,
        .s64 = INT64_MIN,
        .f32 = UINT32_MAX,
        .f64 = UINT64_MAX - 1,
        .real = 1.5f,
        .large = -2.25,
        .n_s32s = DV_COUNT(s32s),
        .s32s = s32s,
        .n_s64s = DV_COUNT(s64s),
        .s64s = s64s,
        .n_f32s = DV_COUNT(f32s),
        .f32s = f32s,
        .n_f64s = DV_COUNT(f64s),
        .f64s = f64s,
        .n_bools = DV_COUNT(bools),
        .bools = bools,
    };
    dv_str bytes = encoded(&message.base, arena);
    struct scalars *decoded;
    struct dv_err err;

    (void)state;
    decoded = dv_pb_decode(&scalars_type, bytes, arena, &err);
    assert_non_null(decoded);
    assert_int_equal(decoded->s32, -8);
    assert_true(decoded->s64 == INT64_MIN);
    assert_true(decoded->large == -2.25);
    assert_memory_equal(decoded->s64s, s64s, sizeof(s64s));
    assert_memory_equal(decoded->bools, bools, sizeof(bools));
    assert_true(dv_str_eq(encoded(&decoded->base, arena), bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_peer_writes_is_written_the_same),
        cmocka_unit_test(what_is_odd_is_read_as_go_reads_it),
        cmocka_unit_test(bad_bytes_are_refused_with_their_place),
        cmocka_unit_test(nothing_of_the_input_is_kept),
        cmocka_unit_test(memory_is_bounded_by_the_input),
        cmocka_unit_test(entries_are_made_with_both_fields),
        cmocka_unit_test(only_map_entries_are_taken_for_such),
        cmocka_unit_test(every_scalar_type_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
