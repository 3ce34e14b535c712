/* claim_state.h - the members of dv_claim_state, and what the pure files of this module share. */
#ifndef DV_CLAIM_STATE_H
#define DV_CLAIM_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "claim/claim.h"

struct dv_api_pod;
struct dv_api_pod_resource_claim;
struct dv_arena;
struct dv_err;

/* A pod that uses claims; it is freed with the last of them. */
struct dv_claim_pod {
    dv_str uid;
    struct dv_map claims; /* dv_claim_entry by key, in the order of attaching */
    char text[];
};

/* A claim, and what the state keeps beside what callers see. */
struct dv_claim_entry {
    struct dv_claim claim;
    dv_str key;                      /* "namespace/name" */
    DV_VEC(dv_str) pods;             /* record.pods: sorted, the texts are the pods' own */
    struct dv_claim_driver *drivers; /* record.drivers */
    struct dv_arena **arenas;        /* of each driver's devices; NULL: it has none */
    struct dv_arena *handles;        /* of drivers; NULL: none has one */
    struct dv_list waiters;
    struct dv_link in_dirty;
    char text[]; /* of key, uid and the names of drivers */
};

struct dv_claim_gone {
    struct dv_buf key;
    bool is_prefix;
};

/* What is known of one device. */
struct dv_claim_health_cell {
    struct dv_claim_health_driver *driver;
    struct dv_claim_health_entry entry;
    struct dv_link in_dirty;
    bool is_seen; /* the list that is being applied has it */
    char text[];
};

struct dv_claim_health_driver {
    dv_str name;
    bool has_devices;    /* false: null in the file */
    struct dv_map cells; /* by "pool/device" */
    char text[];
};

struct dv_claim_state {
    dv_str boot_id;
    bool is_strict;
    struct dv_map claims; /* dv_claim_entry by key */
    struct dv_map pods;   /* dv_claim_pod by uid */
    struct dv_map health; /* dv_claim_health_driver by name */
    struct dv_list dirty;
    struct dv_list dirty_health;
    DV_VEC(struct dv_claim_gone) gone; /* keys to delete, before the dirty ones are written */
    char text[];
};

static inline struct dv_claim_entry *dv_claim_entry_of(struct dv_claim *claim)
{
    return DV_CONTAINER(claim, struct dv_claim_entry, claim);
}

/* claim_state.c */
/* Makes a record of it, or adds its pods to the one that is there. */
struct dv_claim_entry *dv_claim_restore(struct dv_claim_state *state,
                                        const struct dv_claim_record *record);
/* Replaces the driver's devices by copies of these. */
void dv_claim_set_devices(struct dv_claim_state *state, struct dv_claim_entry *entry,
                          size_t i_driver, const struct dv_claim_device *devices, size_t n_devices);
void dv_claim_mark_dirty(struct dv_claim_state *state, struct dv_claim_entry *entry);
/* The index of the driver in record.drivers; n_drivers when it is not there. */
size_t dv_claim_driver_index(const struct dv_claim_record *record, dv_str driver);

/* Frees the entry, and has its row deleted with the next save. */
void dv_claim_forget(struct dv_claim_state *state, struct dv_claim_entry *entry);

/* claim_pods.c */
/* Finds the name of the claim for this entry of the pod. An empty name: no claim was made for it,
 * and none is needed. `statuses` is the index of dv_pod_index_claim_statuses. */
DV_CHECKED bool dv_claim_resolve(const struct dv_api_pod *pod,
                                 const struct dv_api_pod_resource_claim *entry,
                                 const struct dv_map *statuses, struct dv_claim_ref *ref,
                                 struct dv_err *err);
/* The name of the claim for the pod's extended resources; empty: there is none. */
dv_str dv_claim_extended(const struct dv_api_pod *pod);

/* The field of a request that has the text of the handle. */
#define DV_CLAIM_HANDLE_FIELD 4u

/* claim_codec.c */
void dv_claim_key_encode(dv_str namespace, dv_str name, struct dv_buf *key);
void dv_claim_health_key_encode(dv_str driver, dv_str device, struct dv_buf *key);

/* claim_health.c */
struct dv_claim_health_driver *dv_claim_health_driver_add(struct dv_claim_state *state,
                                                          dv_str name);
void dv_claim_health_set(struct dv_claim_state *state, struct dv_claim_health_driver *driver,
                         const struct dv_claim_health_entry *entry);
void dv_claim_health_fini(struct dv_claim_state *state);

#endif
