/* patch_set.c - a struct as a patch that carries what is set in it, and nothing else.
 *
 * As an object it would also have the fields that are always written: "reportingComponent": "",
 * "creationTimestamp": null. In a patch these are orders to empty what is there. */
#include "resource/patch.h"

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "json/json.h"

static void drop_unset(struct dv_json *object, const struct dv_message *message);

/* Whether the member only says that its field is not set. A pointer that is set says something even
 * when what it points to is empty. */
static bool is_unset(const struct dv_field *field, const struct dv_json *member)
{
    struct dv_err err;
    int64_t number;
    bool is_true;
    dv_str text;

    if (dv_json_is(member, DV_JSON_NULL))
        return true;
    if (field->shape == DV_SHAPE_POINTER)
        return false;
    switch (dv_json_kind(member)) {
    case DV_JSON_STRING:
        return dv_json_as_str(member, &text, &err) && text.n == 0;
    case DV_JSON_NUMBER:
        return dv_json_as_i64(member, &number, &err) && number == 0;
    case DV_JSON_BOOL:
        return dv_json_as_bool(member, &is_true, &err) && !is_true;
    case DV_JSON_OBJECT:
    case DV_JSON_ARRAY:
    case DV_JSON_NULL:
        break;
    }
    return dv_json_n(member) == 0;
}

/* A list that a patch merges has items that are patches themselves; any other is replaced, so its
 * items stay whole. */
static void drop_below(struct dv_json *member, const struct dv_field *field)
{
    bool is_list = field->shape == DV_SHAPE_LIST;

    if (field->type != DV_TYPE_MESSAGE || field->shape == DV_SHAPE_MAP)
        return;
    if (!is_list)
        drop_unset(member, field->message);
    else if (field->patch_key.n > 0)
        for (struct dv_json *item = dv_json_first(member); item; item = dv_json_next(item))
            drop_unset(item, field->message);
}

static void drop_unset(struct dv_json *object, const struct dv_message *message)
{
    struct dv_json *next;

    for (struct dv_json *member = dv_json_first(object); member; member = next) {
        const struct dv_field *field = dv_message_field(message, dv_json_key(member), NULL);

        next = dv_json_next(member);
        if (!field)
            continue; /* a field that the table lacks was set by somebody */
        drop_below(member, field);
        if (is_unset(field, member))
            dv_json_remove(member);
    }
}

struct dv_json *dv_encode_patch(const struct dv_message *message, const void *value,
                                struct dv_arena *arena)
{
    struct dv_json *patch = dv_encode_json(message, value, NULL, DV_STR_NONE, arena);

    drop_unset(patch, message);
    return patch;
}
