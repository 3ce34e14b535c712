/* daemon_store.c - the store of the node: how it is opened, and what is done when its file is
 * damaged or the disk takes no writes. */
#include <stddef.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "claim/claim_manager.h"
#include "daemon/daemon_api.h"
#include "daemon/daemon_options.h"
#include "daemon/daemon_parts.h"
#include "lease/lease.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "serve/health.h"
#include "serve/serve.h"
#include "store/store.h"
#include "store/store_saver.h"

/* The pause between attempts to write all claims anew. */
#define REWRITE_PAUSE_MS 1000u

/* ---- writing everything anew ---- */

static void on_claims_timer(struct dv_timer *timer)
{
    dv_daemon_save_claims(DV_CONTAINER(timer, struct dv_daemon, claims_timer));
}

/* Writes the pods after the claims: their write says that everything has been rebuilt. */
static void on_claims_saved(struct dv_save *save, const struct dv_err *err)
{
    struct dv_daemon *daemon = DV_CONTAINER(save, struct dv_daemon, claims_save);

    daemon->is_saving_claims = false;
    if (!daemon->pods)
        return; /* the daemon is stopping */
    if (err)
        dv_timer_start(&daemon->claims_timer, daemon->loop,
                       dv_loop_now_ms(daemon->loop) + REWRITE_PAUSE_MS, on_claims_timer);
    else
        dv_pods_save_all(daemon->pods);
    if (!err && daemon->leases)
        dv_leases_save_all(daemon->leases);
}

void dv_daemon_save_claims(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    if (!daemon->claims || daemon->is_saving_claims)
        return;
    daemon->is_saving_claims = true;
    daemon->claims_save = (struct dv_save){.done = on_claims_saved};
    dv_claim_manager_save_all(daemon->claims);
    dv_claim_manager_save(daemon->claims, &daemon->claims_save);
}

/* The store has lost its rows: all that is in memory is written again with the next save. */
static void on_store_damaged(void *ctx, const char *set_aside)
{
    struct dv_daemon *daemon = ctx;

    dv_health_note(daemon->health, DV_HEALTH_STATE_DAMAGED,
                   "the state was damaged; it is set aside and written anew from memory; the "
                   "damaged file is %s",
                   set_aside);
    if (daemon->api)
        dv_daemon_api_rewrite(daemon->api, dv_daemon_save_claims, daemon);
    else
        dv_daemon_save_claims(daemon);
}

/* Sets the trouble with the disk, whoever wrote: the API, devices, claims, pods or tokens. */
static void on_store_trouble(void *ctx, const struct dv_err *err)
{
    struct dv_daemon *daemon = ctx;

    dv_health_set(daemon->health, DV_HEALTH_STATE, err);
    dv_node_feed_changed(daemon->feed, DV_FEED_STATUS);
}

/* ---- opening ---- */

bool dv_daemon_open_store(struct dv_daemon *daemon, struct dv_err *err)
{
    struct dv_store_options options = {
        .schema = &dv_node_schema,
        .damaged = on_store_damaged,
        .trouble = on_store_trouble,
        .ctx = daemon,
        .keeps_readable = true,
    };
    dv_str path = dv_daemon_path(daemon, daemon->options->state_dir, "state.db");
    const struct dv_store_note *notes;
    const char *set_aside;
    size_t n;

    if (!dv_daemon_make_private(daemon, err))
        return false;
    daemon->store = dv_store_open(daemon->loop, path, &options, err);
    if (!daemon->store)
        return false;
    n = dv_store_notes(daemon->store, &notes);
    for (size_t i = 0; i < n; i++)
        dv_health_note(daemon->health,
                       notes[i].is_loss   ? DV_HEALTH_WRITES_LOST
                       : notes[i].is_mode ? DV_HEALTH_MODE_FIXED
                                          : DV_HEALTH_STATE_DAMAGED,
                       "%.*s", DV_FMT(notes[i].text));
    set_aside = dv_store_set_aside(daemon->store);
    if (set_aside)
        dv_health_note(daemon->health, DV_HEALTH_STATE_DAMAGED,
                       "the state was damaged; it is set aside, and begins anew from what could be "
                       "read; the damaged file is %s",
                       set_aside);
    return true;
}
