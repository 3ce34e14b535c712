/* kubelet_checkpoint.h - the file kubelet_internal_checkpoint: what the reference remembers of its
 * device plugins, so that a node can change hands both ways. */
#ifndef DV_KUBELET_CHECKPOINT_H
#define DV_KUBELET_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_device_record;
struct dv_device_state;
struct dv_err;

struct dv_device_registered {
    dv_str resource;
    const dv_str *ids; /* healthy ones; NULL for null */
    size_t n_ids;
};

struct dv_device_checkpoint {
    const struct dv_device_record *records; /* NULL for null */
    size_t n_records;
    const struct dv_device_registered *registered; /* NULL for null; else by name, each once */
    size_t n_registered;
    bool is_flat; /* read from the form without NUMA nodes: all ids are under node 0 */
};

enum dv_device_verdict {
    DV_DEVICE_CHECKPOINT_OK,
    DV_DEVICE_CHECKPOINT_CORRUPT,     /* the checksum does not match */
    DV_DEVICE_CHECKPOINT_JSON_SYNTAX, /* or over a limit of json.h */
    DV_DEVICE_CHECKPOINT_JSON_TYPE,
    DV_DEVICE_CHECKPOINT_BASE64,
};

/* Reads a file as the reference does, quirks included. `checkpoint` is set and `err` is not when it
 * is DV_DEVICE_CHECKPOINT_OK. Keeps `bytes`, which lives as long as the result. */
DV_CHECKED enum dv_device_verdict
dv_device_checkpoint_decode(dv_str bytes, struct dv_arena *arena,
                            struct dv_device_checkpoint *checkpoint, struct dv_err *err);
/* Reads the forms of older releases, which the reference of today refuses. `form` is set to the one
 * that the file has, also when it is damaged; NULL, with false: it has none of them. Device ids
 * that have no NUMA node in the file are put under node 0, as the reference once converted them.
 * DV_DATA_LOSS: its checksum does not match. */
DV_CHECKED bool dv_device_checkpoint_decode_old(dv_str bytes, struct dv_arena *arena,
                                                struct dv_device_checkpoint *checkpoint,
                                                const char **form, struct dv_err *err);
/* Writes the file, byte for byte. */
void dv_device_checkpoint_encode(const struct dv_device_checkpoint *checkpoint, struct dv_buf *buf);

/* Takes the state as it would be in a file. */
void dv_device_checkpoint_take(const struct dv_device_state *state, struct dv_arena *arena,
                               struct dv_device_checkpoint *checkpoint);
/* Adds to a new state what the reference holds after a start from the file. Records whose response
 * is no ContainerAllocateResponse are left out; `n_left_out` counts them. Resources are stopped
 * since now. All of it is new to the store: see dv_device_take_changes. */
void dv_device_checkpoint_load(struct dv_device_state *state,
                               const struct dv_device_checkpoint *checkpoint, uint64_t now_ns,
                               size_t *n_left_out);

#endif
