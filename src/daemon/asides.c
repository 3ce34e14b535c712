/* asides.c - tells of rows of the state that could not be used: each is named once, and kept in the
 * store. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "daemon/daemon_parts.h"
#include "pod/pod.h"
#include "serve/health.h"
#include "store/store.h"

/* How much of a row's value is quoted. */
#define HELD_BYTES_MAX 200u

/* Replaces everything but printable ASCII by dots, because a row may have any bytes. */
static dv_str printable(dv_str bytes, struct dv_arena *arena)
{
    dv_str text = dv_str_copy(bytes, arena);
    char *at = dv_arena_alloc_raw(arena, bytes.n + 1, 1);

    for (size_t i = 0; i < text.n; i++)
        at[i] = text.p[i] >= ' ' && text.p[i] <= '~' ? text.p[i] : '.';
    return (dv_str){at, text.n};
}

/* Whether values of the table may be logged: objects and tokens may hold secrets, but a node's own
 * rows hold devices. */
static bool may_show(const char *table)
{
    const char *const *tables = dv_node_schema.tables;

    return strcmp(table, tables[DV_TABLE_DEVICES]) == 0 ||
           strcmp(table, tables[DV_TABLE_CLAIMS]) == 0 ||
           strcmp(table, tables[DV_TABLE_PODS]) == 0 || strcmp(table, tables[DV_TABLE_RUNS]) == 0;
}

/* Ends the write that moves the rows. It has no changes of its own: the store moves the rows with
 * any write, so a failure is made good by the next one. */
static void on_written(struct dv_store_write *write, const struct dv_err *err)
{
    (void)err;
    free(write);
}

static void note(struct dv_daemon *daemon, const struct dv_store_aside *aside)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str held = dv_str_slice(aside->held, 0, HELD_BYTES_MAX);

    if (aside->is_new && may_show(aside->table))
        dv_health_note(daemon->health, DV_HEALTH_ROW_SET_ASIDE,
                       "%s: the row %.*s cannot be used and is set aside, what it held may be "
                       "given out again: %.*s; its content: %.*s",
                       aside->table, DV_FMT(printable(aside->key, arena)),
                       DV_FMT(printable(aside->why, arena)), DV_FMT(printable(held, arena)));
    else
        dv_health_note(daemon->health, DV_HEALTH_ROW_SET_ASIDE,
                       "%s: the row %.*s cannot be used and is set aside%s: %.*s", aside->table,
                       DV_FMT(printable(aside->key, arena)),
                       aside->is_new ? "" : " since an earlier start",
                       DV_FMT(printable(aside->why, arena)));
}

void dv_daemon_note_asides(struct dv_daemon *daemon)
{
    const struct dv_store_aside *asides;
    size_t n = dv_store_asides(daemon->store, &asides);
    struct dv_store_write *write;

    for (size_t i = 0; i < n; i++)
        note(daemon, &asides[i]);
    if (dv_store_n_asides(daemon->store) > n)
        dv_health_note(daemon->health, DV_HEALTH_ROW_SET_ASIDE, "%zu more rows are set aside",
                       dv_store_n_asides(daemon->store) - n);
    if (n == 0)
        return;
    write = DV_ALLOC(struct dv_store_write);
    write->done = on_written;
    dv_store_write(daemon->store, write, NULL, 0);
}
