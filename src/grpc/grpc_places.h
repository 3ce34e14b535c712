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

/* Embedded in a connection. A zeroed one is in no list. */
struct dv_place {
    struct dv_link link;
    struct dv_holder *holder; /* NULL: it has no place, or no more */
    uint64_t since_ms;
    size_t n_calls; /* that a handler has */
    bool is_ready;  /* the client has said its preface and settings */
    bool is_used;   /* it has had a call */
};

struct dv_places {
    struct dv_list all; /* the oldest first */
    struct dv_list holders;
    size_t n;
    size_t max;
};

void dv_places_init(struct dv_places *places, size_t max);
/* Gives `place` to the peer. `*displaced` has left for it, and its connection is to be ended; NULL:
 * there was room. DV_RESOURCE_EXHAUSTED: neither room nor anybody who could go. */
DV_CHECKED bool dv_places_take(struct dv_places *places, struct dv_place *place,
                               const struct dv_peer *peer, uint64_t now_ms,
                               struct dv_place **displaced, struct dv_err *err);
/* Twice is once. */
void dv_places_leave(struct dv_places *places, struct dv_place *place);

#endif
