#include "cli/client/cdi_specs.h"

#include "base/err.h"
#include "base/file.h"
#include "base/vec.h"
#include "cdi/cdi.h"
#include "cdidir/cdidir.h"

static void add_file(dv_str path, struct dv_arena *arena, struct dv_cli_specs *specs)
{
    struct dv_cdi_file file = {.path = path};
    struct dv_err err;

    if (!dv_file_read(path, DV_CDI_SPEC_BYTES_MAX, arena, &file.text, &err))
        file.unreadable = &err;
    *dv_vec_add_in(specs, arena) = dv_cdi_spec_new(&file);
}

bool dv_cli_specs_load(dv_str dirs, struct dv_arena *arena, struct dv_cli_specs *specs,
                       struct dv_err *err)
{
    struct dv_cdi_reading reading;
    dv_str *paths;
    size_t n_paths = dv_cdi_dirs_split(dirs, arena, &paths);

    dv_cdi_dirs_read(paths, n_paths, arena, &reading);
    if (reading.n_problems > 0) {
        (void)dv_fail(err, DV_UNAVAILABLE, "%.*s: %.*s", DV_FMT(reading.problems[0].path),
                      DV_FMT(reading.problems[0].reason));
        dv_cdi_reading_fini(&reading);
        return false;
    }
    *specs = (struct dv_cli_specs){.v = reading.specs, .n = reading.n_specs};
    specs->index = dv_cdi_index_new(specs->v, specs->n);
    return true;
}

void dv_cli_specs_load_files(const dv_str *paths, size_t n_paths, struct dv_arena *arena,
                             struct dv_cli_specs *specs)
{
    *specs = (struct dv_cli_specs){0};
    for (size_t i = 0; i < n_paths; i++)
        add_file(paths[i], arena, specs);
    specs->index = dv_cdi_index_new(specs->v, specs->n);
}

bool dv_cli_specs_resolve(const struct dv_cli_specs *specs, dv_str dirs, const dv_str *names,
                          size_t n_names, struct dv_arena *arena, struct dv_cdi_edits *edits,
                          struct dv_err *err)
{
    return dv_cdi_resolve(specs->index, names, n_names, arena, edits, err) ||
           dv_wrap(err, "CDI specs of %.*s", DV_FMT(dirs));
}

void dv_cli_specs_fini(struct dv_cli_specs *specs)
{
    dv_cdi_index_free(specs->index);
    for (size_t i = 0; i < specs->n; i++)
        dv_cdi_spec_unref(specs->v[i]);
    *specs = (struct dv_cli_specs){0};
}
