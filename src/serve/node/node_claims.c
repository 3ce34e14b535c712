/* node_claims.c - davit.node.v1: ListClaims and ReleaseClaim. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "cluster/recorder.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/node_service.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"

/* ---- what there is ---- */

static const char **texts(const dv_str *v, size_t n, struct dv_arena *arena)
{
    const char **made = DV_NEW_ARRAY(arena, const char *, n);

    for (size_t i = 0; i < n; i++)
        made[i] = dv_str_to_c(v[i], arena);
    return made;
}

static NodeV1__ClaimDevice *device_message(const struct dv_node *node, dv_str driver,
                                           const struct dv_claim_device *device,
                                           struct dv_arena *arena)
{
    NodeV1__ClaimDevice *message = DV_NEW(arena, NodeV1__ClaimDevice);
    dv_str told = DV_STR("");

    node_v1__claim_device__init(message);
    message->pool = dv_str_to_c(device->pool, arena);
    message->device = dv_str_to_c(device->name, arena);
    message->share_id = dv_str_to_c(device->share_id, arena);
    message->requests = texts(device->requests, device->n_requests, arena);
    message->n_requests = device->n_requests;
    message->cdi_devices = texts(device->cdi_ids, device->n_cdi_ids, arena);
    message->n_cdi_devices = device->n_cdi_ids;
    message->health = dv_claim_health_name(
        dv_claim_health_get(dv_claim_manager_state(node->claims), driver, device->pool,
                            device->name, dv_clock_wall_ns(dv_loop_clock(node->loop)), &told));
    message->message = dv_str_to_c(told, arena);
    return message;
}

static NodeV1__ClaimDriver *driver_message(const struct dv_node *node,
                                           const struct dv_claim_driver *driver,
                                           struct dv_arena *arena)
{
    NodeV1__ClaimDriver *message = DV_NEW(arena, NodeV1__ClaimDriver);

    node_v1__claim_driver__init(message);
    message->name = dv_str_to_c(driver->name, arena);
    message->connected = dv_dra_is_usable(dv_claim_manager_drivers(node->claims), driver->name);
    message->devices = DV_NEW_ARRAY(arena, NodeV1__ClaimDevice *, driver->n_devices);
    for (size_t i = 0; i < driver->n_devices; i++)
        message->devices[message->n_devices++] =
            device_message(node, driver->name, &driver->devices[i], arena);
    return message;
}

/* Returns the first of the claim's drivers that is not there; NULL when it needs none now. */
static const char *awaited(const struct dv_node *node, const struct dv_claim *claim,
                           struct dv_arena *arena)
{
    if (claim->record.phase == DV_CLAIM_PREPARED || claim->n_holds > 0)
        return "";
    for (size_t i = 0; i < claim->record.n_drivers; i++) {
        dv_str driver = claim->record.drivers[i].name;

        if (!dv_dra_is_usable(dv_claim_manager_drivers(node->claims), driver))
            return dv_str_to_c(dv_str_printf(arena, "driver %.*s", DV_FMT(driver)), arena);
    }
    return "";
}

static NodeV1__Claim *claim_message(const struct dv_node *node, const struct dv_claim *claim,
                                    struct dv_arena *arena)
{
    const struct dv_claim_record *record = &claim->record;
    NodeV1__Claim *message = DV_NEW(arena, NodeV1__Claim);

    node_v1__claim__init(message);
    message->namespace_ = dv_str_to_c(record->namespace, arena);
    message->name = dv_str_to_c(record->name, arena);
    message->uid = dv_str_to_c(record->uid, arena);
    message->state = dv_claim_phase_name(record->phase);
    message->awaited = awaited(node, claim, arena);
    message->error = claim->error ? dv_str_to_c(dv_str_from_c(claim->error), arena) : "";
    message->pods = DV_NEW_ARRAY(arena, NodeV1__PodRef *, record->n_pods);
    for (size_t i = 0; i < record->n_pods; i++)
        message->pods[message->n_pods++] = dv_serve_ref_of_uid(node, record->pods[i], arena);
    message->drivers = DV_NEW_ARRAY(arena, NodeV1__ClaimDriver *, record->n_drivers);
    for (size_t i = 0; i < record->n_drivers; i++)
        message->drivers[message->n_drivers++] = driver_message(node, &record->drivers[i], arena);
    return message;
}

static bool is_meant(const struct dv_claim *claim, dv_str namespace, dv_str name)
{
    return (namespace.n == 0 || dv_str_eq(namespace, claim->record.namespace)) &&
           (name.n == 0 || dv_str_eq(name, claim->record.name));
}

NodeV1__ListClaimsResponse *dv_serve_claim_list(const struct dv_node *node, dv_str namespace,
                                                dv_str name, struct dv_arena *arena)
{
    NodeV1__ListClaimsResponse *response = DV_NEW(arena, NodeV1__ListClaimsResponse);
    const struct dv_claim_state *state = dv_claim_manager_state(node->claims);
    const struct dv_claim *claim;

    node_v1__list_claims_response__init(response);
    response->claims = DV_NEW_ARRAY(arena, NodeV1__Claim *, dv_claim_count(state));
    for (size_t at = 0; (claim = dv_claim_next(state, &at)) != NULL;)
        if (is_meant(claim, namespace, name))
            response->claims[response->n_claims++] = claim_message(node, claim, arena);
    dv_serve_add_waits(node, response, namespace, name, arena);
    return response;
}

void dv_node_handle_list_claims(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__ListClaimsRequest *request =
        dv_node_decode(call, &node_v1__list_claims_request__descriptor, bytes);

    struct dv_arena *arena;

    if (!request)
        return;
    arena = dv_arena_new();
    dv_serve_reply_long(call, server->node->loop,
                        &dv_serve_claim_list(server->node, dv_str_from_c(request->namespace_),
                                             dv_str_from_c(request->name), arena)
                             ->base,
                        arena);
}

/* ---- ReleaseClaim ---- */

/* A ReleaseClaim that is under way; in the call's arena. */
struct release {
    struct dv_node_server *server;
    struct dv_server_call *call;
    struct dv_claim_operation op;
    dv_str namespace;
    dv_str name;
    dv_str uid;
    dv_str drivers; /* drivers that were not asked */
    dv_str pods;    /* pods that had the claim */
    dv_str reason;
};

/* Leaves a trace for whoever asks later how this came about: in the log, and as an event where
 * there is an API. */
static void audit(const struct release *release)
{
    struct dv_peer peer = dv_server_call_peer(release->call);
    struct dv_arena *arena = dv_server_call_arena(release->call);
    dv_str pods = release->pods.n > 0 ? release->pods : DV_STR("none");
    struct dv_note_subject subject = {
        .kind = DV_STR("ResourceClaim"),
        .api_version = DV_STR("resource.k8s.io/v1"),
        .namespace = release->namespace,
        .name = release->name,
        .uid = release->uid,
    };

    dv_log(DV_LOG_WARN, "serve: a claim was released by force",
           DV_F_STR("namespace", release->namespace), DV_F_STR("claim", release->name),
           DV_F_STR("uid", release->uid), DV_F_STR("drivers", release->drivers),
           DV_F_STR("pods", release->pods), DV_F_STR("reason", release->reason),
           DV_F_U64("by_uid", peer.uid), DV_F_I64("by_pid", peer.pid));
    if (release->server->node->recorder)
        dv_recorder_note(
            release->server->node->recorder, &subject, true, DV_STR("ClaimReleasedByForce"),
            dv_str_printf(arena,
                          "Released on node %.*s by force, by user %u: %.*s (drivers not asked: "
                          "%.*s; pods: %.*s)",
                          DV_FMT(release->server->node->name), (unsigned)peer.uid,
                          DV_FMT(release->reason), DV_FMT(release->drivers), DV_FMT(pods)));
}

static void on_released(struct dv_claim_operation *op, const struct dv_err *err)
{
    struct release *release = DV_CONTAINER(op, struct release, op);
    NodeV1__ReleaseClaimResponse response = NODE_V1__RELEASE_CLAIM_RESPONSE__INIT;

    if (err) {
        dv_server_call_finish(release->call, err);
        return;
    }
    audit(release);
    dv_serve_reply(release->call, &response.base);
}

/* Joins texts as "a, b". */
static dv_str joined(const dv_str *v, size_t n, struct dv_arena *arena)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < n; i++)
        text = i == 0 ? v[0] : dv_str_printf(arena, "%.*s, %.*s", DV_FMT(text), DV_FMT(v[i]));
    return dv_str_copy(text, arena);
}

/* Copies what the claim's record says before it is deleted. */
static void take_record(struct release *release, const struct dv_claim *claim)
{
    struct dv_arena *arena = dv_server_call_arena(release->call);
    dv_str *drivers;

    if (!claim)
        return; /* the answer tells it */
    drivers = DV_NEW_ARRAY(arena, dv_str, claim->record.n_drivers);
    for (size_t i = 0; i < claim->record.n_drivers; i++)
        drivers[i] = claim->record.drivers[i].name;
    release->uid = dv_str_copy(claim->record.uid, arena);
    release->drivers = joined(drivers, claim->record.n_drivers, arena);
    release->pods = joined(claim->record.pods, claim->record.n_pods, arena);
}

static void on_cancelled(void *ctx, struct dv_server_call *call)
{
    struct release *release = ctx;

    (void)call;
    dv_claim_manager_cancel(&release->op);
}

void dv_node_handle_release_claim(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__ReleaseClaimRequest *request =
        dv_node_decode(call, &node_v1__release_claim_request__descriptor, bytes);
    struct dv_claim_manager *claims = server->node->claims;
    struct release *release;
    struct dv_err err;

    if (!request)
        return;
    if (dv_str_trim(dv_str_from_c(request->reason)).n == 0) {
        (void)dv_fail(&err, DV_INVALID_ARGUMENT,
                      "a reason is needed: what drivers prepared is not undone, and others will "
                      "want to know why");
        dv_server_call_finish(call, &err);
        return;
    }
    release = DV_NEW(dv_server_call_arena(call), struct release);
    release->server = server;
    release->call = call;
    release->namespace =
        request->namespace_[0] ? dv_str_from_c(request->namespace_) : DV_STR("default");
    release->name = dv_str_from_c(request->name);
    release->reason = dv_str_from_c(request->reason);
    take_record(release,
                dv_claim_find(dv_claim_manager_state(claims), release->namespace, release->name));
    release->op.done = on_released;
    dv_server_call_on_cancel(call, on_cancelled, release);
    dv_claim_manager_release(claims, &release->op, release->namespace, release->name);
}
