/* phase.c - what happens to a claim, and what is under way for it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "claim/state/claim_state.h"

/* -- Events --------------------------------------------------------------------------------- */

static void take_boot(struct dv_claim_state *state, struct dv_claim_entry *entry)
{
    entry->claim.record.boot_id = state->boot_id;
    entry->claim.is_left_over = false;
}

static void leave_boot(struct dv_claim_state *state, struct dv_claim_entry *entry)
{
    (void)state;
    entry->claim.record.boot_id = DV_STR_NONE;
    entry->claim.is_left_over = true;
}

static void drop_left_over(struct dv_claim_state *state, struct dv_claim_entry *entry)
{
    (void)state;
    entry->claim.is_left_over = false;
}

static void ignore(struct dv_claim_state *state, struct dv_claim_entry *entry)
{
    (void)state;
    (void)entry;
}

static const struct {
    enum dv_claim_phase in;
    enum dv_claim_event on;
    enum dv_claim_phase next;
    void (*act)(struct dv_claim_state *state, struct dv_claim_entry *entry);
} steps[] = {
    {DV_CLAIM_WANTED,      DV_CLAIM_ON_SAVED,      DV_CLAIM_PREPARING,   ignore         },
    {DV_CLAIM_WANTED,      DV_CLAIM_ON_UNWANTED,   DV_CLAIM_UNPREPARING, ignore         },
    {DV_CLAIM_PREPARING,   DV_CLAIM_ON_SAVED,      DV_CLAIM_PREPARING,   ignore         },
    {DV_CLAIM_PREPARING,   DV_CLAIM_ON_PREPARED,   DV_CLAIM_PREPARED,    take_boot      },
    {DV_CLAIM_PREPARING,   DV_CLAIM_ON_FAILED,     DV_CLAIM_PREPARING,   ignore         },
    {DV_CLAIM_PREPARING,   DV_CLAIM_ON_UNWANTED,   DV_CLAIM_UNPREPARING, drop_left_over },
    {DV_CLAIM_PREPARED,    DV_CLAIM_ON_SAVED,      DV_CLAIM_PREPARED,    ignore         },
    {DV_CLAIM_PREPARED,    DV_CLAIM_ON_PREPARED,   DV_CLAIM_PREPARED,    take_boot      },
    {DV_CLAIM_PREPARED,    DV_CLAIM_ON_FAILED,     DV_CLAIM_PREPARED,    ignore         },
    {DV_CLAIM_PREPARED,    DV_CLAIM_ON_STALE,      DV_CLAIM_PREPARING,   leave_boot     },
    {DV_CLAIM_PREPARED,    DV_CLAIM_ON_UNWANTED,   DV_CLAIM_UNPREPARING, ignore         },
    {DV_CLAIM_UNPREPARING, DV_CLAIM_ON_WANTED,     DV_CLAIM_PREPARING,   drop_left_over },
    {DV_CLAIM_UNPREPARING, DV_CLAIM_ON_UNWANTED,   DV_CLAIM_UNPREPARING, ignore         },
    {DV_CLAIM_UNPREPARING, DV_CLAIM_ON_FAILED,     DV_CLAIM_UNPREPARING, ignore         },
    {DV_CLAIM_UNPREPARING, DV_CLAIM_ON_UNPREPARED, DV_CLAIM_GONE,        dv_claim_forget},
};

bool dv_claim_handle(struct dv_claim_state *state, struct dv_claim *claim,
                     enum dv_claim_event event, struct dv_err *err)
{
    struct dv_claim_entry *entry = dv_claim_entry_of(claim);

    for (size_t i = 0; i < DV_COUNT(steps); i++) {
        if (steps[i].in != claim->record.phase || steps[i].on != event)
            continue;
        /* WANTED and PREPARING are the same on the disk, so nothing has to be written. */
        if (steps[i].next != steps[i].in && event != DV_CLAIM_ON_SAVED)
            dv_claim_mark_dirty(state, entry);
        if (steps[i].next != DV_CLAIM_GONE)
            claim->record.phase = steps[i].next;
        steps[i].act(state, entry);
        return true;
    }
    return dv_fail(err, DV_FAILED_PRECONDITION, "ResourceClaim %.*s is %s",
                   DV_FMT(claim->record.name), dv_claim_phase_name(claim->record.phase));
}

/* -- Calls ---------------------------------------------------------------------------------- */

void dv_claim_begin_hold(struct dv_claim *claim)
{
    claim->n_holds++;
}

void dv_claim_end_hold(struct dv_claim *claim)
{
    assert(claim->n_holds > 0);
    claim->n_holds--;
}

void dv_claim_set_error(struct dv_claim *claim, const struct dv_err *err)
{
    free(claim->error);
    claim->error = NULL;
    if (!err)
        return;
    claim->error = dv_alloc(strlen(err->msg) + 1);
    memcpy(claim->error, err->msg, strlen(err->msg));
}

/* -- Counting ------------------------------------------------------------------------------- */

size_t dv_claim_n_prepared(const struct dv_claim_state *state)
{
    const struct dv_claim *claim;
    size_t n = 0;

    for (size_t at = 0; (claim = dv_claim_next(state, &at)) != NULL;)
        n += claim->record.phase == DV_CLAIM_PREPARED;
    return n;
}

size_t dv_claim_drivers_in_use(const struct dv_claim_state *state, struct dv_arena *arena,
                               dv_str **names, size_t **counts)
{
    DV_VEC(dv_str) all = {0};
    const struct dv_claim *claim;
    size_t n = 0;

    for (size_t at = 0; (claim = dv_claim_next(state, &at)) != NULL;)
        for (size_t i = 0; claim->record.phase == DV_CLAIM_PREPARED && i < claim->record.n_drivers;
             i++)
            *dv_vec_add_in(&all, arena) = claim->record.drivers[i].name;
    if (all.n > 0)
        qsort(all.v, all.n, sizeof(all.v[0]), dv_str_compare);
    *names = DV_NEW_ARRAY(arena, dv_str, all.n);
    *counts = DV_NEW_ARRAY(arena, size_t, all.n);
    for (size_t i = 0; i < all.n; i++) {
        if (n == 0 || !dv_str_eq((*names)[n - 1], all.v[i]))
            (*names)[n++] = all.v[i];
        (*counts)[n - 1]++;
    }
    return n;
}
