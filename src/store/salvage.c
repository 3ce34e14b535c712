/* salvage.c - reads what can still be read of a damaged database. */
#include <errno.h>
#include <stdio.h>

#include <sqlite3.h>

#include "base/err.h"
#include "store/db.h"
#include "store/store.h"
#include "store/store_batch.h"

#define STATEMENT_BYTES 256u

/* Rows are read in the order of the file and from both ends: damage in the middle hides what comes
 * after it, and the tree of keys may be damaged where the tree of rows is not. */
static const char *const orders[] = {"ASC", "DESC"};

/* Adds a row, and leaves it out when its checksum shows that it is not what was written. */
static bool add_row(struct dv_store_db *to, sqlite3_stmt *insert, dv_str key, dv_str sealed,
                    struct dv_err *err)
{
    dv_str value;

    if (key.n == 0 || key.n > DV_STORE_KEY_BYTES_MAX || !dv_store_unseal(key, sealed, &value))
        return true;
    if (!dv_store_db_bind(insert, 1, key) || !dv_store_db_bind(insert, 2, sealed))
        return dv_store_db_fail(to, err, "%s", sqlite3_sql(insert));
    return dv_store_db_run(to, insert, err);
}

/* Adds rows until the end or until damage; sets *is_whole when it reached the end. */
static bool add_rows(struct dv_store_db *from, sqlite3_stmt *select, struct dv_store_db *to,
                     sqlite3_stmt *insert, bool *is_whole, struct dv_err *err)
{
    for (;;) {
        int status;

        errno = 0; /* for dv_store_db_fail */
        status = sqlite3_step(select);
        *is_whole = status == SQLITE_DONE;
        if (*is_whole)
            return true;
        if ((status & 0xff) == SQLITE_IOERR)
            return dv_store_db_fail(from, err, "read the damaged file");
        if (status != SQLITE_ROW)
            return true;
        if (!add_row(to, insert, dv_store_db_column(select, 0), dv_store_db_column(select, 1), err))
            return false;
    }
}

/* Adds the rows of one table, read in one of the two orders. */
static bool salvage_way(struct dv_store_db *from, struct dv_store_db *to, const char *table,
                        const char *order, bool *is_whole, struct dv_err *err)
{
    char text[STATEMENT_BYTES];
    sqlite3_stmt *select;
    sqlite3_stmt *insert;
    struct dv_err unreadable;
    bool is_ok;

    /* The text fits, because names of tables have a limit (schema.c). */
    (void)snprintf(text, sizeof(text), "SELECT k, v FROM \"%s\" NOT INDEXED ORDER BY i %s", table,
                   order);
    select = dv_store_db_prepare(from, text, &unreadable);
    if (!select)
        return true; /* The table was not there, or its description is lost. */
    (void)snprintf(text, sizeof(text), "INSERT OR IGNORE INTO \"%s\" (k, v) VALUES (?1, ?2)",
                   table);
    insert = dv_store_db_prepare(to, text, err);
    is_ok = insert && add_rows(from, select, to, insert, is_whole, err);
    (void)sqlite3_finalize(insert); /* both calls repeat the error of the last step */
    (void)sqlite3_finalize(select);
    return is_ok;
}

static bool salvage_all(struct dv_store_db *from, struct dv_store_db *to, struct dv_err *err)
{
    for (size_t i = 0; i < to->schema->n_tables; i++) {
        bool is_whole = false;

        for (size_t way = 0; way < DV_COUNT(orders) && !is_whole; way++)
            if (!salvage_way(from, to, to->schema->tables[i], orders[way], &is_whole, err))
                return false;
    }
    return dv_store_db_salvage_asides(from, to, err);
}

bool dv_store_db_salvage(struct dv_store_db *db, const char *path, struct dv_err *err)
{
    struct dv_store_db from;
    bool is_ok = true;

    if (!dv_store_db_open(&from, path, db->schema, err))
        /* A file of which nothing can be read is no reason to fail. */
        return from.is_damaged;
    if (dv_store_db_is_todays(&from)) { /* rows of other versions would be misunderstood */
        is_ok = dv_store_db_begin(db, err);
        if (is_ok && !salvage_all(&from, db, err)) {
            dv_store_db_rollback(db);
            is_ok = false;
        }
        is_ok = is_ok && dv_store_db_commit(db, err);
    }
    from.is_damaged = true; /* so that closing does not change the file */
    dv_store_db_close(&from);
    return is_ok;
}
