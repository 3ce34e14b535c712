/* proxy.h - stands between a client and a server on Unix sockets, and cuts, delays and corrupts. */
#ifndef DV_TESTS_CLUSTER_PROXY_H
#define DV_TESTS_CLUSTER_PROXY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"
#include "loop/loop.h"

/* Of a thousand reads from the server. */
struct proxy_faults {
    unsigned cut;   /* the connection ends here, in the middle of what was read */
    unsigned delay; /* what was read waits up to delay_ms, and all behind it */
    uint64_t delay_ms;
    unsigned corrupt; /* one byte becomes another */
    bool shows;       /* it becomes one that no text has: for what has no checksum */
    unsigned refuse;  /* of a thousand connections */
};

struct proxy {
    struct dv_loop *loop;
    dv_str server; /* its path */
    struct proxy_faults faults;
    uint64_t random;
    struct dv_listener_handler handler;
    struct dv_listener *listener;
    struct dv_list pairs;
    int n_open; /* pairs */
    int n_closed;
    unsigned n_cuts;
    unsigned n_delays;
    unsigned n_corruptions;
    unsigned n_refusals;
};

/* A generator that is the same everywhere for a seed. */
uint64_t proxy_random(uint64_t *state);

/* Keeps `server`. */
void proxy_open(struct proxy *proxy, struct dv_loop *loop, dv_str path, dv_str server,
                uint64_t seed);
/* Ends all that goes through it. */
void proxy_cut_all(struct proxy *proxy);
/* n_closed is raised when it is done. */
void proxy_close(struct proxy *proxy);

#endif
