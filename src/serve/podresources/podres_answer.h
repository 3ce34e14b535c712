/* podres_answer.h - what PodResources answers, v1 and v1alpha1. Pure: values in, messages out.
 *
 * Answers are in the arena, and borrow nothing. Pods are by namespace and name; devices by
 * resource, id and node, one entry each; claims, drivers and their devices as given. CPUs and
 * memory stay empty: davit manages neither. What is listed is what is held at the call: who answers
 * List collects first, who answers Get does not. */
#ifndef DV_SERVE_PODRES_ANSWER_H
#define DV_SERVE_PODRES_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "proto/podresources_v1.pb-c.h"
#include "proto/podresources_v1alpha1.pb-c.h"

struct dv_arena;
struct dv_device_state;
struct dv_err;
struct dv_pod_spec;

/* ---- claims that drivers have prepared ---- */

struct dv_podres_claim_device {
    dv_str pool;
    dv_str device;
    dv_str share_id;
    bool has_share_id;
    const dv_str *cdi_ids;
    size_t n_cdi_ids;
};

struct dv_podres_claim_driver {
    dv_str name;
    const struct dv_podres_claim_device *devices;
    size_t n_devices;
};

struct dv_podres_claim {
    dv_str namespace;
    dv_str name;
    const struct dv_podres_claim_driver *drivers;
    size_t n_drivers;
};

/* ---- the node ---- */

/* The claims of one container, in the order of the pod's list; the one for extended resources comes
 * last. NULL stands for a claim that is not prepared; the container then shows none at all. */
struct dv_podres_use {
    const struct dv_podres_claim *const *claims;
    size_t n_claims;
};

struct dv_podres_pod {
    const struct dv_pod_spec *spec;
    const struct dv_podres_use *uses; /* one for each container of the spec; NULL: no claims */
    bool is_active;
};

struct dv_podres_node {
    const struct dv_device_state *devices;
    const struct dv_podres_pod *pods; /* all that are known, in any order */
    size_t n_pods;
    /* As 1.36 does, for --strict and for its recorded answers:
     * - cdi_devices of a device also has the ids of those before it of the same driver and claim;
     *   otherwise only its own;
     * - a healthy device whose topology has no nodes is not allocatable; otherwise it is, as one
     *   without topology;
     * - Get answers for inactive pods, too; otherwise it does not find them. */
    bool is_strict;
};

/* ---- answers ---- */

/* Answers v1 List: the active pods. */
PodresV1__ListPodResourcesResponse *dv_podres_list(const struct dv_podres_node *node,
                                                   struct dv_arena *arena);
/* Answers v1 Get. DV_UNKNOWN, with the reference's text: there is no such pod, or it is not
 * active. */
PodresV1__GetPodResourcesResponse *dv_podres_get(const struct dv_podres_node *node,
                                                 dv_str namespace, dv_str name,
                                                 struct dv_arena *arena, struct dv_err *err);
/* Answers v1 GetAllocatableResources: all healthy devices, held or not, but never those of
 * claims. */
PodresV1__AllocatableResourcesResponse *dv_podres_allocatable(const struct dv_podres_node *node,
                                                              struct dv_arena *arena);
/* Answers v1alpha1 List: all pods with their regular containers, names and ids only. */
PodresV1alpha1__ListPodResourcesResponse *dv_podres_alpha_list(const struct dv_podres_node *node,
                                                               struct dv_arena *arena);

#endif
