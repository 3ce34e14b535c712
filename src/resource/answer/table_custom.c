/* table_custom.c - cells of objects whose columns a definition says: what its paths lead to. */
#include "resource/answer/table_custom.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "resource/table.h"
#include "json/json.h"
#include "json/jsonpath.h"

#define CELL_BYTES_MAX (64u * 1024u)

static dv_str age_of(struct dv_time time, struct dv_time now, struct dv_arena *arena)
{
    return time.is_set ? dv_age_print(now.seconds - time.seconds, arena) : DV_STR("<unknown>");
}

static struct dv_json *date_cell(const struct dv_json *node, struct dv_time now,
                                 struct dv_arena *arena)
{
    struct dv_time time = {0};
    struct dv_err err;
    dv_str text;

    if (!dv_json_as_str(node, &text, &err))
        return dv_json_new_null(arena);
    if (!dv_api_time_parse(text, &time, &err))
        return dv_json_new_str(DV_STR("<invalid>"), arena);
    return dv_json_new_str(age_of(time, now, arena), arena);
}

static struct dv_json *integer_cell(const struct dv_json *node, struct dv_arena *arena)
{
    struct dv_err err;
    int64_t number;
    double value;

    if (!dv_json_is(node, DV_JSON_NUMBER))
        return dv_json_new_null(arena);
    if (dv_json_as_i64(node, &number, &err))
        return dv_json_new_i64(number, arena);
    value = strtod(dv_str_printf(arena, "%.*s", DV_FMT(dv_json_number_text(node))).p, NULL);
    return fabs(value) < 9e18 ? dv_json_new_i64((int64_t)value, arena) : dv_json_new_null(arena);
}

static struct dv_json *text_cell(const struct dv_json *node, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_err err;
    dv_str text;

    dv_buf_init(&buf, CELL_BYTES_MAX);
    if (dv_json_as_str(node, &text, &err))
        return dv_json_new_str(text, arena);
    dv_json_print(node, &(const struct dv_json_style){.sort_keys = true}, &buf);
    return dv_json_new_str(dv_buf_str(&buf), arena);
}

/* A cell of a type; a value that does not have the type leaves it empty. */
static struct dv_json *cell(const struct dv_json *node, dv_str type, struct dv_time now,
                            struct dv_arena *arena)
{
    if (!node)
        return dv_json_new_null(arena);
    if (dv_str_eq(type, DV_STR("string")))
        return text_cell(node, arena);
    if (dv_str_eq(type, DV_STR("date")))
        return date_cell(node, now, arena);
    if (dv_str_eq(type, DV_STR("integer")))
        return integer_cell(node, arena);
    if (dv_json_is(node, dv_str_eq(type, DV_STR("boolean")) ? DV_JSON_BOOL : DV_JSON_NUMBER))
        return dv_json_copy(node, arena);
    return dv_json_new_null(arena);
}

void dv_table_custom(const struct dv_object *object, const struct dv_custom_version *version,
                     struct dv_time now, struct dv_json *cells, struct dv_arena *arena)
{
    const struct dv_json *doc = NULL;

    dv_json_append(cells, dv_json_new_str(object->meta->name, arena));
    for (size_t i = 1; i < version->n_columns; i++) {
        const struct dv_json *found = NULL;
        struct dv_err err;

        if (version->paths[i].n == 0) {
            dv_json_append(cells, dv_json_new_str(
                                      age_of(object->meta->creation_timestamp, now, arena), arena));
            continue;
        }
        if (!doc) /* with its whole metadata, because paths may lead there */
            doc = dv_encode_json(version->api.message, dv_custom_shown(object, version, arena),
                                 &version->api, version->custom->names->kind, arena);
        if (!dv_jsonpath_first(version->paths[i], doc, arena, &found, &err))
            found = NULL; /* the path was checked when the definition was written */
        dv_json_append(cells, cell(found, version->columns[i].type, now, arena));
    }
}
