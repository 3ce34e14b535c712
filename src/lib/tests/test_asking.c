#include "lib/tests/test_asking.h"

#include <string.h>

#include "base/arena.h"
#include "lib/tests/test_lib_node.h"
#include "pb/pb.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "support/dvtest.h"

struct asked asked;

static void note(const char *const *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dv_buf_printf(&asked.ids, "%s%s", i ? "," : "", ids[i]);
    dv_buf_add_char(&asked.ids, ';');
}

static void answer(struct davit_call *call)
{
    if (!asked.add) {
        asked.held[asked.n_held++] = call;
        return;
    }
    asked.add(call);
    davit_call_finish(call);
}

static void allocate(void *ctx, struct davit_call *call,
                     const struct davit_allocate_request *request)
{
    (void)ctx;
    note(request->ids, request->n_ids);
    answer(call);
}

static void prestart(void *ctx, struct davit_call *call, const char *const *ids, size_t n_ids)
{
    (void)ctx;
    note(ids, n_ids);
    answer(call);
}

static void prefer(void *ctx, struct davit_call *call, const struct davit_prefer_request *request)
{
    (void)ctx;
    note(request->available, request->n_available);
    note(request->must_include, request->n_must_include);
    dv_buf_printf(&asked.ids, "%zu;", request->size);
    answer(call);
}

int asking_start(void **state)
{
    struct node *node;

    assert_int_equal(node_start(state), 0);
    node = *state;
    memset(&asked, 0, sizeof(asked));
    dv_buf_init(&asked.ids, 1u << 20);
    node->options.allocate = allocate;
    node->options.prestart = prestart;
    node->options.prefer = prefer;
    node_open(node);
    wait_events(node, "serving;problem UNAVAILABLE;");
    node_connect(node, node->socket_path);
    return 0;
}

int asking_end(void **state)
{
    dv_buf_fini(&asked.ids);
    return node_end(state);
}

const DpV1beta1__AllocateRequest *make_ask(const char *text, struct dv_arena *arena)
{
    DpV1beta1__AllocateRequest *ask = DV_NEW(arena, DpV1beta1__AllocateRequest);
    dv_str rest = dv_str_from_c(text);
    dv_str ids;
    dv_str id;

    dp_v1beta1__allocate_request__init(ask);
    ask->container_requests =
        DV_NEW_ARRAY(arena, DpV1beta1__ContainerAllocateRequest *, rest.n + 1);
    while (text[0] != '\0' && dv_str_split(&rest, ' ', &ids)) {
        DpV1beta1__ContainerAllocateRequest *one =
            DV_NEW(arena, DpV1beta1__ContainerAllocateRequest);

        dp_v1beta1__container_allocate_request__init(one);
        one->devices_ids = DV_NEW_ARRAY(arena, const char *, ids.n + 1);
        while (ids.n > 0 && dv_str_split(&ids, ',', &id))
            one->devices_ids[one->n_devices_ids++] = dv_str_to_c(id, arena);
        ask->container_requests[ask->n_container_requests++] = one;
    }
    return ask;
}

const DpV1beta1__AllocateResponse *read_answer(const struct probe *probe, struct dv_arena *arena)
{
    struct dv_err err;
    const DpV1beta1__AllocateResponse *response = dv_pb_decode(
        &dp_v1beta1__allocate_response__descriptor, dv_buf_str(&probe->got), arena, &err);

    assert_ok(response != NULL, &err);
    return response;
}
