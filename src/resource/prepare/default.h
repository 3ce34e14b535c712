/* default.h - the parts of dv_default. */
#ifndef DV_RESOURCE_DEFAULT_H
#define DV_RESOURCE_DEFAULT_H

#include <stddef.h>

#include "base/str.h"

struct dv_api_daemon_set;
struct dv_api_deployment;
struct dv_api_endpoint_slice;
struct dv_api_endpoints;
struct dv_api_object_field_selector;
struct dv_api_pod;
struct dv_api_pod_spec;
struct dv_api_job;
struct dv_api_replica_set;
struct dv_api_service;
struct dv_api_volume;
struct dv_arena;
struct dv_quantity_entry;

static inline void dv_default_str(dv_str *text, dv_str value)
{
    if (text->n == 0)
        *text = value;
}

void dv_default_pod(struct dv_api_pod *pod, struct dv_arena *arena);
/* The defaults of a pod's spec that a template for pods has as well. */
void dv_default_pod_spec(struct dv_api_pod_spec *spec, struct dv_arena *arena);
void dv_default_daemon_set(struct dv_api_daemon_set *set, struct dv_arena *arena);
void dv_default_service(struct dv_api_service *service, struct dv_arena *arena);
void dv_default_endpoints(struct dv_api_endpoints *endpoints);
void dv_default_endpoint_slice(struct dv_api_endpoint_slice *slice, struct dv_arena *arena);
void dv_default_deployment(struct dv_api_deployment *deployment, struct dv_arena *arena);
void dv_default_job(struct dv_api_job *job, struct dv_arena *arena);
void dv_default_replica_set(struct dv_api_replica_set *set, struct dv_arena *arena);
void dv_default_volume(struct dv_api_volume *volume, struct dv_arena *arena);
/* Rounds amounts up to thousandths, away from zero: the API has nothing finer. */
void dv_default_quantities(struct dv_quantity_entry *entries, size_t n, struct dv_arena *arena);
void dv_default_field_ref(struct dv_api_object_field_selector *ref); /* NULL is fine */
/* The pull policy for an image by its tag: "Always" where the image may change under its name. */
dv_str dv_default_pull_policy(dv_str image);

#endif
