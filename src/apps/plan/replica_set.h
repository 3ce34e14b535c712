/* replica_set.h - ReplicaSets: as many pods of a template as are wanted. */
#ifndef DV_APPS_REPLICA_SET_H
#define DV_APPS_REPLICA_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "resource/values.h"

struct dv_api_pod;
struct dv_api_replica_set;
struct dv_arena;
struct dv_plan;

/* How many pods are made or deleted before it is looked again. */
#define DV_REPLICA_BURST 500u

/* What is there; all of it outlives the plan. */
struct dv_replica_input {
    const struct dv_api_replica_set *set;
    const struct dv_api_pod *const *pods; /* those that it owns, and those that are nobody's */
    size_t n_pods;
    const struct dv_api_pod *const *siblings; /* pods of other sets with the same owner */
    size_t n_siblings;
    struct dv_time now;
    bool has_failed; /* what was planned could not be done: nothing but the status is planned */
    dv_str failed_reason;
    dv_str failed_message;
};

void dv_replica_plan(const struct dv_replica_input *input, struct dv_plan *plan);

/* Puts the pods that are deleted first to the front; they are the active ones of the set. */
void dv_replica_sort(const struct dv_replica_input *input, const struct dv_api_pod **pods, size_t n,
                     struct dv_arena *arena);

#endif
