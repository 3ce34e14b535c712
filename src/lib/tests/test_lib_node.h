/* test_lib_node.h - a node for this module's tests: directories, an agent that plugins register
 * with, and a client of the plugin, all on the driver's loop with a virtual clock. */
#ifndef DV_LIB_TEST_LIB_NODE_H
#define DV_LIB_TEST_LIB_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "davit/driver.h"
#include "grpc/grpc.h"

struct ProtobufCMessage;
struct dv_arena;

#define TEST_RESOURCE "example.com/tty"

struct node {
    struct dv_clock_virtual clock;
    struct davit_driver *driver;
    struct dv_loop *loop;
    struct dv_arena *arena;
    char dir[64];
    char plugins_dir[96];
    char registry_dir[96];
    char agent_path[128];
    char socket_path[128];   /* classic */
    char registry_path[128]; /* watcher */

    struct dv_server *agent;
    int n_refusals;                   /* of the next calls of Register */
    bool holds_registers;             /* they get no answer */
    struct dv_server_call *registers; /* the one that is held */
    int n_registers;
    struct dv_buf registered; /* "version endpoint resource prestart prefer;" each */

    struct davit_device_plugin_options options;
    struct davit_device_plugin *plugin;
    struct dv_buf events; /* "serving;" "registered;" "lost;" "problem CODE;" each */
    uint64_t retry_ms;    /* of the last event */
    struct davit_error error;
    bool closes_at_event;

    struct dv_channel *channel; /* to the plugin */
};

/* Of cmocka; the plugin is not open yet, there is no agent. */
int node_start(void **state);
int node_end(void **state);

void node_open(struct node *node); /* with node->options, and two devices: a (healthy), b (not) */
void node_close(struct node *node);
void node_set(struct node *node, const struct davit_device *devices, size_t n);
void node_connect(struct node *node, const char *path);
void node_disconnect(struct node *node);

void agent_start(struct node *node);
void agent_answer(struct node *node); /* accepts the registration that it holds */
void agent_stop(struct node *node);   /* its socket file goes, too */

/* Lets all that is due happen. */
void node_settle(struct node *node);
/* Turns the clock, and lets what is due happen. */
void node_advance(struct node *node, uint64_t ms);
/* Runs the loop until it holds, or fails the test. */
void wait_events(struct node *node, const char *events); /* all of them */
void wait_registers(struct node *node, int n);
void wait_until(struct node *node, bool (*is_met)(void *ctx), void *ctx, const char *what);

/* A call to the plugin and what came of it. */
struct probe {
    struct dv_call call;
    struct node *node;
    struct dv_err err; /* code DV_OK: success */
    bool is_done;
    int n_messages;
    struct dv_buf got; /* the last message */
};

/* ListAndWatch; got is "a+0,1 b- " for a healthy on two NUMA nodes, b not. */
void watch_start(struct probe *probe, struct node *node);
void wait_list(struct probe *probe, const char *list);
void wait_done(struct probe *probe);
void probe_fini(struct probe *probe);

/* A unary call; got is the response's bytes. */
void probe_start(struct probe *probe, struct node *node, const char *method,
                 const struct ProtobufCMessage *request);
/* The same to its end. */
void probe_run(struct probe *probe, struct node *node, const char *method,
               const struct ProtobufCMessage *request);

bool is_file(const char *path);

#endif
