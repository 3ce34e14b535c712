/* schema_lists.c - reads what a schema says of its lists, and the defaults of its members. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "resource/custom/schema.h"
#include "resource/custom/schema_read.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "json/json.h"

/* ---- lists ---- */

static bool is_scalar(const struct dv_structural *schema)
{
    return schema->type != DV_SCHEMA_OBJECT && schema->type != DV_SCHEMA_ARRAY &&
           (schema->type != DV_SCHEMA_ANY || schema->is_int_or_string);
}

static bool is_required(const struct dv_structural *schema, dv_str name)
{
    for (size_t i = 0; schema->checks && i < schema->checks->n_required; i++)
        if (dv_str_eq(schema->checks->required[i], name))
            return true;
    return false;
}

static void check_keys(struct dv_schema_reader *reader, const struct dv_schema_part *part,
                       const struct dv_structural *schema)
{
    const char *name = "x-kubernetes-list-map-keys";
    struct dv_field_path items = dv_path_name(part->path, "items");
    struct dv_field_path properties = dv_path_name(&items, "properties");

    if (schema->n_keys == 0)
        dv_problem_add(reader->problems, DV_PROBLEM_REQUIRED, part->path, name, dv_bad_none(),
                       "must not be empty if x-kubernetes-list-type is map");
    for (size_t i = 0; schema->items && i < schema->n_keys; i++) {
        const struct dv_structural *key = dv_schema_property(schema->items, schema->keys[i]);
        struct dv_field_path at = dv_path_key(&properties, schema->keys[i]);

        if (!key)
            dv_problem_add(reader->problems, DV_PROBLEM_INVALID, part->path, name,
                           dv_bad_strs(schema->keys, schema->n_keys, reader->arena),
                           "entries must all be names of item properties");
        else if (!is_scalar(key))
            dv_problem_add(reader->problems, DV_PROBLEM_INVALID, &at, "type",
                           dv_bad_str(dv_str_from_c(dv_schema_type_name(key->type))),
                           "must be a scalar type if parent array's x-kubernetes-list-type is map");
        else if (!key->default_value && !is_required(schema->items, schema->keys[i]))
            dv_problem_add(reader->problems, DV_PROBLEM_REQUIRED, &at, "default", dv_bad_none(),
                           "this property is in x-kubernetes-list-map-keys, so it must have a "
                           "default or be a required property");
    }
}

void dv_schema_read_list_type(struct dv_schema_reader *reader, const struct dv_schema_part *part,
                              struct dv_structural *schema)
{
    static const dv_str supported[] = {DV_STR_INIT("atomic"), DV_STR_INIT("map"),
                                       DV_STR_INIT("set")};
    dv_str text = DV_STR_NONE;

    schema->keys = dv_schema_read_texts(reader, part->doc, part->path, "x-kubernetes-list-map-keys",
                                        &schema->n_keys);
    if (!dv_schema_read_text(reader, part->doc, part->path, "x-kubernetes-list-type", &text)) {
        if (schema->n_keys > 0)
            dv_problem_add(reader->problems, DV_PROBLEM_INVALID, part->path,
                           "x-kubernetes-list-type", dv_bad_null(),
                           "must be map if x-kubernetes-list-map-keys is non-empty");
        return;
    }
    if (schema->type != DV_SCHEMA_ARRAY)
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, part->path, "type",
                       dv_bad_str(dv_str_from_c(dv_schema_type_name(schema->type))),
                       "must be array if x-kubernetes-list-type is specified");
    if (dv_str_eq(text, DV_STR("set"))) {
        schema->list = DV_SCHEMA_LIST_SET;
    } else if (dv_str_eq(text, DV_STR("map"))) {
        schema->list = DV_SCHEMA_LIST_MAP;
        check_keys(reader, part, schema);
    } else if (!dv_str_eq(text, DV_STR("atomic"))) {
        dv_not_supported(reader->problems, part->path, "x-kubernetes-list-type", text, supported,
                         DV_COUNT(supported));
    }
}

/* ---- defaults ---- */

/* About what a document takes; never less than a little, because there may be very many. */
static size_t n_bytes(const struct dv_json *doc)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, 4 * (size_t)DV_SCHEMA_DEFAULT_BYTES_MAX);
    dv_json_print(doc, NULL, &buf);
    return buf.n + sizeof("\"key\":");
}

/* Keeps a default as it will be filled in: with the defaults inside of it. It must be valid, and
 * have nothing that would be removed again. */
void dv_schema_read_default(struct dv_schema_reader *reader, const struct dv_schema_part *part,
                            struct dv_structural *schema)
{
    const struct dv_json *node = dv_json_get(part->doc, DV_STR("default"));
    struct dv_field_path path = dv_path_name(part->path, "default");
    struct dv_decode_notes notes = {0};
    size_t n_problems = reader->problems->n;

    if (!node || part->place == DV_SCHEMA_JUNCTOR)
        return;
    if (part->place == DV_SCHEMA_ROOT || part->place == DV_SCHEMA_ITEM ||
        part->place == DV_SCHEMA_MORE) {
        dv_problem_add(reader->problems, DV_PROBLEM_FORBIDDEN, part->path, "default", dv_bad_none(),
                       "must not be set here: only members of an object have defaults");
        return;
    }
    schema->default_value = dv_schema_prune(schema, node, false, reader->arena, &notes);
    if (!schema->default_value) {
        dv_problem_add(reader->problems, DV_PROBLEM_TOO_LONG, part->path, "default", dv_bad_none(),
                       "may not be more than %u bytes with the defaults inside of it",
                       DV_SCHEMA_DEFAULT_BYTES_MAX);
        return;
    }
    schema->default_bytes = n_bytes(schema->default_value);
    if (notes.n > 0)
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, part->path, "default",
                       dv_schema_shown(node, reader->arena), "must not have unknown fields");
    if (n_problems == reader->problems->n)
        dv_schema_check(schema, schema->default_value, NULL, &path, DV_SCHEMA_STEPS_MAX,
                        reader->problems);
}
