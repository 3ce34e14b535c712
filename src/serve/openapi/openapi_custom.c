/* openapi_custom.c - schemas of kinds that definitions make: as they were written, with the
 * metadata that all objects have, and for v2 without what v2 cannot say. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "serve/openapi/openapi_schema.h"
#include "json/json.h"

static void drop(struct dv_json *object, const char *name)
{
    struct dv_json *node = dv_json_get(object, dv_str_from_c(name));

    if (node)
        dv_json_remove(node);
}

static bool is_true(const struct dv_json *schema, const char *name)
{
    const struct dv_json *node = dv_json_get(schema, dv_str_from_c(name));
    struct dv_err err;
    bool value = false;

    return node && dv_json_as_bool(node, &value, &err) && value;
}

/* Takes out what v2 does not know; clients would refuse objects by what is left of it. Schemas are
 * no deeper than what can be compiled, so this may recurse. NOLINTNEXTLINE(misc-no-recursion) */
static void cut_for_v2(struct dv_json *schema)
{
    static const char *const names[] = {"allOf", "anyOf", "oneOf", "not", "nullable"};
    struct dv_json *properties;

    if (!dv_json_is(schema, DV_JSON_OBJECT))
        return;
    if (is_true(schema, "nullable") || is_true(schema, "x-kubernetes-int-or-string"))
        drop(schema, "type");
    if (is_true(schema, "x-kubernetes-preserve-unknown-fields")) {
        drop(schema, "type");
        drop(schema, "properties");
        drop(schema, "items");
        drop(schema, "required");
    }
    for (size_t i = 0; i < DV_COUNT(names); i++)
        drop(schema, names[i]);
    properties = dv_json_get(schema, DV_STR("properties"));
    for (struct dv_json *child = dv_json_first(properties); child; child = dv_json_next(child))
        cut_for_v2(child);
    cut_for_v2(dv_json_get(schema, DV_STR("items")));
    cut_for_v2(dv_json_get(schema, DV_STR("additionalProperties")));
}

static void set_text(struct dv_json *object, const char *key, dv_str text, struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), dv_json_new_str(text, arena), arena);
}

/* Sets the members that all objects have. */
static void set_object_meta(struct dv_schemas *schemas, struct dv_json *properties)
{
    static const char *const texts[] = {"apiVersion", "kind"};
    struct dv_arena *arena = schemas->arena;
    struct dv_json *metadata = dv_json_new_object(arena);
    struct dv_json *reference = dv_json_new_object(arena);
    struct dv_json *list = dv_json_new_array(arena);
    dv_str name = dv_schemas_add(schemas, &dv_message_object_meta, DV_STR_NONE);

    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        struct dv_json *text = dv_json_new_object(arena);

        set_text(text, "type", DV_STR("string"), arena);
        dv_json_set(properties, dv_str_from_c(texts[i]), text, arena);
    }
    set_text(reference, "$ref", dv_str_printf(arena, "%s%.*s", schemas->root, DV_FMT(name)), arena);
    if (schemas->is_v3) {
        dv_json_append(list, reference);
        set_text(metadata, "description", DV_STR("Standard object's metadata."), arena);
        dv_json_set(metadata, DV_STR("allOf"), list, arena);
    }
    dv_json_set(properties, DV_STR("metadata"), schemas->is_v3 ? metadata : reference, arena);
}

static void set_group_version_kind(struct dv_json *schema, const struct dv_custom_version *version,
                                   struct dv_arena *arena)
{
    struct dv_json *list = dv_json_new_array(arena);
    struct dv_json *one = dv_json_new_object(arena);

    set_text(one, "group", version->api.group, arena);
    set_text(one, "kind", version->custom->names->kind, arena);
    set_text(one, "version", version->api.version, arena);
    dv_json_append(list, one);
    dv_json_set(schema, DV_STR("x-kubernetes-group-version-kind"), list, arena);
}

void dv_schemas_print_custom(struct dv_schemas *schemas, const struct dv_custom_version *version,
                             struct dv_buf *buf)
{
    struct dv_arena *arena = schemas->arena;
    struct dv_err err;
    struct dv_json *schema = dv_json_parse(version->schema_text, NULL, arena, &err);
    struct dv_json *properties;

    if (!schema) /* it has been compiled, so it can be read */
        schema = dv_json_new_object(arena);
    if (!schemas->is_v3)
        cut_for_v2(schema);
    properties = dv_json_get(schema, DV_STR("properties"));
    if (!dv_json_is(properties, DV_JSON_OBJECT)) {
        properties = dv_json_new_object(arena);
        dv_json_set(schema, DV_STR("properties"), properties, arena);
    }
    set_object_meta(schemas, properties);
    set_group_version_kind(schema, version, arena);
    dv_json_print(schema, NULL, buf);
}
