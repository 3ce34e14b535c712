/* pod_checks.h - rules for updates of pods. */
#ifndef DV_RESOURCE_POD_CHECKS_H
#define DV_RESOURCE_POD_CHECKS_H

#include "base/str.h"

struct dv_api_pod;
struct dv_buf;
struct dv_problems;

/* Only a few fields of the spec may change. */
void dv_check_pod_update(struct dv_problems *problems, const struct dv_api_pod *pod,
                         const struct dv_api_pod *old);
void dv_check_pod_status(struct dv_problems *problems, const struct dv_api_pod *pod,
                         const struct dv_api_pod *old);

/* How `from` becomes `to`, line by line: the hunks of a unified diff with three lines around. */
void dv_diff_lines(dv_str from, dv_str to, struct dv_buf *buf);

#endif
