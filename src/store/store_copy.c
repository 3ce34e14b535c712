/* store_copy.c - copies of the whole database, made by the thread between commits: some pages, then
 * the writes that have come meanwhile, which SQLite applies to the copy too when the pages are in
 * it already. So a copy is what the database is at its end, and nobody waits long for it. */
#include <assert.h>
#include <pthread.h>

#include <sqlite3.h>

#include "base/err.h"
#include "base/list.h"
#include "store/db.h"
#include "store/store.h"
#include "store/store_state.h"

/* How many pages are copied before writes have their turn: half a MiB, about a millisecond. */
#define STEP_PAGES 128

/* ---- the thread's side ---- */

static void finish(struct dv_store *store, const struct dv_err *err)
{
    struct dv_store_copier *copier = &store->copier;
    struct dv_store_copy *copy = copier->copy;

    (void)sqlite3_backup_finish(copier->backup); /* repeats the error of the last step */
    dv_store_db_close(&copier->to);
    *copier = (struct dv_store_copier){0};
    copy->has_failed = err != NULL;
    if (err)
        copy->err = *err;
    (void)pthread_mutex_lock(&store->lock); /* a plain mutex cannot fail */
    dv_list_push(&store->copied, &copy->link);
    (void)pthread_mutex_unlock(&store->lock);
    dv_async_wake(store->wake);
}

static bool begin(struct dv_store *store, struct dv_err *err)
{
    struct dv_store_copier *copier = &store->copier;

    if (!store->db.sql || store->db.is_damaged)
        return dv_fail(err, DV_DATA_LOSS, "store %s: damaged", store->name);
    if (!dv_store_db_open(&copier->to, copier->copy->path, store->options.schema, err))
        return dv_wrap(err, "%s", copier->copy->path);
    /* Nobody uses the copy before it is complete, and who takes it syncs it. */
    if (!dv_store_db_exec(&copier->to, "PRAGMA journal_mode=OFF", err) ||
        !dv_store_db_exec(&copier->to, "PRAGMA synchronous=OFF", err))
        return dv_wrap(err, "%s", copier->copy->path);
    copier->backup = sqlite3_backup_init(copier->to.sql, "main", store->db.sql, "main");
    if (!copier->backup)
        return dv_store_db_fail(&copier->to, err, "%s", copier->copy->path);
    return true;
}

static struct dv_store_copy *next_copy(struct dv_store *store)
{
    struct dv_link *link;

    (void)pthread_mutex_lock(&store->lock);
    link = dv_list_shift(&store->copies);
    (void)pthread_mutex_unlock(&store->lock);
    return link ? DV_CONTAINER(link, struct dv_store_copy, link) : NULL;
}

void dv_store_copy_step(struct dv_store *store)
{
    struct dv_store_copier *copier = &store->copier;
    struct dv_err err;
    int status;

    if (!copier->copy) {
        copier->copy = next_copy(store);
        if (copier->copy && !begin(store, &err))
            finish(store, &err);
        return;
    }
    status = sqlite3_backup_step(copier->backup, STEP_PAGES);
    if (status == SQLITE_OK)
        return;
    if (status == SQLITE_DONE) {
        finish(store, NULL);
        return;
    }
    /* The error is the copy's: what happens to the database itself is found out by who uses it. */
    (void)sqlite3_backup_finish(copier->backup);
    copier->backup = NULL;
    (void)dv_store_db_fail(&copier->to, &err, "%s", copier->copy->path);
    finish(store, &err);
}

void dv_store_copy_abort(struct dv_store *store, const struct dv_err *err)
{
    if (!store->copier.copy)
        store->copier.copy = next_copy(store);
    while (store->copier.copy) {
        finish(store, err);
        store->copier.copy = next_copy(store);
    }
}

/* ---- the loop's side ---- */

void dv_store_copy(struct dv_store *store, struct dv_store_copy *copy)
{
    assert(!store->is_closing);
    *copy = (struct dv_store_copy){.done = copy->done, .path = copy->path};
    store->has_begun = true;
    store->n_copies++;
    (void)pthread_mutex_lock(&store->lock);
    dv_list_push(&store->copies, &copy->link);
    (void)pthread_cond_signal(&store->more);
    (void)pthread_mutex_unlock(&store->lock);
}

void dv_store_end_copies(struct dv_store *store)
{
    struct dv_list copied;
    struct dv_link *link;

    dv_list_init(&copied);
    (void)pthread_mutex_lock(&store->lock);
    dv_list_move_all(&copied, &store->copied);
    (void)pthread_mutex_unlock(&store->lock);
    while ((link = dv_list_shift(&copied)) != NULL) {
        struct dv_store_copy *copy = DV_CONTAINER(link, struct dv_store_copy, link);

        store->n_copies--;
        copy->done(copy, copy->has_failed ? &copy->err : NULL);
    }
}

/* ---- files ---- */

bool dv_store_check_file(const char *path, struct dv_err *err)
{
    static const struct dv_store_schema none = {0};
    struct dv_store_db db;
    bool is_ok;

    if (!dv_store_db_open(&db, path, &none, err))
        return dv_wrap(err, "%s", path);
    is_ok = dv_store_db_check(&db, err);
    dv_store_db_close(&db);
    return is_ok || dv_wrap(err, "%s", path);
}
