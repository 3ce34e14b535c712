/* leases_state.h - the leases of a node, and what the files of this folder do for each other. */
#ifndef DV_LEASES_STATE_H
#define DV_LEASES_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "lease/lease.h"
#include "lease/lease_spec.h"
#include "lease/state/lease_queue.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "pod/process.h"
#include "store/store.h"
#include "store/store_saver.h"

struct dv_api_allocation_result;
struct dv_api_resource_claim;
struct dv_arena;

/* More than a machine has use for; each costs a row, a pod's record and some KB. */
#define DV_LEASES_MAX 4096u
#define DV_LEASES_WAITING_MAX 4096u
/* How many leases one user who is not root may have, and how many of them may wait. */
#define DV_LEASES_USER_MAX 128u
#define DV_LEASES_USER_WAITING_MAX 64u
/* An id is short enough to be typed: 32 letters and digits, six of them. */
#define DV_LEASE_ID_BYTES 6u

struct dv_lease_step;

enum dv_lease_outcome {
    DV_LEASE_STEP_PENDING, /* a callback will tell the outcome */
    DV_LEASE_STEP_DONE,
    DV_LEASE_STEP_FAILED,
};

/* How many devices the user may hold of what one rule names. */
struct dv_lease_quota {
    dv_str rule;
    uint64_t n_max;
};

struct dv_lease_user {
    uint32_t uid;
    size_t n_leases; /* in memory, of whatever state */
    size_t n_held;   /* that are taken, held or ending */
    size_t n_waiting;
    struct dv_list held; /* of struct dv_lease, by `of_user` */
    char key[sizeof("4294967295")];
};

/* A process that the owner, or what that has started, has started. */
struct dv_lease_descendant {
    uint32_t pid;
    uint64_t start; /* in ticks since the boot */
};

struct dv_lease {
    struct dv_leases *leases;
    struct dv_arena *arena;
    struct dv_lease_spec spec;
    struct dv_lease_user *user;
    struct dv_link of_user;
    struct dv_link link;           /* in leases->held while it has a row, by age */
    struct dv_lease_item item;     /* in the queue while it waits */
    struct dv_lease_quota *quotas; /* one for each want; n_max DV_POLICY_NO_LIMIT: none */
    struct dv_list listeners;
    struct dv_list givers;            /* operations that wait for its end */
    uint64_t max_s;                   /* how long it may be held; 0: for ever */
    uint64_t told_version;            /* of leases->version, when its listeners were last told */
    const struct dv_lease_step *step; /* NULL: it waits in the queue */
    struct dv_task task;
    enum dv_lease_outcome posted;
    struct dv_err failure; /* why it is undone before it was granted; DV_OK: it is not */
    bool is_impatient;     /* it does not wait for what is not free at once, */
    bool is_kept;          /* but the allocator could not be asked yet */
    uint64_t refused_at;   /* leases->n_changes, when the allocator last said no */
    bool has_count;        /* of the next */
    uint64_t n_free;       /* devices of its first class that it could have had when it was told */
    unsigned n_refusals;   /* in a row: plugins or drivers refused what was free */
    bool waits_again;      /* undone, it goes back into the queue */
    bool is_recorded;      /* it has a row */
    bool is_granted;
    bool owner_has_ended;
    bool is_killed;    /* SIGKILL was sent */
    unsigned n_pauses; /* in a row, of what was tried again */
    dv_str awaited;    /* what its step waits for; a constant text, or in `awaited_text` */
    struct dv_buf awaited_text;
    struct dv_timer wait_timer; /* of a request: its patience ends */
    struct dv_timer end_timer;  /* warning, end, and the grace after SIGTERM */
    /* before a step is tried again; of one that was refused and waits again, until it may go */
    struct dv_timer pause_timer;
    /* its owner */
    struct dv_arena *owner_arena; /* of one that it was moved to; NULL: it is the first */
    struct dv_process process;
    struct dv_timer group_timer; /* looks at its control group, or at the descendants */
    DV_VEC(struct dv_lease_descendant) descendants; /* that were signalled with it */
    bool group_was_used;
    uint64_t group_empty_ms; /* since when it is empty; 0: it is not */
    /* what its steps use */
    struct dv_save save;
    struct dv_pod_admission admission;
    struct dv_pod_release release;
    struct dv_pod_start start;
    struct dv_request request;
    struct dv_arena *claim_arena; /* of the next two and the request */
    struct dv_api_resource_claim *claim;
    struct dv_api_allocation_result *allocation; /* held with the scheduler; NULL: nothing is */
};

/* A row that has changed: of a lease that is there, or is gone. */
struct dv_lease_dirty {
    char id[DV_LEASE_ID_BYTES + 1];
};

struct dv_leases {
    struct dv_loop *loop;
    struct dv_leases_options options;
    struct dv_cluster *cluster; /* NULL: devices of classes cannot be leased */
    struct dv_sched *sched;
    struct dv_map by_id;
    struct dv_map users; /* of struct dv_lease_user, by number */
    struct dv_list held; /* by age */
    size_t n_held;
    struct dv_lease_queue queue;
    uint64_t n_arrivals;
    uint64_t version;   /* counts what those who wait can see */
    uint64_t n_changes; /* counts when devices may have become free */
    /* The allocator could not be asked for all in the last look: nobody is refused for good yet. */
    bool is_undecided;
    size_t n_kept; /* at most so many do not wait, and were not ended because of that */
    struct dv_saver saver;
    DV_VEC(struct dv_lease_dirty) dirty;
    struct dv_task look_task;
    struct dv_task changed_task;
    struct dv_timer tell_timer;
    size_t tell_at; /* the place in the queue from which the next are told */
    struct dv_task close_task;
    size_t n_under_way; /* leases whose step waits for a callback */
    bool is_started;
    uint64_t started_ms;
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* leases.c */
struct dv_lease *dv_lease_new(struct dv_leases *leases, struct dv_arena *arena);
void dv_lease_free(struct dv_lease *lease);
/* Sets whose the lease is; the user is there as long as its last lease. */
void dv_lease_set_user(struct dv_lease *lease, uint32_t uid);
void dv_leases_tell_changed(struct dv_leases *leases);
void dv_lease_set_awaited(struct dv_lease *lease, const char *fmt, ...) DV_PRINTF(2, 3);
/* Tells the listeners of the lease the last thing, and forgets them. */
void dv_lease_tell_last(struct dv_lease *lease, enum dv_lease_news news, const struct dv_err *err);
void dv_lease_tell(struct dv_lease *lease, enum dv_lease_news news);
void dv_leases_check_closed(struct dv_leases *leases);
/* Whether the machine was booted a short while ago. */
bool dv_leases_is_booting(void);
/* Whether devices of a class that has none may be about to come. */
bool dv_leases_may_come(const struct dv_leases *leases);
/* Makes the number that stands for the device in pools of the queue. */
uint64_t dv_lease_device_number(dv_str driver, dv_str pool, dv_str device);

/* lease_rows.c */
void dv_leases_init_saver(struct dv_leases *leases);
bool dv_leases_load_row(void *ctx, const struct dv_store_row *row, struct dv_err *err);
void dv_lease_mark_dirty(struct dv_lease *lease);

/* lease_life.c */
/* Begins the steps of a lease whose turn has come: it takes its devices. */
void dv_lease_begin(struct dv_lease *lease);
/* Goes on with a lease that was in the store: it is held, or undone. */
void dv_lease_go_on(struct dv_lease *lease);
void dv_lease_go(struct dv_lease *lease, enum dv_lease_outcome outcome);
/* Gives a request up that nobody waits for any more, before it was granted. */
void dv_lease_give_up(struct dv_lease *lease, enum dv_code code, const char *text);
/* Ends a lease that is held; nothing happens when it is ending already. `reason` is a constant. */
void dv_lease_end(struct dv_lease *lease, const char *reason, dv_str message, dv_str by);
/* To be called when the owner of the lease is not there any more. */
void dv_lease_owner_ended(struct dv_lease *lease);
/* davitd is stopping: ends what listens and what is under way. A lease that is held stays so. */
void dv_lease_close(struct dv_lease *lease);
bool dv_lease_is_held(const struct dv_lease *lease);
bool dv_lease_is_ending(const struct dv_lease *lease);
/* Sets the timer for the next thing about its end. */
void dv_lease_arm_end(struct dv_lease *lease);

/* lease_steps.c */
enum dv_lease_outcome dv_lease_step_record(struct dv_lease *lease);
enum dv_lease_outcome dv_lease_step_admit(struct dv_lease *lease);
enum dv_lease_outcome dv_lease_step_start(struct dv_lease *lease);
enum dv_lease_outcome dv_lease_step_release(struct dv_lease *lease);
enum dv_lease_outcome dv_lease_step_forget(struct dv_lease *lease);
/* Fails the step; what it is undone for is the first error. */
enum dv_lease_outcome dv_lease_fail(struct dv_lease *lease, const struct dv_err *err);

/* lease_claim.c */
/* Reads the claim that the lease needs, into claim_arena. */
DV_CHECKED bool dv_lease_make_claim(struct dv_lease *lease, struct dv_err *err);
enum dv_lease_outcome dv_lease_step_create(struct dv_lease *lease);
enum dv_lease_outcome dv_lease_step_allocate(struct dv_lease *lease);
enum dv_lease_outcome dv_lease_step_unreserve(struct dv_lease *lease);
enum dv_lease_outcome dv_lease_step_delete(struct dv_lease *lease);
void dv_lease_let_go(struct dv_lease *lease);
/* Forgets the claim as it was read: the next step reads it anew. */
void dv_lease_drop_claim(struct dv_lease *lease);

/* lease_names.c */
/* The request with names as they are on this machine, in `arena`. */
DV_CHECKED bool dv_lease_read_names(struct dv_leases *leases,
                                    const struct dv_lease_request *request, struct dv_arena *arena,
                                    struct dv_lease_request *named, struct dv_err *err);

/* lease_policy.c */
/* Whether the policy allows the request: what it names, for how long, at which priority, and not
 * more than its quotas even if the user held nothing else. Sets the lease's quotas, max_s and
 * priority. */
DV_CHECKED bool dv_lease_judge(struct dv_lease *lease, const struct dv_lease_caller *caller,
                               const struct dv_lease_request *request, struct dv_err *err);
/* Whether the lease may last for max_s (0: as long as is allowed) from now on. Sets the end that it
 * may have; 0: none. What the policy allows counts from when it was granted, so that nobody keeps
 * devices for ever by renewals. */
DV_CHECKED bool dv_lease_judge_renewal(const struct dv_lease *lease,
                                       const struct dv_lease_caller *caller, uint64_t now_ms,
                                       uint64_t max_s, uint64_t *ends_ms, struct dv_err *err);
/* The quota that the user would exceed with the lease, beside what it holds; NULL: none. */
const struct dv_lease_quota *dv_lease_find_exceeded(const struct dv_lease *lease);

/* lease_owner.c */
/* Finds out who the owner is, and whether the caller may name it. */
DV_CHECKED bool dv_lease_find_owner(const struct dv_leases *leases,
                                    const struct dv_lease_caller *caller,
                                    const struct dv_lease_owner_request *request,
                                    struct dv_arena *arena, struct dv_lease_owner *owner,
                                    struct dv_err *err);
/* Another owner holds it from now on. Takes the owner's arena. */
void dv_lease_move(struct dv_lease *lease, const struct dv_lease_owner *owner,
                   struct dv_arena *arena);
void dv_lease_watch_owner(struct dv_lease *lease);
void dv_lease_stop_watching(struct dv_lease *lease);

/* lease_signal.c */
void dv_lease_signal_owner(struct dv_lease *lease, int signum);
/* Whether any of those that were signalled with the owner is still there. */
bool dv_lease_has_descendants(struct dv_lease *lease);
/* Who the process belongs to; false: there is none. */
bool dv_lease_user_of(uint32_t pid, struct dv_arena *arena, uint32_t *uid);

/* lease_look.c */
void dv_leases_enter(struct dv_lease *lease); /* into the queue */
/* Plugins or drivers refused what was free: it goes back into the queue, and is passed over for a
 * while. */
void dv_leases_enter_again(struct dv_lease *lease);
/* Looks soon at those who wait, although nothing has become free. */
void dv_leases_look_soon(struct dv_leases *leases);
/* How long it waits: 0: not at all, UINT64_MAX: for as long as it takes. */
void dv_lease_arm_patience(struct dv_lease *lease, uint64_t wait_ms);

#endif
