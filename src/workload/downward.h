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

/* The value of a resourceFieldRef ("limits.memory", divided and rounded up) of an environment
 * variable of `container`, about that container or the one that it names. A limit of cpu, memory or
 * ephemeral storage that is absent is the pod's, else the node's allocatable; but for an init
 * container by name it is 0, as in the reference. An absent request is 0. */
DV_CHECKED bool dv_downward_env_resource(const struct dv_workload_node *node,
                                         const struct dv_workload_pod *pod,
                                         const struct dv_api_container *container,
                                         const struct dv_api_resource_field_selector *field,
                                         struct dv_arena *arena, dv_str *value, struct dv_err *err);

/* The value of a resourceFieldRef in a volume, about the container that it names: absent limits are
 * the node's allocatable. */
DV_CHECKED bool dv_downward_file_resource(const struct dv_workload_node *node,
                                          const struct dv_workload_pod *pod,
                                          const struct dv_api_resource_field_selector *field,
                                          struct dv_arena *arena, dv_str *value,
                                          struct dv_err *err);

#endif
