/* node_pools.h - the devices of DRA drivers that this node has: what slices list, and what claims
 * hold of it, whether they are prepared here yet or not. */
#ifndef DV_SERVE_NODE_POOLS_H
#define DV_SERVE_NODE_POOLS_H

#include <stddef.h>

#include "base/str.h"

struct dv_api_device;
struct dv_api_device_taint;
struct dv_api_resource_claim;
struct dv_arena;
struct dv_claim;
struct dv_node;

/* A claim that has a device. */
struct dv_pool_use {
    dv_str namespace;
    dv_str name;
    const struct dv_claim *record;              /* on this node; NULL: none yet */
    const struct dv_api_resource_claim *object; /* in the API; NULL: it is not shown to us */
    struct dv_pool_use *next;
};

struct dv_pool_device {
    dv_str driver;
    dv_str pool;
    dv_str name;
    const struct dv_api_device *api; /* NULL: a claim holds it, and no slice lists it */
    struct dv_pool_use *uses;        /* without those with adminAccess, which hold nothing */
    const struct dv_api_device_taint **taints; /* that keep pods away: of the slice, and by rules */
    size_t n_taints;
    /* Of one that is not held: the counter that is short, and devices that have it. */
    dv_str shortage; /* empty: none is */
    const dv_str *blocked_by;
    size_t n_blocked_by;
};

/* Lists all devices by driver, pool and name; in `arena`, but for texts, which live until the next
 * turn of the loop. Without an API these are the devices that claims hold. */
size_t dv_pool_devices(const struct dv_node *node, struct dv_arena *arena,
                       struct dv_pool_device ***devices);

#endif
