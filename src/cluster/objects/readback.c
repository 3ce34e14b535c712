/* readback.c - checks that what is about to be stored can be read back and is the same. It has
 * found several mistakes of printers and parsers; in debug and sanitizer builds it aborts. */
#include "cluster/objects/readback.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "cluster/objects/custom_kinds.h"
#include "resource/resource.h"
#include "store/store.h"

/* Finds where two texts begin to differ, for the message. */
static size_t first_difference(dv_str a, dv_str b)
{
    size_t n = dv_size_min(a.n, b.n);
    size_t i = 0;

    while (i < n && a.p[i] == b.p[i])
        i++;
    return i;
}

static bool check_same(const struct dv_object *object, dv_str row, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf again;

    dv_buf_init(&again, DV_STORE_VALUE_BYTES_MAX);
    dv_encode_row(object, &again);
    return dv_str_eq(dv_buf_str(&again), row) ||
           dv_fail(err, DV_INTERNAL, "read again it is another one from byte %zu of %zu on",
                   first_difference(dv_buf_str(&again), row), row.n);
}

bool dv_readback_check(const struct dv_kind *kind, dv_str key, dv_str row, struct dv_arena *arena,
                       struct dv_err *err)
{
    const struct dv_message *message = kind->versions[0].message;
    struct dv_api_object_meta *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_object *object;
    dv_str own;
    uint64_t version;
    bool is_same;

    if (!dv_decode_row(kind, row, arena, value, err))
        return false;
    own = dv_custom_key_of(kind, arena);
    own = kind->is_namespaced ? dv_str_printf(arena, "%.*s/%.*s/%.*s", DV_FMT(own),
                                              DV_FMT(value->namespace), DV_FMT(value->name))
                              : dv_str_printf(arena, "%.*s/%.*s", DV_FMT(own), DV_FMT(value->name));
    if (!dv_str_eq(own, key))
        return dv_fail(err, DV_INTERNAL, "it would be stored as %.*s, and read as %.*s",
                       DV_FMT(key), DV_FMT(own));
    if (!dv_str_to_u64(value->resource_version, &version))
        return dv_fail(err, DV_INTERNAL, "its resourceVersion \"%.*s\" is no number",
                       DV_FMT(value->resource_version));
    if (!dv_readback_is_strict())
        return true; /* that it can be read is what must hold; the rest is for finding faults */
    object = dv_object_from_row(kind, row, arena, err);
    if (!object)
        return false;
    is_same = check_same(object, row, err);
    dv_object_unref(object);
    return is_same;
}
