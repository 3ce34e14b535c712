/* cluster_operation.c - operations: a request, or a change that the engine makes by itself, from
 * its start to the answer. Operations on one name take turns; one that writes holds the name until
 * the store has answered, then memory follows, views and watchers are told, and the caller is told
 * last, in the next turn. The life is described in cluster_operation.h. */
#include "cluster/embedded/cluster_operation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "cluster/embedded/engine.h"
#include "cluster/objects/readback.h"
#include "cluster/objects/shelf.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/status.h"

/* How many operations may wait for one name. Writers of one object wait for each other; more than
 * this is not work but a client in a loop. */
#define N_WAITING_MAX 1000u
/* How many operations may be under way all together: each holds memory, and an answer of 429 is
 * better than running out of it. */
#define N_OPS_MAX 20000u

/* ---- ends ---- */

static void op_free(struct dv_op *op)
{
    struct dv_embedded *embedded = op->embedded;

    dv_object_unref(op->object);
    dv_object_unref(op->namespace);
    dv_object_unref(op->result.made);
    dv_buf_fini(&op->result.text);
    for (size_t i = 0; i < op->n_objects; i++)
        dv_object_unref(op->objects[i]);
    for (size_t i = 0; i < op->n_steps; i++)
        dv_object_unref(op->steps[i].now);
    dv_arena_free(op->arena);
    free(op);
    embedded->n_ops--;
}

static void tell_request(struct dv_op *op)
{
    struct dv_request *request = op->request;

    request->object = op->object;
    request->objects = op->objects;
    request->n_objects = op->n_objects;
    request->is_created = op->is_created;
    request->is_removed = op->is_removed;
    request->warnings = op->warnings;
    request->n_warnings = op->n_warnings;
    request->priv = NULL;
    request->done(request, op->failure);
}

static void tell(struct dv_task *task)
{
    struct dv_embedded *embedded = DV_CONTAINER(task, struct dv_embedded, tell);
    struct dv_list now;
    struct dv_link *link;

    dv_list_init(&now);
    dv_list_move_all(&now, &embedded->answers);
    while ((link = dv_list_shift(&now)) != NULL) {
        struct dv_op *op = DV_CONTAINER(link, struct dv_op, link);

        if (op->request)
            tell_request(op);
        else if (op->done)
            op->done(op);
        op_free(op);
    }
    dv_engine_close_when_idle(embedded);
}

static void end(struct dv_op *op)
{
    struct dv_embedded *embedded = op->embedded;

    op->entry = NULL;
    op->has_ended = true;
    dv_list_push(&embedded->answers, &op->link);
    dv_task_post(&embedded->tell, embedded->cluster.loop, tell);
}

bool dv_op_fail(struct dv_op *op, const struct dv_api_status *failure)
{
    op->failure = failure;
    if (!op->is_computing)
        end(op);
    return false;
}

bool dv_op_answer(struct dv_op *op, struct dv_object *object)
{
    if (op->is_computing) {
        op->answer = object;
        return false;
    }
    if (object)
        op->object = dv_object_ref(object);
    end(op);
    return false;
}

/* ---- turns ---- */

/* Lets those who wait for the name have their turn, until one of them writes or is handed to a
 * worker. */
static void run_waiting(struct dv_entry *entry)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&entry->waiting)) != NULL) {
        struct dv_op *op = DV_CONTAINER(link, struct dv_op, link);

        entry->n_waiting--;
        entry->op = op;
        if (dv_op_work(op) || op->run(op))
            return;
        entry->op = NULL;
    }
    if (!entry->object)
        dv_shelf_drop(entry);
}

void dv_op_worked(struct dv_op *op, struct dv_entry *entry, bool is_writing)
{
    if (is_writing)
        return;
    if (!op->has_ended)
        end(op);
    entry->op = NULL;
    run_waiting(entry);
}

struct dv_time dv_op_now(const struct dv_op *op)
{
    return op->is_computing ? op->now : dv_engine_now(op->embedded);
}

struct dv_op *dv_op_new(struct dv_embedded *embedded, struct dv_request *request)
{
    struct dv_op *op = DV_ALLOC(struct dv_op);

    op->embedded = embedded;
    op->request = request;
    op->arena = dv_arena_new();
    if (request) {
        op->delete_options = request->delete_options;
        op->is_dry_run = request->is_dry_run;
        request->priv = op;
    }
    embedded->n_ops++;
    return op;
}

void dv_op_start(struct dv_op *op, const struct dv_kind *kind, dv_str namespace, dv_str name,
                 bool (*run)(struct dv_op *op))
{
    struct dv_embedded *embedded = op->embedded;
    struct dv_entry *entry;

    /* Only requests are refused: the engine's own operations are few, and nobody would try them
     * again. */
    if (op->request && embedded->n_ops > N_OPS_MAX) {
        (void)dv_op_fail(
            op, dv_status_too_many_requests(1, op->arena, "too many requests, please try again"));
        return;
    }
    entry = dv_shelf_take(dv_engine_shelf(embedded, kind), namespace, name);
    if (!entry) {
        (void)dv_op_fail(op, dv_status_bad_request(op->arena, "the name is too long"));
        return;
    }
    if (op->request && entry->n_waiting >= N_WAITING_MAX) {
        (void)dv_op_fail(op, dv_status_too_many_requests(1, op->arena,
                                                         "too many requests for %.*s \"%.*s\"",
                                                         DV_FMT(kind->plural), DV_FMT(name)));
        return;
    }
    op->entry = entry;
    op->run = run;
    dv_list_push(&entry->waiting, &op->link);
    entry->n_waiting++;
    if (!entry->op)
        run_waiting(entry);
}

bool dv_op_is_waiting(const struct dv_op *op)
{
    return op->entry && op->entry->op != op;
}

void dv_op_leave(struct dv_op *op)
{
    dv_link_remove(&op->link);
    if (!op->entry)
        return;
    /* Somebody else holds the name, and goes on with those who wait. */
    assert(dv_op_is_waiting(op));
    op->entry->n_waiting--;
    op->entry = NULL;
}

bool dv_op_has_ended(const struct dv_op *op)
{
    return op->has_ended;
}

/* ---- writes ---- */

static struct dv_step *add_step(struct dv_op *op)
{
    struct dv_step *step = &op->steps[op->n_steps++];

    assert(op->n_steps <= DV_OP_N_STEPS);
    step->version = ++op->embedded->last_version;
    return step;
}

struct dv_object *dv_op_put(struct dv_op *op, void *value)
{
    struct dv_step *step = add_step(op);

    if (op->result.made) {
        step->now = op->result.made;
        op->result.made = NULL;
        dv_object_set_version(step->now, step->version);
        return step->now;
    }
    dv_meta_of(value)->resource_version =
        dv_str_printf(op->arena, "%llu", (unsigned long long)step->version);
    step->now = dv_object_new(op->entry->shelf->kind, value);
    return step->now;
}

uint64_t dv_op_remove(struct dv_op *op)
{
    op->is_removed = true;
    return add_step(op)->version;
}

static void on_written(struct dv_store_write *write, const struct dv_err *err)
{
    struct dv_op *op = DV_CONTAINER(write, struct dv_op, write);
    struct dv_entry *entry = op->entry;

    if (err) {
        struct dv_err own = *err;

        (void)dv_wrap(&own, "cannot store %.*s %.*s", DV_FMT(entry->shelf->kind->singular),
                      DV_FMT(dv_entry_key(entry)));
        op->failure = dv_status_from_err(&own, op->arena);
        dv_object_unref(op->object);
        op->object = NULL;
        op->is_created = op->is_removed = false;
    }
    for (size_t i = 0; i < op->n_steps && !err; i++) {
        struct dv_object *now = op->steps[i].now;

        op->steps[i].now = NULL;
        dv_engine_apply(op->embedded, entry, now, op->steps[i].version);
    }
    end(op);
    entry->op = NULL;
    run_waiting(entry);
}

/* The last check before a write: whatever the checks before have let through, nothing is stored
 * that a restart could not read. In release builds only what others write is checked, which is
 * where odd values come from; for what the controllers of this process write it is not worth the
 * time. */
bool dv_op_check_text(struct dv_op *op, dv_str text, struct dv_err *err)
{
    bool is_of_others = op->request && !op->request->is_untracked;
    size_t bytes_max = op->is_computing ? SIZE_MAX : DV_READBACK_BYTES_MAX;
    struct dv_arena *arena;
    bool is_ok;

    if (!dv_readback_is_strict() && (!is_of_others || text.n > bytes_max))
        return true;
    arena = dv_arena_new();
    is_ok = dv_readback_check(op->entry->shelf->kind, dv_engine_key(op->entry, arena), text, arena,
                              err);
    dv_arena_free(arena);
    return is_ok;
}

static bool fail_put(struct dv_op *op, const struct dv_api_status *failure)
{
    dv_object_unref(op->object);
    op->object = NULL;
    op->is_created = false;
    return dv_op_fail(op, failure);
}

static bool fail_unreadable(struct dv_op *op, const struct dv_object *object, dv_str key,
                            const struct dv_err *err)
{
    dv_log(DV_LOG_ERROR, "cluster: an object that cannot be read back is refused",
           DV_F_STR("object", key), DV_F_ERR(err));
    assert(!dv_readback_is_strict());
    return fail_put(op, dv_status_new(500, DV_STR("InternalError"), op->arena,
                                      "%.*s \"%.*s\" is not stored, because it could not be "
                                      "read again: %s",
                                      DV_FMT(object->kind->plural), DV_FMT(object->meta->name),
                                      err->msg));
}

/* Writes the version into a text that was made before the version was known, with DV_VERSION_ROOM
 * in its place. Quotes in what users write are escaped, so nothing else in the text looks like
 * this. */
static void fill_in_version(struct dv_buf *text, dv_str version)
{
    const dv_str before = DV_STR("\"resourceVersion\":\"");
    size_t at = dv_str_find(dv_buf_str(text), before) + before.n;
    size_t behind = at + DV_VERSION_ROOM.n;

    assert(behind <= text->n);
    memcpy(text->p + at, version.p, version.n);
    memmove(text->p + at + version.n, text->p + behind, text->n - behind);
    text->n -= DV_VERSION_ROOM.n - version.n;
}

/* Takes the text of an object for the store, which a worker has made and checked, or makes and
 * checks it now. */
static bool take_text(struct dv_op *op, const struct dv_object *object, struct dv_buf *text,
                      struct dv_err *err)
{
    struct dv_result *result = &op->result;

    if (result->text.max == 0) {
        dv_buf_init(text, DV_STORE_VALUE_BYTES_MAX);
        dv_encode_json_text(object->kind->versions[0].message, object->value, NULL, DV_STR_NONE,
                            text);
        return text->is_over || dv_op_check_text(op, dv_buf_str(text), err);
    }
    *text = result->text;
    result->text = (struct dv_buf){0};
    if (result->is_unreadable) {
        *err = result->err;
        return false;
    }
    if (!text->is_over)
        fill_in_version(text, object->meta->resource_version);
    return true;
}

static bool put(struct dv_op *op, const struct dv_object *object)
{
    struct dv_embedded *embedded = op->embedded;
    const struct dv_kind *kind = object->kind;
    struct dv_store_change change = {.kind = DV_STORE_PUT,
                                     .table = embedded->options.table_objects,
                                     .key = dv_engine_key(op->entry, op->arena)};
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_err err;

    if (!take_text(op, object, &text, &err))
        return fail_unreadable(op, object, change.key, &err);
    if (text.is_over)
        return fail_put(op, dv_status_new(413, DV_STR("RequestEntityTooLarge"), op->arena,
                                          "%.*s \"%.*s\" is too large to be stored",
                                          DV_FMT(kind->plural), DV_FMT(object->meta->name)));
    change.value = dv_buf_str(&text);
    op->write.done = on_written;
    dv_store_write(embedded->store, &op->write, &change, 1);
    return true;
}

/* Removes the row. No object has the version of a deletion, so it is stored by itself: without it,
 * the counter could go back after a restart, and a version would be given twice. */
static bool take_out(struct dv_op *op, uint64_t version)
{
    const struct dv_embedded_options *options = &op->embedded->options;
    const struct dv_store_change changes[] = {
        {.kind = DV_STORE_DELETE,
         .table = options->table_objects,
         .key = dv_engine_key(op->entry,           op->arena)                  },
        { .kind = DV_STORE_PUT,
         .table = options->table_meta,
         .key = DV_STR(DV_ENGINE_VERSION_KEY),
         .value = dv_str_printf(op->arena, "%llu", (unsigned long long)version)},
    };

    op->write.done = on_written;
    dv_store_write(op->embedded->store, &op->write, changes, DV_COUNT(changes));
    return true;
}

bool dv_op_write(struct dv_op *op)
{
    const struct dv_step *last = &op->steps[op->n_steps - 1];

    return last->now ? put(op, last->now) : take_out(op, last->version);
}

bool dv_op_rewrite(struct dv_op *op)
{
    return put(op, op->entry->object);
}
