/* davit/driver.h - device plugins for Kubernetes nodes, in C (libdavit-driver).
 *
 * You say which resource you offer, which devices there are, and what a container gets with each.
 * The library does the rest of the protocol (v1beta1): it serves the plugin's socket, registers
 * with the node agent (a kubelet or davitd), registers again whenever the agent or a socket file
 * was replaced, and sends every change of your devices to all who watch.
 *
 *     struct davit_device_plugin_options options = {
 *         .resource = "example.com/tty",
 *         .allocate = allocate,
 *     };
 *     struct davit_device device = {.id = "ttyS0", .is_healthy = true};
 *
 *     driver = davit_driver_new(&error);
 *     plugin = davit_device_plugin_open(driver, &options, &error);
 *     davit_device_plugin_set_devices(plugin, &device, 1, &error);
 *     davit_driver_run(driver);
 *
 *     static void allocate(void *ctx, struct davit_call *call,
 *                          const struct davit_allocate_request *request)
 *     {
 *         for (size_t i = 0; i < request->n_ids; i++)
 *             davit_allocate_add_device(call, path_of(request->ids[i]), NULL, "rw");
 *         davit_call_finish(call);
 *     }
 *
 * Threads: a driver and all that belongs to it are used on one thread, the one that runs it, and
 * every callback runs there. Other threads wake it through a descriptor: see davit_poll_open.
 *
 * Text is UTF-8 and ends with a NUL. What you pass is copied unless it says "keeps". Handles are
 * opaque; pointers in a callback's parameters are valid as long as said there.
 *
 * Failures: a function that can fail returns false or NULL, and then fills in `error`, which may
 * be NULL if you do not want to know. Running out of memory aborts. What depends on the world
 * around (an agent that is not there, a directory that comes later) is not an error of these
 * functions: it is tried again for ever, with growing pauses, and told to `event`. */
#ifndef DAVIT_DRIVER_H
#define DAVIT_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "davit/davit.h" /* IWYU pragma: export */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the library's own log ---- */

enum davit_log_level {
    DAVIT_LOG_ERROR,
    DAVIT_LOG_WARN,
    DAVIT_LOG_INFO,
    DAVIT_LOG_DEBUG,
    DAVIT_LOG_TRACE
};

/* Nothing is logged unless you ask for it, once, before the first driver: what is more verbose
 * than `level` is left out. `write` gets whole lines of n bytes, newline included, not
 * NUL-terminated; NULL: they go to file descriptor 2. */
DAVIT_API void davit_log_to(enum davit_log_level level,
                            void (*write)(void *ctx, enum davit_log_level level, const char *line,
                                          size_t n),
                            void *ctx);

/* ---- a driver: the event loop, and what lives on it ---- */

struct davit_driver;

/* SIGPIPE is set to be ignored where it still kills. */
DAVIT_API struct davit_driver *davit_driver_new(struct davit_error *error);
/* Closes all that belongs to it, tells the agent good-bye and removes the socket files. Not from
 * within a callback. NULL is fine. */
DAVIT_API void davit_driver_free(struct davit_driver *driver);

/* Serves until davit_driver_stop. May be called again. */
DAVIT_API void davit_driver_run(struct davit_driver *driver);
/* Makes davit_driver_run return, after the callback that runs now. Not for signal handlers. */
DAVIT_API void davit_driver_stop(struct davit_driver *driver);

/* `raised` runs on the loop whenever the signal has arrived; until the driver is freed. */
DAVIT_API bool davit_driver_on_signal(struct davit_driver *driver, int signum,
                                      void (*raised)(void *ctx, int signum), void *ctx,
                                      struct davit_error *error);

#define DAVIT_READABLE 1u
#define DAVIT_WRITABLE 2u

/* Your own descriptors on the driver's loop: sockets, inotify, timerfd, an eventfd that another
 * thread writes to. */
struct davit_poll;

/* `ready` runs with those of `events` that hold, again and again while they do; a hang-up or an
 * error shows as ready too, and your next read or write tells which. The descriptor stays yours. */
DAVIT_API struct davit_poll *davit_poll_open(struct davit_driver *driver, int fd, unsigned events,
                                             void (*ready)(void *ctx, unsigned events), void *ctx,
                                             struct davit_error *error);
/* What to wait for from now on; 0: nothing. */
DAVIT_API void davit_poll_set(struct davit_poll *poll, unsigned events);
/* `ready` does not run again; close the descriptor after this, not before. NULL is fine. */
DAVIT_API void davit_poll_close(struct davit_poll *poll);

/* ---- device plugins ---- */

#define DAVIT_DEVICE_PLUGINS_DIR "/var/lib/kubelet/device-plugins"
#define DAVIT_PLUGINS_REGISTRY_DIR "/var/lib/kubelet/plugins_registry"

/* How a plugin makes itself known; one of them, or both.
 * Classic: it calls Register on kubelet.sock. Works with every kubelet.
 * Watcher: its socket in plugins_registry/ is found. It has no part in device-plugins/ then. */
#define DAVIT_REGISTER_CLASSIC 1u
#define DAVIT_REGISTER_WATCHER 2u

struct davit_device_plugin;
/* A question of the agent that waits for your answer. */
struct davit_call;

struct davit_device {
    const char *id; /* unique in the list; Kubernetes documents up to 63 characters */
    bool is_healthy;
    const int *numa_nodes; /* that it is near to; none: its place is not known */
    size_t n_numa_nodes;
};

/* Valid until the call is ended. */
struct davit_allocate_request {
    const char *const *ids; /* of the devices that one container gets: at least one, all in your
                               list, none twice */
    size_t n_ids;
};

/* Valid until the call is ended. */
struct davit_prefer_request {
    const char *const *available; /* to choose from, those of must_include among them */
    size_t n_available;
    const char *const *must_include;
    size_t n_must_include;
    size_t size; /* how many to choose: n_must_include to n_available */
};

enum davit_event_kind {
    DAVIT_SERVING,    /* the plugin's socket takes calls */
    DAVIT_REGISTERED, /* an agent has accepted the plugin */
    DAVIT_LOST,   /* the agent watches no more: it has ended, or will be registered with again */
    DAVIT_PROBLEM /* something failed; it is tried again, or waits for the agent to try again */
};

struct davit_event {
    enum davit_event_kind kind;
    unsigned through;         /* DAVIT_REGISTER_CLASSIC or DAVIT_REGISTER_WATCHER */
    const char *socket;       /* path of the plugin's socket for that */
    uint64_t retry_ms;        /* DAVIT_PROBLEM: until the next attempt; 0: it is the agent's turn */
    struct davit_error error; /* DAVIT_PROBLEM, DAVIT_LOST: what happened */
};

/* Zeroed, then filled in. Copied, texts too; `ctx` is handed to the callbacks.
 *
 * allocate, prestart and prefer answer with davit_call_finish or davit_call_fail, exactly once,
 * before they return or later; the agent may wait for some time, but pods start only then. */
struct davit_device_plugin_options {
    const char *resource;      /* "example.com/tty" */
    const char *socket_dir;    /* where kubelet.sock is; NULL: DAVIT_DEVICE_PLUGINS_DIR */
    const char *socket_name;   /* in socket_dir; NULL: "example.com_tty.sock". In registry_dir it is
                                  "example.com_tty-reg.sock" accordingly */
    const char *registry_dir;  /* NULL: DAVIT_PLUGINS_REGISTRY_DIR */
    unsigned register_through; /* DAVIT_REGISTER_*; 0: DAVIT_REGISTER_CLASSIC */
    void *ctx;
    /* A container gets these devices: say with davit_allocate_add_* what it needs for them. Runs
     * at the pod's admission, once for each container. */
    void (*allocate)(void *ctx, struct davit_call *call,
                     const struct davit_allocate_request *request);
    /* NULL: not wanted. Each time before a container with these devices starts; the agent waits
     * 30 s. The ids are valid until the call is ended. */
    void (*prestart)(void *ctx, struct davit_call *call, const char *const *ids, size_t n_ids);
    /* NULL: the agent chooses. Choose with davit_prefer_add_id; it need not be followed. */
    void (*prefer)(void *ctx, struct davit_call *call, const struct davit_prefer_request *request);
    /* NULL: not told. The event is valid for the callback only. */
    void (*event)(void *ctx, const struct davit_event *event);
};

/* Serves and registers as soon as the driver runs. DAVIT_INVALID_ARGUMENT: the options. */
DAVIT_API struct davit_device_plugin *
davit_device_plugin_open(struct davit_driver *driver,
                         const struct davit_device_plugin_options *options,
                         struct davit_error *error);
/* Removes the sockets, ends the calls that you still hold, and runs no callback any more. May be
 * called from within one. NULL is fine. */
DAVIT_API void davit_device_plugin_close(struct davit_device_plugin *plugin);

/* The devices that there are, all of them; an empty list is one too. At any time: what differs
 * goes out to all who watch, once for all changes that are made together. Until the first list is
 * set, who watches waits. A device that is in use stays in use when it leaves the list; let it
 * turn unhealthy instead, and the pod that holds it is told.
 * DAVIT_INVALID_ARGUMENT: an id that is empty, there twice or no UTF-8, or a negative NUMA node.
 * DAVIT_RESOURCE_EXHAUSTED: a list of more than 16 MiB. Nothing changes then. */
DAVIT_API bool davit_device_plugin_set_devices(struct davit_device_plugin *plugin,
                                               const struct davit_device *devices, size_t n_devices,
                                               struct davit_error *error);
/* Of one device in the list. DAVIT_NOT_FOUND: there is none with this id. */
DAVIT_API bool davit_device_plugin_set_health(struct davit_device_plugin *plugin, const char *id,
                                              bool is_healthy, struct davit_error *error);

/* ---- answering ---- */

/* The answer is complete; the call is gone. A mistake in what was added (a path that is not
 * absolute, text that is no UTF-8) fails the call instead, with a text that names it. */
DAVIT_API void davit_call_finish(struct davit_call *call);
/* The agent gets this error; the call is gone. */
DAVIT_API void davit_call_fail(struct davit_call *call, enum davit_code code, const char *format,
                               ...) DAVIT_PRINTF(3, 4);
/* Nobody waits for the answer any more. The call is still to be finished. */
DAVIT_API bool davit_call_is_cancelled(const struct davit_call *call);

/* In an answer to `allocate`: what the container gets. */
DAVIT_API void davit_allocate_add_env(struct davit_call *call, const char *name, const char *value);
DAVIT_API void davit_allocate_add_mount(struct davit_call *call, const char *host_path,
                                        const char *container_path, bool is_read_only);
/* A device node. container_path NULL: the same; permissions: of the letters r, w, m. */
DAVIT_API void davit_allocate_add_device(struct davit_call *call, const char *host_path,
                                         const char *container_path, const char *permissions);
DAVIT_API void davit_allocate_add_annotation(struct davit_call *call, const char *key,
                                             const char *value);
/* "vendor.com/class=name", of a CDI spec on the node. */
DAVIT_API void davit_allocate_add_cdi(struct davit_call *call, const char *name);

/* In an answer to `prefer`: one of the chosen devices. */
DAVIT_API void davit_prefer_add_id(struct davit_call *call, const char *id);

#ifdef __cplusplus
}
#endif

#endif
