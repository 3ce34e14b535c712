/* exec_plugin.h - programs that a kubeconfig names for credentials (users[].user.exec): hosted
 * clusters have them. Such a program prints an ExecCredential with a token or a certificate. */
#ifndef DV_CLUSTER_EXEC_PLUGIN_H
#define DV_CLUSTER_EXEC_PLUGIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;
struct dv_json;
struct dv_kubeconfig;

struct dv_exec_plugin {
    dv_str command; /* a path, or a name to be found in PATH */
    const dv_str *args;
    size_t n_args;
    const dv_str
        *env; /* "NAME=value" each: in addition to ours, with what it is told of the cluster */
    size_t n_env;
    dv_str api_version; /* of what it prints */
    dv_str hint;        /* what to do when it is missing */
};

/* What a program has printed. */
struct dv_exec_answer {
    dv_str token;
    dv_str cert; /* PEM; with `key` */
    dv_str key;
    int64_t ends_s; /* wall time; 0: it does not say */
};

/* Reads `exec` of a user; `cluster` has the server and its CA. A path is relative to `dir`. Keeps
 * texts of `exec`. DV_INVALID_ARGUMENT: what is wrong with it. */
DV_CHECKED bool dv_exec_plugin_parse(const struct dv_json *exec,
                                     const struct dv_kubeconfig *cluster, dv_str dir,
                                     struct dv_arena *arena, struct dv_exec_plugin *plugin,
                                     struct dv_err *err);
/* Copies it into the arena. */
void dv_exec_plugin_copy(const struct dv_exec_plugin *plugin, struct dv_arena *arena,
                         struct dv_exec_plugin *copy);
/* Reads what such a program has printed. DV_INVALID_ARGUMENT: it has no credentials, or is not of
 * that version. */
DV_CHECKED bool dv_exec_answer_parse(dv_str text, dv_str api_version, struct dv_arena *arena,
                                     struct dv_exec_answer *answer, struct dv_err *err);
/* Runs the program, for a minute at most, or until *stop is set (may be NULL). Blocks. What it says
 * to people goes where our own errors do. */
DV_CHECKED bool dv_exec_plugin_run(const struct dv_exec_plugin *plugin, const atomic_bool *stop,
                                   struct dv_arena *arena, struct dv_exec_answer *answer,
                                   struct dv_err *err);

#endif
