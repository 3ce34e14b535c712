/* attach.c - the way to an open database, from whatever state its file is in. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "store/db.h"
#include "store/files.h"
#include "store/state.h"
#include "store/store.h"

enum dv_store_rest dv_store_rest_at_start(const struct dv_store *store)
{
    return store->options.keeps_readable ? DV_STORE_KEEP_ROWS : DV_STORE_DROP_ROWS;
}

static bool attach_memory(struct dv_store *store, struct dv_err *err)
{
    if (!dv_store_db_open(&store->db, NULL, store->options.schema, err))
        return false;
    if (dv_store_db_fill(&store->db, NULL, err))
        return true;
    dv_store_db_close(&store->db);
    return false;
}

static bool attach_file(struct dv_store *store, char **set_aside, struct dv_err *err)
{
    struct dv_store_db *db = &store->db;

    if (!dv_store_db_open(db, store->files.path, store->options.schema, err))
        return false;
    if (dv_store_db_check(db, err) && dv_store_db_upgrade(db, store, err) &&
        dv_store_db_load_note(db, set_aside, err)) {
        if (!store->wake) /* the first time */
            dv_store_load_asides(store);
        return true;
    }
    dv_store_db_close(db);
    return false;
}

static bool attach_or_replace(struct dv_store *store, enum dv_store_rest rest, char **set_aside,
                              struct dv_err *err)
{
    if (!store->db.is_damaged) { /* else known from before, when it could not be replaced */
        if (!dv_store_files_prepare(&store->files, store->options.schema, rest, err))
            return false;
        if (attach_file(store, set_aside, err))
            return true;
        if (!store->db.is_damaged)
            return false;
    }
    return dv_store_files_replace(&store->files, store->options.schema, rest, err) &&
           attach_file(store, set_aside, err);
}

bool dv_store_attach(struct dv_store *store, enum dv_store_rest rest, char **set_aside,
                     struct dv_err *err)
{
    store->checkpoint_at = DV_STORE_CHECKPOINT_PAGES;
    *set_aside = NULL;
    if (store->is_memory)
        return attach_memory(store, err);
    return attach_or_replace(store, rest, set_aside, err) || dv_wrap(err, "store %s", store->name);
}

bool dv_store_recover(struct dv_store *store, enum dv_store_rest rest, char **set_aside,
                      struct dv_err *err)
{
    struct dv_err why;

    dv_store_db_close(&store->db);
    if (!dv_store_attach(store, rest, set_aside, &why)) {
        *err = why;
        return false;
    }
    if (!*set_aside) { /* the note was lost too, which changes nothing for those who must know */
        *set_aside = strdup("(unknown)");
        if (!*set_aside)
            abort();
    }
    store->thread_epoch++;
    (void)dv_fail(err, DV_DATA_LOSS, "%s; set aside as %s", err->msg, *set_aside);
    return true;
}
