/* op.h - one request under way, or a change that the engine makes by itself.
 *
 * An op takes its turn at a name: while it holds the name, no other looks at it or writes it. It
 * then runs: looks at what is stored, and ends in an answer, a failure, or a write. A write gives
 * the change its version, and the name is free again when the store has answered. So every write
 * is based on what is durable, and versions are in the order of the commits. */
#ifndef DV_CLUSTER_OP_H
#define DV_CLUSTER_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "store/store.h"

struct dv_api_delete_options;
struct dv_api_status;
struct dv_arena;
struct dv_embedded;
struct dv_entry;
struct dv_kind;
struct dv_object;
struct dv_op;

/* A change of the object: what it becomes (NULL: it goes), and the version of that. */
struct dv_step {
    struct dv_object *now;
    uint64_t version;
};

/* A pod that goes is first changed to say so: two changes, one write. */
#define DV_OP_N_STEPS 2u

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
