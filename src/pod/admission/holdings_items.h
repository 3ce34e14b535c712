/* holdings_items.h - the things that a pod got, each with the identities that are known of it. */
#ifndef DV_POD_HOLDINGS_ITEMS_H
#define DV_POD_HOLDINGS_ITEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "loop/loop.h"
#include "pod/ledger/ledger.h"
#include "pod/ledger/pod_identity.h"

struct dv_api_device;
struct dv_arena;
struct dv_claim_device;
struct dv_device_record;
struct dv_ledger;
struct dv_pod;
struct dv_pods;
struct dv_view;

struct dv_holdings {
    struct dv_pods *pods;
    struct dv_ledger *ledger; /* NULL: none is kept */
    struct dv_view *slices;   /* of this node; NULL: not known */
    struct dv_task learn_task;
};

struct dv_holdings_item {
    struct dv_ledger_holder holder;
    struct dv_identities identities;
    bool is_described; /* by a slice */
};

/* In the arena that was given for them; they borrow the texts of the pod. */
struct dv_holdings_items {
    struct dv_holdings_item *v;
    size_t n;
    size_t size;
};

/* Adds an item without identities. */
struct dv_holdings_item *dv_holdings_add_item(struct dv_holdings_items *items,
                                              const struct dv_pod *pod, enum dv_ledger_way way,
                                              dv_str giver, struct dv_arena *arena);
/* The pod's records; borrowed until one of them changes. */
size_t dv_holdings_records(const struct dv_holdings *holdings, const struct dv_pod *pod,
                           struct dv_arena *arena, const struct dv_device_record **records);
/* Adds what a plugin has given; keeps nothing of the record. */
void dv_holdings_add_record(const struct dv_holdings *holdings, const struct dv_pod *pod,
                            const struct dv_device_record *record,
                            const struct dv_identity_host *host, struct dv_arena *arena,
                            struct dv_holdings_items *items);
/* Adds what drivers have prepared for the pod's claims. */
void dv_holdings_add_claims(const struct dv_holdings *holdings, const struct dv_pod *pod,
                            const struct dv_identity_host *host, struct dv_arena *arena,
                            struct dv_holdings_items *items);
/* All of these. */
struct dv_holdings_items dv_holdings_items_of(const struct dv_holdings *holdings,
                                              const struct dv_pod *pod, struct dv_arena *arena);

/* The devices of the slice that lists this one, whose attributes tell which physical device it is;
 * NULL: there is none. */
const struct dv_api_device *dv_holdings_find_slice(const struct dv_holdings *holdings,
                                                   dv_str driver,
                                                   const struct dv_claim_device *device, size_t *n);

#endif
