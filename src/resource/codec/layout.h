/* layout.h - where the values of a field are in its struct, for the files that walk by tables. */
#ifndef DV_RESOURCE_LAYOUT_H
#define DV_RESOURCE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "number/number.h"
#include "resource/field.h"
#include "resource/values.h"

struct dv_arena;

/* The items of a list, or the entries of a map: the key of an entry is its first member. */
struct dv_items {
    char *first;
    size_t n;
    size_t size;         /* of one item or entry */
    size_t value_offset; /* of the value in an entry; 0 in lists */
};

/* The size of one value of the field, whatever its shape. */
static inline size_t dv_value_size(const struct dv_field *field)
{
    switch ((enum dv_type)field->type) {
    case DV_TYPE_STRING:
    case DV_TYPE_BYTES:
    case DV_TYPE_RAW:
        return sizeof(dv_str);
    case DV_TYPE_BOOL:
        return sizeof(bool);
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
        return sizeof(int64_t);
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
        return sizeof(struct dv_time);
    case DV_TYPE_QUANTITY:
        return sizeof(struct dv_quantity);
    case DV_TYPE_INT_OR_STR:
        return sizeof(struct dv_int_or_str);
    case DV_TYPE_STRINGS:
        return sizeof(struct dv_strs);
    case DV_TYPE_MESSAGE:
        break;
    }
    return field->message->size;
}

/* The size of an entry of a map, and where its value is. */
static inline size_t dv_entry_size(const struct dv_field *field, size_t *value_offset)
{
    switch ((enum dv_type)field->type) {
    case DV_TYPE_QUANTITY:
        *value_offset = offsetof(struct dv_quantity_entry, value);
        return sizeof(struct dv_quantity_entry);
    case DV_TYPE_STRINGS:
        *value_offset = offsetof(struct dv_strs_entry, value);
        return sizeof(struct dv_strs_entry);
    case DV_TYPE_MESSAGE:
        *value_offset = field->value_offset;
        return field->entry_size;
    case DV_TYPE_STRING:
    case DV_TYPE_BYTES:
    case DV_TYPE_BOOL:
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
    case DV_TYPE_RAW:
    case DV_TYPE_INT_OR_STR:
        break;
    }
    *value_offset = offsetof(struct dv_str_entry, value);
    return sizeof(struct dv_str_entry);
}

/* Whether a value that may be absent is kept in the struct itself, and says so there. */
static inline bool dv_is_own_pointer(const struct dv_field *field)
{
    return field->type == DV_TYPE_STRING || field->type == DV_TYPE_BYTES ||
           field->type == DV_TYPE_RAW || field->type == DV_TYPE_TIME ||
           field->type == DV_TYPE_MICROTIME;
}

static inline bool dv_is_container(const struct dv_field *field)
{
    return field->shape == DV_SHAPE_LIST || field->shape == DV_SHAPE_MAP;
}

/* Loads a pointer of any type from a struct whose type only a table knows. */
static inline void *dv_load_pointer(const void *at)
{
    void *p;

    memcpy(&p, at, sizeof(p));
    return p;
}

static inline void dv_store_pointer(void *at, const void *p)
{
    memcpy(at, &p, sizeof(p));
}

/* Whether the field is a pointer, a text or a list that is not there, as most are: so this is asked
 * first. False where only a closer look tells. */
static inline bool dv_is_nothing(const struct dv_field *field, const char *value)
{
    return (field->flags & DV_FIELD_POINTS) && !dv_load_pointer(value + field->offset);
}

/* The struct that has the field's member; NULL when it is behind a pointer that is not set. */
static inline const char *dv_field_home(const struct dv_field *field, const void *value)
{
    if (!field->into)
        return value;
    return dv_load_pointer((const char *)value + field->into->offset);
}

/* The value that a field of shape POINTER or ONE refers to; NULL when it is absent. `home` may be
 * NULL. */
static inline const void *dv_field_value(const struct dv_field *field, const char *home)
{
    const char *value = home ? home + field->offset : NULL;

    if (!value || field->shape != DV_SHAPE_POINTER)
        return value;
    if (!dv_is_own_pointer(field))
        return dv_load_pointer(value);
    if (field->type == DV_TYPE_TIME || field->type == DV_TYPE_MICROTIME)
        return ((const struct dv_time *)(const void *)value)->is_set ? value : NULL;
    return ((const dv_str *)(const void *)value)->p ? value : NULL;
}

/* The items of a list or map. `home` may be NULL. `first` is NULL when the field is absent. */
static inline struct dv_items dv_field_items(const struct dv_field *field, const char *home)
{
    struct dv_items items = {0};

    if (field->shape == DV_SHAPE_MAP)
        items.size = dv_entry_size(field, &items.value_offset);
    else
        items.size = dv_value_size(field);
    if (home) {
        items.first = dv_load_pointer(home + field->offset);
        items.n = *(const size_t *)(const void *)(home + field->n_offset);
    }
    return items;
}
/* The field with that protobuf number; NULL when there is none. */
static inline const struct dv_field *dv_message_field_numbered(const struct dv_message *message,
                                                               uint32_t number)
{
    size_t place = number < message->n_places ? message->places[number] : 0;

    return place > 0 ? &message->fields[place - 1] : NULL;
}
/* Whether the field is set: a list or a pointer that is there counts even when it is empty. */
bool dv_field_is_set(const struct dv_field *field, const char *home);
/* Whether the value is that of a field which was never set: "", 0, false, no time. */
bool dv_value_is_zero(const struct dv_field *field, const void *value);

/* Sorts the entries of a map by key; of those with one key the last stays. Returns how many stay.
 * Takes memory of `arena` when they were not sorted. */
size_t dv_sort_entries(struct dv_items entries, struct dv_arena *arena);

/* The unknown members of a message, or NULL. */
static inline const dv_str *dv_unknown_of(const struct dv_message *message, const void *value)
{
    return dv_load_pointer((const char *)value + message->unknown_offset);
}

#endif
