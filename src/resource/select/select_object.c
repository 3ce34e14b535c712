/* select_object.c - selectors asked of objects that may be packed. Of these only the labels and the
 * few texts that are asked for are read, in place: a list with a selector looks at every object of
 * a kind, and would take many times as long if it had to unpack them. */
#include "resource/select.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "pb/pb.h"
#include "resource/codec/object_row.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/select/select_row.h"

/* An object with more labels is unpacked. */
#define N_LABELS_MAX 32u
/* Numbers in the row. */
#define NUMBER_METADATA 1u
#define NUMBER_LABELS 11u
#define NUMBER_ANNOTATIONS 12u
#define NUMBER_KEY 1u
#define NUMBER_VALUE 2u
/* The length of a path. */
#define PATH_MAX_N 4u

/* Reads the labels of a packed object, which are sorted in its row. False: there are too many. */
static bool read_labels(const struct dv_object *object, struct dv_str_entry *labels, size_t *n)
{
    struct dv_pb_reader reader;
    dv_str meta;

    *n = 0;
    if (!dv_row_find(dv_row_body(dv_object_row(object)), NUMBER_METADATA, &meta))
        return true;
    dv_pb_reader_init(&reader, meta);
    while (!dv_pb_is_at_end(&reader)) {
        struct dv_str_entry label = {DV_STR(""), DV_STR("")};
        struct dv_pb_field part;
        struct dv_err err;

        if (!dv_pb_read(&reader, &part, &err) || part.tag >> 3 > NUMBER_LABELS)
            break;
        if (part.tag != DV_PB_TAG(NUMBER_LABELS, DV_PB_BYTES))
            continue;
        if (*n == N_LABELS_MAX)
            return false;
        (void)dv_row_find(part.bytes, NUMBER_KEY, &label.key);
        (void)dv_row_find(part.bytes, NUMBER_VALUE, &label.value); /* absent: it is empty */
        labels[(*n)++] = label;
    }
    return true;
}

/* A path in a row, and who is told what is there. */
struct seeking {
    uint32_t numbers[PATH_MAX_N];
    size_t n;
    void (*see)(void *ctx, dv_str text);
    void *ctx;
};

static void seek(const struct seeking *seeking, size_t depth, dv_str bytes)
{
    struct dv_pb_reader reader;
    struct dv_pb_field part;
    struct dv_err err;

    dv_pb_reader_init(&reader, bytes);
    while (!dv_pb_is_at_end(&reader) && dv_pb_read(&reader, &part, &err)) {
        if (part.tag != DV_PB_TAG(seeking->numbers[depth], DV_PB_BYTES))
            continue;
        if (depth + 1 < seeking->n)
            seek(seeking, depth + 1, part.bytes);
        else
            seeking->see(seeking->ctx, part.bytes);
    }
}

bool dv_object_each_text(const struct dv_object *object, dv_str path,
                         void (*see)(void *ctx, dv_str text), void *ctx)
{
    const struct dv_message *message = object->kind->versions[0].message;
    struct seeking seeking = {.see = see, .ctx = ctx};
    dv_str row = dv_object_row(object);

    if (row.n == 0)
        return false;
    while (path.n > 0) {
        size_t n = dv_str_find_char(path, '.');
        const struct dv_field *field = dv_message_field(message, dv_str_slice(path, 0, n), NULL);

        assert(field && seeking.n < PATH_MAX_N); /* paths are ours, not a client's */
        seeking.numbers[seeking.n++] = field->number;
        message = field->message;
        path = dv_str_slice(path, n + 1, path.n);
    }
    seek(&seeking, 0, dv_row_body(row));
    return true;
}

bool dv_object_has_annotation(const struct dv_object *object, dv_str name)
{
    const struct dv_api_object_meta *meta = object->meta;
    struct dv_pb_reader reader;
    struct dv_pb_field part;
    struct dv_err err;
    dv_str packed;
    dv_str key;

    if (meta)
        return dv_entry_find(meta->annotations, meta->n_annotations, name);
    if (!dv_row_find(dv_row_body(dv_object_row(object)), NUMBER_METADATA, &packed))
        return false;
    dv_pb_reader_init(&reader, packed);
    while (!dv_pb_is_at_end(&reader) && dv_pb_read(&reader, &part, &err))
        if (part.tag == DV_PB_TAG(NUMBER_ANNOTATIONS, DV_PB_BYTES) &&
            dv_row_find(part.bytes, NUMBER_KEY, &key) && dv_str_eq(key, name))
            return true;
    return false;
}

bool dv_object_is_selected(struct dv_object *object, const struct dv_label_selector *labels,
                           const struct dv_field_selector *fields)
{
    struct dv_str_entry found[N_LABELS_MAX];
    size_t n;

    if (fields && !object->value && !dv_field_selector_reads_rows(fields))
        (void)dv_object_unpack(object);
    if (fields && !dv_field_selector_matches(fields, object))
        return false;
    if (dv_label_selector_is_empty(labels))
        return true;
    if (!object->value && read_labels(object, found, &n))
        return dv_label_selector_matches(labels, found, n);
    (void)dv_object_unpack(object);
    return dv_label_selector_matches(labels, object->meta->labels, object->meta->n_labels);
}
