/* workload.h - what the containers of a pod are made from, as values: the node, the pod, the
 * objects that it refers to, and what its containers were given.
 *
 *     node ---.
 *     pod -----+--> volume.h: what lies on the disk for it --.
 *     objects -'                                             +--> config.h: messages to a runtime
 *     what was given (devices, claims) ----------------------'
 *
 *     pod, what the runtime shows, time --> life.h: what to do next
 *
 * Everything in this module is pure: no clock, no files. The structs borrow what they point to. */
#ifndef DV_WORKLOAD_H
#define DV_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "number/number.h"
#include "resource/values.h"

struct dv_api_config_map;
struct dv_api_container;
struct dv_api_pod;
struct dv_api_resource_requirements;
struct dv_api_secret;
struct dv_arena;

/* ---- the node ---- */

/* What a runtime handler can do; the one without a name is the default. */
struct dv_workload_handler {
    dv_str name;
    bool has_recursive_read_only;
    bool has_user_namespaces;
};

/* The lines of a resolv.conf. */
struct dv_workload_resolver {
    struct dv_strs servers;
    struct dv_strs searches;
    struct dv_strs options; /* "ndots:2", "rotate" */
};

/* What of the node shows in its pods. */
struct dv_workload_node {
    dv_str name;
    dv_str root_dir;         /* "/var/lib/kubelet": pods/, seccomp/ */
    dv_str log_dir;          /* "/var/log/pods" */
    struct dv_strs host_ips; /* the node's addresses, the main one first */
    const struct dv_quantity_entry *allocatable;
    size_t n_allocatable;
    const struct dv_quantity_entry *capacity;
    size_t n_capacity;

    bool has_pod_cgroups;          /* false: the runtime chooses where a pod's cgroup is */
    dv_str cgroup_root;            /* above kubepods, with the driver cgroupfs: "" or "/davit" */
    bool has_systemd_cgroups;      /* the driver: systemd, else cgroupfs */
    unsigned cgroup_version;       /* 1 or 2 */
    bool has_swap_controller;      /* the kernel limits swap: memory.swap.max, memory.memsw.* */
    bool has_selinux;              /* it is enforced or logged */
    struct dv_strs hugepage_sizes; /* "2MB", "1GB": of the kernel, as cgroups name them */

    struct dv_workload_resolver resolver; /* the host's */
    bool has_resolver;                    /* false: --resolv-conf is empty */
    struct dv_strs cluster_dns;           /* none: there is no DNS of the cluster */
    dv_str cluster_domain;                /* "cluster.local"; may be empty */
    dv_str hosts_file;                    /* the text of the host's /etc/hosts */
    /* What containers must not see of this machine beyond the usual paths: those of
     * /sys/devices/system/cpu/cpu<n>/thermal_throttle that are there. */
    struct dv_strs masked_paths;

    const struct dv_workload_handler *handlers; /* none: the runtime does not tell */
    size_t n_handlers;
    bool has_supplemental_groups_policy;
    bool lacks_image_volumes; /* the runtime cannot mount images */
    dv_str runtime_name;      /* "containerd", for messages */
    dv_str runtime_version;
};

/* Finds the handler of that name; NULL when the runtime does not tell of it. */
const struct dv_workload_handler *dv_workload_handler_find(const struct dv_workload_node *node,
                                                           dv_str name);

/* ---- the pod ---- */

struct dv_workload_pod {
    const struct dv_api_pod *pod;
    dv_str uid;     /* for the runtime and in paths; a static pod's is the hash of its file */
    dv_str source;  /* "api", "file": annotation kubernetes.io/config.source */
    dv_str seen;    /* RFC 3339: annotation kubernetes.io/config.seen */
    dv_str handler; /* of the pod's RuntimeClass; empty without one */
    struct dv_strs
        ips; /* of its sandbox; of a hostNetwork pod the node's; none before there is one */
    /* spec.hostUsers false: user 0 of the pod is this one of the host, and so are its groups. */
    uint32_t users_from;
    uint32_t n_users; /* 0: none were set aside */
};

/* The pod's annotations and the two of its source, sorted by key: what the sandbox, image volumes
 * and downwardAPI files show. Made in `arena`. */
struct dv_str_entry *dv_workload_annotations(const struct dv_workload_pod *pod,
                                             struct dv_arena *arena, size_t *n);

/* The value of one of these; empty when it is absent. */
dv_str dv_workload_annotation(const struct dv_workload_pod *pod, dv_str key);

enum dv_workload_kind {
    DV_WORKLOAD_INIT,    /* runs to its end before the next one starts */
    DV_WORKLOAD_SIDECAR, /* an init container with restartPolicy Always */
    DV_WORKLOAD_REGULAR,
    DV_WORKLOAD_EPHEMERAL,
};

/* Finds a container of the pod in all its lists; NULL when there is none. `kind` may be NULL. */
const struct dv_api_container *dv_workload_container(const struct dv_api_pod *pod, dv_str name,
                                                     enum dv_workload_kind *kind);

/* "<root>/pods/<uid>" and "<logs>/<namespace>_<name>_<uid>", in `arena`. */
dv_str dv_workload_pod_dir(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                           struct dv_arena *arena);
dv_str dv_workload_log_dir(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                           struct dv_arena *arena);

/* "<pod>_<namespace>_<container>-<id>.log", cut to what a file's name may have: the link by which
 * collectors of logs find that of a container. */
dv_str dv_workload_log_link(dv_str pod, dv_str namespace, dv_str container, dv_str id,
                            struct dv_arena *arena);

/* ---- the objects ---- */

struct dv_workload_port {
    dv_str name; /* may be empty */
    int32_t port;
    dv_str protocol; /* "TCP"; empty is that */
};

struct dv_workload_service {
    dv_str namespace;
    dv_str name;
    dv_str cluster_ip; /* empty or "None": it has no variables */
    const struct dv_workload_port *ports;
    size_t n_ports;
};

/* A file that an environment variable takes a key of (fileKeyRef), as it was read from the volume.
 */
struct dv_workload_env_file {
    dv_str volume;
    dv_str path;
    dv_str text;
};

/* What the pod may refer to in its namespace: which ones it names, dv_pod_visit_references of
 * resource/references.h tells. What is not here does not exist. Config maps and secrets are sorted
 * by name, because there may be tens of thousands. Services are those of the pod's namespace and
 * default/kubernetes. */
struct dv_workload_objects {
    const struct dv_api_config_map *const *config_maps;
    size_t n_config_maps;
    const struct dv_api_secret *const *secrets;
    size_t n_secrets;
    const struct dv_workload_service *services;
    size_t n_services;
    const struct dv_workload_env_file *env_files;
    size_t n_env_files;
};

const struct dv_api_config_map *dv_workload_config_map(const struct dv_workload_objects *objects,
                                                       dv_str name);
const struct dv_api_secret *dv_workload_secret(const struct dv_workload_objects *objects,
                                               dv_str name);

/* ---- amounts ---- */

/* Finds an amount by the name of its resource; NULL when it is absent. */
const struct dv_quantity *dv_workload_amount(const struct dv_quantity_entry *entries, size_t n,
                                             dv_str resource);
/* The whole part, and a thousand times the amount, both rounded up; the largest number where it
 * does not fit. NULL is 0. */
int64_t dv_workload_whole(const struct dv_quantity *amount);
int64_t dv_workload_milli(const struct dv_quantity *amount);

/* The resources of the pod as a whole, when cpu, memory or huge pages are among them; else NULL. */
const struct dv_api_resource_requirements *dv_workload_pod_level(const struct dv_api_pod *pod);

/* ---- what a container was given ---- */

struct dv_workload_device {
    dv_str container_path;
    dv_str host_path;
    dv_str permissions; /* of "rwm" */
};

struct dv_workload_given_mount {
    dv_str container_path;
    dv_str host_path;
    bool is_read_only;
};

/* What device plugins answered and claims prepared for one container, in the order of the lists. */
struct dv_workload_given {
    const struct dv_str_entry *envs; /* of plugins */
    size_t n_envs;
    const struct dv_workload_given_mount *mounts;
    size_t n_mounts;
    const struct dv_workload_device *devices;
    size_t n_devices;
    const struct dv_str_entry *annotations;
    size_t n_annotations;
    const dv_str *cdi_names; /* "vendor.com/gpu=0": those of claims, then those of plugins */
    size_t n_cdi_names;
};

/* What one volumeMount of a container is on the host. Of a mount with a subPath, `host_path` is
 * where that part of the volume is bound. */
struct dv_workload_mount {
    dv_str host_path;  /* empty for an image */
    bool is_read_only; /* because of the volume's kind, whatever the mount says */
    bool is_relabeled; /* the runtime gives it the container's SELinux label */
    /* An image volume: the id of the pulled image, and the reference that the pod gives. */
    dv_str image;
    dv_str image_reference;
};

#endif
