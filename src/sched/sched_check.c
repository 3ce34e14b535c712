/* sched_check.c - what can be said of a pod before any node is looked at: a claim that is in use by
 * too many, or is being allocated for another pod, or names a class that does not exist. Such a pod
 * is not held against any node. */
#include <stdbool.h>
#include <stddef.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "sched/attempt.h"
#include "sched/fit.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* Sets sched->why to the reason why no node can be right, and returns false. */
static bool reject(struct dv_sched_attempt *attempt, dv_str why)
{
    dv_buf_clear(&attempt->sched->why);
    dv_buf_add(&attempt->sched->why, why);
    return false;
}

static bool check_class(struct dv_sched_attempt *attempt, const char *parent, dv_str request,
                        dv_str class)
{
    struct dv_sched *sched = attempt->sched;

    if (dv_view_get(sched->views[DV_SCHED_VIEW_CLASSES], DV_STR_NONE, class))
        return true;
    dv_buf_clear(&sched->why);
    dv_buf_printf(&sched->why, "request %s%.*s: device class %.*s does not exist", parent,
                  DV_FMT(request), DV_FMT(class));
    dv_sched_wait_for_class(attempt->pod, class);
    return false;
}

static bool check_alternatives(struct dv_sched_attempt *attempt,
                               const struct dv_api_device_request *request)
{
    struct dv_arena *arena = attempt->sched->scratch;

    if (request->n_first_available == 0)
        return true;
    attempt->has_alternatives = true;
    if (!(attempt->sched->options.gates & DV_GATE_PRIORITIZED_LIST))
        return reject(attempt, dv_str_printf(arena,
                                             "request %.*s: has subrequests, but the "
                                             "DRAPrioritizedList feature is disabled",
                                             DV_FMT(request->name)));
    for (size_t i = 0; i < request->n_first_available; i++) {
        dv_str parent = dv_str_printf(arena, "%.*s/", DV_FMT(request->name));

        if (!check_class(attempt, dv_str_to_c(parent, arena), request->first_available[i].name,
                         request->first_available[i].device_class_name))
            return false;
    }
    return true;
}

static bool check_requests(struct dv_sched_attempt *attempt,
                           const struct dv_api_device_claim *devices)
{
    for (size_t i = 0; i < devices->n_requests; i++) {
        const struct dv_api_device_request *request = &devices->requests[i];

        if (request->exactly &&
            !check_class(attempt, "", request->name, request->exactly->device_class_name))
            return false;
        if (!check_alternatives(attempt, request))
            return false;
    }
    return true;
}

static bool check_claim(struct dv_sched_attempt *attempt, struct dv_sched_pod_claim *use)
{
    const struct dv_api_resource_claim *claim = dv_sched_claim_value(use->claim);

    if (claim->status.allocation) {
        if (!attempt->pod->is_preset && claim->status.n_reserved_for >= DV_CLAIM_RESERVED_MAX &&
            !dv_claim_is_reserved_for(claim, attempt->value->metadata.uid))
            return reject(attempt, DV_STR("resourceclaim in use"));
        return true;
    }
    if (use->claim->assumed) {
        attempt->is_early = true;
        return reject(attempt,
                      dv_str_printf(attempt->sched->scratch,
                                    "resource claim %.*s is in the process of being allocated",
                                    DV_FMT(use->claim->key)));
    }
    attempt->asked[attempt->n_open] = claim;
    attempt->open[attempt->n_open++] = use;
    return check_requests(attempt, &claim->spec.devices);
}

bool dv_sched_attempt_check(struct dv_sched_attempt *attempt)
{
    struct dv_sched_pod *pod = attempt->pod;
    struct dv_arena *arena = attempt->sched->scratch;

    attempt->open = DV_NEW_ARRAY(arena, struct dv_sched_pod_claim *, pod->n_claims);
    attempt->asked = DV_NEW_ARRAY(arena, const struct dv_api_resource_claim *, pod->n_claims + 1);
    for (size_t i = 0; i < pod->n_claims; i++)
        if (!check_claim(attempt, &pod->claims[i]))
            return false;
    return true;
}

/* Reads the pod's amounts, and marks those resources that a class serves: on nodes that have none
 * of such a resource it is no amount but a request for devices. */
void dv_sched_attempt_read(struct dv_sched_attempt *attempt)
{
    struct dv_sched *sched = attempt->sched;
    struct dv_sched_pod *pod = attempt->pod;

    dv_sched_amounts_read(&sched->amounts, &sched->resources, &attempt->value->spec);
    pod->is_extended = false;
    if (!(sched->options.gates & DV_GATE_EXTENDED_RESOURCE) || pod->is_preset)
        return;
    for (size_t i = 0; i < sched->amounts.all.n; i++) {
        struct dv_sched_amount *amount = &sched->amounts.all.v[i];
        dv_str name = sched->resources.names.v[amount->resource]->name;

        amount->is_served = amount->resource >= DV_SCHED_N_FIXED_RESOURCES && amount->n > 0 &&
                            dv_inventory_extended(sched->inventory, name) != NULL;
        pod->is_extended |= amount->is_served;
    }
}
