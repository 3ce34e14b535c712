/* search.h - one search: the claims as they are asked for, and what has been taken so far. */
#ifndef DV_ALLOC_SEARCH_H
#define DV_ALLOC_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "base/str.h"
#include "number/number.h"

struct dv_arena;
struct dv_err;

/* A request, or one alternative of it. */
struct want {
    dv_str name; /* "request" or "request/alternative" */
    const struct dv_api_device_class *class;
    struct selector **selectors; /* the class's, then the request's */
    size_t n_class_selectors;
    size_t n_selectors;
    bool takes_all;
    bool is_admin;
    uint64_t n_devices; /* wanted */
    uint32_t *all;      /* places, when it takes all */
    const struct dv_api_device_toleration *tolerations;
    size_t n_tolerations;
    const struct dv_api_capacity_requirements *capacity;
    uint64_t *eligible; /* bits of places that it may take while nothing is: see bound.c */
    size_t kind;        /* the same for wants with the same */
};

struct ask {
    const struct dv_api_device_request *api;
    struct want *wants;
    size_t n_wants;
    bool has_alternatives;
    size_t chosen;
};

/* The values of an attribute: of one kind, one or more. */
struct values {
    enum value_kind {
        VALUE_NONE, /* nothing that can be compared */
        VALUE_INT,
        VALUE_BOOL,
        VALUE_STRING,
        VALUE_VERSION,
    } kind;
    size_t n;
    const int64_t *ints;
    const bool *bools;
    const dv_str *texts;
};

struct constraint {
    const struct dv_api_device_constraint *api;
    bool is_distinct;
    dv_str attribute; /* "domain/id" */
    dv_str domain;
    dv_str id;
    bool *applies; /* to each want of each ask: set in constraint.c */
    size_t n_taken;
    struct values common; /* of matching: what all so far have */
    struct values *seen;  /* of distinct: the last of each ask */
    uint32_t *value_of;   /* places: a number for the value, 0: it has none; see bound.c */
    uint32_t n_values;
    bool has_unknown;   /* some that cannot be compared */
    uint32_t value_now; /* that the devices so far have, while counting; 0: there are none */
};

/* A device that was taken. */
struct pick {
    uint32_t place;
    uint32_t ask;
    uint32_t want;
    bool is_multi;                      /* a part of it, share_id */
    bool has_counters;                  /* it took what it consumes of counters */
    struct dv_quantity_entry *consumed; /* of every capacity; is_multi only */
    size_t n_consumed;
    char share_id[37];
};

/* For what a pick consumes: a search takes and gives back millions of times. */
struct room {
    struct dv_quantity_entry *consumed;
    size_t n;
};

struct task {
    const struct dv_api_resource_claim *claim;
    struct ask *asks;
    size_t n_asks;
    size_t *first_want; /* of each ask, among all wants of the claim; the last is their number */
    struct constraint *constraints;
    size_t n_constraints;
    struct pick picks[DV_ALLOC_RESULTS_MAX];
    size_t n_picks;
    struct room rooms[DV_ALLOC_RESULTS_MAX]; /* of picks, used again and again */
    uint64_t n_max; /* devices that it may come to have, with the largest alternatives */
};

/* The furthest that a search came, for explanations. */
struct furthest {
    struct pick *picks; /* with their task */
    size_t *tasks;
    size_t n_picks;
    bool is_set;
    size_t task; /* where it stood */
    size_t ask;
    size_t want;
};

/* What this search has taken of a place. */
struct taken {
    uint32_t n_marks;             /* as a whole */
    uint32_t n_shares;            /* in parts */
    struct dv_quantity *capacity; /* of the parts, one for each capacity of the device */
};

/* What may be left out of the search: see bound.c. */
enum bounds {
    BOUNDS_UNKNOWN, /* nothing is left out yet */
    BOUNDS_NONE,    /* nothing may be */
    BOUNDS_COUNT,   /* what counting shows to lead nowhere */
    BOUNDS_TWINS,   /* and twins of what led nowhere */
};

/* What counting writes on. */
struct sheet {
    uint64_t *counts;          /* one for each value */
    bool *flags;               /* the same */
    struct dv_quantity *least; /* one for each counter of a pool */
    uint64_t *n_consumers;     /* the same */
};

struct search {
    struct dv_inventory *inventory;
    const struct dv_alloc_node *node;
    struct node_view *view;
    const struct dv_alloc_options *options;
    struct task *tasks;
    size_t n_tasks;
    struct taken *taken;       /* one for each place */
    uint64_t *marked;          /* bits of places that are taken as a whole */
    size_t n_words;            /* of such bits */
    struct dv_quantity **used; /* of each pool's counters; NULL: nothing */
    enum bounds bounds;
    struct sheet *sheet; /* when there are bounds */
    uint64_t n_steps;
    uint64_t n_steps_max;
    uint64_t cost; /* see the COST_ constants */
    uint64_t cost_max;
    uint64_t n_backs;   /* of the steps: how many devices were given back */
    uint64_t n_counted; /* places that were looked at for bounds */
    struct dv_arena *arena;
    size_t bytes_before; /* of the arena, when it began */
    bool gave_up;
    struct furthest *furthest; /* NULL: not asked for; else nothing is left out */
    struct dv_err *err;
};

/* What things cost, in units of CEL's cost, which takes about ten nanoseconds each: measured. What
 * is done at one go is counted before it is done. */
#define COST_STEP 10u       /* of the search */
#define COST_PLACE 1u       /* that is looked at: a few bits */
#define COST_TAKE 4u        /* a place is tried: constraints, counters and taints come on top */
#define COST_SELECTOR 1u    /* that was evaluated before on the device */
#define COST_EVALUATION 40u /* and CEL's own */
#define COST_COMPILED_BYTE 30u
#define COST_VIEW_DEVICE 60u    /* of the pools as the node sees them */
#define COST_COUNTER_DEVICE 10u /* what is left of the counters of a pool, after a change */

/* Counts it. False: that is too much, and the search is given up. */
DV_CHECKED bool dv_search_charge(struct search *search, uint64_t cost);
/* Makes the view and reads the claims. */
DV_CHECKED bool dv_search_begin(struct search *search,
                                const struct dv_api_resource_claim *const *claims, size_t n_claims);
/* The search itself. */
enum dv_alloc_outcome dv_search_run(struct search *search);

/* alloc_ask.c: reads the claims. */
DV_CHECKED bool dv_search_read(struct search *search,
                               const struct dv_api_resource_claim *const *claims, size_t n_claims);
/* Whether the device is one that `want` asks for: selectors, and what node it is for. */
DV_CHECKED bool dv_want_selects(struct search *search, const struct task *task,
                                const struct want *want, const struct place *place, bool *selects);

/* bound.c */
/* Finds out what may be left out. */
void dv_bound_begin(struct search *search);
uint64_t dv_bound_work(const struct search *search); /* how many places that looks at */
/* Whether a twin of the place led nowhere, when all from `start` on were tried before it. */
bool dv_bound_has_tried_twin(const struct search *search, const struct task *task,
                             const struct want *want, uint32_t start, uint32_t place);

/* alloc_count.c */
/* Where the search stands: some devices of a want are taken, the others come from `start` on. */
struct spot {
    size_t task;
    size_t ask;
    size_t want;
    uint64_t n_taken;
    uint32_t start;
};
/* Whether there is time to look at so many places: counting must not cost more than it saves. They
 * are then counted as looked at. */
bool dv_count_may(struct search *search, uint64_t n_places);
/* Whether no solution can be found from here on. */
bool dv_count_is_hopeless(struct search *search, const struct spot *spot);

/* constraint.c */
DV_CHECKED bool dv_constraint_read(struct search *search, struct task *task,
                                   const struct dv_api_device_constraint *api,
                                   struct constraint *constraint);
/* Whether the device could be added; changes nothing. */
bool dv_constraint_allows(const struct search *search, const struct constraint *constraint,
                          const struct task *task, size_t ask, size_t want,
                          const struct device *device);
/* Adds it, when it is allowed. */
DV_CHECKED bool dv_constraint_add(struct search *search, struct constraint *constraint,
                                  const struct task *task, size_t ask, size_t want,
                                  const struct device *device);
void dv_constraint_remove(struct constraint *constraint, const struct task *task, size_t ask,
                          size_t want);

/* Whether the two devices have a value in common. */
bool dv_constraint_clashes(const struct search *search, const struct constraint *constraint,
                           const struct device *a, const struct device *b);
/* Numbers the values that places have, for counting. */
void dv_constraint_number(const struct search *search, struct constraint *constraint);
/* The device's value of the constraint's attribute, for people; empty when it has none. */
dv_str dv_constraint_value(const struct constraint *constraint, const struct device *device,
                           struct dv_arena *arena);

/* alloc_capacity.c */
/* What `want` would consume of each capacity of the device, into consumed[], which has room for
 * them. False: not there, against the policy, or no longer available. */
DV_CHECKED bool dv_capacity_fits(struct search *search, const struct want *want, uint32_t place,
                                 struct dv_quantity_entry *consumed);
/* Whether it would give back rather than consume. */
bool dv_capacity_is_negative(const struct want *want, const struct device *device);
/* Why not, as a sentence in the search's arena; empty when it fits. */
dv_str dv_capacity_problem(struct search *search, const struct want *want, uint32_t place);

/* take.c */
enum took {
    TOOK,
    TOOK_NOT,
    TOOK_ERROR,
};
bool dv_place_is_free(const struct search *search, const struct task *task, const struct want *want,
                      uint32_t place);
/* The first taint that keeps the device from being taken; NULL: none. */
const struct dv_api_device_taint *
dv_want_repelled(const struct search *search, const struct want *want, const struct device *device);
/* The first counter of which there is not enough for the device; NULL: none. */
const struct counter *dv_place_lacks_counter(struct search *search, uint32_t place);
/* Takes the device for a want of a task; `must`: a constraint against it is an error. */
enum took dv_take(struct search *search, struct task *task, size_t ask, size_t want, uint32_t place,
                  bool must);
void dv_untake(struct search *search, struct task *task); /* the last one that it took */
void dv_search_untake_all(struct search *search);

/* why.c: what speaks against the place, now, for a want. */
void dv_why_explain(struct search *search, const struct task *task, size_t ask, size_t want,
                    uint32_t place, struct dv_why_device *device);

/* result.c */
DV_CHECKED bool dv_search_result(struct search *search, const struct task *task,
                                 struct dv_api_allocation_result *allocation);

#endif
