/* custom.h - kinds that CustomResourceDefinitions make: definitions compiled for use, and what is
 * done with the objects of such kinds.
 *
 * A custom object is a struct dv_api_custom_object: its metadata as of all other objects, and the
 * rest of it, its *body*, as the text of a document's members, sorted by key. So all that walks
 * objects by their metadata works for it; what is in the body is read where a schema is followed.
 *
 * A compiled definition is immutable and counted: references are taken and dropped on one thread,
 * and any thread may read one that is kept alive meanwhile. */
#ifndef DV_RESOURCE_CUSTOM_H
#define DV_RESOURCE_CUSTOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"
#include "resource/validate.h"

struct dv_api_custom_resource_definition;
struct dv_api_custom_resource_definition_names;
struct dv_api_custom_resource_subresource_scale;
struct dv_arena;
struct dv_column;
struct dv_decode_notes;
struct dv_json;
struct dv_structural;

/* Keeps a definition from going before its objects have gone. */
#define DV_CUSTOM_FINALIZER "customresourcecleanup.apiextensions.k8s.io"
#define DV_CUSTOM_GROUP "apiextensions.k8s.io"
/* How many definitions there may be. */
#define DV_CUSTOM_DEFINITIONS_MAX 1000u
/* What a definition may have of each. */
#define DV_CUSTOM_VERSIONS_MAX 32u
#define DV_CUSTOM_COLUMNS_MAX 64u
#define DV_CUSTOM_SELECTABLE_MAX 8u

struct dv_custom;

struct dv_custom_version {
    struct dv_api_version api; /* first: dv_custom_version_of relies on it */
    const struct dv_custom *custom;
    const struct dv_structural *schema;
    dv_str schema_text; /* as it was written, in JSON */
    bool is_served;
    bool is_storage;
    bool has_status;
    const struct dv_api_custom_resource_subresource_scale *scale; /* NULL: it has none */
    dv_str warning; /* for each request, when it is deprecated; else empty */
    const struct dv_column *columns;
    const dv_str *paths; /* of the columns behind the first; empty: the age of the object */
    size_t n_columns;
};

struct dv_custom {
    struct dv_arena *arena;
    uint32_t n_refs;
    dv_str uid; /* of the definition, and its generation: what has been compiled */
    int64_t generation;
    uint64_t since; /* its version when it was: older objects were written by another schema */
    dv_str group;
    const struct dv_api_custom_resource_definition_names *names;    /* that it is served by */
    const struct dv_api_custom_resource_definition_names *accepted; /* as its status has them */
    bool is_namespaced;
    bool is_terminating; /* nothing is created any more; changes, and is for the loop's thread */
    const struct dv_custom_version *versions; /* as clients prefer them */
    size_t n_versions;
    const struct dv_custom_version *storage;
};

/* Compiles a definition; takes a copy of what it needs. Problems are those of its schemas, below
 * the definition. NULL: there were some. */
struct dv_custom *dv_custom_new(const struct dv_api_custom_resource_definition *definition,
                                struct dv_problems *problems);
struct dv_custom *dv_custom_ref(struct dv_custom *custom);
void dv_custom_unref(struct dv_custom *custom); /* NULL is fine */

/* NULL: there is none of that name. */
const struct dv_custom_version *dv_custom_version_find(const struct dv_custom *custom,
                                                       dv_str version);
/* The version of a kind that a definition made, by what requests know it as. */
static inline const struct dv_custom_version *
dv_custom_version_of(const struct dv_api_version *version)
{
    return (const struct dv_custom_version *)(const void *)version;
}
static inline bool dv_kind_is_custom(const struct dv_kind *kind)
{
    return kind->id == DV_KIND_CUSTOM;
}
/* How a document is read as an object of the kind. */
static inline enum dv_unknown dv_kind_unknown(const struct dv_kind *kind)
{
    return dv_kind_is_custom(kind) ? DV_UNKNOWN_BODY : DV_UNKNOWN_DROP;
}

/* The kinds that are served, by group and plural. */
struct dv_custom_set {
    const struct dv_kind **v;
    size_t n;
    uint64_t generation; /* changes with every change of one of them */
};
/* The kind and served version of that plural, or of that name; NULL: there is none. */
const struct dv_kind *dv_custom_set_find(const struct dv_custom_set *set, dv_str group,
                                         dv_str version, dv_str name, bool is_plural,
                                         const struct dv_custom_version **found);

/* Whether clients prefer the version `a` to `b`: v2 before v1, v1 before v1beta1. */
int dv_api_version_cmp(dv_str a, dv_str b);

/* ---- definitions ---- */

/* The API's defaults of a definition, beside those that every object gets. */
void dv_custom_default_definition(struct dv_api_custom_resource_definition *definition,
                                  struct dv_arena *arena);
/* Adds what is wrong with a definition but for its metadata. `old` is what is stored, or NULL. */
void dv_custom_check_definition(const struct dv_api_custom_resource_definition *definition,
                                const struct dv_api_custom_resource_definition *old,
                                struct dv_problems *problems);
/* Whether a condition of that type is True. */
bool dv_custom_is_true(const struct dv_api_custom_resource_definition *definition, dv_str type);

/* Decides on the next status of a definition. `others` are all definitions, the same one among them
 * or not; `is_ready`: it has been compiled, and its objects can be served. False: the status stays
 * as it is. */
bool dv_custom_next_status(const struct dv_api_custom_resource_definition *definition,
                           const struct dv_api_custom_resource_definition *const *others,
                           size_t n_others, bool is_ready, struct dv_time now,
                           struct dv_arena *arena,
                           struct dv_api_custom_resource_definition_status *status);
/* Sets a condition in a copy of the list, with the time of its change. False: it is so already. */
bool dv_custom_set_condition(struct dv_api_custom_resource_definition_status *status,
                             const struct dv_api_custom_resource_definition_condition *condition,
                             struct dv_time now, struct dv_arena *arena);

/* ---- objects ---- */

/* The document of an object in that version, as schemas see it: of the metadata it has the names
 * alone. */
struct dv_json *dv_custom_document(const struct dv_custom_version *version,
                                   const struct dv_api_custom_object *object,
                                   struct dv_arena *arena);
/* Removes from the body what the schema does not have, and fills in defaults. False: these make it
 * too large. */
DV_CHECKED bool dv_custom_settle(const struct dv_custom_version *version,
                                 struct dv_api_custom_object *object, struct dv_arena *arena,
                                 struct dv_decode_notes *notes);
/* The value of an object as it reads in the version: what was written by another schema lacks
 * fields that were taken out since, and has the defaults that came. In `arena`, or the object's
 * own. */
const struct dv_api_custom_object *dv_custom_shown(const struct dv_object *object,
                                                   const struct dv_custom_version *version,
                                                   struct dv_arena *arena);
/* Set back what the request may not change, and count the generation. */
void dv_custom_prepare_create(const struct dv_custom_version *version,
                              struct dv_api_custom_object *object, struct dv_arena *arena);
void dv_custom_prepare_update(const struct dv_custom_version *version, bool is_status,
                              struct dv_api_custom_object *object,
                              const struct dv_api_custom_object *old, struct dv_arena *arena);
/* Adds what is wrong with the body. `old` is what is stored, or NULL. What rules say against parts
 * that are as they were before is for `warnings` (NULL: for nobody). */
void dv_custom_check(const struct dv_custom_version *version,
                     const struct dv_api_custom_object *object,
                     const struct dv_api_custom_object *old, struct dv_problems *problems,
                     struct dv_problems *warnings);
/* Sets the number at a path of members, ".spec.replicas"; objects on the way are made. False: the
 * path leads through something else. */
DV_CHECKED bool dv_custom_set_number(struct dv_api_custom_object *object, dv_str path,
                                     int64_t number, struct dv_arena *arena);

#endif
