/* davit/dra.h - drivers for dynamic resource allocation, in C (libdavit-driver).
 *
 * You say which devices there are, and what is to be done when a claim is prepared for a pod and
 * when it is not needed any more. The library does the rest: it serves the driver's sockets (DRA
 * v1 and v1beta1, device health v1 and v1alpha1), is found by the node agent (a kubelet or davitd),
 * fetches each claim from the API and checks it, and keeps the ResourceSlices of your devices in
 * the API as you want them, whatever others do to them.
 *
 *     struct davit_dra_options options = {
 *         .driver = "gpu.example.com",
 *         .node = getenv("NODE_NAME"),
 *         .prepare = prepare,
 *         .unprepare = unprepare,
 *     };
 *     struct davit_dra_device device = {.name = "gpu-0"};
 *     struct davit_dra_pool pool = {.name = options.node, .devices = &device, .n_devices = 1};
 *
 *     driver = davit_driver_new(&error);
 *     dra = davit_dra_open(driver, &options, &error);
 *     davit_dra_publish(dra, &pool, 1, &error);
 *     davit_driver_run(driver);
 *
 *     static void prepare(void *ctx, struct davit_call *call, const struct davit_dra_claim *claim)
 *     {
 *         for (size_t i = 0; i < claim->n_results; i++)
 *             davit_dra_add_device(call, &(struct davit_dra_prepared){
 *                 .requests = &claim->results[i].request, .n_requests = 1,
 *                 .pool = claim->results[i].pool, .device = claim->results[i].device,
 *                 .cdi = cdi_names_of(claim, i), .n_cdi = 1});
 *         davit_call_finish(call);
 *     }
 *
 * Threads, texts and failures are as in davit/driver.h. */
#ifndef DAVIT_DRA_H
#define DAVIT_DRA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "davit/driver.h" /* IWYU pragma: export */

#ifdef __cplusplus
extern "C" {
#endif

#define DAVIT_PLUGINS_DIR "/var/lib/kubelet/plugins"

/* A DRA driver on this node. */
struct davit_dra;

/* ---- claims ---- */

/* Which claim: all that is known when it is to be unprepared, as it may be gone by then. */
struct davit_dra_claim_ref {
    const char *claim_namespace;
    const char *name;
    const char *uid;
};

/* A device of yours that the claim was given. */
struct davit_dra_result {
    const char *request; /* that it was given for: "gpu", or "gpu/small" for an alternative */
    const char *pool;
    const char *device;
    const char *share_id; /* NULL: the device is this claim's alone */
    bool is_admin;        /* for looking at; others may hold the device */
    const char *json;     /* all of the result, as in status.allocation.devices.results of v1 */
};

/* What the claim or its class says to your driver. */
struct davit_dra_config {
    bool is_from_class;          /* by an administrator; else by who made the claim */
    const char *const *requests; /* that it is for; none: all. See davit_dra_config_is_for */
    size_t n_requests;
    const char *parameters; /* JSON, whatever was written there */
};

/* Valid until the call is ended. */
struct davit_dra_claim {
    struct davit_dra_claim_ref ref;
    const struct davit_dra_result *results; /* your driver's only, in the claim's order */
    size_t n_results;
    const struct davit_dra_config *configs; /* your driver's only; later ones go before earlier */
    size_t n_configs;
    const char *json; /* the whole ResourceClaim, in v1 */
};

/* Whether it is for a request of this name ("gpu", "gpu/small"). */
DAVIT_API bool davit_dra_config_is_for(const struct davit_dra_config *config, const char *request);

/* A device that is ready for containers. */
struct davit_dra_prepared {
    const char *const *requests; /* that it serves, as in the results; none: all of the claim */
    size_t n_requests;
    const char *pool;
    const char *device;
    const char *const *cdi; /* "vendor.com/class=name", of CDI specs on the node; may be none */
    size_t n_cdi;
    const char *share_id; /* as in the result; NULL: none */
};

/* In an answer to `prepare`. */
DAVIT_API void davit_dra_add_device(struct davit_call *call,
                                    const struct davit_dra_prepared *prepared);

/* ---- the driver ---- */

enum davit_dra_event_kind {
    DAVIT_DRA_SERVING,    /* a socket takes calls; the one for registration comes last */
    DAVIT_DRA_REGISTERED, /* an agent has accepted the driver */
    DAVIT_DRA_LOST,       /* a socket file was removed or replaced; it is made anew */
    DAVIT_DRA_PUBLISHED,  /* the slices of a pool are as wanted, for the first time or again */
    DAVIT_DRA_DROPPED,    /* the API server did not keep all that was wanted of a pool */
    DAVIT_DRA_PROBLEM     /* something failed; it is tried again, or waits for others to try */
};

struct davit_dra_event {
    enum davit_dra_event_kind kind;
    const char *socket;       /* path of the socket that it is about; NULL: of none */
    const char *pool;         /* that it is about; NULL: none */
    uint64_t retry_ms;        /* DAVIT_DRA_PROBLEM: until the next attempt; 0: others' turn */
    struct davit_error error; /* DAVIT_DRA_LOST, DAVIT_DRA_DROPPED, DAVIT_DRA_PROBLEM */
};

/* Flags. */
#define DAVIT_DRA_NO_V1 1u      /* do not offer DRA v1 (Kubernetes 1.34 and later) */
#define DAVIT_DRA_NO_V1BETA1 2u /* do not offer DRA v1beta1 (1.32 and later) */
/* Calls of the agent run beside each other, unless they are about the same claim. Without it each
 * waits for the one before, also over instances of the driver: see `instance`. */
#define DAVIT_DRA_PARALLEL 4u
#define DAVIT_DRA_ONE_SOCKET 8u    /* the one in registry_dir serves all */
#define DAVIT_DRA_HEALTH 16u       /* offer device health: see davit_dra_set_health */
#define DAVIT_DRA_PUBLISH_ONLY 32u /* no sockets, no claims: for the control plane */

/* Who owns the slices: with it, they go. */
struct davit_dra_owner {
    const char *api_version; /* "v1" */
    const char *kind;        /* "Pod" */
    const char *name;
    const char *uid;
};

/* Zeroed, then filled in. Copied, texts too; `ctx` is handed to the callbacks.
 *
 * prepare and unprepare answer with davit_call_finish or davit_call_fail, exactly once, before they
 * return or later; of a failure the agent gets the text, and tries again. The agent waits 45 s for
 * all claims of a pod. Both may be called again for a claim that is done: the answer is the same.
 */
struct davit_dra_options {
    const char *driver;   /* its name: "gpu.example.com" */
    const char *node;     /* name of this node; needed for pools of the node */
    const char *node_uid; /* NULL: looked up in the API */
    /* How to reach the API: the path of a kubeconfig file; NULL: as pods do. */
    const char *kubeconfig;
    unsigned flags; /* DAVIT_DRA_*; 0: none */
    /* For the DRA socket; made when it is not there. NULL: DAVIT_PLUGINS_DIR "/<driver>". */
    const char *plugin_dir;
    const char *registry_dir; /* for the socket that the agent finds; NULL:
                                 DAVIT_PLUGINS_REGISTRY_DIR */
    /* For rolling updates, something that only this instance has: the UID of its pod. It goes into
     * the sockets' names, so that the next instance can start before this one ends. Both then share
     * plugin_dir and what they prepared; `serialize.lock` in lock_dir keeps their calls apart. */
    const char *instance;
    const char *lock_dir;      /* NULL: plugin_dir */
    const char *socket_name;   /* NULL: "dra.sock", "dra-<instance>.sock" */
    const char *registry_name; /* NULL: "<driver>-reg.sock", "<driver>-<instance>-reg.sock" */
    /* Not the Node: for the control plane. NULL with a node: the Node; NULL without: no owner. */
    const struct davit_dra_owner *owner;
    const char *only_pool; /* slices of other pools are not ours to touch; NULL: all are */
    /* How long after others changed a slice it is put right, so that two who disagree do not keep
     * each other busy; 0: 30 s. */
    uint64_t correct_ms;
    void *ctx;
    void (*prepare)(void *ctx, struct davit_call *call, const struct davit_dra_claim *claim);
    /* Also for claims that were never prepared: that is a success. The ref is valid until the call
     * is ended. */
    void (*unprepare)(void *ctx, struct davit_call *call, const struct davit_dra_claim_ref *claim);
    /* NULL: not told. The event is valid for the callback only. */
    void (*event)(void *ctx, const struct davit_dra_event *event);
};

/* Serves, and is found by the agent, as soon as the driver runs. Reads the files that say where the
 * API is. DAVIT_INVALID_ARGUMENT: the options, or a kubeconfig that cannot be used.
 * DAVIT_NOT_FOUND: none is there. */
DAVIT_API struct davit_dra *davit_dra_open(struct davit_driver *driver,
                                           const struct davit_dra_options *options,
                                           struct davit_error *error);
/* Removes the sockets, ends the calls that you still hold, and runs no callback any more; slices
 * stay in the API. May be called from within a callback. NULL is fine. */
DAVIT_API void davit_dra_close(struct davit_dra *dra);

/* ---- health ---- */

enum davit_dra_health { DAVIT_DRA_UNKNOWN, DAVIT_DRA_HEALTHY, DAVIT_DRA_UNHEALTHY };

struct davit_dra_device_health {
    const char *pool;
    const char *device;
    enum davit_dra_health health;
    const char *message; /* shown in the pod's status; NULL: none */
    unsigned lasts_s;    /* after which the agent takes it for unknown; 0: 30 s */
};

/* The health of all devices. It goes out to all who watch, and again and again while it lasts.
 * Needs DAVIT_DRA_HEALTH. DAVIT_INVALID_ARGUMENT: an empty name, or text that is no UTF-8. */
DAVIT_API bool davit_dra_set_health(struct davit_dra *dra,
                                    const struct davit_dra_device_health *devices, size_t n_devices,
                                    struct davit_error *error);

/* ---- publishing ---- */

enum davit_dra_type {
    DAVIT_DRA_STRING,
    DAVIT_DRA_INT,
    DAVIT_DRA_BOOL,
    DAVIT_DRA_VERSION /* semantic: "1.2.3" */
};

struct davit_dra_attribute {
    const char *name; /* "model", "example.com/model" */
    enum davit_dra_type type;
    const char *text; /* DAVIT_DRA_STRING, DAVIT_DRA_VERSION */
    int64_t number;   /* DAVIT_DRA_INT; DAVIT_DRA_BOOL: 0 is false */
};

/* A capacity or a counter. */
struct davit_dra_amount {
    const char *name;
    const char *value; /* "40Gi" */
};

/* Counters that devices draw on together, or what one device draws. */
struct davit_dra_counters {
    const char *set;
    const struct davit_dra_amount *counters;
    size_t n_counters;
};

struct davit_dra_taint {
    const char *key;
    const char *value;  /* NULL: none */
    const char *effect; /* "NoSchedule", "NoExecute", "None" */
    int64_t added_s;    /* since 1970; 0: when the API first sees it */
};

struct davit_dra_device {
    const char *name; /* a DNS label, unique in the pool */
    const struct davit_dra_attribute *attributes;
    size_t n_attributes;
    const struct davit_dra_amount *capacity;
    size_t n_capacity;
    const struct davit_dra_counters *consumes;
    size_t n_consumes;
    const struct davit_dra_taint *taints;
    size_t n_taints;
    bool is_shareable; /* several claims may hold it: allowMultipleAllocations */
    /* Whatever else a Device of resource.k8s.io/v1 has, as a JSON object: bindingConditions,
     * nodeSelector, a capacity with its requestPolicy, ... What is given above goes before it.
     * NULL: nothing. */
    const char *more;
};

enum davit_dra_place {
    DAVIT_DRA_THIS_NODE,
    DAVIT_DRA_ALL_NODES,
    DAVIT_DRA_SOME_NODES, /* those of node_selector */
    DAVIT_DRA_PER_DEVICE  /* `more` of each device says so */
};

struct davit_dra_pool {
    const char *name; /* THIS_NODE: best the node's name */
    enum davit_dra_place place;
    const char *node_selector; /* SOME_NODES: a NodeSelector with one term, as JSON */
    int64_t generation;        /* 0: counted by the library */
    const struct davit_dra_device *devices;
    size_t n_devices;
    const struct davit_dra_counters *counter_sets;
    size_t n_counter_sets;
};

/* The pools that there are, all of them. At any time: the slices in the API follow, as fast as the
 * API server lets them, and what it refuses is told to `event` and tried again. A pool is spread
 * over as many slices as its devices and counter sets need (128 devices in a slice, 64 where some
 * have taints, counters or lists; 8 counter sets in slices of their own). A pool without devices
 * is one empty slice; one that is not in the list any more is removed.
 * DAVIT_INVALID_ARGUMENT: a name twice in a pool, a counter or set that is not there, a quantity or
 * JSON that is none, a pool of this node without a node. Nothing changes then. */
DAVIT_API bool davit_dra_publish(struct davit_dra *dra, const struct davit_dra_pool *pools,
                                 size_t n_pools, struct davit_error *error);

/* What was done to slices since davit_dra_open. */
struct davit_dra_counts {
    uint64_t n_created;
    uint64_t n_updated;
    uint64_t n_deleted;
    uint64_t n_failed;
};

DAVIT_API struct davit_dra_counts davit_dra_count(const struct davit_dra *dra);

#ifdef __cplusplus
}
#endif

#endif
