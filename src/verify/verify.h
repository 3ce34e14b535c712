/* verify.h - proves a driver right with no cluster: cases, each with a kubelet's side, an API and
 * directories of its own, against the driver's real process.
 *
 *     runner  forks a worker for each case, gathers what they found, prints reports
 *     cases   the table: what each case proves, why it matters, its steps
 *     kit     what steps are written with: the driver's process, the kubelet's side, the API
 *
 * A worker is a process, so that a case is plain code from its first step to its last, a case that
 * crashes is one case, and nothing of a case outlives it. */
#ifndef DV_VERIFY_H
#define DV_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_buf;
struct dv_err;

enum dv_verify_kind {
    DV_VERIFY_DEVICE_PLUGIN,
    DV_VERIFY_DRA,
};
#define DV_VERIFY_N_KINDS 2u

/* "device-plugin", "dra". */
const char *dv_verify_kind_name(enum dv_verify_kind kind);
bool dv_verify_kind_find(dv_str name, enum dv_verify_kind *kind);

/* A command that makes something happen to the driver's devices, by which cases apply that need
 * it: "unhealthy", "healthy", "empty", "many", "change". */
struct dv_verify_hook {
    dv_str name;
    dv_str command;
};

/* Told a few times a second while cases run: how many of all are done, and the one that has run
 * longest. Before something else is printed `is_printing` is true, and the rest empty. */
struct dv_verify_progress {
    size_t n_done;
    size_t n_all;
    dv_str longest; /* its id; empty: none runs */
    bool is_printing;
};

struct dv_verify_options {
    enum dv_verify_kind kind;
    dv_str exec;   /* the driver's command line, with placeholders; empty: attach is set */
    dv_str attach; /* directory in which a driver that runs already looks for the kubelet */
    dv_str setup;  /* commands before and after each case, with placeholders; empty: none */
    dv_str teardown;
    const struct dv_verify_hook *hooks;
    size_t n_hooks;
    const dv_str *only; /* ids, or beginnings of them with '*' at the end; none: all */
    size_t n_only;
    const dv_str *skip;
    size_t n_skip;
    const dv_str *required; /* "slices" and so on: what a driver without it fails by; or ids of
                             * cases, as of `only`, that fail instead of being skipped */
    size_t n_required;
    dv_str driver;      /* its name, or the resource's; empty: the first that registers */
    dv_str node;        /* the node's name; empty: "verify-node" */
    dv_str claim;       /* a file with a claim, and classes that it needs; empty: a claim for one */
    dv_str bad_claim;   /* the same with parameters that the driver has to refuse; empty: none */
    const dv_str *also; /* what its token may read besides: "pods: get,list,watch" */
    size_t n_also;
    dv_str release; /* "1.34": what the kubelet and the API offer; empty: the newest */
    dv_str dir;     /* where recordings and the driver's output are kept */
    dv_str tap;     /* files for reports, "-": standard output; empty: none */
    dv_str junit;
    dv_str json;
    size_t n_jobs;       /* cases at a time; 0: two a core */
    uint64_t wait_ms;    /* for what a driver has to do by itself; 0: by what its start takes */
    uint64_t grace_ms;   /* from SIGTERM to its end; 0: 30 s */
    uint64_t recover_ms; /* until the driver is well again after trouble; 0: the default */
    uint64_t case_ms;    /* for a case as a whole; 0: 120 s and what starts take */
    bool has_colours;
    void (*told)(void *ctx, const struct dv_verify_progress *progress); /* NULL: nobody asks */
    void *ctx;
};

struct dv_verify_sum {
    size_t n_passed;
    size_t n_failed;
    size_t n_skipped;
    size_t n_broken; /* our own trouble: nothing is known of the driver */
};

/* Runs the cases and prints what they found. False: not one could be run, and `err` says why.
 * Blocks, forks, and takes SIGINT, SIGTERM and SIGCHLD: for a program that does nothing else, and
 * has no threads. */
bool dv_verify_run(const struct dv_verify_options *options, struct dv_verify_sum *sum,
                   struct dv_err *err);

/* Whether `only`, `skip` and `required` name cases of the kind; `err` says which does not. */
DV_CHECKED bool dv_verify_check_cases(const struct dv_verify_options *options, struct dv_err *err);
/* Prints a line for each case of the kind that `only` and `skip` leave. */
void dv_verify_list(const struct dv_verify_options *options, struct dv_buf *buf);
/* Prints all about the cases of this id, of either kind. False: there is none. */
bool dv_verify_explain(dv_str id, struct dv_buf *buf);

#endif
