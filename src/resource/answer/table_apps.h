/* table_apps.h - texts of cells that what makes pods has. All are made in the arena, and empty when
 * there is nothing to print. */
#ifndef DV_RESOURCE_TABLE_APPS_H
#define DV_RESOURCE_TABLE_APPS_H

#include <stddef.h>

#include "base/str.h"

struct dv_api_job;
struct dv_api_object_meta;
struct dv_api_pod_spec;
struct dv_arena;
struct dv_str_entry;

/* "a,b" */
dv_str dv_container_names_print(const struct dv_api_pod_spec *spec, struct dv_arena *arena);
dv_str dv_container_images_print(const struct dv_api_pod_spec *spec, struct dv_arena *arena);
/* "a=b,c=d" */
dv_str dv_labels_print(const struct dv_str_entry *labels, size_t n, struct dv_arena *arena);
/* "daemonset.apps/name": the controller that owns the object. */
dv_str dv_controller_print(const struct dv_api_object_meta *meta, struct dv_arena *arena);

/* "Running", "Suspended", "Complete": how far a Job is. */
dv_str dv_job_status_cell(const struct dv_api_job *job);
/* "1/3": how many pods have succeeded, and how many shall. */
dv_str dv_job_completions_cell(const struct dv_api_job *job, struct dv_arena *arena);

#endif
