/* uses.h - pods and the claims they use, as the API's objects say it. Pure. */
#ifndef DV_CONTROL_USES_H
#define DV_CONTROL_USES_H

#include <stdbool.h>

#include "base/str.h"
#include "control/control.h"

struct dv_api_device_claim;
struct dv_api_object_meta;
struct dv_api_pod;
struct dv_api_pod_resource_claim;
struct dv_api_resource_claim;
struct dv_api_resource_claim_consumer_reference;
struct dv_api_resource_claim_template;
struct dv_map;

/* The annotation of generated claims with the name of the pod's entry that they are for. */
#define DV_CLAIM_ENTRY_ANNOTATION "resource.kubernetes.io/pod-claim-name"

/* It has ended, or will never run. */
bool dv_control_pod_is_done(const struct dv_api_pod *pod);

enum dv_use {
    DV_USE_NAMED,     /* the entry names the claim */
    DV_USE_GENERATED, /* the pod's status names the claim, which must be the pod's */
    DV_USE_NOTHING,   /* the pod's status says that no claim is needed */
    DV_USE_NOT_YET,   /* the claim is not generated, or not written into the status */
};

/* What the status of the pod says about an entry of its spec; *claim is set for the first two.
 * `statuses` is the index of dv_pod_index_claim_statuses. */
enum dv_use dv_control_use(const struct dv_map *statuses,
                           const struct dv_api_pod_resource_claim *entry, dv_str *claim);

/* The claim's controller, when it is a pod. */
bool dv_control_owner_pod(const struct dv_api_object_meta *claim, dv_str *name, dv_str *uid);
/* Whether the claim's controller, of any kind, has that uid. */
bool dv_control_is_owned_by(const struct dv_api_object_meta *claim, dv_str uid);
/* The name of the pod's entry that a generated claim is for; empty: it says none. */
dv_str dv_control_entry_of(const struct dv_api_object_meta *claim);
enum dv_claim_source dv_control_source_of(const struct dv_api_object_meta *claim);
/* NULL: nothing does. */
bool dv_control_wants_admin(const struct dv_api_device_claim *devices);
bool dv_control_wants_list(const struct dv_api_device_claim *devices);
bool dv_control_is_pod(const struct dv_api_resource_claim_consumer_reference *consumer);

/* How claims and templates are found. */
struct dv_control_lookup {
    void *ctx;
    const struct dv_api_resource_claim *(*claim)(void *ctx, dv_str namespace, dv_str name);
    /* A claim that the pod of that uid controls, for that entry of it. */
    const struct dv_api_resource_claim *(*generated)(void *ctx, dv_str namespace, dv_str pod_uid,
                                                     dv_str entry);
    const struct dv_api_resource_claim_template *(*template)(void *ctx, dv_str namespace,
                                                             dv_str name);
};

/* Whether something is to be done for a pod that is not done: claims to be generated or written
 * down, or a reservation to be made. */
bool dv_control_needs_work(const struct dv_api_pod *pod, const struct dv_control_lookup *lookup);
/* Whether the pod may be added to those who use the claim, and is to be. */
bool dv_control_is_to_reserve(const struct dv_api_pod *pod,
                              const struct dv_api_resource_claim *claim);

#endif
