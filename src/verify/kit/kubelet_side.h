/* kubelet_side.h - what a driver sees of a kubelet when it registers: kubelet.sock with its
 * Registration service, and the watcher of plugins_registry. */
#ifndef DV_VERIFY_KUBELET_SIDE_H
#define DV_VERIFY_KUBELET_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"
#include "claim/claim.h"
#include "loop/loop.h"

struct dv_server;
struct dv_server_call;
struct dv_trial;

/* A driver as it has introduced itself. */
struct dv_registration {
    dv_str name;
    dv_str endpoint; /* the path of its socket */
    dv_str told;     /* the endpoint as it was told */
    dv_str socket;   /* the socket of its registration; empty: kubelet.sock was used */
    const dv_str *versions;
    size_t n_versions;
    bool has_options; /* told with the registration */
    bool wants_prestart;
    bool has_prefer;
    enum dv_dra_service service; /* by which this kubelet calls it */
    bool is_gone;                /* its socket is not there any more */
};

/* A registration by the watcher that is under way. */
struct dv_kubelet_step {
    struct dv_kubelet_side *kubelet;
    struct dv_plugin_registration *registration;
    struct dv_task task;
};

struct dv_kubelet_side {
    struct dv_trial *trial;
    struct dv_server *server;
    struct dv_plugins *plugins;
    DV_VEC(struct dv_registration *) seen; /* accepted, in the order of their arrival */
    size_t n_refused;
    size_t n_held;
    struct dv_server_call *held; /* a Register that waits for its answer */
    struct dv_kubelet_step steps[16];
    uint64_t opened_ms;
};

/* Opens with the trial's manners; ends the trial when that fails. */
void dv_kubelet_open(struct dv_trial *trial);
void dv_kubelet_let_go(struct dv_trial *trial);
/* As when it is started again: what is in its directory of device plugins is removed first. */
void dv_kubelet_restart(struct dv_trial *trial);

/* Waits for a registration of the driver under test beyond the first `n` that were seen; fails the
 * trial when none comes. `what` is for the message: "after a restart of the kubelet". */
const struct dv_registration *dv_kubelet_await(struct dv_trial *trial, size_t n, const char *what);
/* Like dv_kubelet_await; NULL when none comes in time. */
const struct dv_registration *dv_kubelet_try(struct dv_trial *trial, size_t n, uint64_t timeout_ms);
/* How many of the driver under test were seen so far. */
size_t dv_kubelet_n_seen(const struct dv_trial *trial);

#endif
