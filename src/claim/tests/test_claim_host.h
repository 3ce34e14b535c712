/* test_claim_host.h - a node for this module's tests: drivers on the test's own loop, an API in
 * memory that fails on request, a store in memory, a clock that is turned. */
#ifndef DV_CLAIM_TEST_CLAIM_HOST_H
#define DV_CLAIM_TEST_CLAIM_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "claim/claim_manager.h"
#include "cluster/cluster.h"
#include "plugin/plugin.h"
#include "resource/resource.h"
#include "support/rig.h"
#include "support/test_store.h"

#define GPU "gpu.example.com"
#define NIC "nic.example.com"

struct dv_server;
struct dv_server_call;
struct dv_store;
struct host;

/* ---- a driver ---- */

enum driver_manner {
    DRIVER_WORKS,
    DRIVER_ANSWERS_NULL,    /* an answer without anything */
    DRIVER_SKIPS,           /* an empty map */
    DRIVER_ADDS_UNKNOWN,    /* and one claim that it was not asked for */
    DRIVER_REFUSES_CLAIMS,  /* an error for each */
    DRIVER_FAILS,           /* the call */
    DRIVER_HOLDS,           /* does not answer */
    DRIVER_ANSWERS_NONSENSE /* bytes that are no message */
};

struct driver {
    struct host *host;
    const char *name;
    char path[128];
    struct dv_server *server; /* NULL: it does not run */
    const char *versions;     /* that it registers with, between spaces */
    enum driver_manner manner;
    size_t n_devices;     /* of an answer for a claim; 1 unless set */
    const char *cdi_id;   /* instead of vendor.example/gpu=<claim> */
    const char *share_id; /* NULL: none */
    bool names_requests;  /* "r0" for each device */
    bool is_generation_a; /* of v1alpha3 */
    int n_prepare;        /* calls */
    int n_unprepare;
    int n_claims; /* of the last call */
    int n_connections;
    uint64_t deadline_ms;
    struct dv_buf methods;        /* of the calls, each once after the other, with a space */
    struct dv_map prepared;       /* by uid */
    struct dv_list held;          /* calls that wait */
    struct dv_server_call *watch; /* of health or offers; NULL: nobody watches */
    int n_watches;
    int n_unrecorded; /* claims that were asked for without a record on the disk */
    struct dv_plugin_registration registration;
    int n_registered;
    struct dv_err err; /* of its registration */
};

/* ---- the API ---- */

struct api {
    struct dv_cluster cluster;
    struct host *host;
    struct dv_map objects; /* "<kind>/<namespace>/<name>" */
    struct dv_buf wiped;   /* the selector of each collection that was deleted, with a ';' */
    int n_requests;
    int n_until_failure; /* 1: the next one; 0: none */
    bool fails_wiping;
    bool holds; /* answers nothing */
    struct dv_list held;
};

extern const struct dv_cluster_engine api_engine;

struct host {
    struct rig rig;
    struct dv_store *store;
    struct test_store_faults faults;
    struct dv_claim_manager_options options;
    struct dv_claim_manager *claims;
    struct api api;
    struct dv_buf pods_changed; /* uids, each with a space */
    struct dv_buf metrics;      /* "PrepareResources ok;" "<method> OK;" */
    struct dv_buf gone_pods;    /* uids that are not wanted, with a space each */
    int n_serving;              /* drivers */
};

int host_start(void **state);
int host_end(void **state);
void host_open(struct host *host); /* the manager, from what the store has */
void host_close(struct host *host);
/* As after a crash: what is not on the disk by now is lost, and what is comes back. */
void host_die(struct host *host);
void host_die_at_write(struct host *host, uint64_t n); /* 1: the next */
bool host_has_died(const struct host *host);           /* a write was lost */
void host_come_back(struct host *host);

void host_wait(struct host *host, bool (*is_met)(void *ctx), void *ctx);
void host_wait_count(struct host *host, const int *count, int at_least);
void host_wait_text(struct host *host, const struct dv_buf *buf, const char *text);
/* Turns the clock, and lets what is due happen. */
void host_advance(struct host *host, uint64_t ms);
/* A few turns, for what should not happen. */
void host_settle(struct host *host);
void host_turn(struct host *host); /* one of the loop */

/* Serves on <dir>/<file>, registers, and waits until it is connected. */
void driver_start(struct driver *driver, struct host *host, const char *name, const char *file);
void driver_serve(struct driver *driver, struct host *host, const char *name, const char *file);
void driver_register(struct driver *driver);
void driver_deregister(struct driver *driver);
void driver_stop(struct driver *driver);   /* the process ends; what it prepared stays */
void driver_end(struct driver *driver);    /* and its memory */
void driver_answer(struct driver *driver); /* what it holds, in its manner */
/* To who watches its health, or what it offers. */
void driver_send(struct driver *driver, dv_str message);
/* "pool/dev=1:message ..." with the numbers of the protocol. */
void driver_tell_health(struct driver *driver, const char *devices);
bool driver_has(const struct driver *driver, const char *uid);
void host_wait_connected(struct host *host, const char *driver, bool is_connected);

/* A claim "<name>" in namespace "ns" with uid "u-<name>", reserved for the pods and allocated from
 * the drivers, both between spaces. */
void host_add_claim(struct host *host, const char *name, const char *pods, const char *drivers);
void host_add_claim_json(struct host *host, const char *json);
void host_remove_claim(struct host *host, const char *name);
/* A pod in namespace "ns" with uid = name, with a container "c" that uses all claims whole. */
const struct dv_api_pod *host_pod(struct host *host, const char *name, const char *claims);
const struct dv_api_pod *host_pod_json(struct host *host, const char *json);

/* An operation and how it ended. */
struct pending {
    struct dv_claim_operation operation;
    struct dv_err err;
    int n_done;
};
void pending_prepare(struct host *host, struct pending *pending, const struct dv_api_pod *pod);
void pending_unprepare(struct host *host, struct pending *pending, const char *pod);
/* Until it has ended; the error's text, or "". */
const char *pending_end(struct host *host, struct pending *pending);
const char *host_prepare(struct host *host, const struct dv_api_pod *pod);
const char *host_unprepare(struct host *host, const char *pod);

/* "prepared gpu.example.com:1 p1 p2"; "-": no record. */
const char *host_claim(struct host *host, const char *name);
/* The CDI names of container "c", between spaces; or the error. */
const char *host_names(struct host *host, const struct dv_api_pod *pod);

#endif
