/* events.h - bounds the number and bytes of Events: beyond it the oldest are deleted. */
#ifndef DV_CLUSTER_EVENTS_H
#define DV_CLUSTER_EVENTS_H

#include <stdbool.h>

struct dv_embedded;
struct dv_entry;

/* Puts the Events that were loaded into the order of their last writes. */
void dv_events_start(struct dv_embedded *embedded);
/* An entry was changed: if it is an Event, it becomes the newest. */
void dv_events_look(struct dv_embedded *embedded, struct dv_entry *entry);
/* Begins to delete the oldest while there are too many. */
void dv_events_bound(struct dv_embedded *embedded);
/* Whether another Event may be created. When they come faster than old ones can be deleted, it may
 * not. */
bool dv_events_have_room(const struct dv_embedded *embedded);

#endif
