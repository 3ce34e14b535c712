#include "store/db.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "base/arena.h"
#include "base/err.h"
#include "store/store.h"

#define FRAME_HEADER_BYTES 24u

static const char *const set_up[] = {
    /* This comes before anything is read: SQLite then keeps the log's index in our memory, not in a
     * shared file. */
    "PRAGMA locking_mode=EXCLUSIVE",
    "PRAGMA synchronous=FULL",
    /* After a burst the log shrinks to 16 MiB. Until then it keeps its size: writing over old
     * blocks costs a sync much less than growing the file does. */
    "PRAGMA journal_size_limit=16777216",
    /* KiB; four times as much saves a tenth of the time, and costs resident memory. */
    "PRAGMA cache_size=-2000",
    "PRAGMA secure_delete=FAST", /* erases deleted rows where that needs no further write */
    "PRAGMA cell_size_check=ON",
    "PRAGMA trusted_schema=OFF",
};

static const struct {
    int status; /* SQLite's primary result code */
    enum dv_code code;
} codes[] = {
    {SQLITE_FULL,     DV_RESOURCE_EXHAUSTED },
    {SQLITE_IOERR,    DV_DATA_LOSS          },
    {SQLITE_CORRUPT,  DV_DATA_LOSS          },
    {SQLITE_NOTADB,   DV_DATA_LOSS          },
    {SQLITE_BUSY,     DV_ALREADY_EXISTS     },
    {SQLITE_PERM,     DV_PERMISSION_DENIED  },
    {SQLITE_READONLY, DV_PERMISSION_DENIED  },
    {SQLITE_CANTOPEN, DV_FAILED_PRECONDITION},
    {SQLITE_TOOBIG,   DV_INVALID_ARGUMENT   },
};

static enum dv_code code_of(int status, int errnum)
{
    bool is_io = (status & 0xff) == SQLITE_IOERR || (status & 0xff) == SQLITE_CANTOPEN;

    /* SQLite knows ENOSPC only; a quota and a limit on the file's size are full disks too. */
    if (is_io && (errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG))
        return DV_RESOURCE_EXHAUSTED;
    if ((status & 0xff) == SQLITE_CANTOPEN && errnum != 0)
        return dv_code_from_errno(errnum);
    for (size_t i = 0; i < DV_COUNT(codes); i++)
        if (codes[i].status == (status & 0xff))
            return codes[i].code;
    return DV_INTERNAL;
}

bool dv_store_db_fail(struct dv_store_db *db, struct dv_err *err, const char *fmt, ...)
{
    int errnum = errno; /* SQLite keeps errno for some calls only, and COMMIT is none of them */
    int status = sqlite3_extended_errcode(db->sql);
    char what[DV_ERR_MSG_BYTES];
    char reason[64];
    va_list args;

    if ((status & 0xff) == SQLITE_NOMEM)
        abort();
    if ((status & 0xff) == SQLITE_CORRUPT || (status & 0xff) == SQLITE_NOTADB)
        db->is_damaged = true;
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, args); /* dv_fail marks a text that was cut */
    va_end(args);
    if (((status & 0xff) != SQLITE_IOERR && (status & 0xff) != SQLITE_CANTOPEN) || errnum == 0)
        return dv_fail(err, code_of(status, errnum), "%s: %s", what, sqlite3_errmsg(db->sql));
    return dv_fail(err, code_of(status, errnum), "%s: %s (SQLite %d: %s)", what,
                   sqlite3_errmsg(db->sql), status, strerror_r(errnum, reason, sizeof(reason)));
}

dv_str dv_store_db_column(struct sqlite3_stmt *select, int place)
{
    /* Comes before the length, which this call may change. */
    const char *p = sqlite3_column_blob(select, place);

    return (dv_str){p ? p : "", (size_t)sqlite3_column_bytes(select, place)};
}

bool dv_store_db_bind(struct sqlite3_stmt *statement, int place, dv_str bytes)
{
    return sqlite3_bind_blob64(statement, place, bytes.n ? bytes.p : "", bytes.n, SQLITE_STATIC) ==
           SQLITE_OK;
}

struct sqlite3_stmt *dv_store_db_prepare(struct dv_store_db *db, const char *text,
                                         struct dv_err *err)
{
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v3(db->sql, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) !=
        SQLITE_OK)
        (void)dv_store_db_fail(db, err, "%s", text);
    return statement;
}

bool dv_store_db_exec(struct dv_store_db *db, const char *text, struct dv_err *err)
{
    errno = 0; /* so that dv_store_db_fail, here and below, sees only the errno of this call */
    if (sqlite3_exec(db->sql, text, NULL, NULL, NULL) != SQLITE_OK)
        return dv_store_db_fail(db, err, "%s", text);
    return true;
}

static int on_wal(void *ctx, sqlite3 *sql, const char *name, int n_pages)
{
    struct dv_store_db *db = ctx;

    (void)sql;
    (void)name;
    db->n_wal_pages = (uint64_t)n_pages;
    db->n_frames = (uint64_t)n_pages;
    db->has_logged = true;
    return SQLITE_OK;
}

static bool connect(struct dv_store_db *db, const char *path, struct dv_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int status = sqlite3_open_v2(path, &db->sql, flags, NULL);

    if (!db->sql)
        abort(); /* out of memory */
    if (status != SQLITE_OK)
        return dv_store_db_fail(db, err, "open");
    for (size_t i = 0; i < DV_COUNT(set_up); i++)
        if (!dv_store_db_exec(db, set_up[i], err))
            return false;
    return true;
}

bool dv_store_db_open(struct dv_store_db *db, const char *path,
                      const struct dv_store_schema *schema, struct dv_err *err)
{
    *db = (struct dv_store_db){.schema = schema};
    db->verbs = dv_alloc(sizeof(*db->verbs) * schema->n_tables);
    if (!connect(db, path, err))
        goto failed;
    db->begin = dv_store_db_prepare(db, "BEGIN IMMEDIATE", err);
    db->commit = db->begin ? dv_store_db_prepare(db, "COMMIT", err) : NULL;
    db->rollback = db->commit ? dv_store_db_prepare(db, "ROLLBACK", err) : NULL;
    if (!db->rollback)
        goto failed;
    /* Returns the hook that was set before, which is SQLite's own. */
    (void)sqlite3_wal_hook(db->sql, on_wal, db);
    return true;
failed:
    dv_store_db_close(db);
    return false;
}

void dv_store_db_close(struct dv_store_db *db)
{
    int status;

    if (!db->sql)
        return;
    for (size_t i = 0; i < db->schema->n_tables; i++)
        for (size_t verb = 0; verb < DV_STORE_N_VERBS; verb++)
            (void)sqlite3_finalize(db->verbs[i][verb]); /* repeats the last step's error */
    (void)sqlite3_finalize(db->begin);
    (void)sqlite3_finalize(db->commit);
    (void)sqlite3_finalize(db->rollback);
    /* A damaged file and its log stay as they are, so that somebody can look at them. */
    if (db->is_damaged)
        (void)sqlite3_db_config(db->sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    status = sqlite3_close(db->sql);
    assert(status == SQLITE_OK); /* fails only when a statement was not finalized */
    free(db->verbs);
    db->sql = NULL;
    db->verbs = NULL;
}

bool dv_store_db_run(struct dv_store_db *db, struct sqlite3_stmt *statement, struct dv_err *err)
{
    bool is_done;

    errno = 0;
    is_done = sqlite3_step(statement) == SQLITE_DONE ||
              dv_store_db_fail(db, err, "%s", sqlite3_sql(statement));
    (void)sqlite3_reset(statement); /* repeats the step's error */
    return is_done;
}

bool dv_store_db_begin(struct dv_store_db *db, struct dv_err *err)
{
    return dv_store_db_run(db, db->begin, err);
}

bool dv_store_db_commit(struct dv_store_db *db, struct dv_err *err)
{
    db->has_logged = false;
    if (dv_store_db_run(db, db->commit, err))
        return true;
    dv_store_db_rollback(db);
    return false;
}

void dv_store_db_rollback(struct dv_store_db *db)
{
    if (sqlite3_get_autocommit(db->sql))
        return;                       /* SQLite has rolled back by itself after some errors */
    (void)sqlite3_step(db->rollback); /* a rollback drops pages in memory, which cannot fail */
    (void)sqlite3_reset(db->rollback);
}

void dv_store_db_rest(struct dv_store_db *db)
{
    (void)sqlite3_db_release_memory(db->sql); /* SQLITE_OK always */
}

bool dv_store_db_checkpoint(struct dv_store_db *db, struct dv_err *err)
{
    int n_logged = 0;
    int n_done = 0;

    errno = 0;
    /* A passive checkpoint copies everything here, because this process is the only reader. */
    if (sqlite3_wal_checkpoint_v2(db->sql, NULL, SQLITE_CHECKPOINT_PASSIVE, &n_logged, &n_done) !=
        SQLITE_OK)
        return dv_store_db_fail(db, err, "checkpoint");
    db->n_wal_pages = n_logged > n_done ? (uint64_t)(n_logged - n_done) : 0;
    return true;
}

uint64_t dv_store_db_wal_bytes(const struct dv_store_db *db)
{
    return db->n_wal_pages * (DV_STORE_PAGE_BYTES + FRAME_HEADER_BYTES);
}
