/* old_offers.h - publishes what drivers of 1.30 offer: their kubelet made ResourceSlices of it.
 *
 * A driver's slices are kept as it wants them while it tells; when it has gone, they are wiped like
 * those of any driver (claim_manager.h). */
#ifndef DV_DAEMON_OLD_OFFERS_H
#define DV_DAEMON_OLD_OFFERS_H

#include "base/str.h"
#include "loop/loop.h"

struct dv_claim_offer;
struct dv_cluster;
struct dv_old_offers;

/* Keeps the cluster, which outlives it, and a copy of the node's name. */
struct dv_old_offers *dv_old_offers_open(struct dv_loop *loop, struct dv_cluster *cluster,
                                         dv_str node_name);
/* Publishes all that the driver offers; NULL: it tells no more, and its slices are left alone. */
void dv_old_offers_set(struct dv_old_offers *offers, dv_str driver,
                       const struct dv_claim_offer *offer);
/* Leaves all slices as they are. */
void dv_old_offers_close(struct dv_old_offers *offers, dv_closed_fn *closed, void *ctx);

#endif
