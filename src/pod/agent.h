/* agent.h - the node's half of an API: the pods that are bound to this node are admitted, their
 * status is written, and they are gone from the API when all they held is given back. And the Node
 * object itself, with what this node can offer.
 *
 * Pods also come from files of a folder (static pods). They are looked after in the same way; in
 * the API a mirror stands for each, which shows its status and can be deleted without effect.
 *
 *     bound -> admitting -> admitted -> (deleted, ended, or vanished) -> released -> gone
 *                 |  ^
 *                 |  '-- not ready yet: again, after a while
 *                 '--> refused: Failed
 *
 * What is to be done next about a pod is decided by a pure function. Nothing here knows which API
 * it is: the embedded one, or that of a cluster. */
#ifndef DV_POD_AGENT_H
#define DV_POD_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "loop/loop.h"

struct dv_agent;
struct dv_claim_manager;
struct dv_cluster;
struct dv_device_manager;
struct dv_err;
struct dv_object;
struct dv_pods;
struct dv_recorder;
struct dv_runner;

/* Huge pages of one size. */
struct dv_agent_huge_pages {
    uint64_t page_bytes;
    uint64_t n_pages;
};

/* What a Node object says of the machine. */
struct dv_agent_machine {
    uint64_t n_cpus;
    uint64_t memory_bytes;
    uint64_t storage_bytes;  /* of the disk that pods' directories are on; 0: not known */
    const char *storage_dir; /* on that disk; NULL: not known */
    const struct dv_agent_huge_pages *huge_pages;
    size_t n_huge_pages;
    dv_str machine_id;
    dv_str system_uuid;
    dv_str boot_id;
    dv_str kernel;       /* "6.1.0" */
    dv_str os_image;     /* "Debian GNU/Linux 12" */
    dv_str architecture; /* "amd64" */
};

struct dv_agent_options {
    struct dv_cluster *cluster; /* these outlive the agent */
    struct dv_pods *pods;
    struct dv_device_manager *devices;
    struct dv_claim_manager *claims;
    struct dv_recorder *recorder;
    struct dv_runner *runner; /* NULL: containers are somebody else's */
    dv_str node_name;         /* kept, like all texts */
    dv_str version;
    struct dv_agent_machine machine;
    /* The lease is renewed every few seconds, so that others can tell whether this node is alive.
     * Otherwise seldom: where the API and the node are one process it is only there to be read. */
    bool renews_lease;
    /* Claims are watched, so that a pod whose claim has changed is tried at once. The API of a
     * cluster may forbid a node to watch them. */
    bool watches_claims;
    bool is_strict;           /* the Node object says what the reference would say */
    dv_str pod_manifest_path; /* the folder of static pods; empty: none */
    /* What is wrong with files of that folder now; after every change of it. May be NULL. */
    void (*faulty)(void *ctx, const dv_str *texts, size_t n_texts);
    void *ctx;
};

struct dv_agent *dv_agent_open(struct dv_loop *loop, const struct dv_agent_options *options,
                               struct dv_err *err);
/* Operations on pods are given up, or end, before `closed` runs; the pods stay as they are. */
void dv_agent_close(struct dv_agent *agent, dv_closed_fn *closed, void *ctx);

/* To be called when these pods have changed (from a task), when claims have, when the health of
 * what these pods hold has, or when devices have come or gone. */
void dv_agent_pods_changed(struct dv_agent *agent, const dv_str *uids, size_t n_uids);
void dv_agent_claims_changed(struct dv_agent *agent);
void dv_agent_health_changed(struct dv_agent *agent, const dv_str *pod_uids, size_t n_pod_uids);
void dv_agent_devices_changed(struct dv_agent *agent);
/* Whether the API has this pod on this node, and its claims are to stay prepared. Until all its
 * pods have been listed, any pod may be there, and the answer is true. */
bool dv_agent_wants(const struct dv_agent *agent, dv_str pod_uid);
/* The next pod at or after *at that somebody wants on this node, as its object is; *at is moved
 * past it. NULL at the end. Start with 0. Borrowed until the next turn. */
struct dv_object *dv_agent_next_pod(const struct dv_agent *agent, size_t *at);
/* The pod of that name, as dv_agent_next_pod has it; NULL: there is none. */
const struct dv_object *dv_agent_find_pod(const struct dv_agent *agent, dv_str namespace,
                                          dv_str name);
/* A pod of this node that was not admitted, and why; all texts are borrowed until the next turn. */
struct dv_agent_unadmitted {
    dv_str uid;
    dv_str namespace;
    dv_str name;
    dv_str reason; /* "DeviceInUse", "FailedPrepareDynamicResources" */
    dv_str message;
    uint64_t since_wall_ns; /* 0: not known */
    uint64_t retry_at_ms;   /* on the loop's clock: when it is tried again; 0: not by time */
    bool is_final;          /* it is not tried again */
};
/* The next such pod at or after *at, which is moved past it; false at the end. Start with 0. */
bool dv_agent_next_unadmitted(const struct dv_agent *agent, size_t *at,
                              struct dv_agent_unadmitted *unadmitted);
/* Whether the pod is to give back what it holds and could not, and is tried again: sets all of
 * *unreleased, as of a pod that was not admitted. */
bool dv_agent_find_unreleased(const struct dv_agent *agent, dv_str uid,
                              struct dv_agent_unadmitted *unreleased);
/* The name of the pod of that uid, also of one that is not admitted; false: it is not known. */
bool dv_agent_find_name(const struct dv_agent *agent, dv_str uid, dv_str *namespace, dv_str *name);
/* The annotation of a Node with the key of its own API's certificate, as dv_rest_cert_pin prints
 * it. Only the node may write it, so who knows the Node knows the server at its address. */
#define DV_NODE_API_KEY "davit.node/api-key"
/* Says on which port this node's own API is served, with which key: the Node object has both from
 * now on. `key` is copied. */
void dv_agent_set_api(struct dv_agent *agent, uint16_t port, dv_str key);

#endif
