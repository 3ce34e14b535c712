/* pod_security.h - the standards for pods that a namespace's labels name. */
#ifndef DV_RESOURCE_POD_SECURITY_H
#define DV_RESOURCE_POD_SECURITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct dv_api_object_meta;
struct dv_api_pod_spec;
struct dv_api_pod_template_spec;
struct dv_arena;
struct dv_kind;

/* What pods of a namespace are held to: pods that violate one are refused, of the other it is only
 * warned. */
enum dv_pod_security_mode {
    DV_POD_SECURITY_ENFORCE,
    DV_POD_SECURITY_WARN,
};

/* `PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`: what the pod violates;
 * empty: nothing, or the namespace (may be NULL) demands nothing. Pure. */
dv_str dv_pod_security_violations(const struct dv_api_object_meta *namespace,
                                  enum dv_pod_security_mode mode,
                                  const struct dv_api_object_meta *pod,
                                  const struct dv_api_pod_spec *spec, struct dv_arena *arena);
/* The template for pods that an object of the kind has; NULL: it has none. */
const struct dv_api_pod_template_spec *dv_pod_template_of(const struct dv_kind *kind,
                                                          const void *value);
bool dv_pod_security_is_level(dv_str text);
/* The minor version that "v1.30" or "latest" (INT64_MAX) names. False: none. */
bool dv_pod_security_version(dv_str text, int64_t *minor);

#endif
