/* encode_tree.c - a struct as a JSON document, by its field table: what encode_json.c prints, as a
 * tree. Only what is JSON in the struct already is read. */
#include "resource/resource.h"

#include <assert.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "number/number.h"
#include "resource/codec/json_field.h"
#include "resource/codec/layout.h"
#include "resource/codec/pack_fields.h"
#include "json/json.h"

/* A kept object has at most 16 MiB; in JSON each byte takes at most six (\u0000), beside the names
 * of fields. */
#define TEXT_BYTES_MAX (256u * 1024u * 1024u)

struct maker {
    struct dv_arena *arena;
    struct dv_buf text; /* scratch */
};

static void add_members(struct maker *maker, struct dv_json *object,
                        const struct dv_message *message, const char *value);

static struct dv_json *new_object(struct maker *maker, const struct dv_message *message,
                                  const char *value)
{
    struct dv_json *object = dv_json_new_object(maker->arena);

    add_members(maker, object, message, value);
    return object;
}

/* ---- values ---- */

/* Takes what has been printed into the scratch as a string. */
static struct dv_json *take_text(struct maker *maker)
{
    struct dv_json *node = dv_json_new_str(dv_buf_str(&maker->text), maker->arena);

    dv_buf_clear(&maker->text);
    return node;
}

static struct dv_json *new_time(struct maker *maker, const struct dv_time *time, bool with_micros)
{
    if (!time->is_set)
        return dv_json_new_null(maker->arena);
    dv_api_time_print(*time, with_micros, &maker->text);
    return take_text(maker);
}

static struct dv_json *new_quantity(struct maker *maker, const struct dv_quantity *quantity)
{
    dv_quantity_print(quantity, &maker->text);
    return take_text(maker);
}

static struct dv_json *new_bytes(struct maker *maker, dv_str bytes)
{
    if (!bytes.p)
        return dv_json_new_null(maker->arena);
    dv_base64_encode(bytes, &maker->text);
    return take_text(maker);
}

/* Reads a text that is in the arena, or lives as long. It was checked when it came. */
static struct dv_json *read_text(struct maker *maker, dv_str text)
{
    struct dv_json_opts opts = {.nodes_max = TEXT_BYTES_MAX, .bytes_max = TEXT_BYTES_MAX};
    struct dv_err err;
    struct dv_json *doc = dv_json_parse(text, &opts, maker->arena, &err);

    assert(doc);
    return doc;
}

static struct dv_json *new_raw(struct maker *maker, dv_str text)
{
    if (text.n == 0)
        return dv_json_new_null(maker->arena);
    return read_text(maker, dv_fields_is_packed(text) ? dv_fields_text(text, maker->arena)
                                                      : dv_str_copy(text, maker->arena));
}

static struct dv_json *new_value(struct maker *maker, const struct dv_field *field,
                                 const void *value)
{
    const struct dv_int_or_str *either = value;
    const struct dv_strs *strs = value;

    switch ((enum dv_type)field->type) {
    case DV_TYPE_STRING:
        return dv_json_new_str(*(const dv_str *)value, maker->arena);
    case DV_TYPE_BOOL:
        return dv_json_new_bool(*(const bool *)value, maker->arena);
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
        return dv_json_new_i64(*(const int64_t *)value, maker->arena);
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
        return new_time(maker, value, field->type == DV_TYPE_MICROTIME);
    case DV_TYPE_QUANTITY:
        return new_quantity(maker, value);
    case DV_TYPE_BYTES:
        return new_bytes(maker, *(const dv_str *)value);
    case DV_TYPE_RAW:
        return new_raw(maker, *(const dv_str *)value);
    case DV_TYPE_INT_OR_STR:
        return either->is_text ? dv_json_new_str(either->text, maker->arena)
                               : dv_json_new_i64(either->number, maker->arena);
    case DV_TYPE_STRINGS:
        return dv_json_new_strs_or_null(strs->v, strs->n, maker->arena);
    case DV_TYPE_MESSAGE:
        break;
    }
    return new_object(maker, field->message, value);
}

static struct dv_json *new_items(struct maker *maker, const struct dv_field *field,
                                 const char *home)
{
    struct dv_items items = dv_field_items(field, home);
    bool is_map = field->shape == DV_SHAPE_MAP;
    struct dv_json *all =
        is_map ? dv_json_new_object(maker->arena) : dv_json_new_array(maker->arena);

    for (size_t i = 0; i < items.n; i++) {
        const char *item = items.first + i * items.size;
        struct dv_json *node = new_value(maker, field, item + items.value_offset);

        if (is_map)
            dv_json_set(all, *(const dv_str *)(const void *)item, node, maker->arena);
        else
            dv_json_append(all, node);
    }
    return all;
}

/* ---- members ---- */

static void add_field(struct maker *maker, struct dv_json *object, const struct dv_field *field,
                      const char *home)
{
    static const dv_str empty;
    enum dv_presence presence = dv_field_presence(field, home);
    struct dv_json *node;

    if (presence == DV_ABSENT)
        return;
    if (presence == DV_NULL) {
        node = dv_json_new_null(maker->arena);
    } else if (dv_is_container(field)) {
        node = new_items(maker, field, home);
    } else {
        const void *value = dv_field_value(field, home);

        assert(value || field->type == DV_TYPE_STRING);
        node = new_value(maker, field, value ? value : &empty);
    }
    dv_json_add(object, field->name, node, maker->arena);
}

/* Moves the members that the schema does not have, which are kept as text, into the object. */
static void add_unknown(struct maker *maker, struct dv_json *object, const dv_str *unknown)
{
    const dv_str parts[] = {DV_STR("{"), unknown ? *unknown : DV_STR_NONE, DV_STR("}")};
    struct dv_json *members;
    struct dv_json *next;

    if (!unknown)
        return;
    members = read_text(maker, dv_str_concat(parts, DV_COUNT(parts), maker->arena));
    for (struct dv_json *member = dv_json_first(members); member; member = next) {
        dv_str name = dv_json_key(member);

        next = dv_json_next(member);
        dv_json_remove(member);
        dv_json_set(object, name, member, maker->arena);
    }
}

/* Adds a member; what is inline has members of its own. */
static void add_member(struct maker *maker, struct dv_json *object, const struct dv_field *field,
                       const char *value)
{
    const char *home = dv_field_home(field, value);

    if (dv_field_is_skipped(field, home))
        return;
    if (field->shape == DV_SHAPE_INLINE)
        add_members(maker, object, field->message, home + field->offset);
    else if (field->shape == DV_SHAPE_VIEW)
        dv_json_add(object, field->name, new_object(maker, field->message, value), maker->arena);
    else
        add_field(maker, object, field, home);
}

static void add_members(struct maker *maker, struct dv_json *object,
                        const struct dv_message *message, const char *value)
{
    bool has_view = false;

    for (size_t i = 0; i < message->n_fields; i++) {
        has_view |= message->fields[i].shape == DV_SHAPE_VIEW;
        add_member(maker, object, &message->fields[i], value);
    }
    if (!has_view) /* a view is the same struct, and has its members already */
        add_unknown(maker, object, dv_unknown_of(message, value));
}

struct dv_json *dv_encode_json(const struct dv_message *message, const void *value,
                               const struct dv_api_version *version, dv_str kind,
                               struct dv_arena *arena)
{
    struct maker maker = {.arena = arena};
    struct dv_json *doc = dv_json_new_object(arena);

    dv_buf_init(&maker.text, TEXT_BYTES_MAX);
    if (version) {
        dv_json_add(doc, DV_STR("kind"), dv_json_new_str(kind, arena), arena);
        dv_api_version_print(version, &maker.text);
        dv_json_add(doc, DV_STR("apiVersion"), take_text(&maker), arena);
    }
    add_members(&maker, doc, message, value);
    dv_buf_fini(&maker.text);
    return doc;
}
