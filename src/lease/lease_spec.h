/* lease_spec.h - what a lease is: who holds what, since when and until when. All of it is durable.
 */
#ifndef DV_LEASE_SPEC_H
#define DV_LEASE_SPEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum dv_lease_owner_kind {
    DV_LEASE_OWNER_PROCESS,
    DV_LEASE_OWNER_CGROUP,
    DV_LEASE_OWNER_UNIT,
};

/* Who holds a lease: it ends with it. */
struct dv_lease_owner {
    enum dv_lease_owner_kind kind;
    uint32_t pid;
    dv_str start;   /* of the process, as /proc has it */
    dv_str cgroup;  /* its directory; of a unit too */
    dv_str unit;    /* of systemd; empty: it is none */
    dv_str boot_id; /* of the kernel on which it was taken: nobody survives a boot */
};

struct dv_lease_resource {
    dv_str name; /* "nvidia.com/gpu" */
    uint64_t n;
};

struct dv_lease_devices {
    dv_str class;
    dv_str request; /* its name in the claim */
    uint64_t n;
    const dv_str *where; /* CEL */
    size_t n_where;
    const dv_str *same; /* qualified names of attributes */
    size_t n_same;
};

/* Why a lease ends; empty: it does not. */
struct dv_lease_end {
    dv_str reason; /* "OwnerEnded" */
    dv_str message;
    dv_str by; /* a user, or empty */
};

struct dv_lease_spec {
    dv_str id;
    dv_str uid; /* that of the pod and the claim by which it holds devices */
    dv_str key; /* the caller's own, or empty */
    uint32_t user;
    dv_str user_name;
    struct dv_lease_owner owner;
    const dv_str *command;
    size_t n_command;
    struct dv_lease_resource *resources; /* each once */
    size_t n_resources;
    struct dv_lease_devices *devices;
    size_t n_devices;
    int64_t priority;
    uint64_t since_ms; /* unix time: when it was granted */
    uint64_t ends_ms;  /* unix time; 0: it is open */
    uint64_t grace_s;
    struct dv_lease_end end;
};

/* The bounds of a request, so that its row, its pod and its claim stay short. */
#define DV_LEASE_RESOURCES_MAX 16u
#define DV_LEASE_DEVICES_MAX 16u
#define DV_LEASE_WHERE_MAX 8u
#define DV_LEASE_WORDS_MAX 64u
#define DV_LEASE_WORD_BYTES_MAX 256u
#define DV_LEASE_KEY_BYTES_MAX 128u
#define DV_LEASE_REASON_BYTES_MAX 1024u
/* Ten years: what is longer is as good as no limit, and this leaves room to count with. */
#define DV_LEASE_SECONDS_MAX (UINT64_C(10) * 366 * 86400)
#define DV_LEASE_ROW_BYTES_MAX (512u * 1024u)

#endif
