/* delete_collection.h - the verb DELETE_COLLECTION. */
#ifndef DV_CLUSTER_DELETE_COLLECTION_H
#define DV_CLUSTER_DELETE_COLLECTION_H

struct dv_cluster_operation;

/* Deletes the objects that the request selects, each as if it were deleted by itself. Answers, when
 * all are done, with what the objects were. */
void dv_delete_collection(struct dv_cluster_operation *operation);

#endif
