/* pod_parse.h - what the readers of Pods have in common: pod_parse.c reads JSON, pod_read.c typed
 * objects. Pure. */
#ifndef DV_POD_PARSE_H
#define DV_POD_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_device_limit;
struct dv_err;
struct dv_json;
struct dv_pod_container;
struct dv_pod_spec;
struct dv_quantity;

/* The number of containers is bounded before memory is taken for them. The API allows as many. */
#define DV_POD_CONTAINERS_MAX 512u
#define DV_POD_NAME_BYTES_MAX 253u
/* The API server refuses objects over 3 MiB. */
#define DV_POD_BYTES_MAX (3u << 20)

/* Like dv_pod_spec_parse, for a parsed document that lives as long as the arena. */
DV_CHECKED bool dv_pod_spec_parse_tree(const struct dv_json *pod, struct dv_arena *arena,
                                       struct dv_pod_spec *spec, struct dv_err *err);
/* A member that is absent, or null, is empty. */
DV_CHECKED bool dv_pod_optional_str(const struct dv_json *object, dv_str key, dv_str *value,
                                    struct dv_err *err);

bool dv_pod_has_control(dv_str text);
/* Extended resources have a slash; cpu, memory and the like are not for plugins. */
bool dv_pod_is_extended(dv_str resource);
/* Returns NULL, or what is wrong with the amount: "is negative". */
const char *dv_pod_whole_amount(const struct dv_quantity *quantity, int64_t *amount);
bool dv_pod_parse_pid(dv_str text, uint32_t *pid);
/* Sorts the limits by name, for the bisection that looks them up. */
void dv_pod_sort_limits(struct dv_pod_container *container);
/* Removes a resource of which the scheduler has taken the devices from a claim: no plugin is asked
 * for it. */
void dv_pod_mark_claimed(struct dv_pod_spec *spec, dv_str container, dv_str resource);

#endif
