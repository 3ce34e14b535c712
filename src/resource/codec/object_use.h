/* object_use.h - what references to an object in a pool do to it. */
#ifndef DV_RESOURCE_OBJECT_USE_H
#define DV_RESOURCE_OBJECT_USE_H

struct dv_object;

/* A reference of dv_object_ref was counted: the value must be there. */
void dv_object_pool_use(struct dv_object *object);
/* Such a reference is no longer counted: the object may be packed now, or goes. */
void dv_object_pool_unuse(struct dv_object *object);

#endif
