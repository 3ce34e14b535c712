/* pod_identity.h - what tells that two things are one physical device: pure values.
 *
 *     device plugin: id "GPU-8f6a…", Allocate's answer      DRA: attributes of the slice, CDI names
 *                        |                                        |
 *                        '----> PCI 0000:3b:00.0   UUID 8f6a…  <--'
 *                               char 195:0         /dev/nvidia0
 *
 * A PCI address or a UUID is that of one device. A node or a path need not be: every container of a
 * vendor gets its control node, too. Such a node is *common* and tells nothing:
 * - what a CDI spec gives for all its devices (its own containerEdits);
 * - what devices of one CDI kind share, unless of any two of them one has all nodes of the other:
 *   so names for the same device ("0", its UUID) and for all of them ("all") do no harm;
 * - what the kernel has once for a kind of devices (/dev/vfio/vfio, /dev/kvm, ...);
 * - what one resource or driver gave for different devices, which the ledger learns (ledger.h). */
#ifndef DV_POD_IDENTITY_H
#define DV_POD_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_api_device;
struct dv_arena;
struct dv_cdi_edits;
struct dv_cdi_index;
struct dv_claim_device;
struct dv_device_record;
struct dv_err;

/* What a device is known by, in the order in which a conflict names it. */
enum dv_identity_kind {
    DV_IDENTITY_PCI,  /* "0000:3b:00.0" */
    DV_IDENTITY_UUID, /* "8f6a1e0c-…", in small letters, without a prefix like "GPU-" */
    DV_IDENTITY_NODE, /* "char 195:0", "block 8:16" */
    DV_IDENTITY_PATH, /* "/dev/nvidia0" on the host */
    DV_N_IDENTITY_KINDS,
};
const char *dv_identity_kind_name(enum dv_identity_kind kind); /* "PCI address", "device node" */

struct dv_identity {
    enum dv_identity_kind kind;
    dv_str text;
};

/* A set of identities, in the arena of the calls that added them. Zeroed memory is an empty set. */
struct dv_identities {
    struct dv_identity *v;
    size_t n;
    size_t size;
};

/* The device node at a path of the host. */
struct dv_identity_node {
    bool is_block; /* else a character device */
    uint32_t major;
    uint32_t minor;
};

/* Looks up a path of the host, following links; false when no device is there. stat(2) is an
 * effect, so the caller brings it. */
struct dv_identity_host {
    bool (*look)(const struct dv_identity_host *host, dv_str path, struct dv_identity_node *node);
};

/* ---- one of them ---- */

/* The whole text is a PCI address ("0000:3B:00.0", "3b:00.0", "00000000:3b:00.0") or a UUID,
 * perhaps after a word ("GPU-8f6a…", "pci-0000:…"), and what follows "::" does not count: it
 * numbers the shares of a device. All zeros are none. The text goes into `arena`. */
DV_CHECKED bool dv_identity_parse(dv_str text, struct dv_arena *arena,
                                  struct dv_identity *identity);
/* An id without the number of its share: "gpu0::3" as "gpu0". */
dv_str dv_identity_device_of(dv_str id);

/* ---- from what is known of devices ---- */

void dv_identities_add(struct dv_identities *set, struct dv_identity identity,
                       struct dv_arena *arena);
/* Adds the path of a node on the host, and the device that is there. Adds nothing when the kernel
 * has the node once for a kind of devices. `host` may be NULL. */
void dv_identities_add_path(struct dv_identities *set, dv_str path,
                            const struct dv_identity_host *host, struct dv_arena *arena);
/* Adds the device nodes of the edits, without those of whole specs and common ones. `index` is the
 * one that the edits were resolved from. */
void dv_identities_add_edits(struct dv_identities *set, const struct dv_cdi_index *index,
                             const struct dv_cdi_edits *edits, const struct dv_identity_host *host,
                             struct dv_arena *arena);
/* Like dv_identities_add_edits, for the edits of these CDI names; a name that no spec has, or two
 * have, gives nothing. `index` may be NULL here and in what follows: no directories with specs are
 * known, and no name gives anything. */
void dv_identities_add_cdi_names(struct dv_identities *set, const struct dv_cdi_index *index,
                                 const dv_str *names, size_t n_names,
                                 const struct dv_identity_host *host, struct dv_arena *arena);

/* Finds all identities of what a container holds of a resource; `ids` are its devices, each once,
 * and both are in `arena`. DV_INVALID_ARGUMENT: the record's response is not an Allocate answer. */
DV_CHECKED bool dv_identities_of_record(const struct dv_device_record *record,
                                        const struct dv_cdi_index *index,
                                        const struct dv_identity_host *host, struct dv_arena *arena,
                                        struct dv_identities *set, dv_str **ids, size_t *n_ids,
                                        struct dv_err *err);
/* Finds all identities of a device that a driver prepared. `devices` are those of the slice that
 * lists it; when there are none, only its CDI names tell. */
void dv_identities_of_claim_device(const struct dv_claim_device *device,
                                   const struct dv_api_device *devices, size_t n_devices,
                                   const struct dv_cdi_index *index,
                                   const struct dv_identity_host *host, struct dv_arena *arena,
                                   struct dv_identities *set);

#endif
