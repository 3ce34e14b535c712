/* downward.h - what a pod may know of itself: fields and amounts of resources as text, for
 * environment variables and for the files of downwardAPI volumes. Pure. */
#ifndef DV_WORKLOAD_DOWNWARD_H
#define DV_WORKLOAD_DOWNWARD_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_api_container;
struct dv_api_object_field_selector;
struct dv_api_resource_field_selector;
struct dv_arena;
struct dv_err;
struct dv_workload_node;
struct dv_workload_pod;

/* The value of a fieldRef of an environment variable: also spec.nodeName, status.podIP and so on.
 * DV_INVALID_ARGUMENT: a path that there is not. */
DV_CHECKED bool dv_downward_env(const struct dv_workload_node *node,
                                const struct dv_workload_pod *pod,
                                const struct dv_api_object_field_selector *field,
                                struct dv_arena *arena, dv_str *value, struct dv_err *err);

/* The value of a fieldRef in a volume: metadata only. Whole maps are lines `key="escaped value"`,
 * sorted, the last without its end. Annotations have those of the pod's source. */
DV_CHECKED bool dv_downward_file(const struct dv_workload_pod *pod,
                                 const struct dv_api_object_field_selector *field,
                                 struct dv_arena *arena, dv_str *value, struct dv_err *err);

/* The value of a resourceFieldRef ("limits.memory", divided and rounded up) about `container`,
 * which is the one that the reference names where it names one. An amount that is absent is the
 * node's allocatable (a limit), or that limit (a request). */
DV_CHECKED bool dv_downward_resource(const struct dv_workload_node *node,
                                     const struct dv_workload_pod *pod,
                                     const struct dv_api_container *container,
                                     const struct dv_api_resource_field_selector *field,
                                     struct dv_arena *arena, dv_str *value, struct dv_err *err);

#endif
