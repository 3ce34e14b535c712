/* object.c - objects that are kept: immutable and counted, in one block of memory each, measured
 * first and then copied into it. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/codec/copy.h"
#include "resource/codec/object_use.h"
#include "resource/resource.h"

/* The offset of the metadata, which every kind has first: checked when an object is made. */
static size_t meta_offset(const struct dv_message *message)
{
    const struct dv_field *field = dv_message_field(message, DV_STR("metadata"), NULL);

    return field->offset;
}

struct dv_object *dv_object_new_sized(const struct dv_kind *kind, const void *value,
                                      struct dv_copy_size size)
{
    const struct dv_message *message = kind->versions[0].message;
    size_t bytes = sizeof(struct dv_object) + message->size + size.structs + size.texts;
    struct dv_object *object = dv_alloc(bytes);

    *object = (struct dv_object){
        .kind = kind,
        .value = object + 1,
        .size_bytes = (uint32_t)bytes,
        .n_refs = 1,
    };
    dv_copy_to(message, value, size, (char *)object->value + message->size, object->value);
    object->meta =
        (struct dv_api_object_meta *)(void *)((char *)object->value + meta_offset(message));
    if (!dv_str_to_u64(object->meta->resource_version, &object->version))
        object->version = 0;
    return object;
}

struct dv_object *dv_object_new(const struct dv_kind *kind, const void *value)
{
    return dv_object_new_sized(kind, value,
                               dv_copy_measure(kind->versions[0].message, value, DV_COPY_STORED));
}

size_t dv_object_measure(const struct dv_kind *kind, const void *value)
{
    const struct dv_message *message = kind->versions[0].message;
    struct dv_copy_size size = dv_copy_measure(message, value, DV_COPY_STORED);

    return sizeof(struct dv_object) + message->size + size.structs + size.texts;
}

void dv_object_set_version(struct dv_object *object, uint64_t version)
{
    dv_str *text = &object->meta->resource_version;
    char *room = (char *)object->value + (text->p - (const char *)object->value);

    assert(object->n_refs == 1 && dv_str_eq(*text, DV_VERSION_ROOM));
    *text = dv_u64_print(version, room);
    object->version = version;
}

struct dv_object *dv_object_ref(struct dv_object *object)
{
    object->n_refs++;
    if (object->pool) {
        object->n_uses++;
        dv_object_pool_use(object);
    }
    return object;
}

void dv_object_unref(struct dv_object *object)
{
    if (!object)
        return;
    object->n_refs--;
    if (object->pool) {
        object->n_uses--;
        dv_object_pool_unuse(object);
    } else if (object->n_refs == 0) {
        free(object);
    }
}

const struct dv_quantity *dv_quantity_find(const struct dv_quantity_entry *entries, size_t n,
                                           dv_str key)
{
    const struct dv_quantity_entry wanted = {.key = key};
    const struct dv_quantity_entry *found =
        n > 0 ? bsearch(&wanted, entries, n, sizeof(wanted), dv_str_compare) : NULL;

    return found ? &found->value : NULL;
}

const struct dv_str_entry *dv_entry_find(const struct dv_str_entry *entries, size_t n, dv_str key)
{
    size_t from = 0;
    size_t to = n;

    while (from < to) {
        size_t at = from + (to - from) / 2;
        int order = dv_str_cmp(key, entries[at].key);

        if (order == 0)
            return &entries[at];
        if (order < 0)
            to = at;
        else
            from = at + 1;
    }
    return NULL;
}

void dv_entry_set(struct dv_str_entry **entries, size_t *n, dv_str key, dv_str value,
                  struct dv_arena *arena)
{
    const struct dv_str_entry *found = dv_entry_find(*entries, *n, key);
    struct dv_str_entry *all;
    size_t at = 0;

    if (found && dv_str_eq(found->value, value))
        return;
    all = DV_NEW_ARRAY(arena, struct dv_str_entry, *n + 1);
    while (at < *n && dv_str_cmp((*entries)[at].key, key) < 0) {
        all[at] = (*entries)[at];
        at++;
    }
    all[at] = (struct dv_str_entry){key, value};
    for (size_t i = at + (found != NULL); i < *n; i++)
        all[found ? i : i + 1] = (*entries)[i];
    *entries = all;
    *n += found == NULL;
}
