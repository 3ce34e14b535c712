/* cdi_write.c - specs and edits as documents, by the tables of shape.h. What is empty is left out.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cdi/shape.h"
#include "json/json.h"

static size_t count_of(const struct dv_cdi_field *field, const char *value)
{
    size_t n;

    memcpy(&n, value + field->n_at, sizeof(n));
    return n;
}

/* Where the elements of a list are, whichever they are. */
static const void *pointer_of(const struct dv_cdi_field *field, const char *value)
{
    const void *pointer;

    memcpy(&pointer, value + field->at, sizeof(pointer));
    return pointer;
}

static struct dv_json *write_text(dv_str text, struct dv_arena *arena)
{
    return text.n > 0 ? dv_json_new_str(text, arena) : NULL;
}

static struct dv_json *write_texts(const struct dv_cdi_field *field, const char *value,
                                   struct dv_arena *arena)
{
    const dv_str *texts = pointer_of(field, value);
    size_t n = count_of(field, value);
    struct dv_json *array;

    /* An empty list that came with a version says that the version is needed. */
    if (n == 0 && (!texts || field->since == DV_CDI_0_3_0))
        return NULL;
    array = dv_json_new_array(arena);
    for (size_t i = 0; i < n; i++)
        dv_json_append(array, dv_json_new_str(texts[i], arena));
    return array;
}

static struct dv_json *write_numbers(const struct dv_cdi_field *field, const char *value,
                                     struct dv_arena *arena)
{
    const uint32_t *numbers = pointer_of(field, value);
    size_t n = count_of(field, value);
    struct dv_json *array = n > 0 ? dv_json_new_array(arena) : NULL;

    for (size_t i = 0; i < n; i++)
        dv_json_append(array, dv_json_new_u64(numbers[i], arena));
    return array;
}

static struct dv_json *write_pairs(const struct dv_cdi_field *field, const char *value,
                                   struct dv_arena *arena)
{
    const struct dv_cdi_annotation *pairs = pointer_of(field, value);
    size_t n = count_of(field, value);
    struct dv_json *object = n > 0 ? dv_json_new_object(arena) : NULL;

    for (size_t i = 0; i < n; i++)
        dv_json_set(object, pairs[i].key, dv_json_new_str(pairs[i].value, arena), arena);
    return object;
}

static struct dv_json *write_list(const struct dv_cdi_field *field, const char *value,
                                  struct dv_arena *arena)
{
    const char *elements = pointer_of(field, value);
    size_t n = count_of(field, value);
    struct dv_json *array = n > 0 ? dv_json_new_array(arena) : NULL;

    for (size_t i = 0; i < n; i++)
        dv_json_append(array,
                       dv_cdi_write(field->shape, &elements[i * field->shape->size_bytes], arena));
    return array;
}

static struct dv_json *write_inline(const struct dv_cdi_field *field, const char *value,
                                    struct dv_arena *arena)
{
    struct dv_json *object = dv_cdi_write(field->shape, value + field->at, arena);

    return dv_json_n(object) > 0 ? object : NULL;
}

/* Writes a value; NULL: there is nothing to write. */
static struct dv_json *write_value(const struct dv_cdi_field *field, const char *value,
                                   struct dv_arena *arena)
{
    const void *at = value + field->at;
    const struct dv_cdi_number *number = at;

    switch (field->kind) {
    case DV_CDI_TEXT:
        return write_text(*(const dv_str *)at, arena);
    case DV_CDI_TEXTS:
    case DV_CDI_ENV:
        return write_texts(field, value, arena);
    case DV_CDI_CHOICE:
        return write_text(dv_str_from_c(field->choices[*(const unsigned *)at]), arena);
    case DV_CDI_COUNT:
        return *(const uint32_t *)at ? dv_json_new_u64(*(const uint32_t *)at, arena) : NULL;
    case DV_CDI_NUMBER:
        return number->is_set ? dv_json_new_u64(number->value, arena) : NULL;
    case DV_CDI_NUMBERS:
        return write_numbers(field, value, arena);
    case DV_CDI_FLAG:
        return *(const bool *)at ? dv_json_new_bool(true, arena) : NULL;
    case DV_CDI_PAIRS:
        return write_pairs(field, value, arena);
    case DV_CDI_LIST:
        return write_list(field, value, arena);
    case DV_CDI_POINTER:
        at = pointer_of(field, value);
        return at ? dv_cdi_write(field->shape, at, arena) : NULL;
    case DV_CDI_INLINE:
        return write_inline(field, value, arena);
    }
    return NULL;
}

struct dv_json *dv_cdi_write(const struct dv_cdi_shape *shape, const void *value,
                             struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    for (size_t i = 0; i < shape->n_fields; i++) {
        struct dv_json *member = write_value(&shape->fields[i], value, arena);

        if (member)
            dv_json_set(object, shape->fields[i].key, member, arena);
    }
    return object;
}

/* Lists one after the other; of what is not a list, the last. */
static void merge(struct dv_json *all, const struct dv_json *part, struct dv_arena *arena)
{
    for (const struct dv_json *from = dv_json_first(part); from; from = dv_json_next(from)) {
        struct dv_json *to = dv_json_get(all, dv_json_key(from));

        if (!to || !dv_json_is(from, DV_JSON_ARRAY)) {
            dv_json_set(all, dv_json_key(from), dv_json_copy(from, arena), arena);
            continue;
        }
        for (const struct dv_json *at = dv_json_first(from); at; at = dv_json_next(at))
            dv_json_append(to, dv_json_copy(at, arena));
    }
}

struct dv_json *dv_cdi_edits_to_json(const struct dv_cdi_edits *edits, struct dv_arena *arena)
{
    struct dv_json *all = dv_json_new_object(arena);

    for (size_t i = 0; i < edits->n_parts; i++)
        merge(all, dv_cdi_write(&dv_cdi_edits_shape, edits->parts[i].edits, arena), arena);
    return all;
}
