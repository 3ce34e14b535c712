/* davit/alloc.h - choosing devices for claims, as the Kubernetes scheduler would (libdavit).
 *
 * An inventory holds the ResourceSlices and DeviceClasses of a cluster, and its ResourceClaims for
 * what they hold. It answers, for one node after the other, which devices some claims would get
 * there, or why they would get none. Objects go in and come out as JSON, in the versions of
 * resource.k8s.io that davit knows (v1, v1beta2, v1beta1).
 *
 *     struct davit_inventory *inventory = davit_inventory_new(NULL, &error);
 *     char *allocations;
 *
 *     davit_inventory_set(inventory, slices, &error);    a list, or one object
 *     davit_inventory_set(inventory, classes, &error);
 *     outcome = davit_allocate(inventory, node, &claim, 1, NULL, &allocations, &error);
 *     if (outcome == DAVIT_ALLOCATED)
 *         puts(allocations);                             [{"devices":{"results":[...]}}]
 *     davit_free(allocations);
 *
 * Nothing is validated: what the API server would not have admitted is taken as well as it can be.
 * One thread uses an inventory at a time. The library has no threads, files or sockets of its own.
 */
#ifndef DAVIT_ALLOC_H
#define DAVIT_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "davit/davit.h" /* IWYU pragma: export */

#ifdef __cplusplus
extern "C" {
#endif

/* Gives back text that a function of libdavit made. NULL is fine. */
DAVIT_API void davit_free(char *text);

/* ---- the inventory ---- */

struct davit_inventory;

/* `gates` is an object of feature gates that are not as Kubernetes 1.36 has them by default:
 * {"DRAListTypeAttributes":true}. NULL: all are. DAVIT_INVALID_ARGUMENT: not such an object, or a
 * gate that nothing here depends on. */
DAVIT_API struct davit_inventory *davit_inventory_new(const char *gates, struct davit_error *error);
DAVIT_API void davit_inventory_free(struct davit_inventory *inventory); /* NULL is fine */

/* Adds an object, or each of a List, in place of the one of its kind and name. It is a
 * ResourceSlice, a DeviceClass or a ResourceClaim, with its apiVersion and kind. A claim with an
 * allocation in its status holds those devices, any other holds none. Objects of other kinds are
 * passed over, so that a dump of a cluster can be given as it is.
 * DAVIT_INVALID_ARGUMENT: something in it cannot be read; then nothing has changed. */
DAVIT_API bool davit_inventory_set(struct davit_inventory *inventory, const char *objects,
                                   struct davit_error *error);
/* Takes an object out. `ns` is the claim's namespace, and NULL or "" for other kinds.
 * DAVIT_NOT_FOUND: there is none. */
DAVIT_API bool davit_inventory_remove(struct davit_inventory *inventory, const char *kind,
                                      const char *ns, const char *name, struct davit_error *error);
/* Forgets what was found out about a node: for nodes that are gone. */
DAVIT_API void davit_inventory_forget_node(struct davit_inventory *inventory, const char *name);

/* ---- allocating ---- */

enum davit_outcome {
    DAVIT_ALLOCATED = 0,
    DAVIT_UNALLOCATABLE = 1, /* there is no solution on this node */
    DAVIT_CLAIM_FAULT = 2,   /* a claim, class or selector is at fault: no node would do better */
    DAVIT_NODE_FAULT = 3,    /* pools on this node are at fault: another node may do */
    DAVIT_GAVE_UP = 4        /* the steps or the cost were spent, or `is_cancelled` said so */
};

/* Zeroed, then filled in. */
struct davit_allocate_options {
    /* Of the search; 0: ten million, up to a few seconds. What its selectors cost is bounded beside
     * that, to some ten seconds. */
    uint64_t n_steps_max;
    bool (*is_cancelled)(void *ctx); /* asked now and then; NULL: never */
    void *ctx;
};

/* Chooses devices for all claims together, on a node: the claims and the node are JSON objects, of
 * which a node's name and labels count. Changes nothing in the inventory: to hold what was chosen,
 * put it into the claim's status.allocation and set the claim.
 * *allocations is an array with one AllocationResult a claim, to be given back with davit_free;
 * NULL unless all are allocated. `error` is filled in unless they are. An object that cannot be
 * read is a DAVIT_CLAIM_FAULT. `options` may be NULL. */
DAVIT_API enum davit_outcome davit_allocate(struct davit_inventory *inventory, const char *node,
                                            const char *const *claims, size_t n_claims,
                                            const struct davit_allocate_options *options,
                                            char **allocations, struct davit_error *error);

/* Why the claims cannot be allocated on the node, device by device, the nearest miss first; to be
 * given back with davit_free:
 *
 *     {"outcome":"unallocatable","summary":"claim default/a, request gpu: 1 wanted of 2: 2 taken",
 *      "requests":[{"claim":"default/a","request":"gpu","wanted":1,"fitting":0,"stuck":true,
 *        "devices":[{"driver":"gpu.example.com","pool":"node-1","device":"gpu-0",
 *                    "why":"taken","text":"taken by default/b"}]}]}
 *
 * NULL: an object cannot be read. */
DAVIT_API char *davit_explain(struct davit_inventory *inventory, const char *node,
                              const char *const *claims, size_t n_claims,
                              struct davit_error *error);

#ifdef __cplusplus
}
#endif

#endif
