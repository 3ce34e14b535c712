/* openapi_schema.c - makes schemas from field tables. */
#include "serve/openapi/openapi_schema.h"

#include "base/arena.h"
#include "base/buf.h"
#include "resource/custom.h"
#include "resource/resource.h"

#define PACKAGE "io.k8s.api."

void dv_schemas_init(struct dv_schemas *schemas, bool is_v3, struct dv_arena *arena)
{
    *schemas = (struct dv_schemas){
        .arena = arena,
        .is_v3 = is_v3,
        .root = is_v3 ? "#/components/schemas/" : "#/definitions/",
    };
    dv_map_init(&schemas->known);
}

void dv_schemas_fini(struct dv_schemas *schemas)
{
    dv_map_fini(&schemas->known);
}

/* ---- names ---- */

/* Returns the schema's name. A message that several versions of a group share is named once by each
 * of them. */
static dv_str name_of(const struct dv_schemas *schemas, const struct dv_message *message,
                      const char *suffix)
{
    dv_str package = message->package;
    dv_str group = dv_str_slice(schemas->group, 0, dv_str_find_char(schemas->group, '.'));
    dv_str prefix = dv_str_printf(schemas->arena, PACKAGE "%.*s.", DV_FMT(group));

    if (group.n && dv_str_starts_with(package, prefix))
        package =
            dv_str_printf(schemas->arena, "%.*s%.*s", DV_FMT(prefix), DV_FMT(schemas->version));
    return dv_str_printf(schemas->arena, "%.*s.%.*s%s", DV_FMT(package), DV_FMT(message->name),
                         suffix);
}

static struct dv_schema *add(struct dv_schemas *schemas, dv_str name)
{
    struct dv_schema *schema = dv_map_get(&schemas->known, name);

    if (schema)
        return schema;
    schema = DV_NEW(schemas->arena, struct dv_schema);
    schema->name = name;
    (void)dv_map_set(&schemas->known, name, schema); /* the name was not in the map */
    *dv_vec_add_in(&schemas->list, schemas->arena) = schema;
    return schema;
}

static void set_kind(struct dv_schemas *schemas, struct dv_schema *schema, dv_str kind)
{
    schema->kind = kind;
    schema->group = schemas->group;
    schema->version = schemas->version;
}

dv_str dv_schemas_add(struct dv_schemas *schemas, const struct dv_message *message, dv_str kind)
{
    struct dv_schema *schema = add(schemas, name_of(schemas, message, ""));

    schema->message = message;
    schema->title = message->name;
    if (kind.n)
        set_kind(schemas, schema, kind);
    return schema->name;
}

dv_str dv_schemas_add_list(struct dv_schemas *schemas, const struct dv_message *message,
                           dv_str kind)
{
    struct dv_schema *schema = add(schemas, name_of(schemas, message, "List"));

    schema->message = message;
    schema->is_list = true;
    set_kind(schemas, schema, dv_str_printf(schemas->arena, "%.*sList", DV_FMT(kind)));
    return schema->name;
}

/* The group backwards, the version and the kind: com.example.v1.Thing. */
static dv_str custom_name(const struct dv_schemas *schemas, const struct dv_custom_version *version,
                          const char *suffix)
{
    dv_str rest = version->api.group;
    dv_str name = DV_STR_NONE;
    dv_str part;
    bool is_first = true;

    while (rest.n && dv_str_split(&rest, '.', &part)) {
        name = is_first ? part
                        : dv_str_printf(schemas->arena, "%.*s.%.*s", DV_FMT(part), DV_FMT(name));
        is_first = false;
    }
    return dv_str_printf(schemas->arena, "%.*s.%.*s.%.*s%s", DV_FMT(name),
                         DV_FMT(version->api.version), DV_FMT(version->custom->names->kind),
                         suffix);
}

dv_str dv_schemas_add_custom(struct dv_schemas *schemas, const struct dv_custom_version *version,
                             bool is_list)
{
    struct dv_schema *schema = add(schemas, custom_name(schemas, version, is_list ? "List" : ""));

    schema->custom = version;
    schema->is_list = is_list;
    set_kind(schemas, schema,
             is_list ? version->custom->names->list_kind : version->custom->names->kind);
    return schema->name;
}

/* ---- values ---- */

static void add_ref(struct dv_schemas *schemas, const struct dv_message *message,
                    struct dv_buf *buf)
{
    dv_buf_printf(buf, "\"$ref\":\"%s%.*s\"", schemas->root,
                  DV_FMT(dv_schemas_add(schemas, message, DV_STR_NONE)));
}

/* Adds the type of one value, as members of the JSON object that is open. */
static void add_type(struct dv_schemas *schemas, const struct dv_field *field, struct dv_buf *buf)
{
    static const char *const types[] = {
        [DV_TYPE_STRING] = "\"type\":\"string\"",
        [DV_TYPE_BOOL] = "\"type\":\"boolean\"",
        [DV_TYPE_INT32] = "\"type\":\"integer\",\"format\":\"int32\"",
        [DV_TYPE_INT64] = "\"type\":\"integer\",\"format\":\"int64\"",
        [DV_TYPE_TIME] = "\"type\":\"string\",\"format\":\"date-time\"",
        [DV_TYPE_MICROTIME] = "\"type\":\"string\",\"format\":\"date-time\"",
        [DV_TYPE_QUANTITY] = "\"type\":\"string\"",
        [DV_TYPE_BYTES] = "\"type\":\"string\",\"format\":\"byte\"",
        [DV_TYPE_RAW] = "\"type\":\"object\"",
        [DV_TYPE_INT_OR_STR] = "\"type\":\"string\",\"format\":\"int-or-string\"",
        [DV_TYPE_STRINGS] = "\"type\":\"array\",\"items\":{\"type\":\"string\"}",
    };

    if (field->type == DV_TYPE_MESSAGE)
        add_ref(schemas, field->message, buf);
    /* 1 and "1" are the same quantity. */
    else if (field->type == DV_TYPE_QUANTITY && schemas->is_v3)
        dv_buf_add_c(buf, "\"oneOf\":[{\"type\":\"string\"},{\"type\":\"number\"}]");
    else
        dv_buf_add_c(buf, types[field->type]);
}

/* Adds how a list is merged by apply and by patches. */
static void add_merging(const struct dv_field *field, struct dv_buf *buf)
{
    bool retains = (field->flags & DV_FIELD_RETAIN_KEYS) != 0;

    if (field->n_keys) {
        dv_buf_add_c(buf, ",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[");
        for (size_t i = 0; i < field->n_keys; i++) {
            if (i)
                dv_buf_add_char(buf, ',');
            dv_buf_add_json(buf, field->keys[i]);
        }
        dv_buf_add_char(buf, ']');
    } else if (field->flags & DV_FIELD_SET) {
        dv_buf_add_c(buf, ",\"x-kubernetes-list-type\":\"set\"");
    } else if (field->shape == DV_SHAPE_LIST) {
        dv_buf_add_c(buf, ",\"x-kubernetes-list-type\":\"atomic\"");
    }
    if (field->patch_key.n)
        dv_buf_printf(buf, ",\"x-kubernetes-patch-merge-key\":\"%.*s\"", DV_FMT(field->patch_key));
    if (field->patch_key.n || (field->flags & DV_FIELD_PATCH_SET))
        dv_buf_printf(buf, ",\"x-kubernetes-patch-strategy\":\"merge%s\"",
                      retains ? ",retainKeys" : "");
    else if (retains)
        dv_buf_add_c(buf, ",\"x-kubernetes-patch-strategy\":\"retainKeys\"");
}

static void add_description(const char *text, struct dv_buf *buf)
{
    if (!text)
        return;
    dv_buf_add_c(buf, "\"description\":");
    dv_buf_add_json(buf, dv_str_from_c(text));
    dv_buf_add_char(buf, ',');
}

static void add_value(struct dv_schemas *schemas, const struct dv_field *field, const char *text,
                      struct dv_buf *buf)
{
    bool is_list = field->shape == DV_SHAPE_LIST;
    bool is_map = field->shape == DV_SHAPE_MAP;

    dv_buf_add_char(buf, '{');
    add_description(text, buf);
    if (is_list || is_map) {
        dv_buf_add_c(buf, is_list ? "\"type\":\"array\",\"items\":{"
                                  : "\"type\":\"object\",\"additionalProperties\":{");
        add_type(schemas, field, buf);
        dv_buf_add_char(buf, '}');
    } else if (field->type == DV_TYPE_MESSAGE && schemas->is_v3) {
        /* OpenAPI allows nothing beside a reference, so it is wrapped. */
        dv_buf_add_c(buf, "\"allOf\":[{");
        add_type(schemas, field, buf);
        dv_buf_add_c(buf, "}]");
    } else {
        add_type(schemas, field, buf);
    }
    add_merging(field, buf);
    dv_buf_add_char(buf, '}');
}

/* ---- messages ---- */

static void add_fields(struct dv_schemas *schemas, dv_str title, const struct dv_message *message,
                       bool *is_next, struct dv_buf *buf)
{
    for (size_t i = 0; i < message->n_fields; i++) {
        const struct dv_field *field = &message->fields[i];

        /* Tables are not nested in themselves, so this ends. */
        if (field->shape == DV_SHAPE_INLINE) {
            add_fields(schemas, title, field->message, is_next, buf);
            continue;
        }
        dv_buf_printf(buf, "%s\"%.*s\":", *is_next ? "," : "", DV_FMT(field->name));
        add_value(schemas, field, dv_openapi_text(title, field->name), buf);
        *is_next = true;
    }
}

static void add_type_meta(struct dv_buf *buf)
{
    dv_buf_add_c(buf, "\"apiVersion\":{\"description\":\"The group and version of the API that "
                      "this object is written in.\",\"type\":\"string\"},\"kind\":{"
                      "\"description\":\"What the object is.\",\"type\":\"string\"}");
}

void dv_schemas_print(struct dv_schemas *schemas, size_t i, struct dv_buf *buf)
{
    const struct dv_schema *schema = schemas->list.v[i];
    bool is_next = schema->kind.n > 0;
    const struct dv_field items = {
        .type = DV_TYPE_MESSAGE, .shape = DV_SHAPE_LIST, .message = schema->message};
    const struct dv_field meta = {
        .type = DV_TYPE_MESSAGE, .shape = DV_SHAPE_ONE, .message = &dv_message_list_meta};

    if (schema->custom && !schema->is_list) {
        dv_schemas_print_custom(schemas, schema->custom, buf);
        return;
    }
    dv_buf_add_char(buf, '{');
    add_description(schema->is_list ? "Several objects of a kind."
                                    : dv_openapi_text(schema->title, DV_STR_NONE),
                    buf);
    dv_buf_add_c(buf, "\"type\":\"object\",\"properties\":{");
    if (schema->kind.n)
        add_type_meta(buf);
    if (schema->is_list) {
        dv_buf_add_c(buf, ",\"items\":");
        if (schema->custom)
            dv_buf_printf(buf, "{\"type\":\"array\",\"items\":{\"$ref\":\"%s%.*s\"}}",
                          schemas->root,
                          DV_FMT(dv_schemas_add_custom(schemas, schema->custom, false)));
        else
            add_value(schemas, &items, NULL, buf);
        dv_buf_add_c(buf, ",\"metadata\":");
        add_value(schemas, &meta, NULL, buf);
    } else {
        add_fields(schemas, schema->title, schema->message, &is_next, buf);
    }
    dv_buf_add_char(buf, '}');
    if (schema->kind.n)
        dv_buf_printf(buf,
                      ",\"x-kubernetes-group-version-kind\":[{\"group\":\"%.*s\",\"kind\":\"%.*s\","
                      "\"version\":\"%.*s\"}]",
                      DV_FMT(schema->group), DV_FMT(schema->kind), DV_FMT(schema->version));
    dv_buf_add_char(buf, '}');
}
