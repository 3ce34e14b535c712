/* volume.h - what a pod's volumes are on the disk: directories, mounts and files, as values. Pure;
 * module voldir makes them.
 *
 *     dv_volume_tokens        which service account tokens are wanted     -> the caller gets them
 *     dv_volume_plan          pod, objects, tokens -> a plan              -> dv_voldir_set_up
 *     dv_volume_find          the volume of a mount: its path on the host -> dv_workload_mount
 *
 * A plan borrows from what it was made of (pod, objects, tokens) and lives as long as its arena and
 * all of these. Contents of secrets and tokens are in it: it is never logged. */
#ifndef DV_WORKLOAD_VOLUME_H
#define DV_WORKLOAD_VOLUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_api_pod;
struct dv_api_service_account_token_projection;
struct dv_arena;
struct dv_workload_node;
struct dv_workload_objects;
struct dv_workload_pod;

/* ---- tokens ---- */

/* A token of the pod's service account that a projected volume wants. */
struct dv_volume_token {
    dv_str audience;    /* empty: the API's own */
    int64_t lifetime_s; /* what is asked for */
    /* Set by who gets the token: */
    dv_str text;    /* a secret; empty: there is none */
    dv_str problem; /* why there is none, as the server says it */
};

/* Lists the tokens that the pod's volumes want: TokenRequests of its service account, bound to the
 * pod's name and UID. Each pair of audience and lifetime is there once, sorted. */
struct dv_volume_token *dv_volume_tokens(const struct dv_api_pod *pod, struct dv_arena *arena,
                                         size_t *n_tokens);

/* Finds the one for that source, among those of dv_volume_tokens; NULL: it is not there. */
const struct dv_volume_token *
dv_volume_token_find(const struct dv_volume_token *tokens, size_t n_tokens,
                     const struct dv_api_service_account_token_projection *wanted);

/* When a token is to be got anew, in seconds: at 80 % of its life, and at the latest after 24 h. */
int64_t dv_volume_token_due_s(int64_t issued_s, int64_t expires_s);

/* ---- the plan ---- */

enum dv_volume_kind {
    DV_VOLUME_DIRECTORY,    /* emptyDir: a directory on the disk */
    DV_VOLUME_MEMORY,       /* emptyDir of medium Memory: a tmpfs */
    DV_VOLUME_HUGE_PAGES,   /* emptyDir of medium HugePages: a hugetlbfs */
    DV_VOLUME_FILES,        /* configMap: files on the disk, replaced all at once */
    DV_VOLUME_MEMORY_FILES, /* secret, downwardAPI, projected: the same on a tmpfs */
    DV_VOLUME_HOST_PATH,    /* something that the host has */
    DV_VOLUME_IMAGE,        /* the runtime mounts it; nothing of it is on the disk */
};

enum dv_host_path_type {
    DV_HOST_PATH_ANY, /* is not looked at */
    DV_HOST_PATH_DIRECTORY_OR_CREATE,
    DV_HOST_PATH_DIRECTORY,
    DV_HOST_PATH_FILE_OR_CREATE,
    DV_HOST_PATH_FILE,
    DV_HOST_PATH_SOCKET,
    DV_HOST_PATH_CHAR_DEVICE,
    DV_HOST_PATH_BLOCK_DEVICE,
};

struct dv_volume_file {
    dv_str path; /* in the volume: "a", "sub/dir/a"; it leads nowhere else */
    dv_str content;
    unsigned mode;      /* permission bits, before the plan's group changes them */
    const int64_t *uid; /* its owner; NULL: root */
};

struct dv_volume {
    dv_str name;
    enum dv_volume_kind kind;
    /* Why it cannot be set up now, and is empty otherwise: `configmap "a" not found`. Who reports
     * it writes it with dv_volume_event. The rest is set but for files. */
    dv_str problem;
    dv_str path;         /* on the host; empty for images */
    dv_str plugin;       /* "kubernetes.io~empty-dir"; empty for host paths and images */
    bool is_read_only;   /* for every container, whatever its mount says */
    uint64_t size_bytes; /* of a tmpfs; 0: as the kernel has it */
    uint64_t page_bytes; /* of a hugetlbfs */
    enum dv_host_path_type host_type;   /* of a host path */
    const struct dv_volume_file *files; /* sorted by path, no path twice, none inside another */
    size_t n_files;
};

struct dv_volume_plan {
    dv_str uid;              /* of the pod, as its directory is called */
    dv_str pod_dir;          /* "/var/lib/kubelet/pods/UID" */
    dv_str log_dir;          /* "/var/log/pods/NAMESPACE_NAME_UID" */
    const int64_t *fs_group; /* the group of all files of all volumes but host paths; may be NULL */
    struct dv_volume *volumes; /* those that a container mounts, in the pod's order */
    size_t n_volumes;
    size_t n_problems; /* volumes with one */
};

struct dv_volume_input {
    const struct dv_workload_node *node;
    const struct dv_workload_pod *pod;
    const struct dv_workload_objects *objects;
    const struct dv_volume_token *tokens; /* those of dv_volume_tokens */
    size_t n_tokens;
    uint64_t memory_bytes; /* the limit of the pod's cgroup (dv_config_cgroup); 0: none */
};

/* Plans the volumes of a pod. A volume that cannot be has its problem; nothing else fails. */
struct dv_volume_plan *dv_volume_plan(const struct dv_volume_input *input, struct dv_arena *arena);

/* NULL: the pod has no such volume, or nobody mounts it. */
const struct dv_volume *dv_volume_find(const struct dv_volume_plan *plan, dv_str name);

/* Where a mount with a subPath is found on the host: the place of the bind mount that voldir makes.
 * `index` is the mount's number among the container's volumeMounts, from 0. */
dv_str dv_volume_sub_path_place(const struct dv_volume_plan *plan, dv_str volume, dv_str container,
                                size_t index, struct dv_arena *arena);

/* Checks a subPath after its expansion. Returns NULL, or what is wrong with it: it must be
 * relative and without "..". */
const char *dv_volume_sub_path_fault(dv_str sub_path);

/* The text of the event FailedMount: `MountVolume.SetUp failed for volume "v" : PROBLEM`. */
dv_str dv_volume_event(dv_str volume, dv_str problem, struct dv_arena *arena);

#endif
