/* lib_embed.h - a DRA driver within a program of ours: on its loop, and with its way to the API. It
 * is used through davit/dra.h like any other. */
#ifndef DV_LIB_EMBED_H
#define DV_LIB_EMBED_H

#include "loop/loop.h"

struct davit_dra;
struct davit_dra_options;
struct dv_cluster;
struct dv_err;

/* Opens the driver; its calls come when the loop runs. The kubeconfig of the options is not used.
 */
struct davit_dra *dv_lib_dra_embed(struct dv_loop *loop, const struct davit_dra_options *options,
                                   struct dv_cluster *cluster, struct dv_err *err);
/* Does what davit_dra_close does, and calls `closed` when nothing is left of the driver. Not after
 * that function. */
void dv_lib_dra_remove(struct davit_dra *dra, dv_closed_fn *closed, void *ctx);

#endif
