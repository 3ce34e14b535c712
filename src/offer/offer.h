/* offer.h - devices that the machine has and no driver offers, as values: what a person writes,
 * what the machine shows, and the devices that come of both.
 *
 *     "serial=/dev/ttyUSB*"  ---> offers ---.
 *     YAML file                             +--> devices, with names that stay over replugging
 *     sysfs, /dev, CDI specs --> snapshot --'
 *
 * Nothing here reads a file or a directory: the built-in driver (builtin.h) takes the snapshots and
 * hands out the devices. */
#ifndef DV_OFFER_H
#define DV_OFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "cdi/cdi.h" /* IWYU pragma: export */

struct dv_arena;
struct dv_buf;
struct dv_err;

/* The name of the driver that offers are published by, also the domain of their attributes. */
#define DV_OFFER_DRIVER "offer.davit.node"
/* What an extended resource is called by default: with the offer's name behind it. */
#define DV_OFFER_RESOURCE_PREFIX "davit.node/"

/* A machine has a few kinds of devices; a file for more than this is a mistake. */
#define DV_OFFERS_MAX 256u
#define DV_OFFER_MATCHES_MAX 256u
#define DV_OFFER_FILE_BYTES_MAX (256u * 1024u)
#define DV_OFFER_TEXT_BYTES_MAX 4096u
/* So that the offer's name, a dash and something of the device's own fit into a DNS label. */
#define DV_OFFER_NAME_BYTES_MAX 30u
/* The most devices of all offers, so that they are published within a turn of the loop: 4,000 took
 * it 40 ms. */
#define DV_OFFER_DEVICES_MAX 1024u

/* -- What is offered ------------------------------------------------------------------------ */

enum dv_offer_match_kind {
    DV_OFFER_PATH, /* "/dev/ttyUSB*": nodes by their path, or by a link to them */
    DV_OFFER_USB,  /* "usb:0403:6001", "usb:0403", "usb:0403:6001:SERIAL" */
    DV_OFFER_PCI,  /* "pci:10de:2204", "pci:10de", "pci:0000:3b:00.0", "pci:class:0302" */
    DV_OFFER_CDI,  /* "cdi:nvidia.com/gpu", "cdi:nvidia.com/gpu=GPU-*" */
};

/* One selector of devices. What is empty matches everything. */
struct dv_offer_match {
    enum dv_offer_match_kind kind;
    dv_str text;    /* as it was written */
    dv_str pattern; /* PATH; CDI: of the device's name; USB: of the serial number */
    dv_str vendor;  /* USB, PCI: four hexadecimal digits, in small letters */
    dv_str product;
    dv_str address;  /* PCI: "0000:3b:00.0" */
    dv_str class;    /* PCI: the first digits of the class code */
    dv_str cdi_kind; /* CDI: "nvidia.com/gpu" */
};

/* Which nodes are one device. */
enum dv_offer_group {
    DV_OFFER_GROUP_AUTO, /* what a path matches is a device; all of a USB or PCI device is one */
    DV_OFFER_GROUP_NODE, /* each node is a device */
    DV_OFFER_GROUP_USB,  /* the nodes of one USB device are, as far as they match */
    DV_OFFER_GROUP_PCI,  /* the nodes of one PCI function are, as far as they match */
};

struct dv_offer {
    dv_str name;       /* "serial", a DNS label */
    dv_str class_name; /* of its DeviceClass: the same, unless told otherwise */
    dv_str resource;   /* the extended resource: "davit.node/serial" */
    struct dv_offer_match *matches;
    size_t n_matches;
    enum dv_offer_group group;
    bool is_shared;            /* many may have a device at once, */
    uint32_t n_shares;         /* at most so many; 0: as many as want to */
    dv_str permissions;        /* of a container on the nodes: "rw" */
    dv_str as;                 /* path in a container; empty: the same as on the host */
    dv_str env;                /* variable with the paths in the container: "DAVIT_SERIAL" */
    struct dv_cdi_number mode; /* of the node in a container, and its owner; unset: as here */
    struct dv_cdi_number uid;
    struct dv_cdi_number gid;
    dv_str origin; /* where it was written: "--offer", "offers.yaml:4" */
};

struct dv_offers {
    struct dv_offer *v;
    size_t n;
};

/* Adds the offer that the option's text describes: "NAME=WHAT[,WHAT|SETTING...]". Texts are copied
 * into `arena`, as are those of the functions that follow. DV_INVALID_ARGUMENT: which word is
 * wrong, and what may be there. */
DV_CHECKED bool dv_offers_add_text(struct dv_offers *offers, dv_str text, struct dv_arena *arena,
                                   struct dv_err *err);
/* Adds those of a YAML file's text. DV_INVALID_ARGUMENT names the file, the line and the reason;
 * some offers may have been added then. */
DV_CHECKED bool dv_offers_add_file(struct dv_offers *offers, dv_str path, dv_str text,
                                   struct dv_arena *arena, struct dv_err *err);
/* Prints an offer so that dv_offers_add_text reads the same again. */
void dv_offer_print(const struct dv_offer *offer, struct dv_buf *buf);

/* Whether the pattern matches the whole path: a star stands for any text within a part of the path,
 * a question mark for one character, "[a-f0]" and "[!a]" for one of a set. */
bool dv_offer_glob(dv_str pattern, dv_str path);

/* -- What the machine has ------------------------------------------------------------------- */

enum dv_offer_bus { DV_OFFER_BUS_USB, DV_OFFER_BUS_PCI };

/* A USB device or a PCI function in sysfs. */
struct dv_offer_part {
    enum dv_offer_bus bus;
    dv_str path;    /* "devices/pci0000:00/0000:00:14.0/usb1/1-4" */
    dv_str vendor;  /* "0403", empty: not known */
    dv_str product; /* "6001" */
    dv_str class;   /* PCI: "030200" */
    dv_str serial;  /* USB */
    dv_str vendor_name;
    dv_str product_name;
    int64_t numa_node; /* -1: none */
};

struct dv_offer_node {
    dv_str path; /* "/dev/ttyUSB0", whatever directory was looked at */
    bool is_block;
    uint32_t major;
    uint32_t minor;
    const dv_str *links; /* paths of symbolic links to it, "/dev/serial/by-id/usb-…" */
    size_t n_links;
    dv_str sys_path;                 /* of the node's device in sysfs; empty: none */
    const struct dv_offer_part *usb; /* the nearest above it; NULL: none */
    const struct dv_offer_part *pci;
};

/* A device of a CDI spec. */
struct dv_offer_cdi {
    dv_str name; /* "nvidia.com/gpu=0" */
    dv_str kind; /* "nvidia.com/gpu" */
    dv_str device;
    const dv_str *nodes; /* its own, as the host knows them */
    size_t n_nodes;
};

struct dv_offer_snapshot {
    const struct dv_offer_node *nodes;
    size_t n_nodes;
    const struct dv_offer_part *parts;
    size_t n_parts;
    const struct dv_offer_cdi *cdi;
    size_t n_cdi;
    bool is_cut; /* there is more than was looked at */
};

/* -- What comes of it ----------------------------------------------------------------------- */

struct dv_offer_device {
    const struct dv_offer *offer;
    dv_str name; /* a DNS label, unique among all; the same after replugging and booting */
    dv_str key;  /* what it was named for; those of several alike differ in `place` */
    dv_str place;
    const struct dv_offer_node **nodes; /* by path in natural order */
    size_t n_nodes;
    const struct dv_offer_cdi *cdi; /* DV_OFFER_CDI; else NULL */
    const struct dv_offer_part *usb;
    const struct dv_offer_part *pci; /* NULL with `usb`: that is the host controller's */
};

/* What a person should know about an offer: a pattern that matches nothing yet, a node that another
 * offer has. */
struct dv_offer_note {
    const struct dv_offer *offer;
    dv_str text;
};

struct dv_offer_list {
    struct dv_offer_device *devices; /* by offer, then by their first nodes in natural order */
    size_t n_devices;
    struct dv_offer_note *notes;
    size_t n_notes;
};

/* Finds the devices of the offers. Of several that look alike (two adapters with one serial number)
 * the one that had the name `before` keeps it, and the others are named by the port that they are
 * plugged into. `before` may be NULL. The list is in `arena` and refers to offers and snapshot. */
void dv_offer_apply(const struct dv_offers *offers, const struct dv_offer_snapshot *snapshot,
                    const struct dv_offer_list *before, struct dv_arena *arena,
                    struct dv_offer_list *list);

/* The device of that name; NULL: it is not there. */
const struct dv_offer_device *dv_offer_find(const struct dv_offer_list *list, dv_str name);

/* -- What a claim gets ---------------------------------------------------------------------- */

/* A device that a claim was given. */
struct dv_offer_given {
    const struct dv_offer_device *device;
    dv_str request;
    dv_str cdi_name; /* set by dv_offer_spec_print */
};

/* Prints the CDI spec for a claim, and sets the CDI name of each device; false: no spec is needed,
 * since all names are those of other specs. `dev_dir` is where the nodes are on this host. */
bool dv_offer_spec_print(dv_str claim_uid, struct dv_offer_given *given, size_t n_given,
                         dv_str dev_dir, struct dv_arena *arena, struct dv_buf *buf);

/* What is remembered of a device while a claim has it, over restarts of the daemon: its name stays,
 * and its nodes are nobody else's, whatever is plugged in meanwhile. */
struct dv_offer_held {
    dv_str offer;
    dv_str name;
    dv_str request; /* of the claim, that it was given for */
    dv_str key;
    dv_str place;
    bool is_shared;
    const dv_str *nodes; /* "char 188:0 /dev/ttyUSB0" */
    size_t n_nodes;
};

/* What is remembered of a claim. */
struct dv_offer_record {
    dv_str claim_uid;
    dv_str claim; /* "namespace/name", for people */
    dv_str spec;  /* the file that was written for it; empty: none */
    struct dv_offer_held *devices;
    size_t n_devices;
};

/* Makes the record of what a claim is given. */
void dv_offer_record_make(dv_str claim_uid, dv_str claim, dv_str spec,
                          const struct dv_offer_given *given, size_t n_given,
                          struct dv_arena *arena, struct dv_offer_record *record);
void dv_offer_record_print(const struct dv_offer_record *record, struct dv_buf *buf);
/* Reads it into `arena`. DV_INVALID_ARGUMENT: it is damaged. */
DV_CHECKED bool dv_offer_record_parse(dv_str text, struct dv_arena *arena,
                                      struct dv_offer_record *record, struct dv_err *err);
/* Adds the record's devices, copied, to what dv_offer_apply takes as `before`. */
void dv_offer_record_remember(const struct dv_offer_record *record, struct dv_arena *arena,
                              struct dv_offer_list *before);
/* The record that has a node of this device under the name of another: that one was unplugged, and
 * the container that got it could use this one. NULL: there is none, or the device may be shared.
 */
const struct dv_offer_record *dv_offer_rival(const struct dv_offer_device *device,
                                             const struct dv_offer_record *const *records,
                                             size_t n_records);

/* -- Uevents -------------------------------------------------------------------------------- */

/* What the kernel tells about a device. */
struct dv_uevent {
    dv_str action; /* "add" */
    dv_str sys_path;
    dv_str subsystem;
    dv_str node; /* "ttyUSB0", without "/dev/"; empty: it has none */
};

/* Reads a message of the kernel's own (not udev's): "ACTION@PATH", then "KEY=VALUE", with zero
 * bytes between. Borrowed from `bytes`. False: it is something else. */
DV_CHECKED bool dv_uevent_parse(dv_str bytes, struct dv_uevent *event);

#endif
