/* events.h - how many Events there may be. */
#ifndef DV_CLUSTER_EVENTS_H
#define DV_CLUSTER_EVENTS_H

#include <stdbool.h>

struct dv_embedded;
struct dv_entry;

/* Orders those that were loaded. */
void dv_events_start(struct dv_embedded *embedded);
/* The entry was changed, and may be of an Event. */
void dv_events_look(struct dv_embedded *embedded, struct dv_entry *entry);
/* Begins to delete the oldest while there are too many. */
void dv_events_bound(struct dv_embedded *embedded);
/* Whether another may be made: old ones go at their own pace. */
bool dv_events_have_room(const struct dv_embedded *embedded);

#endif
