/* references.h - the objects of the API that a pod refers to. Pure. */
#ifndef DV_RESOURCE_REFERENCES_H
#define DV_RESOURCE_REFERENCES_H

#include <stdbool.h>

#include "base/str.h"

struct dv_api_pod;
struct dv_map;

enum dv_reference_kind {
    DV_REFERENCE_SERVICE_ACCOUNT,
    DV_REFERENCE_SECRET,
    DV_REFERENCE_CONFIG_MAP,
    DV_REFERENCE_CLAIM,
    DV_REFERENCE_OTHER, /* kinds that are not served: volume claims, CSI drivers, endpoints */
};

struct dv_reference {
    enum dv_reference_kind kind;
    dv_str name; /* empty: not known yet, or not told by the pod */
    dv_str what; /* the reference's word for it: "secrets", "serviceaccounts (via ...)" */
};

/* Returns false to end the walk. */
typedef bool dv_visit_reference(void *ctx, const struct dv_reference *reference);

/* Visits what the pod's spec refers to, in the order in which the reference looks: service account,
 * secrets, config maps, claims, other volumes. A claim that is made from a template has the name
 * that the pod's status tells, as has the claim for extended resources. False: a visit ended it. */
bool dv_pod_visit_references(const struct dv_api_pod *pod, dv_visit_reference *visit, void *ctx);

/* Makes an index of the statuses of the pod's claims (dv_api_pod_resource_claim_status), by the
 * names of its entries. Of equal names the first one counts. A pod may have tens of thousands: who
 * walks its entries makes this first. dv_map_fini frees it; the statuses stay the pod's. */
void dv_pod_index_claim_statuses(const struct dv_api_pod *pod, struct dv_map *by_entry);

/* On mirror pods, which a node makes of the static pods that it has. */
#define DV_MIRROR_ANNOTATION "kubernetes.io/config.mirror"
/* Whether the pod is a mirror: it stands for one that the node has from elsewhere, and has the
 * annotation, of any value. */
bool dv_pod_is_mirror(const struct dv_api_pod *pod);

#endif
