/* collect.h - what the engine does by itself: it collects what has no owner any more, ends
 * foreground and orphaning deletions, empties namespaces, and removes old events.
 *
 * Everything is found again after a restart by looking at the objects; nothing else is stored. */
#ifndef DV_CLUSTER_COLLECT_H
#define DV_CLUSTER_COLLECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/str.h"
#include "loop/loop.h"

struct dv_api_object_meta;
struct dv_embedded;
struct dv_entry;
struct dv_kind;
struct dv_object;
struct dv_cluster_operation;

/* Entries wait in the queue of their delay, so that each queue is in the order of its times. */
enum dv_collector_delay {
    DV_COLLECT_SOON,      /* at once: an owner went */
    DV_COLLECT_OWNER,     /* owner_delay_ms */
    DV_COLLECT_NAMESPACE, /* namespace_delay_ms */
    DV_N_COLLECT_DELAYS,
};

struct dv_collector {
    struct dv_list queues[DV_N_COLLECT_DELAYS];
    struct dv_timer timer; /* fires when the first entry is due */
    struct dv_task task;
    size_t n_running;      /* operations of its own under way */
    struct dv_task bound;  /* removes the oldest events */
    struct dv_timer sweep; /* for old Events */
    char *sweep_after;     /* the key behind which the sweep goes on; NULL: no sweep is under way */
    size_t n_sweep_after;
};

/* The object for whose sake an operation of the collector runs; its operation->ctx. */
struct dv_collected {
    const struct dv_kind *kind;
    dv_str namespace;
    dv_str name;
    dv_str uid;
};

void dv_collector_init(struct dv_embedded *embedded);
/* An object was loaded: if a restart may have interrupted something that concerns it, it is looked
 * at when everything is loaded, like an object that has changed. */
void dv_collector_loaded(struct dv_embedded *embedded, struct dv_entry *entry,
                         const struct dv_api_object_meta *meta);
void dv_collector_start(struct dv_embedded *embedded);
/* Begins nothing more; what is under way ends by itself. */
void dv_collector_stop(struct dv_embedded *embedded);
void dv_collector_fini(struct dv_embedded *embedded);
/* A change became durable: notes what it leaves to do. */
void dv_collector_look(struct dv_embedded *embedded, struct dv_entry *entry,
                       const struct dv_object *old, const struct dv_object *now);

/* For namespaces.c: has the object of `entry` looked at, soon or after the delay. */
void dv_collector_queue(struct dv_embedded *embedded, struct dv_entry *entry,
                        enum dv_collector_delay delay);
/* For namespaces.c: starts an operation of its own on `entry`, with the uid that the object has now
 * as the precondition. When it fails, `subject` is looked at again. */
void dv_collector_run(struct dv_embedded *embedded, struct dv_entry *entry,
                      bool (*run)(struct dv_cluster_operation *operation),
                      struct dv_entry *subject);
bool dv_collector_is_busy(const struct dv_embedded *embedded);

#endif
