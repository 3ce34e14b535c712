/* fuzz_json.c - an object from JSON: printed and read again it is printed the same, and so are its
 * copies, the document that is made of it, its protobuf, its row in the store, and what comes back
 * from an older version. */
#include <assert.h>

#include "base/str.h"
#include "fuzz_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dv_str encode_row(const struct dv_object *object, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, SIZE_MAX);
    dv_encode_row(object, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

/* A row keeps all but a version that is no number, which no stored object has. */
static void check_row(const struct dv_object *object, struct dv_arena *arena)
{
    const struct dv_message *message = object->kind->versions[0].message;
    dv_str row = encode_row(object, arena);
    struct dv_api_object_meta *meta = new_value(message, arena);
    struct dv_object *again;
    struct dv_err err;

    assert(dv_decode_row(object->kind, row, arena, meta, &err));
    again = dv_object_from_row(object->kind, row, arena, &err);
    assert(again && dv_str_eq(encode_row(again, arena), row));
    meta->resource_version = object->meta->resource_version;
    assert(
        dv_str_eq(encode_text(message, meta, arena), encode_text(message, object->value, arena)));
    dv_object_unref(again);
}

static dv_str print_doc(const struct dv_json *doc, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, SIZE_MAX);
    dv_json_print(doc, NULL, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

/* A document that is made of the struct is the one that is read from its text. */
static void check_tree(const struct dv_message *message, const void *value, struct dv_arena *arena)
{
    struct dv_json *made = dv_encode_json(message, value, NULL, DV_STR_NONE, arena);
    struct dv_err err;
    struct dv_json *read = dv_json_parse(encode_text(message, value, arena), NULL, arena, &err);

    assert(read && dv_json_eq(made, read));
    assert(dv_str_eq(print_doc(made, arena), print_doc(read, arena)));
}

static void check_object(const struct dv_kind *kind, const void *value, struct dv_arena *arena)
{
    const struct dv_message *message = kind->versions[0].message;
    struct dv_object *object = dv_object_new(kind, value);
    void *copy = new_value(message, arena);

    dv_message_copy(message, value, arena, copy);
    assert(dv_str_eq(encode_text(message, copy, arena), encode_text(message, value, arena)));
    assert(dv_message_eq(message, copy, value));
    assert(dv_message_eq(message, object->value, value));
    for (size_t i = 0; i < kind->n_versions; i++)
        check_tree(kind->versions[i].message, value, arena);
    check_row(object, arena);
    dv_object_unref(object);
}

/* What protobuf cannot hold: which lists were empty, and unknown fields. */
static void check_pb(const struct dv_message *message, const void *value, struct dv_arena *arena)
{
    dv_str bytes = encode_bytes(message, value, arena);
    void *again = new_value(message, arena);
    struct dv_err err;

    assert(dv_decode_pb(message, bytes, arena, again, &err));
    assert(dv_str_eq(encode_bytes(message, again, arena), bytes));
}

/* Through every other version and back: a request that is there but has nothing in it is lost in
 * v1beta1, and then stays lost. Without unknown fields: what is unknown to one version can be known
 * to the other. */
static void check_versions(const struct dv_kind *kind, const void *value, struct dv_arena *arena)
{
    const struct dv_message *message = kind->versions[0].message;

    for (size_t i = 0; i < kind->n_versions; i++) {
        const struct dv_message *other = kind->versions[i].message;
        dv_str text = encode_text(other, value, arena);
        void *once = decode_text(other, text, DV_UNKNOWN_DROP, arena);
        void *twice;

        assert(once);
        assert(dv_str_eq(encode_text(other, once, arena), text));
        twice = decode_text(other, encode_text(other, once, arena), DV_UNKNOWN_DROP, arena);
        assert(twice);
        assert(dv_message_eq(message, once, twice));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_kind *kind;
    const struct dv_message *message;
    void *value;
    void *again;
    dv_str text;

    if (size == 0)
        return 0;
    kind = chosen_kind(data[0]);
    message = chosen_version(kind, data[0])->message;
    value =
        decode_text(message, (dv_str){(const char *)data + 1, size - 1}, DV_UNKNOWN_KEEP, arena);
    if (!value)
        return 0;
    text = encode_text(message, value, arena);
    again = decode_text(message, text, DV_UNKNOWN_KEEP, arena);
    /* In v1beta1 what is unknown beside a device's "basic" is printed in it, and may be known or
     * wrong there. */
    if (kind->id == DV_KIND_SLICE && message != kind->versions[0].message &&
        (!again || !dv_str_eq(encode_text(message, again, arena), text)))
        return 0;
    assert(again);
    assert(dv_str_eq(encode_text(message, again, arena), text));
    check_object(kind, value, arena);
    value = decode_text(message, text, DV_UNKNOWN_DROP, arena);
    check_pb(message, value, arena);
    check_versions(kind, value, arena);
    return 0;
}
