/* test_dra_node.h - a node with an API for the tests of DRA: the embedded one, on the driver's loop
 * with a virtual clock, and a driver that notes what it is asked. */
#ifndef DV_LIB_TEST_DRA_NODE_H
#define DV_LIB_TEST_DRA_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "davit/dra.h"
#include "lib/tests/test_lib_node.h"
#include "support/test_store.h"

struct dv_cluster;
struct dv_embedded;
struct dv_object;
struct dv_store;

#define TEST_DRIVER "gpu.example.com"
#define TEST_NODE "node-1"
#define PREPARE_V1 "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
#define UNPREPARE_V1 "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources"
#define PREPARE_V1BETA1 "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources"
#define UNPREPARE_V1BETA1 "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources"

struct dra_node {
    struct node *node; /* directories, loop, clock, channel */
    struct dv_store *store;
    struct test_store_faults faults;
    struct dv_embedded *embedded;
    struct dv_cluster *cluster;
    struct davit_dra_options options;
    struct davit_dra *dra;
    char socket_path[160];
    char registry_path[160];
    struct dv_buf events;     /* "serving;" "registered;" "published p;" "problem CODE;" each */
    struct davit_error error; /* of the last */
    uint64_t retry_ms;
    bool closes_at_event;

    struct dv_buf asked; /* "+ns/c=pool/device,...;" prepared, "-ns/c;" unprepared */
    bool holds_calls;    /* they get no answer */
    struct davit_call *held[8];
    size_t n_held;
    const char *fails; /* claims of this name */
    bool closes_when_asked;
};

/* Of cmocka. The driver is not open yet; the Node is in the API. */
int dra_node_start(void **state);
int dra_node_start_with(void **state, unsigned gates); /* enum dv_gate; 0: all */
int dra_node_end(void **state);

void dra_open(struct dra_node *test); /* with test->options */
void dra_close(struct dra_node *test);
/* Opens it, and a channel to its DRA socket. */
void dra_open_and_connect(struct dra_node *test);
void dra_answer(struct dra_node *test, struct davit_call *call); /* as if it had not been held */

void dra_settle(struct dra_node *test);
void dra_advance(struct dra_node *test, uint64_t ms);
void wait_dra_events(struct dra_node *test, const char *events);
void wait_asked(struct dra_node *test, const char *asked);
void wait_held(struct dra_node *test, size_t n);

/* Objects, as JSON in v1. */
struct dv_object *api_create(struct dra_node *test, const char *plural, const char *namespace,
                             const char *json);
void api_update_status(struct dra_node *test, const char *plural, const char *namespace,
                       const char *name, const char *json);
void api_update(struct dra_node *test, const char *plural, const char *name, const char *json);
void api_delete(struct dra_node *test, const char *plural, const char *namespace, const char *name);
/* A claim with one device "d" of pool "p" for this driver, given for `request`. */
const char *make_claim(struct dra_node *test, const char *name, const char *request);

/* "NAME" to prepare or unprepare; several are separated by commas. UIDs are those in the API, or
 * "uid-NAME" for claims that are not there. */
void claims_start(struct probe *probe, struct dra_node *test, const char *method,
                  const char *names);
void claims_run(struct probe *probe, struct dra_node *test, const char *method, const char *names);
/* "c: r>p/d [cdi] share; c2: ! error; " in the order of the answer; or "CODE text". */
dv_str read_claims(const struct probe *probe, struct dra_node *test);

/* "00000 1/1 a,b; " for each slice, by pool and name, without what is random in the names: number,
 * generation/count, devices. */
dv_str list_slices(struct dra_node *test);
void wait_slices(struct dra_node *test, const char *slices);
/* The same, with time passing. */
void reach_slices(struct dra_node *test, const char *slices);
/* The n-th slice, by name. */
struct dv_object *nth_slice(struct dra_node *test, size_t n);

#endif
