/* daemon_offers.c - opens the built-in driver, which hands out what --offer says. */
#include "base/err.h"
#include "base/log.h"
#include "builtin/builtin.h"
#include "cdidir/cdidir.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "daemon/daemon_options.h"
#include "daemon/daemon_parts.h"
#include "offer/offer.h"
#include "serve/serve.h"

static bool has_driver(const struct dv_claim *claim)
{
    for (size_t i = 0; i < claim->record.n_drivers; i++)
        if (dv_str_eq(claim->record.drivers[i].name, DV_STR(DV_OFFER_DRIVER)))
            return true;
    return false;
}

static bool is_claim_known(void *ctx, dv_str uid)
{
    const struct dv_daemon *daemon = ctx;
    const struct dv_claim_state *state = dv_claim_manager_state(daemon->claims);
    const struct dv_claim *claim;

    for (size_t at = 0; (claim = dv_claim_next(state, &at)) != NULL;)
        if (dv_str_eq(claim->record.uid, uid))
            return true;
    return false;
}

/* Whether claims hold devices of offers that are no more: they are unprepared by the same driver.
 */
static bool is_held(const struct dv_daemon *daemon)
{
    const struct dv_claim_state *state = dv_claim_manager_state(daemon->claims);
    const struct dv_claim *claim;

    for (size_t at = 0; (claim = dv_claim_next(state, &at)) != NULL;)
        if (has_driver(claim))
            return true;
    return false;
}

static void on_changed(void *ctx)
{
    struct dv_daemon *daemon = ctx;

    if (daemon->node_server)
        dv_node_server_devices_changed(daemon->node_server);
    dv_node_feed_changed(daemon->feed, DV_FEED_DEVICES);
}

bool dv_daemon_check_offers(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_options *options = daemon->options;
    const struct dv_builtin_options builtin = {
        .offers = options->offers,
        .n_offers = options->n_offers,
        .file = options->offer_file,
    };

    return dv_builtin_check(&builtin, err) || dv_wrap(err, "offers");
}

bool dv_daemon_open_offers(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_options *options = daemon->options;
    struct dv_builtin_options builtin = {
        .cluster = daemon->cluster,
        .cdi = daemon->cdi,
        .node_name = options->node_name,
        .kubelet_dir = options->kubelet_dir,
        .dev_dir = options->dev_dir,
        .sys_dir = options->sys_dir,
        .offers = options->offers,
        .n_offers = options->n_offers,
        .file = options->offer_file,
        .owns_classes = daemon->api != NULL,
        .is_claim_known = is_claim_known,
        .changed = on_changed,
        .ctx = daemon,
    };
    dv_str *dirs;
    size_t n_dirs = dv_cdi_dirs_split(options->cdi_dirs, daemon->arena, &dirs);

    if (builtin.n_offers == 0 && builtin.file.n == 0 && !is_held(daemon))
        return true;
    if (n_dirs == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--offer needs a directory for CDI specs: --cdi-dirs");
    /* The last one is for what changes while the machine runs, and its specs win. */
    builtin.cdi_dir = dirs[n_dirs - 1];
    daemon->builtin = dv_builtin_open(daemon->loop, &builtin, err);
    return daemon->builtin || dv_wrap(err, "offers");
}

void dv_daemon_reload_offers(struct dv_daemon *daemon)
{
    struct dv_err err;

    if (!daemon->builtin || daemon->options->offer_file.n == 0)
        return;
    if (!dv_builtin_reload(daemon->builtin, &err))
        dv_log(DV_LOG_ERROR, "daemon: the offers are not taken; those before still count",
               DV_F_ERR(&err));
}
