/* simulate.h - the controllers and the scheduler over an API in this process, with nodes that are
 * only objects: how many pods a second, and how long each waits. */
#ifndef DV_CLI_SIMULATE_H
#define DV_CLI_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;

/* What each simulated pod asks for. */
enum dv_sim_shape {
    DV_SIM_TEMPLATE, /* a claim of its own, made from a template: one device */
    DV_SIM_SHARED,   /* one claim for every ten pods */
    DV_SIM_CEL,      /* as template, chosen by a selector over attributes and capacity */
    DV_SIM_MATCH,    /* two devices with an attribute in common */
    DV_SIM_NONE,     /* no devices: the scheduler alone */
    DV_N_SIM_SHAPES,
};
const char *dv_sim_shape_name(enum dv_sim_shape shape);
bool dv_sim_shape_find(dv_str name, enum dv_sim_shape *shape);

struct dv_sim_options {
    size_t n_nodes;
    size_t n_devices; /* a node */
    size_t n_pods;
    size_t n_clients; /* that make pods at the same time */
    enum dv_sim_shape shape;
    dv_str dir; /* of the database, which is removed at the end */
    uint64_t timeout_ms;
    void (*told)(void *ctx, const char *what); /* what it does now; may be NULL */
    /* How far that has come; may be NULL. */
    void (*counted)(void *ctx, size_t n_done, size_t n_all);
    void *ctx;
};

struct dv_sim_result {
    size_t n_bound;
    size_t n_pending; /* no room for them, or not in time */
    dv_str why;       /* one of them says */
    double seconds;   /* from the first pod made to the last bound */
    double cleanup_seconds;
    double pods_per_second;
    double ms[5]; /* from a pod's making to its binding: p50, p90, p99, p99.9, the longest */
    size_t rss_kib;
    uint64_t n_writes; /* and how many commits they shared */
    uint64_t n_commits;
};

/* Blocks. Texts of the result are in `arena`. */
DV_CHECKED bool dv_simulate(const struct dv_sim_options *options, struct dv_arena *arena,
                            struct dv_sim_result *result, struct dv_err *err);

#endif
