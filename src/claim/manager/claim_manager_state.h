/* claim_manager_state.h - what the files of this module's loop part share. */
#ifndef DV_CLAIM_MANAGER_STATE_H
#define DV_CLAIM_MANAGER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "cluster/cluster.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "plugin/plugin.h"
#include "store/store_saver.h"

struct dv_arena;
struct dv_object;

/* A driver's socket, and our connection to it. */
struct dv_instance {
    struct dv_dra_instance base;
    struct dv_claim_manager *claims;
    struct dv_channel *channel;
    struct dv_link link; /* in the manager's list, until the channel is closed */
    struct dv_call health_call;
    struct dv_timer health_timer;
    struct dv_call offer_call; /* offer_stream.c */
    struct dv_timer offer_timer;
    uint64_t offer_pause_ms; /* the next one */
    uint64_t offer_left_out; /* hash of what was logged last */
    bool is_offering;
    bool is_closing;
    char text[];
};

/* The work that nobody waits for: what was left unfinished, and is finished by chores.c. */
struct dv_claim_chores {
    struct dv_task task;
    struct dv_timer timer;
    struct dv_arena *arena; /* of `items` */
    struct dv_claim_chore_item *items;
    size_t n_items;
    size_t at; /* the next item */
    struct dv_list running;
    size_t n_running;
    bool is_ready;
    bool is_asked; /* look again when all items are done */
};

struct dv_claim_manager {
    struct dv_loop *loop;
    struct dv_claim_manager_options options;
    struct dv_claim_state *state;
    struct dv_dra_drivers *drivers;
    struct dv_list instances;
    struct dv_list operations;
    struct dv_list waiting; /* operations, for a driver */
    struct dv_map wipes;    /* by driver; the node's under "" */
    uint64_t epoch;         /* connections to drivers so far */
    struct dv_saver saver;
    struct dv_claim_chores chores;
    struct dv_task changed_task;
    struct dv_task close_task;
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
    char text[]; /* of node_name */
};

/* claim_manager.c */
void dv_claim_manager_tell_changed(struct dv_claim_manager *claims);
/* The sum of the epochs of the claim's drivers. */
uint64_t dv_claim_epoch(const struct dv_claim_manager *claims, const struct dv_claim *claim);
/* To be called whenever something ends that a closing manager waits for. */
void dv_claim_manager_check_closed(struct dv_claim_manager *claims);

/* instance.c */
struct dv_instance *dv_instance_open(struct dv_claim_manager *claims,
                                     const struct dv_plugin_info *info, enum dv_dra_service service,
                                     struct dv_err *err);
void dv_instance_close(struct dv_instance *instance);

/* offer_stream.c */
/* Asks a driver of before 1.31 which devices it offers, as long as the instance is open. */
void dv_instance_watch_offers(struct dv_instance *instance);
void dv_instance_stop_offers(struct dv_instance *instance);

/* wipe.c */
/* To be called after every change of a driver's instances or their connections. */
void dv_claim_manager_evaluate(struct dv_claim_manager *claims, dv_str driver);
void dv_claim_manager_wipe_node(struct dv_claim_manager *claims);
void dv_claim_manager_stop_wiping(struct dv_claim_manager *claims);

/* ---- operations ---- */

/* One claim of an operation. */
struct dv_claim_job {
    struct dv_claim_operation *operation;
    struct dv_claim_ref ref;
    struct dv_request request;
    struct dv_object *object; /* prepare: the claim as the API has it */
    struct dv_err err;
    dv_str namespace;
    dv_str name;
    dv_str uid;             /* of the record; unused when a pod's claims are prepared */
    struct dv_claim *claim; /* the claim while the job holds it; NULL: it does not */
    bool ignores_pods;      /* releases by force, whatever pods use the claim */
};

/* One driver of an operation, and its claims. */
struct dv_claim_batch {
    struct dv_claim_operation *operation;
    dv_str driver;
    DV_VEC(struct dv_claim *) claims;
    struct dv_instance *instance; /* while it is called */
    enum dv_dra_service service;
    struct dv_call call;
    struct dv_buf message;
    size_t at; /* index of the claim that is asked for, with services that take one a call */
    uint64_t asked_ns;
    bool is_calling;
    struct dv_task task;
    struct dv_err err; /* code DV_OK: it has gone well */
};

/* claim_operation.c: the steps, and which follows which. */

/* How a step has ended. */
enum dv_claim_progress {
    DV_CLAIM_STEP_IS_DONE, /* the next step follows */
    /* dv_claim_step_ended will be called; or the step waits, and is run again */
    DV_CLAIM_STEP_GOES_ON,
    DV_CLAIM_STEP_FAILED,   /* `err` is set */
    DV_CLAIM_STEP_WAS_LAST, /* nothing is left to be done: the operation ends well */
};
typedef enum dv_claim_progress dv_claim_step_fn(struct dv_claim_operation *operation,
                                                struct dv_err *err);

/* With more claims an operation takes several turns of the loop: about a millisecond for as many.
 */
#define DV_CLAIM_JOBS_PER_TURN 256u

/* Has the step run again in the next turn. Returns DV_CLAIM_STEP_GOES_ON. */
enum dv_claim_progress dv_claim_go_on_next_turn(struct dv_claim_operation *operation);
/* Sets the operation to its first step; the caller fills in its jobs. */
void dv_claim_operation_init(struct dv_claim_manager *claims, struct dv_claim_operation *operation,
                             enum dv_claim_operation_kind kind);
/* Allocates this many jobs. */
void dv_claim_operation_set_jobs(struct dv_claim_operation *operation, size_t n_jobs);
/* Has the job be about this claim; copies all of it. */
void dv_claim_job_set(struct dv_claim_job *job, dv_str namespace, dv_str name, dv_str uid);
/* Runs the operation's step soon, after the caller has returned. */
void dv_claim_operation_start(struct dv_claim_operation *operation);
/* Ends a step that has returned DV_CLAIM_STEP_GOES_ON; err: NULL when it went well. */
void dv_claim_step_ended(struct dv_claim_operation *operation, const struct dv_err *err);
/* Whether the operation asks drivers to prepare; otherwise to unprepare. */
bool dv_claim_operation_is_prepare(const struct dv_claim_operation *operation);
bool dv_claim_operation_is_waiting(const struct dv_claim_operation *operation);

/* claim_wait.c: operations that wait. */

bool dv_claim_may_wait(const struct dv_claim_operation *operation);
/* Has the step run again when no operation holds the claim any more (NULL: when a driver comes), or
 * when it may not wait any longer. Sets operation->awaited. Returns DV_CLAIM_STEP_GOES_ON. */
enum dv_claim_progress dv_claim_wait(struct dv_claim_operation *operation, struct dv_claim *claim);
/* Whether the driver is connected, or need not be waited for; otherwise the step waits for it. */
enum dv_claim_progress dv_claim_await_driver(struct dv_claim_operation *operation, dv_str driver,
                                             struct dv_err *err);
void dv_claim_stop_waiting(struct dv_claim_operation *operation);
/* Others that want the claim wait until dv_claim_let_go. */
void dv_claim_hold(struct dv_claim_job *job, struct dv_claim *claim);
void dv_claim_let_go(struct dv_claim_job *job); /* one that is not held is fine */
/* To be called when a driver has come: operations that wait for one look again. */
void dv_claim_manager_wake(struct dv_claim_manager *claims);

/* claim_call.c: all drivers of an operation. */

/* Calls the drivers of all claims that are held, at the same time. */
dv_claim_step_fn dv_claim_call_drivers;
/* The first failure among the drivers of this claim; NULL: none has failed. */
const struct dv_err *dv_claim_call_failure(const struct dv_claim_operation *operation,
                                           const struct dv_claim *claim);
void dv_claim_cancel_calls(struct dv_claim_operation *operation);
/* claim_batch.c calls this at the end of a batch, whose `err` tells how it went. */
void dv_claim_batch_ended(struct dv_claim_batch *batch);

/* claim_prepare.c */
dv_claim_step_fn dv_claim_prepare_list;
dv_claim_step_fn dv_claim_prepare_fetch;
void dv_claim_prepare_cancel_fetch(struct dv_claim_operation *operation);
dv_claim_step_fn dv_claim_prepare_check;
dv_claim_step_fn dv_claim_prepare_await;
dv_claim_step_fn dv_claim_prepare_reserve;
dv_claim_step_fn dv_claim_prepare_hold;
dv_claim_step_fn dv_claim_prepare_call;
dv_claim_step_fn dv_claim_prepare_answer;
/* Claims that were to be prepared when davitd or the machine went down: there is no pod to ask for
 * them, and the record is all that is known. */
dv_claim_step_fn dv_claim_again_await;
dv_claim_step_fn dv_claim_again_hold;

/* claim_unprepare.c */
dv_claim_step_fn dv_claim_unprepare_list;
dv_claim_step_fn dv_claim_unprepare_await;
dv_claim_step_fn dv_claim_unprepare_hold;
dv_claim_step_fn dv_claim_unprepare_answer;
/* A release by force, which asks no driver. */
dv_claim_step_fn dv_claim_release_list;
dv_claim_step_fn dv_claim_release_await;

/* claim_batch.c */
/* Calls the driver; dv_claim_batch_ended follows, never from within. */
void dv_claim_batch_start(struct dv_claim_batch *batch);
void dv_claim_batch_cancel(struct dv_claim_batch *batch);
void dv_claim_batch_fini(struct dv_claim_batch *batch);
/* The method of the call that is under way, "NodePrepareResources". */
dv_str dv_claim_batch_method(const struct dv_claim_batch *batch);

/* chores.c */
/* Notes how the drivers answered for the claim, for the pauses of chores; err: NULL when all went
 * well. */
void dv_claim_answered(struct dv_claim_manager *claims, struct dv_claim *claim, bool is_prepare,
                       const struct dv_err *err);
void dv_claim_chores_stop(struct dv_claim_manager *claims);
bool dv_claim_chores_are_idle(const struct dv_claim_manager *claims);

#endif
