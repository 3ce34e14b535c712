/* calls.c - lists who waits for whom: calls that drivers and plugins have not answered, and claims
 * that wait for drivers. */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"

/* Converts a time on the loop's clock to unix time. */
static int64_t wall_ms(const struct dv_node *node, uint64_t loop_ns)
{
    uint64_t ago_ns = dv_loop_now_ns(node->loop) - loop_ns;

    return (int64_t)((dv_clock_wall_ns(dv_loop_clock(node->loop)) - ago_ns) / DV_NS_PER_MS);
}

static NodeV1__PodRef *ref_of(const struct dv_node *node, dv_str uid, struct dv_arena *arena)
{
    if (uid.n == 0)
        return NULL;
    return dv_serve_ref_of_uid(node, uid, arena);
}

/* ---- calls ---- */

struct gathering {
    const struct dv_node *node;
    struct dv_arena *arena;
    struct {
        NodeV1__Call **v;
        size_t n;
        size_t size;
    } calls;
};

static NodeV1__Call *add_call(struct gathering *gathering, const char *type, dv_str name,
                              dv_str socket, dv_str method, dv_str pod_uid, uint64_t since_ns)
{
    struct dv_arena *arena = gathering->arena;
    NodeV1__Call *message = DV_NEW(arena, NodeV1__Call);

    node_v1__call__init(message);
    message->type = type;
    message->name = dv_str_to_c(name, arena);
    message->socket = dv_str_to_c(socket, arena);
    message->method = dv_str_to_c(method, arena);
    message->pod = ref_of(gathering->node, pod_uid, arena);
    message->since_ms = wall_ms(gathering->node, since_ns);
    *dv_vec_add_in(&gathering->calls, arena) = message;
    return message;
}

static void see_driver(void *ctx, const struct dv_claim_call *call)
{
    struct gathering *gathering = ctx;
    struct dv_arena *arena = gathering->arena;
    NodeV1__Call *message = add_call(gathering, "DRAPlugin", call->driver, call->endpoint,
                                     call->method, call->pod_uid, call->since_ns);

    message->claims = DV_NEW_ARRAY(arena, const char *, call->n_claims);
    for (size_t i = 0; i < call->n_claims; i++) {
        const struct dv_claim_record *record = &call->claims[i]->record;

        message->claims[message->n_claims++] = dv_str_to_c(
            dv_str_printf(arena, "%.*s/%.*s", DV_FMT(record->namespace), DV_FMT(record->name)),
            arena);
    }
}

static void see_plugin(void *ctx, const struct dv_device_call *call)
{
    struct gathering *gathering = ctx;
    NodeV1__Call *message = add_call(gathering, "DevicePlugin", call->resource, call->socket,
                                     dv_str_from_c(call->method), call->pod_uid, call->since_ns);

    message->container = dv_str_to_c(call->container, gathering->arena);
}

size_t dv_serve_calls(const struct dv_node *node, struct dv_arena *arena, NodeV1__Call ***calls)
{
    struct gathering gathering = {.node = node, .arena = arena};

    dv_claim_manager_each_call(node->claims, see_driver, &gathering);
    dv_device_manager_each_call(node->devices, see_plugin, &gathering);
    *calls = gathering.calls.v;
    return gathering.calls.n;
}

/* ---- claims that wait ---- */

struct waits {
    const struct dv_node *node;
    struct dv_arena *arena;
    NodeV1__ListClaimsResponse *response;
    size_t size; /* room in its list */
    dv_str namespace;
    dv_str name;
    struct dv_map by_uid; /* its claims by uid */
};

static void see_called(void *ctx, const struct dv_claim_call *call)
{
    struct waits *waits = ctx;

    for (size_t i = 0; i < call->n_claims; i++) {
        NodeV1__Claim *message = dv_map_get(&waits->by_uid, call->claims[i]->record.uid);

        if (!message || message->awaited[0])
            continue;
        message->awaited = dv_str_to_c(dv_str_printf(waits->arena, "driver %.*s to answer %.*s",
                                                     DV_FMT(call->driver), DV_FMT(call->method)),
                                       waits->arena);
        message->since_ms = wall_ms(waits->node, call->since_ns);
    }
}

static NodeV1__Claim *add_wanted(struct waits *waits, const struct dv_claim_wait *wait)
{
    struct dv_arena *arena = waits->arena;
    NodeV1__ListClaimsResponse *response = waits->response;
    NodeV1__Claim *message = DV_NEW(arena, NodeV1__Claim);
    struct {
        NodeV1__Claim **v;
        size_t n;
        size_t size;
    } list = {response->claims, response->n_claims, waits->size};

    node_v1__claim__init(message);
    message->namespace_ = dv_str_to_c(wait->namespace, arena);
    message->name = dv_str_to_c(wait->name, arena);
    message->uid = dv_str_to_c(wait->uid, arena);
    message->state = dv_claim_phase_name(DV_CLAIM_WANTED);
    message->awaited = "";
    message->pods = DV_NEW_ARRAY(arena, NodeV1__PodRef *, 1);
    message->pods[0] = ref_of(waits->node, wait->pod_uid, arena);
    message->n_pods = message->pods[0] ? 1 : 0;
    *dv_vec_add_in(&list, arena) = message;
    response->claims = list.v;
    response->n_claims = list.n;
    waits->size = list.size;
    (void)dv_map_set(&waits->by_uid, dv_str_from_c(message->uid), message);
    return message;
}

static void see_waiting(void *ctx, const struct dv_claim_wait *wait)
{
    struct waits *waits = ctx;
    NodeV1__Claim *message = dv_map_get(&waits->by_uid, wait->uid);

    if (wait->uid.n == 0 ||
        (waits->namespace.n > 0 && !dv_str_eq(waits->namespace, wait->namespace)) ||
        (waits->name.n > 0 && !dv_str_eq(waits->name, wait->name)))
        return;
    if (message && dv_str_eq(dv_str_from_c(message->state),
                             dv_str_from_c(dv_claim_phase_name(DV_CLAIM_PREPARED))))
        return; /* the pod waits for another of its claims */
    if (!message)
        message = add_wanted(waits, wait);
    if (message->awaited[0] && message->since_ms > 0)
        return;
    message->awaited = dv_str_to_c(wait->awaited, waits->arena);
    message->since_ms = wall_ms(waits->node, wait->since_ns);
}

void dv_serve_add_waits(const struct dv_node *node, NodeV1__ListClaimsResponse *response,
                        dv_str namespace, dv_str name, struct dv_arena *arena)
{
    struct waits waits = {.node = node,
                          .arena = arena,
                          .response = response,
                          .size = response->n_claims,
                          .namespace = namespace,
                          .name = name};

    dv_map_init(&waits.by_uid);
    for (size_t i = 0; i < response->n_claims; i++)
        (void)dv_map_set(&waits.by_uid, dv_str_from_c(response->claims[i]->uid),
                         response->claims[i]);
    dv_claim_manager_each_call(node->claims, see_called, &waits);
    dv_claim_manager_each_wait(node->claims, see_waiting, &waits);
    dv_map_fini(&waits.by_uid);
}
