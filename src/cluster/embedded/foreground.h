/* foreground.h - what an object that is deleted in the foreground waits for. */
#ifndef DV_CLUSTER_FOREGROUND_H
#define DV_CLUSTER_FOREGROUND_H

#include <stdbool.h>

struct dv_object_owners;
struct dv_object;

/* Whether the object is being deleted in the foreground. */
bool dv_foreground_is(const struct dv_object *object);
/* Whether dependents block the object's deletion: those with blockOwnerDeletion, but not one that
 * is itself deleted in the foreground and waits for the object. */
bool dv_foreground_is_blocked(const struct dv_object_owners *owners,
                              const struct dv_object *object);

#endif
