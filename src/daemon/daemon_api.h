/* daemon_api.h - the embedded API as a part of the daemon: its objects, its tokens, its
 * certificates, and the server in front of them. */
#ifndef DV_DAEMON_API_H
#define DV_DAEMON_API_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "loop/loop.h"

struct dv_cluster;
struct dv_err;
struct dv_health;
struct dv_node_feed;
struct dv_pod_logs;
struct dv_node_metrics;
struct dv_pod_streams;
struct dv_options;
struct dv_store;

struct dv_daemon_api;
struct dv_sched;

/* Loads what is stored, before the store's first write and before anything is served. `options`,
 * `metrics` and `health` are kept. */
struct dv_daemon_api *dv_daemon_api_open(struct dv_loop *loop, struct dv_store *store,
                                         const struct dv_options *options,
                                         struct dv_node_metrics *metrics, struct dv_health *health,
                                         struct dv_err *err);
/* Begins to serve on --listen; a CA and an admin's kubeconfig are made on the first start. `feed`
 * `logs` and `streams` are kept. `trouble` (may be NULL) returns why the daemon is not ready. */
DV_CHECKED bool dv_daemon_api_serve(struct dv_daemon_api *api, struct dv_node_feed *feed,
                                    struct dv_pod_logs *logs, struct dv_pod_streams *streams,
                                    struct dv_sched *const *sched,
                                    const struct dv_err *(*trouble)(void *ctx), void *ctx,
                                    struct dv_err *err);
/* Whether the objects that always exist are there: on the first start that takes a write. */
bool dv_daemon_api_is_settled(const struct dv_daemon_api *api);
struct dv_cluster *dv_daemon_api_cluster(struct dv_daemon_api *api);
/* Where it serves: the address of --listen without its port, and the port; 0: it does not. */
uint16_t dv_daemon_api_port(const struct dv_daemon_api *api, dv_str *address);
/* Whether pods use the API, each as a service account. */
bool dv_daemon_api_has_accounts(const struct dv_daemon_api *api);
/* What vouches for the server, for pods that use the API (dv_control_options.root_ca), as long as
 * the API is open; empty over plain HTTP. */
dv_str dv_daemon_api_root_ca(const struct dv_daemon_api *api);
/* Writes everything again, because the store has lost what it had. */
void dv_daemon_api_rewrite(struct dv_daemon_api *api, void (*done)(void *ctx), void *ctx);
/* Closes the API; `closed` runs when nothing of it is left. */
void dv_daemon_api_close(struct dv_daemon_api *api, dv_closed_fn *closed, void *ctx);

#endif
