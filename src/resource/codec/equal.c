/* equal.c - whether two values mean the same. */
#include "resource/resource.h"

#include "base/arena.h"
#include "base/str.h"
#include "number/number.h"
#include "resource/codec/layout.h"
#include "resource/codec/pack_fields.h"

static bool is_same_time(const struct dv_time *a, const struct dv_time *b)
{
    if (!a->is_set || !b->is_set)
        return a->is_set == b->is_set;
    return a->seconds == b->seconds && a->nanos == b->nanos;
}

static bool is_same_int_or_str(const struct dv_int_or_str *a, const struct dv_int_or_str *b)
{
    if (a->is_text != b->is_text)
        return false;
    return a->is_text ? dv_str_eq(a->text, b->text) : a->number == b->number;
}

static bool is_same_strs(const struct dv_strs *a, const struct dv_strs *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!dv_str_eq(a->v[i], b->v[i]))
            return false;
    return true;
}

/* Owned fields are packed in objects of the embedded API, and text in those of another one. */
static bool is_same_raw(dv_str a, dv_str b)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;

    if (dv_fields_is_packed(a) == dv_fields_is_packed(b))
        return dv_str_eq(a, b);
    arena = dv_arena_new();
    return dv_str_eq(dv_fields_text(a, arena), dv_fields_text(b, arena));
}

static bool is_same_value(const struct dv_field *field, const void *a, const void *b)
{
    switch ((enum dv_type)field->type) {
    case DV_TYPE_STRING:
    case DV_TYPE_BYTES:
        return dv_str_eq(*(const dv_str *)a, *(const dv_str *)b);
    case DV_TYPE_RAW:
        return is_same_raw(*(const dv_str *)a, *(const dv_str *)b);
    case DV_TYPE_BOOL:
        return *(const bool *)a == *(const bool *)b;
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
        return *(const int64_t *)a == *(const int64_t *)b;
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
        return is_same_time(a, b);
    case DV_TYPE_QUANTITY:
        return dv_quantity_cmp(a, b) == 0;
    case DV_TYPE_INT_OR_STR:
        return is_same_int_or_str(a, b);
    case DV_TYPE_STRINGS:
        return is_same_strs(a, b);
    case DV_TYPE_MESSAGE:
        break;
    }
    return dv_message_eq(field->message, a, b);
}

static bool is_same_list(const struct dv_field *field, const char *a, const char *b)
{
    struct dv_items x = dv_field_items(field, a);
    struct dv_items y = dv_field_items(field, b);

    if (x.n != y.n)
        return false;
    if (x.first == y.first) /* a copy shares what was not changed */
        return true;
    for (size_t i = 0; i < x.n; i++) {
        const char *item = x.first + i * x.size;
        const char *other = y.first + i * y.size;

        if (field->shape == DV_SHAPE_MAP &&
            !dv_str_eq(*(const dv_str *)(const void *)item, *(const dv_str *)(const void *)other))
            return false;
        if (!is_same_value(field, item + x.value_offset, other + x.value_offset))
            return false;
    }
    return true;
}

static bool is_same_field(const struct dv_field *field, const char *a, const char *b)
{
    const void *x;
    const void *y;

    if (dv_is_container(field))
        return is_same_list(field, a, b);
    x = dv_field_value(field, a);
    y = dv_field_value(field, b);
    if (!x || !y || x == y)
        return x == y;
    return is_same_value(field, x, y);
}

bool dv_message_eq(const struct dv_message *message, const void *a, const void *b)
{
    const dv_str *unknown = dv_unknown_of(message, a);
    const dv_str *other = dv_unknown_of(message, b);

    for (size_t i = 0; i < message->n_fields; i++) {
        const struct dv_field *field = &message->fields[i];

        if (field->shape == DV_SHAPE_VIEW) {
            if (!dv_message_eq(field->message, a, b))
                return false;
        } else if (!is_same_field(field, dv_field_home(field, a), dv_field_home(field, b))) {
            return false;
        }
    }
    return dv_str_eq(unknown ? *unknown : DV_STR_NONE, other ? *other : DV_STR_NONE);
}
