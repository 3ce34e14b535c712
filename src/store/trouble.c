/* trouble.c - the disk does not take writes: this is told once, and then tried again and again
 * until it does. */
#include <pthread.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include "base/err.h"
#include "base/num.h"
#include "loop/loop.h"
#include "store/db.h"
#include "store/store_files.h"
#include "store/store_state.h"
#include "store/store_watch.h"

/* A full disk counts as full until it has room for several commits: room for just one small commit
 * does not help those whose writes were refused. */
#define ROOM_BYTES_MIN (128u * 1024u)
#define ROOM_BYTES_MAX (4u * 1024u * 1024u)
#define PAUSE_MS_MIN 500u
#define PAUSE_MS_MAX 10000u

static bool is_trouble(const struct dv_err *err)
{
    return err->code == DV_RESOURCE_EXHAUSTED || err->code == DV_DATA_LOSS ||
           err->code == DV_PERMISSION_DENIED || err->code == DV_UNAVAILABLE;
}

/* Hands the trouble to the loop; NULL says that it is over. */
static void tell(struct dv_store *store, const struct dv_err *err)
{
    (void)pthread_mutex_lock(&store->lock);
    if (err)
        store->trouble = *err;
    else
        (void)dv_succeed(&store->trouble);
    store->n_troubles++;
    (void)pthread_mutex_unlock(&store->lock);
    dv_async_wake(store->wake);
}

static bool has_room(const struct dv_store *store)
{
    struct statvfs about;
    uint64_t wanted = dv_u64_max(ROOM_BYTES_MIN, dv_u64_min(store->refused_bytes, ROOM_BYTES_MAX));

    return statvfs(store->files.dir, &about) != 0 ||
           (uint64_t)about.f_bavail * about.f_frsize >= wanted;
}

void dv_store_meet_trouble(struct dv_store *store, const struct dv_err *err, uint64_t n_bytes)
{
    if (!is_trouble(err))
        return;
    if (!store->is_troubled)
        store->probe_pause_ms = PAUSE_MS_MIN;
    store->is_troubled = true;
    store->is_full = err->code == DV_RESOURCE_EXHAUSTED;
    store->refused_bytes = n_bytes;
    tell(store, err);
}

void dv_store_end_trouble(struct dv_store *store)
{
    if (!store->is_troubled || (store->is_full && !has_room(store)))
        return;
    store->is_troubled = false;
    tell(store, NULL);
}

/* Writes a row that nobody reads, and takes it out again. */
static bool write_probe(struct dv_store *store, struct dv_err *err)
{
    struct dv_store_db *db = &store->db;
    char text[128];

    (void)snprintf(text, sizeof(text), /* fits: a number and constants */
                   "REPLACE INTO _davit (k, v) VALUES ('probe', hex(zeroblob(%llu)))",
                   (unsigned long long)dv_u64_min(store->refused_bytes, ROOM_BYTES_MAX) / 2);
    if (!dv_store_db_begin(db, err))
        return false;
    if (!dv_store_db_exec(db, text, err)) {
        dv_store_db_rollback(db);
        return false;
    }
    if (!dv_store_db_commit(db, err) || !dv_store_db_begin(db, err))
        return false;
    if (!dv_store_db_exec(db, "DELETE FROM _davit WHERE k = 'probe'", err)) {
        dv_store_db_rollback(db);
        return false;
    }
    return dv_store_db_commit(db, err);
}

void dv_store_probe(struct dv_store *store)
{
    struct dv_err err;

    store->probe_pause_ms = dv_u64_min(store->probe_pause_ms * 2, PAUSE_MS_MAX);
    if (store->is_full && !has_room(store))
        return;
    if (!store->db.sql || store->db.is_damaged)
        return; /* the file is replaced soon */
    if (!dv_store_watch_check(&store->watch, &store->files, &err))
        return; /* the caller checks the files next */
    if (!write_probe(store, &err) || (store->db.n_wal_pages >= DV_STORE_CHECKPOINT_PAGES &&
                                      !dv_store_db_checkpoint(&store->db, &err)))
        return;
    if (store->db.n_wal_pages == 0) /* the next commit begins a new log */
        dv_store_watch_home(&store->watch, &store->files);
    dv_store_end_trouble(store);
}
