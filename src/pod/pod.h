/* pod.h - the life of pods on this node: admitted with their devices, started, released.
 *
 * An admission is answered when the pod has all it asked for and that is on the disk, or when it
 * can never have it. In between it may wait: for a plugin that this node knows and that has not
 * come back yet, as after a reboot. What pods there are survives restarts. */
#ifndef DV_POD_H
#define DV_POD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "store/store.h"
#include "store/store_saver.h"
#include "topology/topology.h"

struct dv_api_container;
struct dv_api_pod;
struct dv_arena;
struct dv_cdi_dirs;
struct dv_cluster;
struct dv_holdings_rival;
struct dv_holdings_taking;
struct dv_object;
struct dv_pod;
struct dv_pod_verdict;
struct dv_pods;

/* Names a pod by its uid or, where that is empty, by namespace and name. */
struct dv_pod_ref {
    dv_str uid;
    dv_str namespace; /* empty: "default" */
    dv_str name;
};

/* ---- the node's part of the store ---- */

enum dv_node_table {
    DV_TABLE_DEVICES, /* of module device */
    DV_TABLE_PODS,    /* of this module: pods by uid, see pod_row.h */
    DV_TABLE_OBJECTS, /* of the embedded API: its objects */
    DV_TABLE_META,    /* of the embedded API: its counters */
    DV_TABLE_TOKENS,  /* of the embedded API: who may use it */
    DV_TABLE_CLAIMS,  /* of module claim */
    DV_TABLE_RUNS,    /* of this module: what was told about containers, by the pod's uid */
    DV_TABLE_LEASES,  /* of module lease */
};
extern const struct dv_store_schema dv_node_schema;

/* An annotation in the store of pods that were imported from a kubelet's state file, which knows
 * uids only: they get their names when they are admitted. In a pod that is to be admitted it means
 * nothing. */
#define DV_POD_IMPORTED "davit.node/imported"

/* Annotations that name what runs a pod. When that process has ended, or no process is left in that
 * control group (a path in /sys/fs/cgroup), the pod has ended and is released. */
#define DV_POD_OWNER_PID "davit.node/owner-pid"
#define DV_POD_OWNER_CGROUP "davit.node/owner-cgroup"

/* Who wants a pod on this node. The caller of the admission says so: an annotation in the pod could
 * be set by anybody who writes pods. */
enum dv_pod_origin {
    DV_POD_ORIGIN_NODE,   /* somebody on this node */
    DV_POD_ORIGIN_API,    /* the API has it on this node */
    DV_POD_ORIGIN_IMPORT, /* a kubelet had it: only its uid is known */
    DV_POD_ORIGIN_FILE,   /* a file of this node describes it: a static pod */
    DV_POD_ORIGIN_LEASE,  /* a lease holds devices by it; nobody has written it */
};
/* Whether the agent looks after pods of this origin: it releases them, and tells how they ended. */
bool dv_pod_origin_is_agents(enum dv_pod_origin origin);

/* What davit reads of a Pod object. */
struct dv_pod_container {
    dv_str name;
    enum dv_device_container_kind kind;
    struct dv_device_limit *limits; /* extended resources, by name */
    size_t n_limits;
};

struct dv_pod_spec {
    struct dv_pod_ref ref;
    struct dv_pod_container *containers; /* init containers first, each kind in the pod's order */
    size_t n_containers;
    struct dv_api_pod *object; /* the whole Pod; NULL when it uses no claims */
    uint32_t owner_pid;        /* 0: none */
    dv_str owner_start;        /* when that process was started; set when the pod is admitted */
    dv_str owner_cgroup;
    enum dv_pod_origin origin;
    uint64_t since_ms; /* unix time: when it asked for what it has; 0: not known */
};

/* Reads a core/v1 Pod from JSON, of origin node, into `arena`, which also keeps what the spec needs
 * of the text. The uid may be empty. DV_INVALID_ARGUMENT: names the line, the field and what is
 * wrong with it. */
DV_CHECKED bool dv_pod_spec_parse(dv_str json, struct dv_arena *arena, struct dv_pod_spec *spec,
                                  struct dv_err *err);
/* Reads a Pod that an API has checked, of origin API. The spec points into the Pod, which must live
 * as long. DV_INVALID_ARGUMENT: names the field and what is wrong with it. */
DV_CHECKED bool dv_pod_spec_read(const struct dv_api_pod *pod, struct dv_arena *arena,
                                 struct dv_pod_spec *spec, struct dv_err *err);
/* The container of that name; NULL when there is none, or the pod uses no claims. */
const struct dv_api_container *dv_pod_spec_container(const struct dv_pod_spec *spec, dv_str name);

/* A pod that is to be admitted, in an arena of its own; dv_pods_admit takes it. The two makers fail
 * as dv_pod_spec_parse and dv_pod_spec_read do. */
struct dv_pod_input {
    struct dv_arena *arena;
    struct dv_pod_spec spec;
    dv_str json;              /* the Pod as it came, for the store; empty when it came typed */
    struct dv_object *object; /* the Pod, if it came typed: with claims the spec points into it */
};
struct dv_pod_input *dv_pod_input_parse(dv_str json, struct dv_err *err);
/* Takes a reference to the object. */
struct dv_pod_input *dv_pod_input_of_object(struct dv_object *object, struct dv_err *err);
void dv_pod_input_free(struct dv_pod_input *input); /* NULL is fine */

/* ---- the pods of the node ---- */

/* How long an admission waits for a plugin that has not come back, unless told otherwise: a driver
 * that starts with the machine is there within a minute. */
#define DV_POD_WAIT_MS 60000u
#define DV_POD_WAIT_FOR_EVER_MS (UINT64_MAX - 1)

/* How long an admission took in all, and how much of that alignment, allocation and the disk took
 * after the last wait; 0: the admission did not get there. */
struct dv_pod_times {
    uint64_t all_ns;
    uint64_t allocation_ns;
};

/* What becomes of a pod that gets a device which another pod has by another way. */
enum dv_ledger_mode {
    DV_LEDGER_REFUSES,
    DV_LEDGER_WARNS,
    DV_LEDGER_OFF,
};

struct dv_pods_options {
    struct dv_device_manager *devices; /* it and the next five outlive the pods */
    struct dv_claim_manager *claims;   /* NULL: pods with claims are refused */
    struct dv_store *store;            /* of dv_node_schema */
    const struct dv_topology_config *topology;
    const struct dv_numa_machine *machine;
    struct dv_cdi_dirs *cdi; /* NULL: CDI names are taken as they are */
    enum dv_ledger_mode ledger;
    dv_str node_name; /* kept */
    /* Where it is kept over restarts, but not over boots, which pods nobody has asked how to start;
     * empty: that is forgotten. */
    dv_str marks_dir;
    dv_str boot_id; /* of the kernel */
    uint64_t wait_ms;
    bool is_strict; /* refuse at once, as the reference does */
    /* Called when pods came, went, wait for something else, or something was told about their
     * containers: at most once a turn, with the uids of these pods, each once, and never from
     * within a function of this header. May be NULL. */
    void (*changed)(void *ctx, const dv_str *uids, size_t n_uids);
    /* Called when the admission of a pod is over. verdict: NULL when it was given up, or could not
     * be written. May be NULL. */
    void (*ended)(void *ctx, const struct dv_pod_verdict *verdict,
                  const struct dv_pod_times *times);
    void *ctx;
};

/* Loads the pods that the store has and tells the devices about them. Blocks, so it is for the
 * start of the daemon. */
struct dv_pods *dv_pods_open(struct dv_loop *loop, const struct dv_pods_options *options,
                             struct dv_err *err);
/* Gives the pods an API for the rest of their life: from now on the ledger reads what slices say of
 * devices. */
DV_CHECKED bool dv_pods_connect(struct dv_pods *pods, struct dv_cluster *cluster,
                                struct dv_err *err);
/* Ends all operations with DV_CANCELLED before `closed` runs, which may be NULL. */
void dv_pods_close(struct dv_pods *pods, dv_closed_fn *closed, void *ctx);
/* To be called when the store was found damaged and begins anew: all that is in memory is written,
 * devices too, and tried again until it is there. */
void dv_pods_save_all(struct dv_pods *pods);
/* To be called when devices have changed: soon after the caller has returned, admissions that wait
 * look whether they can go on. */
void dv_pods_look_again(struct dv_pods *pods);

/* ---- operations on a pod ---- */

struct dv_pod_step;

/* How a step of an operation ends; the table in admission.c says what follows. */
enum dv_pod_outcome {
    DV_STEP_PENDING, /* a callback will tell the outcome; after the last step there is none */
    DV_STEP_DONE,
    DV_STEP_MORE, /* the pod has one more container, or more devices */
    /* what the pod needs is not there or not free yet; or the pod is not known here */
    DV_STEP_ABSENT,
    DV_STEP_IN_USE,  /* another pod has a device that this one is about to get */
    DV_STEP_REFUSED, /* the pod cannot have what it asks for */
    DV_STEP_FAILED,  /* nothing could be decided or written, or the operation was given up */
};

/* What an admission, a release and the start of a container have in common. */
struct dv_pod_operation {
    struct dv_pods *pods;
    struct dv_pod *pod;
    const struct dv_pod_step *step; /* the row of the table where it is */
    struct dv_task task;            /* tells `posted` after the code that runs now */
    enum dv_pod_outcome posted;
    struct dv_claim_operation claims; /* what is asked of the pod's claims */
    struct dv_link link;              /* in pods->claim_ops while claims are asked for */
    struct dv_err err;                /* code DV_OK: nothing has gone wrong */
};

/* ---- admission ---- */

/* Why a pod is refused. */
enum dv_pod_refusal {
    DV_POD_UNEXPECTED, /* devices cannot be allocated */
    DV_POD_UNALIGNED,  /* they would not be on the NUMA nodes that the policy asks for */
    /* It asks for a resource which nobody offers here. The reference ignores such a resource, and
     * the pod would start without it. */
    DV_POD_UNKNOWN_RESOURCE,
    DV_POD_UNPREPARED,    /* its claims could not be prepared */
    DV_POD_DEVICE_IN_USE, /* it would get a device which another pod has */
};
/* As statuses and events have it: "UnexpectedAdmissionError". */
const char *dv_pod_refusal_name(enum dv_pod_refusal refusal);

struct dv_pod_verdict {
    bool is_admitted;
    enum dv_pod_refusal refusal; /* unless it is admitted */
    bool may_come;  /* it may be admitted later, when a plugin, devices or claims have come */
    bool was_asked; /* plugins or drivers were called before it was refused */
    dv_str rival;   /* uid of the pod that has its device; empty when that is not the reason */
    dv_str message;
    struct dv_pod_ref ref; /* with the uid that was made for a pod without one */
};

/* One admission, embedded in the caller's struct: zeroed, with `done` set. It is lent to this
 * module until `done` has run. */
struct dv_pod_admission {
    /* err: NULL when there is a verdict (borrowed). DV_INVALID_ARGUMENT: its owner is not there, or
     * another pod has its uid. DV_ABORTED: it is being admitted or released already.
     * DV_RESOURCE_EXHAUSTED: it is too long to be stored. Others: nothing could be decided or
     * written, and the pod holds what it held before. */
    void (*done)(struct dv_pod_admission *admission, const struct dv_pod_verdict *verdict,
                 const struct dv_err *err);
    /* The admission also waits for devices that others hold, and for a plugin that was removed: for
     * a pod that is bound to this node and can go to no other. */
    bool is_patient;
    struct {
        struct dv_pod_operation
            op;             /* its pod as it will be; the others see it unless `old` is there */
        struct dv_pod *old; /* the pod as it was admitted before; NULL: it was not */
        struct dv_timer wait_timer;
        struct dv_link link; /* in pods->waiting */
        struct dv_device_run run;
        struct dv_work printing; /* of a large pod's row */
        struct dv_save save;
        struct dv_store_change change;
        struct dv_numa_hint affinity; /* in pod scope, of all containers */
        uint64_t wait_until_ms;
        uint64_t start_ns;
        uint64_t look_ns; /* when allocation began the last time; 0: it has not */
        size_t i_container;
        size_t n_counted; /* containers that metrics have counted */
        /* of devices that are kept back because other pods have them */
        struct dv_arena *aside_arena;
        struct dv_holdings_rival *aside;
        size_t n_aside;
        struct dv_err aside_err; /* the conflict about the first of them */
        /* code DV_OK: no other pod has what this one is about to get */
        struct dv_err in_use;
        struct dv_holdings_rival *rival;   /* who has it; in the aside arena */
        struct dv_holdings_taking *taking; /* NULL unless it takes its devices in parts */
        struct dv_pod_verdict refusal;     /* its reason and what it says, in the pod's arena */
        struct dv_pod_input *input;        /* NULL once it has become the pod */
        bool was_asked;                    /* plugins or drivers were called */
        /* it is a pod, and no other operation is under way for it */
        bool is_pod;
    } priv;
};

/* Admits the pod, or admits it again, when it keeps what it holds. Takes `input`. `wait_ms`
 * replaces that of the options; UINT64_MAX leaves it. */
void dv_pods_admit(struct dv_pods *pods, struct dv_pod_admission *admission,
                   struct dv_pod_input *input, uint64_t wait_ms);
/* Gives the admission up; `done` still runs. A pod that was not admitted before holds nothing
 * then. */
void dv_pods_cancel(struct dv_pod_admission *admission);

/* ---- the end, and the start of a container ---- */

struct dv_pod_release {
    /* err: NULL when the release is on the disk. Otherwise the pod is admitted as before, except
     * that some of its claims may be unprepared, and the release has to be tried again. */
    void (*done)(struct dv_pod_release *release, bool was_known, const struct dv_err *err);
    struct {
        struct dv_pod_operation op;   /* its pod is NULL when that is not known here, or busy */
        const struct dv_pod_ref *ref; /* until dv_pods_release returns */
        struct dv_save save;
        struct dv_store_change changes[2];
    } priv;
};
/* Releases all that the pod holds. A pod that is not known here may still have claims: they are
 * unprepared. */
void dv_pods_release(struct dv_pods *pods, struct dv_pod_release *release,
                     const struct dv_pod_ref *ref);
/* Gives up waiting for a driver that does not answer; `done` still runs. A write that has begun is
 * finished. */
void dv_pods_cancel_release(struct dv_pod_release *release);

/* Tells of a newer object of an admitted pod, to be kept instead of the one that it came with: who
 * tells has it anyway. Takes a reference of its own. */
void dv_pods_renew(struct dv_pods *pods, struct dv_object *object);

/* Pods of the API that were released, by hand or because they ended, before the API knew are not
 * admitted again. They are remembered on the disk until the caller says that the API knows. */
bool dv_pods_has_ended(const struct dv_pods *pods, dv_str uid);
void dv_pods_forget_ended(struct dv_pods *pods, dv_str uid);
/* Forgets all but those that the caller knows. */
void dv_pods_forget_all_ended(struct dv_pods *pods, bool (*is_known)(void *ctx, dv_str uid),
                              void *ctx);

struct dv_pod_start {
    /* err: NULL when all plugins are ready for the container, and its claims are prepared;
     * dv_device_container_options and dv_claim_cdi_names have its options. DV_NOT_FOUND: no such
     * pod or container here. */
    void (*done)(struct dv_pod_start *start, const struct dv_err *err);
    /* Fail while a plugin has not come since davitd started: after a reboot, what its devices need
     * is made by it. Somebody who only asks for options gets what was recorded. */
    bool needs_plugins;
    struct {
        struct dv_pod_operation op;   /* its pod is NULL from when its plugins are asked */
        const struct dv_pod_ref *ref; /* until dv_pods_start_container returns */
        dv_str container;             /* until dv_pods_start_container returns */
        size_t i_container;
        struct dv_device_run run;
    } priv;
};
void dv_pods_start_container(struct dv_pods *pods, struct dv_pod_start *start,
                             const struct dv_pod_ref *ref, dv_str container);
/* Gives the start up; `done` still runs. */
void dv_pods_cancel_start(struct dv_pod_start *start);

/* ---- what somebody tells about containers ---- */

/* Where davitd has no container runtime, whoever starts a container says so, and says when it has
 * ended. What was told is on the disk before `done` runs, and is kept until the pod is forgotten.
 * Embedded in the caller's struct: zeroed, with `done` set, and lent until `done` has run. */
struct dv_pod_telling {
    /* err: NULL when it is on the disk. DV_NOT_FOUND: no such pod or container is admitted here.
     * DV_INVALID_ARGUMENT: there is no such process. DV_FAILED_PRECONDITION: it contradicts what
     * was told before. Others: it could not be written; tell it again. */
    void (*done)(struct dv_pod_telling *telling, const struct dv_err *err);
    struct {
        struct dv_pods *pods;
        struct dv_store_write write;
        struct dv_store_change change;
        struct dv_task task;
        struct dv_err err;
    } priv;
};
/* Tells that the container runs, now. Its end is seen when `pid` is given: a process whose exit
 * code nobody tells within some seconds has ended with a code that is not known. 0: no process is
 * known. Telling the same again changes nothing. */
void dv_pods_tell_started(struct dv_pods *pods, struct dv_pod_telling *telling,
                          const struct dv_pod_ref *ref, dv_str container, uint32_t pid);
/* Tells that the container has ended; `message` (its last words) may be empty. */
void dv_pods_tell_ended(struct dv_pods *pods, struct dv_pod_telling *telling,
                        const struct dv_pod_ref *ref, dv_str container, int32_t exit_code,
                        dv_str message);

/* What was told about the containers of a pod, in the order in which they were first named: as
 * their statuses in the API say it. Borrowed until the loop's next turn. */
struct dv_pod_told {
    const struct dv_api_container_status *statuses;
    size_t n_statuses;
    uint64_t version; /* another one after each change; 0: nothing was told */
    bool is_running;  /* a process that was told about is still there */
};
struct dv_pod_told dv_pods_told(const struct dv_pods *pods, dv_str uid);
/* Says whether a container runtime starts the containers of the agent's pods: nobody can tell about
 * them then (DV_FAILED_PRECONDITION). */
void dv_pods_set_runtime(struct dv_pods *pods, bool has_runtime);

/* The reason of a container's end that was seen and whose code nobody told, as the reference calls
 * it, and the code that it shows then. */
#define DV_POD_END_UNKNOWN "ContainerStatusUnknown"
#define DV_POD_END_UNKNOWN_CODE 137

/* ---- what can be seen ---- */

enum dv_pod_state {
    DV_POD_WAITING,   /* for what `awaited` tells */
    DV_POD_ADMITTING, /* plugins, drivers or the disk are being waited for */
    DV_POD_ADMITTED,
    DV_POD_RELEASING,
};
const char *dv_pod_state_name(enum dv_pod_state state); /* "waiting" */

struct dv_pod_view {
    const struct dv_pod_spec *spec;
    enum dv_pod_state state;
    dv_str awaited; /* "the plugin of example.com/gpu"; empty unless it waits for something */
    bool is_brief;  /* what it waits for is under way, and ends by itself */
    uint64_t since_wall_ns;
    bool was_admitted; /* before the operation that is under way, if there is one */
    bool may_run;      /* somebody has asked how to start its containers, or may have */
    bool has_ended;    /* what ran in it has ended */
    bool is_owned;     /* what the annotations name as its owner has been seen at work */
};

/* The next pod at or after *at, by time of arrival; false at the end. Start with 0. The view is
 * borrowed until the loop's next turn. */
bool dv_pods_next(const struct dv_pods *pods, size_t *at, struct dv_pod_view *view);
bool dv_pods_find(const struct dv_pods *pods, const struct dv_pod_ref *ref,
                  struct dv_pod_view *view);
size_t dv_pods_count(const struct dv_pods *pods);
/* Since when it has what it has, in unix time: unlike its state, that does not change with every
 * try to release it. */
uint64_t dv_pod_held_since_ms(const struct dv_pod_view *view);

/* Counts for metrics. Admissions of what is no pod, or is being admitted already, do not count. */
const struct dv_topology_counts *dv_pods_topology_counts(const struct dv_pods *pods);
/* Whether a topology policy other than none is set. */
bool dv_pods_has_policy(const struct dv_pods *pods);

#endif
