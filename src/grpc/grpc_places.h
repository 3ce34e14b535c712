/* grpc_places.h - who has a server's connections, and whose goes when another comes.
 *
 * A holder is a process, or a user where the kernel does not say which process it is. It has at
 * most a quarter of the places. A connection is idle while no handler works on a call of it: only
 * idle ones are displaced, and a stranger's only by a holder that has fewer. */
#ifndef DV_GRPC_PLACES_H
#define DV_GRPC_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/list.h"

struct dv_err;
struct dv_holder;
struct dv_peer;

/* A connection's place, embedded in the connection. A zeroed one is in no list. */
struct dv_place {
    struct dv_link link;
    struct dv_holder *holder; /* NULL: it has no place (any more) */
    uint64_t since_ms;
    size_t n_calls; /* calls that a handler has not finished */
    bool is_ready;  /* the client has sent its preface and settings */
    bool is_used;   /* it has had a call */
};

struct dv_places {
    struct dv_list all; /* the oldest first */
    struct dv_list holders;
    size_t n;
    size_t max;
};

void dv_places_init(struct dv_places *places, size_t max);
/* Gives `place` to the peer. `*displaced` is the connection that lost its place for it and must be
 * ended; NULL: there was room. DV_RESOURCE_EXHAUSTED: there is no room, and nobody can be
 * displaced. */
DV_CHECKED bool dv_places_take(struct dv_places *places, struct dv_place *place,
                               const struct dv_peer *peer, uint64_t now_ms,
                               struct dv_place **displaced, struct dv_err *err);
/* Gives the place back. A second call does nothing. */
void dv_places_leave(struct dv_places *places, struct dv_place *place);

#endif
