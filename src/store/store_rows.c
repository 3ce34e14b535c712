/* store_rows.c - writes and reads rows of a table. A change is one look-up by key and another by
 * row id, so its cost grows with the depth of two trees only. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "base/err.h"
#include "store/db.h"
#include "store/store.h"
#include "store/store_batch.h"

/* The parts of each statement before and after the name of the table. */
static const struct {
    const char *before;
    const char *after;
} texts[DV_STORE_N_VERBS] = {
    [DV_STORE_VERB_PUT] = {"INSERT INTO",
                           "(k, v) VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = excluded.v"},
    [DV_STORE_VERB_DELETE] = {"DELETE FROM",      "WHERE k = ?1"                                   },
    [DV_STORE_VERB_DELETE_RANGE] = {"DELETE FROM",      "WHERE k >= ?1 AND k < ?2"                       },
    [DV_STORE_VERB_SELECT_AFTER] = {"SELECT k, v FROM", "WHERE k > ?1 ORDER BY k"                        },
};

static sqlite3_stmt *statement_of(struct dv_store_db *db, uint32_t table, enum dv_store_verb verb,
                                  struct dv_err *err)
{
    sqlite3_stmt **statement;
    char text[256];

    assert(table < db->schema->n_tables);
    statement = &db->verbs[table][verb];
    if (!*statement) {
        int n = snprintf(text, sizeof(text), "%s \"%s\" %s", texts[verb].before,
                         db->schema->tables[table], texts[verb].after);

        assert(n > 0 && (size_t)n < sizeof(text)); /* names have a limit (schema.c) */
        *statement = dv_store_db_prepare(db, text, err);
    }
    return *statement;
}

/* Binds the bytes without a copy: they must live until the statement is reset. */
static bool bind(struct dv_store_db *db, sqlite3_stmt *statement, int place, dv_str bytes,
                 struct dv_err *err)
{
    if (sqlite3_bind_blob64(statement, place, bytes.n ? bytes.p : "", bytes.n, SQLITE_STATIC) !=
        SQLITE_OK)
        return dv_store_db_fail(db, err, "%s", sqlite3_sql(statement));
    return true;
}

/* An end of a range of keys; it may be one byte longer than a key. */
struct bound {
    char bytes[DV_STORE_KEY_BYTES_MAX + 1];
    size_t n;
};

/* Sets the bound to the first key after all that begin with `prefix`. */
static void set_end(struct bound *bound, dv_str prefix)
{
    assert(prefix.n <= DV_STORE_KEY_BYTES_MAX);
    while (prefix.n > 0 && (unsigned char)prefix.p[prefix.n - 1] == 0xff)
        prefix.n--;
    if (prefix.n == 0) { /* no key is longer, and none has larger bytes */
        memset(bound->bytes, 0xff, sizeof(bound->bytes));
        bound->n = sizeof(bound->bytes);
        return;
    }
    memcpy(bound->bytes, prefix.p, prefix.n);
    bound->bytes[prefix.n - 1] = (char)((unsigned char)prefix.p[prefix.n - 1] + 1);
    bound->n = prefix.n;
}

static dv_str bytes_of(const struct bound *bound)
{
    return (dv_str){bound->bytes, bound->n};
}

static bool delete_prefix(struct dv_store_db *db, uint32_t table, dv_str prefix, struct dv_err *err)
{
    sqlite3_stmt *statement = statement_of(db, table, DV_STORE_VERB_DELETE_RANGE, err);
    struct bound end;

    set_end(&end, prefix);
    return statement && bind(db, statement, 1, prefix, err) &&
           bind(db, statement, 2, bytes_of(&end), err) && dv_store_db_run(db, statement, err);
}

static bool apply(struct dv_store_db *db, struct dv_store_batch *batch,
                  const struct dv_store_record *record, struct dv_err *err)
{
    dv_str key = dv_store_batch_key(batch, record);
    sqlite3_stmt *statement;

    switch (record->kind) {
    case DV_STORE_PUT:
        statement = statement_of(db, record->table, DV_STORE_VERB_PUT, err);
        return statement && bind(db, statement, 1, key, err) &&
               bind(db, statement, 2, dv_store_batch_seal(batch, record), err) &&
               dv_store_db_run(db, statement, err);
    case DV_STORE_DELETE:
        statement = statement_of(db, record->table, DV_STORE_VERB_DELETE, err);
        return statement && bind(db, statement, 1, key, err) && dv_store_db_run(db, statement, err);
    case DV_STORE_DELETE_PREFIX:
        return delete_prefix(db, record->table, key, err);
    case DV_STORE_REBUILT:
        break;
    }
    return dv_store_db_drop_note(db, err);
}

bool dv_store_db_apply(struct dv_store_db *db, struct dv_store_batch *batch, struct dv_err *err)
{
    for (size_t i = 0; i < batch->records.n; i++)
        if (!apply(db, batch, &batch->records.v[i], err))
            return false;
    return true;
}

bool dv_store_cursor_init(struct dv_store_cursor *cursor, struct dv_store_db *db, uint32_t table,
                          dv_str after, struct dv_err *err)
{
    sqlite3_stmt *select = statement_of(db, table, DV_STORE_VERB_SELECT_AFTER, err);

    if (!select)
        return false;
    assert(!sqlite3_stmt_busy(select)); /* fails when the table has a second cursor */
    *cursor = (struct dv_store_cursor){select, table};
    /* No key is empty, so all come after "". The cursor outlives the call: SQLite copies. */
    if (sqlite3_bind_blob64(select, 1, after.n ? after.p : "", after.n, SQLITE_TRANSIENT) !=
        SQLITE_OK)
        return dv_store_db_fail(db, err, "%s", sqlite3_sql(select));
    return true;
}

bool dv_store_cursor_next(struct dv_store_cursor *cursor, struct dv_store_db *db,
                          struct dv_store_row *row, bool *is_end, struct dv_err *err)
{
    const char *table = db->schema->tables[cursor->table];
    dv_str key;
    int status;

    errno = 0; /* for dv_store_db_fail */
    status = sqlite3_step(cursor->select);
    *is_end = status == SQLITE_DONE;
    if (*is_end)
        return true;
    if (status != SQLITE_ROW)
        return dv_store_db_fail(db, err, "table %s", table);
    key = dv_store_db_column(cursor->select, 0);
    if (!dv_store_unseal(key, dv_store_db_column(cursor->select, 1), &row->value)) {
        db->is_damaged = true;
        return dv_fail(err, DV_DATA_LOSS, "table %s: key \"%.*s\": wrong checksum", table,
                       DV_FMT(key));
    }
    row->key = key;
    return true;
}

void dv_store_cursor_fini(struct dv_store_cursor *cursor)
{
    if (cursor->select)
        (void)sqlite3_reset(cursor->select); /* repeats the last step's error */
    cursor->select = NULL;
}
