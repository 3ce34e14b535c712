/* cdi_specs.h - the CDI specs of this machine, read from their folders. */
#ifndef DV_CLI_CDI_SPECS_H
#define DV_CLI_CDI_SPECS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_cdi_edits;
struct dv_cdi_index;
struct dv_cdi_spec;
struct dv_err;

struct dv_cli_specs {
    struct dv_cdi_spec **v;
    size_t n;
    size_t size;
    struct dv_cdi_index *index; /* over all of them */
};

/* Loads the specs of the folders, as dv_cdi_dirs_read does; `dirs` has ':' between them. Blocks.
 * Fails when a folder cannot be read. */
DV_CHECKED bool dv_cli_specs_load(dv_str dirs, struct dv_arena *arena, struct dv_cli_specs *specs,
                                  struct dv_err *err);
/* Loads single files, which may be pipes, as the user has named each of them. Blocks. */
void dv_cli_specs_load_files(const dv_str *paths, size_t n_paths, struct dv_arena *arena,
                             struct dv_cli_specs *specs);
/* Resolves the names as dv_cdi_resolve does; `dirs` is where the specs are from. */
DV_CHECKED bool dv_cli_specs_resolve(const struct dv_cli_specs *specs, dv_str dirs,
                                     const dv_str *names, size_t n_names, struct dv_arena *arena,
                                     struct dv_cdi_edits *edits, struct dv_err *err);
void dv_cli_specs_fini(struct dv_cli_specs *specs);

#endif
