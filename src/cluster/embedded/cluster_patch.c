/* cluster_patch.c - the verb PATCH, server-side apply included.
 *
 * A patch is applied to what is stored, in the version of the request, while the name is held: so
 * it never has to be tried again. */
#include "resource/misfit.h"
#include "resource/patch.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/engine.h"
#include "cluster/embedded/update.h"
#include "cluster/objects/collection.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "resource/validate.h"
#include "json/json.h"

/* The ceiling of a document that is printed in a message: as large as a body may be. */
#define DOC_BYTES_MAX (4u * 1024u * 1024u)
/* How deep a patch is followed to print the keys in the reference's order. No object is deeper; for
 * a patch that is, only the message is less exact. */
#define ORDER_DEPTH_MAX 16u

static struct dv_json *current(struct dv_cluster_operation *operation)
{
    const struct dv_api_version *version = dv_update_version(operation);

    return dv_encode_json(version->message, dv_change_stored(operation, operation->entry->object),
                          version, operation->request->kind->name, operation->arena);
}

/* ---- failures ---- */

bool dv_patch_fail(struct dv_cluster_operation *operation, const struct dv_err *err)
{
    if (err->code == DV_INVALID_ARGUMENT)
        return dv_cluster_operation_fail(
            operation, dv_status_bad_request(operation->arena, "%s", dv_err_text(err)));
    if (err->code == DV_FAILED_PRECONDITION)
        return dv_cluster_operation_fail(operation, dv_status_cannot_patch(operation->arena));
    if (err->code == DV_RESOURCE_EXHAUSTED)
        return dv_cluster_operation_fail(operation,
                                         dv_status_new(413, DV_STR("RequestEntityTooLarge"),
                                                       operation->arena, "%s", dv_err_text(err)));
    return dv_cluster_operation_fail(
        operation, dv_status_new(500, DV_STR_NONE, operation->arena, "%s", dv_err_text(err)));
}

static int by_key(const void *a, const void *b)
{
    return dv_str_cmp(dv_json_key(*(struct dv_json *const *)a),
                      dv_json_key(*(struct dv_json *const *)b));
}

/* Orders the keys of a patched document for a message as the reference prints them: sorted where
 * the patch has touched an object, and as they were elsewhere. */
static struct dv_json *in_order(const struct dv_json *doc, const struct dv_json *patch,
                                size_t depth, struct dv_arena *arena)
{
    struct dv_json **children = DV_NEW_ARRAY(arena, struct dv_json *, dv_json_n(doc));
    struct dv_json *ordered = dv_json_new_object(arena);
    size_t n = 0;

    for (struct dv_json *child = dv_json_first(doc); child; child = dv_json_next(child))
        children[n++] = child;
    if (n > 0)
        qsort(children, n, sizeof(children[0]), by_key);
    for (size_t i = 0; i < n; i++) {
        dv_str key = dv_json_key(children[i]);
        const struct dv_json *touch = dv_json_get(patch, key);
        bool is_touched = depth < ORDER_DEPTH_MAX && dv_json_is(touch, DV_JSON_OBJECT) &&
                          dv_json_is(children[i], DV_JSON_OBJECT);

        dv_json_set(ordered, key,
                    is_touched ? in_order(children[i], touch, depth + 1, arena)
                               : dv_json_copy(children[i], arena),
                    arena);
    }
    return ordered;
}

/* The patched document is not an object of the kind: 422 about the whole of it. */
static bool fail_result(struct dv_cluster_operation *operation, const struct dv_json *doc,
                        dv_str why)
{
    const struct dv_status_about nothing = {0};
    struct dv_problem problem = {.type = DV_PROBLEM_INVALID, .field = DV_STR("patch")};
    struct dv_problems problems = {.v = &problem, .n = 1, .arena = operation->arena};
    struct dv_buf text;
    struct dv_buf quoted;

    dv_buf_init(&text, DOC_BYTES_MAX);
    dv_buf_init(&quoted, DOC_BYTES_MAX * 2);
    if (dv_json_is(doc, DV_JSON_OBJECT))
        doc = in_order(doc, operation->request->patch, 0, operation->arena);
    dv_json_print(doc, NULL, &text);
    dv_buf_add_c(&quoted, "Invalid value: ");
    dv_buf_add_json(&quoted, dv_buf_str(&text));
    dv_buf_add_c(&quoted, ": ");
    dv_buf_add(&quoted, why);
    problem.detail = dv_str_copy(dv_buf_str(&quoted), operation->arena);
    dv_buf_fini(&text);
    dv_buf_fini(&quoted);
    return dv_cluster_operation_fail(operation,
                                     dv_status_invalid(&nothing, &problems, operation->arena));
}

static bool fail_notes(struct dv_cluster_operation *operation, const struct dv_json *doc,
                       const struct dv_decode_notes *notes)
{
    struct dv_buf text;
    bool is_ok;

    dv_buf_init(&text, DOC_BYTES_MAX);
    dv_buf_add_c(&text, "strict decoding error: ");
    for (size_t i = 0; i < notes->n; i++) {
        dv_buf_add_c(&text, i > 0 ? ", " : "");
        dv_buf_add(&text, notes->v[i]);
    }
    is_ok = fail_result(operation, doc, dv_buf_str(&text));
    dv_buf_fini(&text);
    return is_ok;
}

/* ---- the result ---- */

static dv_str text_of(const struct dv_json *object, dv_str key)
{
    const struct dv_json *node = dv_json_get(object, key);
    struct dv_err err;
    dv_str text = {0};

    if (node && !dv_json_as_str(node, &text, &err))
        return DV_STR_NONE; /* a value that is no text is refused later, when the whole is read */
    return text;
}

/* Whether the patched document is still of its kind and version. What is patched as a document says
 * what it is; a strategic patch knows. */
static bool check_type(struct dv_cluster_operation *operation, const struct dv_json *doc)
{
    const struct dv_api_version *version = dv_update_version(operation);
    enum dv_patch_type type = operation->request->patch_type;
    dv_str api_version = text_of(doc, DV_STR("apiVersion"));
    dv_str kind = text_of(doc, DV_STR("kind"));
    dv_str group;
    dv_str number;

    dv_api_version_split(api_version, &group, &number);
    if ((type != DV_PATCH_MERGE && type != DV_PATCH_JSON) ||
        (dv_str_eq(kind, operation->request->kind->name) && dv_str_eq(group, version->group) &&
         dv_str_eq(number, version->version)))
        return true;
    return fail_result(
        operation, doc,
        dv_str_printf(operation->arena,
                      "no kind \"%.*s\" is registered for version \"%.*s\" in scheme "
                      "\"pkg/api/legacyscheme/scheme.go:30\"",
                      DV_FMT(kind), DV_FMT(api_version)));
}

/* Reads the patched document as an object. NULL: the operation has failed. */
static void *read_result(struct dv_cluster_operation *operation, const struct dv_json *doc)
{
    const struct dv_message *message = dv_update_version(operation)->message;
    const struct dv_message *stored = operation->request->kind->versions[0].message;
    void *value = dv_arena_alloc(operation->arena, stored->size, stored->align);
    struct dv_decode_notes notes = {0};
    struct dv_err err;
    dv_str why;

    if (!dv_decode_json(message, doc, dv_kind_unknown(operation->request->kind), operation->arena,
                        value, &notes, &err)) {
        if (!dv_misfit_find(message, doc, operation->arena, &why))
            why = dv_str_from_c(dv_err_text(&err));
        (void)fail_result(operation, doc, why);
        return NULL;
    }
    if (notes.n > 0 && operation->request->field_validation == DV_VALIDATE_STRICT) {
        (void)fail_notes(operation, doc, &notes);
        return NULL;
    }
    if (operation->request->field_validation == DV_VALIDATE_WARN) {
        operation->warnings = notes.v;
        operation->n_warnings = notes.n;
    }
    return value;
}

/* A patch that takes the name away takes all of the metadata, or everything: it is refused, not
 * understood as one that leaves the name out. */
static bool check_named(struct dv_cluster_operation *operation, void *value)
{
    if (operation->request->patch_type == DV_PATCH_APPLY || dv_meta_of(value)->name.n > 0)
        return true;
    return dv_cluster_operation_fail(
        operation,
        dv_status_bad_request(operation->arena,
                              "the name of the object (%.*s based on URL) was undeterminable: name "
                              "must be provided",
                              DV_FMT(dv_entry_name(operation->entry))));
}

static bool store_result(struct dv_cluster_operation *operation, const struct dv_json *doc,
                         const struct dv_managed_fields *managed)
{
    void *value = check_type(operation, doc) ? read_result(operation, doc) : NULL;

    if (!value || !check_named(operation, value) || !dv_update_check_names(operation, value))
        return false;
    if (!operation->entry->object)
        return dv_create_value(operation, value, managed);
    if (!dv_update_check_version(operation, dv_meta_of(value)->resource_version))
        return false;
    return dv_update_value(operation, value, managed);
}

/* ---- server-side apply ---- */

/* Checks what an apply configuration must have. False: the operation has failed. */
static bool check_config(struct dv_cluster_operation *operation, const struct dv_json *config)
{
    const struct dv_api_version *version = dv_update_version(operation);
    dv_str api_version = text_of(config, DV_STR("apiVersion"));
    dv_str kind = text_of(config, DV_STR("kind"));
    const struct dv_json *meta = dv_json_get(config, DV_STR("metadata"));
    dv_str name = text_of(meta, DV_STR("name"));
    dv_str group;
    dv_str number;

    dv_api_version_split(api_version, &group, &number);
    if (!dv_str_eq(kind, operation->request->kind->name) || !dv_str_eq(group, version->group) ||
        !dv_str_eq(number, version->version))
        return dv_cluster_operation_fail(
            operation, dv_status_bad_request(operation->arena,
                                             "invalid object type: %.*s/%.*s, "
                                             "Kind=%.*s",
                                             DV_FMT(group), DV_FMT(number), DV_FMT(kind)));
    if (name.n > 0 && !dv_str_eq(name, dv_entry_name(operation->entry)))
        return dv_cluster_operation_fail(
            operation, dv_status_bad_request(
                           operation->arena,
                           "the name of the object (%.*s) does not match the name on the URL "
                           "(%.*s)",
                           DV_FMT(name), DV_FMT(dv_entry_name(operation->entry))));
    if (dv_json_get(meta, DV_STR("managedFields")))
        return dv_cluster_operation_fail(
            operation,
            dv_status_bad_request(operation->arena, "metadata.managedFields must be nil"));
    return !operation->entry->object ||
           dv_update_check_version(operation, text_of(meta, DV_STR("resourceVersion")));
}

static void drop(struct dv_json *object, dv_str key)
{
    struct dv_json *node = dv_json_get(object, key);

    if (node)
        dv_json_remove(node);
}

/* Removes from an apply configuration what this endpoint does not change (the status, or all but
 * the status): fields that it does not set cannot be owned through it. */
static struct dv_json *strip_config(struct dv_cluster_operation *operation)
{
    struct dv_json *config = dv_json_copy(operation->request->patch, operation->arena);
    const struct dv_custom_version *custom = dv_change_version(operation);
    enum dv_kind_id id = operation->request->kind->id;

    if (operation->request->subresource != DV_SUB_STATUS) {
        if (custom ? custom->has_status : operation->request->kind->has_status)
            drop(config, DV_STR("status"));
        return config;
    }
    drop(config, DV_STR("spec"));
    if (id == DV_KIND_CLAIM || id == DV_KIND_TAINT_RULE) {
        struct dv_json *meta = dv_json_get(config, DV_STR("metadata"));

        drop(meta, DV_STR("labels"));
        drop(meta, DV_STR("annotations"));
        drop(meta, DV_STR("finalizers"));
        drop(meta, DV_STR("ownerReferences"));
    }
    return config;
}

static bool apply(struct dv_cluster_operation *operation)
{
    const struct dv_api_version *version = dv_update_version(operation);
    const struct dv_object *object = operation->entry->object;
    struct dv_manager manager = dv_update_manager(operation);
    struct dv_managed_fields managed = {0};
    struct dv_apply_result *result = DV_NEW(operation->arena, struct dv_apply_result);
    struct dv_err err;

    if (!dv_json_is(operation->request->patch, DV_JSON_OBJECT))
        return dv_cluster_operation_fail(
            operation,
            dv_status_bad_request(operation->arena, "error decoding YAML: not an object"));
    if (!check_config(operation, operation->request->patch))
        return false;
    if (object)
        managed = (struct dv_managed_fields){object->meta->managed_fields,
                                             object->meta->n_managed_fields};
    if (!dv_apply(version->message, object ? current(operation) : NULL, &managed,
                  strip_config(operation), &manager, operation->request->is_forced,
                  operation->arena, result, &err))
        return dv_patch_fail(operation, &err);
    if (result->n_conflicts > 0)
        return dv_cluster_operation_fail(
            operation,
            dv_status_apply_conflict(result->conflicts, result->n_conflicts, operation->arena));
    return store_result(operation, result->doc, &result->managed);
}

/* ---- the other patches ---- */

static struct dv_json *patch_document(struct dv_cluster_operation *operation, struct dv_err *err)
{
    const struct dv_json *patch = operation->request->patch;

    switch (operation->request->patch_type) {
    case DV_PATCH_JSON:
        return dv_patch_json(current(operation), patch, operation->arena, err);
    case DV_PATCH_MERGE:
        if (!dv_patch_merge_check(patch, err))
            return NULL;
        return dv_patch_merge(current(operation), patch, operation->arena);
    case DV_PATCH_STRATEGIC:
        return dv_patch_strategic(dv_update_version(operation)->message, current(operation), patch,
                                  operation->arena, err);
    case DV_PATCH_APPLY:
        break;
    }
    (void)dv_fail(err, DV_INVALID_ARGUMENT, "unknown type of patch");
    return NULL;
}

bool dv_patch_run(struct dv_cluster_operation *operation)
{
    struct dv_status_about about = dv_change_about(operation);
    const struct dv_json *doc;
    struct dv_err err;

    if (operation->request->patch_type == DV_PATCH_APPLY &&
        (operation->entry->object || operation->request->subresource == DV_SUB_NONE))
        return apply(operation);
    if (!operation->entry->object)
        return dv_cluster_operation_fail(operation, dv_status_not_found(&about, operation->arena));
    doc = patch_document(operation, &err);
    if (!doc)
        return dv_patch_fail(operation, &err);
    return store_result(operation, doc, NULL);
}
