/* prepare.h - what the server changes in an object before it checks and stores it.
 *
 * A write reads: decode, dv_default, dv_prepare_*, dv_validate, store. What needs more than the
 * object is left to the caller: uid, creationTimestamp, resourceVersion, names from generateName,
 * managedFields. */
#ifndef DV_RESOURCE_PREPARE_H
#define DV_RESOURCE_PREPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "resource/validate.h" /* IWYU pragma: export */
#include "resource/values.h"

struct dv_api_object_meta;
struct dv_api_pod;
struct dv_api_priority_class;
struct dv_api_runtime_class;
struct dv_api_service;
struct dv_api_service_account;
struct dv_arena;
struct dv_kind;

/* Features that can be off: their fields are then dropped, unless the stored object has them. */
enum dv_gate {
    DV_GATE_PRIORITIZED_LIST = 1 << 0,
    DV_GATE_CONSUMABLE_CAPACITY = 1 << 1,
    DV_GATE_BINDING_CONDITIONS = 1 << 2, /* with DV_GATE_DEVICE_STATUS only */
    DV_GATE_DEVICE_TAINTS = 1 << 3,
    DV_GATE_EXTENDED_RESOURCE = 1 << 4,
    DV_GATE_PARTITIONABLE_DEVICES = 1 << 5,
    DV_GATE_DEVICE_STATUS = 1 << 6,
    DV_GATE_LIST_ATTRIBUTES = 1 << 7,
    DV_GATE_NODE_ALLOCATABLE = 1 << 8,
    DV_GATE_COORDINATED_ELECTION = 1 << 9, /* strategy and preferredHolder of leases */
    /* What is on in v1.36 unless told otherwise. */
    DV_GATES_DEFAULT = DV_GATE_PRIORITIZED_LIST | DV_GATE_CONSUMABLE_CAPACITY |
                       DV_GATE_BINDING_CONDITIONS | DV_GATE_DEVICE_TAINTS |
                       DV_GATE_EXTENDED_RESOURCE | DV_GATE_PARTITIONABLE_DEVICES |
                       DV_GATE_DEVICE_STATUS,
};

struct dv_prepare {
    struct dv_time now;
    unsigned gates; /* enum dv_gate */
    struct dv_arena *arena;
};

/* Prepares an object for its creation: its status is dropped (except a node's), generation is 1
 * where it is counted, pods get their phase and QoS class, namespaces their finalizer and phase. */
void dv_prepare_create(const struct dv_kind *kind, void *value, const struct dv_prepare *how);
/* Prepares an object for an update: what the operation may not touch becomes what `old` has, and
 * generation counts changes of the spec. `operation` is one of the updates. The value refers to
 * parts of `old` afterwards. */
void dv_prepare_update(const struct dv_kind *kind, enum dv_operation operation, void *value,
                       const void *old, const struct dv_prepare *how);

/* Drops owner references whose uid came before. Returns the warning that the API then gives, in
 * `arena`, or nothing. The functions above do the same and give no warning. */
dv_str dv_dedup_owners(struct dv_api_object_meta *meta, struct dv_arena *arena);

/* Of a pod that names no account; and what all pods use the API with: a volume whose name begins
 * so, and in it what vouches for the server. */
#define DV_DEFAULT_ACCOUNT "default"
#define DV_API_ACCESS_VOLUME "kube-api-access-"
#define DV_ROOT_CA_CONFIG_MAP "kube-root-ca.crt"
/* Gives a pod that is created what it has from its service account: the name of the default one
 * where it names none, the volume with a token, mounted in all containers, unless pod or account
 * does without, and pull secrets. `account` NULL: one that says nothing. `volume_name` is for the
 * volume. As the reference's admission plugin ServiceAccount does; not for mirror pods. */
void dv_pod_add_account(struct dv_api_pod *pod, const struct dv_api_service_account *account,
                        dv_str volume_name, struct dv_arena *arena);
/* Why that plugin refuses a mirror pod; NULL: it does not. */
const char *dv_mirror_pod_fault(const struct dv_api_pod *pod);

/* Gives a pod that is created what it has from its RuntimeClass, as the reference's admission
 * plugin RuntimeClass does: the overhead, and what chooses nodes. Returns why the pod is refused,
 * in `arena`; NULL: it is not. */
const char *dv_pod_add_runtime_class(struct dv_api_pod *pod,
                                     const struct dv_api_runtime_class *class,
                                     struct dv_arena *arena);
/* Why that plugin refuses the overhead of a pod that has passed validation; NULL: it does not.
 * `class` is NULL for a pod that names none. */
const char *dv_pod_overhead_fault(const struct dv_api_pod *pod,
                                  const struct dv_api_runtime_class *class);

/* The value of a class of priorities that every cluster has. False: it is none of those. */
bool dv_system_priority(dv_str name, int64_t *value);
/* Gives a pod that is created the priority of its class, as the reference's admission plugin
 * Priority does. `class` is the one that it names, or that of pods that name none; NULL: there is
 * none. Returns why the pod is refused, in `arena`; NULL: it is not. */
const char *dv_pod_add_priority(struct dv_api_pod *pod, const struct dv_api_priority_class *class,
                                struct dv_arena *arena);

/* "Guaranteed", "Burstable", "BestEffort" */
dv_str dv_pod_qos_class(const struct dv_api_pod *pod, struct dv_arena *arena);

/* ---- services ---- */

/* Whether the service is to get an address of its own. */
bool dv_service_wants_address(const struct dv_api_service *service);
/* Gives the service an address; keeps the text. */
void dv_service_set_address(struct dv_api_service *service, dv_str address, struct dv_arena *arena);
/* The parts of the functions above that are about services. */
void dv_service_prepare_create(struct dv_api_service *service, struct dv_arena *arena);
void dv_service_prepare_update(struct dv_api_service *service, const struct dv_api_service *old,
                               struct dv_arena *arena);

#endif
