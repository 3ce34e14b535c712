/* release.h - what becomes of a claim when those who use it are gone. Pure. */
#ifndef DV_CONTROL_RELEASE_H
#define DV_CONTROL_RELEASE_H

#include <stdbool.h>

#include "base/str.h"

struct dv_api_pod;
struct dv_api_resource_claim;
struct dv_api_resource_claim_consumer_reference;
struct dv_arena;

enum dv_consumer {
    DV_CONSUMER_STAYS,
    DV_CONSUMER_GONE,
    DV_CONSUMER_UNKNOWN, /* the server must be asked */
};

/* Judges a reservation by the pod of that name (NULL: none is known). A consumer that is no pod
 * stays. */
enum dv_consumer
dv_control_judge_consumer(const struct dv_api_resource_claim_consumer_reference *consumer,
                          const struct dv_api_pod *pod);

struct dv_release {
    /* Written to the status, when not NULL: without those who are gone, without allocation when
     * nobody is left. */
    struct dv_api_resource_claim *status;
    /* Then, unless an allocation is left, the finalizer goes. */
    bool removes_finalizer;
    bool is_unused;   /* nobody is left */
    bool is_leftover; /* a finalizer without allocation or use, which nobody has just taken away */
};

/* `stays` has one value for each reservation. The result refers to the claim. */
void dv_control_plan_release(const struct dv_api_resource_claim *claim, const bool *stays,
                             struct dv_arena *arena, struct dv_release *release);
/* The claim without our finalizer; refers to it. */
struct dv_api_resource_claim *
dv_control_without_finalizer(const struct dv_api_resource_claim *claim, struct dv_arena *arena);
/* Whether a claim that nobody uses was generated for a pod that will not use it any more. `pod` is
 * the one of that name; when there is none (NULL) the collector of garbage decides. */
bool dv_control_is_garbage(const struct dv_api_resource_claim *claim, dv_str owner_uid,
                           const struct dv_api_pod *pod);

#endif
