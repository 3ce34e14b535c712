/* bench_node.h - a davitd of its own for a benchmark, with plugins and calls in this process. What
 * fails ends the program. */
#ifndef DV_DAEMON_BENCH_NODE_H
#define DV_DAEMON_BENCH_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "grpc/grpc.h"
#include "loop/loop.h"

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;
struct dv_arena;

#define WAIT_MS 120000u

_Noreturn void die(const char *what, const struct dv_err *err); /* err: NULL for a wait in vain */

/* ---- the daemon ---- */

struct node {
    struct dv_loop *loop;
    const char *dir; /* of all it has */
    pid_t pid;
    struct dv_channel *channel; /* davit.sock */
    struct dv_channel *kubelet; /* kubelet.sock */
    uint64_t ready_us;          /* from exec to `ready` */
    int out[2];
};

/* In directories under `dir`, which is kept; `listen` is the option. */
void node_start(struct node *node, struct dv_loop *loop, const char *dir, const char *davitd,
                const char *listen);
void node_stop(struct node *node);
uint64_t node_cpu_us(const struct node *node);
double node_rss_mb(const struct node *node);
void remove_tree(const char *path);

/* ---- a plugin ---- */

struct plugin {
    struct dv_server *server;
    char resource[64];
    char endpoint[64];
    size_t n_devices;
    size_t i_sick; /* SIZE_MAX: none */
    struct dv_server_call *stream;
};

void plugin_open(struct plugin *plugin, const struct node *node, unsigned number, size_t n_devices);
void plugin_register(const struct node *node, const struct plugin *plugin);
void send_list(struct plugin *plugin);
void wait_allocatable(const struct node *node, const char *resource, uint64_t n);

/* ---- calls that are waited for ---- */

struct wait {
    struct dv_call call;
    struct dv_arena *arena;
    const struct ProtobufCMessageDescriptor *type;
    void *answer;
    struct dv_err err;
    bool is_done;
    uint64_t start_ns;
    uint64_t end_ns;
    void (*then)(struct wait *wait);
    void *ctx;
};

void start(struct wait *wait, const struct node *node, struct dv_channel *channel,
           const char *method, const struct ProtobufCMessage *request);
void run(struct wait *wait, const struct node *node, struct dv_channel *channel, const char *method,
         const struct ProtobufCMessage *request);

#endif
