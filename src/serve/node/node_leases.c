/* node_leases.c - davit.node.v1: leases are taken, renewed, given back, ended and listed. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "lease/lease.h"
#include "lease/lease_spec.h"
#include "loop/loop.h"
#include "plugin/guard.h"
#include "pod/pod.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/node_service.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"

#define GRACE_S 30u
/* How often a request that came too early is tried again. */
#define AGAIN_MS 250u

/* ---- who asks ---- */

static bool find_caller(const struct dv_node *node, struct dv_server_call *call,
                        struct dv_lease_caller *caller)
{
    struct dv_peer peer = dv_server_call_peer(call);
    const struct dv_stream *stream = dv_server_call_stream(call);
    struct dv_err err;

    *caller = (struct dv_lease_caller){
        .uid = peer.uid,
        .pid = peer.pid > 0 ? (uint32_t)peer.pid : 0,
        .is_root = peer.uid == 0 || peer.uid == geteuid(),
        .peer = stream ? dv_guard_identify(node->guard, stream, dv_server_call_arena(call)) : NULL};
    if (node->leases)
        return true;
    (void)dv_fail(&err, DV_UNAVAILABLE, "davitd is stopping: try again");
    dv_server_call_finish(call, &err);
    return false;
}

/* ---- TakeLease ---- */

/* A caller that waits for a lease, or listens to it; in the call's arena. */
struct taking {
    struct dv_node_server *server;
    struct dv_server_call *call;
    struct dv_lease_listener listener;
    struct dv_lease_request request;
    struct dv_lease_caller caller;
    struct dv_timer again; /* while nothing can be told */
    bool is_told;          /* that it waits */
};

static const dv_str *read_texts(const char *const *texts, size_t n, struct dv_arena *arena)
{
    dv_str *made = DV_NEW_ARRAY(arena, dv_str, n);

    for (size_t i = 0; i < n; i++)
        made[i] = dv_str_from_c(texts[i]);
    return made;
}

static struct dv_lease_owner_request read_owner(const NodeV1__LeaseOwner *owner)
{
    return (struct dv_lease_owner_request){.pid = owner->pid,
                                           .start = owner->start_time,
                                           .cgroup = dv_str_from_c(owner->cgroup),
                                           .unit = dv_str_from_c(owner->unit)};
}

static void read_request(const NodeV1__TakeLeaseRequest *message, struct dv_arena *arena,
                         struct dv_lease_request *request)
{
    struct dv_lease_resource *resources =
        DV_NEW_ARRAY(arena, struct dv_lease_resource, message->n_resources);
    struct dv_lease_devices *devices =
        DV_NEW_ARRAY(arena, struct dv_lease_devices, message->n_devices);

    *request = (struct dv_lease_request){
        .resources = resources,
        .n_resources = message->n_resources,
        .devices = devices,
        .n_devices = message->n_devices,
        .wait_ms = UINT64_MAX,
        .max_s = message->max_seconds,
        .priority = message->priority,
        .command = read_texts(message->command, message->n_command, arena),
        .n_command = message->n_command,
        .key = dv_str_from_c(message->key),
        .only_attaches = message->only_attach,
        .grace_s = GRACE_S,
    };
    if (message->has_wait_seconds_case ==
        NODE_V1__TAKE_LEASE_REQUEST__HAS_WAIT_SECONDS_WAIT_SECONDS)
        request->wait_ms = (uint64_t)message->wait_seconds * 1000;
    if (message->has_grace_seconds_case ==
        NODE_V1__TAKE_LEASE_REQUEST__HAS_GRACE_SECONDS_GRACE_SECONDS)
        request->grace_s = message->grace_seconds;
    if (message->owner)
        request->owner = read_owner(message->owner);
    for (size_t i = 0; i < message->n_resources; i++)
        resources[i] = (struct dv_lease_resource){dv_str_from_c(message->resources[i]->resource),
                                                  message->resources[i]->count};
    for (size_t i = 0; i < message->n_devices; i++) {
        const NodeV1__LeaseDevices *one = message->devices[i];

        devices[i] = (struct dv_lease_devices){
            .class = dv_str_from_c(one->device_class),
            .request = dv_str_from_c(one->request),
            .n = one->count,
            .where = read_texts(one->where, one->n_where, arena),
            .n_where = one->n_where,
            .same = read_texts(one->same, one->n_same, arena),
            .n_same = one->n_same,
        };
    }
}

/* Sends news; a caller who does not read them, or is gone, is left. False: it was. */
static bool send_news(struct taking *taking, const NodeV1__LeaseNews *news)
{
    struct dv_h2_msg *msg = dv_grpc_encode(&news->base);
    struct dv_err err;
    bool ok = dv_server_call_send(taking->call, msg, &err);

    dv_h2_msg_unref(msg);
    return ok;
}

static bool add_grant(const struct taking *taking, NodeV1__LeaseNews *news, struct dv_arena *arena,
                      struct dv_err *err)
{
    const struct dv_node *node = taking->server->node;
    NodeV1__ContainerOptionsResponse options = NODE_V1__CONTAINER_OPTIONS_RESPONSE__INIT;
    NodeV1__LeaseGrant *grant = DV_NEW(arena, NodeV1__LeaseGrant);
    const struct dv_lease *lease = dv_lease_of(&taking->listener);
    struct dv_lease_view view;

    dv_lease_get_view(lease, &view);
    if (!dv_node_container_options(node, &(struct dv_pod_ref){.uid = view.spec->uid},
                                   DV_STR(DV_LEASE_CONTAINER), arena, &options, err))
        return false;
    node_v1__lease_grant__init(grant);
    grant->lease = dv_serve_lease(node, lease, dv_server_call_peer(taking->call).uid, arena);
    grant->envs = options.envs;
    grant->n_envs = options.n_envs;
    grant->mounts = options.mounts;
    grant->n_mounts = options.n_mounts;
    grant->devices = options.devices;
    grant->n_devices = options.n_devices;
    grant->annotations = options.annotations;
    grant->n_annotations = options.n_annotations;
    grant->cdi_devices = options.cdi_devices;
    grant->n_cdi_devices = options.n_cdi_devices;
    news->granted = grant;
    return true;
}

static void add_end(const struct taking *taking, NodeV1__LeaseNews *news, struct dv_arena *arena)
{
    NodeV1__LeaseEnd *end = DV_NEW(arena, NodeV1__LeaseEnd);
    struct dv_lease_view view;

    dv_lease_get_view(dv_lease_of(&taking->listener), &view);
    node_v1__lease_end__init(end);
    end->reason = dv_str_to_c(view.spec->end.reason, arena);
    end->message = dv_str_to_c(view.spec->end.message, arena);
    end->by = dv_str_to_c(view.spec->end.by, arena);
    news->ended = end;
}

static void add_warning(const struct taking *taking, NodeV1__LeaseNews *news,
                        struct dv_arena *arena)
{
    struct dv_lease_view view;

    dv_lease_get_view(dv_lease_of(&taking->listener), &view);
    news->warning = DV_NEW(arena, NodeV1__LeaseWarning);
    node_v1__lease_warning__init(news->warning);
    news->warning->ends_ms = (int64_t)view.spec->ends_ms;
    news->warning->reason = "MaxTime";
}

static void on_told(struct dv_lease_listener *listener, enum dv_lease_news what,
                    const struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct taking *taking = DV_CONTAINER(listener, struct taking, listener);
    NodeV1__LeaseNews news = NODE_V1__LEASE_NEWS__INIT;
    struct dv_err own;

    switch (what) {
    case DV_LEASE_WAITS:
        if (dv_server_call_unsent_bytes(taking->call) > 0)
            return; /* the caller reads the one before first */
        news.waiting = dv_serve_lease_waiting(taking->server->node, dv_lease_of(listener), arena);
        break;
    case DV_LEASE_GRANTED:
        if (!add_grant(taking, &news, arena, &own)) {
            dv_lease_leave(listener);
            dv_server_call_finish(taking->call, &own);
            return;
        }
        break;
    case DV_LEASE_WARNS:
        add_warning(taking, &news, arena);
        break;
    case DV_LEASE_ENDED:
        add_end(taking, &news, arena);
        (void)send_news(taking, &news); /* a caller that is gone needs no last word */
        dv_server_call_finish(taking->call, NULL);
        return;
    case DV_LEASE_FAILED:
        dv_server_call_finish(taking->call, err);
        return;
    }
    (void)send_news(taking, &news); /* that the caller is gone is told by on_cancelled */
}

static void on_cancelled(void *ctx, struct dv_server_call *call)
{
    struct taking *taking = ctx;

    dv_timer_cancel(&taking->again);
    dv_lease_leave(&taking->listener);
    dv_server_call_finish(call, NULL);
}

/* ---- requests that come too early ---- */

static void take(struct taking *taking);

static void on_again(struct dv_timer *timer)
{
    take(DV_CONTAINER(timer, struct taking, again));
}

/* A request of which nothing can be told yet waits here: davitd has just been started, or the
 * machine, and drivers are still to come. False: it does not wait for that. */
static bool wait_for_start(struct taking *taking, const struct dv_err *err)
{
    struct dv_loop *loop = taking->server->node->loop;
    NodeV1__LeaseNews news = NODE_V1__LEASE_NEWS__INIT;
    NodeV1__LeaseWaiting waiting = NODE_V1__LEASE_WAITING__INIT;
    uint64_t *wait_ms = &taking->request.wait_ms;

    if (err->code != DV_UNAVAILABLE || !taking->server->node->leases || *wait_ms < AGAIN_MS)
        return false;
    waiting.awaited = err->msg;
    news.waiting = &waiting;
    if (!taking->is_told)
        (void)send_news(taking, &news); /* that the caller is gone is told by on_cancelled */
    taking->is_told = true;
    if (*wait_ms != UINT64_MAX)
        *wait_ms -= AGAIN_MS;
    dv_timer_start(&taking->again, loop, dv_loop_now_ms(loop) + AGAIN_MS, on_again);
    return true;
}

static void take(struct taking *taking)
{
    struct dv_leases *leases = taking->server->node->leases;
    struct dv_err err;

    if (!leases)
        (void)dv_fail(&err, DV_UNAVAILABLE, "davitd is stopping: try again");
    else if (dv_leases_take(leases, &taking->caller, &taking->request, &taking->listener, &err))
        return;
    if (!wait_for_start(taking, &err))
        dv_server_call_finish(taking->call, &err);
}

void dv_node_handle_take_lease(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__TakeLeaseRequest *message =
        dv_node_decode(call, &node_v1__take_lease_request__descriptor, bytes);
    struct dv_arena *arena = dv_server_call_arena(call);
    struct taking *taking = DV_NEW(arena, struct taking);
    struct dv_err err;

    taking->server = server;
    taking->call = call;
    taking->listener.told = on_told;
    if (!message || !find_caller(server->node, call, &taking->caller))
        return;
    read_request(message, arena, &taking->request);
    if (message->dry_run) {
        bool ok = dv_leases_check(server->node->leases, &taking->caller, &taking->request, &err);

        dv_server_call_finish(call, ok ? NULL : &err);
        return;
    }
    dv_server_call_on_cancel(call, on_cancelled, taking);
    take(taking);
}

/* ---- what is done with a lease ---- */

/* A call whose answer comes later; in the call's arena. */
struct pending {
    struct dv_node_server *server;
    struct dv_server_call *call;
    struct dv_lease_operation operation;
    dv_str id;
    const struct ProtobufCMessage *answer; /* NULL: it is made when it is done */
};

static void on_done(struct dv_lease_operation *operation, const struct dv_err *err)
{
    struct pending *pending = DV_CONTAINER(operation, struct pending, operation);
    NodeV1__RenewLeaseResponse renewed = NODE_V1__RENEW_LEASE_RESPONSE__INIT;
    const struct dv_node *node = pending->server->node;
    const struct dv_lease *lease =
        node->leases && !err ? dv_leases_find(node->leases, pending->id) : NULL;

    if (err) {
        dv_server_call_finish(pending->call, err);
        return;
    }
    if (lease && !pending->answer)
        renewed.lease = dv_serve_lease(node, lease, dv_server_call_peer(pending->call).uid,
                                       dv_server_call_arena(pending->call));
    dv_serve_reply(pending->call, pending->answer ? pending->answer : &renewed.base);
}

static struct pending *new_pending(void *ctx, struct dv_server_call *call, const char *id)
{
    struct pending *pending = DV_NEW(dv_server_call_arena(call), struct pending);

    pending->server = ctx;
    pending->call = call;
    pending->id = dv_str_from_c(id);
    pending->operation.done = on_done;
    return pending;
}

void dv_node_handle_renew_lease(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__RenewLeaseRequest *request =
        dv_node_decode(call, &node_v1__renew_lease_request__descriptor, bytes);
    struct dv_lease_caller caller;
    struct dv_lease_owner_request owner;
    struct pending *pending;

    if (!request || !find_caller(server->node, call, &caller))
        return;
    pending = new_pending(ctx, call, request->id);
    if (request->owner)
        owner = read_owner(request->owner);
    dv_leases_renew(server->node->leases, &pending->operation, &caller, pending->id,
                    &(struct dv_lease_renewal){.keeps_end = request->keeps_end,
                                               .max_s = request->max_seconds,
                                               .owner = request->owner ? &owner : NULL});
}

void dv_node_handle_give_lease(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    static const NodeV1__GiveLeaseResponse given = NODE_V1__GIVE_LEASE_RESPONSE__INIT;
    struct dv_node_server *server = ctx;
    const NodeV1__GiveLeaseRequest *request =
        dv_node_decode(call, &node_v1__give_lease_request__descriptor, bytes);
    struct dv_lease_caller caller;
    struct pending *pending;

    if (!request || !find_caller(server->node, call, &caller))
        return;
    pending = new_pending(ctx, call, request->id);
    pending->answer = &given.base;
    dv_leases_give(server->node->leases, &pending->operation, &caller, pending->id);
}

void dv_node_handle_end_lease(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    static const NodeV1__EndLeaseResponse ended = NODE_V1__END_LEASE_RESPONSE__INIT;
    struct dv_node_server *server = ctx;
    const NodeV1__EndLeaseRequest *request =
        dv_node_decode(call, &node_v1__end_lease_request__descriptor, bytes);
    struct dv_lease_caller caller;
    struct pending *pending;

    if (!request || !find_caller(server->node, call, &caller))
        return;
    pending = new_pending(ctx, call, request->id);
    pending->answer = &ended.base;
    dv_leases_end(server->node->leases, &pending->operation, &caller, pending->id,
                  dv_str_from_c(request->reason));
}

void dv_node_handle_list_leases(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__ListLeasesRequest *request =
        dv_node_decode(call, &node_v1__list_leases_request__descriptor, bytes);

    if (request) {
        uint32_t uid = dv_server_call_peer(call).uid;
        struct dv_arena *arena = dv_arena_new();
        const NodeV1__ListLeasesResponse *answer =
            dv_serve_lease_list(server->node, uid, request->own_only, arena);

        dv_serve_reply_long(call, server->node->loop, &answer->base, arena);
    }
}
