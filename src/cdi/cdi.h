/* cdi.h - the CDI specs on this node, and what a device name adds to a container.
 *
 *     file --> spec (or why it is refused) --.
 *     file --> spec                           >-- index -- resolve("vendor.com/gpu=0") --> edits
 *     file --> spec ------------------------'
 *
 * Nothing here reads a file: the caller hands in texts, and adds and removes specs as files change.
 * Specs never change: any thread may read them; references are counted on one thread, which also
 * has the indexes. All versions of the specification from
 * 0.3.0 to 1.1.0 are known (0.1.0 and 0.2.0 were drafts with other fields). */
#ifndef DV_CDI_H
#define DV_CDI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_json;
struct dv_cdi_index;

/* -- Names ---------------------------------------------------------------------------------- */

/* The specification's own for the two halves of a kind. It gives none for a device: ours has room
 * for what drivers build from the uid of a claim and the name of a request. */
#define DV_CDI_VENDOR_BYTES_MAX 253u
#define DV_CDI_CLASS_BYTES_MAX 63u
#define DV_CDI_DEVICE_BYTES_MAX 512u

/* "vendor.com/gpu=0". */
struct dv_cdi_name {
    dv_str vendor;
    dv_str class;
    dv_str device;
};

/* The parts are borrowed from `text`. DV_INVALID_ARGUMENT: not such a name, and why not. */
DV_CHECKED bool dv_cdi_name_parse(dv_str text, struct dv_cdi_name *name, struct dv_err *err);

/* Whether it is a container's annotation that asks a runtime for devices:
 * "cdi.k8s.io/<plugin>_<device id>", with names between commas. */
bool dv_cdi_annotation_is_request(dv_str key);
/* The names in the value of such an annotation, borrowed from it. */
DV_CHECKED bool dv_cdi_annotation_parse(dv_str value, struct dv_arena *arena, dv_str **names,
                                        size_t *n_names, struct dv_err *err);

/* -- What a spec says ----------------------------------------------------------------------- */

enum dv_cdi_node_type {
    DV_CDI_NODE_ANY, /* not said: what the host has */
    DV_CDI_NODE_BLOCK,
    DV_CDI_NODE_CHAR,
    DV_CDI_NODE_UNBUFFERED, /* "u", which mknod(1) has for a character device */
    DV_CDI_NODE_FIFO,
};
const char *dv_cdi_node_type_text(enum dv_cdi_node_type type); /* "c"; "" for any */

enum dv_cdi_hook_name {
    DV_CDI_HOOK_PRESTART,
    DV_CDI_HOOK_CREATE_RUNTIME,
    DV_CDI_HOOK_CREATE_CONTAINER,
    DV_CDI_HOOK_START_CONTAINER,
    DV_CDI_HOOK_POSTSTART,
    DV_CDI_HOOK_POSTSTOP,
};
const char *dv_cdi_hook_name_text(enum dv_cdi_hook_name name); /* "createRuntime" */

/* Zero is a value of its own. */
struct dv_cdi_number {
    uint32_t value;
    bool is_set;
};

struct dv_cdi_annotation {
    dv_str key;
    dv_str value;
};

struct dv_cdi_node {
    dv_str path;
    dv_str host_path; /* empty: the same */
    enum dv_cdi_node_type type;
    uint32_t major; /* 0: what the host has, and the minor too */
    uint32_t minor;
    struct dv_cdi_number file_mode;
    dv_str permissions; /* of "rwm"; empty: all of them; "none": none */
    struct dv_cdi_number uid;
    struct dv_cdi_number gid;
};

struct dv_cdi_net_device {
    dv_str host_name;
    dv_str name;
};

struct dv_cdi_mount {
    dv_str host_path;
    dv_str container_path;
    dv_str type;
    dv_str *options;
    size_t n_options;
};

struct dv_cdi_hook {
    enum dv_cdi_hook_name name;
    dv_str path;
    dv_str *args;
    size_t n_args;
    dv_str *env;
    size_t n_env;
    struct dv_cdi_number timeout_s;
};

struct dv_cdi_rdt {
    dv_str clos_id;
    dv_str l3_schema;
    dv_str mem_bw_schema;
    dv_str *schemata; /* not NULL when it is given */
    size_t n_schemata;
    bool has_cmt; /* these two until 1.0.0, monitoring in their place since */
    bool has_mbm;
    bool has_monitoring;
};

/* The "containerEdits" of a device, or of a spec for all its devices. */
struct dv_cdi_container_edits {
    dv_str *env; /* "NAME=value" */
    size_t n_env;
    struct dv_cdi_node *nodes;
    size_t n_nodes;
    struct dv_cdi_net_device *net_devices;
    size_t n_net_devices;
    struct dv_cdi_hook *hooks;
    size_t n_hooks;
    struct dv_cdi_mount *mounts;
    size_t n_mounts;
    struct dv_cdi_rdt *rdt; /* NULL: none */
    uint32_t *gids;
    size_t n_gids;
};

struct dv_cdi_device {
    dv_str name;
    dv_str full_name; /* "vendor.com/gpu=0" */
    struct dv_cdi_annotation *annotations;
    size_t n_annotations;
    struct dv_cdi_container_edits edits;
};

/* A spec. When it has problems, the other members say how far reading came, and no index
 * uses it. */
struct dv_cdi_spec {
    dv_str path;
    uint32_t priority;
    dv_str *problems; /* what is wrong with the file: place, path in the document, value, reason */
    size_t n_problems;
    dv_str version;
    dv_str kind; /* "vendor.com/gpu" */
    dv_str vendor;
    dv_str class;
    struct dv_cdi_annotation *annotations; /* for people and tools; no container gets them */
    size_t n_annotations;
    struct dv_cdi_device *devices;
    size_t n_devices;
    struct dv_cdi_container_edits edits;
};

/* -- Specs ---------------------------------------------------------------------------------- */

/* The largest spec: that of a vendor for a machine full of partitioned devices is a few hundred
 * kilobytes. */
#define DV_CDI_SPEC_BYTES_MAX (4u * 1024u * 1024u)
#define DV_CDI_SPEC_DEVICES_MAX 16384u
/* The most problems, more than a person reads; the last one then says that there are more. */
#define DV_CDI_SPEC_PROBLEMS_MAX 32u

struct dv_cdi_file {
    dv_str path;
    dv_str text;
    uint32_t priority;               /* its directory's number in the list: the higher one wins */
    const struct dv_err *unreadable; /* why there is no text; NULL as a rule */
};

/* Whether a directory's entry is a spec: "*.json" or "*.yaml". */
bool dv_cdi_is_spec_path(dv_str path);
/* Reads and validates; keeps nothing of `file`. What is wrong is in its problems. */
struct dv_cdi_spec *dv_cdi_spec_new(const struct dv_cdi_file *file);
struct dv_cdi_spec *dv_cdi_spec_ref(struct dv_cdi_spec *spec);
void dv_cdi_spec_unref(struct dv_cdi_spec *spec);   /* NULL is fine */
void dv_cdi_spec_unrefp(struct dv_cdi_spec **spec); /* for DV_CLEANUP */
/* -- The index ------------------------------------------------------------------------------ */

/* The most names, more than any container has; resolving compares each with those before it. */
#define DV_CDI_NAMES_MAX 1024u

/* A device that a name stands for. */
struct dv_cdi_entry {
    const struct dv_cdi_spec *spec;
    const struct dv_cdi_device *device;
    const struct dv_cdi_spec *rival; /* has it too, with the same priority: nobody gets it */
};

/* The edits of one device, or those that its spec has for all its devices, and where they are
 * from, for messages. */
struct dv_cdi_part {
    const struct dv_cdi_spec *spec;     /* NULL: no spec has them (oci.h: options) */
    const struct dv_cdi_device *device; /* NULL: the spec's own */
    const struct dv_cdi_container_edits *edits;
};

/* What some names add to a container: part after part, in this order. */
struct dv_cdi_edits {
    struct dv_cdi_part *parts;
    size_t n_parts;
};

/* References the specs. Where several have a device, the one with the highest priority counts; of
 * those with the same, the first one is the entry's spec and the second its rival. */
struct dv_cdi_index *dv_cdi_index_new(struct dv_cdi_spec *const *specs, size_t n_specs);
void dv_cdi_index_free(struct dv_cdi_index *index);   /* NULL is fine */
void dv_cdi_index_freep(struct dv_cdi_index **index); /* for DV_CLEANUP */

/* Adds or removes one spec: costs what is in it, whatever else is there. Specs that are added count
 * in the order of priority and path, before those that the index was made of; no two of them have
 * both the same. The index takes a reference. */
void dv_cdi_index_add(struct dv_cdi_index *index, struct dv_cdi_spec *spec);
/* `spec` was added. It, its entries and what was resolved from it stay until they are swept. */
void dv_cdi_index_remove(struct dv_cdi_index *index, struct dv_cdi_spec *spec);
void dv_cdi_index_sweep(struct dv_cdi_index *index);

/* The device of that name; NULL when no spec has it. */
const struct dv_cdi_entry *dv_cdi_index_find(const struct dv_cdi_index *index, dv_str full_name);

/* The next spec with problems, in the order of specs; NULL at the end. Start with 0. */
const struct dv_cdi_spec *dv_cdi_index_refused(const struct dv_cdi_index *index, size_t *at);

/* The nodes that a device has of its own, as the host knows them ("/dev/gpu0", "char 195:0" when
 * there is no path of the host): sorted, each once. */
struct dv_cdi_nodes {
    dv_str *keys;
    size_t n_keys;
};
/* The different sets of nodes with `node` in them that devices of `kind` have, until the index
 * changes. Devices that a higher priority hides do not count. NULL: none. */
const struct dv_cdi_nodes *const *dv_cdi_index_owners(const struct dv_cdi_index *index, dv_str kind,
                                                      const struct dv_cdi_node *node,
                                                      size_t *n_sets);

/* Lists all devices by name, into `arena`; the index owns them. */
const struct dv_cdi_entry **dv_cdi_index_list(const struct dv_cdi_index *index,
                                              struct dv_arena *arena, size_t *n_entries);

/* Gathers the edits of `names` ("vendor.com/gpu=0") into `arena`, in that order: a spec's own
 * before those of its first device here, each only once. They point into the index.
 * DV_INVALID_ARGUMENT: not a name. DV_NOT_FOUND: no spec has it. DV_FAILED_PRECONDITION: two specs
 * have it. DV_RESOURCE_EXHAUSTED: too many names. */
DV_CHECKED bool dv_cdi_resolve(const struct dv_cdi_index *index, const dv_str *names,
                               size_t n_names, struct dv_arena *arena, struct dv_cdi_edits *edits,
                               struct dv_err *err);
/* Makes one "containerEdits" of all parts. */
struct dv_json *dv_cdi_edits_to_json(const struct dv_cdi_edits *edits, struct dv_arena *arena);

/* -- For people ----------------------------------------------------------------------------- */

/* Prints a line for each problem of each file, and for each device that two files of one directory
 * have. Returns how many. */
size_t dv_cdi_check_print(const struct dv_cdi_index *index, struct dv_buf *buf);

#endif
