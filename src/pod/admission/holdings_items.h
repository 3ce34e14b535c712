/* holdings_items.h - the things that a pod got, each with the identities that are known of it. */
#ifndef DV_POD_HOLDINGS_ITEMS_H
#define DV_POD_HOLDINGS_ITEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "pod/admission/holdings_slices.h"
#include "pod/ledger/ledger.h"
#include "pod/ledger/pod_identity.h"

struct dv_api_resource_claim;
struct dv_arena;
struct dv_device_record;
struct dv_ledger;
struct dv_pod;
struct dv_pods;

/* What a turn of the loop has time for when a pod's devices are entered into the ledger: about a
 * millisecond, counted in devices. */
#define DV_HOLDINGS_COST_PER_TURN 2000u

struct dv_holdings {
    struct dv_pods *pods;
    struct dv_ledger *ledger; /* NULL: none is kept */
    struct dv_holdings_slices slices;
    struct dv_holdings_learning *learning; /* of slices that have changed; NULL: none is read */
};

struct dv_holdings_item {
    struct dv_ledger_holder holder;
    struct dv_identities identities;
    bool is_described; /* by a slice */
};

/* A list of items. It is in the arena that was given for it, and borrows the texts of the pod. */
struct dv_holdings_items {
    struct dv_holdings_item *v;
    size_t n;
    size_t size;
};

/* Adds an item without identities. */
struct dv_holdings_item *dv_holdings_add_item(struct dv_holdings_items *items,
                                              const struct dv_pod *pod,
                                              enum dv_ledger_giver_kind giver_kind, dv_str giver,
                                              struct dv_arena *arena);
/* The pod's records; borrowed until one of them changes. */
size_t dv_holdings_records(const struct dv_holdings *holdings, const struct dv_pod *pod,
                           struct dv_arena *arena, const struct dv_device_record **records);
/* Adds what a plugin has given; keeps nothing of the record. */
void dv_holdings_add_record(const struct dv_holdings *holdings, const struct dv_pod *pod,
                            const struct dv_device_record *record,
                            const struct dv_identity_host *host, struct dv_arena *arena,
                            struct dv_holdings_items *items);
/* Adds what a claim's allocation names; returns what it took, counted in devices. Once drivers have
 * prepared the claim, dv_holdings_add_claims has what they said and replaces this. */
size_t dv_holdings_add_results(struct dv_holdings *holdings, const struct dv_pod *pod,
                               const struct dv_api_resource_claim *claim, struct dv_arena *arena,
                               struct dv_holdings_items *items);
/* holdings_learn.c */
/* Reads again what slices say of the devices that pods hold, over as many turns as that takes. */
void dv_holdings_learn_slices(struct dv_holdings *holdings);
void dv_holdings_stop_learning(struct dv_holdings *holdings);

/* How far a walk over a pod's claims is; zeroed at first. */
struct dv_holdings_place {
    size_t n_claims; /* of the pod */
    size_t at;
};
/* Adds what drivers have prepared for the pod's next claims, until that took `cost_max`, counted in
 * devices. False: there are more. */
bool dv_holdings_add_claims(struct dv_holdings *holdings, const struct dv_pod *pod,
                            struct dv_holdings_place *place, size_t cost_max,
                            const struct dv_identity_host *host, struct dv_arena *arena,
                            struct dv_holdings_items *items);
/* Adds all that the pod has got. */
struct dv_holdings_items dv_holdings_items_of(struct dv_holdings *holdings,
                                              const struct dv_pod *pod, struct dv_arena *arena);

#endif
