/* daemon_options.h - how davitd is told what to do: the command line, and a YAML file of the same
 * names.
 */
#ifndef DV_DAEMON_OPTIONS_H
#define DV_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/log.h"
#include "base/str.h"
#include "pod/runner.h"

struct dv_arena;
struct dv_buf;
struct dv_err;

/* The roles of the daemon on this machine, one bit each. */
enum dv_role {
    DV_ROLE_API = 1,
    DV_ROLE_CONTROL = 2,
    DV_ROLE_SCHED = 4,
    DV_ROLE_NODE = 8,
};

/* The kubelet's own directory: where plugins look by themselves. */
#define DV_KUBELET_DIR "/var/lib/kubelet"

struct dv_options {
    dv_str kubelet_dir;
    dv_str state_dir;
    dv_str runtime_dir;
    dv_str cdi_dirs; /* separated by ':' */
    dv_str node_name;
    dv_str listen; /* ADDRESS:PORT, or "none" */
    dv_str kubeconfig;
    dv_str node_listen;  /* of the node's own API: ADDRESS:PORT, or "none" */
    dv_str node_healthz; /* of its health without TLS: ADDRESS:PORT, or "none" */
    dv_str node_cert;    /* the certificate of that API, and its key; empty: it makes one */
    dv_str node_key;
    dv_str client_ca; /* whose certificates its clients may show; empty: none, or our own CA */
    dv_str topology_policy;
    dv_str topology_scope;
    dv_str topology_options; /* "name=value,name=value", or empty */
    dv_str sys_dir;
    dv_str boot_id_file;
    dv_str cri;          /* "auto", "none", or "unix:///PATH" of a container runtime */
    dv_str pod_logs_dir; /* what containers print, a directory a pod */
    dv_str cgroup_root;  /* "auto", "none", or a path that begins with "/" */
    struct dv_image_policy image_gc;
    dv_str pod_manifest_path; /* files that describe static pods; "" for none */
    uint64_t wait_ms;         /* for what has not come back */
    bool is_strict;
    bool preempts_devices;
    dv_str ledger;  /* on, warn or off */
    dv_str policy;  /* the file, "" for none */
    dv_str group;   /* of davit.sock, "" for root's alone */
    dv_str *offers; /* of devices without a driver, a text each */
    size_t n_offers;
    dv_str offer_file; /* with more of them, "" for none */
    dv_str dev_dir;
    dv_str record; /* the directory of recordings, "" for none */
    uint64_t record_file_bytes;
    uint32_t record_files;
    uint32_t record_blanks; /* bits of record/message.h */
    dv_str config;          /* the file, "" for none */
    uint32_t roles;
    dv_str scheduler_name; /* empty: the default one's, with an API of our own */
    bool insecure_http;
    enum dv_log_format log_format;
    enum dv_log_level log_level;
    bool wants_help;
    bool wants_version;
};

/* Reads argv[1..argc): the command line wins over --config FILE, which wins over the defaults.
 * Texts are in `arena`. DV_INVALID_ARGUMENT names the option and what it may be. */
DV_CHECKED bool dv_options_parse(int argc, char *const *argv, struct dv_arena *arena,
                                 struct dv_options *options, struct dv_err *err);
/* The text of --help. */
void dv_options_print_help(struct dv_buf *buf);

#endif
