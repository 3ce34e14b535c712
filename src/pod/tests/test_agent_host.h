/* test_agent_host.h - a node with an API of its own on a loop with a virtual clock: a device plugin
 * and a DRA driver in the same process, stores on the disk, an API that fails on request. */
#ifndef DV_POD_TEST_AGENT_HOST_H
#define DV_POD_TEST_AGENT_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "pod/pod.h"
#include "pod/runner.h"
#include "resource/resource.h"
#include "support/device_plugin.h"
#include "support/dra_driver.h"
#include "topology/topology.h"

#define GPU "vendor.io/gpu"
#define DRIVER "dra.example.com"
#define NODE "n1"

/* The API as the node's parts see it: each request may fail. */
struct shaky {
    struct dv_cluster cluster;
    struct dv_cluster *inner;
    struct dv_list failing; /* requests */
    int n_requests;
    int n_pod_requests;
    int n_until_failure; /* 1: the next; 0: none */
    bool fails_after;    /* it is done, and the answer is lost */
    bool has_conflict;   /* then it is a conflict that is answered */
    bool is_down;        /* all fail */
};

extern const struct dv_cluster_engine shaky_engine;

struct world {
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    struct dv_arena *arena; /* for what tests make; until the end */
    char dir[64];
    char plugins[96];
    char specs[96];             /* of CDI; there is one for `SPEC` */
    struct dv_store *store;     /* the node's */
    struct dv_store *api_store; /* and the API's: one may end without the other */
    struct dv_numa_machine machine;
    struct dv_topology_config topology;
    struct dv_embedded *api;
    struct shaky shaky;
    struct dv_device_manager *devices;
    struct dv_claim_manager *claims;
    struct dv_cdi_dirs *cdi;
    struct dv_pods *pods;
    struct dv_recorder *recorder;
    struct dv_runner *runner; /* with a runtime only */
    struct dv_agent *agent;
    struct device_plugin plugin; /* with the devices of `devices` */
    struct dra_driver driver;
    struct cri_runtime *runtime; /* NULL: the node has none */
    const char *device_ids;
    const char *boot_id;
    int fails_at; /* the request of a renewed world that fails; 0: none */
    enum dv_ledger_mode ledger;
    struct dv_image_policy images; /* of the runner; none: they stay */
    bool has_no_agent;
    bool has_no_driver;
    bool is_strict;
    int n_closed;
    struct dv_buf log;
};

/* A CDI name that the node has a spec for. */
#define SPEC "dra.example.com/dev=d0"

int world_start(void **state);              /* all is there: devices g0 to g3, and the driver */
int world_start_with_runtime(void **state); /* and one that runs nothing runs the containers */
int world_end(void **state);
#define world_test(f) cmocka_unit_test_setup_teardown(f, world_start, world_end)
#define runtime_test(f) cmocka_unit_test_setup_teardown(f, world_start_with_runtime, world_end)
/* The node's half and the API, from what is on the disk. */
void world_open(struct world *world);
void world_close(struct world *world);
void world_close_node(struct world *world);
void world_open_node(struct world *world);
/* All ends, and begins with empty stores. */
void world_renew(struct world *world);

/* ---- time ---- */

/* Runs until nothing is due. */
void settle(struct world *world);
void turn(struct world *world, int n); /* so many turns of the loop */
/* Turns the clock, in steps, and settles after each. */
void pass(struct world *world, uint64_t ms);

/* ---- the API ---- */

/* Whole requests that do not fail, as a user makes them. The object, until the next turn; NULL:
 * DELETE. */
struct dv_object *create(struct world *world, enum dv_kind_id kind, const char *json);
void patch(struct world *world, enum dv_kind_id kind, const char *name, enum dv_subresource sub,
           const char *json);
/* grace_s: -1: the object's own. */
void delete_object(struct world *world, enum dv_kind_id kind, const char *name, int64_t grace_s);
void delete_pod(struct world *world, const char *name, int64_t grace_s);
const struct dv_api_pod *pod_of(const struct world *world, const char *name); /* NULL: none */
const char *uid_of(const struct world *world, const char *name);
/* Text with its arguments, until the end of the test. */
#define text(world, ...) dv_str_to_c(dv_str_printf((world)->arena, __VA_ARGS__), (world)->arena)

/* A pod of this node with a container "c" and so many GPUs; `claim` may be NULL. */
void create_pod(struct world *world, const char *name, int n_gpus, const char *claim);
void create_pod_with(struct world *world, const char *name, const char *metadata);
void create_claim(struct world *world, const char *name);
/* For the driver's device, and for this pod. */
void allocate_claim(struct world *world, const char *name, const char *pod);

/* ---- what is ---- */

/* "Running", "Pending FailedPrepareDynamicResources", "Failed UnexpectedAdmissionError", "-". */
#define READY "Pending DevicesReady" /* it has all that it asked for, and nobody has started it */
const char *phase_of(struct world *world, const char *name);
/* Passes time until it is so. */
void expect(struct world *world, const char *pod, const char *phase);
/* And that the node has this: "p1=g0,g1+c1 p2=g3 ", by name; claims after the '+'. */
const char *held(struct world *world);
void expect_held(struct world *world, const char *wanted);
/* Events of this reason that are there, and their texts, a line each. */
size_t n_events(struct world *world, const char *reason, const char **message);

/* ---- by hand ---- */

/* As davit admit, options and release; the error's text, or NULL. */
const char *admit_by_hand(struct world *world, const char *json);
const char *start_by_hand(struct world *world, const char *pod);
/* As davit container started and ended. */
const char *tell_started(struct world *world, const char *pod, const char *container, pid_t pid);
const char *tell_ended(struct world *world, const char *pod, const char *container, int32_t code);
const char *release_by_hand(struct world *world, const char *pod);
/* A row of the store, as if another davitd had written it. */
void put_pod(struct world *world, const char *uid, dv_str row);

#endif
