/* config_parts.h - the parts of which the messages about sandboxes and containers are made. */
#ifndef DV_WORKLOAD_CONFIG_PARTS_H
#define DV_WORKLOAD_CONFIG_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "number/number.h"
#include "resource/values.h"
#include "workload/config.h" /* IWYU pragma: export */
#include "workload/workload.h"

struct CriV1__DNSConfig;
struct CriV1__LinuxContainerResources;
struct CriV1__LinuxContainerSecurityContext;
struct CriV1__Mount;
struct CriV1__NamespaceOption;
struct CriV1__SELinuxOption;
struct ProtobufCMessageDescriptor;
struct dv_api_se_linux_options;
struct dv_arena;
struct dv_err;

/* A text or the environment with its references replaced may have as many bytes. The kernel takes
 * 128 KiB a text and 6 MiB in all; a message to the runtime has 16 MiB. */
#define DV_CONFIG_TEXT_BYTES_MAX (1024u * 1024u)
#define DV_CONFIG_TEXTS_BYTES_MAX (8u * 1024u * 1024u)

/* ---- expansion ---- */

/* Finds a variable's value; false when there is none of that name. */
typedef bool dv_config_lookup(const void *ctx, dv_str name, dv_str *value);

/* Replaces references in `text` by what `lookup` finds; others stay as they are. */
DV_CHECKED bool dv_config_replace(dv_str text, dv_config_lookup *lookup, const void *ctx,
                                  struct dv_arena *arena, dv_str *value, struct dv_err *err);

/* Expands the texts of a command into `arena`. *n_left is what may still come of them, in bytes:
 * DV_CONFIG_TEXTS_BYTES_MAX for the first. */
DV_CHECKED bool dv_config_expand_all(const dv_str *texts, size_t n,
                                     const struct dv_config_environment *environment,
                                     size_t *n_left, struct dv_arena *arena, dv_str **expanded,
                                     struct dv_err *err);

/* Finds in a dv_config_environment: a dv_config_lookup. */
bool dv_config_lookup_env(const void *environment, dv_str name, dv_str *value);

/* Sorts what counts of the entries into environment->by_name. */
void dv_config_index(struct dv_config_environment *environment, struct dv_arena *arena);

/* ---- values ---- */

/* The entries of a message's map: an array of pointers to entries of `type`. */
void *dv_config_map(const struct ProtobufCMessageDescriptor *type,
                    const struct dv_str_entry *entries, size_t n, struct dv_arena *arena);
const char **dv_config_texts(const dv_str *texts, size_t n, struct dv_arena *arena);

/* "p_ns(uid)": how the reference names a pod in messages. */
dv_str dv_config_pod_name(const struct dv_workload_pod *pod, struct dv_arena *arena);

/* The variables of services, each name once, sorted. */
struct dv_str_entry *dv_config_services(const struct dv_workload_pod *pod,
                                        const struct dv_workload_objects *objects,
                                        struct dv_arena *arena, size_t *n);

/* ---- parts of messages ---- */

struct CriV1__DNSConfig *dv_config_dns(const struct dv_workload_node *node,
                                       const struct dv_workload_pod *pod, struct dv_arena *arena,
                                       struct dv_config_notes *notes);

/* The namespaces of all containers of the pod. */
struct CriV1__NamespaceOption *dv_config_namespaces(const struct dv_workload_node *node,
                                                    const struct dv_workload_pod *pod,
                                                    struct dv_arena *arena, struct dv_err *err);
struct CriV1__SELinuxOption *dv_config_selinux(const struct dv_api_se_linux_options *options,
                                               struct dv_arena *arena);
/* The pod's groups: fsGroup, then supplementalGroups. */
int64_t *dv_config_groups(const struct dv_api_pod *pod, struct dv_arena *arena, size_t *n);
/* CriV1__SupplementalGroupsPolicy of the pod's context. */
DV_CHECKED bool dv_config_groups_policy(const struct dv_api_pod *pod, int *policy,
                                        struct dv_err *err);

struct CriV1__LinuxContainerSecurityContext *
dv_config_security(const struct dv_config_input *input, struct dv_arena *arena, struct dv_err *err);

/* Fails where the container must not run as root, and would. */
DV_CHECKED bool dv_config_check_user(const struct dv_config_input *input, struct dv_arena *arena,
                                     struct dv_err *err);

struct CriV1__LinuxContainerResources *dv_config_resources(const struct dv_config_input *input,
                                                           struct dv_arena *arena);
/* What the pod has as a whole without its overhead, and the overhead. */
struct CriV1__LinuxContainerResources *
dv_config_sandbox_resources(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                            struct dv_arena *arena);
struct CriV1__LinuxContainerResources *dv_config_overhead(const struct dv_workload_node *node,
                                                          const struct dv_workload_pod *pod,
                                                          struct dv_arena *arena);

/* ---- arithmetic of resources ---- */

enum dv_config_side { DV_CONFIG_REQUESTS, DV_CONFIG_LIMITS };

/* The amount that the pod as a whole has, or the sum over its containers: all that run together, or
 * the init container that has more. False: there is none. */
bool dv_config_pod_amount(const struct dv_api_pod *pod, enum dv_config_side side, dv_str resource,
                          struct dv_arena *arena, struct dv_quantity *amount);

#define DV_CONFIG_PERIOD_US 100000
uint64_t dv_config_shares(int64_t milli_cpu);
int64_t dv_config_quota_us(int64_t milli_cpu); /* 0: not limited */

/* All of a container's mounts, in the reference's order. */
struct CriV1__Mount **dv_config_mounts(const struct dv_config_input *input,
                                       const struct dv_config_environment *environment,
                                       const struct dv_workload_mount *mounts,
                                       dv_str termination_log,
                                       const struct CriV1__NamespaceOption *namespaces,
                                       struct dv_arena *arena, size_t *n, struct dv_err *err);

#endif
