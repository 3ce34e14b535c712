/* cluster_views.c - the views of the embedded API. A new view is told what is there in portions, a
 * few hundred objects a turn, and from then on each change as it becomes durable. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded/engine.h"
#include "cluster/objects/collection.h"
#include "cluster/shared/cluster_view.h"
#include "loop/loop.h"
#include "resource/object_pool.h"
#include "resource/resource.h"

/* How many objects a new view is told in one turn, and of how many bytes as rows: about a
 * millisecond of whoever listens, and one or two more when they have to be unpacked. */
#define PORTION 500u
#define PORTION_BYTES (128u * 1024u)

struct local_view {
    struct dv_view view;
    struct dv_link link; /* in the list of views of its kind */
    struct dv_task task;
    char *after; /* the key up to which it has been told what was there */
    size_t n_after;
    /* Set to true when the view is closed in its own callback; NULL: no callback is running. */
    bool *is_gone;
};

static struct dv_embedded *embedded_of(const struct local_view *local)
{
    return DV_CONTAINER(local->view.cluster, struct dv_embedded, cluster);
}

/* Tells the view's owner of a change. False: the owner has closed the view. */
static bool change(struct local_view *local, dv_str namespace, dv_str name, struct dv_object *now)
{
    bool is_gone = false;

    local->is_gone = &is_gone;
    dv_view_change(&local->view, namespace, name, now);
    if (!is_gone)
        local->is_gone = NULL;
    return !is_gone;
}

static void remember(struct local_view *local, const struct dv_entry *entry)
{
    dv_str key = dv_entry_key(entry);

    local->after = dv_realloc(local->after, key.n);
    local->n_after = key.n;
    memcpy(local->after, key.p, key.n);
}

/* Tells the next portion of what is there, in the order of keys. What came or changed since the
 * view was opened was told when it did, so objects that the view shows already are skipped. */
static void tell_portion(struct dv_task *task)
{
    struct local_view *local = DV_CONTAINER(task, struct local_view, task);
    struct dv_embedded *embedded = embedded_of(local);
    struct dv_collection *collection = dv_engine_collection(embedded, local->view.options.kind);
    struct dv_collection_place place =
        dv_collection_find(collection, (dv_str){local->after, local->n_after});
    struct dv_entry *entry = NULL;
    size_t bytes = 0;

    for (size_t i = 0; i < PORTION && bytes < PORTION_BYTES &&
                       (entry = dv_collection_next(collection, &place)) != NULL;
         i++) {
        dv_str namespace = dv_entry_namespace(entry);
        dv_str name = dv_entry_name(entry);

        bytes += dv_object_kept_bytes(entry->object);
        if (dv_names_get(&local->view.objects, namespace, name))
            continue;
        if (!change(local, namespace, name, entry->object))
            return;
    }
    if (entry) {
        remember(local, entry);
        dv_task_post(&local->task, embedded->cluster.loop, tell_portion);
        return;
    }
    local->view.is_synced = true;
    if (local->view.options.synced)
        local->view.options.synced(local->view.options.ctx);
}

struct dv_view *dv_embedded_view_open(struct dv_cluster *cluster,
                                      const struct dv_view_options *options, struct dv_err *err)
{
    struct dv_embedded *embedded = DV_CONTAINER(cluster, struct dv_embedded, cluster);
    struct local_view *local = DV_ALLOC(struct local_view);

    if (!dv_view_init(&local->view, cluster, options, err)) {
        free(local);
        return NULL;
    }
    dv_list_push(&dv_engine_collection(embedded, options->kind)->views, &local->link);
    dv_task_post(&local->task, cluster->loop, tell_portion);
    return &local->view;
}

void dv_embedded_view_close(struct dv_view *view)
{
    struct local_view *local = DV_CONTAINER(view, struct local_view, view);

    if (view->cluster && embedded_of(local)->next_view == &local->link)
        embedded_of(local)->next_view = local->link.next;
    if (local->is_gone)
        *local->is_gone = true;
    dv_task_cancel(&local->task);
    dv_link_remove(&local->link);
    dv_view_fini(view);
    free(local->after);
    free(local);
}

void dv_views_tell(struct dv_embedded *embedded, struct dv_collection *collection,
                   struct dv_object *old, struct dv_object *now)
{
    const struct dv_api_object_meta *meta = now ? now->meta : old->meta;
    struct dv_link *link = collection->views.head.next;

    while (link && link != &collection->views.head) {
        /* The call of dv_view_close moves it on when a callback closes that very view. */
        embedded->next_view = link->next;
        (void)change(DV_CONTAINER(link, struct local_view, link), meta->namespace, meta->name, now);
        link = embedded->next_view;
    }
    embedded->next_view = NULL;
}

void dv_views_end(struct dv_embedded *embedded)
{
    struct dv_collection *collection;

    embedded->next_view = NULL; /* for the case that a view's callback closes the API */
    for (size_t i = 0; (collection = dv_engine_collection_at(embedded, i)) != NULL; i++) {
        struct dv_link *link;

        while ((link = dv_list_shift(&collection->views)) != NULL) {
            struct local_view *local = DV_CONTAINER(link, struct local_view, link);

            dv_task_cancel(&local->task);
            local->view.cluster = NULL;
        }
    }
}
