/* node_merge.h - what a node tells of itself, put into its object in the API. Pure. */
#ifndef DV_POD_NODE_MERGE_H
#define DV_POD_NODE_MERGE_H

#include "base/str.h"

struct dv_api_node_status;
struct dv_api_object_meta;
struct dv_arena;

/* Does to `stored` what a strategic merge patch with `told` does: amounts are set by their name and
 * conditions by their type (new ones at the end), those of others stay; lists that are not empty
 * are replaced. Nothing that `stored` points to is changed; what is new is in `arena`, or in
 * `told`. */
void dv_node_status_merge(const struct dv_api_node_status *told, struct dv_arena *arena,
                          struct dv_api_node_status *stored);
/* Sets the annotation; without a value it is removed. */
void dv_node_annotate(dv_str name, const dv_str *value, struct dv_arena *arena,
                      struct dv_api_object_meta *meta);

#endif
