/* quota_use.h - what an object uses of the quotas of its namespace, as the reference counts it.
 *
 * What is said here follows from the object alone, so that what it used can be taken off again when
 * it has gone. */
#ifndef DV_RESOURCE_QUOTA_USE_H
#define DV_RESOURCE_QUOTA_USE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "number/number.h"

struct dv_api_resource_quota_spec;
struct dv_arena;
struct dv_kind;

/* What is created is held against every resource of every quota of its namespace, on the loop;
 * these keep that below a millisecond. The reference has no limits but the size of an object. */
#define DV_QUOTA_RESOURCES_MAX 256u /* of one quota */
#define DV_QUOTA_SCOPES_MAX 16u     /* of one quota, by name and by expression each */
#define DV_QUOTA_VALUES_MAX 256u    /* of one expression */
#define DV_QUOTAS_MAX 32u           /* of one namespace */

/* Which pods a quota is for. */
enum dv_quota_scope {
    DV_SCOPE_NONE, /* not a scope */
    DV_SCOPE_TERMINATING,
    DV_SCOPE_NOT_TERMINATING,
    DV_SCOPE_BEST_EFFORT,
    DV_SCOPE_NOT_BEST_EFFORT,
    DV_SCOPE_PRIORITY_CLASS,
    DV_SCOPE_CROSS_NAMESPACE_AFFINITY,
    DV_SCOPE_VOLUME_ATTRIBUTES_CLASS,
};
enum dv_quota_scope dv_quota_scope_of(dv_str name);

/* Thousandths of a unit: sums of what any number of objects use. */
__extension__ typedef __int128 dv_quota_sum;

struct dv_quota_amount {
    dv_quota_sum milli;
    enum dv_quantity_format format; /* of the amount that it was read from */
};

/* A resource that a quota names, as what objects use it. It is read once: what is created is held
 * against thousands of them. */
struct dv_quota_resource {
    dv_str name;
    enum {
        DV_QUOTA_NOTHING,       /* or the devices of a class alone */
        DV_QUOTA_OBJECTS,       /* "count/RESOURCE.GROUP" */
        DV_QUOTA_CORE_OBJECTS,  /* "services" */
        DV_QUOTA_PODS,          /* "pods" */
        DV_QUOTA_POD_RESOURCES, /* "limits.cpu" */
    } type;
    dv_str of; /* what is behind a prefix: the kind, or the resource of containers */
    bool is_limit;
    dv_str class; /* whose devices are counted; empty: none's */
};

/* Borrows the name. */
struct dv_quota_resource dv_quota_resource_of(dv_str name);
/* Whether objects of the kind use the resource at all. */
bool dv_quota_counts(const struct dv_kind *kind, const struct dv_quota_resource *resource);
/* Whether a quota is for the object, by its scopes. */
bool dv_quota_is_for(const struct dv_api_resource_quota_spec *spec, const struct dv_kind *kind,
                     const void *value, struct dv_arena *arena);
/* How much of the resource the object uses; 0 milli: nothing. */
struct dv_quota_amount dv_quota_use(const struct dv_kind *kind, const void *value,
                                    const struct dv_quota_resource *resource);
/* Which of the resources that the quota has a pod's containers have to say something about and do
 * not: "limits.memory for: c; requests.cpu for: c", in `arena`; empty: none. */
dv_str dv_quota_missing(const void *pod, const struct dv_quota_resource *const *resources, size_t n,
                        struct dv_arena *arena);

struct dv_quota_amount dv_quota_from_quantity(const struct dv_quantity *quantity);
struct dv_quantity dv_quota_to_quantity(struct dv_quota_amount amount, struct dv_arena *arena);

#endif
