/* claims.h - what the effects files of this module share. */
#ifndef DV_CLAIM_CLAIMS_H
#define DV_CLAIM_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "cluster/cluster.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "store/store_saver.h"

struct dv_arena;
struct dv_object;

/* A driver's socket, and our connection to it. */
struct dv_instance {
    struct dv_dra_instance base;
    struct dv_claims *claims;
    struct dv_channel *channel;
    struct dv_link link; /* in the manager's list, until the channel is closed */
    struct dv_call health_call;
    struct dv_timer health_timer;
    bool is_watching; /* health_call runs */
    bool is_closing;
    char text[];
};

/* What is still to be finished, by us. */
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
    bool is_asked; /* while items are left: look again after them */
};

struct dv_claims {
    struct dv_loop *loop;
    struct dv_claims_options options;
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
void dv_claims_tell_changed(struct dv_claims *claims);
/* The sum for all its drivers. */
uint64_t dv_claim_epoch(const struct dv_claims *claims, const struct dv_claim *claim);
/* Whenever something that a closing manager waits for is gone. */
void dv_claims_check_closed(struct dv_claims *claims);

/* claim_saver.c */
void dv_claims_init_saver(struct dv_claims *claims);
/* Something changed that nobody waits for: it is written with the next. */
void dv_claims_save_later(struct dv_claims *claims);

/* instance.c */
struct dv_instance *dv_instance_open(struct dv_claims *claims, const struct dv_plugin_info *info,
                                     enum dv_dra_service service, struct dv_err *err);
void dv_instance_close(struct dv_instance *instance);

/* wipe.c */
/* After every change of a driver's instances or their connections. */
void dv_claims_evaluate(struct dv_claims *claims, dv_str driver);
void dv_claims_wipe_node(struct dv_claims *claims);
void dv_claims_stop_wiping(struct dv_claims *claims);

/* ---- operations ---- */

/* One claim of an operation. */
struct dv_claim_job {
    struct dv_claim_operation *operation;
    struct dv_claim_ref ref;
    struct dv_request request;
    struct dv_object *object;
    struct dv_err err;
    dv_str space;
    dv_str name;
    dv_str uid;             /* unprepare: of the record */
    struct dv_claim *claim; /* held: it is ours until the end; NULL: it is not */
    bool ignores_pods;      /* whoever uses it */
};

/* One driver of an operation, and its claims. */
struct dv_claim_batch {
    struct dv_claim_operation *operation;
    dv_str driver;
    struct dv_claim **claims;
    size_t n_claims;
    struct dv_instance *instance; /* while it is called */
    enum dv_dra_service service;
    struct dv_call call;
    struct dv_buf message;
    size_t at; /* of claims, with the services that take one a call */
    uint64_t asked_ns;
    bool is_calling;
    struct dv_task task;
    struct dv_err err; /* code DV_OK: it has gone well */
};

/* claim_operation.c */
/* Makes it an operation; its jobs are the caller's to fill in. */
void dv_claim_operation_begin(struct dv_claims *claims, struct dv_claim_operation *operation,
                              enum dv_claim_operation_kind kind);
/* Room for so many. */
void dv_claim_operation_set_jobs(struct dv_claim_operation *operation, size_t n_jobs);
void dv_claim_operation_start(struct dv_claim_operation *operation);
/* The end; err: NULL when all went well. The operation is gone. */
void dv_claim_operation_finish(struct dv_claim_operation *operation, const struct dv_err *err);
bool dv_claim_operation_may_wait(const struct dv_claim_operation *operation);
/* Looks again when a driver comes, or when nothing is under way any more for the claim; or when it
 * may not wait any longer. operation->awaited is set. */
void dv_claim_operation_wait(struct dv_claim_operation *operation, struct dv_claim *claim);
void dv_claim_operation_hold(struct dv_claim_job *job, struct dv_claim *claim);
void dv_claim_operation_let_go(struct dv_claim_job *job);
/* Whether the driver is there, or need not be waited for. False: the operation waits, or has
 * failed. */
bool dv_claim_operation_need_driver(struct dv_claim_operation *operation, dv_str driver);
/* Saves, then goes on with the step after this one. */
void dv_claim_operation_save(struct dv_claim_operation *operation, enum dv_claim_step step);
/* Calls the drivers of all claims that are held, then goes on. */
void dv_claim_operation_call(struct dv_claim_operation *operation);
/* Drivers have come: those that wait for one look again. */
void dv_claims_wake(struct dv_claims *claims);

/* claim_prepare.c */
void dv_claim_prepare_begin(struct dv_claim_operation *operation);
void dv_claim_prepare_look(struct dv_claim_operation *operation);
void dv_claim_prepare_recorded(struct dv_claim_operation *operation);
void dv_claim_prepare_called(struct dv_claim_operation *operation);

/* unprepare.c */
void dv_claim_unprepare_begin(struct dv_claim_operation *operation);
void dv_claim_unprepare_look(struct dv_claim_operation *operation);
void dv_claim_unprepare_recorded(struct dv_claim_operation *operation);
void dv_claim_unprepare_called(struct dv_claim_operation *operation);

/* claim_batch.c */
/* `dv_claim_batch_ended` follows, never from within. */
void dv_claim_batch_start(struct dv_claim_batch *batch);
void dv_claim_batch_cancel(struct dv_claim_batch *batch);
void dv_claim_batch_fini(struct dv_claim_batch *batch);
/* "NodePrepareResources", of the call that is under way. */
dv_str dv_claim_batch_method(const struct dv_claim_batch *batch);
/* claim_operation.c: its err tells how. */
void dv_claim_batch_ended(struct dv_claim_batch *batch);

/* chores.c */
void dv_claim_chores_look(struct dv_claims *claims);
/* How the drivers' answers for it were; err: NULL when they were good. */
void dv_claim_answered(struct dv_claims *claims, struct dv_claim *claim, bool is_prepare,
                       const struct dv_err *err);
void dv_claim_chores_stop(struct dv_claims *claims);
bool dv_claim_chores_are_idle(const struct dv_claims *claims);

#endif
