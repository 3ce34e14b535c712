/* binding.h - a decision that is being written: the pod's claims, then its binding. For bind.c,
 * sched_ask.c and sched_extended.c. The steps are drawn in bind.c. */
#ifndef DV_SCHED_BINDING_H
#define DV_SCHED_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/resource.h"

struct decision;
struct dv_api_allocation_result;
struct dv_api_container_extended_resource_request;
struct dv_api_resource_claim;
struct dv_arena;
struct dv_json;
struct dv_sched;
struct pod;

enum op_step {
    OP_CREATE,
    OP_APPEAR,
    OP_RESERVE,
    OP_SHOW,
    OP_READY,
    OP_RECORD,
    OP_BIND,
    OP_CHECK, /* reads the pod to see who has bound it */
    OP_UNDO,
};

struct op {
    struct dv_link link; /* in sched->ops */
    struct dv_sched *sched;
    struct pod *pod;
    struct dv_arena *arena;
    enum op_step step;
    dv_str node;
    bool is_asking; /* a request of this operation is under way */
    bool is_ready_said;
    size_t n_pending; /* writes of claims that are not answered yet */
    struct dv_err err;
    struct dv_request request;
    /* Ends a step that takes too long, or the pause before a request is made again. */
    struct dv_timer timer;
    unsigned n_pauses;
    uint64_t begin_ns;
    uint64_t ready_ns;
    /* For extended resources. */
    struct dv_api_resource_claim *created;
    dv_str created_name;
    const struct dv_api_allocation_result *created_allocation;
    struct dv_api_container_extended_resource_request *mappings;
    size_t n_mappings;
};

/* ---- bind.c ---- */

bool dv_sched_op_is_deleted(const struct pod *pod);
void dv_sched_op_end_well(struct op *op);
void dv_sched_op_end_badly(struct op *op);
void dv_sched_op_undo(struct op *op);
void dv_sched_op_fail(struct op *op, const char *what);
/* Looks whether what the current step waits for is there, and goes on if so. */
void dv_sched_op_look(struct op *op);
const struct dv_api_allocation_result *
dv_sched_op_copy(struct op *op, const struct dv_api_allocation_result *allocation);

/* ---- sched_ask.c ---- */

/* Makes the request of the current step. */
void dv_sched_op_ask(struct op *op);

/* ---- sched_extended.c ---- */

void dv_sched_extended_use(struct op *op, dv_str name);
void dv_sched_extended_draft(struct op *op, const struct decision *decision);
const struct dv_json *dv_sched_extended_patch(const struct op *op);

#endif
