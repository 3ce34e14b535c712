/* lease.h - devices for processes, control groups and units, without pods.
 *
 * A request waits for its turn (state/lease_queue.h) and then takes its devices by the same way as
 * a pod: davitd makes up a pod of origin lease for it and admits that; where it wants devices of
 * classes, davitd makes a ResourceClaim in the embedded API, allocated by the scheduler's own
 * inventory. So there is one truth: pods of the API, `davit admit` and leases never get the same
 * device.
 *
 *     waits -> row on the disk -> claim made and allocated -> pod admitted -> held by its owner
 *                                                                                |
 *                      its owner has ended, it is given back, or its time is over
 *                                                                                v
 *     gone <- row removed <- claim removed <- pod released <--------- its owner is signalled
 *
 * The row is the intent: it is there before anything is taken and until all of it is given back.
 * What a crash leaves is finished at the next start. A request that waits is its caller's: it is
 * not durable. */
#ifndef DV_LEASE_H
#define DV_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "lease/lease_spec.h"
#include "loop/loop.h"
#include "store/store_saver.h"

struct dv_arena;
struct dv_claim_manager;
struct dv_cluster;
struct dv_device_manager;
struct dv_err;
struct dv_guard;
struct dv_lease;
struct dv_leases;
struct dv_policy_peer;
struct dv_pods;
struct dv_sched;
struct dv_store;

/* The name of the only container of a lease's pod. */
#define DV_LEASE_CONTAINER "lease"
/* Where the pods and claims of leases are. */
#define DV_LEASE_NAMESPACE "default"
#define DV_LEASE_POD_PREFIX "lease-"
/* The kind of who a lease's claim is reserved for; controllers leave what is no pod alone. */
#define DV_LEASE_API_GROUP "davit.node"
#define DV_LEASE_API_RESOURCE "leases"

struct dv_leases_options {
    struct dv_pods *pods; /* it and the next three outlive the leases */
    struct dv_device_manager *devices;
    struct dv_claim_manager *claims;
    struct dv_store *store;
    struct dv_guard *guard; /* NULL: there is no policy */
    dv_str node_name;       /* it and the next are kept */
    dv_str boot_id;
    /* Called when leases came, went or changed: at most once a turn. May be NULL. */
    void (*changed)(void *ctx);
    void *ctx;
};

/* Loads the leases that the store has. Blocks, so it is for the start of the daemon. */
struct dv_leases *dv_leases_open(struct dv_loop *loop, const struct dv_leases_options *options,
                                 struct dv_err *err);
/* Tells that all parts of the node are there: owners are looked at, and what a crash left is
 * finished. cluster and sched are those of an embedded API, and NULL without one: then devices of
 * classes cannot be leased. */
void dv_leases_start(struct dv_leases *leases, struct dv_cluster *cluster, struct dv_sched *sched);
/* Ends those who wait; leases that are held stay. `closed` may be NULL. */
void dv_leases_close(struct dv_leases *leases, dv_closed_fn *closed, void *ctx);
/* To be called when devices have become free, or plugins have come: soon after the caller has
 * returned, those who wait are looked at. */
void dv_leases_look_again(struct dv_leases *leases);
/* To be called when the store was found damaged and begins anew. */
void dv_leases_save_all(struct dv_leases *leases);

/* ---- taking ---- */

struct dv_lease_caller {
    uint32_t uid;
    uint32_t pid;                      /* 0: not known */
    bool is_root;                      /* root, or davitd's own user */
    const struct dv_policy_peer *peer; /* what the policy looks at; NULL: not known, or no policy */
};

/* Whom somebody names as the owner of a lease: one of them; none: the caller's process. */
struct dv_lease_owner_request {
    uint32_t pid;   /* 0: not a process that is named */
    uint64_t start; /* 0: whichever process has the number now */
    dv_str cgroup;
    dv_str unit;
};

struct dv_lease_request {
    const struct dv_lease_resource *resources; /* a count of 0 means 1 */
    size_t n_resources;
    const struct dv_lease_devices *devices; /* with selectors and names in their short form */
    size_t n_devices;
    uint64_t wait_ms; /* UINT64_MAX: as long as it takes */
    uint64_t max_s;   /* 0: as long as is allowed */
    int32_t priority;
    struct dv_lease_owner_request owner;
    const dv_str *command;
    size_t n_command;
    dv_str key;
    bool only_attaches; /* to the lease of that key, if it has not ended */
    uint64_t grace_s;
};

enum dv_lease_news {
    DV_LEASE_WAITS,   /* its place, or what it waits for, is another */
    DV_LEASE_GRANTED, /* it is held, and its owner may be started */
    DV_LEASE_WARNS,   /* it ends soon */
    DV_LEASE_ENDED,   /* the last one; the listener is its owner's again */
    DV_LEASE_FAILED,  /* the last one, instead of GRANTED; with an error */
};

/* Who is told about a lease; embedded, zeroed, with `told` set, and lent until ENDED or FAILED was
 * told or dv_lease_leave has returned. */
struct dv_lease_listener {
    void (*told)(struct dv_lease_listener *listener, enum dv_lease_news news,
                 const struct dv_err *err);
    /* private */
    struct dv_lease *lease;
    struct dv_link link;
};

/* Checks the request. INVALID_ARGUMENT: something in it is wrong, and the text says where.
 * FAILED_PRECONDITION: it can never be had here. PERMISSION_DENIED: the policy. UNAVAILABLE:
 * nothing can be told yet. */
DV_CHECKED bool dv_leases_check(struct dv_leases *leases, const struct dv_lease_caller *caller,
                                const struct dv_lease_request *request, struct dv_err *err);
/* Checks the request and enters it into the queue; everything that follows is told to the listener,
 * and never before this returns. RESOURCE_EXHAUSTED: too many are waiting, or too many of this
 * user. A request whose key a lease of the user has gets that lease. NOT_FOUND: there is none, and
 * it only attaches. */
DV_CHECKED bool dv_leases_take(struct dv_leases *leases, const struct dv_lease_caller *caller,
                               const struct dv_lease_request *request,
                               struct dv_lease_listener *listener, struct dv_err *err);
/* Stops to listen. A lease that was not granted yet is dropped with its last listener. */
void dv_lease_leave(struct dv_lease_listener *listener);

/* ---- what can be done with a lease ---- */

/* An operation on a lease, embedded in the caller's struct: zeroed, with `done` set, and lent until
 * that has run. */
struct dv_lease_operation {
    void (*done)(struct dv_lease_operation *operation, const struct dv_err *err);
    /* private */
    struct dv_link link;
    struct dv_leases *leases;
    struct dv_task task;
    struct dv_save save;
    struct dv_err err;
};

/* Gives a lease of the caller back; `done` when its devices are free. */
void dv_leases_give(struct dv_leases *leases, struct dv_lease_operation *operation,
                    const struct dv_lease_caller *caller, dv_str id);
/* Ends a lease, with signals to its owner; `done` when that has begun, and is on the disk. */
void dv_leases_end(struct dv_leases *leases, struct dv_lease_operation *operation,
                   const struct dv_lease_caller *caller, dv_str id, dv_str reason);
/* What is to be another with a lease. */
struct dv_lease_renewal {
    bool keeps_end;
    uint64_t max_s; /* from now; 0: as long as is allowed. Without keeps_end */
    const struct dv_lease_owner_request *owner; /* NULL: as before */
};
/* Renews a lease of the caller; `done` when that is on the disk. An error of the disk: it is in
 * force and is written as soon as the disk allows, but a crash before that undoes it. */
void dv_leases_renew(struct dv_leases *leases, struct dv_lease_operation *operation,
                     const struct dv_lease_caller *caller, dv_str id,
                     const struct dv_lease_renewal *renewal);

/* ---- what can be seen ---- */

enum dv_lease_state {
    DV_LEASE_STATE_WAITING,
    DV_LEASE_STATE_TAKING,
    DV_LEASE_STATE_HELD,
    DV_LEASE_STATE_ENDING,
};
const char *dv_lease_state_name(enum dv_lease_state state);

struct dv_lease_view {
    const struct dv_lease_spec *spec;
    enum dv_lease_state state;
    size_t place; /* in the queue, from 1; 0: it does not wait */
    dv_str awaited;
};
void dv_lease_get_view(const struct dv_lease *lease, struct dv_lease_view *view);
/* All leases, in `arena`: those that hold devices by age, then those that wait by their place. */
size_t dv_leases_list(const struct dv_leases *leases, struct dv_arena *arena,
                      const struct dv_lease ***list);
/* NULL: there is none. */
const struct dv_lease *dv_leases_find(const struct dv_leases *leases, dv_str id);
const struct dv_lease *dv_lease_of(const struct dv_lease_listener *listener);
size_t dv_leases_n_waiting(const struct dv_leases *leases);

/* Why a lease waits. */
struct dv_lease_shortage {
    dv_str name; /* a resource or class; empty: the turn of those before, or what `awaited` says */
    bool is_class;
    uint64_t n_wanted;
    bool has_count; /* of the next: of a class it is counted for a few in a turn */
    uint64_t n_free;
};
void dv_lease_get_shortage(const struct dv_lease *lease, struct dv_lease_shortage *shortage);
/* Whether the device is of a class that the lease wants devices of. */
bool dv_lease_could_use(const struct dv_lease *lease, dv_str driver, dv_str pool, dv_str device);

#endif
