/* daemon.h - the parts of davitd, put together and taken apart. */
#ifndef DV_DAEMON_H
#define DV_DAEMON_H

#include <stdbool.h>

struct dv_daemon;
struct dv_err;
struct dv_loop;
struct dv_metrics;
struct dv_options;

/* Starts everything that `options` (kept) ask for; all sockets serve when this returns. Blocks: for
 * start-up. DV_ALREADY_EXISTS: another agent has the directories. */
struct dv_daemon *dv_daemon_open(struct dv_loop *loop, const struct dv_options *options,
                                 struct dv_err *err);
/* Reads the policy again; one that cannot be used changes nothing, and the log says so. */
void dv_daemon_reload(struct dv_daemon *daemon);
/* Whether all that clients count on is there; right after the first start it takes a write. */
bool dv_daemon_is_settled(const struct dv_daemon *daemon);
/* Where metrics of the whole program may be added; until dv_daemon_close. */
struct dv_metrics *dv_daemon_metrics(const struct dv_daemon *daemon);
/* Stops everything in the opposite order, then calls `closed`. */
void dv_daemon_close(struct dv_daemon *daemon, void (*closed)(void *ctx), void *ctx);

#endif
