/* lease_rows.c - the rows of leases in the store: written when they change, read at the start. */
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/row.h"
#include "lease/manager/leases_state.h"
#include "lease/state/lease_row.h"
#include "store/store.h"

void dv_lease_mark_dirty(struct dv_lease *lease)
{
    struct dv_leases *leases = lease->leases;
    struct dv_lease_dirty *dirty;

    for (size_t i = 0; i < leases->dirty.n; i++)
        if (dv_str_eq(dv_str_from_c(leases->dirty.v[i].id), lease->spec.id))
            return;
    dirty = dv_vec_add(&leases->dirty);
    memcpy(dirty->id, lease->spec.id.p, DV_LEASE_ID_BYTES); /* every id is that long */
}

static size_t take(void *ctx, struct dv_arena *arena, const struct dv_row_change **changes)
{
    struct dv_leases *leases = ctx;
    struct dv_row_changes made;

    dv_row_changes_init(&made, arena);
    for (size_t i = 0; i < leases->dirty.n; i++) {
        dv_str id = dv_str_from_c(leases->dirty.v[i].id);
        const struct dv_lease *lease = dv_map_get(&leases->by_id, id);

        if (!lease || !lease->is_recorded) {
            dv_row_changes_remove(&made, id, false);
            continue;
        }
        dv_buf_add(&made.key, id);
        dv_lease_row_print(&lease->spec, &made.value);
        dv_row_changes_add(&made);
    }
    dv_vec_clear(&leases->dirty);
    return dv_row_changes_take(&made, changes);
}

static void rested(void *ctx)
{
    dv_leases_check_closed(ctx);
}

void dv_leases_init_saver(struct dv_leases *leases)
{
    const struct dv_saver_options options = {.loop = leases->loop,
                                             .store = leases->options.store,
                                             .table = DV_TABLE_LEASES,
                                             .what = "leases",
                                             .take = take,
                                             .rested = rested,
                                             .ctx = leases};

    dv_saver_init(&leases->saver, &options);
}

void dv_leases_save_all(struct dv_leases *leases)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&leases->by_id, &at));)
        if (((const struct dv_lease *)entry->value)->is_recorded)
            dv_lease_mark_dirty(entry->value);
    dv_saver_later(&leases->saver);
}

static bool read_row(const struct dv_store_row *row, struct dv_arena *arena,
                     struct dv_lease_spec *spec, struct dv_err *err)
{
    if (!dv_lease_row_parse(dv_str_copy(row->value, arena), arena, spec, err))
        return false;
    return (spec->id.n == DV_LEASE_ID_BYTES && dv_str_eq(spec->id, row->key)) ||
           dv_fail(err, DV_INVALID_ARGUMENT, "its id is not its key");
}

/* Rows come in the order of their ids; the list is by age. */
static void add_by_age(struct dv_leases *leases, struct dv_lease *lease)
{
    struct dv_link *place = &leases->held.head;

    while (place->prev != &leases->held.head &&
           DV_CONTAINER(place->prev, struct dv_lease, link)->spec.since_ms > lease->spec.since_ms)
        place = place->prev;
    dv_link_insert_before(place, &lease->link);
}

bool dv_leases_load_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    struct dv_leases *leases = ctx;
    struct dv_arena *arena = dv_arena_new();
    struct dv_lease_spec spec;
    struct dv_lease *lease;

    if (!read_row(row, arena, &spec, err)) {
        (void)dv_wrap(err, "stored lease %.*s", DV_FMT(row->key));
        dv_arena_free(arena);
        return false;
    }
    lease = dv_lease_new(leases, arena);
    lease->spec = spec;
    lease->is_recorded = true;
    dv_lease_set_user(lease, spec.user);
    lease->user->n_held++;
    leases->n_held++;
    dv_list_push(&lease->user->held, &lease->of_user);
    add_by_age(leases, lease);
    (void)dv_map_set(&leases->by_id, lease->spec.id, lease);
    return true;
}
