/* store_aside.c - keeps rows that cannot be used in a table of their own, so that nothing is lost
 * and their keys are free. A row is noted when it is loaded, and moved by the next transaction,
 * whatever that is for: so nothing is written at the start, when the disk may be full, and no write
 * reaches a key before the row that was there is safe. */
#include <stdio.h>

#include <sqlite3.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "store/db.h"
#include "store/store.h"
#include "store/store_state.h"

#define STATEMENT_BYTES 256u
/* So many rows are remembered by name; the table keeps all of them. */
#define N_NAMED_MAX 1000u
/* How much of a value is remembered, for whoever wants to know what the row held. */
#define HELD_BYTES_MAX 1024u

static const char make_table[] =
    "CREATE TABLE IF NOT EXISTS _set_aside (i INTEGER PRIMARY KEY, at TEXT NOT NULL, "
    "space TEXT NOT NULL, k BLOB NOT NULL, v BLOB NOT NULL, why TEXT NOT NULL)";

static struct dv_store_aside *add(struct dv_store *store)
{
    store->n_asides++;
    if (store->asides.n >= N_NAMED_MAX)
        return NULL;
    return dv_vec_add_in(&store->asides, store->arena);
}

void dv_store_note_aside(struct dv_store *store, uint32_t table, const struct dv_store_row *row,
                         const struct dv_err *why)
{
    struct dv_store_aside *aside = add(store);
    struct dv_store_pending *pending = dv_vec_add_in(&store->pending, store->arena);

    *pending = (struct dv_store_pending){
        .table = table,
        .key = dv_str_copy(row->key, store->arena),
        .why = dv_str_copy(dv_str_from_c(why->msg), store->arena),
    };
    if (!aside)
        return;
    *aside = (struct dv_store_aside){
        .table = store->options.schema->tables[table],
        .key = pending->key,
        .why = pending->why,
        .held = dv_str_copy(dv_str_slice(row->value, 0, dv_size_min(row->value.n, HELD_BYTES_MAX)),
                            store->arena),
        .is_new = true,
    };
}

/* ---- those of earlier starts ---- */

static dv_str column(sqlite3_stmt *select, int place, struct dv_arena *arena)
{
    /* Comes before the length, which this call may change. */
    const char *p = sqlite3_column_blob(select, place);

    return dv_str_copy((dv_str){p ? p : "", (size_t)sqlite3_column_bytes(select, place)}, arena);
}

void dv_store_load_asides(struct dv_store *store)
{
    sqlite3_stmt *select = NULL;

    /* Most databases have no such table. Rows of it that cannot be read must not keep the daemon
     * from starting, so errors are passed over. */
    if (sqlite3_prepare_v2(store->db.sql, "SELECT space, k, why FROM _set_aside ORDER BY i", -1,
                           &select, NULL) != SQLITE_OK)
        return;
    while (sqlite3_step(select) == SQLITE_ROW) {
        struct dv_store_aside *aside = add(store);

        if (aside)
            *aside = (struct dv_store_aside){
                .table = dv_str_to_c(column(select, 0, store->arena), store->arena),
                .key = column(select, 1, store->arena),
                .why = column(select, 2, store->arena),
            };
    }
    (void)sqlite3_finalize(select); /* repeats the last step's error */
}

/* ---- moving ---- */

static bool bind_text(sqlite3_stmt *statement, int place, dv_str text)
{
    return sqlite3_bind_text64(statement, place, text.n ? text.p : "", text.n, SQLITE_STATIC,
                               SQLITE_UTF8) == SQLITE_OK;
}

static bool copy_row(struct dv_store_db *db, const struct dv_store_pending *pending,
                     const char *table, struct dv_err *err)
{
    char text[STATEMENT_BYTES];
    char now[DV_TIME_BYTES];
    sqlite3_stmt *insert;
    bool is_ok;

    dv_time_print(dv_clock_wall_ns(dv_clock_real()), now);
    (void)snprintf(text, sizeof(text), /* fits: names have a limit (schema.c) */
                   "INSERT INTO _set_aside (at, space, k, v, why) "
                   "SELECT ?1, ?2, k, v, ?3 FROM \"%s\" WHERE k = ?4",
                   table);
    insert = dv_store_db_prepare(db, text, err);
    if (!insert)
        return false;
    is_ok = bind_text(insert, 1, dv_str_from_c(now)) &&
            bind_text(insert, 2, dv_str_from_c(table)) && bind_text(insert, 3, pending->why) &&
            dv_store_db_bind(insert, 4, pending->key);
    is_ok = is_ok ? dv_store_db_run(db, insert, err) : dv_store_db_fail(db, err, "%s", text);
    (void)sqlite3_finalize(insert); /* repeats the step's error */
    return is_ok;
}

static bool delete_row(struct dv_store_db *db, const struct dv_store_pending *pending,
                       const char *table, struct dv_err *err)
{
    char text[STATEMENT_BYTES];
    sqlite3_stmt *statement;
    bool is_ok;

    (void)snprintf(text, sizeof(text), "DELETE FROM \"%s\" WHERE k = ?1", table);
    statement = dv_store_db_prepare(db, text, err);
    if (!statement)
        return false;
    is_ok = dv_store_db_bind(statement, 1, pending->key) ? dv_store_db_run(db, statement, err)
                                                         : dv_store_db_fail(db, err, "%s", text);
    (void)sqlite3_finalize(statement); /* repeats the step's error */
    return is_ok;
}

bool dv_store_move_pending(struct dv_store *store, struct dv_err *err)
{
    struct dv_store_db *db = &store->db;

    if (store->pending.n == 0)
        return true;
    if (!dv_store_db_exec(db, make_table, err))
        return false;
    for (size_t i = 0; i < store->pending.n; i++) {
        const struct dv_store_pending *pending = &store->pending.v[i];
        const char *table = store->options.schema->tables[pending->table];

        if (!copy_row(db, pending, table, err) || !delete_row(db, pending, table, err))
            return dv_wrap(err, "set a row aside");
    }
    return true;
}

bool dv_store_db_salvage_asides(struct dv_store_db *from, struct dv_store_db *to,
                                struct dv_err *err)
{
    sqlite3_stmt *select = NULL;
    sqlite3_stmt *insert;
    bool is_ok = true;

    if (sqlite3_prepare_v2(from->sql, "SELECT at, space, k, v, why FROM _set_aside ORDER BY i", -1,
                           &select, NULL) != SQLITE_OK)
        return true; /* there is no such table, or it cannot be read */
    insert = dv_store_db_exec(to, make_table, err)
                 ? dv_store_db_prepare(to,
                                       "INSERT INTO _set_aside (at, space, k, v, why) "
                                       "VALUES (?1, ?2, ?3, ?4, ?5)",
                                       err)
                 : NULL;
    is_ok = insert != NULL;
    while (is_ok && sqlite3_step(select) == SQLITE_ROW) {
        for (int i = 0; i < 5 && is_ok; i++)
            is_ok = sqlite3_bind_value(insert, i + 1, sqlite3_column_value(select, i)) == SQLITE_OK;
        is_ok = is_ok ? dv_store_db_run(to, insert, err)
                      : dv_store_db_fail(to, err, "%s", sqlite3_sql(insert));
    }
    (void)sqlite3_finalize(insert); /* both calls repeat the error of the last step */
    (void)sqlite3_finalize(select);
    return is_ok;
}

/* ---- what there is ---- */

size_t dv_store_asides(const struct dv_store *store, const struct dv_store_aside **asides)
{
    *asides = store->asides.v;
    return store->asides.n;
}

size_t dv_store_n_asides(const struct dv_store *store)
{
    return store->n_asides;
}
