/* holdings.h - what a pod got, held against what is there and what others hold: its CDI names are
 * those of specs on this node, and its devices nobody else's. */
#ifndef DV_POD_HOLDINGS_H
#define DV_POD_HOLDINGS_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_api_resource_claim;
struct dv_arena;
struct dv_cluster;
struct dv_err;
struct dv_holdings;
struct dv_holdings_taking;
struct dv_pod;
struct dv_pods;

struct dv_holdings *dv_holdings_new(struct dv_pods *pods);
void dv_holdings_free(struct dv_holdings *holdings); /* NULL is fine */
/* From now on the ledger reads the slices of this node, which say more of a device than its
 * name. */
DV_CHECKED bool dv_holdings_connect(struct dv_holdings *holdings, struct dv_cluster *cluster,
                                    struct dv_err *err);

/* Whether a CDI spec on this node has each CDI name that drivers gave for the pod's claims.
 * DV_NOT_FOUND names the driver, the claim, the device, and the directories that were searched. */
DV_CHECKED bool dv_holdings_resolve(struct dv_holdings *holdings, const struct dv_pod *pod,
                                    struct dv_err *err);
/* A device that another pod has by another way. */
struct dv_holdings_rival {
    dv_str pod_uid;  /* of the other */
    dv_str resource; /* empty: it is a claim's, and was not chosen here */
    dv_str id;
};
/* Before a driver or a plugin is asked: what is known beforehand, from slices and from ids, is
 * nobody else's, and is the pod's from now on, so that no other gets as far. dv_holdings_give_back
 * or dv_holdings_refresh undo it. Fails as dv_holdings_take. */
DV_CHECKED bool dv_holdings_reserve_claims(struct dv_holdings *holdings, const struct dv_pod *pod,
                                           const struct dv_api_resource_claim *const *claims,
                                           size_t n_claims, struct dv_arena *arena,
                                           struct dv_holdings_rival *rival, struct dv_err *err);
DV_CHECKED bool dv_holdings_reserve_devices(struct dv_holdings *holdings, const struct dv_pod *pod,
                                            dv_str container, dv_str resource, const dv_str *ids,
                                            size_t n_ids, struct dv_arena *arena,
                                            struct dv_holdings_rival *rival, struct dv_err *err);
enum dv_holdings_taken {
    DV_HOLDINGS_ALL,    /* the pod holds all its devices from now on */
    DV_HOLDINGS_PART,   /* the caller goes on with the next part in another turn of the loop */
    DV_HOLDINGS_IN_USE, /* another pod has one of them */
};
/* The pod takes its devices: all at once, or in parts when they are many. *taking, NULL at first,
 * tells how far it is; at the end it is NULL again. In use: DV_FAILED_PRECONDITION says by whom,
 * and *rival, in `arena`, which device it is; dv_holdings_give_back or dv_holdings_refresh undo
 * what was taken before. */
enum dv_holdings_taken dv_holdings_take(struct dv_holdings *holdings, const struct dv_pod *pod,
                                        struct dv_holdings_taking **taking, struct dv_arena *arena,
                                        struct dv_holdings_rival *rival, struct dv_err *err);
/* Gives up between two parts; what was taken is undone as above. NULL is fine. */
void dv_holdings_taking_free(struct dv_holdings_taking *taking);
void dv_holdings_give_back(struct dv_holdings *holdings, const struct dv_pod *pod);
/* Enters the pod again, from what the records say, without checking for conflicts. */
void dv_holdings_refresh(struct dv_holdings *holdings, const struct dv_pod *pod);
/* Enters all pods again, from what the records say, without checking for conflicts. */
void dv_holdings_rebuild(struct dv_holdings *holdings);

#endif
