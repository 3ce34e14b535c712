/* events.c - how many Events there may be: beyond it the oldest go.
 *
 * Everybody may write them, and nobody deletes them: they end by their age (namespaces.c), or here
 * when there are too many of them meanwhile. Their order is that of their last writes. */
#include "cluster/embedded/events.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/vec.h"
#include "cluster/embedded/collect.h"
#include "cluster/embedded/delete.h"
#include "cluster/embedded/engine.h"
#include "cluster/objects/collection.h"
#include "loop/loop.h"
#include "resource/resource.h"

/* Events that come faster than old ones can be removed are refused when there are a tenth, and this
 * many, more than there may be. */
#define N_MORE 64u
#define BYTES_MORE (64u * 1024u)

static const struct dv_collection *collection_of(const struct dv_embedded *embedded)
{
    return &embedded->collections[DV_KIND_EVENT];
}

bool dv_events_have_room(const struct dv_embedded *embedded)
{
    const struct dv_embedded_options *options = &embedded->options;

    return collection_of(embedded)->n <
               options->n_events_max + options->n_events_max / 10 + N_MORE &&
           collection_of(embedded)->size_bytes <
               options->events_bytes_max + options->events_bytes_max / 10 + BYTES_MORE;
}

/* Deletes the oldest Events until few enough are left. Those whose deletion is under way count as
 * gone. */
static void bound(struct dv_task *task)
{
    struct dv_embedded *embedded = DV_CONTAINER(task, struct dv_embedded, collector.bound);
    const struct dv_embedded_options *options = &embedded->options;
    size_t n = collection_of(embedded)->n;
    size_t bytes = collection_of(embedded)->size_bytes;
    struct dv_link *link = embedded->events.head.next;

    while (link != &embedded->events.head && !embedded->is_closing &&
           (n > options->n_events_max || bytes > options->events_bytes_max)) {
        struct dv_entry *entry = dv_entry_of_age(link);

        link = link->next;
        n--;
        bytes -= entry->object->size_bytes;
        if (entry->operation || dv_entry_object(entry)->meta->deletion_timestamp.is_set)
            continue;
        if (dv_collector_is_busy(embedded))
            return; /* enough deletions are under way: each that ends leads back here */
        dv_collector_run(embedded, entry, dv_delete_run, entry);
    }
}

void dv_events_bound(struct dv_embedded *embedded)
{
    const struct dv_collection *collection = collection_of(embedded);

    if (!embedded->is_closing && (collection->n > embedded->options.n_events_max ||
                                  collection->size_bytes > embedded->options.events_bytes_max))
        dv_task_post(&embedded->collector.bound, embedded->cluster.loop, bound);
}

void dv_events_look(struct dv_embedded *embedded, struct dv_entry *entry)
{
    if (entry->collection->kind->id != DV_KIND_EVENT)
        return;
    dv_link_remove(dv_entry_age(entry));
    if (entry->object)
        dv_list_push(&embedded->events, dv_entry_age(entry));
    dv_events_bound(embedded);
}

static int compare_ages(const void *a, const void *b)
{
    const struct dv_entry *const *first = a;
    const struct dv_entry *const *second = b;
    uint64_t first_version = (*first)->object->version;
    uint64_t second_version = (*second)->object->version;

    return first_version < second_version ? -1 : first_version > second_version;
}

void dv_events_start(struct dv_embedded *embedded)
{
    struct dv_collection_place place = {0};
    DV_VEC(struct dv_entry *) entries = {0};
    struct dv_entry *entry;

    while ((entry = dv_collection_next(collection_of(embedded), &place)) != NULL)
        *dv_vec_add(&entries) = entry;
    if (entries.n > 0)
        qsort(entries.v, entries.n, sizeof(entries.v[0]), compare_ages);
    for (size_t i = 0; i < entries.n; i++)
        dv_list_push(&embedded->events, dv_entry_age(entries.v[i]));
    dv_vec_fini(&entries);
    dv_events_bound(embedded);
}
