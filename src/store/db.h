/* db.h - one SQLite file: rows in, rows out. Knows no threads and no loop.
 *
 * Errors are without the file's name; the caller wraps them. One that shows that the file is not
 * the database it should be sets `is_damaged`, so that others (a full disk) can be told apart. */
#ifndef DV_STORE_DB_H
#define DV_STORE_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "store/store.h"

struct dv_store_batch;
struct sqlite3;
struct sqlite3_stmt;

/* Every row that changes costs its page in the log, and later in the file: larger pages cost more,
 * and save only rows of several kilobytes from being split. */
#define DV_STORE_PAGE_BYTES 4096u

enum dv_store_verb {
    DV_STORE_VERB_PUT,
    DV_STORE_VERB_DELETE,
    DV_STORE_VERB_DELETE_RANGE,
    DV_STORE_VERB_SELECT_AFTER,
    DV_STORE_N_VERBS,
};

struct dv_store_db {
    struct sqlite3 *sql; /* NULL: not open */
    const struct dv_store_schema *schema;
    struct sqlite3_stmt *(*verbs)[DV_STORE_N_VERBS]; /* by table; each prepared when first needed */
    struct sqlite3_stmt *begin;
    struct sqlite3_stmt *commit;
    struct sqlite3_stmt *rollback;
    bool is_damaged;
    uint64_t n_wal_pages; /* pages of the log that no checkpoint has copied into the file yet */
    uint64_t n_frames;    /* frames in the log after the last commit that changed anything */
    bool has_logged;      /* whether the last commit wrote to the log */
};

/* db.c */

/* Opens the file. On failure `db->is_damaged` tells whether the file is damaged, and `db` is
 * closed. */
DV_CHECKED bool dv_store_db_open(struct dv_store_db *db, const char *path,
                                 const struct dv_store_schema *schema, struct dv_err *err);
/* Closes the database. A damaged file and its log are left as they are; any other is one file
 * without a log afterwards. A second call does nothing. */
void dv_store_db_close(struct dv_store_db *db);

DV_CHECKED bool dv_store_db_begin(struct dv_store_db *db, struct dv_err *err);
/* Commits the transaction: true when it is durable, false when it was rolled back. */
DV_CHECKED bool dv_store_db_commit(struct dv_store_db *db, struct dv_err *err);
void dv_store_db_rollback(struct dv_store_db *db);
/* Copies what the write-ahead log holds into the file, so that the log begins anew. */
DV_CHECKED bool dv_store_db_checkpoint(struct dv_store_db *db, struct dv_err *err);
/* Gives memory back that speeds up the next writes. */
void dv_store_db_rest(struct dv_store_db *db);
uint64_t dv_store_db_wal_bytes(const struct dv_store_db *db);

/* For this module's files: sets `err` from the last call on db->sql and from the errno of the
 * system call under it, so no other call may come between. Returns false. */
bool dv_store_db_fail(struct dv_store_db *db, struct dv_err *err, const char *fmt, ...)
    DV_PRINTF(3, 4);
/* Returns a column of the selected row; the bytes live until the next step. */
dv_str dv_store_db_column(struct sqlite3_stmt *select, int place);
/* Binds the bytes without a copy: they must live until the statement is reset. */
DV_CHECKED bool dv_store_db_bind(struct sqlite3_stmt *statement, int place, dv_str bytes);
struct sqlite3_stmt *dv_store_db_prepare(struct dv_store_db *db, const char *text,
                                         struct dv_err *err);
/* Runs a statement that gives no rows, and resets it. */
DV_CHECKED bool dv_store_db_run(struct dv_store_db *db, struct sqlite3_stmt *statement,
                                struct dv_err *err);
DV_CHECKED bool dv_store_db_exec(struct dv_store_db *db, const char *text, struct dv_err *err);

/* store_rows.c */

/* Applies the batch's changes; needs an open transaction. */
DV_CHECKED bool dv_store_db_apply(struct dv_store_db *db, struct dv_store_batch *batch,
                                  struct dv_err *err);

/* Walks over the rows whose key comes after `after`, in the order of keys. A table can have one
 * open cursor at a time, because its statement is shared. */
struct dv_store_cursor {
    struct sqlite3_stmt *select;
    uint32_t table;
};
DV_CHECKED bool dv_store_cursor_init(struct dv_store_cursor *cursor, struct dv_store_db *db,
                                     uint32_t table, dv_str after, struct dv_err *err);
/* Sets `row` to the next row, borrowed until the next call; sets *is_end when there is none. */
DV_CHECKED bool dv_store_cursor_next(struct dv_store_cursor *cursor, struct dv_store_db *db,
                                     struct dv_store_row *row, bool *is_end, struct dv_err *err);
void dv_store_cursor_fini(struct dv_store_cursor *cursor);

/* salvage.c */

/* Adds all rows that can still be read of the database at `path`, which is not changed. Fails when
 * they cannot be written, or when the disk cannot be read, which is no damage of the database. */
DV_CHECKED bool dv_store_db_salvage(struct dv_store_db *db, const char *path, struct dv_err *err);

/* store_aside.c: copies all rows that were set aside in the other database, as far as they can be
 * read. */
DV_CHECKED bool dv_store_db_salvage_asides(struct dv_store_db *from, struct dv_store_db *to,
                                           struct dv_err *err);

/* schema.c */

/* The first content of a new database. */
struct dv_store_content {
    const struct dv_store_schema *schema;
    const char *set_aside; /* where the damaged file is; NULL: there is none */
    const char *rows_from; /* a damaged database whose readable rows are copied; NULL: no rows */
};
/* Makes all tables in the empty file at `path`, with that content; the file is not synced. */
DV_CHECKED bool dv_store_db_create(const char *path, const struct dv_store_content *content,
                                   struct dv_err *err);
/* Checks that the database is ours, that its version is not newer than we know, and that it is
 * whole. An error of the disk while reading does not count as damage. */
DV_CHECKED bool dv_store_db_check(struct dv_store_db *db, struct dv_err *err);
/* Whether the database is ours and of today's version, as far as that much can be read. */
bool dv_store_db_is_todays(struct dv_store_db *db);
/* Makes the tables of the schema that are missing. */
DV_CHECKED bool dv_store_db_add_spaces(struct dv_store_db *db, struct dv_err *err);
/* Sets *set_aside to the path of the damaged file that the database notes, on the heap; NULL when
 * it notes none. */
DV_CHECKED bool dv_store_db_load_note(struct dv_store_db *db, char **set_aside, struct dv_err *err);
DV_CHECKED bool dv_store_db_add_note(struct dv_store_db *db, const char *set_aside,
                                     struct dv_err *err);
DV_CHECKED bool dv_store_db_drop_note(struct dv_store_db *db, struct dv_err *err);

#endif
