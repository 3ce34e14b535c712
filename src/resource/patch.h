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
struct dv_custom_version;
struct dv_err;
struct dv_json;
struct dv_message;

/* RFC 6902, at most 10,000 operations. DV_INVALID_ARGUMENT: not a patch (400).
 * DV_FAILED_PRECONDITION: it does not apply: a failed test, no such path (422).
 * DV_RESOURCE_EXHAUSTED: too many operations, or too much work (413). Messages are the
 * reference's. */
struct dv_json *dv_patch_json(const struct dv_json *doc, const struct dv_json *patch,
                              struct dv_arena *arena, struct dv_err *err);
/* RFC 7386, but nulls are left out of objects inside of lists, too. What is no object replaces the
 * document, so ask dv_patch_merge_check first. */
struct dv_json *dv_patch_merge(const struct dv_json *doc, const struct dv_json *patch,
                               struct dv_arena *arena);
/* Whether it can be a merge patch for an object; DV_INVALID_ARGUMENT with the reference's message.
 */
DV_CHECKED bool dv_patch_merge_check(const struct dv_json *patch, struct dv_err *err);
/* Lists are merged by the keys of the message's table; $patch, $retainKeys, $setElementOrder/,
 * $deleteFromPrimitiveList/ as the API defines them. DV_INVALID_ARGUMENT: not a patch (400).
 * DV_FAILED_PRECONDITION: lists of lists (422). DV_INTERNAL: a missing merge key, a directive that
 * nobody knows: what the reference answers with 500. */
struct dv_json *dv_patch_strategic(const struct dv_message *message, const struct dv_json *doc,
                                   const struct dv_json *patch, struct dv_arena *arena,
                                   struct dv_err *err);

/* Encodes a struct as a patch: with the fields that are set in it, and no others. An object has
 * always some that are empty, by which a patch would empty what is there. Lists that a strategic
 * merge patch replaces keep their items whole. */
struct dv_json *dv_encode_patch(const struct dv_message *message, const void *value,
                                struct dv_arena *arena);

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
    const struct dv_custom_version *custom; /* of a kind that a definition made; NULL: built in */
};

struct dv_apply_conflict {
    dv_str manager; /* who owns it, as the reference's cause says: `"x" using v1` */
    dv_str field;   /* ".spec.x" */
};

struct dv_apply_result {
    struct dv_json *doc; /* merged, without managedFields; null stands for what was removed */
    struct dv_managed_fields managed;
    struct dv_apply_conflict *conflicts; /* by manager; not empty: the others count for nothing */
    size_t n_conflicts;
};

/* Applies the configuration `config` of a manager to `live` (NULL: there is no object yet), whose
 * ownership is `managed`. Fields that this manager applied before and has left out now are removed,
 * unless others own them. With `force` conflicts are resolved in its favour. DV_INTERNAL with the
 * reference's message: a field that the kind does not have, or a value that does not fit. */
DV_CHECKED bool dv_apply(const struct dv_message *message, const struct dv_json *live,
                         const struct dv_managed_fields *managed, const struct dv_json *config,
                         const struct dv_manager *manager, bool force, struct dv_arena *arena,
                         struct dv_apply_result *result, struct dv_err *err);
/* Ownership after a create, update or patch by `manager`: what it changed from the struct `old`
 * (NULL: nothing) to `value` is its own now, under operation Update. An object whose ownership was
 * not kept before is left without. */
void dv_apply_update(const struct dv_message *message, const void *old, const void *value,
                     const struct dv_managed_fields *managed, const struct dv_manager *manager,
                     struct dv_arena *arena, struct dv_managed_fields *result);
/* Whether two are equal except for their times. When nothing else changed in an object either, a
 * write leaves it as it was. */
bool dv_managed_fields_eq(const struct dv_managed_fields *a, const struct dv_managed_fields *b);

#endif
