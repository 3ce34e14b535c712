#include "cli/cdi_specs.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/file.h"
#include "base/vec.h"
#include "cdi/cdi.h"

struct names {
    dv_str *v;
    size_t n;
    size_t size;
};

static int by_name(const void *a, const void *b)
{
    return dv_str_cmp(*(const dv_str *)a, *(const dv_str *)b);
}

static bool list(dv_str dir, struct dv_arena *arena, struct names *paths, struct dv_err *err)
{
    DIR *folder = opendir(dv_str_to_c(dir, arena));
    int errnum = errno;
    const struct dirent *entry;

    *paths = (struct names){0};
    if (!folder && errnum == ENOENT)
        return true;
    if (!folder)
        return dv_fail_errno(err, errnum, "%.*s", DV_FMT(dir));
    while ((entry = readdir(folder))) {
        dv_str path = dv_str_printf(arena, "%.*s%s%s", DV_FMT(dir),
                                    dv_str_ends_with(dir, DV_STR("/")) ? "" : "/", entry->d_name);
        struct stat about;

        /* A pipe would be waited for; one that is gone again is no spec. */
        if (dv_cdi_is_spec_path(path) && stat(dv_str_to_c(path, arena), &about) == 0 &&
            S_ISREG(about.st_mode))
            *dv_vec_add_in(paths, arena) = path;
    }
    (void)closedir(folder); /* it was only read */
    if (paths->n > 0)
        qsort(paths->v, paths->n, sizeof(paths->v[0]), by_name);
    return true;
}

static void add(dv_str path, uint32_t priority, struct dv_arena *arena, struct dv_cli_specs *specs)
{
    struct dv_cdi_file file = {.path = path, .priority = priority};
    struct dv_err err;

    if (!dv_file_read(path, DV_CDI_SPEC_BYTES_MAX, arena, &file.text, &err))
        file.unreadable = &err;
    *dv_vec_add_in(specs, arena) = dv_cdi_spec_new(&file);
}

bool dv_cli_specs_load(dv_str dirs, struct dv_arena *arena, struct dv_cli_specs *specs,
                       struct dv_err *err)
{
    uint32_t priority = 0;
    dv_str dir;

    *specs = (struct dv_cli_specs){0};
    while (dv_str_split(&dirs, ':', &dir)) {
        struct names paths;

        if (dir.n == 0)
            continue;
        if (!list(dir, arena, &paths, err)) {
            dv_cli_specs_fini(specs);
            return false;
        }
        for (size_t i = 0; i < paths.n; i++)
            add(paths.v[i], priority, arena, specs);
        priority++;
    }
    specs->index = dv_cdi_index_new(specs->v, specs->n);
    return true;
}

void dv_cli_specs_load_files(const dv_str *paths, size_t n_paths, struct dv_arena *arena,
                             struct dv_cli_specs *specs)
{
    *specs = (struct dv_cli_specs){0};
    for (size_t i = 0; i < n_paths; i++)
        add(paths[i], 0, arena, specs);
    specs->index = dv_cdi_index_new(specs->v, specs->n);
}

void dv_cli_specs_fini(struct dv_cli_specs *specs)
{
    dv_cdi_index_free(specs->index);
    for (size_t i = 0; i < specs->n; i++)
        dv_cdi_spec_unref(specs->v[i]);
    *specs = (struct dv_cli_specs){0};
}
