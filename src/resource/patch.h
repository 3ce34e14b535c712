/* patch.h - changing documents: JSON patch, merge patch, strategic merge patch, server-side apply.
 *
 * All take a document in the version of the request and give a new one in `arena`; nothing that was
 * given is changed. */
#ifndef DV_RESOURCE_PATCH_H
#define DV_RESOURCE_PATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/values.h"

struct dv_api_managed_fields_entry;
struct dv_arena;
struct dv_err;
struct dv_json;
struct dv_message;

/* RFC 6902, at most 10,000 operations. DV_INVALID_ARGUMENT: not a patch (400).
 * DV_FAILED_PRECONDITION: it does not apply: a failed test, no such path (422).
 * DV_RESOURCE_EXHAUSTED: too many operations (413). */
struct dv_json *dv_patch_json(const struct dv_json *doc, const struct dv_json *patch,
                              struct dv_arena *arena, struct dv_err *err);
/* RFC 7386. */
struct dv_json *dv_patch_merge(const struct dv_json *doc, const struct dv_json *patch,
                               struct dv_arena *arena);
/* Lists are merged by the keys of the message's table; $patch, $retainKeys, $setElementOrder/,
 * $deleteFromPrimitiveList/ as the API defines them. DV_INVALID_ARGUMENT: not a patch for it. */
struct dv_json *dv_patch_strategic(const struct dv_message *message, const struct dv_json *doc,
                                   const struct dv_json *patch, struct dv_arena *arena,
                                   struct dv_err *err);

/* ---- server-side apply and ownership of fields ---- */

struct dv_managed_fields {
    struct dv_api_managed_fields_entry *v;
    size_t n;
};

struct dv_manager {
    dv_str name;        /* fieldManager */
    dv_str api_version; /* of the request */
    dv_str subresource; /* "status" or "" */
    struct dv_time now;
};

struct dv_apply_conflict {
    dv_str manager; /* who owns it: `"x" using v1 at 2026-...` as the reference's cause says */
    dv_str field;   /* ".spec.x" */
};

struct dv_apply_result {
    struct dv_json *doc; /* merged, without managedFields */
    struct dv_managed_fields managed;
    struct dv_apply_conflict *conflicts; /* not empty: the others count for nothing */
    size_t n_conflicts;
};

/* Applies the configuration `config` of a manager to `live` (NULL: there is no object yet), whose
 * ownership is `managed`. Fields that this manager applied before and has left out now are removed,
 * unless others own them. With `force` conflicts are resolved in its favour. */
DV_CHECKED bool dv_apply(const struct dv_message *message, const struct dv_json *live,
                         const struct dv_managed_fields *managed, const struct dv_json *config,
                         const struct dv_manager *manager, bool force, struct dv_arena *arena,
                         struct dv_apply_result *result, struct dv_err *err);
/* Ownership after a create, update or patch by `manager`: what it changed from `old` (NULL:
 * nothing) to `doc` is its own now, under operation Update. */
void dv_apply_update(const struct dv_message *message, const struct dv_json *old,
                     const struct dv_json *doc, const struct dv_managed_fields *managed,
                     const struct dv_manager *manager, struct dv_arena *arena,
                     struct dv_managed_fields *result);

#endif
