/* remote.h - the seam over a real Kubernetes API server: requests over HTTP, views by list and
 * watch.
 *
 * A view lists once and then watches from there. A watch that ends goes on where it was; when the
 * server has forgotten that point, the view lists again and tells the difference. Failures are
 * tried again for ever, with growing pauses; what a view shows stays meanwhile. */
#ifndef DV_CLUSTER_REMOTE_H
#define DV_CLUSTER_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "loop/loop.h"

struct dv_arena;
struct dv_cluster;
struct dv_err;
struct dv_exec_plugin;
struct dv_remote;

/* Where the server is and who we are; texts are PEM where they are certificates. */
struct dv_kubeconfig {
    dv_str server; /* "https://10.0.0.1:6443" */
    dv_str ca;
    dv_str cert;
    dv_str key;
    dv_str token;
    dv_str token_file; /* read anew every minute; `token` is what it had first */
    /* The program that has made `token`, or `cert` and `key`, and is run anew before they end;
     * NULL: none. */
    const struct dv_exec_plugin *exec;
    int64_t exec_ends_s; /* when they end, in wall time; 0: that is not known */
    dv_str socket;       /* a Unix socket in place of the server's host */
    dv_str namespace;    /* the context's namespace; empty: "default" */
};

/* Reads a kubeconfig text. Files that it names are read, relative to `dir`. An empty `context` is
 * the current one. DV_INVALID_ARGUMENT: what is missing, or what we do not do: users that act as
 * others, servers that need not prove themselves, tokens for all to read, proxies. A program for
 * credentials is read, and not run. Blocks when files are named. */
DV_CHECKED bool dv_kubeconfig_parse(dv_str text, dv_str dir, dv_str context, struct dv_arena *arena,
                                    struct dv_kubeconfig *config, struct dv_err *err);
/* Like dv_kubeconfig_parse, for the text of a file, whose program for credentials is run. Blocks.
 */
DV_CHECKED bool dv_kubeconfig_load(dv_str path, dv_str context, struct dv_arena *arena,
                                   struct dv_kubeconfig *config, struct dv_err *err);
/* As pods get it: KUBERNETES_SERVICE_HOST and _PORT, and the files of a service account in `dir`
 * (empty: where they are mounted). DV_NOT_FOUND: not in a pod. Blocks. */
DV_CHECKED bool dv_kubeconfig_in_cluster(dv_str host, dv_str port, dv_str dir,
                                         struct dv_arena *arena, struct dv_kubeconfig *config,
                                         struct dv_err *err);

struct dv_remote_options {
    dv_str user_agent;     /* empty: "davit" */
    size_t n_page_objects; /* of a list; 0: 500 */
};

/* `config` and `options` are copied. Nothing is connected yet. */
struct dv_remote *dv_remote_open(struct dv_loop *loop, const struct dv_kubeconfig *config,
                                 const struct dv_remote_options *options, struct dv_err *err);
/* Requests under way end first, with a failure; views show no more changes and are still closed by
 * their owners, before `closed` runs or after. */
void dv_remote_close(struct dv_remote *remote, dv_closed_fn *closed, void *ctx);
struct dv_cluster *dv_remote_cluster(struct dv_remote *remote);

#endif
