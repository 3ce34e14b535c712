/* vap_checks.h - what the rules of admission policies and of their bindings share. */
#ifndef DV_RESOURCE_VAP_CHECKS_H
#define DV_RESOURCE_VAP_CHECKS_H

struct dv_api_match_resources;
struct dv_field_path;
struct dv_problems;

/* Checks which requests are matched, with the defaults filled in. */
void dv_check_match_resources(struct dv_problems *problems, const struct dv_field_path *path,
                              const struct dv_api_match_resources *match);

#endif
