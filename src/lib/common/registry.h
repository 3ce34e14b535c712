/* registry.h - registering through plugins_registry/: the agent finds our socket there, asks who we
 * are, and tells what became of it. A device plugin's own service is on the same socket; a DRA
 * driver's usually is on another. */
#ifndef DV_LIB_REGISTRY_H
#define DV_LIB_REGISTRY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "loop/loop.h"

struct dv_lib_parts;
struct dv_lib_socket;
struct dv_lib_streams;

struct dv_lib_registry_options {
    dv_str type;                 /* "DevicePlugin", "DRAPlugin" */
    dv_str name;                 /* of the resource or driver */
    dv_str endpoint;             /* path of the plugin's own socket; empty: the one asked */
    const char *const *versions; /* "v1beta1" */
    size_t n_versions;
    struct dv_lib_socket *socket;
    /* The streams by which an agent shows that it has registered us. NULL: none are needed, since
     * an agent that starts again finds the file again. */
    struct dv_lib_streams *streams;
    void (*registered)(void *ctx);
    void (*refused)(void *ctx, const struct dv_err *err); /* the agent tries again */
    void (*lost)(void *ctx, const struct dv_err *err);
    void *ctx;
};

struct dv_lib_registry {
    struct dv_lib_parts *parts;
    struct dv_lib_registry_options options; /* texts are borrowed */
    struct dv_timer timer;                  /* set while an agent should be coming or watching */
    uint64_t backoff_ms;
};

/* The methods of pluginregistration.Registration; their ctx is a struct dv_lib_registry. */
extern const struct dv_method dv_lib_registry_methods[];
extern const size_t dv_lib_n_registry_methods;

void dv_lib_registry_open(struct dv_lib_registry *registry, struct dv_lib_parts *parts,
                          const struct dv_lib_registry_options *options);
void dv_lib_registry_close(struct dv_lib_registry *registry);

/* To be called when a stream has begun or ended. */
void dv_lib_registry_watched(struct dv_lib_registry *registry);

#endif
