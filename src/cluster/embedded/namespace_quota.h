/* namespace_quota.h - the quotas of namespaces: what is used of each, kept current change by
 * change, so that a write costs what it concerns and not what the namespace holds.
 *
 * What is used is what the stored objects use, and what those use that are being created: they
 * count from their admission, so that no two can take the same room. status.used shows the sum. */
#ifndef DV_CLUSTER_NAMESPACE_QUOTA_H
#define DV_CLUSTER_NAMESPACE_QUOTA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "loop/loop.h"
#include "number/number.h"
#include "resource/quota_use.h"

struct dv_cluster_operation;
struct dv_embedded;
struct dv_entry;
struct dv_object;

/* One resource of a quota. */
struct dv_quota_part {
    struct dv_quota_resource resource; /* its texts are in the quota's object */
    /* As the object's status has it; NULL: it says nothing of it. */
    const struct dv_quantity *hard;
    bool is_told; /* the status says how much is used */
    dv_quota_sum stored;
    dv_quota_sum coming;
    enum dv_quantity_format format;
    bool is_known;   /* there is a kind that uses it */
    bool is_counted; /* `stored` has all objects; false: those that the walk has passed */
};

struct dv_namespace_quota {
    struct dv_embedded *embedded;
    struct dv_link link; /* in its namespace, by name */
    struct dv_entry *entry;
    struct dv_object *object; /* a reference */
    struct dv_quota_part *parts;
    size_t n_parts;
    /* Where the walk over the namespace's objects is: at this kind, behind this key. */
    bool is_walking;
    size_t walk_kind;
    char *walk_after;
    size_t n_walk_after;
    struct dv_link walk_link; /* among those that walk */
    bool is_writing;          /* its status is being written */
    bool is_dirty;            /* and has to be written again */
    bool is_gone;             /* it goes when that has ended */
};

struct dv_quotas {
    struct dv_map by_namespace; /* of struct dv_quota_namespace */
    struct dv_list walking;
    struct dv_list coming; /* operations whose objects count though they are not stored yet */
    struct dv_task walk;
};

struct dv_quota_namespace {
    struct dv_list quotas;
    size_t n_name;
    char name[];
};

void dv_quotas_init(struct dv_embedded *embedded);
void dv_quotas_fini(struct dv_embedded *embedded);
/* Begins with the quotas that were loaded. */
void dv_quotas_start(struct dv_embedded *embedded);
/* The quotas of the namespace, of struct dv_namespace_quota; NULL: there are none. */
struct dv_list *dv_quotas_of(const struct dv_embedded *embedded, dv_str namespace);
/* Shows in the status what is used now. */
void dv_quota_publish(struct dv_namespace_quota *quota);
/* Tells a change that has become durable; both objects have their values, or are NULL. */
void dv_quota_change(struct dv_embedded *embedded, struct dv_entry *entry,
                     const struct dv_object *old, struct dv_object *now);

/* namespace_quota_admit.c. Whether a change of a pod has other quotas be for it. */
bool dv_quota_moves(const struct dv_cluster_operation *operation);
/* Whether the quota is for the object and, of a pod that moves, was not for it before. */
bool dv_quota_is_charged(const struct dv_cluster_operation *operation,
                         const struct dv_namespace_quota *quota);
/* Checks an object that is created or moves, and lets it count from now on. False: it does not fit,
 * and the operation has failed. */
DV_CHECKED bool dv_quota_admit(struct dv_cluster_operation *operation);
/* To be called when the operation has ended, well or not. */
void dv_quota_settle(struct dv_cluster_operation *operation);

#endif
