#include "cli/describe/cli_rows.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/describe/cli_node_claims.h"
#include "proto/davit_node_v1.pb-c.h"
#include "resource/resource.h"
#include "resource/table.h"
#include "json/json.h"

static const char *upper(dv_str text, struct dv_arena *arena)
{
    char *copy = DV_NEW_ARRAY(arena, char, text.n + 1);

    for (size_t i = 0; i < text.n; i++)
        copy[i] = (char)(text.p[i] >= 'a' && text.p[i] <= 'z' ? text.p[i] - 32 : text.p[i]);
    return copy;
}

static bool shows(const struct dv_cli_rows *rows, const struct dv_column *column)
{
    return column->priority == 0 || rows->is_wide;
}

void dv_cli_rows_init(struct dv_cli_rows *rows, struct dv_cli *cli, const struct dv_kind *kind,
                      bool has_kind, struct dv_arena *arena)
{
    const char **headers;
    size_t n = 0;

    *rows = (struct dv_cli_rows){
        .kind = kind,
        .is_wide = cli->output == DV_OUTPUT_WIDE,
        .has_namespace = cli->is_everywhere && kind->is_namespaced,
        .has_kind = has_kind,
    };
    rows->columns = dv_table_columns(kind, &kind->versions[0], &rows->n_columns);
    if (kind->id == DV_KIND_CLAIM && rows->is_wide && !cli->watches)
        rows->claims = dv_node_claims_ask(cli);
    rows->has_node = rows->claims != NULL;
    headers = DV_NEW_ARRAY(arena, const char *, rows->n_columns + 2);
    if (rows->has_namespace)
        headers[n++] = "NAMESPACE";
    for (size_t i = 0; i < rows->n_columns; i++)
        if (shows(rows, &rows->columns[i]))
            headers[n++] = upper(rows->columns[i].name, arena);
    if (rows->has_node)
        headers[n++] = "ON THIS NODE";
    dv_table_init(&rows->table, arena, headers, n);
}

static dv_str cell_text(const struct dv_json *cell)
{
    struct dv_err err;
    dv_str text = DV_STR_NONE;
    bool flag;

    if (dv_json_is(cell, DV_JSON_NUMBER))
        return dv_json_number_text(cell);
    if (dv_json_is(cell, DV_JSON_BOOL) && dv_json_as_bool(cell, &flag, &err))
        return flag ? DV_STR("true") : DV_STR("false");
    if (dv_json_is(cell, DV_JSON_STRING) && dv_json_as_str(cell, &text, &err))
        return text;
    return DV_STR_NONE;
}

void dv_cli_rows_add(struct dv_cli_rows *rows, const struct dv_object *object, struct dv_time now,
                     struct dv_arena *arena)
{
    const struct dv_kind *kind = rows->kind;
    const struct dv_json *cells = dv_table_cells(object, &kind->versions[0], now, arena);
    const struct dv_json *cell = dv_json_first(cells);

    if (rows->has_namespace)
        dv_table_add(&rows->table, dv_cli_plain(object->meta->namespace, arena));
    for (size_t i = 0; i < rows->n_columns; i++) {
        dv_str text = cell_text(cell);

        if (rows->has_kind && dv_str_eq(rows->columns[i].format, DV_STR("name")))
            text = dv_str_printf(arena, "%.*s/%.*s", DV_FMT(kind->singular), DV_FMT(text));
        if (shows(rows, &rows->columns[i]))
            dv_table_add(&rows->table, dv_cli_plain(text, arena));
        cell = dv_json_next(cell);
    }
    if (rows->has_node) {
        const NodeV1__Claim *claim = dv_node_claims_find(rows->claims, object->meta->uid);

        dv_table_add(&rows->table, claim ? dv_node_claim_state(claim, arena) : "");
    }
}
