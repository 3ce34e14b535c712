/* serve_answer.h - makes the long answers: messages in the caller's arena, for davit.sock and for
 * the page. */
#ifndef DV_SERVE_ANSWER_H
#define DV_SERVE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "loop/loop.h"

struct NodeV1__Call;
struct NodeV1__ListClaimsResponse;
struct NodeV1__ListDevicesResponse;
struct NodeV1__Lease;
struct NodeV1__LeaseWaiting;
struct NodeV1__ListLeasesResponse;
struct NodeV1__ListPluginsResponse;
struct NodeV1__PodRef;
struct NodeV1__StatusResponse;
struct NodeV1__Uses;
struct NodeV1__WatchPodsResponse;
struct ProtobufCMessage;
struct dv_arena;
struct dv_err;
struct dv_h2_msg;
struct dv_lease;
struct dv_node;
struct dv_pod_ref;
struct dv_pod_spec;
struct dv_server_call;
struct dv_use_ring;

/* Whether a message that took all of `arena` is encoded or printed in about a millisecond. */
bool dv_serve_is_short(const struct dv_arena *arena);

/* A long message that a job encodes. It is embedded in what waits for it, zeroed, then `done` is
 * set; it is lent until that has run. */
struct dv_serve_encoding {
    /* `msg` is the receiver's. It is NULL, and `err` set, when the job was dropped. */
    void (*done)(struct dv_serve_encoding *encoding, struct dv_h2_msg *msg,
                 const struct dv_err *err);
    uint64_t hash; /* of what was encoded: valid in `done` */
    /* private */
    struct dv_work work;
    const struct ProtobufCMessage *message;
    struct dv_arena *arena;
    struct dv_h2_msg *encoded;
};

/* Hashes the bytes of an encoded message. */
uint64_t dv_serve_hash(struct dv_h2_msg *msg);

/* Takes `arena`, which holds the message and all its texts. */
void dv_serve_encode(struct dv_serve_encoding *encoding, struct dv_loop *loop,
                     const struct ProtobufCMessage *message, struct dv_arena *arena);

/* Encodes the message and ends the call with it. */
void dv_serve_reply(struct dv_server_call *call, const struct ProtobufCMessage *message);
/* Like dv_serve_reply, for a message that may be long and has all its texts in `arena`, which this
 * takes: a long one is encoded by a job. */
void dv_serve_reply_long(struct dv_server_call *call, struct dv_loop *loop,
                         const struct ProtobufCMessage *message, struct dv_arena *arena);

struct NodeV1__PodRef *dv_serve_ref(const struct dv_pod_ref *ref, struct dv_arena *arena);
/* The pod of that uid, with its name where the node knows it, admitted or not. */
struct NodeV1__PodRef *dv_serve_ref_of_uid(const struct dv_node *node, dv_str uid,
                                           struct dv_arena *arena);
/* Converts a time on the loop's clock to wall time. */
int64_t dv_serve_wall_ms(const struct dv_node *node, uint64_t at_ms);

/* Takes a sample of what is held. */
void dv_serve_count_uses(const struct dv_node *node, struct dv_use_ring *ring);
struct NodeV1__Uses *dv_serve_uses(const struct dv_use_ring *ring, struct dv_arena *arena);

/* ---- device_answer.c ---- */

/* The lease that holds devices by this pod; NULL: it is no lease's. */
const struct dv_lease *dv_serve_lease_of(const struct dv_node *node, const struct dv_pod_spec *pod);
/* Lists one resource or the pools of one driver, or all when that is empty. */
struct NodeV1__ListDevicesResponse *dv_serve_device_list(const struct dv_node *node,
                                                         dv_str resource, struct dv_arena *arena);
/* Adds how many devices there are, as the list has them. */
void dv_serve_add_counts(const struct dv_node *node, struct NodeV1__StatusResponse *status,
                         struct dv_arena *arena);

/* ---- serve_answer.c ---- */

struct NodeV1__ListPluginsResponse *dv_serve_plugin_list(const struct dv_node *node,
                                                         struct dv_arena *arena);
/* Lists the claims of that namespace and name, or all when these are empty. */
struct NodeV1__ListClaimsResponse *dv_serve_claim_list(const struct dv_node *node, dv_str namespace,
                                                       dv_str name, struct dv_arena *arena);

/* ---- lease_answer.c ---- */

struct dv_lease;
/* Lists the leases as the user sees them; is_own: only those that are its own. */
struct NodeV1__ListLeasesResponse *dv_serve_lease_list(const struct dv_node *node, uint32_t uid,
                                                       bool is_own, struct dv_arena *arena);
struct NodeV1__Lease *dv_serve_lease(const struct dv_node *node, const struct dv_lease *lease,
                                     uint32_t uid, struct dv_arena *arena);
/* How a lease that waits stands: its place, what is short, and who holds that. */
struct NodeV1__LeaseWaiting *dv_serve_lease_waiting(const struct dv_node *node,
                                                    const struct dv_lease *lease,
                                                    struct dv_arena *arena);

/* ---- calls.c ---- */

/* Lists the calls that drivers and plugins have not answered yet. */
size_t dv_serve_calls(const struct dv_node *node, struct dv_arena *arena,
                      struct NodeV1__Call ***calls);
/* Adds to the claims what they wait for, and adds those that wait before they have a record. */
void dv_serve_add_waits(const struct dv_node *node, struct NodeV1__ListClaimsResponse *response,
                        dv_str namespace, dv_str name, struct dv_arena *arena);

/* ---- node_status.c ---- */

/* What the node reports of a resource. */
struct dv_serve_resource {
    dv_str name;
    size_t capacity; /* 0 when it is not reported (any more) */
    size_t allocatable;
    size_t held;
    bool is_connected;
    bool is_removed;
};

/* Lists all resources that are known, and those that were removed and are not back, by name. Texts
 * belong to the state of the devices until that next changes. */
size_t dv_serve_resources(const struct dv_node *node, struct dv_arena *arena,
                          const struct dv_serve_resource **resources);
/* Makes the status of one pod, or of all when `ref` is empty. */
struct NodeV1__WatchPodsResponse *
dv_serve_pod_list(const struct dv_node *node, const struct dv_pod_ref *ref, struct dv_arena *arena);
/* Makes the status, but for the counts of devices, which take as long as their list. */
struct NodeV1__StatusResponse *dv_serve_status(const struct dv_node *node, struct dv_arena *arena);

#endif
