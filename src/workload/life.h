/* life.h - one pod on this node, from its start to its end: what is to be done next, and what its
 * status is.
 *
 *      facts: the object, the runtime's view, time
 *         |
 *         v
 *   dv_life_look ---> actions, notes (events), a new status, when to look again
 *         ^              |
 *         |              v
 *   dv_life_done <--- the runner does them; each ends in one result
 *
 * A life does as the reference's pod worker: one sync at a time, which decides on the view that it
 * began with, does its actions one after the other, and ends; then it waits for a view that was
 * taken after that, and for something to happen. Containers are stopped all at the same time, and
 * probes run beside a sync.
 *
 *   SYNCING --(deleted, vanished, terminal, deadline, evicted)--> TERMINATING --(containers and
 *   sandboxes stopped, RELEASE done)--> TERMINATED --(CLEAN_UP done)--> FINISHED --(deleted, and
 *   nothing is left in the runtime)--> GONE
 *
 * Never back. What a life remembers is lost when the agent ends; a new one is told the runtime's
 * view and the API's status, and goes on from there: that is adoption. A pod whose object is not
 * known any more (`pod` NULL from the start) is ended with the least grace that there is.
 *
 * Everything is pure: no clock, no I/O, no randomness of its own. */
#ifndef DV_WORKLOAD_LIFE_H
#define DV_WORKLOAD_LIFE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "resource/values.h"
#include "workload/probe.h"
#include "workload/workload.h"

struct CriV1__ContainerStatus;
struct CriV1__PodSandboxStatus;
struct dv_api_container;
struct dv_api_container_user;
struct dv_api_lifecycle_handler;
struct dv_api_pod;
struct dv_api_pod_status;
struct dv_api_resource_requirements;
struct dv_api_resource_status;
struct dv_arena;
struct dv_life;

struct dv_life *dv_life_new(void);
void dv_life_free(struct dv_life *life); /* NULL is fine */

/* ---- the runtime's view of one pod ---- */

enum dv_life_container_state { /* numbered as in CRI */
                               DV_LIFE_CREATED,
                               DV_LIFE_RUNNING,
                               DV_LIFE_EXITED,
                               DV_LIFE_UNKNOWN,
};

/* One instance of a container, whatever its state. */
struct dv_life_container {
    dv_str name; /* in the pod: label io.kubernetes.container.name */
    dv_str id;
    dv_str sandbox_id; /* empty: the runtime does not tell, and the times do */
    enum dv_life_container_state state;
    uint32_t restart_count; /* annotation */
    uint32_t hash;          /* annotation; see dv_config_hash */
    bool has_hash;
    int64_t created_ns; /* since 1970 */
    int64_t started_ns; /* 0: not yet */
    int64_t finished_ns;
    int32_t exit_code;
    dv_str reason;  /* the runtime's: "Completed", "Error", "OOMKilled", "StartError" */
    dv_str message; /* the runtime's */
    /* The container's own last words (terminationMessagePath, or the end of its log by
     * terminationMessagePolicy), which the runner reads of an exited one; empty otherwise. */
    dv_str end_message;
    dv_str image;    /* as the runtime names it */
    dv_str image_id; /* what status.imageID shows: the digest reference, or "sha256:..." */
    const struct dv_api_container_user *user;             /* NULL: not told */
    const struct dv_api_resource_requirements *resources; /* of the running one; NULL: the spec's */
    /* What annotations keep of its spec, for when the pod is not known any more: name, ports and
     * preStop. NULL: it has no preStop. */
    const struct dv_api_container *kept;
};

struct dv_life_sandbox {
    dv_str id;
    uint32_t attempt;
    bool is_ready;
    bool has_host_network;
    bool has_status; /* false: it was only listed; network mode and addresses are not known */
    int64_t created_ns;
    struct dv_strs ips;
};

/* All that the runtime has of the pod, in any order; dead instances, too. */
struct dv_life_view {
    const struct dv_life_sandbox *sandboxes;
    size_t n_sandboxes;
    const struct dv_life_container *containers;
    size_t n_containers;
};

/* Reads the runtime's answers, in `arena`; texts are borrowed. `end_message` and `sandbox_id`
 * are left empty. */
void dv_life_read_container(const struct CriV1__ContainerStatus *status, struct dv_arena *arena,
                            struct dv_life_container *container);
void dv_life_read_sandbox(const struct CriV1__PodSandboxStatus *status, struct dv_arena *arena,
                          struct dv_life_sandbox *sandbox);

/* ---- facts ---- */

/* What device plugins and drivers say of the devices of one container. */
struct dv_life_devices {
    dv_str container;
    const struct dv_api_resource_status *v; /* for allocatedResourcesStatus */
    size_t n;
};

struct dv_life_facts {
    /* The newest object; after the object vanished, the last one. NULL: it was never seen by this
     * agent, and only the runtime knows the pod. Its `status` is what the API has. */
    const struct dv_api_pod *pod;
    dv_str uid;        /* in the runtime; a static pod's is the hash of its file */
    bool is_static;    /* from a file; its status goes to the mirror pod */
    bool has_vanished; /* the object, or the static pod's file, is not there any more */

    /* Why the node ends the pod ("Evicted", "NodeShutdown"), and the message of its status; empty:
     * it does not. */
    dv_str eviction_reason;
    dv_str eviction_message;

    struct dv_life_view view;
    uint64_t view_ms; /* when it was asked for, on now_ms' clock; 0: there is none yet */

    const struct dv_life_devices *devices;
    size_t n_devices;

    struct dv_strs host_ips; /* the node's, the main one first */
    dv_str runtime_name;     /* "containerd": the scheme of container ids */
    dv_str network_problem;  /* why the network of pods is not ready; empty: it is */

    struct dv_time now;    /* wall clock */
    uint64_t now_ms;       /* monotonic, not 0 */
    uint64_t agent_age_ms; /* how long this agent runs */
    uint32_t random;       /* any number: stretches what is tried again */
};

/* ---- actions ---- */

enum dv_life_action_kind {
    /* The pod's cgroup, directories, volumes, pull secrets. What fails is told with the event that
     * is due (`reason`, e.g. "FailedMount") and its text. */
    DV_LIFE_SET_UP,
    DV_LIFE_PREPARE,          /* its claims; before each new sandbox; done already is success */
    DV_LIFE_RUN_SANDBOX,      /* RunPodSandbox with `attempt`, PodSandboxStatus: `id`, `ips` */
    DV_LIFE_INSPECT_IMAGE,    /* ImageStatus of `image`: `id` of the image, empty when absent */
    DV_LIFE_PULL_IMAGE,       /* PullImage of `image`: `id`, `size_bytes` */
    DV_LIFE_CREATE_CONTAINER, /* config, PreStartContainer, CreateContainer in `sandbox_id` with
                                 `image_id`: `id`. See enum dv_life_fault */
    DV_LIFE_START_CONTAINER,  /* of `id` */
    DV_LIFE_POST_START,       /* `hook` of the container `id` */
    DV_LIFE_PRE_STOP,         /* `hook` of the container `id`; fails after `limit_ms` */
    DV_LIFE_STOP_CONTAINER,   /* of `id` with a timeout of `grace_s`; absent is success */
    DV_LIFE_REMOVE_CONTAINER, /* of `id`; its log goes too, but for `keeps_log` */
    DV_LIFE_STOP_SANDBOX,     /* of `id`; absent is success */
    DV_LIFE_REMOVE_SANDBOX,   /* stops and removes `id` */
    DV_LIFE_PROBE,            /* `probe` of the container `id`, at most `limit_ms` */
    DV_LIFE_RELEASE,          /* claims unprepared, devices free: no container runs any more */
    DV_LIFE_CLEAN_UP,         /* volumes, pod directory, cgroup */
    DV_N_LIFE_ACTION_KINDS,
};

/* Something to do. What it points to lives as long as the arena of the look that gave it; `spec`,
 * `hook` and `probe` as long as that look's pod, so who waits keeps the object. */
struct dv_life_action {
    enum dv_life_action_kind kind;
    uint32_t id_of_action; /* for dv_life_done; not 0 */
    dv_str container;      /* its name; empty where the action is the pod's */
    enum dv_workload_kind container_kind;
    /* NULL: the pod is not known; of a hook what was kept of it then, in the look's arena. */
    const struct dv_api_container *spec;
    dv_str id; /* of the container or sandbox */
    dv_str sandbox_id;
    uint32_t attempt; /* of the sandbox; of a container: how often it was started before */
    bool counts_logs; /* CREATE_CONTAINER: the runtime has no older instance. When the log directory
                         has files `<n>.log*`, the attempt is the highest n + 1 instead */
    dv_str image;     /* as it is asked for: with its tag */
    dv_str image_id;  /* what INSPECT_IMAGE or PULL_IMAGE gave */
    uint32_t grace_s;
    uint64_t limit_ms; /* 0: none */
    bool keeps_log;
    const struct dv_api_lifecycle_handler *hook;
    const struct dv_api_probe *probe;
    enum dv_probe_kind probe_kind;
    struct dv_strs ips; /* the pod's, for hooks, probes and configs; none before there is one */
};

/* The step at which CREATE_CONTAINER failed. */
enum dv_life_fault {
    DV_LIFE_FAULT_CREATE, /* CreateContainer itself: CreateContainerError */
    DV_LIFE_FAULT_CONFIG, /* env, user, volumes, devices: CreateContainerConfigError */
    DV_LIFE_FAULT_NAME,   /* INSPECT_IMAGE: it is not the name of an image */
};

/* How an action ended. Copied by dv_life_done. */
struct dv_life_result {
    bool has_failed;
    dv_str error;  /* the whole text; the runtime's without "rpc error: code = ... desc = " */
    dv_str reason; /* SET_UP: the event's reason; empty: no event is due */
    enum dv_life_fault fault;
    dv_str id; /* of what was made */
    struct dv_strs ips;
    uint64_t size_bytes;
    enum dv_probe_outcome outcome; /* PROBE */
    dv_str output;                 /* PROBE: what it printed or found out */
};

/* Tells how an action ended. Whoever calls it looks again soon: nothing is decided here. */
void dv_life_done(struct dv_life *life, uint32_t id_of_action, const struct dv_life_result *result);

/* ---- looking ---- */

/* An event of the API about the pod. */
struct dv_life_note {
    bool is_warning;
    dv_str reason;
    dv_str message;
    dv_str field_path; /* "spec.containers{c}"; empty: the pod as a whole */
};

enum dv_life_stage {
    DV_LIFE_SYNCING,
    DV_LIFE_TERMINATING,
    DV_LIFE_TERMINATED, /* its devices are free */
    DV_LIFE_FINISHED,   /* an object with deletionTimestamp may be deleted for good, once the status
                           is written */
    DV_LIFE_GONE,       /* nothing is left to do, ever: the life can be freed */
};

struct dv_life_orders {
    struct dv_life_action *actions; /* to be begun now, in any order */
    size_t n_actions;
    uint32_t *cancels; /* actions to be cut short; they still end by dv_life_done */
    size_t n_cancels;
    struct dv_life_note *notes; /* in order */
    size_t n_notes;
    uint64_t again_ms;      /* when to look again without news; UINT64_MAX: never */
    uint64_t view_after_ms; /* the life waits for a view that was asked for after this; 0: no */
    bool has_new_status;    /* dv_life_status is another one than at the look before */
    enum dv_life_stage stage;
};

/* Decides what is to be done now; to be called when anything of the facts has changed, an action
 * has ended, or `again_ms` has come. Once more without news does no harm. What is in `orders` is
 * made in `arena`. */
void dv_life_look(struct dv_life *life, const struct dv_life_facts *facts, struct dv_arena *arena,
                  struct dv_life_orders *orders);

/* The status as the API should have it: whole, with foreign conditions first. NULL before the
 * first look, and for a pod without an object. It belongs to the life and changes at the next
 * look. */
const struct dv_api_pod_status *dv_life_status(const struct dv_life *life);

/* Whether conditions of that type are the node's. Others in the status are those of the object, and
 * the API may have newer ones by now. */
bool dv_life_owns_condition(dv_str type);

/* The pod's addresses: of its newest sandbox, of the node for hostNetwork; none before. Borrowed
 * until the next look. */
struct dv_strs dv_life_ips(const struct dv_life *life);

#endif
