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
struct dv_object;
struct dv_pod;
struct dv_pod_verdict;
struct dv_pods;

/* A pod by its uid, or where that is empty by namespace and name. */
struct dv_pod_ref {
    dv_str uid;
    dv_str namespace; /* empty: "default" */
    dv_str name;
};

/* ---- the node's part of the store ---- */

enum dv_node_table {
    DV_TABLE_DEVICES, /* module device's */
    DV_TABLE_PODS,    /* this one's: by uid, see pod_row.h */
    DV_TABLE_OBJECTS, /* the embedded API's: its objects, */
    DV_TABLE_META,    /* its counters, */
    DV_TABLE_TOKENS,  /* and who may use it */
    DV_TABLE_CLAIMS,  /* module claim's */
};
extern const struct dv_store_schema dv_node_schema;

/* An annotation in the store of pods that were imported from a kubelet's state file, which knows
 * uids only: they get their names when they are admitted. In a pod that is to be admitted it means
 * nothing. */
#define DV_POD_IMPORTED "davit.node/imported"

/* What runs a pod: when that process has ended, or no process is left in that control group (a path
 * in /sys/fs/cgroup), the pod has ended and is released. */
#define DV_POD_OWNER_PID "davit.node/owner-pid"
#define DV_POD_OWNER_CGROUP "davit.node/owner-cgroup"

/* Who wants a pod here. Said by who asks for the admission: nothing in the pod itself can. */
enum dv_pod_origin {
    DV_POD_ORIGIN_NODE,   /* somebody on this node */
    DV_POD_ORIGIN_API,    /* the API has it on this node */
    DV_POD_ORIGIN_IMPORT, /* a kubelet had it: only its uid is known */
};

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
    struct dv_api_pod *object; /* all of it; NULL: it uses no claims */
    uint32_t owner_pid;        /* 0: none */
    dv_str owner_start;        /* of that process; found when the pod is admitted */
    dv_str owner_cgroup;
    enum dv_pod_origin origin;
};

/* From a core/v1 Pod as JSON, of origin node; in `arena`, which also keeps what it needs of the
 * text. The uid may be empty. DV_INVALID_ARGUMENT: names the line, the field and what is wrong with
 * it. */
DV_CHECKED bool dv_pod_spec_parse(dv_str json, struct dv_arena *arena, struct dv_pod_spec *spec,
                                  struct dv_err *err);
/* From one that an API has checked, of origin API; keeps nothing of it. DV_INVALID_ARGUMENT: names
 * the field and what is wrong with it. */
DV_CHECKED bool dv_pod_spec_read(const struct dv_api_pod *pod, struct dv_arena *arena,
                                 struct dv_pod_spec *spec, struct dv_err *err);
/* NULL when there is none of that name, or the pod uses no claims. */
const struct dv_api_container *dv_pod_spec_container(const struct dv_pod_spec *spec, dv_str name);

/* A pod that is to be admitted, in an arena of its own; dv_pods_admit takes it. Fail as
 * dv_pod_spec_parse and dv_pod_spec_read, and with DV_RESOURCE_EXHAUSTED when it is too long. */
struct dv_pod_input {
    struct dv_arena *arena;
    struct dv_pod_spec spec;
    dv_str json; /* the Pod, for the store */
};
struct dv_pod_input *dv_pod_input_parse(dv_str json, struct dv_err *err);
struct dv_pod_input *dv_pod_input_of_object(const struct dv_object *object, struct dv_err *err);
void dv_pod_input_free(struct dv_pod_input *input); /* NULL is fine */

/* ---- the pods of the node ---- */

/* How long an admission waits for what has not come back, unless told otherwise: a driver that
 * starts with the machine is there within a minute. */
#define DV_POD_WAIT_MS 60000u
#define DV_POD_WAIT_FOR_EVER_MS (UINT64_MAX - 1)

/* How long an admission took: all of it, and of this what was spent on alignment, allocation and
 * the disk after the last wait; 0: it did not come so far. */
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
    struct dv_devices *devices; /* it and the next five outlive the pods */
    struct dv_claims *claims;   /* NULL: pods with claims are refused */
    struct dv_store *store;     /* of dv_node_schema */
    const struct dv_topology_config *topology;
    const struct dv_numa_machine *machine;
    struct dv_cdi_dirs *cdi; /* NULL: CDI names are taken as they are */
    enum dv_ledger_mode ledger;
    dv_str node_name; /* kept */
    uint64_t wait_ms;
    bool is_strict; /* refuse at once, as the reference does */
    /* A pod came, went, or waits for something else. Once a turn at most, never from within a
     * function of this header. May be NULL. */
    void (*changed)(void *ctx);
    /* The admission of a pod is over. verdict: NULL when it was given up, or could not be written.
     * May be NULL. */
    void (*ended)(void *ctx, const struct dv_pod_verdict *verdict,
                  const struct dv_pod_times *times);
    void *ctx;
};

/* Loads the pods that the store has and tells the devices about them. Blocks: for start-up. */
struct dv_pods *dv_pods_open(struct dv_loop *loop, const struct dv_pods_options *options,
                             struct dv_err *err);
/* The API is there, to the end: what slices say of devices counts in the ledger. */
DV_CHECKED bool dv_pods_connect(struct dv_pods *pods, struct dv_cluster *cluster,
                                struct dv_err *err);
/* Whoever waits gets DV_CANCELLED before `closed` runs; it may be NULL. */
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
    DV_STEP_PENDING, /* not yet: a callback will tell. After the last step: for ever */
    DV_STEP_DONE,
    DV_STEP_MORE,    /* the pod has one more container */
    DV_STEP_ABSENT,  /* what it needs is not there, or not free, yet; the pod is not known here */
    DV_STEP_IN_USE,  /* another pod has a device that it is about to get */
    DV_STEP_REFUSED, /* it cannot have what it asks for */
    DV_STEP_FAILED,  /* nothing could be decided, or written, or it was given up */
};

/* What an admission, a release and the start of a container have in common. */
struct dv_pod_operation {
    struct dv_pods *pods;
    struct dv_pod *pod;
    const struct dv_pod_step *step; /* where it is: a row of the table */
    struct dv_task task;            /* tells `posted`, after what runs now */
    enum dv_pod_outcome posted;
    struct dv_claim_operation claims; /* what is asked of the pod's claims */
    struct dv_link link;              /* while that runs */
    struct dv_err err;                /* code DV_OK: nothing has gone wrong */
};

/* ---- admission ---- */

struct dv_pod_verdict {
    bool is_admitted;
    const char *reason; /* otherwise: "UnexpectedAdmissionError", "TopologyAffinityError", ... */
    bool may_come;      /* what was wrong may be right later: a plugin, its devices, its claims */
    bool was_asked;     /* plugins or drivers were, before it was refused */
    dv_str rival;       /* uid of the pod that has its device; empty: that is not the reason */
    dv_str message;
    struct dv_pod_ref ref; /* with the uid that was made for a pod without one */
};

/* The reason when a resource is asked for that nobody offers here. The reference ignores what no
 * plugin ever offered; a pod that needs it would start without. */
#define DV_POD_UNKNOWN_RESOURCE "UnknownResource"
/* The reason when the claims of a pod could not be prepared, and when it would get a device that
 * another pod has. */
#define DV_POD_FAILED_PREPARE "FailedPrepareDynamicResources"
#define DV_POD_DEVICE_IN_USE "DeviceInUse"

/* One admission, embedded in what waits for it; zeroed, then `done` is set; lent until that ran. */
struct dv_pod_admission {
    /* err: NULL when there is a verdict (borrowed). DV_INVALID_ARGUMENT: its owner is not there, or
     * another pod has its uid. DV_ABORTED: it is being admitted or released already. Others:
     * nothing could be decided or written, and the pod holds what it held before. */
    void (*done)(struct dv_pod_admission *admission, const struct dv_pod_verdict *verdict,
                 const struct dv_err *err);
    /* It also waits for devices that others hold, and for a plugin that was removed: for a pod that
     * is bound to this node, and has no other. */
    bool is_patient;
    struct {
        struct dv_pod_operation
            op;             /* its pod as it will be; the others see it unless `old` is there */
        struct dv_pod *old; /* as it was admitted before; NULL: it was not */
        struct dv_timer wait_timer;
        struct dv_link link; /* among those that wait */
        struct dv_device_run run;
        struct dv_save save;
        struct dv_store_change change;
        struct dv_numa_hint affinity; /* in pod scope, of all containers */
        uint64_t wait_until_ms;
        uint64_t start_ns;
        uint64_t look_ns; /* when allocation began, the last time; 0: it has not */
        size_t i_container;
        size_t n_counted;             /* containers, for metrics */
        struct dv_arena *aside_arena; /* of devices that are kept back: others have them */
        struct dv_holdings_rival *aside;
        size_t n_aside;
        struct dv_err aside_err;         /* about the first */
        struct dv_err in_use;            /* code DV_OK: nobody has what it is about to get */
        struct dv_holdings_rival *rival; /* who has it; in the aside arena */
        struct dv_pod_verdict refusal;   /* its reason and what it says, in the pod's arena */
        struct dv_pod_input *input;      /* NULL: it has become the pod */
        bool was_asked;                  /* plugins or drivers were */
        bool is_pod;                     /* it is one, and nothing else is under way for it */
    } priv;
};

/* Admits the pod, or admits it again: what it holds it keeps. Takes `input`. `wait_ms` as in the
 * options; UINT64_MAX: theirs. */
void dv_pods_admit(struct dv_pods *pods, struct dv_pod_admission *admission,
                   struct dv_pod_input *input, uint64_t wait_ms);
/* `done` still runs. A pod that was not there before holds nothing then. */
void dv_pods_cancel(struct dv_pod_admission *admission);

/* ---- the end, and the start of a container ---- */

struct dv_pod_release {
    /* err: NULL when it is on the disk that the pod holds nothing. Otherwise it is there as before,
     * but for claims that have been unprepared: to be tried again. */
    void (*done)(struct dv_pod_release *release, bool was_known, const struct dv_err *err);
    struct {
        struct dv_pod_operation op;   /* its pod is NULL when that is not known here, or busy */
        const struct dv_pod_ref *ref; /* until dv_pods_release returns */
        struct dv_save save;
        struct dv_store_change changes[2];
    } priv;
};
/* Of a pod that is not known here the claims are unprepared, if it has any. */
void dv_pods_release(struct dv_pods *pods, struct dv_pod_release *release,
                     const struct dv_pod_ref *ref);
/* `done` still runs, without waiting for a driver that takes its time; what is being written is
 * written. */
void dv_pods_cancel_release(struct dv_pod_release *release);

/* A pod of the API that was released, by hand or because it ended, before the API knew: it is not
 * admitted again. Remembered on the disk until it is said that the API knows. */
bool dv_pods_has_ended(const struct dv_pods *pods, dv_str uid);
void dv_pods_forget_ended(struct dv_pods *pods, dv_str uid);
/* All but those that the caller knows. */
void dv_pods_forget_all_ended(struct dv_pods *pods, bool (*is_known)(void *ctx, dv_str uid),
                              void *ctx);

struct dv_pod_start {
    /* err: NULL when all plugins are ready for the container, and its claims are prepared;
     * dv_device_run_options and dv_claim_cdi_names have its options. DV_NOT_FOUND: no such pod or
     * container here. */
    void (*done)(struct dv_pod_start *start, const struct dv_err *err);
    struct {
        struct dv_pod_operation op;   /* its pod is there until its plugins are asked */
        const struct dv_pod_ref *ref; /* until dv_pods_start_container returns */
        dv_str container;             /* the same */
        size_t i_container;
        struct dv_device_run run;
    } priv;
};
void dv_pods_start_container(struct dv_pods *pods, struct dv_pod_start *start,
                             const struct dv_pod_ref *ref, dv_str container);
/* `done` still runs. */
void dv_pods_cancel_start(struct dv_pod_start *start);

/* ---- what can be seen ---- */

enum dv_pod_state {
    DV_POD_WAITING,   /* for what `awaited` says */
    DV_POD_ADMITTING, /* plugins are being asked, or the disk */
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
    bool was_admitted; /* before what is under way now, if anything is */
    bool may_run;      /* somebody has asked what to start its containers with, or may have */
    bool has_ended;    /* what ran in it has ended */
};

/* The next pod at or after *at, by time of arrival; false at the end. Start with 0. Borrowed until
 * the loop's next turn. */
bool dv_pods_next(const struct dv_pods *pods, size_t *at, struct dv_pod_view *view);
bool dv_pods_find(const struct dv_pods *pods, const struct dv_pod_ref *ref,
                  struct dv_pod_view *view);
size_t dv_pods_count(const struct dv_pods *pods);

/* For metrics. Admissions of what is no pod, or is being admitted already, do not count. */
const struct dv_topology_counts *dv_pods_topology_counts(const struct dv_pods *pods);
/* Whether a topology policy other than none is set. */
bool dv_pods_has_policy(const struct dv_pods *pods);

#endif
