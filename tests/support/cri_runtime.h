/* cri_runtime.h - a container runtime on the test's own loop: it runs nothing, and says that it
 * does.
 *
 * What it holds outlives its socket: cri_runtime_stop and cri_runtime_start are a restart, after
 * which everything is there as before. Every call can be made to fail, hang, come late or answer
 * badly.
 *
 * A container runs until it is told to end, by a call or by cri_runtime_end. The first word of its
 * command may say more:
 *
 *     "exit" "3"     ends with that code as soon as it has started
 *     "stubborn"     does not end at SIGTERM: StopContainer takes its whole grace period, code 137
 *     "broken"       cannot be started: StartContainer fails, and it has ended with StartError */
#ifndef DV_TESTS_CRI_RUNTIME_H
#define DV_TESTS_CRI_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "cri/cri.h"
#include "grpc/grpc.h"
#include "loop/loop.h"

struct CriV1__ContainerConfig;
struct CriV1__ExecSyncRequest;
struct CriV1__PodSandboxConfig;
struct dv_arena;
struct dv_loop;

#define CRI_IMAGE_BYTES (1u << 20)
#define CRI_METHODS (DV_CRI_IMAGE_FS_INFO + 1)

enum cri_fault_kind {
    CRI_FINE,
    CRI_FAILS,     /* does nothing, and answers with `code` and `text` */
    CRI_HANGS,     /* does nothing, and never answers */
    CRI_LATE,      /* does it, and answers after `ms` */
    CRI_LOST,      /* does it, and then fails with `code` and `text` */
    CRI_GARBAGE,   /* does nothing, and answers with bytes that are no message */
    CRI_TRUNCATED, /* does it, and answers with half of the message */
    CRI_EMPTY,     /* does nothing, and answers with an empty message */
    CRI_ODD_STATE, /* answers with a state that CRI does not have */
    CRI_HUGE,      /* does nothing, and answers with more than 16 MiB */
};

struct cri_fault {
    enum cri_fault_kind kind;
    int n; /* of how many calls; 0: of all to come */
    enum dv_code code;
    const char *text;
    uint64_t ms;
};

struct cri_sandbox {
    struct dv_link link;
    struct dv_arena *arena; /* of all this */
    char id[65];
    const struct CriV1__PodSandboxConfig *config;
    const char *handler;
    bool is_ready;
    int64_t created_at;
    char ip[32]; /* empty on the host's network */
};

struct cri_container {
    struct dv_link link;
    struct dv_arena *arena;
    char id[65];
    struct cri_sandbox *sandbox;
    const struct CriV1__ContainerConfig *config;
    int state; /* a CRI_V1__CONTAINER_STATE__... */
    int64_t created_at;
    int64_t started_at;
    int64_t finished_at;
    int exit_code;
    const char *reason;
    int n_stops; /* how often it was told to end */
};

struct cri_runtime {
    /* To be set before it starts, or later. */
    const char *version; /* of CRI */
    const char *name;
    const char *runtime_version;
    const char *config; /* JSON that a verbose Status shows; NULL: none */
    bool is_not_ready;
    bool has_no_network;
    bool has_no_conditions;
    bool has_runtime_config; /* serves RuntimeConfig: the systemd driver */
    bool has_events;
    bool ends_events;  /* ends every stream of them at once */
    bool loses_events; /* sends none */
    struct cri_fault faults[CRI_METHODS];
    const char *images[8];   /* those that are there, of CRI_IMAGE_BYTES each; NULL: free */
    const char *pinned;      /* one of them; NULL: none */
    const char *image_dir;   /* where it says that they are; NULL: it does not say */
    const char *pullable[8]; /* those that a pull brings */
    /* Answers ExecSync: the exit code; NULL: 0. */
    int (*exec)(void *ctx, const struct cri_container *container,
                const struct CriV1__ExecSyncRequest *request);
    void *ctx;

    struct dv_loop *loop;
    struct dv_server *server; /* NULL: it does not run */
    char path[128];
    struct dv_list sandboxes;
    struct dv_list containers;
    int n_calls[CRI_METHODS];
    int n_events;          /* streams of events that were asked for */
    struct dv_buf said;    /* a line for each call: "CreateContainer main" */
    struct dv_list events; /* streams */
    struct dv_list late;   /* answers */
    unsigned n_made;       /* the number of the last id */
    struct cri_served {
        struct cri_runtime *runtime;
        enum dv_cri_method method;
        char path[64];
        struct dv_method row;
    } served[CRI_METHODS];
};

/* containerd 1.6 with the image "busybox", not running yet; serves on <dir>/cri.sock. */
void cri_runtime_init(struct cri_runtime *runtime, struct dv_loop *loop, const char *dir);
void cri_runtime_fini(struct cri_runtime *runtime);
void cri_runtime_start(struct cri_runtime *runtime);
/* Its process ends: calls break off, sandboxes and containers go on. */
void cri_runtime_stop(struct cri_runtime *runtime);

/* The newest container of that name; NULL: there is none. */
struct cri_container *cri_runtime_container(struct cri_runtime *runtime, const char *name);
/* The newest sandbox of the pod of that name; NULL: there is none. */
struct cri_sandbox *cri_runtime_sandbox(struct cri_runtime *runtime, const char *pod);
/* How many there are, in every state. */
size_t cri_runtime_n_containers(const struct cri_runtime *runtime);
size_t cri_runtime_n_sandboxes(const struct cri_runtime *runtime);
/* The container's process ends. */
void cri_runtime_end(struct cri_runtime *runtime, struct cri_container *container, int exit_code,
                     const char *reason);
/* The sandbox's process ends; with it all its containers. */
void cri_runtime_end_sandbox(struct cri_runtime *runtime, struct cri_sandbox *sandbox);

#endif
