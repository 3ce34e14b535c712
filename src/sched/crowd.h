/* crowd.h - crowds: pods that are alike, so that what is found out for one is true for all; and
 * what they remember of nodes. For the scheduler's own files. */
#ifndef DV_SCHED_CROWD_H
#define DV_SCHED_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

struct dv_affinity_wants;
struct dv_sched;
struct dv_sched_node;
struct dv_sched_pod;

/* Why a node does not fit, and when that was found out; packed, because there is one for each pair
 * of a crowd and a node. */
struct dv_sched_memo {
    uint64_t at : 48; /* 0: nothing is known */
    uint64_t reason : 16;
};

struct dv_sched_crowd {
    dv_str key;
    struct dv_link link;    /* in sched->idle while it has no pods */
    struct dv_link waits;   /* in sched->crowds_waiting while one of them waits */
    struct dv_list waiting; /* of struct dv_sched_pod */
    size_t n_pods;          /* whose last attempt was made as part of it */
    uint64_t improved;      /* like the `improved` of a node, for all nodes at once */
    unsigned n_doubled;     /* how often the cost of a search was doubled */
    /* sched->shape and sched->n_slice_changes when all candidates of a pod were last asked for
     * devices, one more each; 0: never. */
    uint64_t checked_shape;
    uint64_t checked_slices;
    /* The pod that searches again at a higher cost, for all of them; NULL: none does. */
    struct dv_sched_pod *searcher;
    struct dv_sched_memo *memos; /* indexed by the node's place */
    size_t n_memos;
    struct dv_map reasons; /* of struct dv_sched_crowd_reason, by text */
    DV_VEC(struct dv_sched_crowd_reason *) all;
    char *miss; /* what devices lack, as pods are told; NULL: not found out yet */
    char *lack; /* what nodes lack, as pods are told, and when that was found out */
    uint64_t lack_at_ms;
    /* What they want of the pods around them, and what dv_affinity_changed said of it when it was
     * last looked at; NULL: nothing. */
    struct dv_affinity_wants *wants;
    uint64_t wants_seen;
    /* Why pods of up to this priority could not send others away, and what sched->n_placings and
     * sched->tick were when that was found out; NULL: not found out. */
    char *vain;
    uint64_t vain_at;
    uint64_t vain_tick;
    int64_t vain_priority;
    bool has_requests;          /* it needs devices */
    struct dv_map classes;      /* the classes that its requests name; the keys are owned */
    DV_VEC(uint32_t) resources; /* numbers of the extended resources that a class may serve */
};

struct dv_sched_crowd_reason {
    dv_str text; /* a line for each reason */
    size_t number;
    size_t n_nodes; /* that had this reason in the current attempt */
    bool is_error;  /* a claim, class or selector is at fault, or the search was too long */
    bool is_spent;  /* the search was too long: at a higher cost it may succeed */
    bool is_fatal;  /* a selector or class is at fault: the pod goes nowhere */
};

/* ---- crowd.c ---- */

/* The pod joins the crowd with this key, which is made when it is new, and leaves the one it was
 * in. sched->amounts must be the pod's. */
struct dv_sched_crowd *dv_sched_crowd_join(struct dv_sched *sched, struct dv_sched_pod *pod,
                                           dv_str key);
/* The pod leaves its crowd. When it was woken by an event, that event may help another: the next
 * one is woken in its place. */
void dv_sched_crowd_leave(struct dv_sched *sched, struct dv_sched_pod *pod);
void dv_sched_crowd_wait(struct dv_sched *sched, struct dv_sched_pod *pod);
/* Queues one of the waiting pods. When it fits, it wakes the next. */
void dv_sched_crowd_wake(struct dv_sched *sched, struct dv_sched_crowd *crowd);
/* What was remembered is no longer true on any node: forgets it, and wakes one pod. */
void dv_sched_crowd_improved(struct dv_sched *sched, struct dv_sched_crowd *crowd);
void dv_sched_requests_improved(struct dv_sched *sched); /* of all that need devices */
struct dv_sched_crowd_reason *dv_sched_crowd_reason(struct dv_sched_crowd *crowd, dv_str text);
/* Returns why the node does not fit, if that is remembered and still true; otherwise NULL. */
struct dv_sched_crowd_reason *dv_sched_crowd_recall(const struct dv_sched *sched,
                                                    const struct dv_sched_crowd *crowd,
                                                    const struct dv_sched_node *node);
void dv_sched_crowd_remember(struct dv_sched *sched, struct dv_sched_crowd *crowd,
                             const struct dv_sched_node *node,
                             const struct dv_sched_crowd_reason *reason);
void dv_sched_crowds_free(struct dv_sched *sched);

/* Writes what tells a pod from others that could take its place into sched->crowd_key. */
dv_str dv_sched_crowd_key(struct dv_sched *sched, const struct dv_sched_pod *pod);

#endif
