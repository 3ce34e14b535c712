/* pod_checks.h - rules for the volumes of pods, and for updates of pods. */
#ifndef DV_RESOURCE_POD_CHECKS_H
#define DV_RESOURCE_POD_CHECKS_H

#include <stddef.h>

#include "base/str.h"

struct dv_api_affinity;
struct dv_api_container;
struct dv_api_pod;
struct dv_api_pod_template_spec;
struct dv_api_topology_spread_constraint;
struct dv_api_volume;
struct dv_buf;
struct dv_field_path;
struct dv_map;
struct dv_problems;

/* Checks volumes, and fills `names`. */
void dv_check_volumes(struct dv_problems *problems, const struct dv_field_path *path,
                      struct dv_api_volume *volumes, size_t n_volumes, struct dv_map *names);
/* Checks the volumeMounts of a container, whose path is given. */
void dv_check_mounts(struct dv_problems *problems, const struct dv_field_path *path,
                     const struct dv_api_container *container, const struct dv_map *volumes);

/* Checks a template for pods, which is at `path`. */
void dv_check_pod_template(struct dv_problems *problems, const struct dv_field_path *path,
                           const struct dv_api_pod_template_spec *template);

/* Checks which nodes and pods a pod wants to be near or apart from, and over which it is spread:
 * validate_affinity.c. */
void dv_check_affinity(struct dv_problems *problems, const struct dv_field_path *path,
                       const struct dv_api_affinity *affinity);
void dv_check_spread(struct dv_problems *problems, const struct dv_field_path *path,
                     struct dv_api_topology_spread_constraint *constraints, size_t n);

/* Only a few fields of the spec may change. */
void dv_check_pod_update(struct dv_problems *problems, const struct dv_api_pod *pod,
                         const struct dv_api_pod *old);
void dv_check_pod_status(struct dv_problems *problems, const struct dv_api_pod *pod,
                         const struct dv_api_pod *old);

/* How `from` becomes `to`, line by line: the hunks of a unified diff with three lines around. */
void dv_diff_lines(dv_str from, dv_str to, struct dv_buf *buf);

#endif
