/* ledger.h - who holds which physical device, whatever way it was given.
 *
 * Device plugins and DRA drivers know nothing of each other, and two of them may offer one device.
 * The ledger holds what a pod is about to get against what others hold. Two pods that got it
 * through the same resource, or the same driver, are that plugin's or driver's own business
 * (shares, time slices, shared claims); a pod that has it in two ways is in no conflict with
 * itself.
 *
 * A PCI address or a UUID (pod_identity.h) always counts. A node or a path does unless
 * - it is common: the resource or driver, its or the holder's, gave it for different devices;
 * - both sides know PCI addresses, and these differ: then it is no part of either device alone;
 * - both are resources of one vendor (the text before the slash), as one plugin may serve them all.
 *
 * The ledger is a value, rebuilt at the start by holding what the records say. What a call costs
 * depends on the identities of the call, not on what is held. */
#ifndef DV_POD_LEDGER_H
#define DV_POD_LEDGER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "pod/ledger/pod_identity.h"

struct dv_err;
struct dv_ledger;

enum dv_ledger_giver_kind {
    DV_LEDGER_PLUGIN, /* a device plugin's resource */
    DV_LEDGER_DRIVER, /* a DRA driver */
};

/* A pod, and the resource or driver through which it has devices. */
struct dv_ledger_holder {
    dv_str pod_uid;
    dv_str namespace; /* the pod's namespace and name */
    dv_str name;
    dv_str container; /* DV_LEDGER_PLUGIN; empty for a claim, which is the pod's */
    enum dv_ledger_giver_kind giver_kind;
    dv_str giver;          /* the resource, or the driver */
    dv_str claim;          /* DV_LEDGER_DRIVER: its name, in the pod's namespace */
    const dv_str *devices; /* ids of the plugin; or one, "pool/device" */
    size_t n_devices;
};

struct dv_ledger *dv_ledger_new(void);
void dv_ledger_free(struct dv_ledger *ledger);   /* NULL is fine */
void dv_ledger_freep(struct dv_ledger **ledger); /* for DV_CLEANUP */

struct dv_ledger_conflict {
    struct dv_identity identity;
    const struct dv_ledger_holder *holder; /* the ledger's, until that next changes */
};

/* Whether the holder may have a device of these identities; if not, what speaks against it. Nothing
 * is held by asking. */
DV_CHECKED bool dv_ledger_check(const struct dv_ledger *ledger,
                                const struct dv_ledger_holder *holder,
                                const struct dv_identity *identities, size_t n_identities,
                                struct dv_ledger_conflict *conflict);
/* DV_FAILED_PRECONDITION: "PCI address 0000:3b:00.0 is held by pod a/x through …; wanted by pod b/y
 * through …". Returns false. */
bool dv_ledger_conflict_fail(const struct dv_ledger_conflict *conflict,
                             const struct dv_ledger_holder *holder, struct dv_err *err);

/* Enters the holder, whether it was checked or not (`--ledger=warn` admits pods in conflict). Keeps
 * copies. A holder with the same pod, container, giver, claim and devices is the same one:
 * what it held before is replaced. */
void dv_ledger_hold(struct dv_ledger *ledger, const struct dv_ledger_holder *holder,
                    const struct dv_identity *identities, size_t n_identities);
/* Learns from the pod's holdings that were not learned from which nodes are common, until it has
 * looked at so many identities. False: there are more. A pod that does not get all it asks for
 * teaches nothing, so this is for when it has it. */
bool dv_ledger_learn(struct dv_ledger *ledger, dv_str pod_uid, size_t n_max);

/* Removes all holdings of the pod. */
void dv_ledger_release(struct dv_ledger *ledger, dv_str pod_uid);

/* The next holding of the pod at or after *at, with its identities; false at the end. Start with 0.
 * The ledger owns them. */
bool dv_ledger_next(const struct dv_ledger *ledger, dv_str pod_uid, size_t *at,
                    const struct dv_ledger_holder **holder, const struct dv_identity **identities,
                    size_t *n_identities);

#endif
