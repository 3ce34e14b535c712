/* shares.c - whose the places for connections are.
 *
 *     |<------------------------------ connections_max ------------------------------->|
 *     | not known yet: 1/4        | users: each at most 1/4              | admins: 1/16 |
 *     | each origin at most 1/16  | admins each at most 1/2              | on loopback  |
 *
 * Who comes is not known; who has authenticated moves over (dv_rest_call_vouch). So those who never
 * do cannot take the places of those who have. A newcomer always gets in while somebody unknown can
 * be dropped for it: one of the origin that has the most of them, there one that has not said a
 * word, and of those the oldest. A server without users shares all places out in that way. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "rest/rest.h"
#include "rest/rest_server.h"

/* One drop for a newcomer is logged in this time, because they may come by the thousand. */
#define COMPLAINT_MS 10000u

struct dv_rest_peer {
    struct dv_list unknown; /* its connections without a known user, the oldest first */
    size_t n_unknown;
    size_t n_conns;
    struct dv_rest_origin origin;
};

struct dv_rest_user {
    size_t n_conns;
    size_t bodies_bytes; /* bytes of its requests that are not answered */
    size_t n_name;
    char name[];
};

/* ---- how large they are ---- */

static size_t part(const struct dv_rest_server *server, size_t of)
{
    return dv_size_max(server->options.connections_max / of, 1);
}

static size_t unknown_max(const struct dv_rest_server *server)
{
    return server->options.has_users ? part(server, 4) : server->options.connections_max;
}

static size_t peer_max(const struct dv_rest_server *server)
{
    return server->options.has_users ? part(server, 16) : server->options.connections_max;
}

static size_t user_max(const struct dv_rest_server *server, bool is_admin)
{
    return part(server, is_admin ? 2 : 4);
}

static size_t known_max(const struct dv_rest_server *server, bool has_reserve)
{
    size_t all = server->options.connections_max - unknown_max(server);

    return has_reserve ? all : all - dv_size_min(part(server, 16), all);
}

void dv_rest_shares_init(struct dv_rest_shares *shares)
{
    dv_map_init(&shares->peers);
    dv_map_init(&shares->users);
    shares->diag_fd = -1;
}

void dv_rest_shares_fini(struct dv_rest_shares *shares)
{
    dv_map_fini(&shares->peers); /* empty: the last connection has removed its own entry */
    dv_map_fini(&shares->users);
    dv_close_fd(&shares->diag_fd);
}

/* ---- dropping one for another ---- */

const char *dv_rest_drop_name(enum dv_rest_drop drop)
{
    switch (drop) {
    case DV_REST_DROP_PEER:
        return "peer_share";
    case DV_REST_DROP_UNKNOWN:
        return "unauthenticated_share";
    case DV_REST_DROP_USER:
        return "user_share";
    case DV_REST_DROP_FULL:
        return "full";
    case DV_REST_DROP_DESCRIPTORS:
        return "descriptors";
    case DV_REST_DROP_HANDSHAKE:
        return "handshake_timeout";
    case DV_REST_DROP_SILENT:
        return "silent";
    case DV_REST_DROP_SLOW:
        return "slow";
    case DV_REST_DROP_BAD_REQUEST:
        return "bad_request";
    case DV_REST_DROP_BAD_SHAKE:
        return "bad_handshake";
    }
    return "unknown";
}

void dv_rest_server_count(struct dv_rest_server *server, enum dv_rest_drop drop)
{
    if (server->options.dropped)
        server->options.dropped(server->options.ctx, drop);
}

/* Classes of connections: the lower one is dropped first, because less is lost with it. N_CLASSES:
 * it cannot be dropped, because it waits for us, not for the client. */
enum { N_CLASSES = 3 };

static unsigned class_of(const struct dv_rest_conn *conn)
{
    switch (conn->phase) {
    case DV_REST_IDLE:
        return conn->has_spoken ? 1 : 0;
    case DV_REST_LEAVING:
        return 0;
    case DV_REST_ARRIVING:
    case DV_REST_REFUSED:
        return 1;
    case DV_REST_ANSWERING:
        return 2;
    case DV_REST_HANDED:
    case DV_REST_STREAMING:
    case DV_REST_TUNNELLED:
        break;
    }
    return N_CLASSES;
}

static struct dv_rest_conn *find_victim(const struct dv_rest_peer *peer)
{
    struct dv_rest_conn *victim = NULL;
    unsigned best = N_CLASSES;
    struct dv_link *link;

    DV_LIST_EACH (&peer->unknown, link) {
        struct dv_rest_conn *conn = DV_CONTAINER(link, struct dv_rest_conn, unknown_link);
        unsigned class = class_of(conn);

        if (class < best) {
            victim = conn;
            best = class;
        }
        if (best == 0)
            break;
    }
    return victim;
}

static void leave_unknown(struct dv_rest_conn *conn)
{
    if (!dv_link_is_in(&conn->unknown_link))
        return;
    dv_link_remove(&conn->unknown_link);
    conn->from->n_unknown--;
    conn->server->shares.n_unknown--;
}

static void complain_of_drops(struct dv_rest_server *server, const struct dv_rest_conn *victim,
                              const char *why)
{
    uint64_t now_ms = dv_loop_now_ms(server->loop);
    struct dv_err err;

    if (server->shares.complained_ms && now_ms - server->shares.complained_ms < COMPLAINT_MS)
        return;
    server->shares.complained_ms = now_ms ? now_ms : 1;
    (void)dv_fail(&err, DV_RESOURCE_EXHAUSTED,
                  "%s: the oldest silent connections are dropped for new ones", why);
    dv_rest_server_complain(server, victim->peer, &err);
}

/* Drops a connection of this origin. False: none can be dropped. */
static bool drop_of(struct dv_rest_server *server, const struct dv_rest_peer *peer,
                    enum dv_rest_drop drop, const char *why)
{
    struct dv_rest_conn *victim = peer ? find_victim(peer) : NULL;

    if (!victim)
        return false;
    leave_unknown(victim);
    dv_rest_server_count(server, drop);
    complain_of_drops(server, victim, why);
    dv_rest_conn_break(victim, DV_RESOURCE_EXHAUSTED, why);
    return true;
}

/* Drops a connection of the origin that has the most, or else of any. */
static bool drop_any(struct dv_rest_server *server, enum dv_rest_drop drop, const char *why)
{
    const struct dv_rest_peer *largest = NULL;
    const struct dv_map_entry *entry;
    size_t at = 0;

    while ((entry = dv_map_next(&server->shares.peers, &at)) != NULL) {
        const struct dv_rest_peer *peer = entry->value;

        if ((!largest || peer->n_unknown > largest->n_unknown) && find_victim(peer))
            largest = peer;
    }
    return drop_of(server, largest, drop, why);
}

void dv_rest_shares_spare_descriptor(struct dv_rest_server *server)
{
    /* When none can be dropped, accepting waits. */
    (void)drop_any(server, DV_REST_DROP_DESCRIPTORS, "no descriptors are left");
}

/* ---- coming and going ---- */

static struct dv_rest_peer *take_peer(struct dv_rest_shares *shares,
                                      const struct dv_rest_origin *origin)
{
    struct dv_rest_peer *peer = dv_map_get(&shares->peers, (dv_str){origin->key, origin->n_key});

    if (peer)
        return peer;
    peer = DV_ALLOC(struct dv_rest_peer);
    peer->origin = *origin;
    dv_list_init(&peer->unknown);
    (void)dv_map_set(&shares->peers, (dv_str){peer->origin.key, origin->n_key},
                     peer); /* it was not in the map */
    return peer;
}

static void drop_peer(struct dv_rest_shares *shares, struct dv_rest_peer *peer)
{
    if (peer->n_conns > 0)
        return;
    /* It is in the map. */
    (void)dv_map_remove(&shares->peers, (dv_str){peer->origin.key, peer->origin.n_key});
    free(peer);
}

static void join_unknown(struct dv_rest_conn *conn)
{
    dv_list_push(&conn->from->unknown, &conn->unknown_link);
    conn->from->n_unknown++;
    conn->server->shares.n_unknown++;
}

bool dv_rest_shares_join(struct dv_rest_conn *conn, const struct sockaddr *address,
                         struct dv_err *err)
{
    struct dv_rest_server *server = conn->server;
    struct dv_rest_shares *shares = &server->shares;
    struct dv_rest_origin origin = {0};
    struct dv_rest_peer *peer;
    bool has_room = true;

    dv_rest_origin_find(&shares->diag_fd, conn->fd, address, &origin);
    peer = take_peer(shares, &origin);
    if (peer->n_unknown >= peer_max(server))
        has_room = drop_of(server, peer, DV_REST_DROP_PEER, "too many connections of one origin");
    if (has_room && shares->n_unknown >= unknown_max(server))
        has_room = drop_any(server, DV_REST_DROP_UNKNOWN, "too many connections");
    if (!has_room) {
        drop_peer(shares, peer);
        dv_rest_server_count(server, DV_REST_DROP_FULL);
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "connection refused: %zu are open already",
                       server->n_conns);
    }
    conn->from = peer;
    peer->n_conns++;
    join_unknown(conn);
    return true;
}

static void drop_user(struct dv_rest_shares *shares, struct dv_rest_user *user)
{
    if (user->n_conns > 0 || user->bodies_bytes > 0)
        return;
    (void)dv_map_remove(&shares->users, (dv_str){user->name, user->n_name}); /* it is in the map */
    free(user);
}

static void leave_user(struct dv_rest_conn *conn)
{
    struct dv_rest_shares *shares = &conn->server->shares;
    struct dv_rest_user *user = conn->user;

    if (!user)
        return;
    conn->user = NULL;
    shares->n_known--;
    user->n_conns--;
    drop_user(shares, user);
}

void dv_rest_shares_leave(struct dv_rest_conn *conn)
{
    struct dv_rest_peer *peer = conn->from;

    if (!peer)
        return;
    leave_unknown(conn);
    leave_user(conn);
    conn->from = NULL;
    peer->n_conns--;
    drop_peer(&conn->server->shares, peer);
}

/* ---- who it is ---- */

static struct dv_rest_user *take_user(struct dv_rest_shares *shares, dv_str name)
{
    struct dv_rest_user *user = dv_map_get(&shares->users, name);

    if (user)
        return user;
    user = dv_alloc(sizeof(*user) + name.n);
    user->n_name = name.n;
    memcpy(user->name, name.p, name.n);
    (void)dv_map_set(&shares->users, (dv_str){user->name, name.n},
                     user); /* it was not in the map */
    return user;
}

/* Whether one more connection of the user fits its share, and that of all users. */
static bool check_user(struct dv_rest_server *server, const struct dv_rest_conn *conn, dv_str name,
                       bool is_admin, struct dv_err *err)
{
    const struct dv_rest_user *user = dv_map_get(&server->shares.users, name);
    bool has_reserve = is_admin && conn->from->origin.is_local;

    if (user && user->n_conns >= user_max(server, is_admin)) {
        dv_rest_server_count(server, DV_REST_DROP_USER);
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "user \"%.*s\" has %zu connections open, which is all it may have: close "
                       "some of them",
                       DV_FMT(dv_str_slice(name, 0, 80)), user->n_conns);
    }
    if (server->shares.n_known >= known_max(server, has_reserve)) {
        dv_rest_server_count(server, DV_REST_DROP_FULL);
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "%zu connections are open, which is all there may be: try again later",
                       server->n_conns);
    }
    return true;
}

/* ---- bodies ---- */

bool dv_rest_shares_take_body(struct dv_rest_call *call, size_t n_bytes)
{
    struct dv_rest_server *server = call->server;
    struct dv_rest_shares *shares = &server->shares;
    size_t all_max = server->options.bodies_bytes_max;
    size_t *used;
    size_t max;

    if (call->body.n == 0)
        call->payer = call->conn->user;
    used = call->payer ? &call->payer->bodies_bytes : &shares->unknown_bodies_bytes;
    max = !server->options.has_users ? all_max : call->payer ? all_max / 2 : all_max / 4;
    if (n_bytes > all_max - server->bodies_bytes || *used > max || n_bytes > max - *used)
        return false;
    server->bodies_bytes += n_bytes;
    *used += n_bytes;
    return true;
}

void dv_rest_shares_give_body_back(struct dv_rest_call *call)
{
    struct dv_rest_shares *shares = &call->server->shares;

    call->server->bodies_bytes -= call->body.n;
    if (call->payer) {
        call->payer->bodies_bytes -= call->body.n;
        drop_user(shares, call->payer);
    } else {
        shares->unknown_bodies_bytes -= call->body.n;
    }
    call->payer = NULL;
}

void dv_rest_call_disown(struct dv_rest_call *call)
{
    struct dv_rest_conn *conn = call->conn;

    if (!conn || dv_rest_conn_is_breaking(conn) || !conn->user)
        return;
    leave_user(conn);
    join_unknown(conn);
}

bool dv_rest_call_vouch(struct dv_rest_call *call, dv_str name, bool is_admin, struct dv_err *err)
{
    struct dv_rest_conn *conn = call->conn;
    struct dv_rest_server *server = call->server;

    if (!conn || dv_rest_conn_is_breaking(conn) || !server->options.has_users)
        return true;
    if (conn->user && dv_str_eq((dv_str){conn->user->name, conn->user->n_name}, name))
        return true;
    dv_rest_call_disown(call);
    if (!check_user(server, conn, name, is_admin, err))
        return false;
    leave_unknown(conn);
    conn->user = take_user(&server->shares, name);
    conn->user->n_conns++;
    server->shares.n_known++;
    return true;
}
