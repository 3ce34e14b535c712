/* cluster_operation.h - one request under way, or a change that the engine makes by itself.
 *
 * An op takes its turn at a name: while it holds the name, no other looks at it or writes it. It
 * then runs: looks at what is stored, and ends in an answer, a failure, or a write. A write gives
 * the change its version, and the name is free again when the store has answered. So every write
 * is based on what is durable, and versions are in the order of the commits. */
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
struct dv_op;

/* A change of the object: what it becomes (NULL: it goes), and the version of that. */
struct dv_step {
    struct dv_object *now;
    uint64_t version;
};

/* A pod that goes is first changed to say so: two changes, one write. */
#define DV_OP_N_STEPS 2u

/* What a change comes to (change.c): all that can be made before the object has its version. */
struct dv_result {
    void *value;            /* NULL: there is none */
    bool is_new;            /* there was no object */
    bool is_end;            /* the object goes */
    bool is_same;           /* nothing has changed */
    struct dv_object *made; /* with room for its version; NULL: not made yet */
    struct dv_buf text;     /* of `made`, for the store; max 0: not made yet */
    bool is_unreadable;     /* that text, by `err` */
    struct dv_err err;
};

struct dv_op {
    struct dv_embedded *embedded;
    struct dv_request *request; /* NULL: the engine's own, or given up by its caller */
    struct dv_op *parent;       /* whose request it serves too; NULL: none */
    struct dv_link link;        /* among those that wait, or that are told next */
    struct dv_entry *entry;     /* that it waits for or holds; NULL: none */
    /* With the name held. True: it is writing. False: it has ended (dv_op_answer, dv_op_fail). */
    bool (*run)(struct dv_op *op);
    void (*done)(struct dv_op *op); /* of the engine's own; NULL: nobody cares */
    void *ctx;                      /* for `done` */
    struct dv_arena *arena;         /* for what it makes; until it has been told */
    const struct dv_api_delete_options *delete_options;

    /* While a worker computes it (cluster_work.c), `run` ends in a result instead of a write, and
     * nothing of the engine is looked at but what the op has here. */
    bool is_computable; /* by a worker, when it is large */
    bool is_computing;
    bool is_given_up; /* by its caller meanwhile */
    struct dv_work work;
    struct dv_time now;
    struct dv_object *space;  /* the namespace it goes into; a reference; NULL: none */
    struct dv_object *answer; /* what is stored; borrowed from the entry that is held */
    /* What `run` goes on with once `value` has been admitted, and what it needs for that. */
    bool (*next)(struct dv_op *op, void *value);
    void *value;
    const struct dv_managed_fields *managed; /* of an apply; NULL: by this request */
    dv_str sent_version;
    struct dv_result result;

    struct dv_step steps[DV_OP_N_STEPS];
    size_t n_steps;
    struct dv_store_write write;
    bool has_ended;

    const struct dv_api_status *failure; /* NULL: none */
    struct dv_object *object;            /* the answer; a reference */
    struct dv_object **objects;          /* of a collection; references */
    size_t n_objects;
    const dv_str *warnings;
    size_t n_warnings;
    bool is_dry_run;
    bool is_created;
    bool is_removed;
};

/* For a request, or (NULL) for the engine itself. */
struct dv_op *dv_op_new(struct dv_embedded *embedded, struct dv_request *request);
/* Waits for its turn at the name; then `run`. */
void dv_op_start(struct dv_op *op, const struct dv_kind *kind, dv_str space, dv_str name,
                 bool (*run)(struct dv_op *op));
/* Now, in whole seconds; for a worker, when it began. */
struct dv_time dv_op_now(const struct dv_op *op);
/* That `text`, of the object that is written, can be read again; where it is worth the time. */
DV_CHECKED bool dv_op_check_text(struct dv_op *op, dv_str text, struct dv_err *err);
/* cluster_work.c: hands the op to a worker, when it is large; false: it is not. */
bool dv_op_work(struct dv_op *op);
/* The worker is through with the op that holds `entry`: it is writing, or ends now. */
void dv_op_worked(struct dv_op *op, struct dv_entry *entry, bool is_writing);
/* Out of the list that it waits in: nothing has happened yet. */
void dv_op_leave(struct dv_op *op);
bool dv_op_is_waiting(const struct dv_op *op);
/* Its caller is told next. */
bool dv_op_has_ended(const struct dv_op *op);

/* How an op ends. These return false, so that `run` can end with them. */
bool dv_op_fail(struct dv_op *op, const struct dv_api_status *failure);
/* With `object`, of which it takes a reference; NULL: with op->object as it is. */
bool dv_op_answer(struct dv_op *op, struct dv_object *object);

/* What a write is made of: first the steps, in order, then the write. */
/* The object will be `value`, whose metadata gets the version. Returns it, borrowed. */
struct dv_object *dv_op_put(struct dv_op *op, void *value);
/* The object will be gone. Returns the version of that. */
uint64_t dv_op_remove(struct dv_op *op);
/* Hands the steps to the store. What is answered must be set. False: it is too large, and has
 * ended. */
bool dv_op_write(struct dv_op *op);
/* Hands the object to the store as it is: nothing changes but the store. */
bool dv_op_rewrite(struct dv_op *op);

#endif
