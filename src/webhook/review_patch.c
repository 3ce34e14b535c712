/* review_patch.c - what a webhook changes in an object. */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/custom.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "webhook/webhook.h"
#include "json/json.h"

/* What the name of an object holds is decided before webhooks are asked, and so is what makes it
 * this one. */
static bool keep_identity(const struct dv_api_object_meta *before, struct dv_api_object_meta *after,
                          struct dv_err *err)
{
    if (!dv_str_eq(before->name, after->name) || !dv_str_eq(before->namespace, after->namespace))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "the patch changes metadata.name or metadata.namespace");
    after->uid = before->uid;
    after->resource_version = before->resource_version;
    after->creation_timestamp = before->creation_timestamp;
    after->managed_fields = before->managed_fields;
    after->n_managed_fields = before->n_managed_fields;
    return true;
}

void *dv_review_patch(const struct dv_kind *kind, const struct dv_api_version *version,
                      const void *value, const struct dv_json *patch, struct dv_time now,
                      struct dv_arena *arena, struct dv_err *err)
{
    const struct dv_message *stored = kind->versions[0].message;
    const struct dv_json *doc = dv_encode_json(version->message, value, version, kind->name, arena);
    void *patched = dv_arena_alloc(arena, stored->size, stored->align);

    doc = dv_patch_json(doc, patch, arena, err);
    if (!doc || !dv_json_expect(doc, DV_JSON_OBJECT, err) ||
        !dv_decode_json(version->message, doc, dv_kind_unknown(kind), arena, patched, NULL, err) ||
        !keep_identity(value, patched, err))
        return NULL;
    dv_default(kind, version, patched, now, arena);
    return patched;
}
