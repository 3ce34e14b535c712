/* oci.h - CDI edits applied to the config of a container (config.json of the OCI runtime spec).
 *
 * A config goes in as a document and comes out as an edited copy: what no edit touches stays as it
 * was, in its order, known to us or not. Applying the same edits again changes nothing. Results are
 * those of CDI's own library; where they are not on purpose, the code says so.
 *
 *     env           the same name: the new value, in its place; else at the end
 *     deviceNodes   linux.devices, the same path replaced; an allow rule in linux.resources.devices
 *     netDevices    linux.netDevices
 *     mounts        the same destination replaced; all sorted, the shallow ones first
 *     hooks         hooks.<name>, at the end
 *     intelRdt      linux.intelRdt, replaced
 *     additionalGids  process.user.additionalGids, none twice, no 0
 *
 * What device plugins want for a container without CDI is applied by the same code. */
#ifndef DV_OCI_H
#define DV_OCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "cdi/cdi.h"

struct dv_arena;
struct dv_err;
struct dv_json;

/* A device node of the host. */
struct dv_oci_node {
    enum dv_cdi_node_type type; /* never DV_CDI_NODE_ANY */
    uint32_t major;
    uint32_t minor;
};

/* Where the caller finds the host's device nodes; embedded in what it needs for that. */
struct dv_oci_host {
    /* Looks at `path` itself, not where a link there leads: lstat(2). */
    bool (*look)(const struct dv_oci_host *host, dv_str path, struct dv_oci_node *node,
                 struct dv_err *err);
};

/* Makes a node from st_mode and st_rdev. DV_FAILED_PRECONDITION: it is no device node. */
DV_CHECKED bool dv_oci_node_from_stat(uint32_t mode, uint64_t rdev, struct dv_oci_node *node,
                                      struct dv_err *err);

/* The edited copy of `config`, all in `arena`. The host is asked only where a spec leaves type or
 * major open. DV_INVALID_ARGUMENT: the config is not one. DV_FAILED_PRECONDITION: the edits do not
 * go together, or not with this host. Other codes are the host's. */
struct dv_json *dv_oci_apply(const struct dv_json *config, const struct dv_cdi_edits *edits,
                             const struct dv_oci_host *host, struct dv_arena *arena,
                             struct dv_err *err);

/* What device plugins want for a container besides CDI devices, as a container runtime would get
 * it. */
struct dv_oci_mount {
    dv_str container_path;
    dv_str host_path;
    bool is_read_only;
};

struct dv_oci_device {
    dv_str container_path;
    dv_str host_path;   /* a device node of the host, no link to one */
    dv_str permissions; /* of "rwm"; empty: all of them */
};

struct dv_oci_options {
    const struct dv_cdi_annotation *env;
    size_t n_env;
    const struct dv_oci_mount *mounts;
    size_t n_mounts;
    const struct dv_oci_device *devices;
    size_t n_devices;
    const struct dv_cdi_annotation *annotations;
    size_t n_annotations;
};

/* Like dv_oci_apply, with the options first: where both say something of a name or a place, the
 * edits count, as with a runtime that gets both. */
struct dv_json *dv_oci_apply_options(const struct dv_json *config,
                                     const struct dv_oci_options *options,
                                     const struct dv_cdi_edits *edits,
                                     const struct dv_oci_host *host, struct dv_arena *arena,
                                     struct dv_err *err);

/* The names that the config's CDI annotations ask for, in their order. */
DV_CHECKED bool dv_oci_requested(const struct dv_json *config, struct dv_arena *arena,
                                 dv_str **names, size_t *n_names, struct dv_err *err);

#endif
