/* config.h - the messages by which a container runtime is told to make a pod and its containers.
 *
 *     sandbox:    dv_config_sandbox --> RunPodSandbox
 *     container:  dv_config_environment (once), dv_config_sub_paths --> the caller binds subPaths
 *                 dv_config_container --> with a runtime that has no CDI: dv_config_expand_cdi
 *                                     --> CreateContainer
 *
 * All is pure, and made in the arena that is given; texts may be borrowed from the inputs. A
 * failure is the message of CreateContainerConfigError, or of CreatePodSandboxError for a sandbox.
 */
#ifndef DV_WORKLOAD_CONFIG_H
#define DV_WORKLOAD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "number/number.h"
#include "resource/values.h"
#include "workload/workload.h"

struct CriV1__ContainerConfig;
struct CriV1__PodSandboxConfig;
struct dv_api_container_port;
struct dv_api_lifecycle_handler;
struct dv_arena;
struct dv_cdi_edits;
struct dv_err;
struct dv_quantity;

/* ---- the sandbox ---- */

/* Something that the pod's user should hear of: a warning event of the pod. */
struct dv_config_note {
    dv_str reason; /* "MissingClusterDNS", "DNSConfigForming" */
    dv_str message;
};

struct dv_config_notes {
    struct dv_config_note *v;
    size_t n;
    size_t size;
};

/* Makes the config of a sandbox; `attempt` is 0 for the first. Notes are added in `arena`. NULL:
 * the pod cannot have a sandbox here, and why. */
struct CriV1__PodSandboxConfig *dv_config_sandbox(const struct dv_workload_node *node,
                                                  const struct dv_workload_pod *pod,
                                                  uint32_t attempt, struct dv_arena *arena,
                                                  struct dv_config_notes *notes,
                                                  struct dv_err *err);

/* ---- a container ---- */

/* What the runtime's ImageStatus tells of the container's image. */
struct dv_config_image {
    dv_str id;   /* "sha256:...", or a digest: what CreateContainer gets */
    int64_t uid; /* of the user that the image runs as */
    bool has_uid;
    dv_str username; /* without a uid: its name; may be empty */
};

struct dv_config_input {
    const struct dv_workload_node *node;
    const struct dv_workload_pod *pod;
    const struct dv_workload_objects *objects;
    const struct dv_workload_given *given; /* NULL: nothing */
    const struct dv_api_container *container;
    enum dv_workload_kind kind;
    struct dv_config_image image;
    uint32_t attempt; /* how often it was started before */
    dv_str target_id; /* an ephemeral container's: the runtime's id of its target; may be empty */
};

/* A container's environment, in the order that the runtime gets: plugins' variables, those of the
 * pod, those of services. Of a name that is there twice the last one counts. */
struct dv_config_environment {
    struct dv_str_entry *v;
    size_t n;
    struct dv_str_entry *by_name; /* those that count, sorted */
    size_t n_by_name;
};

/* Computes the environment, once for each start: the two functions below use it. */
DV_CHECKED bool dv_config_environment(const struct dv_config_input *input, struct dv_arena *arena,
                                      struct dv_config_environment *environment,
                                      struct dv_err *err);

/* Checks the container's volumeMounts and sets `paths` to their subPaths with variables expanded,
 * one for each in order; empty: the mount has none. Those of image volumes are the runtime's to
 * find. */
DV_CHECKED bool dv_config_sub_paths(const struct dv_config_input *input,
                                    const struct dv_config_environment *environment,
                                    struct dv_arena *arena, dv_str **paths, struct dv_err *err);

/* Makes the config of a container. `mounts` has one for each of its volumeMounts, in order.
 * `termination_log` is the file of the host for its last words; empty: it has none. */
struct CriV1__ContainerConfig *dv_config_container(const struct dv_config_input *input,
                                                   const struct dv_config_environment *environment,
                                                   const struct dv_workload_mount *mounts,
                                                   dv_str termination_log, struct dv_arena *arena,
                                                   struct dv_err *err);

/* ---- CDI for runtimes that cannot do it ---- */

/* A device node of the host. */
struct dv_config_node {
    bool is_device; /* false: it is not there, or no device */
    bool is_block;
    uint32_t major;
    uint32_t minor;
    uint32_t mode; /* permission bits */
    uint32_t uid;
    uint32_t gid;
};

/* Looks at a path of the host; links are followed. */
typedef struct dv_config_node dv_config_look(void *ctx, dv_str host_path);

/* Puts what `edits` say into the fields of `config` and takes the CDI names out of it. What the
 * runtime's interface has no field for (hooks, Intel RDT, network devices, a node with other
 * numbers, owners or modes than the host's, mounts that are no bind mounts) is
 * DV_FAILED_PRECONDITION with the name of the edit, the device and what runtime could do it.
 * `config` is unchanged then. */
DV_CHECKED bool dv_config_expand_cdi(struct CriV1__ContainerConfig *config,
                                     const struct dv_cdi_edits *edits,
                                     const struct dv_workload_node *node, dv_config_look *look,
                                     void *ctx, struct dv_arena *arena, struct dv_err *err);

/* ---- parts that others need, too ---- */

/* Replaces $(NAME) by the value of `environment`; what it does not have stays as it is. `$$` is
 * `$`. Sets `value` to `text` itself where there is nothing to replace. DV_RESOURCE_EXHAUSTED: it
 * becomes longer than any kernel takes. */
DV_CHECKED bool dv_config_expand(dv_str text, const struct dv_config_environment *environment,
                                 struct dv_arena *arena, dv_str *value, struct dv_err *err);

/* Expands the command of an exec probe over the container's env: only literal values are known to
 * it, and variables with valueFrom are empty. Commands of hooks are not expanded. */
DV_CHECKED bool dv_config_probe_command(const struct dv_api_container *container,
                                        const struct dv_strs *command, struct dv_arena *arena,
                                        struct dv_strs *expanded, struct dv_err *err);

/* The short name that the pod's processes see, and its domain (may be empty). */
dv_str dv_config_hostname(const struct dv_workload_pod *pod);
dv_str dv_config_domain(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                        struct dv_arena *arena);

/* The text of the pod's /etc/hosts. False: it has none, because there is no pod IP yet. */
bool dv_config_hosts(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                     struct dv_arena *arena, dv_str *text);
/* "<root>/pods/<uid>/etc-hosts" */
dv_str dv_config_hosts_path(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                            struct dv_arena *arena);

/* "Guaranteed", "Burstable", "BestEffort": as the pod's status says, or computed. */
dv_str dv_config_qos(const struct dv_api_pod *pod, struct dv_arena *arena);

/* "/kubepods/burstable/pod<uid>", or the same for systemd; empty when the runtime chooses. */
dv_str dv_config_cgroup_parent(const struct dv_workload_node *node,
                               const struct dv_workload_pod *pod, struct dv_arena *arena);

/* What the pod asks a node for, with its overhead, at the moment of its life when it needs most; 0
 * where it does not ask. */
struct dv_quantity dv_config_request(const struct dv_api_pod *pod, dv_str resource,
                                     struct dv_arena *arena);

/* "net/ipv4/conf/eth0.1/x" as "net.ipv4.conf.eth0/1.x"; with dots between parts it stays. */
dv_str dv_config_sysctl_name(dv_str name, struct dv_arena *arena);

/* What the pod's cgroup is limited to; 0: not limited. */
struct dv_config_cgroup {
    uint64_t cpu_shares;
    int64_t cpu_quota_us;
    uint64_t cpu_period_us;
    int64_t memory_bytes;
    struct dv_quantity_entry *hugepages; /* "hugepages-2Mi" */
    size_t n_hugepages;
};
void dv_config_cgroup(const struct dv_workload_pod *pod, struct dv_arena *arena,
                      struct dv_config_cgroup *cgroup);

/* The hash by which a change of the container is seen, as in io.kubernetes.container.hash. */
uint32_t dv_config_hash(const struct dv_api_container *container);

/* The image of a container or volume as it is asked for: ":latest" is added where there is neither
 * tag nor digest. DV_INVALID_ARGUMENT: not the name of an image, with the text of InvalidImageName.
 */
DV_CHECKED bool dv_config_image(dv_str reference, struct dv_arena *arena, dv_str *image,
                                struct dv_err *err);

/* ---- what labels and annotations tell of a container whose pod is not known ---- */

/* The labels by which sandboxes and containers are found again; the last is a container's. */
#define DV_CONFIG_POD_NAME DV_STR("io.kubernetes.pod.name")
#define DV_CONFIG_POD_NAMESPACE DV_STR("io.kubernetes.pod.namespace")
#define DV_CONFIG_POD_UID DV_STR("io.kubernetes.pod.uid")
#define DV_CONFIG_CONTAINER_NAME DV_STR("io.kubernetes.container.name")

/* What a container's annotations say about ending it. */
struct dv_config_memo {
    uint32_t hash;
    bool has_hash;
    uint32_t restart_count;
    dv_str termination_message_path;
    dv_str termination_message_policy;
    int64_t grace_period_s; /* the deletion's, else the spec's; -1: neither is there */
    struct dv_api_lifecycle_handler *pre_stop; /* NULL: none */
    struct dv_api_container_port *ports;
    size_t n_ports;
};

/* Reads the annotations of a container; what is missing or cannot be read counts as absent. */
void dv_config_read_annotations(const struct dv_str_entry *annotations, size_t n_annotations,
                                struct dv_arena *arena, struct dv_config_memo *memo);

#endif
