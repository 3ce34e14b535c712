/* cel_run.h - one evaluation: where its values live and what it has cost so far. */
#ifndef DV_CEL_RUN_H
#define DV_CEL_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "cel/value/cel_value.h"

struct dv_arena;
struct dv_cel_budget;
struct dv_cel_matcher;
struct dv_cel_node;
struct dv_cel_regex;

/* What cost does not bound, because the reference shares memory where we copy: the elements of one
 * list, the bytes of one string, and all memory of one evaluation. */
#define DV_CEL_LIST_MAX (1u << 20)
#define DV_CEL_STRING_MAX (8u << 20)
#define DV_CEL_MEMORY_MAX (64u << 20)

/* A variable of a comprehension. */
struct dv_cel_slot {
    const struct dv_cel_node *lazy; /* not asked for yet: this is its value */
    struct dv_cel_val value;
};

struct dv_cel_run {
    struct dv_arena *arena;
    uint64_t cost;
    uint64_t cost_max;
    uint64_t work; /* what takes time and is not in the cost */
    uint64_t work_max;
    size_t memory_max;                  /* of the arena */
    const struct dv_cel_val *vars;      /* of the environment */
    struct dv_cel_slot *slots;          /* of comprehensions */
    const struct dv_cel_regex *regex;   /* of the call under way, when it is constant */
    struct dv_cel_matcher *matcher;     /* NULL: nothing was matched yet */
    const struct dv_cel_budget *budget; /* NULL: nobody cancels */
    /* Finds a variable of a policy; false: there is none of that name. `ctx` is for it. */
    bool (*load)(struct dv_cel_run *run, dv_str name, struct dv_cel_val *out);
    void *ctx;
    uint32_t n_rounds; /* of comprehensions */
    uint8_t stop;      /* enum dv_cel_fault; other than 0: all ends with it */
};

void dv_cel_run_node(struct dv_cel_run *run, const struct dv_cel_node *node,
                     struct dv_cel_val *out);
/* These evaluate one kind of node each, for dv_cel_run_node. */
void dv_cel_run_attr(struct dv_cel_run *run, const struct dv_cel_node *node,
                     struct dv_cel_val *out);
void dv_cel_run_choose(struct dv_cel_run *run, const struct dv_cel_node *node,
                       struct dv_cel_val *out);

/* Adds `cost`; does nothing once the evaluation has been stopped. */
static inline void dv_cel_run_charge(struct dv_cel_run *run, uint64_t cost)
{
    if (run->stop)
        return;
    run->cost += cost;
    if (run->cost > run->cost_max)
        run->stop = DV_CEL_FAULT_COST;
}
/* Like dv_cel_run_charge, for work that takes time and has no cost in CEL's terms. */
static inline void dv_cel_run_work(struct dv_cel_run *run, uint64_t work)
{
    if (run->stop)
        return;
    run->work = run->work + work < work ? UINT64_MAX : run->work + work;
    if (run->work > run->work_max)
        run->stop = DV_CEL_FAULT_COST;
}
/* Ends the evaluation with an error that neither || nor && absorbs. */
void dv_cel_run_stop(struct dv_cel_run *run, enum dv_cel_fault fault, struct dv_cel_val *out);

#endif
