/* life_state.h - what a life remembers between looks, and what its parts need of each other.
 *
 *   life.c         stages, what makes a sync due; life_action.c what is under way
 *   life_sync.c    one sync, step by step; life_plan.c decides what is in it
 *   life_start.c   one container's start; life_kill.c the stop of some
 *   life_end.c     the way from TERMINATING to GONE
 *   life_status.c  container statuses; life_phase.c, life_condition.c the rest of a status
 *   life_probe.c   the probes, which run beside all that */
#ifndef DV_WORKLOAD_LIFE_STATE_H
#define DV_WORKLOAD_LIFE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/values.h"
#include "workload/life.h"
#include "workload/probe.h"
#include "workload/workload.h"

struct dv_api_container;
struct dv_api_pod;
struct dv_api_pod_status;
struct dv_arena;
struct life_ending;
struct life_sync;

/* ---- constants of the reference ---- */

enum {
    LIFE_RESYNC_MS = 60 * 1000,   /* a sync without news */
    LIFE_RETRY_MS = 10 * 1000,    /* after an error */
    LIFE_NETWORK_RETRY_MS = 1000, /* the network is not ready */
    LIFE_STRETCH_PER_MILLE = 500, /* at most so much is added to each of them */
    LIFE_BACKOFF_FIRST_S = 10,    /* of restarts and pulls; doubled up to the next */
    LIFE_BACKOFF_MAX_S = 300,
    LIFE_GRACE_MIN_S = 2,       /* what a container gets in any case */
    LIFE_SET_UP_RETRY_MS = 500, /* volumes that could not be made; doubled */
    LIFE_SET_UP_RETRY_MAX_MS = 122 * 1000,
    LIFE_SET_UP_LIMIT_MS = 123 * 1000, /* then the sync ends with an error */
    LIFE_DEADLINE_LOOK_MS = 1000,      /* how often activeDeadlineSeconds is looked at */
    LIFE_MESSAGE_BYTES = 12 * 1024,    /* of all termination messages of a pod */
};

/* ---- what is remembered ---- */

/* A delay that doubles; zeroed is none. */
struct life_backoff {
    int64_t updated_ms; /* when it last grew */
    uint32_t delay_s;   /* 0: none */
};

/* What is remembered of one container of the pod. */
struct life_member {
    dv_str name; /* on the heap, as the other texts */
    /* Why it could not be started last, "" when it was: a constant, and a text. */
    dv_str reason;
    dv_str message;
    struct life_backoff restart;
    uint64_t restart_key; /* the image and resources that `restart` is about */
    struct life_backoff pull;
    uint64_t pull_key;
    dv_str pull_error;              /* "ErrImagePull: ..." */
    struct dv_probe_worker *probes; /* DV_N_PROBE_KINDS of them; NULL: it has none */
    bool was_reset;                 /* by RestartAllContainers, and no status has shown it yet */
};

/* An action that is under way, or whose result was not used yet. */
struct life_pending {
    uint32_t id;
    enum dv_life_action_kind kind;
    uint64_t subject; /* a hash of the id of the container or sandbox that it is about */
    enum dv_probe_kind probe_kind;
    bool is_done;
    bool is_cancelled;
    struct dv_life_result result; /* when is_done; texts are in `texts` */
    char *texts;
};

enum life_phase {
    LIFE_PENDING,
    LIFE_RUNNING,
    LIFE_SUCCEEDED,
    LIFE_FAILED,
};

struct dv_life {
    enum dv_life_stage stage;
    bool has_begun;
    bool wants_sync;
    bool is_ending;       /* what runs is to be cut short */
    bool was_initialized; /* when it began to end */
    uint32_t last_action;
    uint32_t grace_s;      /* 0: not known yet */
    uint64_t next_sync_ms; /* 0: none is planned */
    uint64_t view_after_ms;
    uint64_t next_removal_ms; /* of what is left of a finished pod, after one that failed */
    uint64_t seen_object;     /* a hash of what of the object and its devices makes a sync due */
    DV_VEC(uint64_t) seen;    /* hashes of what the view showed when the last sync began */
    DV_VEC(struct life_member) members;
    DV_VEC(struct life_pending) pending;
    struct life_sync *sync;
    struct life_ending *ending;
    struct dv_api_pod_status *status; /* as published; NULL: not yet */
    struct dv_arena *status_arena;    /* holds `status` */
    DV_VEC(dv_str) ips;               /* of the pod, in `status` */
    /* The phase, reason and message that are held back until everything is released. */
    enum life_phase phase;
    dv_str held_reason;
    dv_str held_message;
};

/* ---- one look ---- */

struct life_look {
    struct dv_life *life;
    const struct dv_life_facts *facts;
    const struct dv_api_pod *pod; /* facts->pod */
    struct dv_arena *arena;
    DV_VEC(struct dv_life_action) actions;
    DV_VEC(uint32_t) cancels;
    DV_VEC(struct dv_life_note) notes;
    uint64_t again_ms;
    bool has_new_status;
};

/* What a step of a sync or an ending says. */
enum life_go {
    LIFE_NEXT, /* on with the next step */
    LIFE_WAIT, /* for a result, a time or a view */
    LIFE_STOP, /* it has ended */
};

void life_set_text(dv_str *text, dv_str value); /* on the heap; frees the old one */
uint64_t life_hash(dv_str text);                /* never 0 */
int64_t life_wall_ms(const struct life_look *look);
void life_look_at(struct life_look *look, uint64_t ms); /* again, at the latest */
/* Returns `ms`, stretched by up to half, so that pods do not do everything at the same time. */
uint64_t life_stretch(const struct life_look *look, uint64_t ms);

struct life_member *life_member(struct dv_life *life, dv_str name); /* made when it is not there */
const struct life_member *life_member_find(const struct dv_life *life, dv_str name);

/* Begins an action and returns it to be filled in further. */
struct dv_life_action *life_begin(struct life_look *look, enum dv_life_action_kind kind, dv_str id);
struct dv_strs life_copy_strs(struct dv_strs from, struct dv_arena *arena);
/* Fills in whose action it is. */
void life_for_container(struct life_look *look, struct dv_life_action *action, dv_str name);
/* The result of an action that has ended; NULL while it is under way. It is forgotten by
 * life_forget. */
const struct dv_life_result *life_result(struct dv_life *life, uint32_t id);
void life_forget(struct dv_life *life, uint32_t id);

/* The actions of one step, which ends when all of them have. */
struct life_actions {
    DV_VEC(uint32_t) ids;
};
/* Like life_begin, for one more action of the step; the list is in `arena`. */
struct dv_life_action *life_actions_begin(struct life_look *look, struct life_actions *actions,
                                          struct dv_arena *arena, enum dv_life_action_kind kind,
                                          dv_str id);
bool life_actions_have_ended(struct dv_life *life, const struct life_actions *actions);
/* The result of the first action that has ended and failed; NULL: none has. */
const struct dv_life_result *life_actions_failure(struct dv_life *life,
                                                  const struct life_actions *actions);
void life_actions_forget(struct dv_life *life, struct life_actions *actions);

bool life_is_pending(const struct dv_life *life, enum dv_life_action_kind kind, dv_str id);
void life_cancel(struct life_look *look, uint32_t id);
/* Drops results that nobody asks for: of removals, and of probes of instances that are gone. After
 * a removal a finished pod waits for a new view. */
void life_drop_results(struct life_look *look);

/* An event; `container` is empty where it is the pod's. */
void life_note(struct life_look *look, bool is_warning, const char *reason, dv_str container,
               const char *fmt, ...) DV_PRINTF(5, 6);
dv_str life_pod_text(const struct life_look *look); /* "name_namespace(uid)" */

/* ---- the view ---- */

/* The instance of a container that was made last; NULL: there is none. */
const struct dv_life_container *life_newest(const struct dv_life_view *view, dv_str name);
/* The instance that was made last before `than`; NULL: there is none. */
const struct dv_life_container *life_older(const struct dv_life_view *view,
                                           const struct dv_life_container *than);
/* The exited instance that was made last. */
const struct dv_life_container *life_newest_exited(const struct dv_life_view *view, dv_str name);
const struct dv_life_sandbox *life_newest_sandbox(const struct dv_life_view *view);
/* Whether the container was made in that sandbox of the view. A runtime that does not say tells it
 * by the times: containers are made in the newest sandbox only. */
bool life_is_in_sandbox(const struct dv_life_view *view, const struct dv_life_container *container,
                        const struct dv_life_sandbox *sandbox);
/* Whether something runs or may run, for all that the runtime knows. */
bool life_has_running(const struct dv_life_view *view);
/* Whether anything is there now that was not at the last sync, or a running one is missing. */
bool life_has_news(const struct dv_life *life, const struct dv_life_view *view);
void life_see(struct dv_life *life, const struct dv_life_view *view);

/* ---- decisions ---- */

bool life_is_sidecar(const struct dv_api_container *container);
bool life_is_deleted(const struct dv_api_pod *pod);
/* Whether a container that ended with this code is started again: rules, its own policy, the
 * pod's. */
bool life_restarts_after(const struct dv_api_pod *pod, const struct dv_api_container *container,
                         int64_t exit_code);
/* Whether policies alone let it start again after a failure. */
bool life_restarts_on_failure(const struct dv_api_pod *pod,
                              const struct dv_api_container *container);
/* Whether the rule that matches this code restarts all containers of the pod. */
bool life_resets_after(const struct dv_api_container *container, int64_t exit_code);
bool life_has_reset_rules(const struct dv_api_pod *pod);
/* Whether a container has ended in a way that begins the whole pod anew. */
bool life_wants_reset(const struct dv_api_pod *pod, const struct dv_life_view *view);
bool life_should_start(const struct dv_api_pod *pod, const struct dv_api_container *container,
                       const struct dv_life_view *view);

bool life_backoff_waits(const struct life_backoff *backoff, int64_t since_ms, int64_t now_ms,
                        int64_t *rest_ms);
void life_backoff_grow(struct life_backoff *backoff, int64_t since_ms, int64_t now_ms);

/* What is to be started. */
struct life_start {
    dv_str name;
    enum dv_workload_kind kind;
    uint32_t attempt;
    bool has_instance;
    int64_t exited_ms; /* when the newest exited instance ended; 0: there is none */
};

enum life_kill_reason {
    LIFE_KILL_OTHER,
    LIFE_KILL_STARTUP,
    LIFE_KILL_LIVENESS,
};

enum life_kill_step {
    LIFE_KILL_BEGIN,
    LIFE_KILL_PRE_STOP,
    LIFE_KILL_TURN, /* waits for other containers to end first */
    LIFE_KILL_STOP,
    LIFE_KILL_DONE,
    LIFE_KILL_FAILED,
};

struct life_kill {
    dv_str id;
    dv_str name;
    enum dv_workload_kind kind;
    size_t place;   /* of a sidecar among the init containers */
    dv_str message; /* of the event; empty: "Stopping container <name>" */
    enum life_kill_reason reason;
    int64_t grace_s; /* -1: as the pod says */
    enum life_kill_step step;
    uint32_t action;
    uint64_t since_ms;
    dv_str error;
};

struct life_kills {
    struct life_kill *v;
    size_t n;
    size_t size;
    bool is_ordered; /* sidecars after the others */
};

/* Goes on with the stops; LIFE_NEXT when all have ended. */
enum life_go life_kill_step(struct life_look *look, struct life_kills *kills,
                            struct dv_arena *arena);
/* Whether the object is gone before its pod has ended: nobody is left to wait for. */
bool life_is_forced(const struct life_look *look);
/* Gives up the stops that are under way; `kills` is empty then. */
void life_kill_cancel(struct life_look *look, struct life_kills *kills);
const struct life_kill *life_kill_failed(const struct life_kills *kills); /* NULL: none has */
/* All running containers of the view, in an order where sidecars come last. */
void life_kill_all(const struct dv_api_pod *pod, const struct dv_life_view *view, int64_t grace_s,
                   struct dv_arena *arena, struct life_kills *kills);

struct life_plan {
    bool creates_sandbox;
    bool kills_pod;
    bool resets;      /* RestartAllContainers: all instances go */
    bool has_changed; /* there was another sandbox before */
    uint32_t attempt;
    dv_str sandbox_id;
    struct life_kills kills;
    struct {
        struct life_start *v;
        size_t n;
        size_t size;
    } starts;
};

/* Whether a new sandbox is needed; and its attempt, and the id of the newest one. */
bool life_needs_sandbox(const struct dv_api_pod *pod, const struct dv_life_view *view,
                        uint32_t *attempt, dv_str *id);
/* Decides what the sync does; in `arena`, with copies of all texts. */
void life_plan(const struct life_look *look, struct dv_arena *arena, struct life_plan *plan);

/* The reference's container that a start is about; NULL: the object does not have it any more. */
const struct dv_api_container *life_spec(const struct life_look *look, dv_str name,
                                         enum dv_workload_kind *kind);

/* ---- a container's start ---- */

enum life_start_step {
    LIFE_START_BEGIN,
    LIFE_START_INSPECT,
    LIFE_START_PULL,
    LIFE_START_CREATE,
    LIFE_START_RUN,
    LIFE_START_HOOK,
    LIFE_START_KILL, /* because the hook has failed */
    LIFE_START_DONE,
    LIFE_START_FAILED,
};

struct life_starting {
    enum life_start_step step;
    uint32_t action;
    uint64_t since_ms;
    dv_str image;
    dv_str image_id;
    dv_str id;
    dv_str hook_error;
    struct life_kills kill;
    bool has_backed_off; /* it failed because it has to wait */
    int64_t backoff_rest_ms;
};

/* Goes on with the start; LIFE_NEXT when it is DONE or FAILED. */
enum life_go life_start_step(struct life_look *look, const struct life_start *start,
                             dv_str sandbox_id, struct dv_strs ips, struct life_starting *starting,
                             struct dv_arena *arena);

/* ---- sync, ending ---- */

void life_sync_begin(struct life_look *look);
void life_sync_go(struct life_look *look); /* may end it */
void life_sync_free(struct life_sync *sync);
void life_sync_cancel(struct life_look *look);

void life_end_begin(struct life_look *look);
void life_end_go(struct life_look *look);
void life_ending_free(struct life_ending *ending);
/* Begins the removal of dead instances and sandboxes that are not kept. */
void life_collect(struct life_look *look);

/* ---- status ---- */

enum life_reckon {
    LIFE_RECKON_ALIVE,
    LIFE_RECKON_STOPPED, /* nothing of it runs any more, nor will */
};

/* Computes the status from the view and publishes it, the terminal phase held back until RELEASE is
 * done. Returns the phase that was computed. */
enum life_phase life_publish(struct life_look *look, enum life_reckon reckon);
/* Publishes the last status of a pod: what has no end state gets one, and the phase is terminal. */
void life_publish_last(struct life_look *look);
/* Publishes that the new sandbox is there; nothing else is looked at. */
void life_publish_sandbox(struct life_look *look);
/* Publishes what probes have changed: what is ready or started. */
void life_publish_probes(struct life_look *look);
/* The phase that was computed last, by this agent or the one before. */
enum life_phase life_phase_before(const struct life_look *look);
const struct dv_api_pod_status *life_status_before(const struct life_look *look);
bool life_was_initialized(const struct life_look *look);

/* The parts of the status, each computed by a function below. */
struct life_reckoning {
    const struct life_look *look;
    const struct dv_api_pod_status *old;
    struct dv_api_pod_status *status;
    enum life_reckon reckon;
    enum life_phase phase;
};
void life_reckon_containers(const struct life_reckoning *reckoning);
enum life_phase life_reckon_phase(const struct life_reckoning *reckoning);
void life_reckon_conditions(const struct life_reckoning *reckoning);
/* Computes the conditions Ready and ContainersReady alone. */
void life_reckon_ready(const struct life_reckoning *reckoning);
/* `started` and `ready` of containers, as probes have it. */
void life_reckon_probes(const struct life_reckoning *reckoning);
dv_str life_phase_name(enum life_phase phase);
enum life_phase life_phase_read(dv_str name);
static inline bool life_phase_is_terminal(enum life_phase phase)
{
    return phase == LIFE_SUCCEEDED || phase == LIFE_FAILED;
}

/* ---- probes ---- */

/* Goes on with all probes: takes outcomes, begins runs that are due. */
void life_probe_go(struct life_look *look);
/* What a probe of this instance says; DV_PROBE_IS_UNKNOWN when it has said nothing of it yet. */
enum dv_probe_result life_probe_result(const struct dv_life *life, dv_str name,
                                       enum dv_probe_kind kind, dv_str id);
/* The readiness probe runs once more at the next look. */
void life_probe_want(struct dv_life *life, dv_str name);
bool life_probe_knows(const struct dv_life *life, dv_str name, enum dv_probe_kind kind, dv_str id);

#endif
