/* attach.c - opens the store's database from whatever state its files are in: it looks at the log
 * first, and sets damaged files aside. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "store/db.h"
#include "store/store.h"
#include "store/store_files.h"
#include "store/store_state.h"
#include "store/store_watch.h"
#include "store/wal.h"

enum dv_store_rest dv_store_rest_at_start(const struct dv_store *store)
{
    return store->options.keeps_readable ? DV_STORE_KEEP_ROWS : DV_STORE_DROP_ROWS;
}

static bool attach_file(struct dv_store *store, char **set_aside, struct dv_err *err)
{
    struct dv_store_db *db = &store->db;

    if (!dv_store_db_open(db, store->files.path, store->options.schema, err))
        return false;
    if (dv_store_db_check(db, err) && dv_store_db_add_spaces(db, err) &&
        dv_store_db_load_note(db, set_aside, err)) {
        if (!store->wake) /* a store that is recovered later has its wake-up already */
            dv_store_load_asides(store);
        return true;
    }
    dv_store_db_close(db);
    return false;
}

/* ---- the log ---- */

DV_PRINTF(3, 4)
static void note(struct dv_store *store, bool is_loss, const char *fmt, ...)
{
    char text[DV_ERR_MSG_BYTES * 4];
    va_list args;

    va_start(args, fmt);
    /* A text that is too long loses the end of a path. */
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    *dv_vec_add_in(&store->notes, store->arena) = (struct dv_store_note){
        .is_loss = is_loss, .text = dv_str_copy(dv_str_from_c(text), store->arena)};
}

size_t dv_store_notes(const struct dv_store *store, const struct dv_store_note **notes)
{
    *notes = store->notes.v;
    return store->notes.n;
}

/* Sets the log aside and goes on with the database alone. That is whole, as it was when the log was
 * last copied into it (a checkpoint). */
static void drop_wal(struct dv_store *store, bool is_loss)
{
    char name[PATH_MAX];
    struct dv_err err;

    if (!dv_store_files_drop_wal(&store->files, name, &err))
        note(store, is_loss, "%s is damaged and cannot be set aside: %s", store->files.wal,
             err.msg);
    else if (is_loss)
        note(store, true,
             "%s is damaged: writes that had been acknowledged are lost, all since it was last "
             "brought into the database; it is set aside as %s",
             store->files.wal, name);
    else
        note(store, false,
             "%s is damaged, but all of it is in the database: nothing is lost; it is set aside as "
             "%s",
             store->files.wal, name);
}

/* Sets the database and its log aside as they are, and lets a new database take the rows that can
 * still be read of them. */
static void replace_lost(struct dv_store *store, const struct dv_wal_report *report,
                         const struct dv_wal_mark *mark)
{
    uint64_t n_marked = mark ? mark->n_frames : 0;
    uint64_t n_missing = n_marked > report->n_frames ? n_marked - report->n_frames : 0;
    struct dv_err err;

    note(
        store, true,
        "%s is damaged: writes that had been acknowledged are lost (%llu pages of them are missing "
        "by the mark, and %llu whole commits are behind the damage)",
        store->files.wal, (unsigned long long)n_missing, (unsigned long long)report->n_behind);
    if (!dv_store_files_replace(&store->files, store->options.schema, DV_STORE_KEEP_ROWS, &err))
        note(store, true, "%s and its log cannot be set aside, and are used as they are: %s",
             store->files.path, err.msg);
}

/* Looks at the log before SQLite opens it, because SQLite leaves out damaged commits without a
 * word. Sets `found` to what the log has when it can be used as it is. */
static bool look_at_wal(struct dv_store *store, struct dv_wal_mark *found, struct dv_err *err)
{
    struct dv_wal_report report;
    struct dv_wal_mark mark;
    bool is_marked = dv_wal_mark_read(store->files.mark, &mark);
    struct dv_wal_base base = dv_wal_base_of(store->files.path);

    if (!dv_wal_inspect(store->files.wal, &report, err))
        return false;
    switch (dv_wal_judge(&report, is_marked ? &mark : NULL, &base)) {
    case DV_WAL_CUT:
        note(store, true,
             "%s: its last write is cut off. If the machine stopped in the middle of it nobody was "
             "told that it succeeded; else it is lost",
             store->files.wal);
        break;
    case DV_WAL_LOST:
        replace_lost(store, &report, is_marked ? &mark : NULL);
        return true;
    case DV_WAL_WRONG:
        drop_wal(store, !mark.is_home);
        return true;
    case DV_WAL_GOOD:
        break;
    }
    if (report.has_header)
        *found = (struct dv_wal_mark){.salts = report.salts, .n_frames = report.n_frames};
    return true;
}

/* ---- all of it ---- */

/* Notes that the database is missing although it was there when the mark was written. */
static void note_absent(struct dv_store *store)
{
    struct dv_wal_mark mark;

    if (access(store->files.path, F_OK) == 0 || errno != ENOENT ||
        access(store->files.next, F_OK) == 0 || !dv_wal_mark_read(store->files.mark, &mark))
        return;
    note(store, true, "%s is gone, which was there before: all that it held is lost",
         store->files.path);
}

static bool attach_first(struct dv_store *store, enum dv_store_rest rest, char **set_aside,
                         struct dv_err *err)
{
    struct dv_wal_mark found = {0};

    if (store->files.old_mode != 0) {
        note(store, false, "%s had mode %04o: others could use it; now only its owner can",
             store->files.fixed, store->files.old_mode);
        store->notes.v[store->notes.n - 1].is_mode = true;
        store->files.old_mode = 0; /* the note about the mode is made once */
    }
    note_absent(store);
    if (!dv_store_files_prepare(&store->files, store->options.schema, rest, err) ||
        !look_at_wal(store, &found, err) || !attach_file(store, set_aside, err))
        return false;
    dv_store_watch_start(&store->watch, &store->files, &found);
    return true;
}

static bool attach_or_replace(struct dv_store *store, enum dv_store_rest rest, char **set_aside,
                              struct dv_err *err)
{
    const struct dv_wal_mark nothing = {0};

    dv_store_watch_stop(&store->watch);
    if (!store->db.is_damaged) { /* damage that was known before was noted then */
        if (attach_first(store, rest, set_aside, err))
            return true;
        if (!store->db.is_damaged)
            return false;
    }
    if (!dv_store_files_replace(&store->files, store->options.schema, rest, err) ||
        !attach_file(store, set_aside, err))
        return false;
    dv_store_watch_start(&store->watch, &store->files, &nothing);
    return true;
}

bool dv_store_attach(struct dv_store *store, enum dv_store_rest rest, char **set_aside,
                     struct dv_err *err)
{
    store->checkpoint_at = DV_STORE_CHECKPOINT_PAGES;
    *set_aside = NULL;
    return attach_or_replace(store, rest, set_aside, err) || dv_wrap(err, "store %s", store->name);
}

bool dv_store_recover(struct dv_store *store, enum dv_store_rest rest, char **set_aside,
                      struct dv_err *err)
{
    struct dv_err why;

    /* The mark speaks of the log that is set aside now, so it must not be used for the new one. */
    dv_store_watch_stop(&store->watch);
    dv_store_db_close(&store->db);
    if (!dv_store_attach(store, rest, set_aside, &why)) {
        *err = why;
        return false;
    }
    if (!*set_aside) { /* A note that was lost as well does not change that writes were lost. */
        *set_aside = strdup("(unknown)");
        if (!*set_aside)
            abort();
    }
    store->thread_epoch++;
    (void)dv_fail(err, DV_DATA_LOSS, "%s; set aside as %s", err->msg, *set_aside);
    return true;
}
