/* custom_kinds.h - the kinds that definitions make, each with its collection.
 *
 * A kind is made with its definition, and stays for as long as the process runs: objects, watches
 * and requests refer to it at any time. When its definition goes it is no longer served; one of the
 * same names takes its place again. What may change, schemas and columns and versions, is in the
 * definition (resource/custom.h), which is counted. */
#ifndef DV_CLUSTER_CUSTOM_KINDS_H
#define DV_CLUSTER_CUSTOM_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "cluster/objects/collection.h"
#include "resource/custom.h"
#include "resource/resource.h"

/* So many kinds may be made in the life of a process; it takes a few hundred bytes to remember one
 * that is gone. Beyond that a definition with new names is served after a restart. */
#define DV_CUSTOM_KINDS_MAX 4096u

struct dv_arena;

struct dv_custom_kind {
    struct dv_kind kind; /* first: dv_custom_kind_of relies on it */
    struct dv_api_version version;
    struct dv_collection collection;
    size_t index;               /* among all of them */
    struct dv_custom *compiled; /* the definition, which may not be served yet; NULL: it is not */
    bool is_compiling;
    dv_str full_name; /* "plural.group" */
    char names[];
};

struct dv_custom_kinds {
    struct dv_custom_kind **v; /* in the order in which they were made */
    size_t n;
    size_t size;
    struct dv_custom_set served;
    struct dv_slabs *memory; /* see collection.h */
};

static inline struct dv_custom_kind *dv_custom_kind_of(const struct dv_kind *kind)
{
    return (
        struct dv_custom_kind *)(uintptr_t)kind; /* all of them were made here, and can change */
}

/* What the keys of a kind's objects in the store begin with: "Pod", or for a kind that a definition
 * made "custom:widgets.example.com". So they are loaded after the definitions. */
#define DV_CUSTOM_KEY "custom:"
dv_str dv_custom_key_of(const struct dv_kind *kind, struct dv_arena *arena);

void dv_custom_kinds_init(struct dv_custom_kinds *kinds, struct dv_slabs *memory);
void dv_custom_kinds_fini(struct dv_custom_kinds *kinds);

/* The kind that a definition makes, by its names and scope; made when there is none, without
 * history: nothing is known of the time up to `floor`. NULL: there are too many. */
struct dv_custom_kind *
dv_custom_kinds_take(struct dv_custom_kinds *kinds,
                     const struct dv_api_custom_resource_definition *definition,
                     size_t n_history_max, uint64_t floor);
/* The kind of that name that was made last: by its objects in the store. */
struct dv_custom_kind *dv_custom_kinds_by_key(const struct dv_custom_kinds *kinds,
                                              dv_str full_name);
/* Serves the kind by that definition (NULL: no longer). Takes the reference. */
void dv_custom_kind_serve(struct dv_custom_kinds *kinds, struct dv_custom_kind *kind,
                          struct dv_custom *custom);

#endif
