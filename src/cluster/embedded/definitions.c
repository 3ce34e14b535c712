/* definitions.c - what follows from CustomResourceDefinitions: their conditions, the kinds that are
 * served, and the end of their objects.
 *
 *     written -> compiled by a worker -> NamesAccepted -> Established: served, from that write on
 *     deleted -> all objects deleted -> the finalizer is taken, and the definition goes
 *
 * Every change of a definition leads to one look at all of them, because one may wait for a name
 * that another one has. Definitions are few. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/delete.h"
#include "cluster/embedded/engine.h"
#include "cluster/objects/collection.h"
#include "cluster/objects/custom_kinds.h"
#include "loop/loop.h"
#include "resource/custom.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/validate.h"

typedef struct dv_api_custom_resource_definition definition_t;

/* How many objects of definitions that go are deleted at the same time. */
#define N_RUNNING_MAX 64u
/* The pause before what failed is tried again, and before objects with finalizers are looked at
 * again. */
#define AGAIN_MS 1000u

static struct dv_collection *collection_of(struct dv_embedded *embedded)
{
    return &embedded->collections[DV_KIND_CUSTOM_DEFINITION];
}

static const definition_t *definition_of(const struct dv_entry *entry)
{
    const struct dv_object *object = dv_entry_object(entry);

    return object ? object->value : NULL;
}

/* All definitions, in `arena`. */
static const definition_t **all_definitions(struct dv_embedded *embedded, struct dv_arena *arena,
                                            size_t *n)
{
    struct dv_collection *collection = collection_of(embedded);
    struct dv_collection_range range = dv_collection_range(collection, DV_STR_NONE);
    const definition_t **all = DV_NEW_ARRAY(arena, const definition_t *, collection->n);
    const struct dv_entry *entry;

    *n = 0;
    while ((entry = dv_collection_range_next(&range)) != NULL)
        all[(*n)++] = definition_of(entry);
    return all;
}

static void look(struct dv_task *task);

static void look_soon(struct dv_embedded *embedded)
{
    if (!embedded->is_closing)
        dv_task_post(&embedded->definitions.task, embedded->cluster.loop, look);
}

static void on_again(struct dv_timer *timer)
{
    look_soon(DV_CONTAINER(timer, struct dv_embedded, definitions.again));
}

static void look_again(struct dv_embedded *embedded)
{
    if (!embedded->is_closing && !dv_timer_is_set(&embedded->definitions.again))
        dv_timer_start(&embedded->definitions.again, embedded->cluster.loop,
                       dv_loop_now_ms(embedded->cluster.loop) + AGAIN_MS, on_again);
}

/* ---- operations ---- */

static void on_done(struct dv_cluster_operation *operation)
{
    struct dv_embedded *embedded = operation->embedded;

    embedded->definitions.n_running--;
    if (operation->failure && operation->failure->code != 404 && operation->failure->code != 409) {
        dv_engine_report_retry("a definition of a custom resource", operation->failure);
        look_again(embedded);
        return;
    }
    look_soon(embedded);
}

/* Starts an operation of the engine's own on the entry, for the object that is there now. */
static void start(struct dv_embedded *embedded, const struct dv_entry *entry,
                  bool (*run)(struct dv_cluster_operation *operation))
{
    struct dv_cluster_operation *operation = dv_cluster_operation_new(embedded, NULL);
    struct dv_api_delete_options *options = DV_NEW(operation->arena, struct dv_api_delete_options);

    options->preconditions = DV_NEW(operation->arena, struct dv_api_preconditions);
    options->preconditions->uid = dv_str_copy(dv_object_names(entry->object).uid, operation->arena);
    operation->delete_options = options;
    operation->done = on_done;
    embedded->definitions.n_running++;
    dv_cluster_operation_start(operation, entry->collection->kind, dv_entry_namespace(entry),
                               dv_entry_name(entry), run);
}

static bool is_still_there(const struct dv_cluster_operation *operation)
{
    return operation->entry->object && dv_str_eq(operation->entry->object->meta->uid,
                                                 operation->delete_options->preconditions->uid);
}

/* ---- serving ---- */

static struct dv_custom_kind *kind_of(struct dv_embedded *embedded, const definition_t *definition)
{
    return dv_custom_kinds_take(&embedded->customs, definition, embedded->options.n_history_max,
                                embedded->version);
}

/* Whether what has been compiled is the definition as it is. */
static bool is_current(const struct dv_custom *custom, const definition_t *definition)
{
    return custom && custom->generation == definition->metadata.generation &&
           dv_str_eq(custom->uid, definition->metadata.uid) &&
           dv_message_eq(&dv_message_custom_resource_definition_names, custom->accepted,
                         &definition->status.accepted_names);
}

static void serve(struct dv_embedded *embedded, struct dv_custom_kind *kind,
                  const definition_t *definition, struct dv_custom *custom)
{
    custom->is_terminating = definition->metadata.deletion_timestamp.is_set;
    dv_custom_kind_serve(&embedded->customs, kind, dv_custom_ref(custom));
}

/* A definition that a worker compiles. */
struct compiling {
    struct dv_work work;
    struct dv_embedded *embedded;
    struct dv_custom_kind *kind;
    struct dv_object *object; /* a reference */
    struct dv_custom *custom; /* the result; NULL: it cannot be compiled */
};

static void compile(struct dv_work *work)
{
    struct compiling *compiling = DV_CONTAINER(work, struct compiling, work);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_problems problems = {.arena = scratch};

    compiling->custom = dv_custom_new(compiling->object->value, &problems);
}

static void on_compiled(struct dv_work *work, const struct dv_err *err)
{
    struct compiling *compiling = DV_CONTAINER(work, struct compiling, work);
    struct dv_embedded *embedded = compiling->embedded;
    struct dv_custom_kind *kind = compiling->kind;

    (void)err; /* the job cannot fail: nobody cancels it */
    kind->is_compiling = false;
    embedded->n_ops--;
    if (compiling->custom) {
        dv_custom_unref(kind->compiled);
        kind->compiled = compiling->custom;
    } else {
        dv_log(DV_LOG_WARN, "cluster: a stored definition cannot be compiled",
               DV_F_STR("name", compiling->object->meta->name));
        look_again(embedded);
    }
    dv_object_unref(compiling->object);
    free(compiling);
    if (kind->compiled)
        look_soon(embedded);
    dv_engine_close_when_idle(embedded);
}

static void start_compiling(struct dv_embedded *embedded, struct dv_custom_kind *kind,
                            struct dv_object *object)
{
    struct compiling *compiling = DV_ALLOC(struct compiling);

    kind->is_compiling = true;
    compiling->embedded = embedded;
    compiling->kind = kind;
    compiling->object = dv_object_ref(object);
    compiling->work.run = compile;
    compiling->work.done = on_compiled;
    embedded->n_ops++; /* the API stays open for it */
    dv_work_start(&compiling->work, embedded->cluster.loop);
}

/* Serves the definition when it may be, and sees to it that it is compiled. Returns whether it
 * could be served. */
static bool settle(struct dv_embedded *embedded, const struct dv_entry *entry,
                   const definition_t *definition)
{
    struct dv_custom_kind *kind = kind_of(embedded, definition);

    if (!kind) {
        dv_log(DV_LOG_WARN, "cluster: too many kinds were made since the start: not served",
               DV_F_STR("name", definition->metadata.name));
        return false;
    }
    if (!is_current(kind->compiled, definition) && !kind->is_compiling)
        start_compiling(embedded, kind, dv_entry_object(entry));
    if (kind->compiled && kind->compiled != kind->kind.custom &&
        dv_custom_is_true(definition, DV_STR("Established")))
        serve(embedded, kind, definition, kind->compiled);
    if (kind->kind.custom &&
        kind->kind.custom->is_terminating != definition->metadata.deletion_timestamp.is_set) {
        kind->kind.custom->is_terminating = definition->metadata.deletion_timestamp.is_set;
        embedded->customs.served.generation++;
    }
    return kind->compiled != NULL;
}

/* ---- status ---- */

static bool is_ready(struct dv_embedded *embedded, const definition_t *definition)
{
    const struct dv_custom_kind *kind = kind_of(embedded, definition);

    return kind && kind->compiled;
}

static bool run_status(struct dv_cluster_operation *operation)
{
    struct dv_embedded *embedded = operation->embedded;
    definition_t *definition;
    const definition_t **others;
    size_t n;

    if (!is_still_there(operation))
        return dv_cluster_operation_answer(operation, NULL);
    definition = dv_change_copy(operation);
    others = all_definitions(embedded, operation->arena, &n);
    if (!dv_custom_next_status(operation->entry->object->value, others, n,
                               is_ready(embedded, definition), dv_engine_now(embedded),
                               operation->arena, &definition->status))
        return dv_cluster_operation_answer(operation, NULL);
    return dv_change_finish(operation, definition);
}

/* ---- ends ---- */

static const struct dv_api_custom_resource_definition_condition removing = {
    .type = DV_STR_INIT("Terminating"),
    .status = DV_STR_INIT("True"),
    .reason = DV_STR_INIT("InstanceDeletionInProgress"),
    .message = DV_STR_INIT("CustomResource deletion is in progress"),
};
static const struct dv_api_custom_resource_definition_condition removed = {
    .type = DV_STR_INIT("Terminating"),
    .status = DV_STR_INIT("False"),
    .reason = DV_STR_INIT("InstanceDeletionCompleted"),
    .message = DV_STR_INIT("removed all instances"),
};

static bool run_removing(struct dv_cluster_operation *operation)
{
    definition_t *definition;

    if (!is_still_there(operation))
        return dv_cluster_operation_answer(operation, NULL);
    definition = dv_change_copy(operation);
    if (!dv_custom_set_condition(&definition->status, &removing, dv_engine_now(operation->embedded),
                                 operation->arena))
        return dv_cluster_operation_answer(operation, NULL);
    return dv_change_finish(operation, definition);
}

static bool run_removed(struct dv_cluster_operation *operation)
{
    definition_t *definition;

    if (!is_still_there(operation))
        return dv_cluster_operation_answer(operation, NULL);
    definition = dv_change_copy(operation);
    (void)dv_custom_set_condition(&definition->status, &removed, dv_engine_now(operation->embedded),
                                  operation->arena);
    if (!dv_meta_remove_finalizer(operation, &definition->metadata, DV_STR(DV_CUSTOM_FINALIZER)))
        return dv_cluster_operation_answer(operation, NULL);
    return dv_change_finish(operation, definition);
}

/* Removes an object whose definition was taken away by force: nobody can reach it any more. */
static bool run_remove(struct dv_cluster_operation *operation)
{
    if (!is_still_there(operation))
        return dv_cluster_operation_answer(operation, NULL);
    (void)dv_cluster_operation_remove(operation);
    return dv_cluster_operation_write(operation);
}

/* Deletes the objects of a kind that are not being deleted yet. True: some are still there. */
static bool delete_objects(struct dv_embedded *embedded, struct dv_custom_kind *kind,
                           bool is_forced)
{
    struct dv_collection_range range = dv_collection_range(&kind->collection, DV_STR_NONE);
    struct dv_entry *entry;
    bool is_waiting = false;

    while ((entry = dv_collection_range_next(&range)) != NULL &&
           embedded->definitions.n_running < N_RUNNING_MAX) {
        if (!is_forced && dv_entry_object(entry)->meta->deletion_timestamp.is_set)
            is_waiting = true; /* for its own finalizers */
        else if (!entry->operation)
            start(embedded, entry, is_forced ? run_remove : dv_delete_run);
    }
    if (is_waiting)
        look_again(embedded);
    return kind->collection.n > 0 || kind->collection.names.n > 0;
}

static void remove_objects(struct dv_embedded *embedded, const struct dv_entry *entry,
                           const definition_t *definition)
{
    struct dv_custom_kind *kind = kind_of(embedded, definition);

    if (entry->operation ||
        !dv_meta_has_finalizer(&definition->metadata, DV_STR(DV_CUSTOM_FINALIZER)))
        return;
    if (!dv_custom_is_true(definition, DV_STR("Terminating")))
        start(embedded, entry, run_removing);
    else if (!kind || !delete_objects(embedded, kind, false))
        start(embedded, entry, run_removed);
    else
        look_again(embedded);
}

/* ---- the look ---- */

/* Ends kinds whose definitions have gone. */
static void end_kinds(struct dv_embedded *embedded)
{
    for (size_t i = 0; i < embedded->customs.n; i++) {
        struct dv_custom_kind *kind = embedded->customs.v[i];
        const struct dv_entry *entry =
            dv_collection_get(collection_of(embedded), DV_STR_NONE, kind->full_name);
        const definition_t *definition = entry ? definition_of(entry) : NULL;

        if (definition && kind_of(embedded, definition) == kind)
            continue;
        if (kind->kind.custom) {
            dv_custom_kind_serve(&embedded->customs, kind, NULL);
            dv_watchers_end_of(&kind->collection);
        }
        dv_custom_unref(kind->compiled);
        kind->compiled = NULL;
        if (kind->collection.n > 0)
            (void)delete_objects(embedded, kind, true);
    }
}

static void look(struct dv_task *task)
{
    struct dv_embedded *embedded = DV_CONTAINER(task, struct dv_embedded, definitions.task);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_collection_range range = dv_collection_range(collection_of(embedded), DV_STR_NONE);
    size_t n;
    const definition_t **all = all_definitions(embedded, arena, &n);
    struct dv_entry *entry;

    end_kinds(embedded);
    while ((entry = dv_collection_range_next(&range)) != NULL &&
           embedded->definitions.n_running < N_RUNNING_MAX) {
        const definition_t *definition = definition_of(entry);
        struct dv_api_custom_resource_definition_status status;
        bool can_be_served = settle(embedded, entry, definition);

        if (definition->metadata.deletion_timestamp.is_set)
            remove_objects(embedded, entry, definition);
        else if (!entry->operation &&
                 dv_custom_next_status(definition, all, n, can_be_served, dv_engine_now(embedded),
                                       arena, &status))
            start(embedded, entry, run_status);
    }
}

/* ---- for the engine ---- */

void dv_definitions_look(struct dv_embedded *embedded, const struct dv_entry *entry,
                         const struct dv_object *now)
{
    const struct dv_kind *kind = entry->collection->kind;

    if (dv_kind_is_custom(kind)) {
        if (!now && (!kind->custom || kind->custom->is_terminating))
            look_soon(embedded);
        return;
    }
    if (kind->id != DV_KIND_CUSTOM_DEFINITION)
        return;
    if (now) /* what the write says is true when it is answered */
        (void)settle(embedded, entry, now->value);
    else
        end_kinds(embedded);
    look_soon(embedded);
}

bool dv_definitions_loaded(struct dv_embedded *embedded, const struct dv_object *object)
{
    return object->kind->id != DV_KIND_CUSTOM_DEFINITION ||
           kind_of(embedded, object->value) != NULL;
}

void dv_definitions_start(struct dv_embedded *embedded)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_collection_range range = dv_collection_range(collection_of(embedded), DV_STR_NONE);
    const struct dv_entry *entry;

    while ((entry = dv_collection_range_next(&range)) != NULL) {
        const definition_t *definition = definition_of(entry);
        struct dv_problems problems = {.arena = scratch};
        struct dv_custom_kind *kind = kind_of(embedded, definition);

        if (!kind || !dv_custom_is_true(definition, DV_STR("Established")))
            continue;
        kind->compiled = dv_custom_new(definition, &problems);
        if (kind->compiled)
            serve(embedded, kind, definition, kind->compiled);
    }
    look_soon(embedded);
}

void dv_definitions_stop(struct dv_embedded *embedded)
{
    dv_task_cancel(&embedded->definitions.task);
    dv_timer_cancel(&embedded->definitions.again);
}
