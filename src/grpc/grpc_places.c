#include "grpc/grpc_places.h"

#include <stdlib.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "loop/loop.h"

/* One holder may have one PARTS-th of the places, so that it cannot take those of others. */
#define PARTS 4u
/* A client that has not sent its preface within this time is displaced before those that have. */
#define PREFACE_MS 2000u

struct dv_holder {
    struct dv_link link;
    pid_t pid; /* 0: not known, as for a process in another PID namespace */
    uid_t uid;
    size_t n;
};

void dv_places_init(struct dv_places *places, size_t max)
{
    *places = (struct dv_places){.max = max};
    dv_list_init(&places->all);
    dv_list_init(&places->holders);
}

static struct dv_holder *find_holder(const struct dv_places *places, const struct dv_peer *peer)
{
    struct dv_link *link;

    DV_LIST_EACH (&places->holders, link) {
        struct dv_holder *holder = DV_CONTAINER(link, struct dv_holder, link);

        if (peer->pid > 0 ? holder->pid == peer->pid : holder->pid == 0 && holder->uid == peer->uid)
            return holder;
    }
    return NULL;
}

static struct dv_holder *add_holder(struct dv_places *places, const struct dv_peer *peer)
{
    struct dv_holder *holder = DV_ALLOC(struct dv_holder);

    holder->pid = peer->pid > 0 ? peer->pid : 0;
    holder->uid = peer->uid;
    dv_list_push(&places->holders, &holder->link);
    return holder;
}

static bool is_late(const struct dv_place *place, uint64_t now_ms)
{
    return !place->is_ready && now_ms - place->since_ms >= PREFACE_MS;
}

/* Whether `b` is displaced rather than `a`, which is the older one. */
static bool goes_before(const struct dv_place *b, const struct dv_place *a, uint64_t now_ms)
{
    if (b->holder->n != a->holder->n)
        return b->holder->n > a->holder->n;
    if (is_late(b, now_ms) != is_late(a, now_ms))
        return is_late(b, now_ms);
    /* This counts only among a holder's own connections: among strangers, one call would make a
     * connection safe from newcomers. */
    return b->holder == a->holder && a->is_used && !b->is_used;
}

/* Finds the connection that goes for a newcomer. `own` is the newcomer's holder, NULL when it has
 * no connection yet. */
static struct dv_place *find_displaced(const struct dv_places *places, const struct dv_holder *own,
                                       bool from_own_only, uint64_t now_ms)
{
    size_t n_own = own ? own->n : 0;
    struct dv_place *found = NULL;
    struct dv_link *link;

    DV_LIST_EACH (&places->all, link) {
        struct dv_place *place = DV_CONTAINER(link, struct dv_place, link);
        bool has_more = !from_own_only && place->holder->n > n_own;

        if (place->n_calls > 0 || !(place->holder == own || has_more))
            continue;
        if (!found || goes_before(place, found, now_ms))
            found = place;
    }
    return found;
}

bool dv_places_take(struct dv_places *places, struct dv_place *place, const struct dv_peer *peer,
                    uint64_t now_ms, struct dv_place **displaced, struct dv_err *err)
{
    struct dv_holder *own = find_holder(places, peer);
    bool has_share = own && own->n >= dv_size_max(places->max / PARTS, 1);
    struct dv_place *found = NULL;

    if (has_share || places->n >= places->max) {
        found = find_displaced(places, own, has_share, now_ms);
        if (!found && has_share)
            return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                           "connection refused: this process has calls on %zu already, of %zu for "
                           "all: end some",
                           own->n, places->max);
        if (!found)
            return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                           "connection refused: %zu are open already and none is idle: try later",
                           places->n);
    }
    /* Set before the holder's last connection leaves, which would free the holder. */
    place->holder = own ? own : add_holder(places, peer);
    place->holder->n++;
    place->since_ms = now_ms;
    dv_list_push(&places->all, &place->link);
    places->n++;
    if (found)
        dv_places_leave(places, found);
    *displaced = found;
    return true;
}

void dv_places_leave(struct dv_places *places, struct dv_place *place)
{
    if (!place->holder)
        return;
    dv_link_remove(&place->link);
    places->n--;
    if (--place->holder->n == 0) {
        dv_link_remove(&place->holder->link);
        free(place->holder);
    }
    place->holder = NULL;
}
