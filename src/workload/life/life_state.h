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
struct dv_life_ending;
struct dv_life_sync;

/* ---- constants of the reference ---- */

enum {
    DV_LIFE_RESYNC_MS = 60 * 1000,   /* a sync without news */
    DV_LIFE_RETRY_MS = 10 * 1000,    /* after an error */
    DV_LIFE_NETWORK_RETRY_MS = 1000, /* the network is not ready */
    DV_LIFE_STRETCH_PER_MILLE = 500, /* at most so much is added to each of them */
    DV_LIFE_BACKOFF_FIRST_S = 10,    /* of restarts and pulls; doubled up to the next */
    DV_LIFE_BACKOFF_MAX_S = 300,
    DV_LIFE_GRACE_MIN_S = 2,       /* what a container gets in any case */
    DV_LIFE_SET_UP_RETRY_MS = 500, /* volumes that could not be made; doubled */
    DV_LIFE_SET_UP_RETRY_MAX_MS = 122 * 1000,
    DV_LIFE_SET_UP_LIMIT_MS = 123 * 1000, /* then the sync ends with an error */
    DV_LIFE_DEADLINE_LOOK_MS = 1000,      /* how often activeDeadlineSeconds is looked at */
    DV_LIFE_MESSAGE_BYTES = 12 * 1024,    /* of all termination messages of a pod */
};

/* ---- what is remembered ---- */

/* A delay that doubles; zeroed is none. */
struct dv_life_backoff {
    int64_t updated_ms; /* when it last grew */
    uint32_t delay_s;   /* 0: none */
};

/* What is remembered of one container of the pod. */
struct dv_life_member {
    dv_str name; /* on the heap, as the other texts */
    /* Why it could not be started last, "" when it was: a constant, and a text. */
    dv_str reason;
    dv_str message;
    struct dv_life_backoff restart;
    uint64_t restart_key; /* the image and resources that `restart` is about */
    struct dv_life_backoff pull;
    uint64_t pull_key;
    dv_str pull_error;              /* "ErrImagePull: ..." */
    struct dv_probe_worker *probes; /* DV_N_PROBE_KINDS of them; NULL: it has none */
    bool was_reset;                 /* by RestartAllContainers, and no status has shown it yet */
};

/* An action that is under way, or whose result was not used yet. */
struct dv_life_pending {
    uint32_t id;
    enum dv_life_action_kind kind;
    uint64_t subject; /* a hash of the id of the container or sandbox that it is about */
    enum dv_probe_kind probe_kind;
    bool is_done;
    bool is_cancelled;
    struct dv_life_result result; /* when is_done; texts are in `texts` */
    char *texts;
};

enum dv_life_phase {
    DV_LIFE_PHASE_PENDING,
    DV_LIFE_PHASE_RUNNING,
    DV_LIFE_PHASE_SUCCEEDED,
    DV_LIFE_PHASE_FAILED,
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
    DV_VEC(struct dv_life_member) members;
    DV_VEC(struct dv_life_pending) pending;
    struct dv_life_sync *sync;
    struct dv_life_ending *ending;
    struct dv_api_pod_status *status; /* as published; NULL: not yet */
    struct dv_arena *status_arena;    /* holds `status` */
    DV_VEC(dv_str) ips;               /* of the pod, in `status` */
    /* The phase, reason and message that are held back until everything is released. */
    enum dv_life_phase phase;
    dv_str held_reason;
    dv_str held_message;
};

/* ---- one look ---- */

struct dv_life_looking {
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
enum dv_life_go {
    DV_LIFE_NEXT, /* on with the next step */
    DV_LIFE_WAIT, /* for a result, a time or a view */
    DV_LIFE_STOP, /* it has ended */
};

void dv_life_set_text(dv_str *text, dv_str value); /* on the heap; frees the old one */
uint64_t dv_life_hash(dv_str text);                /* never 0 */
int64_t dv_life_wall_ms(const struct dv_life_looking *look);
void dv_life_look_at(struct dv_life_looking *look, uint64_t ms); /* again, at the latest */
/* Returns `ms`, stretched by up to half, so that pods do not do everything at the same time. */
uint64_t dv_life_stretch(const struct dv_life_looking *look, uint64_t ms);

struct dv_life_member *dv_life_member(struct dv_life *life,
                                      dv_str name); /* made when it is not there */
const struct dv_life_member *dv_life_member_find(const struct dv_life *life, dv_str name);

/* Begins an action and returns it to be filled in further. */
struct dv_life_action *dv_life_begin(struct dv_life_looking *look, enum dv_life_action_kind kind,
                                     dv_str id);
struct dv_strs dv_life_copy_strs(struct dv_strs from, struct dv_arena *arena);
/* Fills in whose action it is. */
void dv_life_for_container(struct dv_life_looking *look, struct dv_life_action *action,
                           dv_str name);
/* The result of an action that has ended; NULL while it is under way. It is forgotten by
 * dv_life_forget. */
const struct dv_life_result *dv_life_result_of(struct dv_life *life, uint32_t id);
void dv_life_forget(struct dv_life *life, uint32_t id);

/* The actions of one step, which ends when all of them have. */
struct dv_life_actions {
    DV_VEC(uint32_t) ids;
};
/* Like dv_life_begin, for one more action of the step; the list is in `arena`. */
struct dv_life_action *dv_life_actions_begin(struct dv_life_looking *look,
                                             struct dv_life_actions *actions,
                                             struct dv_arena *arena, enum dv_life_action_kind kind,
                                             dv_str id);
bool dv_life_actions_have_ended(struct dv_life *life, const struct dv_life_actions *actions);
/* The result of the first action that has ended and failed; NULL: none has. */
const struct dv_life_result *dv_life_actions_failure(struct dv_life *life,
                                                     const struct dv_life_actions *actions);
void dv_life_actions_forget(struct dv_life *life, struct dv_life_actions *actions);

bool dv_life_is_pending(const struct dv_life *life, enum dv_life_action_kind kind, dv_str id);
void dv_life_cancel(struct dv_life_looking *look, uint32_t id);
/* Drops results that nobody asks for: of removals, and of probes of instances that are gone. After
 * a removal a finished pod waits for a new view. */
void dv_life_drop_results(struct dv_life_looking *look);

/* An event; `container` is empty where it is the pod's. */
void dv_life_add_note(struct dv_life_looking *look, bool is_warning, const char *reason,
                      dv_str container, const char *fmt, ...) DV_PRINTF(5, 6);
dv_str dv_life_pod_text(const struct dv_life_looking *look); /* "name_namespace(uid)" */

/* ---- the view ---- */

/* The instance of a container that was made last; NULL: there is none. */
const struct dv_life_container *dv_life_newest(const struct dv_life_view *view, dv_str name);
/* The instance that was made last before `than`; NULL: there is none. */
const struct dv_life_container *dv_life_older(const struct dv_life_view *view,
                                              const struct dv_life_container *than);
/* The exited instance that was made last. */
const struct dv_life_container *dv_life_newest_exited(const struct dv_life_view *view, dv_str name);
const struct dv_life_sandbox *dv_life_newest_sandbox(const struct dv_life_view *view);
/* Whether the container was made in that sandbox of the view. A runtime that does not say tells it
 * by the times: containers are made in the newest sandbox only. */
bool dv_life_is_in_sandbox(const struct dv_life_view *view,
                           const struct dv_life_container *container,
                           const struct dv_life_sandbox *sandbox);
/* Whether something runs or may run, for all that the runtime knows. */
bool dv_life_has_running(const struct dv_life_view *view);
/* Whether anything is there now that was not at the last sync, or a running one is missing. */
bool dv_life_has_news(const struct dv_life *life, const struct dv_life_view *view);
void dv_life_see(struct dv_life *life, const struct dv_life_view *view);

/* ---- decisions ---- */

bool dv_life_is_sidecar(const struct dv_api_container *container);
bool dv_life_is_deleted(const struct dv_api_pod *pod);
/* Whether a container that ended with this code is started again: rules, its own policy, the
 * pod's. */
bool dv_life_restarts_after(const struct dv_api_pod *pod, const struct dv_api_container *container,
                            int64_t exit_code);
/* Whether policies alone let it start again after a failure. */
bool dv_life_restarts_on_failure(const struct dv_api_pod *pod,
                                 const struct dv_api_container *container);
/* Whether the rule that matches this code restarts all containers of the pod. */
bool dv_life_resets_after(const struct dv_api_container *container, int64_t exit_code);
bool dv_life_has_reset_rules(const struct dv_api_pod *pod);
/* Whether a container has ended in a way that begins the whole pod anew. */
bool dv_life_wants_reset(const struct dv_api_pod *pod, const struct dv_life_view *view);
bool dv_life_should_start(const struct dv_api_pod *pod, const struct dv_api_container *container,
                          const struct dv_life_view *view);

bool dv_life_backoff_waits(const struct dv_life_backoff *backoff, int64_t since_ms, int64_t now_ms,
                           int64_t *rest_ms);
void dv_life_backoff_grow(struct dv_life_backoff *backoff, int64_t since_ms, int64_t now_ms);

/* What is to be started. */
struct dv_life_start {
    dv_str name;
    enum dv_workload_kind kind;
    uint32_t attempt;
    bool has_instance;
    int64_t exited_ms; /* when the newest exited instance ended; 0: there is none */
};

enum dv_life_kill_reason {
    DV_LIFE_KILL_OTHER,
    DV_LIFE_KILL_STARTUP,
    DV_LIFE_KILL_LIVENESS,
};

enum dv_life_kill_step {
    DV_LIFE_KILL_BEGIN,
    DV_LIFE_KILL_PRE_STOP,
    DV_LIFE_KILL_TURN, /* waits for other containers to end first */
    DV_LIFE_KILL_STOP,
    DV_LIFE_KILL_DONE,
    DV_LIFE_KILL_FAILED,
};

struct dv_life_kill {
    dv_str id;
    dv_str name;
    enum dv_workload_kind kind;
    size_t place;   /* of a sidecar among the init containers */
    dv_str message; /* of the event; empty: "Stopping container <name>" */
    enum dv_life_kill_reason reason;
    int64_t grace_s; /* -1: as the pod says */
    enum dv_life_kill_step step;
    uint32_t action;
    uint64_t since_ms;
    dv_str error;
};

struct dv_life_kills {
    struct dv_life_kill *v;
    size_t n;
    size_t size;
    bool is_ordered; /* sidecars after the others */
};

/* Goes on with the stops; DV_LIFE_NEXT when all have ended. */
enum dv_life_go dv_life_kill_step(struct dv_life_looking *look, struct dv_life_kills *kills,
                                  struct dv_arena *arena);
/* Whether the object is gone before its pod has ended: nobody is left to wait for. */
bool dv_life_is_forced(const struct dv_life_looking *look);
/* Gives up the stops that are under way; `kills` is empty then. */
void dv_life_kill_cancel(struct dv_life_looking *look, struct dv_life_kills *kills);
const struct dv_life_kill *
dv_life_kill_failed(const struct dv_life_kills *kills); /* NULL: none has */
/* All running containers of the view, in an order where sidecars come last. */
void dv_life_kill_all(const struct dv_api_pod *pod, const struct dv_life_view *view,
                      int64_t grace_s, struct dv_arena *arena, struct dv_life_kills *kills);

struct dv_life_plan {
    bool creates_sandbox;
    bool kills_pod;
    bool resets;      /* RestartAllContainers: all instances go */
    bool has_changed; /* there was another sandbox before */
    uint32_t attempt;
    dv_str sandbox_id;
    struct dv_life_kills kills;
    struct {
        struct dv_life_start *v;
        size_t n;
        size_t size;
    } starts;
};

/* Whether a new sandbox is needed; and its attempt, and the id of the newest one. */
bool dv_life_needs_sandbox(const struct dv_api_pod *pod, const struct dv_life_view *view,
                           uint32_t *attempt, dv_str *id);
/* Decides what the sync does; in `arena`, with copies of all texts. */
void dv_life_plan(const struct dv_life_looking *look, struct dv_arena *arena,
                  struct dv_life_plan *plan);

/* The reference's container that a start is about; NULL: the object does not have it any more. */
const struct dv_api_container *dv_life_spec(const struct dv_life_looking *look, dv_str name,
                                            enum dv_workload_kind *kind);

/* ---- a container's start ---- */

enum dv_life_start_step {
    DV_LIFE_START_BEGIN,
    DV_LIFE_START_INSPECT,
    DV_LIFE_START_PULL,
    DV_LIFE_START_CREATE,
    DV_LIFE_START_RUN,
    DV_LIFE_START_HOOK,
    DV_LIFE_START_KILL, /* because the hook has failed */
    DV_LIFE_START_DONE,
    DV_LIFE_START_FAILED,
};

struct dv_life_starting {
    enum dv_life_start_step step;
    uint32_t action;
    uint64_t since_ms;
    dv_str image;
    dv_str image_id;
    dv_str id;
    dv_str hook_error;
    struct dv_life_kills kill;
    bool has_backed_off; /* it failed because it has to wait */
    int64_t backoff_rest_ms;
};

/* Goes on with the start; DV_LIFE_NEXT when it is DONE or FAILED. */
enum dv_life_go dv_life_start_step(struct dv_life_looking *look, const struct dv_life_start *start,
                                   dv_str sandbox_id, struct dv_strs ips,
                                   struct dv_life_starting *starting, struct dv_arena *arena);

/* ---- sync, ending ---- */

void dv_life_sync_begin(struct dv_life_looking *look);
void dv_life_sync_go(struct dv_life_looking *look); /* may end it */
void dv_life_sync_free(struct dv_life_sync *sync);
void dv_life_sync_cancel(struct dv_life_looking *look);

void dv_life_end_begin(struct dv_life_looking *look);
void dv_life_end_go(struct dv_life_looking *look);
void dv_life_ending_free(struct dv_life_ending *ending);
/* Begins the removal of dead instances and sandboxes that are not kept. */
void dv_life_collect(struct dv_life_looking *look);

/* ---- status ---- */

enum dv_life_reckon {
    DV_LIFE_RECKON_ALIVE,
    DV_LIFE_RECKON_STOPPED, /* nothing of it runs any more, nor will */
};

/* Computes the status from the view and publishes it, the terminal phase held back until RELEASE is
 * done. Returns the phase that was computed. */
enum dv_life_phase dv_life_publish(struct dv_life_looking *look, enum dv_life_reckon reckon);
/* Publishes the last status of a pod: what has no end state gets one, and the phase is terminal. */
void dv_life_publish_last(struct dv_life_looking *look);
/* Publishes that the new sandbox is there; nothing else is looked at. */
void dv_life_publish_sandbox(struct dv_life_looking *look);
/* Publishes what probes have changed: what is ready or started. */
void dv_life_publish_probes(struct dv_life_looking *look);
/* The phase that was computed last, by this agent or the one before. */
enum dv_life_phase dv_life_phase_before(const struct dv_life_looking *look);
const struct dv_api_pod_status *dv_life_status_before(const struct dv_life_looking *look);
bool dv_life_was_initialized(const struct dv_life_looking *look);

/* The parts of the status, each computed by a function below. */
struct dv_life_reckoning {
    const struct dv_life_looking *look;
    const struct dv_api_pod_status *old;
    struct dv_api_pod_status *status;
    enum dv_life_reckon reckon;
    enum dv_life_phase phase;
};
void dv_life_reckon_containers(const struct dv_life_reckoning *reckoning);
enum dv_life_phase dv_life_reckon_phase(const struct dv_life_reckoning *reckoning);
void dv_life_reckon_conditions(const struct dv_life_reckoning *reckoning);
/* Computes the conditions Ready and ContainersReady alone. */
void dv_life_reckon_ready(const struct dv_life_reckoning *reckoning);
/* `started` and `ready` of containers, as probes have it. */
void dv_life_reckon_probes(const struct dv_life_reckoning *reckoning);
dv_str dv_life_phase_name(enum dv_life_phase phase);
enum dv_life_phase dv_life_phase_read(dv_str name);
static inline bool dv_life_phase_is_terminal(enum dv_life_phase phase)
{
    return phase == DV_LIFE_PHASE_SUCCEEDED || phase == DV_LIFE_PHASE_FAILED;
}

/* ---- probes ---- */

/* Goes on with all probes: takes outcomes, begins runs that are due. */
void dv_life_probe_go(struct dv_life_looking *look);
/* What a probe of this instance says; DV_PROBE_IS_UNKNOWN when it has said nothing of it yet. */
enum dv_probe_result dv_life_probe_result(const struct dv_life *life, dv_str name,
                                          enum dv_probe_kind kind, dv_str id);
/* The readiness probe runs once more at the next look. */
void dv_life_probe_want(struct dv_life *life, dv_str name);
bool dv_life_probe_knows(const struct dv_life *life, dv_str name, enum dv_probe_kind kind,
                         dv_str id);

#endif
