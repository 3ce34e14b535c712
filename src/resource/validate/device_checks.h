/* device_checks.h - rules for devices of slices. */
#ifndef DV_RESOURCE_DEVICE_CHECKS_H
#define DV_RESOURCE_DEVICE_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

struct dv_api_capacity_request_policy;
struct dv_api_counter_entry;
struct dv_api_device;
struct dv_problems;
struct dv_quantity;
struct dv_field_path;

/* `old` is the device of that name in the stored slice, or NULL. */
void dv_check_device(struct dv_problems *problems, const struct dv_field_path *path,
                     const struct dv_api_device *device, const struct dv_api_device *old,
                     bool has_own_nodes);
/* A set of counters, at the child `counters`. */
void dv_check_counters(struct dv_problems *problems, const struct dv_field_path *path,
                       const struct dv_api_counter_entry *counters, size_t n);
void dv_check_request_policy(struct dv_problems *problems, const struct dv_field_path *path,
                             const struct dv_quantity *capacity,
                             const struct dv_api_capacity_request_policy *policy);

#endif
