/* test_plugin_node.h - a kubelet directory on a loop with a virtual clock, plugins that misbehave
 * on request, and handlers that do; for this module's tests. */
#ifndef DV_PLUGIN_TEST_PLUGIN_NODE_H
#define DV_PLUGIN_TEST_PLUGIN_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "plugin/plugin.h"

/* A handler that writes down its calls, and fails, holds or cancels as told. */
struct fake_handler {
    struct dv_loop *loop;
    struct dv_buf calls; /* "validate(name,endpoint) start(...) deregister(...) " */
    int n_validate;
    int n_start;
    int n_cancel;
    int n_deregister;
    int n_started;     /* registrations that ended well and were not deregistered */
    int fail_validate; /* the first so many */
    int fail_start;    /* likewise */
    const char *text;  /* of validation failures, when longer than an error */
    bool holds;        /* does not answer `start`; the test does, with fake_handler_answer */
    bool ignores_cancel;
    bool answers_at_once; /* within `start` and `cancel`, against the contract */
    struct dv_plugin_registration *held;
};

struct node {
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    char dir[64];      /* the kubelet's */
    char registry[96]; /* plugins_registry in it */
    struct dv_plugins *plugins;
    struct fake_handler device; /* type DevicePlugin */
    struct fake_handler dra;    /* type DRAPlugin */
    bool accepts_any_endpoint;
    dv_str endpoint_root;  /* instead of the kubelet's directory */
    struct dv_buf changes; /* "a.sock=registered " each */
    bool closes_in_change;
    int n_closed;
    struct dv_buf log;
};

int node_start(void **state);
int node_end(void **state);
void node_open(struct node *node);
void node_open_and_scan(struct node *node); /* and waits until it has scanned */
void node_close(struct node *node);

/* Where a name in the registry is; one of a few buffers. */
const char *node_path(const struct node *node, const char *name);
/* A socket file at the path that nobody listens on. */
void make_socket(const char *path);
void make_dir(const char *path);
void make_file(const char *path);

void fake_handler_answer(struct fake_handler *handler, const struct dv_err *err);

/* The view of a socket; false when it is not listed. */
bool node_view(const struct node *node, const char *name, struct dv_plugin_view *view);

struct dv_err last_err(struct node *node, const char *name); /* in its view */

/* ---- waiting: all run the loop until it holds, or fail the test ---- */

void node_wait(struct node *node, bool (*is_met)(void *ctx), void *ctx);
void wait_state(struct node *node, const char *name, enum dv_plugin_state state);
void wait_count(struct node *node, const int *count, int at_least);
void wait_actual(struct node *node, size_t n);
void wait_desired(struct node *node, size_t n);
void wait_log(struct node *node, const char *text);
/* Lets everything that is due happen, looks at the file system included. */
void settle(struct node *node);
void advance(struct node *node, uint64_t ms);
size_t count_text(const struct dv_buf *buf, const char *text);

/* ---- plugins ---- */

enum fake_step {
    AT_NOTHING,
    AT_INFO,   /* when GetInfo is asked */
    AT_NOTIFY, /* when it is told */
    AFTER_NOTIFY,
};

struct fake_plugin {
    const char *type; /* NULL: "DevicePlugin" */
    const char *plugin_name;
    const char *endpoint;
    const char *versions[4];
    const void *info; /* instead of all that: these bytes */
    size_t info_bytes;
    int fail_info;           /* the first so many calls */
    enum dv_code fails_with; /* DV_OK: DV_INTERNAL */
    int fail_notify;         /* likewise */
    enum fake_step holds_at;
    enum fake_step dies_at;
    bool unlinks_when_dying;

    struct node *node;
    struct dv_server *server;
    struct dv_server_call *held;
    char path[128];  /* in the registry */
    char inner[128]; /* where the server listens; the other is a hard link to it */
    int n_info;
    int n_ok;
    int n_refused;
    uint64_t info_timeout_ms;
    uint64_t notify_timeout_ms;
    struct dv_buf error; /* of the latest refusal */
};

void fake_plugin_start(struct fake_plugin *plugin, struct node *node, const char *name);
/* The process ends without a word: the socket file stays. */
void fake_plugin_kill(struct fake_plugin *plugin);
/* Ends in order: the socket file goes first. */
void fake_plugin_stop(struct fake_plugin *plugin);
void fake_plugin_end(struct fake_plugin *plugin); /* whatever state it is in */

/* A plugin beside the bad one, of the other type, comes and goes and does not notice. */
void assert_others_get_on(struct node *node);

#endif
