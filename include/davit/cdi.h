/* davit/cdi.h - CDI specs for what a driver prepared (libdavit-driver).
 *
 * A container gets a device by a CDI name, "vendor.com/class=name": the runtime looks it up in the
 * specs of the node. A DRA driver writes a spec when it prepares a claim, and removes it with the
 * claim:
 *
 *     struct davit_cdi_node node = {.path = "/dev/ttyS0"};
 *     const char *env[] = {"PORT=/dev/ttyS0"};
 *     struct davit_cdi_device device = {
 *         .name = claim->ref.uid, .env = env, .n_env = 1, .nodes = &node, .n_nodes = 1};
 *     struct davit_cdi_spec spec = {.kind = "serial.example.com/port", .id = claim->ref.uid,
 *                                   .devices = &device, .n_devices = 1};
 *     char name[DAVIT_CDI_NAME_BYTES];
 *
 *     if (davit_cdi_write(&spec, &error) &&
 *         davit_cdi_name(spec.kind, device.name, name, sizeof(name)))
 *         ... davit_dra_add_device with `name` in .cdi ...
 *
 * No driver has to be open for these, and any thread may call them. */
#ifndef DAVIT_CDI_H
#define DAVIT_CDI_H

#include <stdbool.h>
#include <stddef.h>

#include "davit/driver.h" /* IWYU pragma: export */

#ifdef __cplusplus
extern "C" {
#endif

/* Where runtimes and davitd look for specs that last until the next boot. */
#define DAVIT_CDI_DIR "/var/run/cdi"
/* Room for every name that davit_cdi_name makes of a kind and a device that are good. */
#define DAVIT_CDI_NAME_BYTES 512

/* A device node. */
struct davit_cdi_node {
    const char *path;        /* in the container */
    const char *host_path;   /* NULL: the same */
    const char *permissions; /* "r", "rw", "rwm"; NULL: what the runtime gives, which is all */
};

struct davit_cdi_mount {
    const char *host_path;
    const char *container_path;
    const char *const *options; /* "ro", "bind", ... */
    size_t n_options;
};

struct davit_cdi_device {
    const char *name;       /* letters, digits, '_', '-', '.', ':' */
    const char *const *env; /* "NAME=value" */
    size_t n_env;
    const struct davit_cdi_node *nodes;
    size_t n_nodes;
    const struct davit_cdi_mount *mounts;
    size_t n_mounts;
};

/* Zeroed, then filled in. */
struct davit_cdi_spec {
    const char *dir;  /* made when it is not there; NULL: DAVIT_CDI_DIR */
    const char *kind; /* "vendor.com/class" */
    const char *id;   /* of the file among those of this kind: the claim's uid */
    const struct davit_cdi_device *devices;
    size_t n_devices;
};

/* Writes the spec, whole or not at all, in the place of one with the same kind and id; it is on the
 * disk when this returns. DAVIT_INVALID_ARGUMENT: no runtime would take it, and why. */
DAVIT_API bool davit_cdi_write(const struct davit_cdi_spec *spec, struct davit_error *error);
/* Removes it; one that is not there is a success. `dir` may be NULL. */
DAVIT_API bool davit_cdi_remove(const char *dir, const char *kind, const char *id,
                                struct davit_error *error);
/* Makes "kind=device". False: it does not fit. */
DAVIT_API bool davit_cdi_name(const char *kind, const char *device, char *name, size_t size);

#ifdef __cplusplus
}
#endif

#endif
