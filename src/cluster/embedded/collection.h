/* collection.h - the verb DELETE_COLLECTION. */
#ifndef DV_CLUSTER_COLLECTION_H
#define DV_CLUSTER_COLLECTION_H

struct dv_op;

/* Deletes what the request selects, each as if it were deleted by itself; answers with what they
 * were when all are done. */
void dv_collection_delete(struct dv_op *op);

#endif
