/* job_checks.h - rules for parts of a Job. */
#ifndef DV_RESOURCE_JOB_CHECKS_H
#define DV_RESOURCE_JOB_CHECKS_H

#include <stdbool.h>

struct dv_api_job;
struct dv_api_job_spec;
struct dv_api_job_status;
struct dv_problems;

/* Checks the policies of a spec. */
void dv_check_job_policies(struct dv_problems *problems, const struct dv_api_job_spec *spec);
/* Checks what a status may say, and how it may follow the old one. What has not changed is not
 * looked at again: a change of the spec may have made it wrong. */
void dv_check_job_status(struct dv_problems *problems, const struct dv_api_job *job,
                         const struct dv_api_job *old);
/* Whether the condition is True. */
bool dv_job_has_condition(const struct dv_api_job_status *status, const char *type);

#endif
