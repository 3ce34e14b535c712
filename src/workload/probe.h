/* probe.h - probes and hooks of containers, as values: what is to be asked and where, what an
 * answer means, and when a probe runs and what its results add up to.
 *
 * Nothing here asks anything: who does gets a target, and gives back an outcome. */
#ifndef DV_WORKLOAD_PROBE_H
#define DV_WORKLOAD_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/values.h"

struct dv_api_container;
struct dv_api_lifecycle_handler;
struct dv_api_probe;
struct dv_api_probe_handler;
struct dv_arena;
struct dv_err;

/* ---- what to ask ---- */

enum dv_probe_kind {
    DV_PROBE_STARTUP,
    DV_PROBE_LIVENESS,
    DV_PROBE_READINESS,
    DV_N_PROBE_KINDS,
};

/* "Startup", "Liveness", "Readiness": as events name them. */
dv_str dv_probe_kind_name(enum dv_probe_kind kind);
/* The container's probe of that kind; NULL when it has none. */
const struct dv_api_probe *dv_probe_of(const struct dv_api_container *container,
                                       enum dv_probe_kind kind);

enum dv_probe_means {
    DV_PROBE_EXEC,  /* ExecSync of `command` */
    DV_PROBE_HTTP,  /* GET of `path`; TLS is not verified, no connection is kept */
    DV_PROBE_TCP,   /* connect */
    DV_PROBE_GRPC,  /* grpc.health.v1.Health/Check of `service`, without TLS */
    DV_PROBE_SLEEP, /* hooks only: wait */
};

struct dv_probe_target {
    enum dv_probe_means means;
    struct dv_strs command;
    dv_str host; /* an address or a name, without brackets */
    uint16_t port;
    bool is_https;
    dv_str path;                        /* begins with '/', with its query */
    const struct dv_str_entry *headers; /* all to be sent, Host among them when it is set */
    size_t n_headers;
    dv_str service;
    uint32_t sleep_s;
};

/* Reads what a probe or hook asks: ports by their name, the pod's address where no host is given,
 * headers as the reference sends them (User-Agent `kube-probe/1.36`, of hooks
 * `kube-lifecycle/1.36`; Accept), variables in the commands of probes. Made in `arena`; texts may
 * be borrowed. DV_INVALID_ARGUMENT: it cannot be asked, e.g. no port has that name. */
DV_CHECKED bool dv_probe_read(const struct dv_api_probe_handler *handler,
                              const struct dv_api_container *container, dv_str pod_ip,
                              struct dv_arena *arena, struct dv_probe_target *target,
                              struct dv_err *err);
DV_CHECKED bool dv_probe_read_hook(const struct dv_api_lifecycle_handler *handler,
                                   const struct dv_api_container *container, dv_str pod_ip,
                                   struct dv_arena *arena, struct dv_probe_target *target,
                                   struct dv_err *err);

/* ---- what an answer means ---- */

enum dv_probe_outcome {
    DV_PROBE_SUCCESS,
    DV_PROBE_WARNING, /* success, with something to tell */
    DV_PROBE_FAILURE,
    DV_PROBE_ERROR, /* nothing was found out about the container */
};

/* Judges an HTTP answer. `location` is its header of that name, or empty: a redirect to another
 * host is not followed and is a warning. Sets `output` to the text for the event. */
enum dv_probe_outcome dv_probe_judge_http(const struct dv_probe_target *target, int status,
                                          dv_str location, dv_str body, struct dv_arena *arena,
                                          dv_str *output);
/* Judges a command that ended; `output` is what it printed, both streams. */
enum dv_probe_outcome dv_probe_judge_exec(int32_t exit_code);

/* How much of a probe's output is kept, in bytes. */
#define DV_PROBE_OUTPUT_BYTES 10240u

/* ---- when it runs, and what its results add up to ---- */

enum dv_probe_result {
    DV_PROBE_IS_UNKNOWN,
    DV_PROBE_HAS_SUCCEEDED,
    DV_PROBE_HAS_FAILED,
};

/* One probe of one container while the pod is here. Zeroed is its beginning. */
struct dv_probe_worker {
    uint64_t next_ms;  /* when it runs next, on the caller's clock; 0: not set yet */
    uint64_t instance; /* a hash of the container id that the rest is about; 0: none */
    uint32_t n_same;   /* how often `last` came in a row */
    uint8_t n_errors;  /* of this run, until it is given up */
    uint8_t last;      /* enum dv_probe_result of the last run */
    uint8_t result;    /* enum dv_probe_result: what counts */
    bool is_on_hold;   /* until there is another instance */
    bool is_wanted;    /* once more at the next look, whatever next_ms says */
    bool is_under_way; /* an answer is awaited */
};

/* What a worker sees of its container. */
struct dv_probe_sight {
    const struct dv_api_probe *probe;
    enum dv_probe_kind kind;
    uint64_t instance; /* a hash of the newest instance's id; 0: none was made yet */
    bool is_running;   /* that instance */
    bool has_started;  /* the startup probe has succeeded, or there is none */
    bool is_ending;    /* the pod is being deleted or has failed: only readiness goes on */
    bool was_ready;    /* the status of before this agent says so: kept until the first answer */
    int64_t started_s; /* wall clock: when the instance started */
    int64_t now_s;     /* wall clock */
    uint64_t now_ms;   /* the clock of next_ms */
    uint64_t agent_age_ms; /* how long this agent runs */
    uint32_t random;       /* for the first run after the agent's start */
};

/* Brings the worker up to what it sees: a new instance begins anew, one that does not run has
 * failed. True: a run is due now, and the worker awaits its outcome. */
bool dv_probe_look(struct dv_probe_worker *worker, const struct dv_probe_sight *sight);

/* What a run has changed. */
struct dv_probe_change {
    bool is_told;     /* an event is due: the run failed, warned or errored */
    bool has_changed; /* worker->result is another one than before */
};
/* Takes the outcome of a run. It counts for the instance that the run was begun on only. */
struct dv_probe_change dv_probe_done(struct dv_probe_worker *worker,
                                     const struct dv_probe_sight *sight,
                                     enum dv_probe_outcome outcome);

#endif
