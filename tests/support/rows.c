#include "support/rows.h"

#include "base/defs.h"
#include "support/dvtest.h"

static void on_read(struct dv_store_read *read, const struct dv_err *err)
{
    assert_null(err);
    DV_CONTAINER(read, struct rows, read)->n_done++;
}

void rows_read(struct rows *rows, struct dv_store *store, uint32_t table, struct dv_arena *arena)
{
    *rows = (struct rows){
        .read = {.done = on_read,
                 .table = table,
                 .n_rows_max = SIZE_MAX,
                 .bytes_max = SIZE_MAX,
                 .arena = arena}
    };
    dv_store_read(store, &rows->read);
}
