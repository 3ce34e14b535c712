/* schema.c - the tables of a store's database: made in a new file, checked in one that is opened,
 * and brought to today's form in one that an older version has written. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "base/err.h"
#include "store/db.h"
#include "store/store.h"

/* "davi" at byte 68 of the file, by which file(1) and davit know it. */
#define APPLICATION_ID 0x64617669
/* With a name of this length every statement that contains it fits its buffer. */
#define SPACE_NAME_BYTES_MAX 60u
#define STATEMENT_BYTES 256u

static const char make_notes[] =
    "CREATE TABLE IF NOT EXISTS _davit (k TEXT PRIMARY KEY, v TEXT NOT NULL) WITHOUT ROWID";

/* The version of the layout that is written. A change of the layout raises it, and has to say here
 * how older ones are read:
 * 1  objects of the API were JSON; dv_decode_row still reads that
 * 2  they have the form of resource/codec/object_row.c */
#define VERSION 2u

static void check_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

    assert(name[0] >= 'a' && name[0] <= 'z' && name[n] == '\0' && n <= SPACE_NAME_BYTES_MAX);
}

static bool exec_with_number(struct dv_store_db *db, const char *pragma, uint32_t value,
                             struct dv_err *err)
{
    char text[STATEMENT_BYTES];

    /* Fits: the text is short and constant. */
    (void)snprintf(text, sizeof(text), "PRAGMA %s=%u", pragma, value);
    return dv_store_db_exec(db, text, err);
}

/* A row has an id, and rows lie in the order in which they came; a second tree finds them by key. A
 * table without row ids has one tree only, and loses (bench_store): there a row of more than a
 * quarter page spills into pages of its own, and rows that are new together are not written
 * together. With rows of 2,000 bytes it writes 2 to 3 times as much; with 300 bytes twice as much
 * for new rows, and the same for others. */
static bool make_spaces(struct dv_store_db *db, struct dv_err *err)
{
    char text[STATEMENT_BYTES];

    if (!dv_store_db_exec(db, make_notes, err))
        return false;
    for (size_t i = 0; i < db->schema->n_tables; i++) {
        check_name(db->schema->tables[i]);
        (void)snprintf(text, sizeof(text), /* fits: names have a limit */
                       "CREATE TABLE IF NOT EXISTS \"%s\" (i INTEGER PRIMARY KEY, "
                       "k BLOB NOT NULL UNIQUE, v BLOB NOT NULL)",
                       db->schema->tables[i]);
        if (!dv_store_db_exec(db, text, err))
            return false;
    }
    return exec_with_number(db, "user_version", VERSION, err);
}

static bool first_row(struct dv_store_db *db, const char *text, sqlite3_stmt **statement,
                      bool *has_row, struct dv_err *err)
{
    int status;

    *statement = dv_store_db_prepare(db, text, err);
    if (!*statement)
        return false;
    errno = 0; /* for dv_store_db_fail */
    status = sqlite3_step(*statement);
    *has_row = status == SQLITE_ROW;
    return *has_row || status == SQLITE_DONE || dv_store_db_fail(db, err, "%s", text);
}

/* Sets *answer to the text that a statement gives, on the heap, or to NULL when it gives no row. */
static bool ask_text(struct dv_store_db *db, const char *text, char **answer, struct dv_err *err)
{
    sqlite3_stmt *statement;
    bool has_row;
    bool is_ok = first_row(db, text, &statement, &has_row, err);

    if (is_ok) {
        const char *found = has_row ? (const char *)sqlite3_column_text(statement, 0) : NULL;

        *answer = found ? strdup(found) : NULL;
        if (found && !*answer)
            abort();
    }
    (void)sqlite3_finalize(statement); /* repeats the step's error */
    return is_ok;
}

static bool ask_number(struct dv_store_db *db, const char *text, int64_t *answer,
                       struct dv_err *err)
{
    sqlite3_stmt *statement;
    bool has_row;
    bool is_ok = first_row(db, text, &statement, &has_row, err);

    if (is_ok)
        *answer = has_row ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_finalize(statement); /* repeats the step's error */
    return is_ok;
}

static void free_text(char **text)
{
    free(*text);
}

/* Reads all of one of SQLite's open files. It uses SQLite's own descriptor: POSIX gives up the
 * locks of a file when any descriptor of it is closed. */
static bool read_through(struct dv_store_db *db, int which, struct dv_err *err)
{
    sqlite3_file *file = NULL;
    sqlite3_int64 n_bytes = 0;
    char bytes[DV_STORE_PAGE_BYTES];

    if (sqlite3_file_control(db->sql, "main", which, &file) != SQLITE_OK || !file ||
        !file->pMethods || file->pMethods->xFileSize(file, &n_bytes) != SQLITE_OK)
        return true; /* SQLite has no such file open */
    for (sqlite3_int64 at = 0; at < n_bytes; at += (sqlite3_int64)sizeof(bytes)) {
        int status;

        errno = 0;
        status = file->pMethods->xRead(file, bytes, (int)sizeof(bytes), at);
        if (status != SQLITE_OK && status != SQLITE_IOERR_SHORT_READ)
            return dv_fail_errno(err, errno ? errno : EIO, "read");
    }
    return true;
}

/* Checks that the database is whole. quick_check takes a page that the disk cannot read for a
 * damaged one, so all pages are read first: only what is wrong after that is damage. */
static bool check_whole(struct dv_store_db *db, struct dv_err *err)
{
    for (int n_left = 2;; n_left--) {
        DV_CLEANUP(free_text) char *answer = NULL;

        if (!ask_text(db, "PRAGMA quick_check(1)", &answer, err))
            return false;
        if (answer && strcmp(answer, "ok") == 0)
            return true;
        if (n_left == 1) {
            db->is_damaged = true;
            return dv_fail(err, DV_DATA_LOSS, "damaged: %s",
                           answer ? answer : "quick_check is silent");
        }
        if (!read_through(db, SQLITE_FCNTL_FILE_POINTER, err) ||
            !read_through(db, SQLITE_FCNTL_JOURNAL_POINTER, err))
            return false;
    }
}

static bool use_wal(struct dv_store_db *db, struct dv_err *err)
{
    DV_CLEANUP(free_text) char *answer = NULL;

    if (!ask_text(db, "PRAGMA journal_mode=WAL", &answer, err))
        return false;
    if (answer && strcmp(answer, "wal") == 0)
        return true;
    return dv_fail(err, DV_FAILED_PRECONDITION, "no write-ahead log: journal mode stays %s",
                   answer ? answer : "unknown");
}

bool dv_store_db_add_note(struct dv_store_db *db, const char *set_aside, struct dv_err *err)
{
    static const char text[] = "REPLACE INTO _davit (k, v) VALUES ('set_aside', ?1)";
    sqlite3_stmt *statement = dv_store_db_prepare(db, text, err);
    bool is_ok;

    if (!statement)
        return false;
    is_ok = sqlite3_bind_text(statement, 1, set_aside, -1, SQLITE_STATIC) == SQLITE_OK &&
            sqlite3_step(statement) == SQLITE_DONE;
    if (!is_ok)
        (void)dv_store_db_fail(db, err, "%s", text);
    (void)sqlite3_finalize(statement); /* repeats the step's error */
    return is_ok;
}

bool dv_store_db_drop_note(struct dv_store_db *db, struct dv_err *err)
{
    return dv_store_db_exec(db, "DELETE FROM _davit WHERE k = 'set_aside'", err);
}

bool dv_store_db_load_note(struct dv_store_db *db, char **set_aside, struct dv_err *err)
{
    return ask_text(db, "SELECT v FROM _davit WHERE k = 'set_aside'", set_aside, err);
}

/* Makes all tables, and notes where the damaged file is unless `set_aside` is NULL. */
static bool fill(struct dv_store_db *db, const char *set_aside, struct dv_err *err)
{
    if (!exec_with_number(db, "page_size", DV_STORE_PAGE_BYTES, err) ||
        !exec_with_number(db, "application_id", APPLICATION_ID, err) || !dv_store_db_begin(db, err))
        return false;
    if (!make_spaces(db, err) || (set_aside && !dv_store_db_add_note(db, set_aside, err))) {
        dv_store_db_rollback(db);
        return false;
    }
    return dv_store_db_commit(db, err);
}

bool dv_store_db_create(const char *path, const struct dv_store_content *content,
                        struct dv_err *err)
{
    struct dv_store_db db;
    bool is_ok;

    if (!dv_store_db_open(&db, path, content->schema, err))
        return false;
    /* No journal on the disk is needed: nobody sees the file before it is complete, and its maker
     * syncs it once, as a whole. */
    is_ok = dv_store_db_exec(&db, "PRAGMA journal_mode=MEMORY", err) &&
            dv_store_db_exec(&db, "PRAGMA synchronous=OFF", err) &&
            fill(&db, content->set_aside, err) &&
            (!content->rows_from || dv_store_db_salvage(&db, content->rows_from, err)) &&
            use_wal(&db, err);
    dv_store_db_close(&db);
    return is_ok;
}

bool dv_store_db_check(struct dv_store_db *db, struct dv_err *err)
{
    int64_t id;
    int64_t version;

    if (!ask_number(db, "PRAGMA application_id", &id, err) ||
        !ask_number(db, "PRAGMA user_version", &version, err))
        return false;
    if (id != APPLICATION_ID)
        return dv_fail(err, DV_FAILED_PRECONDITION, "a database, but not one of davit's");
    if (version > VERSION)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "made by a newer davit: it has version %lld, this one knows up to %u",
                       (long long)version, VERSION);
    return check_whole(db, err) && use_wal(db, err);
}

bool dv_store_db_is_todays(struct dv_store_db *db)
{
    int64_t id;
    int64_t version;
    struct dv_err err;

    return ask_number(db, "PRAGMA application_id", &id, &err) && id == APPLICATION_ID &&
           ask_number(db, "PRAGMA user_version", &version, &err) && version == VERSION;
}

static bool has_all_spaces(struct dv_store_db *db)
{
    for (size_t i = 0; i < db->schema->n_tables; i++)
        if (sqlite3_table_column_metadata(db->sql, NULL, db->schema->tables[i], NULL, NULL, NULL,
                                          NULL, NULL, NULL) != SQLITE_OK)
            return false;
    return true;
}

bool dv_store_db_add_spaces(struct dv_store_db *db, struct dv_err *err)
{
    int64_t version;

    if (!ask_number(db, "PRAGMA user_version", &version, err))
        return false;
    if (version == VERSION && has_all_spaces(db))
        return true;
    if (version < 1)
        return dv_fail(err, DV_FAILED_PRECONDITION, "version %lld never existed",
                       (long long)version);
    if (!dv_store_db_begin(db, err))
        return false;
    if (!make_spaces(db, err)) {
        dv_store_db_rollback(db);
        return false;
    }
    return dv_store_db_commit(db, err);
}
