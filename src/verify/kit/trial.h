/* trial.h - one run of one case, in a worker process of its own: its directories, its loop, the
 * driver's processes, and how it ends.
 *
 * Steps are plain code: what has to wait runs the loop until it has what it waits for. A trial ends
 * when its steps return (passed), or within dv_trial_fail, dv_trial_skip or dv_trial_break, none of
 * which returns: processes are ended, directories removed, the result is told to the runner, and
 * the worker exits. Nothing needs to be freed by a case. */
#ifndef DV_VERIFY_TRIAL_H
#define DV_VERIFY_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "grpc/grpc.h"
#include "loop/loop.h"

struct dv_arena;
struct dv_err;
struct dv_flight;
struct dv_kubelet_side;
struct dv_poll;
struct dv_skew;
struct dv_trial_api;
struct dv_verify_case;

enum dv_outcome {
    DV_PASSED,
    DV_FAILED,
    DV_SKIPPED,
    DV_BROKEN, /* our own trouble, not the driver's */
};

#define DV_FACT_BYTES 256u
/* As many names of pools as a token can be given, if they are not very long. */
#define DV_POOLS_BYTES 2048u

/* What the first trial, the probe, finds out about the driver; decides which cases apply. Plain
 * bytes: it goes through a pipe. */
struct dv_facts {
    char name[DV_FACT_BYTES]; /* of the resource or the driver */
    size_t n_devices;
    uint64_t start_ms; /* from its start to its first list or slice; 0: not known */
    bool has_prefer;
    bool has_prestart;
    bool has_health;
    bool has_slices;
    bool is_classic;            /* registers by kubelet.sock */
    bool has_watcher;           /* registers by a socket in plugins_registry */
    char pools[DV_POOLS_BYTES]; /* with names of their own that it publishes, commas between */
};

#define DV_REASON_BYTES 1500u

/* What a worker tells the runner, in one write; there is room for it in a pipe. */
struct dv_trial_result {
    enum dv_outcome outcome;
    size_t n_calls; /* of the kubelet's side to the driver */
    struct dv_facts facts;
    char reason[DV_REASON_BYTES];
};

/* In the environment of all that a trial starts: its root. */
#define DV_TRIAL_VARIABLE "DAVIT_VERIFY"
/* For commands of --setup, --teardown and --hook. */
#define DV_COMMAND_MS 60000u

/* A process that the trial has started, with all that it starts: a group of its own. */
struct dv_child {
    struct dv_trial *trial;
    pid_t pid;
    int pidfd;
    struct dv_poll *poll;
    bool has_ended;
    int status;      /* as waitpid has it */
    bool may_end;    /* its end is no surprise */
    bool is_command; /* a command of the user's, not the driver */
    bool is_hooked;  /* no process of ours: a driver of --attach, by its hooks */
    unsigned number;
};

/* How the kubelet behaves; may change at any time. */
struct dv_kubelet_manners {
    bool refuses; /* every registration */
    bool holds;   /* answers Register only when dv_kubelet_let_go is called */
};

/* The directories of a trial. */
struct dv_trial_paths {
    dv_str root;
    dv_str kubelet;
    dv_str device_plugins;
    dv_str registry;
    dv_str plugins;
    dv_str cdi;
    dv_str state; /* for what the driver keeps over a reboot */
    dv_str run;   /* for what it does not */
    dv_str kubeconfig;
};

struct dv_trial {
    const struct dv_verify_options *options;
    const struct dv_verify_case *test; /* NULL: the probe */
    const struct dv_skew *release;
    struct dv_facts facts;
    struct dv_arena *arena;
    struct dv_arena *lists; /* the newest list of the API: waiting asks for one after the other */
    struct dv_loop *loop;
    struct dv_trial_paths paths;
    dv_str node;
    uint64_t wait_ms;
    uint64_t recover_ms; /* until the driver is well again after trouble */
    uint64_t grace_ms;   /* from SIGTERM to the driver's end */
    int result_fd;
    int log_fd; /* the driver's output */
    struct dv_timer log_timer;
    size_t n_calls;
    size_t n_claims; /* that were made */
    /* Passes on to the recorder what channels and servers do, as long as there is one. */
    struct dv_grpc_observer observer;
    struct dv_flight *flight;
    DV_VEC(struct dv_child *) processes;
    struct dv_kubelet_manners manners;
    struct dv_kubelet_side *kubelet; /* NULL: there is none now */
    struct dv_trial_api *api;        /* NULL: there is none now */
    dv_str boot_id;                  /* what drivers see as the machine's; empty: the real one */
    const char *step;                /* what is being waited for, for messages */
    dv_str own_socket;  /* in a directory of the user's: removed at the end; empty: none */
    bool is_keeper;     /* no case: it keeps the API for all cases (api_keeper.h) */
    bool is_stopped;    /* a driver of --attach was ended by its hook: it is started at the end */
    bool is_between;    /* one of its hooks is at work, or was cut short */
    bool must_not_skip; /* what would skip it is a failure: --require names the case */
    bool is_ending;
};

/* Before the reason of a case that was to be skipped, and must not be. */
#define DV_REQUIRED_TEXT "it is required, and would be skipped: "

/* ---- life: for the runner ---- */

/* Chooses the directory that all others of the trial are in: in the runner, which removes it should
 * the worker crash. It is made in the worker, which removes it should the runner be killed. The
 * trial has its arena. */
DV_CHECKED bool dv_trial_root_choose(struct dv_trial *trial, struct dv_err *err);
/* Makes the other directories, the loop and the log, in the worker. */
void dv_trial_init(struct dv_trial *trial);
/* Tells the runner a result; the trial goes on. False: nobody listens any more. */
bool dv_trial_tell(struct dv_trial *trial, enum dv_outcome outcome, const char *reason);
_Noreturn void dv_trial_end(struct dv_trial *trial, enum dv_outcome outcome, const char *reason);
/* Unmounts and removes all of it; what belongs to --attach stays. */
void dv_trial_dirs_remove(struct dv_trial *trial);
/* Kills the children of this process but for the known ones, until there are none. */
void dv_children_end_others(const pid_t *known, size_t n_known);
/* Kills the processes that drivers of these trials have left, whoever their parents are; false:
 * there were none. They are known by a variable that dv_trial_init puts into their environment. */
bool dv_processes_end_marked(const dv_str *roots, size_t n_roots);

/* ---- how it ends ---- */

_Noreturn void dv_trial_fail(struct dv_trial *trial, const char *fmt, ...) DV_PRINTF(2, 3);
_Noreturn void dv_trial_skip(struct dv_trial *trial, const char *fmt, ...) DV_PRINTF(2, 3);
_Noreturn void dv_trial_break(struct dv_trial *trial, const char *fmt, ...) DV_PRINTF(2, 3);

/* ---- a driver that runs already ---- */

/* Whether the trial is about a driver of --attach that is ended and started by hooks. */
bool dv_trial_is_restarting(const struct dv_trial *trial);
/* Whether the API is in the keeper's process. */
bool dv_trial_has_keeper(const struct dv_trial *trial);
/* For the runner: such a driver is down when its case begins, as one of --exec is. */
void dv_trial_stop_attached(struct dv_trial *trial);
/* At the end of a trial: starts such a driver again when it is down, as well as that can be done.
 */
void dv_trial_revive_attached(struct dv_trial *trial);

/* ---- waiting ---- */

/* Runs the loop until `is_met(ctx)`; false when timeout_ms passed first. Fails the trial when a
 * driver ends that may not. `what` is for messages: "the first list". */
bool dv_trial_wait_ms(struct dv_trial *trial, bool (*is_met)(void *ctx), void *ctx,
                      uint64_t timeout_ms, const char *what);
/* Like dv_trial_wait_ms, for as long as drivers are given for what they do by themselves. */
bool dv_trial_wait(struct dv_trial *trial, bool (*is_met)(void *ctx), void *ctx, const char *what);
/* Waits for what davit itself has to do: however little time drivers are given, a busy machine
 * takes longer for that. */
bool dv_trial_wait_ours(struct dv_trial *trial, bool (*is_met)(void *ctx), void *ctx,
                        const char *what);
/* Like dv_trial_wait_ours, until *flag is set, as by dv_flag_set: for callbacks that tell an end.
 */
bool dv_trial_wait_flag(struct dv_trial *trial, bool *flag, const char *what);
void dv_flag_set(void *ctx);
/* Lets so much time pass, with the loop running: for what must not happen. */
void dv_trial_pass(struct dv_trial *trial, uint64_t ms);
uint64_t dv_trial_now_ms(const struct dv_trial *trial);

/* ---- the driver ---- */

/* Starts --exec; with --attach it is started by its hook, or is running, and NULL is returned. */
struct dv_child *dv_child_start(struct dv_trial *trial);
/* Runs a command with placeholders to its end; false when it ended with anything but 0. */
bool dv_child_run(struct dv_trial *trial, dv_str command);
/* Runs the hook's command, or skips the trial when the command line has none of that name. */
void dv_trial_hook(struct dv_trial *trial, dv_str name);
/* SIGTERM; false when it has not ended after the time that pods have. */
bool dv_child_stop(struct dv_child *process);
void dv_child_must_stop(struct dv_child *process); /* the same; fails the trial */
/* Waits like dv_trial_wait_ms, and starts a driver that ends meanwhile again, as a DaemonSet would:
 * with a pause. `process` is the newest one afterwards; NULL: none of ours. */
bool dv_child_wait_reviving(struct dv_child **process, struct dv_trial *trial,
                            bool (*is_met)(void *ctx), void *ctx, uint64_t timeout_ms,
                            const char *what);
void dv_child_kill(struct dv_child *process); /* SIGKILL to all of it, until they are gone */
/* "exit status 1", "signal 9 (Killed)". */
const char *dv_child_end_text(const struct dv_child *process);
/* The group's: open descriptors, resident memory, members. */
size_t dv_child_n_descriptors(const struct dv_child *process);
size_t dv_child_rss_kib(const struct dv_child *process);
size_t dv_child_n_members(const struct dv_child *process);
/* Processes that drivers of the trial have left: no longer in their groups, their parents gone. */
size_t dv_trial_n_orphans(const struct dv_trial *trial);

/* ---- files ---- */

/* The names of all that is below the directory, relative to it and sorted, in the arena; a
 * directory that is not there has none. */
struct dv_listing {
    dv_str *v;
    size_t n;
};
struct dv_listing dv_trial_list(struct dv_trial *trial, dv_str dir);
void dv_listing_sort(dv_str *names, size_t n);
/* The first of `now` that `before` does not have; empty: none. */
dv_str dv_listing_news(const struct dv_listing *before, const struct dv_listing *now);
void dv_trial_empty(struct dv_trial *trial, dv_str dir); /* removes what is in it */
bool dv_trial_has_file(const struct dv_trial *trial, dv_str path);
/* Mounts that lie in the trial's directories, in the arena. */
struct dv_listing dv_trial_mounts(struct dv_trial *trial);
/* Mounts a file system with room for so many bytes on the directory, until the end of the trial.
 * False: this user may not. */
bool dv_trial_mount_small(struct dv_trial *trial, dv_str dir, size_t bytes);
/* Fills what is left of the disk of a directory; returns the file that does it. */
dv_str dv_trial_fill(struct dv_trial *trial, dv_str dir);
void dv_trial_remove_file(const struct dv_trial *trial, dv_str path);
/* Shows another boot id to drivers that are started from now on, where this user may do that; not
 * to drivers of --attach. */
void dv_trial_set_boot_id(struct dv_trial *trial);

/* ---- for the files of the kit ---- */

DV_CHECKED bool dv_trial_dirs_make(struct dv_trial *trial, struct dv_err *err);
void dv_trial_processes_end(struct dv_trial *trial);
/* The text with the placeholders replaced, in the arena; `instance` is for {instance}. */
dv_str dv_trial_expand(const struct dv_trial *trial, dv_str text, dv_str instance);

#endif
