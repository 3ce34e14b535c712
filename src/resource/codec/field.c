/* field.c - looks at fields of any message by its table: finds one by name, its value or items, and
 * whether it is set. Everything that walks objects stands on this. */
#include "resource/field.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "resource/codec/layout.h"
#include "resource/values.h"

static const struct dv_field *find_own(const struct dv_message *message, dv_str name)
{
    size_t from = 0;
    size_t to = message->n_names;

    while (from < to) {
        size_t at = from + (to - from) / 2;
        const struct dv_field *field = &message->fields[message->names[at]];
        int order = dv_str_cmp(name, field->name);

        if (order == 0)
            return field;
        if (order < 0)
            to = at;
        else
            from = at + 1;
    }
    return NULL;
}

const struct dv_field *dv_message_field(const struct dv_message *message, dv_str name, size_t *base)
{
    const struct dv_field *found = find_own(message, name);

    if (found || message->n_names == message->n_fields)
        return found;
    for (size_t i = 0; i < message->n_fields; i++) {
        const struct dv_field *field = &message->fields[i];

        if (field->shape != DV_SHAPE_INLINE)
            continue;
        found = dv_message_field(field->message, name, base);
        if (found && base)
            *base += field->offset;
        if (found)
            return found;
    }
    return NULL;
}

bool dv_value_is_zero(const struct dv_field *field, const void *value)
{
    switch ((enum dv_type)field->type) {
    case DV_TYPE_STRING:
    case DV_TYPE_BYTES:
    case DV_TYPE_RAW:
        return ((const dv_str *)value)->n == 0;
    case DV_TYPE_BOOL:
        return !*(const bool *)value;
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
        return *(const int64_t *)value == 0;
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
        return !((const struct dv_time *)value)->is_set;
    case DV_TYPE_QUANTITY:
    case DV_TYPE_INT_OR_STR:
    case DV_TYPE_STRINGS:
    case DV_TYPE_MESSAGE:
        break;
    }
    return false;
}

bool dv_field_is_set(const struct dv_field *field, const char *home)
{
    const void *value;

    if (dv_is_container(field))
        return dv_field_items(field, home).first != NULL;
    value = dv_field_value(field, home);
    return value && (field->shape == DV_SHAPE_POINTER || !dv_value_is_zero(field, value));
}

static dv_str key_of(const char *entry)
{
    return *(const dv_str *)(const void *)entry;
}

/* Compares by key, and by place where the keys are equal: a stable order. */
static int cmp_places(const void *a, const void *b)
{
    const char *x = *(const char *const *)a;
    const char *y = *(const char *const *)b;
    int order = dv_str_cmp(key_of(x), key_of(y));

    if (order != 0)
        return order;
    return x < y ? -1 : x > y;
}

static bool is_sorted(struct dv_items entries)
{
    for (size_t i = 1; i < entries.n; i++) {
        const char *entry = entries.first + i * entries.size;

        if (dv_str_cmp(key_of(entry - entries.size), key_of(entry)) >= 0)
            return false;
    }
    return true;
}

size_t dv_sort_entries(struct dv_items entries, struct dv_arena *arena)
{
    const char **places;
    char *sorted;
    size_t n = 0;

    if (is_sorted(entries))
        return entries.n;
    places = DV_NEW_ARRAY(arena, const char *, entries.n);
    sorted = dv_arena_alloc_array(arena, entries.n, entries.size, _Alignof(int64_t));
    for (size_t i = 0; i < entries.n; i++)
        places[i] = entries.first + i * entries.size;
    qsort(places, entries.n, sizeof(const char *), cmp_places);
    for (size_t i = 0; i < entries.n; i++) {
        if (i + 1 < entries.n && dv_str_eq(key_of(places[i]), key_of(places[i + 1])))
            continue;
        memcpy(sorted + n * entries.size, places[i], entries.size);
        n++;
    }
    memcpy(entries.first, sorted, n * entries.size);
    return n;
}
