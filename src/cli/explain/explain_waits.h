/* explain_waits.h - all that waits in a cluster, a line for those that are alike, the nearest miss
 * first: pods for claims, for resources, for a node that has taints, for what the node says. */
#ifndef DV_CLI_EXPLAIN_WAITS_H
#define DV_CLI_EXPLAIN_WAITS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct dv_api_pod;
struct dv_arena;
struct dv_buf;
struct dv_cli_world;
struct dv_json;

/* Some that wait for the same reason. */
struct dv_cli_wait {
    dv_str subject;  /* "ml/train-0", the first of them */
    size_t n_others; /* that are alike */
    dv_str why;
    bool is_ok;   /* it can be had now: whoever has to see it has not yet */
    int nearness; /* the less the nearer */
};

struct dv_cli_waits {
    struct dv_cli_wait *v; /* the nearest first */
    size_t n;
    size_t size;
    size_t n_claims;  /* all */
    size_t n_waiting; /* claims that are not allocated */
    size_t n_pods;    /* that wait for something else than claims */
};

/* Finds out about all of the namespace; of all when it is empty. In the world's arena. */
void dv_cli_waits_find(struct dv_cli_world *world, dv_str namespace, struct dv_cli_waits *waits);
/* What one pod waits for, claims aside. False: nothing. */
bool dv_cli_waits_of_pod(struct dv_cli_world *world, const struct dv_api_pod *pod,
                         struct dv_cli_wait *wait);

/* Both return whether nothing waits that cannot be had now. */
bool dv_cli_waits_print(const struct dv_cli_waits *waits, struct dv_arena *arena,
                        struct dv_buf *buf);
bool dv_cli_waits_data(const struct dv_cli_waits *waits, struct dv_arena *arena,
                       struct dv_json **doc);

#endif
