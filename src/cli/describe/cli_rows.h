/* cli_rows.h - objects as rows of a table. */
#ifndef DV_CLI_ROWS_H
#define DV_CLI_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cli/cli.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_column;

struct dv_cli_rows {
    struct dv_table table;
    const struct dv_kind *kind;
    const struct dv_column *columns;
    size_t n_columns;
    bool is_wide;
    bool has_namespace; /* a first column with the namespace */
    bool has_kind;      /* "pod/a" in place of "a" */
    bool has_node;      /* a last column: what this node has made of a claim */
    const struct NodeV1__ListClaimsResponse *claims;
};

/* The table's memory is in `arena`. */
void dv_cli_rows_init(struct dv_cli_rows *rows, struct dv_cli *cli, const struct dv_kind *kind,
                      bool has_kind, struct dv_arena *arena);
/* The cells' texts are in `arena`. */
void dv_cli_rows_add(struct dv_cli_rows *rows, const struct dv_object *object, struct dv_time now,
                     struct dv_arena *arena);

#endif
