/* openapi_pb.c - prints an OpenAPI v2 document in protobuf: the messages of openapi.v2, as far as
 * ours use them.
 *
 *     Document  {1: swagger, 2: info {1: title, 2: version},
 *                8: paths {2: {1: name, 2: PathItem}},
 *                9: definitions {1: {1: name, 2: Schema}}}
 *     Schema    {1: $ref, 2: format, 4: description, 21: additionalProperties {1: Schema},
 *                22: type {1: name}, 23: items {1: Schema},
 *                25: properties {1: {1: name, 2: Schema}},
 *                31: extensions {1: name, 2: {2: YAML}}}
 *     PathItem  {2: get, 3: put, 4: post, 5: delete, 8: patch}
 *     Operation {5: id, 8: parameters {1: {2: {3: {2: "query", 4: name, 6: type}}}},
 *                9: responses {1: {1: code, 2: {1: {1: description, 2: {1: Schema}}}}},
 *                13: extensions} */
#include "serve/openapi/openapi.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "pb/pb.h"
#include "json/json.h"

#define EXTENSION_BYTES_MAX (64u << 10)

static void add_text(struct dv_buf *buf, uint32_t number, const struct dv_json *node)
{
    dv_str text;
    struct dv_err err;

    if (node && dv_json_as_str(node, &text, &err))
        dv_pb_add_bytes(buf, number, text);
}

/* Adds the members that begin with "x-", with their values as YAML text, which JSON is too. */
static void add_extensions(struct dv_buf *buf, uint32_t number, const struct dv_json *object)
{
    const struct dv_json *member;

    for (member = dv_json_first(object); member; member = dv_json_next(member)) {
        struct dv_buf text;
        size_t mark, value;

        if (!dv_str_starts_with(dv_json_key(member), DV_STR("x-")))
            continue;
        dv_buf_init(&text, EXTENSION_BYTES_MAX);
        dv_json_print(member, NULL, &text);
        dv_buf_add_char(&text, '\n');
        mark = dv_pb_begin(buf, number);
        dv_pb_add_bytes(buf, 1, dv_json_key(member));
        value = dv_pb_begin(buf, 2);
        dv_pb_add_bytes(buf, 2, dv_buf_str(&text));
        dv_pb_end(buf, value);
        dv_pb_end(buf, mark);
        dv_buf_fini(&text);
    }
}

static void add_schema(struct dv_buf *buf, const struct dv_json *schema);

/* Adds a schema as field 1 of the field `number`. */
static void add_nested(struct dv_buf *buf, uint32_t number, const struct dv_json *schema)
{
    size_t outer, inner;

    if (!schema)
        return;
    outer = dv_pb_begin(buf, number);
    inner = dv_pb_begin(buf, 1);
    add_schema(buf, schema);
    dv_pb_end(buf, inner);
    dv_pb_end(buf, outer);
}

/* Adds {1: {1: name, 2: Schema}} for each member. */
static void add_named(struct dv_buf *buf, const struct dv_json *object)
{
    const struct dv_json *member;

    for (member = dv_json_first(object); member; member = dv_json_next(member)) {
        size_t mark = dv_pb_begin(buf, 1);
        size_t value;

        dv_pb_add_bytes(buf, 1, dv_json_key(member));
        value = dv_pb_begin(buf, 2);
        add_schema(buf, member);
        dv_pb_end(buf, value);
        dv_pb_end(buf, mark);
    }
}

/* Adds a schema. It calls itself only as deep as our own schemas are: a list or map of values in a
 * property. */
static void add_schema(struct dv_buf *buf, const struct dv_json *schema)
{
    const struct dv_json *properties = dv_json_get(schema, DV_STR("properties"));
    size_t mark;

    add_text(buf, 1, dv_json_get(schema, DV_STR("$ref")));
    add_text(buf, 2, dv_json_get(schema, DV_STR("format")));
    add_text(buf, 4, dv_json_get(schema, DV_STR("description")));
    add_nested(buf, 21, dv_json_get(schema, DV_STR("additionalProperties")));
    if (dv_json_get(schema, DV_STR("type"))) {
        mark = dv_pb_begin(buf, 22);
        add_text(buf, 1, dv_json_get(schema, DV_STR("type")));
        dv_pb_end(buf, mark);
    }
    add_nested(buf, 23, dv_json_get(schema, DV_STR("items")));
    if (properties) {
        mark = dv_pb_begin(buf, 25);
        add_named(buf, properties);
        dv_pb_end(buf, mark);
    }
    add_extensions(buf, 31, schema);
}

/* ---- paths ---- */

static void add_parameter(struct dv_buf *buf, const struct dv_json *parameter)
{
    size_t marks[4];
    static const uint32_t numbers[] = {8, 1, 2, 3};

    for (size_t i = 0; i < DV_COUNT(numbers); i++)
        marks[i] = dv_pb_begin(buf, numbers[i]);
    add_text(buf, 2, dv_json_get(parameter, DV_STR("in")));
    add_text(buf, 4, dv_json_get(parameter, DV_STR("name")));
    add_text(buf, 6, dv_json_get(parameter, DV_STR("type")));
    for (size_t i = DV_COUNT(numbers); i > 0; i--)
        dv_pb_end(buf, marks[i - 1]);
}

static void add_responses(struct dv_buf *buf, const struct dv_json *responses)
{
    const struct dv_json *response;
    size_t all = dv_pb_begin(buf, 9);

    for (response = dv_json_first(responses); response; response = dv_json_next(response)) {
        size_t named = dv_pb_begin(buf, 1);
        size_t value, one;

        dv_pb_add_bytes(buf, 1, dv_json_key(response));
        value = dv_pb_begin(buf, 2);
        one = dv_pb_begin(buf, 1);
        add_text(buf, 1, dv_json_get(response, DV_STR("description")));
        add_nested(buf, 2, dv_json_get(response, DV_STR("schema")));
        dv_pb_end(buf, one);
        dv_pb_end(buf, value);
        dv_pb_end(buf, named);
    }
    dv_pb_end(buf, all);
}

static void add_operation(struct dv_buf *buf, uint32_t number, const struct dv_json *operation)
{
    const struct dv_json *parameter;
    size_t mark;

    if (!operation)
        return;
    mark = dv_pb_begin(buf, number);
    add_text(buf, 5, dv_json_get(operation, DV_STR("operationId")));
    for (parameter = dv_json_first(dv_json_get(operation, DV_STR("parameters"))); parameter;
         parameter = dv_json_next(parameter))
        add_parameter(buf, parameter);
    add_responses(buf, dv_json_get(operation, DV_STR("responses")));
    add_extensions(buf, 13, operation);
    dv_pb_end(buf, mark);
}

static void add_paths(struct dv_buf *buf, const struct dv_json *paths)
{
    static const struct {
        dv_str method;
        uint32_t number;
    } methods[] = {
        {DV_STR_INIT("get"),    2},
        {DV_STR_INIT("put"),    3},
        {DV_STR_INIT("post"),   4},
        {DV_STR_INIT("delete"), 5},
        {DV_STR_INIT("patch"),  8},
    };
    const struct dv_json *path;
    size_t all = dv_pb_begin(buf, 8);

    for (path = dv_json_first(paths); path; path = dv_json_next(path)) {
        size_t named = dv_pb_begin(buf, 2);
        size_t value;

        dv_pb_add_bytes(buf, 1, dv_json_key(path));
        value = dv_pb_begin(buf, 2);
        for (size_t i = 0; i < DV_COUNT(methods); i++)
            add_operation(buf, methods[i].number, dv_json_get(path, methods[i].method));
        dv_pb_end(buf, value);
        dv_pb_end(buf, named);
    }
    dv_pb_end(buf, all);
}

bool dv_openapi_v2_protobuf(dv_str json, struct dv_buf *buf, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_json *doc = dv_json_parse(json, NULL, scratch, err);
    const struct dv_json *info = dv_json_get(doc, DV_STR("info"));
    size_t mark;

    if (!doc)
        return false;
    add_text(buf, 1, dv_json_get(doc, DV_STR("swagger")));
    mark = dv_pb_begin(buf, 2);
    add_text(buf, 1, dv_json_get(info, DV_STR("title")));
    add_text(buf, 2, dv_json_get(info, DV_STR("version")));
    dv_pb_end(buf, mark);
    add_paths(buf, dv_json_get(doc, DV_STR("paths")));
    mark = dv_pb_begin(buf, 9);
    add_named(buf, dv_json_get(doc, DV_STR("definitions")));
    dv_pb_end(buf, mark);
    return true;
}
