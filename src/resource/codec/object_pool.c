/* object_pool.c - objects that are kept as rows of the store, and unpacked while they are used.
 *
 *     +------------------+-----------------------+
 *     | struct dv_object | row                   |    for as long as the object lives
 *     +------------------+-----------------------+
 *          | value             ^ ^ ^
 *          v                   | | | texts
 *     +-----------------+-----------------+-------+
 *     | struct unpacked | value, structs  | texts |    while it is used
 *     +-----------------+-----------------+-------+
 *
 * Values are in memory of their own (value_blocks.h), apart from rows, which last (slabs). */
#include "resource/object_pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "pb/pb.h"
#include "resource/codec/copy.h"
#include "resource/codec/object_row.h"
#include "resource/codec/object_use.h"
#include "resource/codec/value_blocks.h"
#include "resource/resource.h"

/* The numbers of fields in every object's metadata. */
#define NUMBER_METADATA 1u
#define NUMBER_NAME 1u
#define NUMBER_NAMESPACE 3u
#define NUMBER_UID 5u

struct dv_object_pool {
    struct dv_list idle; /* of struct unpacked that nobody uses, the least recently used first */
    size_t n_idle;
    size_t n_objects;
    uint64_t clock; /* counts calls of dv_object_pool_pack */
    void (*grown)(void *ctx);
    void *ctx;
    struct dv_arena *scratch; /* for one object that is unpacked */
    struct dv_value_blocks values;
    struct dv_slabs objects; /* with their rows */
    bool is_closed;          /* it goes with its last object */
};

/* The head of the block with an object's value. */
struct unpacked {
    struct dv_link link; /* in pool->idle */
    struct dv_object *object;
    uint64_t used; /* pool->clock when it was looked at last */
};

struct dv_object_pool *dv_object_pool_new(void (*grown)(void *ctx), void *ctx)
{
    struct dv_object_pool *pool = DV_ALLOC(struct dv_object_pool);

    dv_list_init(&pool->idle);
    pool->grown = grown;
    pool->ctx = ctx;
    pool->scratch = dv_arena_new();
    dv_slabs_init(&pool->objects);
    return pool;
}

static void free_when_unused(struct dv_object_pool *pool)
{
    if (!pool->is_closed || pool->n_objects > 0)
        return;
    dv_arena_free(pool->scratch);
    dv_slabs_fini(&pool->objects);
    free(pool);
}

void dv_object_pool_free(struct dv_object_pool *pool)
{
    if (!pool)
        return;
    pool->is_closed = true;
    pool->grown = NULL;
    free_when_unused(pool);
}

size_t dv_object_pool_n_idle(const struct dv_object_pool *pool)
{
    return pool->n_idle;
}

/* ---- values ---- */

static struct unpacked *unpacked_of(const struct dv_object *object)
{
    return (struct unpacked *)object->value - 1;
}

/* Makes the block of the object's value, with a copy of `value`. */
static void set_value(struct dv_object *object, const void *value, struct dv_copy_size size)
{
    const struct dv_message *message = object->kind->versions[0].message;
    struct unpacked *unpacked = dv_value_take(
        &object->pool->values, sizeof(*unpacked) + message->size + size.structs + size.texts);

    *unpacked = (struct unpacked){.object = object};
    object->value = unpacked + 1;
    object->meta = object->value;
    dv_copy_to(message, value, size, (char *)object->value + message->size, object->value);
}

void dv_object_forget_value(struct dv_object *object)
{
    object->value = NULL;
    object->meta = NULL;
}

static void leave_idle(struct dv_object *object)
{
    struct unpacked *unpacked = unpacked_of(object);

    if (!dv_link_is_in(&unpacked->link))
        return;
    dv_link_remove(&unpacked->link);
    object->pool->n_idle--;
}

static void become_idle(struct dv_object *object)
{
    struct dv_object_pool *pool = object->pool;
    struct unpacked *unpacked = unpacked_of(object);

    leave_idle(object);
    unpacked->used = pool->clock;
    dv_list_push(&pool->idle, &unpacked->link);
    pool->n_idle++;
    if (pool->grown)
        pool->grown(pool->ctx);
}

static void drop_value(struct dv_object *object)
{
    leave_idle(object);
    dv_value_give(&object->pool->values, unpacked_of(object));
    dv_object_forget_value(object);
}

void dv_object_pool_pack(struct dv_object_pool *pool, size_t n_left)
{
    struct dv_link *link;

    pool->clock++;
    while (pool->n_idle > n_left && (link = dv_list_first(&pool->idle)) != NULL) {
        struct unpacked *unpacked = DV_CONTAINER(link, struct unpacked, link);

        if (unpacked->used + 1 >= pool->clock)
            return;
        drop_value(unpacked->object);
    }
}

static void *decode(const struct dv_object *object, struct dv_arena *arena,
                    struct dv_copy_size *size, size_t *made_texts)
{
    const struct dv_message *message = object->kind->versions[0].message;
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;
    bool is_ok =
        dv_row_decode(object->kind, dv_object_row(object), arena, value, size, made_texts, &err);

    assert(is_ok); /* it was made by dv_encode_row, or decoded when it was loaded */
    return value;
}

static void unpack(struct dv_object *object)
{
    struct dv_arena *scratch = object->pool->scratch;
    struct dv_copy_size size;
    size_t made_texts;
    void *value;

    dv_arena_reset(scratch);
    value = decode(object, scratch, &size, &made_texts);
    size.texts = made_texts;
    size.lasting = dv_object_row(object);
    set_value(object, value, size);
}

struct dv_object *dv_object_unpack(struct dv_object *object)
{
    if (!object->pool)
        return object;
    if (!object->value)
        unpack(object);
    if (object->n_uses == 0)
        become_idle(object);
    return object;
}

/* ---- objects ---- */

static struct dv_object *new_object(struct dv_object_pool *pool, const struct dv_kind *kind,
                                    dv_str row)
{
    struct dv_object *object = dv_slab_alloc(&pool->objects, sizeof(*object) + row.n);

    *object = (struct dv_object){
        .kind = kind, .version = dv_row_version(row), .pool = pool, .n_row = (uint32_t)row.n};
    memcpy(object + 1, row.p, row.n);
    object->n_refs = 1;
    pool->n_objects++;
    return object;
}

static uint32_t size_of(const struct dv_message *message, const struct dv_copy_size *size)
{
    return (uint32_t)(sizeof(struct dv_object) + message->size + size->structs + size->texts);
}

struct dv_object *dv_object_pool_add(struct dv_object_pool *pool, const struct dv_kind *kind,
                                     const void *value, dv_str row)
{
    const struct dv_message *message = kind->versions[0].message;
    struct dv_copy_size size = dv_copy_measure(message, value, DV_COPY_STORED);
    struct dv_object *object = new_object(pool, kind, row);

    object->size_bytes = size_of(message, &size);
    object->n_uses = 1;
    set_value(object, value, size);
    return object;
}

static void free_object(struct dv_object *object)
{
    struct dv_object_pool *pool = object->pool;

    dv_slab_free(&pool->objects, object, sizeof(*object) + object->n_row);
    pool->n_objects--;
    free_when_unused(pool);
}

/* Whether what is found in the row without decoding it is what the value has. */
static bool check_names(const struct dv_object *object, struct dv_err *err)
{
    struct dv_object_names names = dv_object_names(object);
    const struct dv_api_object_meta *meta = object->meta;

    return (dv_str_eq(names.namespace, meta->namespace) && dv_str_eq(names.name, meta->name) &&
            dv_str_eq(names.uid, meta->uid)) ||
           dv_fail(err, DV_DATA_LOSS, "its metadata is not where it is in a row");
}

struct dv_object *dv_object_pool_load(struct dv_object_pool *pool, const struct dv_kind *kind,
                                      dv_str row, struct dv_arena *scratch, struct dv_err *err)
{
    const struct dv_message *message = kind->versions[0].message;
    void *value = dv_arena_alloc(scratch, message->size, message->align);
    struct dv_object *object;
    struct dv_copy_size size;
    size_t made_texts;

    if (dv_row_is_json(row)) {
        struct dv_object whole = {.kind = kind, .value = value, .meta = value};
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

        dv_buf_init(&buf, DV_DECODE_BYTES_MAX);
        if (!dv_decode_row(kind, row, scratch, value, err))
            return NULL;
        if (!dv_str_to_u64(whole.meta->resource_version, &whole.version))
            whole.version = 0;
        dv_encode_row(&whole, &buf);
        return dv_buf_check(&buf, "row", err)
                   ? dv_object_pool_load(pool, kind, dv_buf_str(&buf), scratch, err)
                   : NULL;
    }
    object = new_object(pool, kind, row);
    object->meta = object->value = value;
    if (dv_row_decode(kind, dv_object_row(object), scratch, value, &size, &made_texts, err) &&
        check_names(object, err)) {
        object->size_bytes = size_of(message, &size);
        return object;
    }
    free_object(object);
    return NULL;
}

/* ---- references ---- */

void dv_object_pool_use(struct dv_object *object)
{
    if (!object->value)
        unpack(object);
    leave_idle(object);
}

void dv_object_pool_unuse(struct dv_object *object)
{
    if (object->n_refs == 0) {
        drop_value(object);
        free_object(object);
    } else if (object->n_uses == 0) {
        become_idle(object);
    }
}

struct dv_object *dv_object_keep(struct dv_object *object)
{
    object->n_refs++;
    return object;
}

void dv_object_unkeep(struct dv_object *object)
{
    if (!object)
        return;
    if (!object->pool) {
        dv_object_unref(object);
        return;
    }
    if (--object->n_refs > 0)
        return;
    if (object->value)
        drop_value(object);
    free_object(object);
}

/* ---- reading without unpacking ---- */

const struct dv_object *dv_object_read(const struct dv_object *object, struct dv_arena *arena,
                                       struct dv_object *whole)
{
    if (!object->pool)
        return object;
    *whole = (struct dv_object){.kind = object->kind, .version = object->version};
    whole->value = whole->meta = decode(object, arena, &(struct dv_copy_size){0}, &(size_t){0});
    return whole;
}

dv_str dv_object_row(const struct dv_object *object)
{
    return object->n_row > 0 ? (dv_str){(const char *)(object + 1), object->n_row} : DV_STR_NONE;
}

size_t dv_object_kept_bytes(const struct dv_object *object)
{
    return object->pool ? sizeof(*object) + object->n_row : object->size_bytes;
}

struct dv_object_names dv_object_names(const struct dv_object *object)
{
    struct dv_object_names names = {DV_STR(""), DV_STR(""), DV_STR("")};
    struct dv_pb_reader reader;
    struct dv_pb_field part;
    struct dv_err err;

    if (!object->pool)
        return (struct dv_object_names){object->meta->namespace, object->meta->name,
                                        object->meta->uid};
    dv_pb_reader_init(&reader, dv_row_body(dv_object_row(object)));
    /* The metadata is first, and its members are in the order of their numbers: that was checked
     * when the row was loaded, or written by us. */
    if (!dv_pb_read(&reader, &part, &err) || part.tag != DV_PB_TAG(NUMBER_METADATA, DV_PB_BYTES))
        return names;
    dv_pb_reader_init(&reader, part.bytes);
    while (!dv_pb_is_at_end(&reader) && dv_pb_read(&reader, &part, &err) &&
           part.tag >> 3 <= NUMBER_UID) {
        if (part.tag == DV_PB_TAG(NUMBER_NAME, DV_PB_BYTES))
            names.name = part.bytes;
        else if (part.tag == DV_PB_TAG(NUMBER_NAMESPACE, DV_PB_BYTES))
            names.namespace = part.bytes;
        else if (part.tag == DV_PB_TAG(NUMBER_UID, DV_PB_BYTES))
            names.uid = part.bytes;
    }
    return names;
}
