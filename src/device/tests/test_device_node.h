/* test_device_node.h - a state for tests, with plugins that answer at once, and shorthand for
 * everything.
 *
 *     devices   "d1 d2! d3@0 d4@0,1 d5@"    d2 is unhealthy, d3 is on node 0, d4 on two nodes,
 *                                           d5 has a topology without nodes
 *     limits    "a.io/x=2 b.io/y=1"
 *     ids       "d1 d2", in the order of their bytes */
#ifndef DV_DEVICE_TEST_DEVICE_NODE_H
#define DV_DEVICE_TEST_DEVICE_NODE_H

#include "support/dvtest.h"

#include "device/device.h"

#define GPU "vendor.io/gpu"
#define NIC "vendor.io/nic"

struct node {
    struct dv_device_state *state;
    struct dv_arena *arena; /* of the test */
    uint64_t now_ns;
    /* How plugins behave. */
    const char *preferred; /* ids; NULL: they have no preference */
    bool needs_pre_start;
    enum dv_code allocate_fails; /* DV_OK: it does not */
    enum dv_code preferred_fails;
    enum dv_code pre_start_fails;
    bool is_empty;                          /* the allocate response has no containers */
    const dv_str *response;                 /* a ContainerAllocateResponse; NULL: an empty one */
    void (*while_asked)(struct node *node); /* runs before GetPreferredAllocation is answered */
    /* What they were asked last, and how often. */
    dv_str available;
    dv_str must_include;
    int32_t size;
    dv_str pre_started;
    unsigned n_preferred;
    unsigned n_allocate;
    unsigned n_pre_start;
    /* How the last op ended. */
    enum dv_device_failure failure;
    struct dv_err err;
};

/* cmocka's set-up and tear-down; sources are ready, plugins answer well. */
int node_setup(void **state);
int node_setup_strict(void **state);
int node_teardown(void **state);
#define node_test(f) cmocka_unit_test_setup_teardown(f, node_setup, node_teardown)
#define strict_node_test(f) cmocka_unit_test_setup_teardown(f, node_setup_strict, node_teardown)

/* Connects a plugin on "<socket>" and sends its list. */
void node_register(struct node *node, const char *resource, const char *socket,
                   const char *devices);
void node_connect(struct node *node, const char *resource, const char *socket);
/* Applies a list; the test fails when it is refused. */
struct dv_device_diff node_list(struct node *node, const char *resource, const char *devices);
dv_str node_list_bytes(struct node *node, const char *devices);
void node_disconnect(struct node *node, const char *resource, const char *socket);

/* True when all was allocated, or started; otherwise `failure` and `err` tell. The pod is active.
 */
bool node_allocate(struct node *node, const char *pod, const char *container,
                   enum dv_device_container_kind kind, const char *limits);
/* A regular container "c", with an affinity: nodes as "0,1", NULL for none. */
bool node_allocate_near(struct node *node, const char *pod, const char *limits, const char *nodes);
bool node_start(struct node *node, const char *pod, const char *container, const char *limits);

/* "d1 d2"; NULL when nothing is recorded. */
const char *node_held(struct node *node, const char *pod, const char *container,
                      const char *resource);
/* As held, by node: "-1:d3 0:d1,d2". */
const char *node_placed(struct node *node, const char *pod, const char *container,
                        const char *resource);
/* "capacity/allocatable", "-" when the resource is not reported, "removed". */
const char *node_capacity(struct node *node, const char *resource);
struct dv_device_resource_info node_info(struct node *node, const char *resource);

/* The request of such a container, in the node's arena. */
struct dv_device_request node_request(struct node *node, const char *pod, const char *container,
                                      enum dv_device_container_kind kind, const char *limits);
/* Moves all that was to be saved into a new state, as a restart does; sources are not ready. */
void node_restart(struct node *node);

#endif
