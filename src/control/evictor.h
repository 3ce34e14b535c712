/* evictor.h - what the files of eviction share.
 *
 *     slices, rules --(taints)--> claims that are allocated --(reservations)--> pods
 *
 * A change marks the claims that it may concern, found by their words; they are judged again a
 * portion a turn, then the pods of those that came out otherwise. A pod that has to go is doomed:
 * it has a time, and a sync when that has come. */
#ifndef DV_CONTROL_EVICTOR_H
#define DV_CONTROL_EVICTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "control/control_index.h"
#include "control/controllers.h"
#include "control/taint.h"
#include "loop/loop.h"
#include "resource/resource.h"

struct dv_arena;

/* The reason of events about pods. */
#define DV_EVICTION_REASON "DeviceTaintManagerEviction"

/* A claim that has an allocation, and what was judged of it. */
struct dv_used_claim {
    dv_str key;
    struct dv_object *object; /* maybe packed: see dv_used_claim_value */
    struct dv_link dirty;
    bool is_changed;        /* its users or its allocation have changed since it was judged */
    struct dv_arena *arena; /* has the texts of `eviction`; NULL while that is not set */
    struct dv_eviction eviction;
};

/* A pod that has to be evicted, now or later. */
struct dv_doomed {
    struct dv_evictor *evictor;
    struct dv_arena *arena; /* of all its texts */
    dv_str key;
    dv_str uid;
    struct dv_eviction eviction;
    struct dv_timer timer;
};

struct dv_rule {
    struct dv_object *object;
    dv_str name;
    dv_str uid;
    size_t n_evicted;
    bool is_told;     /* its status was written, or cannot be: pods may be evicted */
    bool is_waiting;  /* waits until pending judgements are made: its counts depend on them */
    uint64_t told_ms; /* when its status was written last */
};

/* The slices of a pool. */
struct dv_pool {
    dv_str key; /* "driver/pool" */
    struct dv_list slices;
    int64_t generation; /* the newest */
    size_t n_tainted;   /* slices, of any generation, that have taints of ours */
};

struct dv_pool_slice {
    dv_str name;
    struct dv_object *object; /* kept, maybe packed; not when it is tainted */
    struct dv_pool *pool;
    struct dv_link link;
    int64_t generation;
    size_t n_devices;
    bool is_tainted;
};

struct dv_evictor {
    struct dv_control *control;
    struct dv_map claims;   /* dv_used_claim by key */
    struct dv_slabs memory; /* of these */
    struct dv_list dirty_claims;
    struct dv_map dirty_pods; /* by key */
    struct dv_list dirty_order;
    struct dv_map doomed;    /* dv_doomed by key */
    struct dv_map rules;     /* dv_rule by name */
    struct dv_map rule_uids; /* dv_rule by uid */
    struct dv_map pools;
    struct dv_map slices;           /* dv_pool_slice by name */
    struct dv_index claims_by_pool; /* by the names of the pools that they have devices of */
    struct dv_index rules_by_word;
    struct dv_index doomed_by_rule; /* by the uid of the rule */
    struct dv_recent evicted;       /* uids of pods */
    struct dv_task task;
    bool is_started;
};

/* pools.c: what slices publish */
void dv_pools_fini(struct dv_evictor *evictor);
/* Applies the taints that slices publish for a device, in the newest generation of its pool. */
void dv_pools_apply(const struct dv_evictor *evictor,
                    const struct dv_api_device_request_allocation_result *result,
                    struct dv_arena *arena, struct dv_eviction *eviction);
/* How many of the published devices the rule selects. */
size_t dv_pools_count(const struct dv_evictor *evictor,
                      const struct dv_api_device_taint_selector *selector);

/* evict.c: judgements */
/* Calls `each` for the claims that may hold a device which the selector (may be NULL) selects:
 * those with devices of its pool, or all when it names none, as few rules do. Finding them by
 * anything else would cost every claim more than it saves a rule. */
void dv_evictor_each_claim(const struct dv_evictor *evictor,
                           const struct dv_api_device_taint_selector *selector,
                           void (*each)(void *ctx, struct dv_used_claim *claim), void *ctx);
/* Unpacked until the next turn of the loop. */
const struct dv_api_resource_claim *dv_used_claim_value(const struct dv_used_claim *used);
/* Has these claims judged again. */
void dv_evictor_mark_claims(struct dv_evictor *evictor,
                            const struct dv_api_device_taint_selector *selector);
bool dv_evictor_is_judging(const struct dv_evictor *evictor);
/* Whether the pod uses the claim, and has to go with it. */
bool dv_evictor_is_user(const struct dv_api_pod *pod, const struct dv_used_claim *claim);

/* doom.c: pods that have to go */
/* Sets what was judged of the pod with that key. `pod` is NULL, or `eviction` not set: it may
 * stay. */
void dv_doom_set(struct dv_evictor *evictor, dv_str key, const struct dv_api_pod *pod,
                 const struct dv_eviction *eviction);
void dv_doom_free(struct dv_doomed *doomed);
/* The doomed pod whose time has come; NULL: it has not, or the pod may stay after all. */
struct dv_doomed *dv_doom_due(const struct dv_evictor *evictor, dv_str key);

/* control_rules.c */
void dv_rules_fini(struct dv_evictor *evictor);
void dv_rules_apply(const struct dv_evictor *evictor,
                    const struct dv_api_device_request_allocation_result *result,
                    struct dv_arena *arena, struct dv_eviction *eviction);
/* Has the status of the rule with that uid looked at: its counts may have changed. */
void dv_rules_look(struct dv_evictor *evictor, dv_str uid);
/* All pending judgements have been made: rules that waited for them count now. */
void dv_rules_judged(struct dv_evictor *evictor);
/* Counts what the rule's status tells. */
void dv_rules_count(const struct dv_evictor *evictor, const struct dv_rule *rule,
                    struct dv_arena *arena, struct dv_rule_counts *counts);

#endif
