/* classic.h - registering through kubelet.sock: when our socket serves, when a new agent comes, and
 * when the agent has stopped to watch.
 *
 *                      serving                 accepted
 *             IDLE ---------------> CALLING --------------> REGISTERED
 *         (not served)              ^    | refused             | lost
 *                             retry |    v                     |
 *                                  WAITING <-------------------'
 *
 * A new kubelet.sock leads to CALLING from everywhere but IDLE, a lost socket to IDLE. */
#ifndef DV_LIB_CLASSIC_H
#define DV_LIB_CLASSIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "lib/common/dir.h"
#include "loop/loop.h"

struct dv_lib_attempt;
struct dv_lib_parts;
struct dv_lib_streams;

enum dv_lib_classic_state {
    DV_CLASSIC_IDLE,
    DV_CLASSIC_WAITING,
    DV_CLASSIC_CALLING,
    DV_CLASSIC_REGISTERED,
};

struct dv_lib_classic_options {
    dv_str agent_path; /* of kubelet.sock */
    dv_str endpoint;   /* file name of our socket, in the same directory */
    dv_str resource;
    bool needs_prestart;
    bool has_preference;
    struct dv_lib_streams *streams; /* on our socket: who watches is registered */
    void (*registered)(void *ctx);
    /* Called when we are not registered, or not any more; the next attempt comes after retry_ms. */
    void (*failed)(void *ctx, const struct dv_err *err, uint64_t retry_ms);
    void (*lost)(void *ctx, const struct dv_err *err);
    void *ctx;
};

struct dv_lib_classic {
    struct dv_lib_parts *parts;
    struct dv_lib_classic_options options; /* texts are borrowed */
    enum dv_lib_classic_state state;
    struct dv_lib_attempt *attempt; /* that runs; NULL: none */
    struct dv_lib_file agent;       /* kubelet.sock, as it was when it was last called */
    struct dv_timer timer;
    uint64_t backoff_ms;
    uint64_t registered_ms;
    bool was_watched;  /* a stream has come and gone since the call began */
    struct dv_err err; /* of the last failure or loss */
};

void dv_lib_classic_open(struct dv_lib_classic *classic, struct dv_lib_parts *parts,
                         const struct dv_lib_classic_options *options);
void dv_lib_classic_close(struct dv_lib_classic *classic);

/* Tells whether our socket accepts calls. */
void dv_lib_classic_set_serving(struct dv_lib_classic *classic, bool is_serving);
/* To be called when something happened in the directory, with the name that dv_lib_dir gives. */
void dv_lib_classic_check(struct dv_lib_classic *classic, dv_str name);
/* To be called when a stream has begun or ended. */
void dv_lib_classic_watched(struct dv_lib_classic *classic);

#endif
