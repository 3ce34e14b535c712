/* daemon.h - puts the parts of davitd together, and takes them apart. */
#ifndef DV_DAEMON_H
#define DV_DAEMON_H

#include <stdbool.h>

struct dv_daemon;
struct dv_err;
struct dv_loop;
struct dv_metrics;
struct dv_options;

/* Starts everything that `options` (kept) ask for; all sockets are served when this returns.
 * Blocks: for start-up. DV_ALREADY_EXISTS: another agent uses the directories. */
struct dv_daemon *dv_daemon_open(struct dv_loop *loop, const struct dv_options *options,
                                 struct dv_err *err);
/* Reads the policy again; one that cannot be used changes nothing, and the log says so. */
void dv_daemon_reload(struct dv_daemon *daemon);
/* Whether everything that clients rely on is there; on the first start that takes a write. */
bool dv_daemon_is_settled(const struct dv_daemon *daemon);
/* Returns the registry to which metrics of the whole program may be added, until
 * dv_daemon_close. */
struct dv_metrics *dv_daemon_metrics(const struct dv_daemon *daemon);
/* Stops everything in the opposite order, then calls `closed`. */
void dv_daemon_close(struct dv_daemon *daemon, void (*closed)(void *ctx), void *ctx);

#endif
