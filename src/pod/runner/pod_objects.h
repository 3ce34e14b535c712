/* pod_objects.h - gets the ConfigMaps and Secrets that a pod refers to from the API, before its
 * volumes are made and whenever one of its containers is: what they say then counts. */
#ifndef DV_POD_OBJECTS_H
#define DV_POD_OBJECTS_H

#include <stddef.h>

#include "base/err.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "workload/workload.h"

struct dv_api_pod;
struct dv_arena;
struct dv_cluster;
struct dv_err;
struct dv_pod_get;

/* One fetch, embedded in what waits for it: zeroed, with the first four set, and lent until `done`
 * has run. The objects stay until dv_pod_objects_fini. */
struct dv_pod_objects {
    /* err: NULL when all that exists is there. An object that does not exist is no failure. */
    void (*done)(struct dv_pod_objects *op, const struct dv_err *err);
    struct dv_loop *loop;
    struct dv_cluster *cluster;
    struct dv_arena *arena;             /* for what is fetched */
    struct dv_workload_objects objects; /* the result */
    struct {
        DV_VEC(struct dv_pod_get *) gets;
        size_t n_started; /* of `gets`, in their order */
        size_t n_running;
        struct dv_task task;
        struct dv_err err;
    } priv;
};

/* Starts to get what the pod refers to, pull secrets included. `pod` is not kept. */
void dv_pod_objects_start(struct dv_pod_objects *op, const struct dv_api_pod *pod);
/* Gives up; `done` still runs. */
void dv_pod_objects_cancel(struct dv_pod_objects *op);
/* Gives the objects back. Fine for a fetch that was never started. */
void dv_pod_objects_fini(struct dv_pod_objects *op);

#endif
