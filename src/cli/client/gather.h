/* gather.h - the objects that a command line means, fetched. */
#ifndef DV_CLI_GATHER_H
#define DV_CLI_GATHER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "cli/client/cli_kinds.h"

struct dv_arena;
struct dv_cli;
struct dv_cli_api;
struct dv_err;
struct dv_json;
struct dv_kind;

struct dv_cli_found {
    const struct dv_kind *kind;
    struct dv_json *doc;
};

struct dv_cli_gathered {
    struct dv_cli_found *v;
    size_t n;
    size_t size;
    bool has_failed; /* something was refused, or absent; it is told */
};

/* The words of the command line, held against its options. DV_INVALID_ARGUMENT, DV_NOT_FOUND. */
DV_CHECKED bool dv_cli_gather_parse(const struct dv_cli *cli, struct dv_cli_targets *targets,
                                    struct dv_err *err);
/* Where a target is: "" for all namespaces, and for what is in none. */
dv_str dv_cli_gather_namespace(const struct dv_cli_api *api, const struct dv_kind *kind);
/* Fetches them all, and tells what cannot be. False: the server is gone; api->exit. */
DV_CHECKED bool dv_cli_gather(struct dv_cli_api *api, const struct dv_cli_targets *targets,
                              struct dv_arena *arena, struct dv_cli_gathered *gathered);
/* "No resources found in x namespace." on standard error. */
void dv_cli_gather_tell_none(const struct dv_cli_api *api, const struct dv_cli_targets *targets);

#endif
