/* copy.c - deep copies of values, in one block whose size is measured first.
 *
 *     +---------------------+---------------------+
 *     | structs and lists   | texts               |
 *     +---------------------+---------------------+
 *
 * Both walks are the same code: without a block it only counts. */
#include "resource/codec/copy.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "number/number.h"
#include "resource/codec/layout.h"
#include "resource/resource.h"

#define ALIGN 8u

/* The places for the next struct and the next text; NULL while measuring. */
struct block {
    char *structs;
    char *texts;
    size_t n_structs;
    size_t n_texts;
    struct dv_copy_size size; /* of the room */
    bool drops_empty;         /* lists and maps */
};

static void copy_members(struct block *block, const struct dv_message *message, const char *value,
                         char *copy);

static void *take_struct(struct block *block, size_t n)
{
    char *at = block->structs ? block->structs + block->n_structs : NULL;

    block->n_structs += dv_copy_struct_bytes(n);
    assert(!at || block->n_structs <= block->size.structs);
    return at;
}

/* A copy of `n` bytes, or NULL. */
static void *copy_struct(struct block *block, const void *from, size_t n)
{
    void *at = take_struct(block, n);

    if (at && n > 0)
        memcpy(at, from, n);
    return at;
}

static bool is_lasting(const struct block *block, const char *p)
{
    const dv_str *lasting = &block->size.lasting;

    return lasting->n > 0 && p >= lasting->p && p < lasting->p + lasting->n;
}

/* `copy` already has what `value` has, and is NULL while measuring. */
static void copy_text(struct block *block, const dv_str *value, dv_str *copy)
{
    if (is_lasting(block, value->p))
        return;
    if (copy && value->n > 0) {
        char *at = block->texts + block->n_texts;

        assert(value->n <= block->size.texts - block->n_texts);
        memcpy(at, value->p, value->n);
        copy->p = at;
    } else if (copy && value->p) {
        copy->p = ""; /* an empty text must not point into the memory of the original */
    }
    block->n_texts += value->n;
}

static void copy_strs(struct block *block, const struct dv_strs *value, struct dv_strs *copy)
{
    dv_str *v;

    if (!value->v)
        return;
    v = copy_struct(block, value->v, value->n * sizeof(dv_str));
    for (size_t i = 0; i < value->n; i++)
        copy_text(block, &value->v[i], v ? &v[i] : NULL);
    if (copy)
        copy->v = v;
}

static void copy_quantity(struct block *block, const struct dv_quantity *value,
                          struct dv_quantity *copy)
{
    void *room = take_struct(block, dv_quantity_room(value));

    if (copy)
        *copy = dv_quantity_copy_to(value, room);
}

/* Copies what the value refers to. */
static void copy_value(struct block *block, const struct dv_field *field, const char *value,
                       char *copy)
{
    switch ((enum dv_type)field->type) {
    case DV_TYPE_STRING:
    case DV_TYPE_BYTES:
    case DV_TYPE_RAW:
        copy_text(block, (const dv_str *)(const void *)value, (dv_str *)(void *)copy);
        break;
    case DV_TYPE_QUANTITY:
        copy_quantity(block, (const struct dv_quantity *)(const void *)value,
                      (struct dv_quantity *)(void *)copy);
        break;
    case DV_TYPE_INT_OR_STR:
        copy_text(block, &((const struct dv_int_or_str *)(const void *)value)->text,
                  copy ? &((struct dv_int_or_str *)(void *)copy)->text : NULL);
        break;
    case DV_TYPE_STRINGS:
        copy_strs(block, (const struct dv_strs *)(const void *)value,
                  (struct dv_strs *)(void *)copy);
        break;
    case DV_TYPE_MESSAGE:
        copy_members(block, field->message, value, copy);
        break;
    case DV_TYPE_BOOL:
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
        break;
    }
}

static void copy_items(struct block *block, const struct dv_field *field, const char *value,
                       char *copy)
{
    struct dv_items items = dv_field_items(field, value);
    char *made;

    if (!items.first)
        return;
    if (items.n == 0 && block->drops_empty) {
        if (copy)
            dv_store_pointer(copy + field->offset, NULL);
        return;
    }
    made = copy_struct(block, items.first, items.n * items.size);
    for (size_t i = 0; i < items.n; i++) {
        const char *item = items.first + i * items.size;
        char *to = made ? made + i * items.size : NULL;

        if (field->shape == DV_SHAPE_MAP)
            copy_text(block, (const dv_str *)(const void *)item, (dv_str *)(void *)to);
        copy_value(block, field, item + items.value_offset, to ? to + items.value_offset : NULL);
    }
    if (copy)
        dv_store_pointer(copy + field->offset, made);
}

static void copy_pointer(struct block *block, const struct dv_field *field, const char *value,
                         char *copy)
{
    const char *from = dv_field_value(field, value);
    char *made;

    if (dv_is_own_pointer(field)) {
        copy_value(block, field, value + field->offset, copy ? copy + field->offset : NULL);
        return;
    }
    if (!from)
        return;
    made = copy_struct(block, from, dv_value_size(field));
    copy_value(block, field, from, made);
    if (copy)
        dv_store_pointer(copy + field->offset, made);
}

static void copy_unknown(struct block *block, const struct dv_message *message, const char *value,
                         char *copy)
{
    const dv_str *unknown = dv_unknown_of(message, value);
    dv_str *made;

    if (!unknown)
        return;
    made = copy_struct(block, unknown, sizeof(dv_str));
    copy_text(block, unknown, made);
    if (copy)
        dv_store_pointer(copy + message->unknown_offset, made);
}

/* Copies by the newest version's table, which has all members, each in its place. */
static void copy_members(struct block *block, const struct dv_message *message, const char *value,
                         char *copy)
{
    for (size_t i = 0; i < message->n_fields; i++) {
        const struct dv_field *field = &message->fields[i];

        assert(!field->into && field->shape != DV_SHAPE_VIEW);
        if (dv_is_nothing(field, value))
            continue;
        if (dv_is_container(field))
            copy_items(block, field, value, copy);
        else if (field->shape == DV_SHAPE_POINTER)
            copy_pointer(block, field, value, copy);
        else
            copy_value(block, field, value + field->offset, copy ? copy + field->offset : NULL);
    }
    copy_unknown(block, message, value, copy);
}

struct dv_copy_size dv_copy_measure(const struct dv_message *message, const void *value,
                                    enum dv_copy_mode mode)
{
    struct block block = {.drops_empty = mode == DV_COPY_STORED};

    copy_members(&block, message, value, NULL);
    return (struct dv_copy_size){.structs = block.n_structs, .texts = block.n_texts, .mode = mode};
}

void dv_copy_to(const struct dv_message *message, const void *value, struct dv_copy_size size,
                void *room, void *copy)
{
    struct block block = {
        .structs = room,
        .texts = (char *)room + size.structs,
        .size = size,
        .drops_empty = size.mode == DV_COPY_STORED,
    };

    memcpy(copy, value, message->size);
    copy_members(&block, message, value, copy);
}

void dv_message_copy(const struct dv_message *message, const void *value, struct dv_arena *arena,
                     void *copy)
{
    struct dv_copy_size size = dv_copy_measure(message, value, DV_COPY_EXACT);

    dv_copy_to(message, value, size, dv_arena_alloc_raw(arena, size.structs + size.texts, ALIGN),
               copy);
}
