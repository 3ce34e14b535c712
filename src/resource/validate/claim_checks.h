/* claim_checks.h - rules for parts of claims that their spec, their status and classes share. */
#ifndef DV_RESOURCE_CLAIM_CHECKS_H
#define DV_RESOURCE_CLAIM_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct dv_api_device_claim;
struct dv_api_device_configuration;
struct dv_api_resource_claim;
struct dv_problems;
struct dv_field_path;

/* "request" or "request/subrequest", which the claim must have. */
void dv_check_request_reference(struct dv_problems *problems, const struct dv_field_path *path,
                                const char *name, dv_str reference,
                                const struct dv_api_device_claim *claim);
/* A list of them, at the child `requests`. */
void dv_check_request_references(struct dv_problems *problems, const struct dv_field_path *path,
                                 const dv_str *references, size_t n,
                                 const struct dv_api_device_claim *claim);
void dv_check_configuration(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_api_device_configuration *configuration,
                            bool is_stored);
void dv_check_claim_status(struct dv_problems *problems, const struct dv_api_resource_claim *claim,
                           const struct dv_api_resource_claim *old);

#endif
