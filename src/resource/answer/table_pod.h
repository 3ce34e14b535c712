/* table_pod.h - the cells of a pod that need thought. */
#ifndef DV_RESOURCE_TABLE_POD_H
#define DV_RESOURCE_TABLE_POD_H

#include "base/str.h"
#include "resource/values.h"

struct dv_api_pod;
struct dv_arena;

struct dv_pod_columns {
    dv_str ready;    /* "1/2" */
    dv_str status;   /* "Init:0/1", "CrashLoopBackOff", "Terminating" */
    dv_str restarts; /* "3 (5m ago)" */
    dv_str gates;    /* "1/1", "<none>" */
};

struct dv_pod_columns dv_pod_columns(const struct dv_api_pod *pod, struct dv_time now,
                                     struct dv_arena *arena);

#endif
