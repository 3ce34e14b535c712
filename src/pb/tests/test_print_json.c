#include "support/dvtest.h"

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "pb/pb.h"
#include "pb/tests/test_hex.h"
#include "proto/davit_node_v1.pb-c.h"
#include "proto/dra_v1.pb-c.h"

#define TEXT_BYTES_MAX 4096u

static void a_message_reads_as_its_proto_names_it(void **state)
{
    static const struct {
        const ProtobufCMessageDescriptor *type;
        const char *hex;
        const char *want;
    } cases[] = {
        {&node_v1__list_devices_response__descriptor, "",                                    "{\"resources\":[],\"pools\":[]}"  },
        {&node_v1__device__descriptor,                "0a0161 1001 1a020001",
         "{\"id\":\"a\",\"healthy\":true,\"numa_nodes\":[0,1],\"holders\":[],\"state\":\"\","
         "\"trouble\":\"\"}"                                                                                                    },
        {&node_v1__device__descriptor,                "0a043c220a01 180b",
         "{\"id\":\"<\\\"\\n\\u0001\",\"healthy\":false,\"numa_nodes\":[11],\"holders\":[],"
         "\"state\":\"\",\"trouble\":\"\"}"                                                                                     },
        {&node_v1__holder__descriptor,                "120163",
         "{\"container\":\"c\",\"claim\":\"\",\"claim_state\":\"\",\"lease\":\"\",\"user\":\"\","
         "\"since_ms\":0}"                                                                                                      },
        {&node_v1__holder__descriptor,                "0a030a0175",
         "{\"pod\":{\"uid\":\"u\",\"namespace\":\"\",\"name\":\"\"},\"container\":\"\",\"claim\":"
         "\"\",\"claim_state\":\"\",\"lease\":\"\",\"user\":\"\",\"since_ms\":0}"                                               },
        {&node_v1__admit_pod_request__descriptor,     "0a027b7d",                            "{\"pod\":\"e30=\"}"               },
        {&node_v1__admit_pod_request__descriptor,     "1000",                                "{\"pod\":\"\",\"wait_seconds\":0}"},
        {&node_v1__plugin__descriptor,                "40ffffffffffffffffff01 48ffffffff0f",
         "{\"socket\":\"\",\"type\":\"\",\"name\":\"\",\"endpoint\":\"\",\"versions\":[],"
         "\"state\":\"\",\"error\":\"\",\"retry_at_ms\":-1,\"attempts\":4294967295,"
         "\"service\":\"\",\"health_service\":\"\",\"connected\":false}"                                                        },
        {&dra_v1__device__descriptor,                 "0a0161 0a0162 2a00",
         "{\"request_names\":[\"a\",\"b\"],\"pool_name\":\"\",\"device_name\":\"\","
         "\"cdi_device_ids\":[],\"share_id\":\"\"}"                                                                             },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
        struct dv_err err;
        const ProtobufCMessage *message =
            dv_pb_decode(cases[i].type, bytes_of_hex(cases[i].hex, arena), arena, &err);

        dv_buf_init(&buf, TEXT_BYTES_MAX);
        assert_non_null(message);
        dv_pb_print_json(message, &buf);
        assert_string_equal(dv_buf_c(&buf), cases[i].want);
    }
}

static void what_is_too_long_is_told(void **state)
{
    NodeV1__StatusResponse status = NODE_V1__STATUS_RESPONSE__INIT;
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_err err;

    (void)state;
    dv_buf_init(&buf, 16);
    dv_pb_print_json(&status.base, &buf);
    assert_false(dv_buf_check(&buf, "status", &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_reads_as_its_proto_names_it),
        cmocka_unit_test(what_is_too_long_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
