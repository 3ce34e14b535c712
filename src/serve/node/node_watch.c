/* node_watch.c - davit.node.v1: WatchDevices, WatchPods, WatchClaims and WatchLeases, which send
 * the whole list after every change.
 *
 * Those who watch the same list share it: it is made once, and each gets it when it has read the
 * one before. Making a long list takes the loop some milliseconds. So a turn makes one of them, a
 * job encodes it, and then there is a pause in proportion: however often something changes, and
 * however many watch, lists take a small part of the loop's time. A change that does not show in
 * the list (several parts of the daemon tell of one change) sends nothing.
 *
 *     a change -> stale -> due (at once, or after the pause) -> made -> encoded -> sent to all
 *                   ^                                                      |
 *                   +------------- it changed meanwhile -------------------+
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/node_service.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"

/* Short lists are made in one turn until this much time has gone. */
#define TURN_NS (2u * DV_NS_PER_MS)
/* The pause after a list is this many times as long as making it took. A list that took less than
 * a millisecond has none: who admits a pod and waits for it should see it at once. */
#define PAUSE_FACTOR 10u

struct listing;

typedef const ProtobufCMessage *make_fn(const struct listing *listing, struct dv_arena *arena);

/* What is listed: everything of a kind, or what the request named. */
struct filter {
    dv_str resource;       /* for devices: only this resource */
    struct dv_pod_ref pod; /* for pods or claims: only this pod, or claims of that name */
    uint32_t uid;          /* for leases: who looks at them */
    bool is_own;           /* for leases: only those of that user */
};

/* A list that somebody watches. It lives until nobody watches or holds it. */
struct listing {
    struct dv_node_server *server; /* valid while somebody watches */
    struct dv_link link;           /* in the server's list of its kind */
    struct dv_link due_link;
    make_fn *make;
    struct dv_arena *arena; /* texts of the filter */
    struct filter filter;
    struct dv_list watches;
    size_t n_watches;
    struct dv_h2_msg *newest; /* NULL when everybody has got it: a long one takes megabytes */
    uint64_t version;         /* counts the lists that were made and differ from the one before */
    uint64_t hash;            /* of the last one that was made */
    size_t n_behind;          /* watches that have not got the newest yet */
    uint64_t earliest_ms;     /* it is not made before this time */
    struct dv_timer timer;    /* ends the pause */
    struct dv_serve_encoding encoding;
    unsigned n_holds; /* by the job that encodes it, and while it is sent */
    bool is_stale;    /* it has changed since it was made */
    bool is_encoding;
};

/* A watch; it is in the call's arena. */
struct watch {
    struct listing *listing;
    struct dv_server_call *call;
    struct dv_link link;
    uint64_t seen; /* the version that was sent last */
    bool is_new;   /* it waits for its first list, which has to be made after it began */
};

static const ProtobufCMessage *make_devices(const struct listing *listing, struct dv_arena *arena)
{
    return &dv_serve_device_list(listing->server->node, listing->filter.resource, arena)->base;
}

static const ProtobufCMessage *make_pods(const struct listing *listing, struct dv_arena *arena)
{
    return &dv_serve_pod_list(listing->server->node, &listing->filter.pod, arena)->base;
}

static const ProtobufCMessage *make_claims(const struct listing *listing, struct dv_arena *arena)
{
    return &dv_serve_claim_list(listing->server->node, listing->filter.pod.namespace,
                                listing->filter.pod.name, arena)
                ->base;
}

static const ProtobufCMessage *make_leases(const struct listing *listing, struct dv_arena *arena)
{
    return &dv_serve_lease_list(listing->server->node, listing->filter.uid, listing->filter.is_own,
                                arena)
                ->base;
}

/* ---- sending ---- */

static void free_if_unused(struct listing *listing)
{
    if (listing->server || listing->n_holds > 0)
        return;
    dv_h2_msg_unref(listing->newest);
    dv_arena_free(listing->arena);
    free(listing);
}

static bool is_behind(const struct watch *watch)
{
    return watch->listing->newest && watch->seen != watch->listing->version;
}

static void count_one_less(struct listing *listing)
{
    if (--listing->n_behind > 0)
        return;
    dv_h2_msg_unref(listing->newest);
    listing->newest = NULL;
}

/* Ends the watch, whose memory goes with its call, and the list with its last watch. */
static void end_watch(struct watch *watch, const struct dv_err *err)
{
    struct listing *listing = watch->listing;

    if (is_behind(watch))
        count_one_less(listing);
    dv_link_remove(&watch->link);
    dv_server_call_finish(watch->call, err);
    if (--listing->n_watches > 0)
        return;
    dv_timer_cancel(&listing->timer);
    dv_link_remove(&listing->due_link);
    dv_link_remove(&listing->link);
    listing->server = NULL;
    free_if_unused(listing);
}

/* Sends the newest list, unless the client has not read the one before: then it gets the one that
 * is the newest when it has. */
static void send_newest(struct watch *watch)
{
    struct listing *listing = watch->listing;
    struct dv_err err;
    bool ok;

    if (!is_behind(watch) || dv_server_call_unsent_bytes(watch->call) > 0)
        return;
    ok = dv_server_call_send(watch->call, listing->newest, &err);
    watch->seen = listing->version;
    count_one_less(listing);
    if (!ok)
        end_watch(watch, &err);
}

static void on_drained(void *ctx, struct dv_server_call *call)
{
    (void)call;
    send_newest(ctx);
}

static void on_cancelled(void *ctx, struct dv_server_call *call)
{
    (void)call;
    end_watch(ctx, NULL);
}

/* Counts those that have not got the newest list, which may be the same one as before. */
static size_t count_behind(struct listing *listing)
{
    size_t n = 0;

    for (struct dv_link *link = listing->watches.head.next; link != &listing->watches.head;
         link = link->next) {
        struct watch *watch = DV_CONTAINER(link, struct watch, link);

        if (watch->is_new)
            watch->seen = listing->version - 1;
        watch->is_new = false;
        if (watch->seen != listing->version)
            n++;
    }
    return n;
}

/* Sends a list that was just made to all who have not got the same one. Takes the reference to
 * `msg`. */
static void send_all(struct listing *listing, struct dv_h2_msg *msg, uint64_t hash)
{
    struct dv_link *link = listing->watches.head.next;

    dv_h2_msg_unref(listing->newest);
    listing->newest = msg;
    if (listing->version == 0 || hash != listing->hash)
        listing->version++;
    listing->hash = hash;
    listing->n_behind = count_behind(listing);
    if (listing->n_behind == 0) {
        dv_h2_msg_unref(msg);
        listing->newest = NULL;
    }
    while (link != &listing->watches.head) {
        struct dv_link *next = link->next; /* taken first: a watch that fails leaves the list */

        send_newest(DV_CONTAINER(link, struct watch, link));
        link = next;
    }
}

/* ---- making ---- */

static void on_due(struct dv_task *task);

static void make_due(struct listing *listing)
{
    struct dv_node_server *server = listing->server;

    /* A change may come when the pause is over, and before its timer is seen: the timer would have
     * the list made again while a job encodes it. */
    dv_timer_cancel(&listing->timer);
    if (dv_link_is_in(&listing->due_link))
        return;
    dv_list_push(&server->due_listings, &listing->due_link);
    dv_task_post(&server->listing_task, server->node->loop, on_due);
}

static void on_pause_ended(struct dv_timer *timer)
{
    make_due(DV_CONTAINER(timer, struct listing, timer));
}

static void mark_stale(struct listing *listing)
{
    struct dv_loop *loop = listing->server->node->loop;

    listing->is_stale = true;
    if (listing->is_encoding)
        return; /* on_encoded looks again */
    if (dv_loop_now_ms(loop) >= listing->earliest_ms)
        make_due(listing);
    else
        dv_timer_start(&listing->timer, loop, listing->earliest_ms, on_pause_ended);
}

static void finish_making(struct listing *listing, struct dv_h2_msg *msg, uint64_t hash)
{
    listing->n_holds++; /* the last watch may end while it is sent */
    send_all(listing, msg, hash);
    listing->n_holds--;
    if (listing->server && listing->is_stale)
        mark_stale(listing);
    free_if_unused(listing);
}

static void on_encoded(struct dv_serve_encoding *encoding, struct dv_h2_msg *msg,
                       const struct dv_err *err)
{
    struct listing *listing = DV_CONTAINER(encoding, struct listing, encoding);

    listing->is_encoding = false;
    listing->n_holds--;
    if (err || !listing->server) { /* the loop closes, or nobody watches any more */
        dv_h2_msg_unref(msg);
        free_if_unused(listing);
        return;
    }
    finish_making(listing, msg, encoding->hash);
}

static void make_list(struct listing *listing)
{
    struct dv_loop *loop = listing->server->node->loop;
    struct dv_arena *arena = dv_arena_new();
    uint64_t start_ns = dv_clock_now_ns(dv_loop_clock(loop));
    const ProtobufCMessage *message = listing->make(listing, arena);
    uint64_t took_ms = (dv_clock_now_ns(dv_loop_clock(loop)) - start_ns) / DV_NS_PER_MS;

    listing->is_stale = false;
    listing->earliest_ms = dv_loop_now_ms(loop) + took_ms * PAUSE_FACTOR;
    if (dv_serve_is_short(arena)) {
        struct dv_h2_msg *msg = dv_grpc_encode(message);

        dv_arena_free(arena);
        finish_making(listing, msg, dv_serve_hash(msg));
        return;
    }
    assert(!listing->is_encoding); /* the job has the one arena of the listing */
    listing->is_encoding = true;
    listing->n_holds++;
    listing->encoding.done = on_encoded;
    dv_serve_encode(&listing->encoding, loop, message, arena);
}

static void on_due(struct dv_task *task)
{
    struct dv_node_server *server = DV_CONTAINER(task, struct dv_node_server, listing_task);
    struct dv_loop *loop = server->node->loop;
    uint64_t end_ns = dv_clock_now_ns(dv_loop_clock(loop)) + TURN_NS;
    struct dv_link *link;

    while ((link = dv_list_shift(&server->due_listings)) != NULL) {
        make_list(DV_CONTAINER(link, struct listing, due_link));
        if (dv_clock_now_ns(dv_loop_clock(loop)) >= end_ns)
            break;
    }
    if (!dv_list_is_empty(&server->due_listings))
        dv_task_post_next_turn(task, loop, on_due);
}

/* ---- who watches ---- */

static bool is_same(const struct filter *a, const struct filter *b)
{
    return a->uid == b->uid && a->is_own == b->is_own && dv_str_eq(a->resource, b->resource) &&
           dv_str_eq(a->pod.uid, b->pod.uid) && dv_str_eq(a->pod.namespace, b->pod.namespace) &&
           dv_str_eq(a->pod.name, b->pod.name);
}

static struct listing *new_listing(struct dv_node_server *server, make_fn *make,
                                   const struct filter *filter)
{
    struct listing *listing = DV_ALLOC(struct listing);
    struct dv_arena *arena = dv_arena_new();

    listing->server = server;
    listing->make = make;
    listing->arena = arena;
    listing->filter = (struct filter){
        .resource = dv_str_copy(filter->resource, arena),
        .pod = {dv_str_copy(filter->pod.uid, arena), dv_str_copy(filter->pod.namespace, arena),
                dv_str_copy(filter->pod.name, arena)},
        .uid = filter->uid,
        .is_own = filter->is_own,
    };
    dv_list_init(&listing->watches);
    return listing;
}

/* Begins a watch of the list. `listings` are those of its kind. */
static void start_watch(struct dv_node_server *server, struct dv_server_call *call,
                        struct dv_list *listings, make_fn *make, const struct filter *filter)
{
    struct watch *watch = DV_NEW(dv_server_call_arena(call), struct watch);
    struct dv_link *link = listings->head.next;

    while (link != &listings->head &&
           !is_same(&DV_CONTAINER(link, struct listing, link)->filter, filter))
        link = link->next;
    if (link != &listings->head) {
        watch->listing = DV_CONTAINER(link, struct listing, link);
    } else {
        watch->listing = new_listing(server, make, filter);
        dv_list_push(listings, &watch->listing->link);
    }
    watch->call = call;
    watch->seen = watch->listing->version;
    watch->is_new = true;
    dv_list_push(&watch->listing->watches, &watch->link);
    watch->listing->n_watches++;
    dv_server_call_on_cancel(call, on_cancelled, watch);
    dv_server_call_on_drained(call, on_drained, watch);
    mark_stale(watch->listing);
}

void dv_node_handle_watch_devices(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__ListDevicesRequest *request =
        dv_node_decode(call, &node_v1__list_devices_request__descriptor, bytes);

    if (request)
        start_watch(server, call, &server->device_listings, make_devices,
                    &(struct filter){.resource = dv_str_from_c(request->resource)});
}

void dv_node_handle_watch_pods(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__WatchPodsRequest *request =
        dv_node_decode(call, &node_v1__watch_pods_request__descriptor, bytes);

    if (request)
        start_watch(server, call, &server->pod_listings, make_pods,
                    &(struct filter){.pod = dv_node_ref(request->pod)});
}

void dv_node_handle_watch_claims(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__ListClaimsRequest *request =
        dv_node_decode(call, &node_v1__list_claims_request__descriptor, bytes);

    if (request)
        start_watch(server, call, &server->claim_listings, make_claims,
                    &(struct filter){
                        .pod = {.namespace = dv_str_from_c(request->namespace_),
                                .name = dv_str_from_c(request->name)}
        });
}

void dv_node_handle_watch_leases(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__ListLeasesRequest *request =
        dv_node_decode(call, &node_v1__list_leases_request__descriptor, bytes);

    if (request)
        start_watch(
            server, call, &server->lease_listings, make_leases,
            &(struct filter){.uid = dv_server_call_peer(call).uid, .is_own = request->own_only});
}

/* ---- what changes ---- */

static void mark_all_stale(const struct dv_list *listings)
{
    for (struct dv_link *link = listings->head.next; link != &listings->head; link = link->next)
        mark_stale(DV_CONTAINER(link, struct listing, link));
}

void dv_node_server_claims_changed(struct dv_node_server *server)
{
    mark_all_stale(&server->claim_listings);
}

void dv_node_server_devices_changed(struct dv_node_server *server)
{
    mark_all_stale(&server->device_listings);
}

void dv_node_server_pods_changed(struct dv_node_server *server)
{
    mark_all_stale(&server->pod_listings);
}

void dv_node_server_leases_changed(struct dv_node_server *server)
{
    mark_all_stale(&server->lease_listings);
}
