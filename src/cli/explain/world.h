/* world.h - the objects that the allocation of claims depends on: read from files, or fetched. */
#ifndef DV_CLI_WORLD_H
#define DV_CLI_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/map.h"
#include "base/str.h"
#include "resource/resource.h"

struct dv_alloc_node;
struct dv_arena;
struct dv_cli_api;
struct dv_cli_document;
struct dv_err;
struct dv_inventory;
struct dv_json;

struct dv_cli_thing {
    dv_str name; /* in its namespace */
    dv_str namespace;
    void *value; /* struct dv_api_node and so on, with its defaults */
};

struct dv_cli_things {
    struct dv_cli_thing **v; /* in the order in which they came */
    size_t n;
    size_t size;
};

struct dv_cli_world {
    struct dv_arena *arena;
    dv_str namespace; /* of objects that name none */
    struct dv_cli_things of[DV_N_KINDS];
    struct dv_map known; /* by "kind namespace/name" */
};

/* Initializes a world, whose objects will be in `arena`. */
void dv_cli_world_init(struct dv_cli_world *world, dv_str namespace, struct dv_arena *arena);
void dv_cli_world_fini(struct dv_cli_world *world);

/* An object of any version. One of the same name is replaced; kinds that do not matter here are
 * passed over. DV_INVALID_ARGUMENT: what is wrong with it. */
DV_CHECKED bool dv_cli_world_add(struct dv_cli_world *world, const struct dv_json *doc,
                                 struct dv_err *err);
/* The objects of a file, or of a folder's files; "-" is standard input. Blocks. */
DV_CHECKED bool dv_cli_world_read(struct dv_cli_world *world, dv_str path, struct dv_err *err);
/* Which pods are fetched, besides all objects of the kinds that matter. */
struct dv_cli_fetch {
    dv_str namespace; /* theirs, and that of their templates; empty: all */
    dv_str pod;       /* this one */
    bool has_pending; /* all that have no node yet */
    bool has_pods;    /* all of all namespaces: what they take is no more free */
};
/* Fetches what is asked for. False: it failed, which is printed, and api->exit says how to end. */
DV_CHECKED bool dv_cli_world_fetch(struct dv_cli_world *world, struct dv_cli_api *api,
                                   const struct dv_cli_fetch *fetch);

/* Finds an object; NULL: there is none. */
const void *dv_cli_world_find(const struct dv_cli_world *world, enum dv_kind_id kind,
                              dv_str namespace, dv_str name);

/* Slices, with the taints of rules at their devices; classes; and all that claims hold. */
struct dv_inventory *dv_cli_world_inventory(struct dv_cli_world *world);

struct dv_cli_nodes {
    struct dv_alloc_node *v;
    size_t n;
    size_t size;
};
/* The nodes, or where there are none, those that slices are for; with `only` that one.
 * DV_NOT_FOUND: it is not there, or nothing says which nodes there are. */
DV_CHECKED bool dv_cli_world_nodes(const struct dv_cli_world *world, dv_str only,
                                   struct dv_cli_nodes *nodes, struct dv_err *err);

#endif
