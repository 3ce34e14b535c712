/* dra.h - the insides of a davit_dra. */
#ifndef DV_LIB_DRA_H
#define DV_LIB_DRA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "davit/dra.h"
#include "grpc/grpc.h"
#include "lib/common/dir.h"
#include "lib/common/lib_call.h"
#include "lib/common/parts.h"
#include "lib/common/registry.h"
#include "lib/common/socket.h"
#include "lib/dra/dra_health.h"
#include "lib/dra/dra_job.h"
#include "lib/dra/dra_publish.h"
#include "loop/loop.h"

struct dv_arena;
struct dv_cluster;
struct dv_err;
struct dv_remote;

/* The services of a driver: the registration, v1, v1beta1, health. */
#define DV_LIB_DRA_SERVICES_MAX 4u

/* One socket of a driver, in a watched directory. */
struct dv_lib_dra_endpoint {
    struct davit_dra *dra;
    dv_str path; /* empty: not used */
    dv_str dir_path;
    struct dv_service services[DV_LIB_DRA_SERVICES_MAX];
    size_t n_services;
    struct dv_lib_dir dir;
    struct dv_lib_socket socket;
    bool is_open;
};

struct davit_dra {
    struct davit_driver *driver;
    struct dv_link link; /* in its dras */
    struct dv_arena *arena;
    struct davit_dra_options options; /* texts are in the arena */
    struct davit_dra_owner owner;
    dv_str name;
    dv_str node;
    struct dv_lib_parts parts;
    struct dv_remote *remote; /* NULL: the cluster is another's */
    struct dv_cluster *cluster;
    struct dv_lib_rpcs rpcs;
    struct dv_lib_dra_jobs jobs;
    struct dv_lib_dra_endpoint service_endpoint; /* opened first: who is registered is served */
    struct dv_lib_dra_endpoint registry_endpoint;
    struct dv_lib_registry registry;
    const char *versions[DV_LIB_DRA_SERVICES_MAX];
    size_t n_versions;
    struct dv_lib_health health;
    struct dv_lib_publisher publisher;
    dv_closed_fn *closed; /* lib_embed.h; NULL: nobody waits for the end */
    void *closed_ctx;
};

/* Opens with this cluster in place of the one that the options lead to; NULL: that of the
 * options. */
struct davit_dra *dv_lib_dra_open(struct davit_driver *driver,
                                  const struct davit_dra_options *options,
                                  struct dv_cluster *cluster, struct dv_err *err);

/* dra_options.c: copies the options, fills in those that are not given, and checks them; makes the
 * paths of the sockets and of the lock. DV_INVALID_ARGUMENT. */
DV_CHECKED bool dv_lib_dra_settle(struct davit_dra *dra, const struct davit_dra_options *from,
                                  dv_str *lock_path, struct dv_err *err);

/* dra_service.c: their ctx is a struct davit_dra. */
extern const struct dv_method dv_lib_dra_v1_methods[];
extern const size_t dv_lib_n_dra_v1_methods;
extern const struct dv_method dv_lib_dra_v1beta1_methods[];
extern const size_t dv_lib_n_dra_v1beta1_methods;
extern const struct dv_method dv_lib_health_methods[];
extern const size_t dv_lib_n_health_methods;

#endif
