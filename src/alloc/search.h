/* search.h - one search for devices: what the claims ask for, and what has been taken for them so
 * far. A claim is a `task`, a request of it an `ask`, and each alternative of a request a `want`; a
 * `place` is a device as the node sees it, and a `pick` a device that was taken. */
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
struct dv_cel_report;
struct dv_err;

/* A request, or one alternative of it. */
struct dv_alloc_want {
    dv_str name; /* "request" or "request/alternative" */
    const struct dv_api_device_class *class;
    struct dv_alloc_selector **selectors; /* the class's, then the request's */
    size_t n_class_selectors;
    size_t n_selectors;
    bool takes_all;
    bool is_admin;
    uint64_t n_devices; /* wanted */
    uint32_t *all;      /* places, when it takes all */
    const struct dv_api_device_toleration *tolerations;
    size_t n_tolerations;
    const struct dv_api_capacity_requirements *capacity;
    /* A bit for each place that it may take while nothing else is taken: see bound.c. */
    uint64_t *eligible;
    size_t kind; /* a number, the same for wants with the same eligible places */
};

struct dv_alloc_ask {
    const struct dv_api_device_request *api;
    struct dv_alloc_want *wants;
    size_t n_wants;
    bool has_alternatives;
    size_t chosen;
};

/* The values of an attribute: of one kind, one or more. */
struct dv_alloc_values {
    enum value_kind {
        DV_ALLOC_VALUE_NONE, /* nothing that can be compared */
        DV_ALLOC_VALUE_INT,
        DV_ALLOC_VALUE_BOOL,
        DV_ALLOC_VALUE_STRING,
        DV_ALLOC_VALUE_VERSION,
    } kind;
    size_t n;
    const int64_t *ints;
    const bool *bools;
    const dv_str *texts;
};

struct dv_alloc_constraint {
    const struct dv_api_device_constraint *api;
    bool is_distinct;
    dv_str attribute; /* "domain/id" */
    dv_str domain;
    dv_str id;
    bool *applies; /* whether it applies, to each want of each ask: see constraint.c */
    size_t n_taken;
    /* For a matching constraint: the values that all devices so far have in common. */
    struct dv_alloc_values common;
    struct dv_alloc_values
        *seen;          /* for a distinct constraint: the values of the last device of each ask */
    uint32_t *value_of; /* for each place the number of its value, for counting; 0: it has none */
    uint32_t n_values;
    bool has_unknown; /* some places have a value that cannot be compared */
    /* While counting: the number of the value that the devices so far have; 0: there are none. */
    uint32_t value_now;
};

/* A device that was taken. */
struct dv_alloc_pick {
    uint32_t place;
    uint32_t ask;
    uint32_t want;
    bool is_multi;                      /* it is a share of the device, named by share_id */
    bool has_counters;                  /* it took what it consumes of counters */
    struct dv_quantity_entry *consumed; /* of every capacity; is_multi only */
    size_t n_consumed;
    char share_id[37];
};

/* Memory for what a pick consumes. It is used again and again, because a search takes and gives
 * back devices millions of times. */
struct dv_alloc_room {
    struct dv_quantity_entry *consumed;
    size_t n;
};

struct dv_alloc_task {
    const struct dv_api_resource_claim *claim;
    struct dv_alloc_ask *asks;
    size_t n_asks;
    /* The index of each ask's first want among all wants of the claim; the last is their number. */
    size_t *first_want;
    struct dv_alloc_constraint *constraints;
    size_t n_constraints;
    uint64_t n_max; /* how many devices it has when the largest alternatives are chosen */
    /* Of n_max, or DV_ALLOC_RESULTS_MAX when these are fewer: a pod may have thousands of claims.
     */
    struct dv_alloc_pick *picks;
    size_t n_picks;
    struct dv_alloc_room *rooms; /* for each pick */
};

/* The state in which a search had taken the most devices, for explanations. What was taken there is
 * copied only when some of it is given back: a search that goes on and on copies nothing. */
struct dv_alloc_furthest {
    struct dv_alloc_pick *picks; /* the devices that were taken, each with its task in `tasks` */
    size_t *tasks;
    size_t n_picks;
    size_t n_room;    /* for so many picks there is memory */
    size_t n_reached; /* how many devices were taken */
    bool is_set;
    bool is_kept; /* `picks` has them */
    size_t task;  /* where the search stood */
    size_t ask;
    size_t want;
};

/* What this search has taken of a place. */
struct dv_alloc_taken {
    uint32_t n_marks;             /* how often it was taken as a whole */
    uint32_t n_shares;            /* how many shares of it were taken */
    struct dv_quantity *capacity; /* what the shares take, one for each capacity of the device */
};

/* What may be left out of the search: see bound.c. */
enum dv_alloc_bounds {
    DV_ALLOC_BOUNDS_UNKNOWN, /* not looked at yet: nothing is left out */
    DV_ALLOC_BOUNDS_NONE,    /* nothing may be left out */
    DV_ALLOC_BOUNDS_COUNT,   /* branches that counting shows to lead nowhere are left out */
    DV_ALLOC_BOUNDS_TWINS,   /* and so are twins of devices that led nowhere */
};

/* Scratch memory of alloc_count.c. */
struct dv_alloc_sheet {
    uint64_t *counts;          /* one for each value */
    bool *flags;               /* one for each value */
    struct dv_quantity *least; /* one for each counter of a pool */
    uint64_t *n_consumers;     /* one for each counter of a pool */
};

struct dv_alloc_search {
    struct dv_inventory *inventory;
    const struct dv_alloc_node *node;
    struct dv_alloc_node_view *view;
    const struct dv_alloc_options *options;
    struct dv_alloc_task *tasks;
    size_t n_tasks;
    size_t n_picks;               /* of all tasks */
    struct dv_alloc_taken *taken; /* one for each place */
    uint64_t *marked;             /* bits of places that are taken as a whole */
    size_t n_words;               /* of such bits */
    struct dv_quantity **used;    /* what the search took of each pool's counters; NULL: nothing */
    enum dv_alloc_bounds bounds;
    struct dv_alloc_sheet *sheet; /* NULL: nothing may be left out */
    uint64_t n_steps;
    uint64_t n_steps_max;
    uint64_t cost; /* see the COST_ constants */
    uint64_t cost_max;
    uint64_t n_backs;   /* of the steps: how many devices were given back */
    uint64_t n_counted; /* places that were looked at for bounds */
    struct dv_arena *arena;
    size_t bytes_before; /* of the arena, when it began */
    bool gave_up;
    /* NULL: not asked for; otherwise nothing is left out of the search. */
    struct dv_alloc_furthest *furthest;
    struct dv_err *err;
};

/* What things cost, in units of CEL's cost, of which each takes about ten nanoseconds (measured).
 * What is done in one go is charged before it is done. */
#define COST_STEP 10u       /* of the search */
#define COST_PLACE 1u       /* that is looked at: a few bits */
#define COST_TAKE 4u        /* a place is tried: constraints, counters and taints come on top */
#define COST_SELECTOR 1u    /* that was evaluated before on the device */
#define COST_EVALUATION 40u /* and CEL's own */
#define COST_COMPILED_BYTE 30u
#define COST_VIEW_DEVICE 60u    /* of the pools as the node sees them */
#define COST_COUNTER_DEVICE 10u /* what is left of the counters of a pool, after a change */

/* Adds to the cost of the search. False: that is too much, and the search is given up. */
DV_CHECKED bool dv_search_charge(struct dv_alloc_search *search, uint64_t cost);
/* Makes the view of the node and reads the claims. */
DV_CHECKED bool dv_search_begin(struct dv_alloc_search *search,
                                const struct dv_api_resource_claim *const *claims, size_t n_claims);
/* The search itself. */
enum dv_alloc_outcome dv_search_run(struct dv_alloc_search *search);

/* alloc_ask.c: reads the claims. */
DV_CHECKED bool dv_search_read(struct dv_alloc_search *search,
                               const struct dv_api_resource_claim *const *claims, size_t n_claims);
/* Whether the device is one that `want` asks for: selectors, and what node it is for. */
DV_CHECKED bool dv_want_selects(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                                const struct dv_alloc_want *want,
                                const struct dv_alloc_place *place, bool *selects);

/* bound.c */
/* Finds out what may be left out of the search, and sets search->bounds. */
void dv_bound_begin(struct dv_alloc_search *search);
uint64_t
dv_bound_work(const struct dv_alloc_search *search); /* how many places dv_bound_begin looks at */
/* Whether a twin of the place led nowhere, when all from `start` on were tried before it. */
bool dv_bound_has_tried_twin(const struct dv_alloc_search *search, const struct dv_alloc_task *task,
                             const struct dv_alloc_want *want, uint32_t start, uint32_t place);

/* alloc_count.c */
/* Where the search stands: some devices of a want are taken, the others come from `start` on. */
struct dv_alloc_spot {
    size_t task;
    size_t ask;
    size_t want;
    uint64_t n_taken;
    uint32_t start;
};
/* Whether so many places may still be looked at for counting, which must not cost more than it
 * saves. If so, they are charged. */
bool dv_count_may(struct dv_alloc_search *search, uint64_t n_places);
/* Whether no solution can be found from here on. */
bool dv_count_is_hopeless(struct dv_alloc_search *search, const struct dv_alloc_spot *spot);

/* constraint.c */
DV_CHECKED bool dv_constraint_read(struct dv_alloc_search *search, struct dv_alloc_task *task,
                                   const struct dv_api_device_constraint *api,
                                   struct dv_alloc_constraint *constraint);
/* Whether the device could be added; changes nothing. */
bool dv_constraint_allows(const struct dv_alloc_search *search,
                          const struct dv_alloc_constraint *constraint,
                          const struct dv_alloc_task *task, size_t ask, size_t want,
                          const struct dv_alloc_device *device);
/* Adds it, when it is allowed. */
DV_CHECKED bool dv_constraint_add(struct dv_alloc_search *search,
                                  struct dv_alloc_constraint *constraint,
                                  const struct dv_alloc_task *task, size_t ask, size_t want,
                                  const struct dv_alloc_device *device);
void dv_constraint_remove(struct dv_alloc_constraint *constraint, const struct dv_alloc_task *task,
                          size_t ask, size_t want);

/* Whether the two devices have a value in common. */
bool dv_constraint_clashes(const struct dv_alloc_search *search,
                           const struct dv_alloc_constraint *constraint,
                           const struct dv_alloc_device *a, const struct dv_alloc_device *b);
/* Numbers the values that places have, for counting. */
void dv_constraint_number(const struct dv_alloc_search *search,
                          struct dv_alloc_constraint *constraint);
/* The device's value of the constraint's attribute, for people; empty when it has none. */
dv_str dv_constraint_value(const struct dv_alloc_constraint *constraint,
                           const struct dv_alloc_device *device, struct dv_arena *arena);

/* alloc_capacity.c */
/* Computes what `want` would consume of each capacity of the device, into consumed[], which has
 * room for them (or is NULL). False: a capacity is not there, the request is against its policy, or
 * not enough is left. */
DV_CHECKED bool dv_capacity_fits(struct dv_alloc_search *search, const struct dv_alloc_want *want,
                                 uint32_t place, struct dv_quantity_entry *consumed);
/* Whether a share of the device would give back capacity instead of consuming it. */
bool dv_capacity_is_negative(const struct dv_alloc_want *want,
                             const struct dv_alloc_device *device);
/* Why dv_capacity_fits is false, as a sentence in the search's arena; empty when it fits. */
dv_str dv_capacity_problem(struct dv_alloc_search *search, const struct dv_alloc_want *want,
                           uint32_t place);

/* take.c */
enum dv_alloc_took {
    DV_ALLOC_TOOK,
    DV_ALLOC_TOOK_NOT,
    DV_ALLOC_TOOK_ERROR,
};
bool dv_place_is_free(const struct dv_alloc_search *search, const struct dv_alloc_task *task,
                      const struct dv_alloc_want *want, uint32_t place);
/* The first taint that keeps the device from being taken; NULL: none. */
const struct dv_api_device_taint *dv_want_repelled(const struct dv_alloc_search *search,
                                                   const struct dv_alloc_want *want,
                                                   const struct dv_alloc_device *device);
/* The first counter of which there is not enough for the device; NULL: none. */
const struct dv_alloc_counter *dv_place_lacks_counter(struct dv_alloc_search *search,
                                                      uint32_t place);
/* Takes the device for a want of a task; `must`: a constraint against it is an error. */
enum dv_alloc_took dv_take(struct dv_alloc_search *search, struct dv_alloc_task *task, size_t ask,
                           size_t want, uint32_t place, bool must);
/* Gives back the last device that the task took. */
void dv_untake(struct dv_alloc_search *search, struct dv_alloc_task *task);
void dv_search_untake_all(struct dv_alloc_search *search);

/* why.c: what speaks against the place, now, for a want. */
void dv_why_explain(struct dv_alloc_search *search, const struct dv_alloc_task *task, size_t ask,
                    size_t want, uint32_t place, struct dv_why_device *device);

/* brief.c: what a selector that is not true of a device has against it, in few words. */
dv_str dv_why_brief(const struct dv_cel_report *report, struct dv_arena *arena);

/* alloc_explain.c */
/* A search for an explanation, which has not begun. */
struct dv_alloc_search dv_explain_start(struct dv_inventory *inventory,
                                        const struct dv_alloc_node *node,
                                        const struct dv_alloc_options *options,
                                        struct dv_arena *arena);
/* Searches without leaving anything out, to see how far that comes, and puts the search back to
 * there. `furthest` and `err` of the search are the caller's. False: it cannot begin. */
DV_CHECKED bool dv_explain_search(struct dv_alloc_search *search,
                                  const struct dv_api_resource_claim *const *claims,
                                  size_t n_claims);
/* Explains the request that it came to, which has so many before it. False: there is none. */
DV_CHECKED bool dv_explain_stuck(struct dv_alloc_search *search, struct dv_why_request *request,
                                 size_t *n_passed);

/* result.c */
DV_CHECKED bool dv_search_result(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                                 struct dv_api_allocation_result *allocation);

#endif
