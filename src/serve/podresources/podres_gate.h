/* podres_gate.h - which PodResources calls are answered, and how many there were. Pure.
 *
 * One bucket of tokens for all calls of both versions, as the reference has it: 100 a second, 10 at
 * once, full at start. */
#ifndef DV_SERVE_PODRES_GATE_H
#define DV_SERVE_PODRES_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "serve/serve.h"

#define DV_PODRES_CALLS_PER_S 100u
#define DV_PODRES_BURST 10u

enum dv_podres_call {
    DV_PODRES_LIST,
    DV_PODRES_GET_ALLOCATABLE,
    DV_PODRES_GET,
    DV_PODRES_ALPHA_LIST,
};

struct dv_podres_gate {
    uint64_t saved_ns;  /* time that has not been spent: a token costs a fixed part of a second */
    uint64_t filled_ns; /* when saved_ns was last brought up to date */
    struct dv_podres_counts counts;
};

void dv_podres_gate_init(struct dv_podres_gate *gate, uint64_t now_ns);
/* Spends a token and counts the call. DV_RESOURCE_EXHAUSTED, with the reference's text: there is no
 * token, and nothing is counted. A clock that goes back adds no time. */
DV_CHECKED bool dv_podres_gate_pass(struct dv_podres_gate *gate, enum dv_podres_call call,
                                    uint64_t now_ns, struct dv_err *err);

#endif
