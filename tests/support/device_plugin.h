/* device_plugin.h - a device plugin on the test's own loop, with the manners that the test wants.
 *
 *     devices   "g0 g1! g2"    g1 is unhealthy */
#ifndef DV_TESTS_DEVICE_PLUGIN_H
#define DV_TESTS_DEVICE_PLUGIN_H

#include <stdbool.h>

#include "base/err.h"
#include "grpc/grpc.h"
#include "loop/loop.h"

struct device_plugin {
    /* To be set before it starts, or later: how it behaves. */
    bool needs_pre_start;
    bool refuses_list;   /* ends the stream at once, with an error */
    bool is_silent;      /* sends no list until it is told to */
    bool holds_allocate; /* does not answer; device_plugin_answer does */
    const char *node;    /* a device node in each of its answers; NULL: none */
    enum dv_code fails;  /* what Allocate fails with; DV_OK: it does not */
    enum dv_code fails_at_options;

    struct dv_loop *loop;
    struct dv_server *server; /* NULL: it does not run */
    const char *resource;
    const char *devices;
    char path[128];
    char name[64];
    struct dv_server_call *stream; /* of its list; NULL: nobody watches */
    struct dv_server_call *held;   /* of Allocate */
    int n_options;
    int n_lists;
    int n_allocate;
    int n_pre_start;
    /* Of its registration. */
    struct dv_channel *channel;
    struct dv_call call;
    int n_registered;  /* that ended, well or not */
    struct dv_err err; /* of the last; DV_OK: it went well */
};

/* Serves on <dir>/<name>; `devices` and `resource` are kept. */
void device_plugin_start(struct device_plugin *plugin, struct dv_loop *loop, const char *dir,
                         const char *name, const char *resource, const char *devices);
/* Calls Register on <dir>/kubelet.sock; see n_registered. */
void device_plugin_register(struct device_plugin *plugin, const char *dir);
/* Sends another list. Kept. */
void device_plugin_list(struct device_plugin *plugin, const char *devices);
void device_plugin_end_list(struct device_plugin *plugin);
/* Answers the Allocate that it holds. */
void device_plugin_answer(struct device_plugin *plugin);
/* The process ends. */
void device_plugin_kill(struct device_plugin *plugin);

#endif
