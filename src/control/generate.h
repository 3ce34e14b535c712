/* generate.h - which claims a pod lacks, and what they look like. Pure. */
#ifndef DV_CONTROL_GENERATE_H
#define DV_CONTROL_GENERATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "control/control.h"
#include "control/uses.h"

struct dv_api_pod;
struct dv_api_pod_resource_claim;
struct dv_api_pod_status;
struct dv_api_resource_claim;
struct dv_arena;
struct dv_json;

enum dv_entry_step {
    DV_ENTRY_KEEP,   /* as it is in the status, or named by the spec */
    DV_ENTRY_ADOPT,  /* the claim is there, the status does not say so */
    DV_ENTRY_CREATE, /* dv_control_new_claim makes what is to be created */
    DV_ENTRY_STUCK,  /* it cannot be: see the plan's `err` */
};

/* What becomes of an entry of the pod's spec. */
struct dv_entry_plan {
    dv_str name;
    enum dv_entry_step step;
    dv_str claim; /* its name; empty: it is yet to be made, or none is needed */
    bool is_generated;
    struct dv_api_resource_claim *new_claim; /* NULL: not made yet */
};

struct dv_pod_plan {
    struct dv_entry_plan *entries; /* up to the first that is stuck */
    size_t n_entries;
    bool is_stuck;
    struct dv_err err; /* of the last entry, when it is stuck */
};

/* Makes the plan in `arena`; it refers to the pod, and to nothing else that was found. */
void dv_control_plan_pod(const struct dv_api_pod *pod, const struct dv_control_lookup *lookup,
                         const struct dv_control_gates *gates, struct dv_arena *arena,
                         struct dv_pod_plan *plan);

/* Makes the claim for an entry of the pod's list, in `arena`. Each is made when its turn has come:
 * a pod may have tens of thousands. DV_NOT_FOUND: its template is not there. */
struct dv_api_resource_claim *dv_control_new_claim(const struct dv_api_pod *pod,
                                                   const struct dv_api_pod_resource_claim *entry,
                                                   const struct dv_control_lookup *lookup,
                                                   const struct dv_control_gates *gates,
                                                   struct dv_arena *arena, struct dv_err *err);

/* "<pod>-<entry>-"; when that is long both are shortened, and the last dash is left out. */
dv_str dv_control_generate_name(dv_str pod, dv_str entry, struct dv_arena *arena);
/* A name of that kind that is always the same for a pod, an entry and a number: what was asked for
 * and perhaps made is found under it, and not made twice. */
dv_str dv_control_claim_name(dv_str generate_name, dv_str pod_uid, dv_str entry, unsigned number,
                             struct dv_arena *arena);
/* Sets resourceClaimStatuses of a pod's status to the names of all claims that are known; refers to
 * the pod and the plan. False: the pod's status says that already. */
bool dv_control_claim_statuses(const struct dv_api_pod *pod, const struct dv_pod_plan *plan,
                               struct dv_arena *arena, struct dv_api_pod_status *status);
/* Makes a patch for server-side apply of what dv_control_claim_statuses has set. */
struct dv_json *dv_control_claim_patch(const struct dv_api_pod *pod,
                                       const struct dv_api_pod_status *status,
                                       struct dv_arena *arena);
/* The claim with the pod among those that use it; refers to both. */
struct dv_api_resource_claim *dv_control_reserve(const struct dv_api_resource_claim *claim,
                                                 const struct dv_api_pod *pod,
                                                 struct dv_arena *arena);

#endif
