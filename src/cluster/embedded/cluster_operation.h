/* cluster_operation.h - one request under way, or a change that the engine makes by itself.
 *
 * An operation takes its turn at a name: while it holds the name, no other looks at it or writes
 * it. It then runs: looks at what is stored, and ends in an answer, a failure, or a write. A write
 * gives the change its version, and the name is free again when the store has answered. So every
 * write is based on what is durable, and versions are in the order of the commits.
 *
 * Between the turns of the loop it waits for something, and goes on with one of its functions. In
 * the order of a CREATE (W: computed by a worker when the operation is given to one):
 *
 *     waits for               goes on with    what that does
 *     the name                run             W  create.c: the value, its defaults
 *                             -               admitted (dv_change_admit)
 *     who may change it       after_answer    on_mutated: admitted again, asked once more
 *     the worker, or nothing  after_judging,  W  create_admitted: checked, operation->result
 *                             `next` when nobody was asked
 *     who has the last word   after_answer    on_judged
 *     nothing                 after_judging   commit_judged: quotas, versions, the write
 *     the store               on_written      memory, views, watchers; the name is free
 *     the next task           done            the request's, or the operation's own
 *
 * `next` is what the worker's end goes on with. A question that may take long lets the name go:
 * `resume` goes on when it is held again, with `run` when others have written meanwhile. */
#ifndef DV_CLUSTER_OPERATION_H
#define DV_CLUSTER_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "store/store.h"

struct dv_api_delete_options;
struct dv_api_status;
struct dv_arena;
struct dv_embedded;
struct dv_entry;
struct dv_kind;
struct dv_managed_fields;
struct dv_object;
struct dv_cluster_operation;
struct dv_custom;

/* One change of the object: what it becomes (NULL: it goes), and the version of the change. */
struct dv_step {
    struct dv_object *now;
    uint64_t version;
};

/* A pod that goes is first changed to say why: two changes in one write. */
#define DV_CLUSTER_OPERATION_N_STEPS 2u

/* The result of a change (change.c): all that can be made before the object gets its version. */
struct dv_result {
    void *value;            /* NULL: there is none */
    bool is_new;            /* there was no object */
    bool is_end;            /* the object goes */
    bool is_same;           /* nothing has changed */
    struct dv_object *made; /* with room for its version; NULL: not made yet */
    struct dv_buf row;      /* of `made`, for the store; max 0: not made yet */
    bool is_unreadable;     /* the row cannot be read back; `err` says why */
    struct dv_err err;
};

struct dv_cluster_operation {
    struct dv_embedded *embedded;
    struct dv_request *request; /* NULL: the engine's own, or given up by its caller */
    /* The operation whose request it serves, too (DELETE_COLLECTION); NULL: none. */
    struct dv_cluster_operation *parent;
    /* Its place in the list of those that wait for the name, or of those that are told next. */
    struct dv_link link;
    struct dv_entry *entry; /* the name that it waits for or holds; NULL: none */
    struct dv_entry *left;  /* the name that it has let go, and will wait for again */
    /* What was stored when its turn came; a reference, so that entry->object has its value while
     * the name is held; NULL: nothing. */
    struct dv_object *stored;
    /* Runs with the name held, on the loop or (is_computing) on a worker. On the loop, true: a
     * write is under way, and the name stays held until it is done; false: the operation has ended,
     * by dv_cluster_operation_answer or dv_cluster_operation_fail. On a worker what it returns does
     * not count: the end, or what is to be admitted or written, is noted in the operation, and
     * on_computed of cluster_work.c goes on with that on the loop. */
    bool (*run)(struct dv_cluster_operation *operation);
    /* Instead of `run`, when it has the name again that it had let go (cluster_judge.c). */
    bool (*resume)(struct dv_cluster_operation *operation);
    unsigned n_tries; /* how often it has begun anew, because others had written meanwhile */
    bool has_let_go;
    /* For the engine's own operations; NULL: nobody waits for it. */
    void (*done)(struct dv_cluster_operation *operation);
    void *ctx; /* for `done` */
    /* Has what the operation makes, until its caller has been told. */
    struct dv_arena *arena;
    const struct dv_api_delete_options *delete_options;

    /* While a worker computes it (cluster_work.c), `run` ends in a result instead of a write, and
     * nothing of the engine is looked at but what the operation has here. */
    bool is_computable; /* a worker may compute it, when it is large */
    bool is_computing;
    bool is_given_up; /* its caller has cancelled it meanwhile */
    struct dv_work work;
    struct dv_time now;
    /* The definition of the object's kind; a reference, or NULL: the kind is built in, or gone. */
    struct dv_custom *custom;
    /* The namespace that the object is created in; a reference, or NULL. */
    struct dv_object *namespace;
    /* The account of a pod that is created; a reference, or NULL: it is not there yet. */
    struct dv_object *account;
    bool takes_account; /* the pod gets what its account says */
    dv_str address;     /* what a service gets; empty: nothing */
    /* The RuntimeClass of a pod that is created; a reference, or NULL: it names none. */
    struct dv_object *class;
    /* The PriorityClass of a pod that is created; a reference, or NULL: it has none. */
    struct dv_object *priority;
    bool takes_priority;      /* the pod gets what its class says */
    bool takes_class;         /* it is a pod that was looked at for one */
    struct dv_object *answer; /* what is stored; borrowed from the entry that is held */
    /* For a worker: what goes on with `value`, on the worker, or on the loop once it has been
     * admitted. NULL: `run` begins. */
    bool (*next)(struct dv_cluster_operation *operation, void *value);
    void *value;
    /* The owners of fields after an apply; NULL: set them by this request. */
    const struct dv_managed_fields *managed;
    dv_str sent_version;
    struct dv_result result;

    /* What who serves the request says of the write (cluster_judge.c). */
    struct dv_judging judging;
    /* What is done with an answer; NULL: nobody is asked. */
    bool (*after_answer)(struct dv_cluster_operation *operation, void *value);
    /* What follows when there is nothing more to ask about the value. */
    bool (*after_judging)(struct dv_cluster_operation *operation, void *value);
    bool is_judged; /* it was asked, and has no objection */

    struct dv_step steps[DV_CLUSTER_OPERATION_N_STEPS];
    size_t n_steps;
    struct dv_store_write write;
    bool has_ended;

    const struct dv_api_status *failure; /* NULL: none */
    struct dv_object *object;            /* the answer; a reference */
    struct dv_object **objects;          /* of a collection; references */
    size_t n_objects;
    const struct dv_api_token_request *token; /* in the arena */
    const dv_str *warnings;
    size_t n_warnings;
    /* Its object counts for quotas though it is not stored yet (namespace_quota.c). */
    bool is_counted;
    struct dv_object *quota_old; /* a reference: what a pod was before it moved to other quotas */
    struct dv_link quota_link;
    bool is_dry_run;
    bool is_created;
    bool is_removed;
    bool is_evicted; /* it deletes a pod that a budget lets go: that one counts as gone already */
};

/* For a request, or (NULL) for the engine itself. */
struct dv_cluster_operation *dv_cluster_operation_new(struct dv_embedded *embedded,
                                                      struct dv_request *request);
/* Waits for its turn at the name, then calls `run`. */
void dv_cluster_operation_start(struct dv_cluster_operation *operation, const struct dv_kind *kind,
                                dv_str namespace, dv_str name,
                                bool (*run)(struct dv_cluster_operation *operation));
/* The time in whole seconds; for a worker the time when it began. */
struct dv_time dv_cluster_operation_now(const struct dv_cluster_operation *operation);
/* Checks that `row`, of the object that is written, can be read back, where that is worth the
 * time. */
DV_CHECKED bool dv_cluster_operation_check_row(struct dv_cluster_operation *operation, dv_str row,
                                               struct dv_err *err);
/* cluster_work.c: hands the operation to a worker, when it is large; false: it is not. */
bool dv_cluster_operation_work(struct dv_cluster_operation *operation);
/* The worker has ended for the operation that holds `entry`: a write is under way, or the operation
 * ends now. */
void dv_cluster_operation_worked(struct dv_cluster_operation *operation, struct dv_entry *entry,
                                 bool is_writing);
/* cluster_work.c: goes on with `next`, on a worker when the operation is computed by one. Returns
 * what `run` returns. */
bool dv_cluster_operation_compute(struct dv_cluster_operation *operation, void *value,
                                  bool (*next)(struct dv_cluster_operation *operation,
                                               void *value));
/* Lets the name go, from within `run`, which has to return true then: others have their turn. */
void dv_cluster_operation_let_go(struct dv_cluster_operation *operation);
/* Waits for the name that was let go, and goes on with `resume`. */
void dv_cluster_operation_take_again(struct dv_cluster_operation *operation,
                                     bool (*resume)(struct dv_cluster_operation *operation));
/* Whether others have written since the operation had its turn first. */
bool dv_cluster_operation_is_late(const struct dv_cluster_operation *operation);
/* Begins anew with what is stored now. Returns what `run` returns. */
bool dv_cluster_operation_again(struct dv_cluster_operation *operation);
/* Takes the operation out of the list that it waits in: nothing has happened yet. */
void dv_cluster_operation_leave(struct dv_cluster_operation *operation);
bool dv_cluster_operation_is_waiting(const struct dv_cluster_operation *operation);
/* Whether it has ended, and its caller is told next. */
bool dv_cluster_operation_has_ended(const struct dv_cluster_operation *operation);

/* These end an operation. They return false, so that `run` can return what they return. */
bool dv_cluster_operation_fail(struct dv_cluster_operation *operation,
                               const struct dv_api_status *failure);
/* Ends with an answer: `object`, of which it takes a reference; NULL: operation->object as it is.
 */
bool dv_cluster_operation_answer(struct dv_cluster_operation *operation, struct dv_object *object);

/* A write: first its steps in order, then dv_cluster_operation_write. */
/* Adds the step by which the object becomes `value`, whose metadata gets the version. Returns the
 * new object, borrowed. */
struct dv_object *dv_cluster_operation_put(struct dv_cluster_operation *operation, void *value);
/* Adds the step by which the object goes. Returns the version of that. */
uint64_t dv_cluster_operation_remove(struct dv_cluster_operation *operation);
/* Hands the steps to the store. The answer must be set before. False: the object is too large, and
 * the operation has ended. */
bool dv_cluster_operation_write(struct dv_cluster_operation *operation);
/* Writes the object to the store as it is in memory: nothing changes but the store. */
bool dv_cluster_operation_rewrite(struct dv_cluster_operation *operation);

#endif
