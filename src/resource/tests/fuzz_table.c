/* fuzz_table.c - an object as a row of a table, in every version: as many cells as columns, and all
 * of it can be printed and read again. The first two bytes choose the kind and the time.
 */
#include <assert.h>

#include "base/defs.h"
#include "base/str.h"
#include "fuzz_object.h"
#include "resource/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* From long ago to far ahead. */
static struct dv_time time_of(uint8_t byte)
{
    return (struct dv_time){((int64_t)byte - 128) * 10000000000, 0, true};
}

static void check_json(const struct dv_json *node, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_err err;

    dv_buf_init(&buf, SIZE_MAX);
    dv_json_print(node, NULL, &buf);
    assert(dv_json_parse(dv_buf_str(&buf), NULL, arena, &err));
}

static void check_row(const struct dv_object *object, const struct dv_api_version *version,
                      struct dv_time now, struct dv_arena *arena)
{
    size_t n;
    const struct dv_column *columns = dv_table_columns(object->kind, version, &n);
    const struct dv_json *cells = dv_table_cells(object, version, now, arena);
    const struct dv_json *cell = dv_json_first(cells);

    assert(columns && n > 0 && dv_json_n(cells) == n);
    for (; cell; cell = dv_json_next(cell)) /* the reference has numbers in columns of strings */
        assert(dv_json_is(cell, DV_JSON_STRING) || dv_json_is(cell, DV_JSON_NUMBER) ||
               dv_json_is(cell, DV_JSON_BOOL));
    check_json(cells, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_kind *kind;
    struct dv_object *object;
    const void *value;

    if (size < 2)
        return 0;
    kind = chosen_kind(data[0]);
    value = decode_text(kind->versions[0].message, (dv_str){(const char *)data + 2, size - 2},
                        DV_UNKNOWN_DROP, arena);
    if (!value)
        return 0;
    object = dv_object_new(kind, value);
    for (size_t i = 0; i < kind->n_versions; i++)
        check_row(object, &kind->versions[i], time_of(data[1]), arena);
    dv_object_unref(object);
    return 0;
}
