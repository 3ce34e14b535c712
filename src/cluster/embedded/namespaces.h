/* namespaces.h - what the collector does for whole kinds: empties namespaces that are deleted, and
 * sweeps events that are old. */
#ifndef DV_CLUSTER_NAMESPACES_H
#define DV_CLUSTER_NAMESPACES_H

struct dv_embedded;
struct dv_entry;
struct dv_object;

/* The namespace is being deleted: deletes a portion of what is in it, or lets it go. */
void dv_namespace_empty(struct dv_embedded *embedded, struct dv_entry *namespace);
/* An object went: its namespace may have waited for that. */
void dv_namespace_look(struct dv_embedded *embedded, const struct dv_object *gone);

/* Starts to look for old Events from time to time. */
void dv_sweep_start(struct dv_embedded *embedded);

#endif
