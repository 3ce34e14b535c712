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

struct dv_sched_decision;
struct dv_api_allocation_result;
struct dv_api_container_extended_resource_request;
struct dv_api_resource_claim;
struct dv_arena;
struct dv_json;
struct dv_sched;
struct dv_sched_pod;

enum dv_sched_binding_step {
    DV_SCHED_BINDING_CREATE,
    DV_SCHED_BINDING_APPEAR,
    DV_SCHED_BINDING_RESERVE,
    DV_SCHED_BINDING_SHOW,
    DV_SCHED_BINDING_READY,
    DV_SCHED_BINDING_RECORD,
    DV_SCHED_BINDING_BIND,
    DV_SCHED_BINDING_CHECK, /* reads the pod to see who has bound it */
    DV_SCHED_BINDING_UNDO,
};

struct dv_sched_binding {
    struct dv_link link; /* in sched->bindings */
    struct dv_sched *sched;
    struct dv_sched_pod *pod;
    struct dv_arena *arena;
    enum dv_sched_binding_step step;
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

bool dv_sched_binding_is_deleted(const struct dv_sched_pod *pod);
void dv_sched_binding_end_well(struct dv_sched_binding *binding);
void dv_sched_binding_end_badly(struct dv_sched_binding *binding);
void dv_sched_binding_undo(struct dv_sched_binding *binding);
void dv_sched_binding_fail(struct dv_sched_binding *binding, const char *what);
/* Looks whether what the current step waits for is there, and goes on if so. */
void dv_sched_binding_look(struct dv_sched_binding *binding);
const struct dv_api_allocation_result *
dv_sched_binding_copy(struct dv_sched_binding *binding,
                      const struct dv_api_allocation_result *allocation);

/* ---- sched_ask.c ---- */

/* Makes the request of the current step. */
void dv_sched_binding_ask(struct dv_sched_binding *binding);

/* ---- sched_extended.c ---- */

void dv_sched_extended_use(struct dv_sched_binding *binding, dv_str name);
void dv_sched_extended_draft(struct dv_sched_binding *binding,
                             const struct dv_sched_decision *decision);
const struct dv_json *dv_sched_extended_patch(const struct dv_sched_binding *binding);

#endif
