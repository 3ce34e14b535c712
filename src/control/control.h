/* control.h - the controllers of claims, and what else of a cluster's controller manager the pods
 * of an embedded API need.
 *
 * - Claims are generated from templates for the pods that ask for them, and written into the pods'
 *   status; those of pods that are over are deleted.
 * - Reservations of pods that are gone or over are taken back; a claim that nobody uses any more is
 *   deallocated, and loses the finalizer that kept it.
 * - A claim that is allocated is reserved for a pod that was bound without the scheduler.
 * - Pods are evicted from devices with taints of the effect NoExecute, and DeviceTaintRules say in
 *   their status what came of them.
 * - Nodes whose agents have fallen silent get a taint that keeps pods away, until they
 *   are heard of again; pods whose node is gone are deleted.
 * - Namespaces get what their pods use the API with: a default service account, and a config map
 *   with the certificate of who vouches for the server.
 * - ClusterRoles that are made of others get their rules, and services with a selector their
 *   EndpointSlices.
 *
 * Allocating is the scheduler's, also for pods whose node was set by somebody else. All that is
 * known comes from the cluster's views, all that is done is requests: it may be closed at any point
 * and goes on where it was when it is opened again. */
#ifndef DV_CONTROL_H
#define DV_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "loop/loop.h"

struct dv_cluster;
struct dv_control;
struct dv_err;
struct dv_histogram;

/* Feature gates. */
struct dv_control_gates {
    bool admin_access;     /* DRAAdminAccess */
    bool prioritized_list; /* DRAPrioritizedList */
    bool device_taints;    /* DRADeviceTaints: whether pods are evicted at all */
    bool taint_rules;      /* DRADeviceTaintRules; the server must have that kind */
};

/* All of them. */
struct dv_control_gates dv_control_gates_default(void);

/* What an embedded API has under way for each queue: enough to fill its commits, and few beside
 * what the store's queue takes. */
#define DV_CONTROL_EMBEDDED_MAX 512u

struct dv_control_options {
    struct dv_cluster *cluster; /* kept; outlives the controllers */
    struct dv_control_gates gates;
    /* How many pods, and how many claims, are worked on at a time: each has one request under way.
     * 0: 24, as the reference has workers. An embedded API commits together what is under way, and
     * takes DV_CONTROL_EMBEDDED_MAX. */
    size_t n_running_max;
    /* As the reference: the server names generated claims, so that a request whose answer was lost
     * may end in two of them; a finalizer that a crash left on a claim without allocation stays
     * until the claim is deleted. Otherwise we choose the names, which a repetition finds taken,
     * and such a finalizer goes after half a minute. */
    bool is_strict;
    /* Nodes whose leases are not renewed are tainted, and said to be unknown: where nobody else
     * does. */
    bool watches_nodes;
    /* Namespaces get what their pods use the API with, ClusterRoles that are made of others their
     * rules, and services with a selector their EndpointSlices: where nobody else does. */
    bool serves_cluster_defaults;
    /* For that: what vouches for the API's server, as PEM, for a config map in each namespace;
     * kept. */
    dv_str root_ca;
    /* Whether something is prepared for the pod, which the API has forgotten (a deletion by force),
     * or never had: then what is reserved for it stays. May be NULL. */
    bool (*is_held)(void *ctx, dv_str pod_uid);
    void *ctx;
    /* device_taint_eviction_controller_pod_deletion_duration_seconds: from when a pod was to be
     * evicted until it was deleted. Kept; may be NULL. */
    struct dv_histogram *deletion_seconds;
};

/* Where a claim comes from. */
enum dv_claim_source {
    DV_CLAIM_PLAIN,    /* "" */
    DV_CLAIM_TEMPLATE, /* "resource_claim_template" */
    DV_CLAIM_EXTENDED, /* "extended_resource" */
    DV_N_CLAIM_SOURCES,
};

/* For metrics. Pairs are [no, yes]. */
struct dv_control_stats {
    /* resourceclaim_controller_creates_total: [is it a failure][has it admin access] */
    uint64_t n_creates[2][2];
    /* resourceclaim_controller_resource_claims: [is allocated][has admin access][source] */
    size_t n_claims[2][2][DV_N_CLAIM_SOURCES];
    /* device_taint_eviction_controller_pod_deletions_total */
    uint64_t n_pod_deletions;
    size_t n_pending_evictions; /* pods that have a time to go */
    size_t n_waiting;           /* work that is to be done now or later */
    size_t n_running;           /* work that waits for an answer */
    uint64_t n_retries;
    uint64_t n_events_dropped; /* because too many waited, or they could not be written */
};

/* "resource_claim_template" */
const char *dv_claim_source_name(enum dv_claim_source source);

/* Begins to work when the cluster's views have been filled. */
struct dv_control *dv_control_open(struct dv_loop *loop, const struct dv_control_options *options,
                                   struct dv_err *err);
/* Cancels the requests that are under way. `closed` may be NULL. */
void dv_control_close(struct dv_control *control, dv_closed_fn *closed, void *ctx);

/* Whether all views that the claims need have been filled. */
bool dv_control_is_ready(const struct dv_control *control);
/* Whether the pod is yet to be looked at, or claims are being made for it, and nothing has failed
 * so far. */
bool dv_control_is_working_on(struct dv_control *control, dv_str namespace, dv_str pod);
void dv_control_get_stats(const struct dv_control *control, struct dv_control_stats *stats);

#endif
