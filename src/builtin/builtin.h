/* builtin.h - the built-in driver: hands out devices of this machine that no other driver offers,
 * as offers say (offer.h).
 *
 *     inotify on /dev, uevents, CDI specs --> look, on a worker --> devices --> ResourceSlices
 *                                                                         \--> health
 *     NodePrepareResources --> record, CDI spec --> CDI names
 *
 * To everybody else it is a DRA driver: it registers through its socket in plugins_registry, is
 * called over it, and publishes slices and classes in the API. So what is true of drivers is true
 * of offers: one inventory, one scheduler, one ledger. */
#ifndef DV_BUILTIN_H
#define DV_BUILTIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "loop/loop.h"
#include "offer/offer.h"

struct dv_arena;
struct dv_builtin_driver;
struct dv_cdi_dirs;
struct dv_cluster;
struct dv_err;

struct dv_builtin_options {
    struct dv_cluster *cluster; /* kept, like the specs; both outlive the driver */
    struct dv_cdi_dirs *cdi;
    dv_str node_name;
    dv_str kubelet_dir; /* plugins_registry is in it, and plugins/, for what is remembered */
    dv_str dev_dir;     /* "/dev" */
    dv_str sys_dir;     /* "/sys" */
    dv_str cdi_dir;     /* where the specs of claims are written */
    const dv_str *offers;
    size_t n_offers;
    dv_str file; /* with more offers; empty: none. Read again by dv_builtin_reload */
    /* Removes classes of offers that are no more: in an API of our own, where nobody else has made
     * such offers. */
    bool owns_classes;
    /* Whether the node still has a record of the claim: what is left of others is removed at the
     * start. */
    bool (*is_claim_known)(void *ctx, dv_str claim_uid);
    /* Called when devices, or what is said of them, have changed: never from within a function of
     * this header. May be NULL. */
    void (*changed)(void *ctx);
    void *ctx;
};

/* Checks what the options offer: the texts and the file. DV_INVALID_ARGUMENT: what is wrong there.
 */
DV_CHECKED bool dv_builtin_check(const struct dv_builtin_options *options, struct dv_err *err);
/* Looks at the machine, and registers as soon as the loop runs. Blocks, so it is for the start of
 * the daemon. Keeps copies of the texts. */
struct dv_builtin_driver *
dv_builtin_open(struct dv_loop *loop, const struct dv_builtin_options *options, struct dv_err *err);
/* Reads the file again. On failure the offers before stay in force. */
DV_CHECKED bool dv_builtin_reload(struct dv_builtin_driver *builtin, struct dv_err *err);
/* Tells that CDI specs have changed: they may be offered. */
void dv_builtin_specs_changed(struct dv_builtin_driver *builtin);
/* Specs and records of claims stay: they are held. `closed` may be NULL. */
void dv_builtin_close(struct dv_builtin_driver *builtin, dv_closed_fn *closed, void *ctx);

/* ---- what can be seen ---- */

struct dv_builtin_view {
    const struct dv_offers *offers;
    const struct dv_offer_list *list;
};
/* What the driver offers and holds now. The texts of the view are borrowed until the loop's next
 * turn. */
struct dv_builtin_view dv_builtin_view(const struct dv_builtin_driver *builtin);
/* The claim that holds the device, "namespace/name", and how many do; empty: none. */
dv_str dv_builtin_holder(const struct dv_builtin_driver *builtin, dv_str device, size_t *n_holders);
/* Why the offer's class is not as it should be; NULL: it is. */
const char *dv_builtin_class_problem(const struct dv_builtin_driver *builtin,
                                     const struct dv_offer *offer);

#endif
