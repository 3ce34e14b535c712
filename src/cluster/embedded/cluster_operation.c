/* cluster_operation.c - operations: a request, or a change that the engine makes by itself, from
 * its start to the answer. Operations on one name take turns; one that writes holds the name until
 * the store has answered, then memory follows, views and watchers are told, and the caller is told
 * last, in the next turn. The life is described in cluster_operation.h. */
#include "cluster/embedded/cluster_operation.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "cluster/embedded/engine.h"
#include "cluster/embedded/namespace_quota.h"
#include "cluster/objects/collection.h"
#include "cluster/objects/readback.h"
#include "loop/loop.h"
#include "resource/custom.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/status.h"

/* How many operations may wait for one name. Writers of one object wait for each other; more than
 * this is not work but a client in a loop. */
#define N_WAITING_MAX 1000u
/* How many operations may be under way all together: each holds memory, and an answer of 429 is
 * better than running out of it. */
#define N_OPS_MAX 20000u
/* A buffer for rows that had to grow beyond this gives its memory back. */
#define ROW_KEPT_BYTES_MAX (64u * 1024u)

/* ---- ends ---- */

static void op_free(struct dv_cluster_operation *operation)
{
    struct dv_embedded *embedded = operation->embedded;

    dv_object_unref(operation->object);
    dv_object_unref(operation->stored);
    dv_custom_unref(operation->custom);
    dv_object_unref(operation->namespace);
    dv_object_unref(operation->account);
    dv_object_unref(operation->class);
    dv_object_unref(operation->priority);
    dv_object_unref(operation->result.made);
    dv_object_unref(operation->quota_old);
    dv_buf_fini(&operation->result.row);
    for (size_t i = 0; i < operation->n_objects; i++)
        dv_object_unkeep(operation->objects[i]);
    for (size_t i = 0; i < operation->n_steps; i++)
        dv_object_unref(operation->steps[i].now);
    dv_loop_free_arena(embedded->cluster.loop, operation->arena);
    free(operation);
    embedded->n_ops--;
}

static void tell_request(struct dv_cluster_operation *operation)
{
    struct dv_request *request = operation->request;

    request->object = operation->object;
    request->objects = operation->objects;
    request->n_objects = operation->n_objects;
    request->token = operation->token;
    request->is_created = operation->is_created;
    request->is_removed = operation->is_removed;
    request->warnings = operation->warnings;
    request->n_warnings = operation->n_warnings;
    request->priv = NULL;
    request->done(request, operation->failure);
}

static void tell(struct dv_task *task)
{
    struct dv_embedded *embedded = DV_CONTAINER(task, struct dv_embedded, tell);
    struct dv_list now;
    struct dv_link *link;

    dv_list_init(&now);
    dv_list_move_all(&now, &embedded->answers);
    while ((link = dv_list_shift(&now)) != NULL) {
        struct dv_cluster_operation *operation =
            DV_CONTAINER(link, struct dv_cluster_operation, link);

        if (operation->request)
            tell_request(operation);
        else if (operation->done)
            operation->done(operation);
        op_free(operation);
    }
    dv_engine_close_when_idle(embedded);
}

static void end(struct dv_cluster_operation *operation)
{
    struct dv_embedded *embedded = operation->embedded;

    if (operation->is_counted)
        dv_quota_settle(operation);
    operation->entry = NULL;
    operation->has_ended = true;
    dv_list_push(&embedded->answers, &operation->link);
    dv_task_post(&embedded->tell, embedded->cluster.loop, tell);
}

bool dv_cluster_operation_fail(struct dv_cluster_operation *operation,
                               const struct dv_api_status *failure)
{
    operation->failure = failure;
    if (!operation->is_computing)
        end(operation);
    return false;
}

bool dv_cluster_operation_answer(struct dv_cluster_operation *operation, struct dv_object *object)
{
    if (operation->is_computing) {
        operation->answer = object;
        return false;
    }
    if (object)
        operation->object = dv_object_ref(object);
    end(operation);
    return false;
}

/* ---- turns ---- */

/* Whether the operation holds the name or has let it go; false: it has ended. */
static bool take_turn(struct dv_cluster_operation *operation, struct dv_entry *entry)
{
    bool (*resume)(struct dv_cluster_operation *) = operation->resume;

    entry->operation = operation;
    if (resume) {
        operation->resume = NULL;
        return resume(operation);
    }
    operation->stored = entry->object ? dv_object_ref(entry->object) : NULL;
    return dv_cluster_operation_work(operation) || operation->run(operation);
}

/* Lets those who wait for the name have their turn, until one of them writes or is handed to a
 * worker. */
static void run_waiting(struct dv_entry *entry)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&entry->waiting)) != NULL) {
        entry->n_waiting--;
        if (take_turn(DV_CONTAINER(link, struct dv_cluster_operation, link), entry) &&
            entry->operation)
            return;
        entry->operation = NULL;
    }
    if (!entry->object && entry->n_waiting == 0)
        dv_collection_drop(entry);
}

void dv_cluster_operation_worked(struct dv_cluster_operation *operation, struct dv_entry *entry,
                                 bool is_writing)
{
    if (is_writing && entry->operation)
        return;
    if (!is_writing && !operation->has_ended)
        end(operation);
    entry->operation = NULL;
    run_waiting(entry);
}

/* ---- names that are let go for a while ---- */

/* An operation begins anew so often when others write meanwhile, as the reference's requests do. */
#define N_ANEW_MAX 5u

void dv_cluster_operation_let_go(struct dv_cluster_operation *operation)
{
    struct dv_entry *entry = operation->entry;

    operation->left = entry;
    operation->entry = NULL;
    operation->has_let_go = true;
    entry->n_waiting++; /* so that it stays: values refer to its texts */
    entry->operation = NULL;
}

void dv_cluster_operation_take_again(struct dv_cluster_operation *operation,
                                     bool (*resume)(struct dv_cluster_operation *operation))
{
    struct dv_entry *entry = operation->left;

    operation->left = NULL;
    operation->entry = entry;
    operation->resume = resume;
    dv_list_push(&entry->waiting, &operation->link);
    if (!entry->operation)
        run_waiting(entry);
}

bool dv_cluster_operation_is_late(const struct dv_cluster_operation *operation)
{
    const struct dv_object *now = operation->entry->object;
    const struct dv_object *then = operation->stored;

    return now && then ? now->version != then->version : now != then;
}

/* Gives back what was found out in an attempt. */
static void forget_attempt(struct dv_cluster_operation *operation)
{
    struct dv_object **found[] = {&operation->stored,   &operation->namespace,
                                  &operation->account,  &operation->class,
                                  &operation->priority, &operation->result.made};

    for (size_t i = 0; i < DV_COUNT(found); i++) {
        dv_object_unref(*found[i]);
        *found[i] = NULL;
    }
    dv_buf_fini(&operation->result.row);
    operation->result = (struct dv_result){0};
    operation->managed = NULL;
    operation->warnings = NULL;
    operation->n_warnings = 0;
    operation->is_judged = false;
}

bool dv_cluster_operation_again(struct dv_cluster_operation *operation)
{
    struct dv_entry *entry = operation->entry;
    const struct dv_status_about about = {.kind = entry->collection->kind,
                                          .name = dv_entry_name(entry)};

    if (++operation->n_tries >= N_ANEW_MAX)
        return dv_cluster_operation_fail(
            operation, dv_status_conflict(&about, operation->arena,
                                          "the object has been modified; please apply your "
                                          "changes to the latest version and try again"));
    forget_attempt(operation);
    operation->stored = entry->object ? dv_object_ref(entry->object) : NULL;
    return dv_cluster_operation_work(operation) || operation->run(operation);
}

struct dv_time dv_cluster_operation_now(const struct dv_cluster_operation *operation)
{
    return operation->is_computing ? operation->now : dv_engine_now(operation->embedded);
}

struct dv_cluster_operation *dv_cluster_operation_new(struct dv_embedded *embedded,
                                                      struct dv_request *request)
{
    struct dv_cluster_operation *operation = DV_ALLOC(struct dv_cluster_operation);

    operation->embedded = embedded;
    operation->request = request;
    operation->arena = dv_arena_new();
    if (request) {
        operation->delete_options = request->delete_options;
        operation->is_dry_run = request->is_dry_run;
        request->priv = operation;
    }
    embedded->n_ops++;
    return operation;
}

void dv_cluster_operation_start(struct dv_cluster_operation *operation, const struct dv_kind *kind,
                                dv_str namespace, dv_str name,
                                bool (*run)(struct dv_cluster_operation *operation))
{
    struct dv_embedded *embedded = operation->embedded;
    struct dv_entry *entry;

    /* Only requests are refused: the engine's own operations are few, and nobody would try them
     * again. */
    if (operation->request && embedded->n_ops > N_OPS_MAX) {
        (void)dv_cluster_operation_fail(
            operation, dv_status_too_many_requests(1, operation->arena,
                                                   "too many requests, please try again"));
        return;
    }
    entry = dv_collection_take(dv_engine_collection(embedded, kind), namespace, name);
    if (!entry) {
        (void)dv_cluster_operation_fail(
            operation, dv_status_bad_request(operation->arena, "the name is too long"));
        return;
    }
    if (operation->request && entry->n_waiting >= N_WAITING_MAX) {
        (void)dv_cluster_operation_fail(
            operation,
            dv_status_too_many_requests(1, operation->arena, "too many requests for %.*s \"%.*s\"",
                                        DV_FMT(kind->plural), DV_FMT(name)));
        return;
    }
    operation->entry = entry;
    operation->run = run;
    if (dv_kind_is_custom(kind) && kind->custom && !operation->custom)
        operation->custom = dv_custom_ref(kind->custom);
    dv_list_push(&entry->waiting, &operation->link);
    entry->n_waiting++;
    if (!entry->operation)
        run_waiting(entry);
}

bool dv_cluster_operation_is_waiting(const struct dv_cluster_operation *operation)
{
    return operation->entry && operation->entry->operation != operation;
}

void dv_cluster_operation_leave(struct dv_cluster_operation *operation)
{
    dv_link_remove(&operation->link);
    if (!operation->entry)
        return;
    /* Somebody else holds the name, and goes on with those who wait. */
    assert(dv_cluster_operation_is_waiting(operation));
    operation->entry->n_waiting--;
    operation->entry = NULL;
}

bool dv_cluster_operation_has_ended(const struct dv_cluster_operation *operation)
{
    return operation->has_ended;
}

/* ---- writes ---- */

/* Makes the row of an object in the buffer that all writes share. False: it is too large. */
static bool encode_row(struct dv_embedded *embedded, const struct dv_object *object)
{
    struct dv_buf *buf = &embedded->row;

    if (buf->size > ROW_KEPT_BYTES_MAX)
        dv_buf_fini(buf);
    buf->max = DV_STORE_VALUE_BYTES_MAX;
    dv_buf_clear(buf);
    dv_encode_row(object, buf);
    return !buf->is_over;
}

static struct dv_step *add_step(struct dv_cluster_operation *operation)
{
    struct dv_step *step = &operation->steps[operation->n_steps++];

    assert(operation->n_steps <= DV_CLUSTER_OPERATION_N_STEPS);
    step->version = ++operation->embedded->last_version;
    return step;
}

/* A new object of the value: with its row, if it may be packed later. One that is too large for the
 * store has none, and is refused when it is to be written. */
static struct dv_object *new_object(struct dv_embedded *embedded, const struct dv_kind *kind,
                                    void *value, uint64_t version)
{
    const struct dv_object whole = {
        .kind = kind, .meta = dv_meta_of(value), .value = value, .version = version};

    if (!dv_engine_is_packed(kind) || !encode_row(embedded, &whole))
        return dv_object_new(kind, value);
    return dv_object_pool_add(embedded->pool, kind, value, dv_buf_str(&embedded->row));
}

struct dv_object *dv_cluster_operation_put(struct dv_cluster_operation *operation, void *value)
{
    struct dv_step *step = add_step(operation);

    if (operation->result.made) {
        step->now = operation->result.made;
        operation->result.made = NULL;
        dv_object_set_version(step->now, step->version);
        return step->now;
    }
    dv_meta_of(value)->resource_version = dv_engine_version_text(step->version, operation->arena);
    step->now =
        new_object(operation->embedded, operation->entry->collection->kind, value, step->version);
    return step->now;
}

uint64_t dv_cluster_operation_remove(struct dv_cluster_operation *operation)
{
    operation->is_removed = true;
    return add_step(operation)->version;
}

static void on_written(struct dv_store_write *write, const struct dv_err *err)
{
    struct dv_cluster_operation *operation =
        DV_CONTAINER(write, struct dv_cluster_operation, write);
    struct dv_entry *entry = operation->entry;

    if (err) {
        struct dv_err own = *err;

        (void)dv_wrap(&own, "cannot store %.*s %.*s", DV_FMT(entry->collection->kind->singular),
                      DV_FMT(dv_entry_key(entry)));
        operation->failure = dv_status_from_err(&own, operation->arena);
        dv_object_unref(operation->object);
        operation->object = NULL;
        operation->is_created = operation->is_removed = false;
    }
    for (size_t i = 0; i < operation->n_steps && !err; i++) {
        struct dv_object *now = operation->steps[i].now;

        operation->steps[i].now = NULL;
        dv_engine_apply(operation->embedded, entry, now, operation->steps[i].version);
    }
    end(operation);
    entry->operation = NULL;
    run_waiting(entry);
}

/* The last check before a write: whatever the checks before have let through, nothing is stored
 * that a restart could not read. In release builds only what others write is checked, which is
 * where odd values come from; for what the controllers of this process write it is not worth the
 * time. */
bool dv_cluster_operation_check_row(struct dv_cluster_operation *operation, dv_str row,
                                    struct dv_err *err)
{
    bool is_of_others = operation->request && !operation->request->is_untracked;
    size_t bytes_max = operation->is_computing ? SIZE_MAX : DV_READBACK_BYTES_MAX;
    struct dv_arena *arena;
    bool is_ok;

    if (!dv_readback_is_strict() && (!is_of_others || row.n > bytes_max))
        return true;
    arena = dv_arena_new();
    is_ok = dv_readback_check(operation->entry->collection->kind,
                              dv_engine_key(operation->entry, arena), row, arena, err);
    dv_arena_free(arena);
    return is_ok;
}

static bool fail_put(struct dv_cluster_operation *operation, const struct dv_api_status *failure)
{
    dv_object_unref(operation->object);
    operation->object = NULL;
    operation->is_created = false;
    return dv_cluster_operation_fail(operation, failure);
}

static bool fail_unreadable(struct dv_cluster_operation *operation, const struct dv_object *object,
                            dv_str key, const struct dv_err *err)
{
    dv_log(DV_LOG_ERROR, "cluster: an object that cannot be read back is refused",
           DV_F_STR("object", key), DV_F_ERR(err));
    assert(!dv_readback_is_strict());
    return fail_put(operation, dv_status_new(500, DV_STR("InternalError"), operation->arena,
                                             "%.*s \"%.*s\" is not stored, because it could not be "
                                             "read again: %s",
                                             DV_FMT(object->kind->plural),
                                             DV_FMT(object->meta->name), err->msg));
}

/* Sets *row to the object's own one, or makes it, in a buffer that all writes share; it is empty
 * when it is too large. Checks it. */
static bool make_row(struct dv_cluster_operation *operation, const struct dv_object *object,
                     dv_str *row, struct dv_err *err)
{
    struct dv_embedded *embedded = operation->embedded;

    *row = dv_object_row(object);
    if (row->n == 0)
        *row = encode_row(embedded, object) ? dv_buf_str(&embedded->row) : DV_STR_NONE;
    return row->n == 0 || dv_cluster_operation_check_row(operation, *row, err);
}

/* Like make_row, with what a worker has made and checked. */
static bool take_row(struct dv_cluster_operation *operation, const struct dv_object *object,
                     dv_str *row, struct dv_err *err)
{
    struct dv_result *result = &operation->result;

    if (result->is_unreadable) {
        *err = result->err;
        return false;
    }
    if (!result->row.is_over)
        dv_row_set_version(&result->row, object->version); /* a worker does not know it yet */
    *row = result->row.is_over ? DV_STR_NONE : dv_buf_str(&result->row);
    return true;
}

static bool put(struct dv_cluster_operation *operation, const struct dv_object *object)
{
    struct dv_embedded *embedded = operation->embedded;
    const struct dv_kind *kind = object->kind;
    struct dv_store_change change = {.kind = DV_STORE_PUT,
                                     .table = embedded->options.table_objects,
                                     .key = dv_engine_key(operation->entry, operation->arena)};
    struct dv_err err;
    bool is_ok = operation->result.row.max > 0 ? take_row(operation, object, &change.value, &err)
                                               : make_row(operation, object, &change.value, &err);

    if (!is_ok)
        return fail_unreadable(operation, object, change.key, &err);
    if (change.value.n == 0)
        return fail_put(operation,
                        dv_status_new(413, DV_STR("RequestEntityTooLarge"), operation->arena,
                                      "%.*s \"%.*s\" is too large to be stored",
                                      DV_FMT(kind->plural), DV_FMT(object->meta->name)));
    operation->write.done = on_written;
    dv_store_write(embedded->store, &operation->write, &change, 1); /* copies the row */
    return true;
}

/* Removes the row. No object has the version of a deletion, so it is stored by itself: without it,
 * the counter could go back after a restart, and a version would be given twice. */
static bool take_out(struct dv_cluster_operation *operation, uint64_t version)
{
    const struct dv_embedded_options *options = &operation->embedded->options;
    const struct dv_store_change changes[] = {
        {.kind = DV_STORE_DELETE,
         .table = options->table_objects,
         .key = dv_engine_key(operation->entry,   operation->arena)},
        { .kind = DV_STORE_PUT,
         .table = options->table_meta,
         .key = DV_STR(DV_ENGINE_VERSION_KEY),
         .value = dv_engine_version_text(version, operation->arena)},
    };

    operation->write.done = on_written;
    dv_store_write(operation->embedded->store, &operation->write, changes, DV_COUNT(changes));
    return true;
}

bool dv_cluster_operation_write(struct dv_cluster_operation *operation)
{
    const struct dv_step *last = &operation->steps[operation->n_steps - 1];

    return last->now ? put(operation, last->now) : take_out(operation, last->version);
}

bool dv_cluster_operation_rewrite(struct dv_cluster_operation *operation)
{
    return put(operation, operation->entry->object);
}
