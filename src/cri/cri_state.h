/* cri_state.h - the parts of a dv_cri that its files share. */
#ifndef DV_CRI_STATE_H
#define DV_CRI_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cri/cri.h"
#include "cri/cri_view.h"
#include "loop/loop.h"

struct dv_arena;

struct dv_cri {
    struct dv_loop *loop;
    struct dv_cri_options options;
    struct dv_channel *channel;
    struct dv_task state_task; /* runs state_changed */
    struct dv_timer timer;     /* for the next step of the greeting, or the next Status */

    /* The greeting, of which Status goes on for ever: one call at a time. */
    struct dv_cri_call call;
    bool is_calling;
    bool is_stale;           /* the call belongs to a connection before the present one */
    enum dv_cri_method step; /* what is asked next */
    bool is_usable;          /* the greeting is done on the present connection */

    struct dv_arena *arena; /* of `runtime`; NULL: the runtime never answered */
    struct dv_cri_runtime runtime;
    struct dv_arena *found_arena; /* of `found`; NULL: nothing is found yet */
    struct dv_cri_runtime found;  /* what the greeting has found out so far */

    struct dv_err call_err;    /* why there is no good answer; code DV_OK: there is */
    struct dv_err runtime_err; /* what Status said last; code DV_OK: it is ready */
    struct dv_err network_err;
    struct dv_err told_runtime; /* what the owner knows */
    struct dv_err told_network;
    uint64_t good_ms; /* when the runtime last said that it is ready; 0: never */

    struct dv_cri_view view;

    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* Has state_changed run. */
void dv_cri_tell_state(struct dv_cri *cri);

#endif
