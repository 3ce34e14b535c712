/* device.h - device plugins: what they offer, who holds it, and what comes next.
 *
 * A dv_device_state is what the node knows: plugins and their endpoints, device lists, pods and
 * what their containers hold. It is changed by what happens (a plugin connects, a list arrives, a
 * pod ends) and answers questions; it calls nobody and knows no time but what it is told.
 *
 *     list bytes ---> apply ---> what changed         allocate, start ---> operation: call this
 *     connect, disconnect        capacity, hints, status   plugin, then that, then done
 *                                     |
 *                                changes to be saved (key, value) <--> load
 *
 * Decisions are those of Kubernetes 1.36, with the endpoints of 1.37: of several plugins for a
 * resource the newest is called, and the resource lasts as long as any of them. Where the reference
 * takes any of several devices, the first is taken: by NUMA nodes, then by id in natural order
 * ("d9" before "d10").
 *
 * Text in results belongs to the state until it next changes, unless it says otherwise; arrays are
 * in the arena of the call. */
#ifndef DV_DEVICE_H
#define DV_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "topology/topology.h"

struct dv_arena;
struct dv_buf;
struct dv_device_operation;
struct dv_device_state;
struct dv_row_change;

/* -- Limits --------------------------------------------------------------------------------- */

/* A list of 100,000 devices is about 6 MB; the reference's own limit of 4 MiB is gRPC's default. */
#define DV_DEVICE_LIST_BYTES_MAX (64u * 1024u * 1024u)
#define DV_DEVICE_LIST_MAX 1000000u
/* The API documents 63 characters, which plugins pass; nothing needs as much as this. */
#define DV_DEVICE_ID_BYTES_MAX 1024u
/* The most resources at a time, and the most plugins connected for one of them: a node has a few of
 * each. */
#define DV_DEVICE_RESOURCES_MAX 1024u
#define DV_DEVICE_PLUGINS_MAX 16u
/* The longest response of Allocate, also in a saved record or a checkpoint: gRPC's default
 * limit. */
#define DV_DEVICE_RESPONSE_BYTES_MAX (4u * 1024u * 1024u)
/* How long a resource is still reported after its last plugin went: the kubelet's grace period. */
#define DV_DEVICE_GRACE_NS (UINT64_C(300) * 1000 * 1000 * 1000)
/* The id that stands for no NUMA node in what a container holds. */
#define DV_DEVICE_NO_NODE (-1)

/* -- Names ---------------------------------------------------------------------------------- */

/* Whether a plugin's resource may have this name. DV_INVALID_ARGUMENT has the reference's text. */
DV_CHECKED bool dv_device_name_check(dv_str resource, struct dv_err *err);

/* -- The state ------------------------------------------------------------------------------ */

struct dv_device_opts {
    /* As 1.36 does, for --strict and for its recorded runs:
     * - devices taken by a choice that then fails stay taken until the next failed Allocate call
     *   or a collection that finds an inactive pod; otherwise they are given back at once;
     * - a device whose health changes is looked up by its id among all resources, and one of the
     *   pods that hold such an id is told; otherwise all that hold this very device are. */
    bool is_strict;
};

/* Makes a state; `opts` NULL: the defaults. All pods are inactive and pod sources not ready: see
 * below. */
struct dv_device_state *dv_device_state_new(const struct dv_device_opts *opts);
/* NULL is fine; no operation may be left. */
void dv_device_state_free(struct dv_device_state *state);
void dv_device_state_freep(struct dv_device_state **state); /* for DV_CLEANUP */

/* -- Plugins -------------------------------------------------------------------------------- */

struct dv_device_plugin_options {
    bool needs_pre_start;
    bool has_preference;
};

/* Decodes a DevicePluginOptions message. */
DV_CHECKED bool dv_device_plugin_options_decode(dv_str bytes,
                                                struct dv_device_plugin_options *options,
                                                struct dv_err *err);

/* Tells that a plugin for the resource serves on `socket` and is the one to call from now on.
 * Several may be connected for one resource: the newest is called; a list of any of them replaces
 * the last. DV_INVALID_ARGUMENT: the name. DV_ALREADY_EXISTS: this socket is connected.
 * DV_RESOURCE_EXHAUSTED: too many. */
DV_CHECKED bool dv_device_connect(struct dv_device_state *state, dv_str resource, dv_str socket,
                                  const struct dv_device_plugin_options *options,
                                  struct dv_err *err);
/* Tells that the plugin's ListAndWatch ended. Returns true when it was the last for the resource,
 * all of whose devices now count as unhealthy. The newest of those left is called from now on.
 * Nothing happens when the plugin is not connected. */
bool dv_device_disconnect(struct dv_device_state *state, dv_str resource, dv_str socket,
                          uint64_t now_ns);

enum dv_device_plugin_state {
    /* no plugin ever came, or the last has been gone for longer than the grace period */
    DV_DEVICE_NO_PLUGIN,
    DV_DEVICE_NOT_LISTED, /* connected, but no list has come; an earlier list may still count */
    DV_DEVICE_SERVING,
    DV_DEVICE_STOPPED,
};

struct dv_device_resource_info {
    dv_str name;
    enum dv_device_plugin_state plugin;
    uint64_t stopped_ns; /* DV_DEVICE_STOPPED */
    bool is_awaited;     /* its plugin has not come since the state was read from the disk */
    dv_str socket;       /* of the one that is called; empty without */
    struct dv_device_plugin_options options;
    bool is_known;      /* the resource was listed before, or is held: a limit for it is for us */
    size_t n_plugins;   /* connected */
    uint64_t epoch;     /* another one whenever a plugin connects; 0: none is */
    size_t n_devices;   /* listed last */
    size_t n_healthy;   /* of these; 0 while stopped */
    size_t n_free;      /* healthy and taken by nobody */
    size_t n_allocated; /* taken, listed or not */
};

/* Describes the resource; false when nothing is known of it. */
bool dv_device_find(const struct dv_device_state *state, dv_str resource,
                    struct dv_device_resource_info *info);
/* Lists all resources, by name. */
size_t dv_device_resources(const struct dv_device_state *state, struct dv_arena *arena,
                           const struct dv_device_resource_info **infos);

/* -- Lists ---------------------------------------------------------------------------------- */

enum dv_device_change_bits {
    DV_DEVICE_ADDED = 1,
    DV_DEVICE_REMOVED = 2,
    DV_DEVICE_FLIPPED = 4, /* its health has changed */
    DV_DEVICE_MOVED = 8,   /* its NUMA nodes have changed */
};

struct dv_device_change {
    dv_str id;     /* in the arena when the device was removed */
    unsigned what; /* of dv_device_change_bits */
    bool is_healthy;
    bool is_held;
};

struct dv_device_diff {
    const struct dv_device_change *changes;
    size_t n_changes;
    const dv_str *pods; /* to be told of a change of health; each once */
    size_t n_pods;
    bool is_back; /* before this list its devices counted for nothing */
    size_t n_duplicates;
    /* The first device that the plugin lists twice: its mistake, and worth a line in the log. */
    dv_str duplicate;
};

/* The list of a ListAndWatch answer becomes the list of the resource. Costs its bytes, and what
 * changed; what did not change is not touched.
 *
 * Of an id that comes twice the last one counts. A health other than "Healthy" is unhealthy, and so
 * is none. A topology without nodes is none. Whatever nodes a plugin names are kept, known to the
 * machine or not. The list is refused as a whole, and nothing changes, when
 * DV_INVALID_ARGUMENT: it is not protobuf, or a device has no id, or a text is not UTF-8;
 * DV_RESOURCE_EXHAUSTED: the list, an id or a device's nodes are over their limit.
 * The error names the first device at fault by its place in the list, from 0. */
DV_CHECKED bool dv_device_apply_list(struct dv_device_state *state, dv_str resource, dv_str bytes,
                                     struct dv_arena *arena, struct dv_device_diff *diff,
                                     struct dv_err *err);

/* Applies a list that differs from the last one in a few devices, of which it has the same: it is
 * compared as bytes, which costs a tenth of reading it. False, and nothing has changed: it is not
 * such a list, or a bad one. dv_device_apply_list begins with this. */
DV_CHECKED bool dv_device_apply_same(struct dv_device_state *state, dv_str resource, dv_str bytes,
                                     struct dv_arena *arena, struct dv_device_diff *diff);

/* Does what dv_device_apply_list does for a long list, in parts: the list is read apart from the
 * state, on any thread, and then takes the place of the one before in a time that depends on what
 * is held, not on its length. Begun and ended on the state's thread; the resource stays until it
 * has ended. */
struct dv_device_list;
struct dv_device_list *dv_device_list_begin(struct dv_device_state *state, dv_str resource);
/* Reads the list, once, on any thread; touches nothing of the state. Refuses what
 * dv_device_apply_list refuses. */
DV_CHECKED bool dv_device_list_read(struct dv_device_list *list, dv_str bytes, struct dv_err *err);
/* Ends the reading: what was read becomes the list of the resource. False, and nothing has changed:
 * a list that began later was committed before. The diff does not tell changes one by one. */
bool dv_device_list_commit(struct dv_device_list *list, struct dv_arena *arena,
                           struct dv_device_diff *diff);
/* Ends the reading without a change: for a list that is not read, was refused or is of no use any
 * more. */
void dv_device_list_abandon(struct dv_device_list *list);
/* Frees the list, and what it replaced; after its end, on any thread. */
void dv_device_list_free(struct dv_device_list *list);

/* -- Capacity ------------------------------------------------------------------------------- */

struct dv_device_capacity {
    dv_str resource;
    size_t capacity;
    size_t allocatable;
    bool has_allocatable; /* false: it was never listed, and the reference reports no number */
};

struct dv_device_capacities {
    const struct dv_device_capacity *v; /* by name */
    size_t n;
    const dv_str *removed; /* by name, in the arena: their grace period is over */
    size_t n_removed;
};

/* Reports what the node has. Forgets the resources whose plugins have been away for longer than the
 * grace period. */
void dv_device_capacity(struct dv_device_state *state, uint64_t now_ns, struct dv_arena *arena,
                        struct dv_device_capacities *capacities);
/* The first moment at which dv_device_capacity has something to forget; UINT64_MAX: none. */
uint64_t dv_device_next_removal_ns(const struct dv_device_state *state);

/* Whether the extended resources of a Node object that exists already are set to 0: when no entry
 * of the plugin directory has a name that does not start with a dot. */
bool dv_device_should_reset_capacity(const dv_str *names, size_t n_names);

struct dv_device_healthy {
    dv_str resource;
    dv_str id;
    const int64_t *nodes; /* as the plugin gave them */
    size_t n_nodes;
    bool has_topology; /* one without nodes is a topology too */
};

/* Lists healthy devices, taken or not, by resource, nodes and id, for GetAllocatableDevices. */
size_t dv_device_allocatable(const struct dv_device_state *state, struct dv_arena *arena,
                             const struct dv_device_healthy **devices);

struct dv_device_amount {
    dv_str resource;
    int64_t amount;
};

/* Computes the node's allocatable amounts as the admission of this pod should see them, so that
 * what it holds already fits (the kubelet: UpdatePluginResources). Gives all of `amounts`, then new
 * ones. */
size_t dv_device_raise_amounts(const struct dv_device_state *state, dv_str pod_uid,
                               const struct dv_device_amount *amounts, size_t n_amounts,
                               struct dv_arena *arena, const struct dv_device_amount **raised);

/* -- Pods ----------------------------------------------------------------------------------- */

/* Tells whether all sources of pods have been heard. Until then no pod's devices are collected, and
 * containers that run already are left as they are. */
void dv_device_set_sources_ready(struct dv_device_state *state, bool is_ready);
/* Tells that a container was running when this process started; forgotten when sources are
 * ready. */
void dv_device_add_running(struct dv_device_state *state, dv_str pod_uid, dv_str container);

void dv_device_activate_pod(struct dv_device_state *state, dv_str pod_uid);
/* Has the next collection give back the pod's devices. */
void dv_device_deactivate_pod(struct dv_device_state *state, dv_str pod_uid);

/* Between these two calls, what init containers of the pod lend to its later containers is kept;
 * otherwise it is forgotten when another pod is handled. The calls nest. */
void dv_device_begin_admission(struct dv_device_state *state, dv_str pod_uid);
void dv_device_end_admission(struct dv_device_state *state, dv_str pod_uid);

/* Gives back what inactive pods hold, unless sources are not ready. Costs what is given back. Hints
 * and operations do it by themselves. Returns the number of pods. */
size_t dv_device_collect(struct dv_device_state *state);

/* -- What containers hold ------------------------------------------------------------------- */

struct dv_device_placed {
    int64_t node;      /* DV_DEVICE_NO_NODE: those without */
    const dv_str *ids; /* a device on several nodes is listed for each */
    size_t n_ids;
};

/* What a container holds of a resource. In a checkpoint, NULL stands for null in the file, which is
 * neither [] nor {} nor "". */
struct dv_device_record {
    dv_str pod_uid;
    dv_str container;
    dv_str resource;
    const struct dv_device_placed *placed; /* by node */
    size_t n_placed;
    dv_str response; /* the plugin's ContainerAllocateResponse, as it came */
};

/* Lists what the pod's containers hold, in the order in which they got it. */
size_t dv_device_records_of_pod(const struct dv_device_state *state, dv_str pod_uid,
                                struct dv_arena *arena, const struct dv_device_record **records);

struct dv_device_status {
    dv_str resource;
    const dv_str *ids;
    const bool *is_healthy; /* for each id; true also for one that no plugin lists */
    size_t n_ids;
};

/* Lists a container's allocatedResourcesStatus, by resource. */
size_t dv_device_status(const struct dv_device_state *state, dv_str pod_uid, dv_str container,
                        struct dv_arena *arena, const struct dv_device_status **statuses);

/* Whether a plugin that serves lists the device, as healthy. */
bool dv_device_is_healthy(const struct dv_device_state *state, dv_str resource, dv_str id);
/* A number that is another one after each list of the resource, and after its plugins have come or
 * gone. While it stays the same, so does the health of all devices. */
uint64_t dv_device_health_version(const struct dv_device_state *state, dv_str resource);

/* -- Allocation ----------------------------------------------------------------------------- */

enum dv_device_container_kind {
    DV_DEVICE_INIT, /* lends what it holds to all containers after it */
    DV_DEVICE_SIDECAR,
    DV_DEVICE_REGULAR,
};

struct dv_device_limit {
    dv_str resource;
    int64_t amount;  /* the quantity, rounded up */
    bool is_claimed; /* an extended resource that a claim provides: not for plugins */
};

struct dv_device_request {
    dv_str pod_uid;
    dv_str container;
    enum dv_device_container_kind kind;
    const struct dv_device_limit *limits; /* of any resources, each once */
    size_t n_limits;
    struct dv_numa_hint affinity; /* from the merge; zeroed without */
};

enum dv_device_failure {
    DV_DEVICE_FAIL_UNAVAILABLE, /* fewer are free than needed */
    DV_DEVICE_FAIL_UNREGISTERED,
    DV_DEVICE_FAIL_NO_HEALTHY_DEVICES,
    DV_DEVICE_FAIL_ALLOCATED_UNHEALTHY, /* a device that the container holds has become unhealthy */
    DV_DEVICE_FAIL_CHANGED_REQUEST,     /* the container holds another number than it asks for */
    DV_DEVICE_FAIL_ENDPOINT_STOPPED,
    DV_DEVICE_FAIL_PLUGIN_ALLOCATE,
    DV_DEVICE_FAIL_PLUGIN_EMPTY_RESPONSE,
    DV_DEVICE_FAIL_PLUGIN_PREFERRED,
    DV_DEVICE_FAIL_PLUGIN_PRESTART,
    DV_DEVICE_FAIL_NO_ENDPOINT,
    DV_DEVICE_FAIL_NOTHING_ALLOCATED,
    DV_DEVICE_FAIL_ALLOCATED_LESS,
    DV_DEVICE_FAIL_UNKNOWN_PLUGIN,
    DV_DEVICE_FAIL_BAD_REQUEST, /* a negative amount, or a resource twice */
};

enum dv_device_step_kind {
    DV_DEVICE_ASK_PREFERRED, /* call GetPreferredAllocation */
    DV_DEVICE_ASK_ALLOCATE,  /* call Allocate */
    DV_DEVICE_ASK_PRESTART,  /* call PreStartContainer */
    DV_DEVICE_DONE,
    DV_DEVICE_FAILED,
};

/* What an operation wants next. Its text and arrays last until the next call on the operation. */
struct dv_device_step {
    enum dv_device_step_kind kind;
    /* DV_DEVICE_ASK_*: the plugin to call, and with which devices. */
    dv_str resource;
    dv_str socket;
    const dv_str *ids; /* with DV_DEVICE_ASK_PREFERRED: those to choose from */
    size_t n_ids;
    const dv_str *must_include; /* DV_DEVICE_ASK_PREFERRED */
    size_t n_must_include;
    int32_t size; /* DV_DEVICE_ASK_PREFERRED */
    /* DV_DEVICE_FAILED */
    enum dv_device_failure failure;
    struct dv_err err;
};

/* Allocates for a container of a pod in admission: init containers first, then regular ones, one at
 * a time for a pod; operations of different pods may be under way together. What is chosen is taken
 * at once, so that no other operation gets it. Resources are handled by name. Keeps nothing of
 * `request`. */
struct dv_device_operation *dv_device_allocate(struct dv_device_state *state,
                                               const struct dv_device_request *request);
/* Prepares the start, or a restart, of a container: PreStartContainer where plugins want it,
 * allocation where nothing is recorded. Ask dv_device_container_options when it is done. */
struct dv_device_operation *dv_device_start(struct dv_device_state *state,
                                            const struct dv_device_request *request);

const struct dv_device_step *dv_device_operation_step(const struct dv_device_operation *operation);
/* The message to send for a DV_DEVICE_ASK_* step. */
void dv_device_step_encode(const struct dv_device_step *step, struct dv_buf *buf);
/* The call's answer: the bytes of the response message. There is a new step then. */
void dv_device_operation_answer(struct dv_device_operation *operation, dv_str response);
/* The call failed with this status, which becomes part of the operation's own error. */
void dv_device_operation_refuse(struct dv_device_operation *operation, const struct dv_err *status);
/* Gives back what was taken and has not become a record. NULL is fine. */
void dv_device_operation_free(struct dv_device_operation *operation);

/* Keeps a device from being chosen, because a pod has it in a way that this module does not see,
 * until dv_device_let_go was called as often. False: there is no device of that id. */
DV_CHECKED bool dv_device_keep_back(struct dv_device_state *state, dv_str resource, dv_str id);
void dv_device_let_go(struct dv_device_state *state, dv_str resource, dv_str id);

/* -- Options of a container ----------------------------------------------------------------- */

struct dv_device_pair {
    dv_str name;
    dv_str value;
};

struct dv_device_mount {
    dv_str container_path;
    dv_str host_path;
    bool is_read_only;
};

struct dv_device_node {
    dv_str container_path;
    dv_str host_path;
    dv_str permissions;
};

/* Two resources gave something of the same name; that of the first resource counts. */
struct dv_device_conflict {
    const char *part; /* "environment variable" */
    dv_str name;
    dv_str kept;
    dv_str dropped;
};

struct dv_device_options {
    const struct dv_device_pair *envs;
    size_t n_envs;
    const struct dv_device_mount *mounts;
    size_t n_mounts;
    const struct dv_device_node *nodes;
    size_t n_nodes;
    const struct dv_device_pair *annotations;
    size_t n_annotations;
    const dv_str *cdi_names;
    size_t n_cdi_names;
    const struct dv_device_conflict *conflicts; /* worth a line in the log each */
    size_t n_conflicts;
};

/* Merges ContainerAllocateResponses, the first first. Text stays in them.
 * DV_INVALID_ARGUMENT: one is not such a message. */
DV_CHECKED bool dv_device_options_merge(const dv_str *responses, size_t n_responses,
                                        struct dv_arena *arena, struct dv_device_options *options,
                                        struct dv_err *err);
/* The options that a container is started with (the reference: GetDeviceRunContainerOptions), of
 * all that it holds, resource by resource in the order of their names. False when it holds nothing.
 * Not related to struct dv_device_run, which is an allocation or a start on the loop. */
bool dv_device_container_options(const struct dv_device_state *state, dv_str pod_uid,
                                 dv_str container, struct dv_arena *arena,
                                 struct dv_device_options *options);

/* -- Topology hints ------------------------------------------------------------------------- */

/* Makes the hints of a container's devices: a list for each limit that is for plugins. Collects
 * first. Fails as dv_topology_device_hints does. */
DV_CHECKED bool dv_device_container_hints(struct dv_device_state *state,
                                          const struct dv_numa_machine *machine,
                                          const struct dv_device_request *request,
                                          struct dv_arena *arena, const struct dv_hint_list **lists,
                                          size_t *n_lists, struct dv_err *err);
/* Makes the hints of a whole pod, from its containers in their order, init containers first. */
DV_CHECKED bool dv_device_pod_hints(struct dv_device_state *state,
                                    const struct dv_numa_machine *machine,
                                    const struct dv_device_request *containers, size_t n_containers,
                                    struct dv_arena *arena, const struct dv_hint_list **lists,
                                    size_t *n_lists, struct dv_err *err);

/* -- Saving --------------------------------------------------------------------------------- */

/* Takes what changed since the last time, in the arena: to be written in one transaction, before
 * anyone is told. Costs what changed. Keys sort by kind, pod, container and resource. */
size_t dv_device_take_changes(struct dv_device_state *state, struct dv_arena *arena,
                              const struct dv_row_change **changes);
/* Loads one pair of the store, at the start. Resources come back stopped since `now_ns`. What is
 * loaded is not written again. DV_DATA_LOSS: it is damaged, and nothing changes. DV_UNIMPLEMENTED:
 * a later version wrote it. */
DV_CHECKED bool dv_device_load(struct dv_device_state *state, dv_str key, dv_str value,
                               uint64_t now_ns, struct dv_err *err);

/* The codecs of a record, for tools. Decoding keeps the text. */
void dv_device_record_encode(const struct dv_device_record *record, struct dv_buf *key,
                             struct dv_buf *value);
DV_CHECKED bool dv_device_record_decode(dv_str key, dv_str value, struct dv_arena *arena,
                                        struct dv_device_record *record, struct dv_err *err);

#endif
