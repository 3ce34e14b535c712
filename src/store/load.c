/* load.c - reads all rows of a table at start-up, and goes on over damage that shows only then. */
#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/db.h"
#include "store/store.h"
#include "store/store_state.h"

/* Replaces a database whose damage shows at start-up. Returns true when the rows that can still be
 * read are in the new one. */
static bool recover_at_start(struct dv_store *store, struct dv_err *err)
{
    char *set_aside;

    (void)dv_wrap(err, "store %s", store->name);
    if (!store->db.is_damaged ||
        !dv_store_recover(store, dv_store_rest_at_start(store), &set_aside, err))
        return false;
    free(store->set_aside);
    store->set_aside = set_aside;
    store->loop_epoch = store->thread_epoch;
    return store->options.keeps_readable;
}

/* How far a load has come: it goes on from there when the database had to be replaced. */
struct load {
    bool (*each)(void *ctx, const struct dv_store_row *row, struct dv_err *err);
    void *ctx;
    uint32_t table;
    struct dv_buf after; /* the key of the last row that was handed out */
};

/* Hands out the rows after `after`. Returns false when they could not be read. */
static bool load_rows(struct dv_store *store, struct load *load, struct dv_err *err)
{
    struct dv_store_cursor cursor = {0};
    bool is_end = false;
    bool is_ok =
        dv_store_cursor_init(&cursor, &store->db, load->table, dv_buf_str(&load->after), err);

    while (is_ok && !is_end) {
        struct dv_store_row row;

        is_ok = dv_store_cursor_next(&cursor, &store->db, &row, &is_end, err);
        if (!is_ok || is_end)
            continue;
        dv_buf_clear(&load->after);
        dv_buf_add(&load->after, row.key);
        if (!load->each(load->ctx, &row, err))
            dv_store_note_aside(store, load->table, &row, err);
    }
    dv_store_cursor_fini(&cursor);
    return is_ok;
}

bool dv_store_load(struct dv_store *store, uint32_t table,
                   bool (*each)(void *ctx, const struct dv_store_row *row, struct dv_err *err),
                   void *ctx, struct dv_err *err)
{
    struct load load = {.each = each, .ctx = ctx, .table = table};
    bool is_ok;

    assert(!store->has_begun && !store->filling);
    dv_buf_init(&load.after, DV_STORE_KEY_BYTES_MAX);
    do
        is_ok = load_rows(store, &load, err);
    while (!is_ok && recover_at_start(store, err));
    dv_buf_fini(&load.after);
    return is_ok;
}
