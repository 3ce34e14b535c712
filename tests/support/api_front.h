/* api_front.h - an API as the tested part sees it: its requests may be kept, late, lost or refused.
 *
 *     tested part --> front --> [held] --> [late] --> the API --> [answer lost] --> tested part
 *                                             \-> refused without effect ---------> tested part
 *
 * What a test itself asks goes to the API directly, and never fails for a reason of the front. */
#ifndef DV_TESTS_API_FRONT_H
#define DV_TESTS_API_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "support/dice.h"

struct dv_loop;

enum fault {
    FAULT_NONE,
    FAULT_BEFORE,   /* the request fails with 503, and has no effect */
    FAULT_AFTER,    /* it has its effect, and fails with 503 all the same */
    FAULT_CONFLICT, /* as BEFORE, with 409 */
    FAULT_REFUSED,  /* as BEFORE, with 422 */
};

struct api_front {
    struct dv_cluster cluster; /* what the tested part is given */
    struct dv_cluster *back;   /* where its requests go */
    struct dv_list relays;     /* requests that are not answered yet */
    size_t n_sent;             /* of them, those that the API has */
    bool is_holding;           /* new requests are kept, until they are released */
    enum fault fault;
    uint64_t fault_at;   /* the number of the request that has the fault, from 1; 0: all have */
    uint64_t n_requests; /* so far, without events: how many there are of these is no matter */
    struct dice luck;
    unsigned fault_odds; /* not 0: instead, one request in so many has one of the first faults */
    bool is_late;        /* three requests in ten come some turns late, or up to 1.5 s */
    dv_str hidden;       /* a label selector: the views show only what it matches */
    size_t n_created[DV_N_KINDS]; /* requests to create that succeeded */
};

/* More turns than this no request is late. */
#define FRONT_LATE_TURNS 8u

void api_front_init(struct api_front *front, struct dv_loop *loop);
/* Sends up to `n` of those that are held, the oldest first. */
void api_front_send(struct api_front *front, size_t n);

#endif
