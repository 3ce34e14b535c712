/* sample.h - what the files of davit-sample-device-plugin share.
 *
 *   sample_device_plugin.c   the plugin: callbacks, events, signals, main
 *   sample_options.c         the command line
 *   sample_devices.c         which devices there are
 *   sample_scan.c            devices that are nodes of the host, found by patterns
 *   sample_prefer.c          which of them to prefer
 *   sample_commands.c        what it does on command
 *   sample_fault.c           mistakes that it makes when asked to
 *   sample_program.h         command lines, control sockets: what the samples have in common */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include "davit/driver.h"
#include "sample_program.h"

/* ---- options ---- */

enum sample_preference {
    SAMPLE_PREFER_NONE, /* the agent chooses */
    SAMPLE_PREFER_LOWEST,
    SAMPLE_PREFER_HIGHEST,
    SAMPLE_PREFER_PACKED, /* on as few NUMA nodes as can be */
};

#define SAMPLE_PATTERNS_MAX 16
#define SAMPLE_NODES_MAX 1024 /* NUMA nodes of a machine: what kernels are built for at most */
#define SAMPLE_NUMA_MAX 8     /* nodes of one device */
#define SAMPLE_NUMAS_MAX 64   /* places in --numa */

/* The NUMA nodes that a device is near to; none: not known. */
struct sample_numa {
    int nodes[SAMPLE_NUMA_MAX];
    size_t n;
};

struct sample_options {
    const char *resource;
    const char *patterns[SAMPLE_PATTERNS_MAX];
    size_t n_patterns;
    size_t n_virtual;
    bool has_virtual;
    struct sample_numa numas[SAMPLE_NUMAS_MAX]; /* for device after device, from the first again */
    size_t n_numas;                             /* 0: as sysfs has it */
    const char *kubelet_dir;
    const char *socket_name; /* NULL: after the resource */
    unsigned register_through;
    enum sample_preference preference;
    bool wants_prestart;
    const char *cdi_kind; /* NULL: no CDI names */
    const char *env;      /* NULL: no env */
    const char *control;  /* NULL: no control socket */
    const char *fault;    /* a mistake to make; NULL: none */
    unsigned interval_s;
    bool has_log;
    enum davit_log_level log;
};

/* Returns -1 to go on, or the exit code: after --help and --version, and on mistakes. */
int sample_options_parse(int argc, char **argv, struct sample_options *options);
/* "0", "0+1", "-" (none); false when it is none of them. */
bool sample_numa_parse(const char *text, struct sample_numa *numa);

/* ---- devices ---- */

struct sample_device {
    const char *id;
    char *id_text; /* the same, to be freed */
    char *path;    /* NULL: a virtual one */
    struct sample_numa numa;
    bool is_gone;    /* its node is not there */
    bool is_broken;  /* by a signal or the control socket */
    bool is_removed; /* by the control socket: not in the list, though its node may be there */
};

struct sample_devices {
    const struct sample_options *options;
    struct sample_device **v; /* in order of appearance; none ever leaves */
    size_t n;
    size_t size; /* allocated */
    void *by_id; /* the same, as tsearch has them */
    size_t next; /* that SIGUSR1 toggles */
};

void sample_devices_init(struct sample_devices *devices, const struct sample_options *options);
void sample_devices_fini(struct sample_devices *devices);
/* NULL: there is none, or it was removed. */
struct sample_device *sample_devices_find(const struct sample_devices *devices, const char *id);
/* Those that were removed, too. */
struct sample_device *sample_devices_find_any(const struct sample_devices *devices, const char *id);
/* Copies both; path may be NULL. There must be none of that id. It is healthy, and placed as --numa
 * says, if that was given. */
struct sample_device *sample_devices_add(struct sample_devices *devices, const char *id,
                                         const char *path);
bool sample_device_is_healthy(const struct sample_device *device);
/* Turns the next one, from the first to the last and around. */
void sample_devices_toggle_next(struct sample_devices *devices);
void sample_devices_heal(struct sample_devices *devices);
/* Tells the library, which finds out what differs. */
bool sample_devices_push(const struct sample_devices *devices, struct davit_device_plugin *plugin,
                         struct davit_error *error);

/* Looks for nodes that match the patterns. One that is not there any more stays in the list and
 * turns unhealthy, so that the pod which holds it is told; it heals when it comes back. */
void sample_scan(struct sample_devices *devices);
/* A descriptor that is readable when a directory with nodes has changed (-1: not available).
 * Reading is up to the caller. Call sample_scan_watch again after each scan: directories come. */
int sample_scan_open(void);
void sample_scan_watch(int fd, const struct sample_options *options);

/* Chooses for `prefer`. */
void sample_prefer(const struct sample_devices *devices, struct davit_call *call,
                   const struct davit_prefer_request *request);

/* ---- the plugin ---- */

struct sample {
    struct sample_options options;
    struct sample_devices devices;
    struct davit_driver *driver;
    struct davit_device_plugin *plugin;
    struct sample_control *control;
    struct sample_held *held; /* calls that get no answer while it hangs */
    size_t n_held;
    size_t n_failures; /* of the next calls of Allocate */
    bool is_hanging;
    unsigned serving; /* DAVIT_REGISTER_* whose socket takes calls */
    bool was_ready;
};

/* ---- faults (sample_fault.c) ---- */

/* False: there is no such fault. */
bool sample_fault_check(const char *name);
/* Before anything is opened; ends the program, or changes the devices. */
void sample_fault_start(struct sample *sample);
/* True: it has answered. */
bool sample_fault_allocate(struct sample *sample, struct davit_call *call,
                           const struct davit_allocate_request *request);
bool sample_fault_prestart(struct sample *sample, struct davit_call *call);
/* True: the signal is passed over. */
bool sample_fault_signal(struct sample *sample, int signum);

/* Misbehaviours that can be asked for. */
void sample_hang(struct sample *sample, bool is_hanging); /* false: the calls held are answered */

extern const struct sample_command sample_commands[];
extern const size_t sample_n_commands;

#endif
