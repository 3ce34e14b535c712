/* cluster_watch.c - watchers. A watcher is a cursor over the history of a kind: it keeps no
 * queue of its own, so a slow one costs nothing until the history moves past it, and then it is
 * closed as expired. All watchers together are told a bounded amount in a turn of the loop, each
 * in its turn. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/engine.h"
#include "cluster/objects/collection.h"
#include "cluster/objects/history.h"
#include "loop/loop.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "resource/status.h"

/* How many events one watcher is told before the next one has its turn: few enough that whoever
 * prints them still has the texts when the next watcher is told the same. */
#define PORTION 16u
/* How much all watchers are told in one turn of the loop, in bytes of objects: each watcher prints
 * what it is told, or at least copies it. This takes about 5 ms. */
#define TURN_BYTES (2u * 1024u * 1024u)
/* What an event counts beside the bytes of its object. */
#define EVENT_BYTES 256u

struct watching {
    struct dv_watcher *watcher;
    struct dv_embedded *embedded;
    struct dv_collection *collection;
    struct dv_link link; /* in the list of its kind's watchers */
    struct dv_arena *arena;
    struct dv_label_selector *labels;
    struct dv_field_selector *fields;
    dv_str namespace;
    DV_VEC(struct dv_object *) initial; /* what was there when it began, maybe packed */
    size_t n_told;                      /* how many of them have been told */
    uint64_t initial_version;
    uint64_t since;
    uint64_t next; /* the number of the next change in the history */
    bool has_initial;
    bool is_paused;
    /* Set to true when the watcher is stopped in its own callback; NULL: no callback is running. */
    bool *is_gone;
};

static bool wants(const struct watching *watching, struct dv_object *object)
{
    return (watching->namespace.n == 0 ||
            dv_str_eq(watching->namespace, dv_object_names(object).namespace)) &&
           dv_object_is_selected(object, watching->labels, watching->fields);
}

/* ---- telling ---- */

/* Tells one event. False: the watcher was stopped in the callback. */
static bool tell(struct watching *watching, enum dv_object_event event, struct dv_object *object,
                 uint64_t version)
{
    struct dv_embedded *embedded = watching->embedded;
    size_t cost = EVENT_BYTES + (object ? object->size_bytes : 0);
    bool is_gone = false;

    embedded->watch_room -= dv_size_min(cost, embedded->watch_room);
    watching->is_gone = &is_gone;
    if (object)
        (void)dv_object_unpack(object);
    watching->watcher->event(watching->watcher, event, object, version);
    if (!is_gone)
        watching->is_gone = NULL;
    return !is_gone;
}

static bool tell_change(struct watching *watching, struct dv_change *change)
{
    bool was_wanted = change->old && wants(watching, change->old);
    bool is_wanted = change->now && wants(watching, change->now);

    if (is_wanted)
        return tell(watching, was_wanted ? DV_OBJECT_MODIFIED : DV_OBJECT_ADDED, change->now,
                    change->version);
    if (was_wanted)
        return tell(watching, DV_OBJECT_DELETED,
                    dv_history_gone(&watching->collection->history, change), change->version);
    return true;
}

/* Tells what was there when the watcher began, as far as the budget goes. False: the watcher was
 * stopped. */
static bool tell_initial(struct watching *watching, size_t *budget)
{
    while (*budget > 0 && watching->n_told < watching->initial.n && !watching->is_paused &&
           watching->embedded->watch_room > 0) {
        struct dv_object *object = watching->initial.v[watching->n_told];

        (*budget)--;
        watching->initial.v[watching->n_told++] = NULL;
        if (!tell(watching, DV_OBJECT_ADDED, object, object->version)) {
            dv_object_unkeep(object);
            return false;
        }
        dv_object_unkeep(object);
    }
    if (watching->n_told < watching->initial.n || watching->is_paused)
        return true;
    watching->has_initial = false;
    dv_vec_fini(&watching->initial);
    if (!watching->watcher->wants_initial_end)
        return true;
    return tell(watching, DV_OBJECT_INITIAL_END, NULL, watching->initial_version);
}

static void end(struct watching *watching, bool is_expired)
{
    struct dv_watcher *watcher = watching->watcher;

    dv_watcher_stop(watcher);
    watcher->is_expired = is_expired;
    if (watcher->closed)
        watcher->closed(watcher);
}

/* Tells the watcher a portion of what is due. True: there is more to tell. */
static bool tell_portion(struct watching *watching)
{
    const struct dv_history *history = &watching->collection->history;
    size_t budget = PORTION;

    if (watching->next < history->first) {
        end(watching, true);
        return false;
    }
    if (watching->has_initial && !watching->is_paused && !tell_initial(watching, &budget))
        return false;
    while (!watching->has_initial && watching->next < history->end && budget > 0 &&
           !watching->is_paused && watching->embedded->watch_room > 0) {
        struct dv_change *change = dv_history_get(history, watching->next++);

        budget--;
        if (change->version > watching->since && !tell_change(watching, change))
            return false;
    }
    return !watching->is_paused && (watching->has_initial || watching->next < history->end);
}

/* Tells each watcher of one kind a portion. A callback may stop any watcher, so each one is put at
 * the end of the list before it is called. Those whose turn does not come now are the first next
 * time. True: there is more to tell. */
static bool tell_round(struct dv_embedded *embedded, struct dv_collection *collection)
{
    bool has_more = false;
    struct dv_list now;
    struct dv_link *link;

    dv_list_init(&now);
    dv_list_move_all(&now, &collection->watchers);
    while ((embedded->watch_room > 0 || embedded->is_closing) &&
           (link = dv_list_shift(&now)) != NULL) {
        struct watching *watching = DV_CONTAINER(link, struct watching, link);

        dv_list_push(&collection->watchers, link);
        if (embedded->is_closing) /* one of the callbacks has closed the API */
            end(watching, false);
        else
            has_more |= tell_portion(watching);
    }
    has_more |= !dv_list_is_empty(&now);
    dv_list_move_all(&now, &collection->watchers);
    dv_list_move_all(&collection->watchers, &now);
    return has_more;
}

/* Tells the watchers of one kind, as far as the turn's room goes. True: there is more to tell. */
static bool tell_collection(struct dv_embedded *embedded, struct dv_collection *collection)
{
    bool has_more = true;

    while (has_more && embedded->watch_room > 0)
        has_more = tell_round(embedded, collection);
    return has_more;
}

static void tell_all(struct dv_task *task)
{
    struct dv_embedded *embedded = DV_CONTAINER(task, struct dv_embedded, watch);
    size_t n_kinds = DV_N_KINDS + embedded->customs.n;
    bool has_more = false;

    embedded->watch_room = TURN_BYTES;
    for (size_t n = 0; n < n_kinds; n++) {
        /* Each turn begins with another kind, so that none waits for the others for ever. */
        struct dv_collection *collection =
            dv_engine_collection_at(embedded, (embedded->watch_first + n) % n_kinds);

        if (!collection->is_woken)
            continue;
        /* Cleared before the callbacks, because one of them may start a watcher and set it
         * again. */
        collection->is_woken = false;
        collection->is_woken |= tell_collection(embedded, collection);
        has_more |= collection->is_woken;
    }
    embedded->watch_first = (embedded->watch_first + 1) % n_kinds;
    if (has_more && !embedded->is_closing)
        dv_task_post(&embedded->watch, embedded->cluster.loop, tell_all);
}

void dv_watchers_wake(struct dv_embedded *embedded, struct dv_collection *collection)
{
    if (dv_list_is_empty(&collection->watchers))
        return;
    collection->is_woken = true;
    dv_task_post(&embedded->watch, embedded->cluster.loop, tell_all);
}

void dv_watchers_end_of(struct dv_collection *collection)
{
    struct dv_link *link;

    while ((link = dv_list_first(&collection->watchers)) != NULL)
        end(DV_CONTAINER(link, struct watching, link), false);
}

void dv_watchers_end(struct dv_embedded *embedded)
{
    struct dv_collection *collection;

    dv_task_cancel(&embedded->watch);
    for (size_t i = 0; (collection = dv_engine_collection_at(embedded, i)) != NULL; i++)
        dv_watchers_end_of(collection);
}

/* ---- life ---- */

static void watching_free(struct watching *watching)
{
    dv_link_remove(&watching->link);
    for (size_t i = watching->n_told; i < watching->initial.n; i++)
        dv_object_unkeep(watching->initial.v[i]);
    dv_vec_fini(&watching->initial);
    dv_arena_free(watching->arena);
    free(watching);
}

static bool parse_selectors(struct watching *watching, struct dv_err *err)
{
    const struct dv_watcher *watcher = watching->watcher;
    struct dv_arena *arena = watching->arena;
    const struct dv_kind *kind = watcher->kind;
    dv_str group = watcher->version ? watcher->version->group : kind->versions[0].group;

    watching->namespace = dv_str_copy(watcher->namespace, arena);
    watching->labels =
        dv_label_selector_parse(dv_str_copy(watcher->label_selector, arena), arena, err);
    if (!watching->labels)
        return false;
    watching->fields = dv_field_selector_parse(
        kind, group, dv_str_copy(watcher->field_selector, arena), arena, err);
    return watching->fields != NULL;
}

static void gather_initial(struct watching *watching)
{
    struct dv_collection_range range =
        dv_collection_range(watching->collection, watching->namespace);
    struct dv_entry *entry;

    while ((entry = dv_collection_range_next(&range)) != NULL)
        if (wants(watching, entry->object))
            *dv_vec_add(&watching->initial) = dv_object_keep(entry->object);
    watching->has_initial = true;
    watching->initial_version = watching->embedded->version;
    watching->next = watching->collection->history.end;
}

bool dv_watcher_start(struct dv_embedded *embedded, struct dv_watcher *watcher,
                      struct dv_arena *arena, struct dv_api_status **failure)
{
    struct dv_collection *collection = dv_engine_collection(embedded, watcher->kind);
    bool has_initial = watcher->since == 0 || watcher->wants_initial_end;
    struct watching *watching;
    struct dv_err err;

    if (!has_initial && watcher->since < collection->history.floor) {
        *failure = dv_status_expired(arena, "too old resource version: %llu (%llu)",
                                     (unsigned long long)watcher->since,
                                     (unsigned long long)collection->history.floor);
        return false;
    }
    watching = DV_ALLOC(struct watching);
    watching->watcher = watcher;
    watching->embedded = embedded;
    watching->collection = collection;
    watching->arena = dv_arena_new();
    if (!parse_selectors(watching, &err)) {
        *failure = dv_status_bad_request(arena, "%s", dv_err_text(&err));
        watching_free(watching);
        return false;
    }
    if (has_initial) {
        gather_initial(watching);
    } else {
        watching->since = watcher->since;
        watching->next = dv_history_after(&collection->history, watcher->since);
    }
    watcher->priv = watching;
    watcher->is_expired = false;
    dv_list_push(&collection->watchers, &watching->link);
    dv_watchers_wake(embedded, collection);
    return true;
}

void dv_watcher_stop(struct dv_watcher *watcher)
{
    struct watching *watching = watcher->priv;

    if (!watching)
        return;
    watcher->priv = NULL;
    if (watching->is_gone)
        *watching->is_gone = true;
    watching_free(watching);
}

void dv_watcher_pause(struct dv_watcher *watcher)
{
    struct watching *watching = watcher->priv;

    if (watching)
        watching->is_paused = true;
}

void dv_watcher_resume(struct dv_watcher *watcher)
{
    struct watching *watching = watcher->priv;

    if (!watching || !watching->is_paused)
        return;
    watching->is_paused = false;
    dv_watchers_wake(watching->embedded, watching->collection);
}

uint64_t dv_watcher_version(const struct dv_watcher *watcher)
{
    const struct watching *watching = watcher->priv;
    const struct dv_history *history;

    if (!watching || watching->has_initial)
        return 0;
    history = &watching->collection->history;
    if (watching->next >= history->end) {
        uint64_t version = watching->embedded->version;

        return version > watching->since ? version : watching->since;
    }
    if (watching->next < history->first)
        return 0;
    /* All versions before that of the next change: between them nothing of this kind has
     * changed. */
    return dv_history_get(history, watching->next)->version - 1;
}
