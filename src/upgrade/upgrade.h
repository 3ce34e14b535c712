/* upgrade.h - how a request leaves HTTP for another protocol, and which version of it is spoken. */
#ifndef DV_UPGRADE_H
#define DV_UPGRADE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;

/* Whether a request asks to leave HTTP for this protocol ("websocket", "SPDY/3.1"), by its fields
 * Connection and Upgrade; or whether an answer does so. */
bool dv_upgrade_is_asked(dv_str connection, dv_str upgrade, dv_str protocol);

/* Chooses among the versions of streams that a client offers: `offers` are the values of all its
 * fields X-Stream-Protocol-Version, each of which may be a list. The first that is in `served` is
 * chosen; *version points into that. DV_INVALID_ARGUMENT: it offers none; answer 400.
 * DV_PERMISSION_DENIED: none is common; answer 403, with X-Accepted-Stream-Protocol-Versions. */
DV_CHECKED bool dv_upgrade_negotiate(const dv_str *offers, size_t n_offers, const dv_str *served,
                                     size_t n_served, dv_str *version, struct dv_err *err);

#endif
