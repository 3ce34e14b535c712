/* daemon_parts.h - struct dv_daemon with all its parts, which the files of the daemon share. */
#ifndef DV_DAEMON_PARTS_H
#define DV_DAEMON_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"
#include "serve/serve.h"
#include "store/store_saver.h"
#include "topology/topology.h"

struct dv_agent;
struct dv_apps;
struct dv_arena;
struct dv_builtin_driver;
struct dv_cdi_dirs;
struct dv_claim_manager;
struct dv_cluster;
struct dv_control;
struct dv_control_metrics;
struct dv_daemon_api;
struct dv_device_manager;
struct dv_err;
struct dv_flight;
struct dv_flight_metrics;
struct dv_grpc_observer;
struct dv_guard;
struct dv_health;
struct dv_http_server;
struct dv_leases;
struct dv_node_api;
struct dv_node_feed;
struct dv_node_metrics;
struct dv_node_pools;
struct dv_node_server;
struct dv_node_usage;
struct dv_old_offers;
struct dv_options;
struct dv_plugins;
struct dv_podres_server;
struct dv_pod_logs;
struct dv_pod_streams;
struct dv_pods;
struct dv_recorder;
struct dv_remote;
struct dv_runner;
struct dv_sched;
struct dv_store;

struct dv_daemon {
    struct dv_loop *loop;
    const struct dv_options *options;
    struct dv_arena *arena;
    struct dv_store *store;
    dv_str boot_id;
    uint32_t group; /* of davit.sock, when the options name one */
    struct dv_numa_machine machine;
    struct dv_topology_config topology;
    struct dv_cdi_dirs *cdi;
    uint64_t cdi_problems;  /* hash of the problems that were logged last */
    struct dv_guard *guard; /* NULL: there is no policy */
    struct dv_device_manager *devices;
    struct dv_claim_manager *claims;
    struct dv_pods *pods;
    struct dv_leases *leases;
    struct dv_plugins *plugins;
    struct dv_node node;
    struct dv_node_feed *feed;
    struct dv_pod_logs *logs;
    struct dv_pod_streams *streams;
    struct dv_node_server *node_server;
    struct dv_podres_server *podres_server;
    struct dv_node_usage *usage;
    struct dv_node_api *node_api; /* the node's own API; NULL: it is not served */
    struct dv_timer node_cert_timer;
    struct dv_node_metrics *metrics;
    struct dv_health *health;
    struct dv_daemon_api *api;          /* with the role api */
    struct dv_remote *remote;           /* without the role api: the cluster's API */
    struct dv_cluster *cluster;         /* the one of these two that is used */
    struct dv_http_server *http_server; /* without the role api */
    struct dv_control *control;         /* with the role control */
    struct dv_apps *apps;               /* the same, beside an embedded API */
    struct dv_control_metrics *control_metrics;
    struct dv_sched *sched;            /* with the role sched */
    struct dv_agent *agent;            /* with the role node */
    struct dv_runner *runner;          /* with the role node: runs containers */
    struct dv_builtin_driver *builtin; /* hands out what is offered; NULL: nothing is */
    struct dv_old_offers *old_offers;  /* publishes what drivers of 1.30 offer */
    struct dv_recorder *recorder;      /* records events */
    struct dv_node_pools *pools;       /* devices of DRA drivers */
    struct dv_flight *flight;          /* records what plugins and we say; NULL: nobody wants it */
    struct dv_flight_metrics *flight_metrics;
    struct dv_save claims_save; /* writes claims into a store that lost them */
    struct dv_timer claims_timer;
    bool is_saving_claims;
    size_t i_closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* The file in the runtime directory that says of pods that nobody has asked for their options. */
#define DV_DAEMON_MARKS "not-started"

/* Returns "<dir>/<name>", which lives as long as the daemon. */
dv_str dv_daemon_path(struct dv_daemon *daemon, dv_str dir, const char *name);

/* daemon_store.c */
DV_CHECKED bool dv_daemon_open_store(struct dv_daemon *daemon, struct dv_err *err);
/* Writes all claims into a store that has lost its rows, and then all pods; `daemon` is a struct
 * dv_daemon. */
void dv_daemon_save_claims(void *daemon);

/* daemon_machine.c */
DV_CHECKED bool dv_daemon_read_machine(struct dv_daemon *daemon, struct dv_err *err);
DV_CHECKED bool dv_daemon_configure_topology(struct dv_daemon *daemon, struct dv_err *err);

/* asides.c: tells of rows of the state that could not be used, and has them moved out of the way.
 * Call it when everything is loaded. */
void dv_daemon_note_asides(struct dv_daemon *daemon);

/* private.c */

/* Makes the directory and those above it. */
DV_CHECKED bool dv_daemon_make_dirs(struct dv_daemon *daemon, dv_str dir, unsigned mode,
                                    struct dv_err *err);
/* Makes the directories for state and sockets, and makes sure that they and the keys in them can be
 * used by root alone. Call it before anything is opened. */
DV_CHECKED bool dv_daemon_make_private(struct dv_daemon *daemon, struct dv_err *err);

/* Finds the number of the options' group, which may be one already. */
DV_CHECKED bool dv_daemon_find_group(struct dv_daemon *daemon, struct dv_err *err);
/* Gives the way to davit.sock to the group of the options, if there is one. Call it when the node
 * is described and before the socket is made. */
DV_CHECKED bool dv_daemon_open_group(struct dv_daemon *daemon, struct dv_err *err);

/* daemon_node.c */
DV_CHECKED bool dv_daemon_open_agent(struct dv_daemon *daemon, struct dv_err *err);

/* daemon_kubelet.c */
/* Reads the certificate that the options name, and its CA, if there will be a node's own API. */
DV_CHECKED bool dv_daemon_check_node_cert(struct dv_daemon *daemon, struct dv_err *err);
/* Opens the node's own API, if it is wanted. */
DV_CHECKED bool dv_daemon_open_node_api(struct dv_daemon *daemon, struct dv_err *err);
/* Makes or reads the certificate of the node's own API anew, if that is served. */
void dv_daemon_renew_node_cert(struct dv_daemon *daemon);

/* daemon_record.c: the flight recorder, if it is wanted. */
DV_CHECKED bool dv_daemon_open_flight(struct dv_daemon *daemon, struct dv_err *err);
/* The observer of channels and servers; NULL: nothing is recorded. */
struct dv_grpc_observer *dv_daemon_observer(const struct dv_daemon *daemon);
/* Call it before the recorder closes. */
void dv_daemon_forget_flight(struct dv_daemon *daemon);

/* daemon_offers.c */
/* Reads what is offered. */
DV_CHECKED bool dv_daemon_check_offers(struct dv_daemon *daemon, struct dv_err *err);
/* Opens the built-in driver, if something is offered or claims still hold what was. */
DV_CHECKED bool dv_daemon_open_offers(struct dv_daemon *daemon, struct dv_err *err);
/* Reads the file of offers again. */
void dv_daemon_reload_offers(struct dv_daemon *daemon);

/* daemon_servers.c */
/* Opens the plain HTTP server. It has no encryption, so it is there only when asked for and only
 * where nobody else listens in. */
DV_CHECKED bool dv_daemon_open_http(struct dv_daemon *daemon, struct dv_err *err);
/* Opens all servers, when everything that they serve is open. */
DV_CHECKED bool dv_daemon_open_servers(struct dv_daemon *daemon, struct dv_err *err);

/* roles.c */
DV_CHECKED bool dv_daemon_open_roles(struct dv_daemon *daemon, struct dv_err *err);
/* Call it before the controllers close: their numbers are not printed any more. */
void dv_daemon_forget_control(struct dv_daemon *daemon);

#endif
