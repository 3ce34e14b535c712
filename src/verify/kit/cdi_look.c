#include "verify/kit/cdi_look.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "cdi/cdi.h"
#include "cdidir/cdidir.h"
#include "verify/kit/trial.h"

/* ---- what specs name of the host ---- */

/* Of a node whose numbers are given, nobody looks at the host. */
static bool check_node(struct dv_trial *trial, const struct dv_cdi_node *node, struct dv_err *err)
{
    dv_str path = node->host_path.n > 0 ? node->host_path : node->path;
    struct stat found;

    if (node->type == DV_CDI_NODE_FIFO || (node->type != DV_CDI_NODE_ANY && node->major != 0))
        return true;
    if (stat(dv_str_to_c(path, trial->arena), &found) != 0)
        return dv_fail_errno(err, errno, "device node %.*s", DV_FMT(path));
    if (!S_ISCHR(found.st_mode) && !S_ISBLK(found.st_mode) && !S_ISFIFO(found.st_mode))
        return dv_fail(err, DV_FAILED_PRECONDITION, "device node %.*s: it is no device",
                       DV_FMT(path));
    return true;
}

/* Only what is bound has a source: the type is often left out. */
static bool is_bound(const struct dv_cdi_mount *mount)
{
    for (size_t i = 0; i < mount->n_options; i++)
        if (dv_str_eq(mount->options[i], DV_STR("bind")) ||
            dv_str_eq(mount->options[i], DV_STR("rbind")))
            return true;
    return mount->type.n == 0 || dv_str_eq(mount->type, DV_STR("bind"));
}

static bool check_edits(struct dv_trial *trial, const struct dv_cdi_container_edits *edits,
                        struct dv_err *err)
{
    for (size_t i = 0; i < edits->n_nodes; i++)
        if (!check_node(trial, &edits->nodes[i], err))
            return false;
    for (size_t i = 0; i < edits->n_mounts; i++)
        if (is_bound(&edits->mounts[i]) && !dv_trial_has_file(trial, edits->mounts[i].host_path))
            return dv_fail(err, DV_NOT_FOUND, "mount source %.*s: there is no such file",
                           DV_FMT(edits->mounts[i].host_path));
    for (size_t i = 0; i < edits->n_hooks; i++)
        if (access(dv_str_to_c(edits->hooks[i].path, trial->arena), X_OK) != 0)
            return dv_fail_errno(err, errno, "hook %.*s", DV_FMT(edits->hooks[i].path));
    return true;
}

static bool check_host(struct dv_trial *trial, const struct dv_cdi_edits *edits, struct dv_err *err)
{
    for (size_t i = 0; i < edits->n_parts; i++)
        if (!check_edits(trial, edits->parts[i].edits, err))
            return edits->parts[i].spec
                       ? dv_wrap(err, "CDI spec %.*s", DV_FMT(edits->parts[i].spec->path))
                       : false;
    return true;
}

/* ---- names ---- */

static bool look(struct dv_trial *trial, dv_str name, bool is_host_looked_at, struct dv_err *err)
{
    const dv_str dirs[] = {DV_STR("/etc/cdi"), DV_STR("/var/run/cdi"), trial->paths.cdi};
    struct dv_cdi_reading reading;
    struct dv_cdi_index *index;
    struct dv_cdi_edits edits;
    struct dv_cdi_name parts;
    bool is_good;

    if (!dv_cdi_name_parse(name, &parts, err))
        return dv_wrap(err, "CDI name \"%.*s\"", DV_FMT(name));
    dv_cdi_dirs_read(dirs, DV_COUNT(dirs), trial->arena, &reading);
    index = dv_cdi_index_new(reading.specs, reading.n_specs);
    is_good = dv_cdi_resolve(index, &name, 1, trial->arena, &edits, err) &&
              (!is_host_looked_at || check_host(trial, &edits, err));
    dv_cdi_index_free(index);
    dv_cdi_reading_fini(&reading);
    return is_good;
}

bool dv_cdi_look(struct dv_trial *trial, dv_str name, struct dv_err *err)
{
    return look(trial, name, false, err);
}

bool dv_cdi_look_at_host(struct dv_trial *trial, dv_str name, struct dv_err *err)
{
    return look(trial, name, true, err);
}
