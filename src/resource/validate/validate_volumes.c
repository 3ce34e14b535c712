/* validate_volumes.c - the volumes of pods, and where containers mount them. */
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/map.h"
#include "base/str.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/pod_checks.h"

/* Whether a part of the path leads up. */
static bool has_backstep(dv_str path)
{
    dv_str part;

    while (path.n > 0 && dv_str_split(&path, '/', &part))
        if (dv_str_eq(part, DV_STR("..")))
            return true;
    return false;
}

static void check_no_backsteps(struct dv_problems *problems, const struct dv_field_path *path,
                               const char *name, dv_str value)
{
    if (has_backstep(value))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value),
                       "must not contain '..'");
}

/* ---- volumes ---- */

static void check_host_path(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_api_host_path_volume_source *source)
{
    static const dv_str types[] = {
        DV_STR_INIT(""),
        DV_STR_INIT("BlockDevice"),
        DV_STR_INIT("CharDevice"),
        DV_STR_INIT("Directory"),
        DV_STR_INIT("DirectoryOrCreate"),
        DV_STR_INIT("File"),
        DV_STR_INIT("FileOrCreate"),
        DV_STR_INIT("Socket"),
    };

    if (source->path.n == 0)
        dv_required(problems, path, "path");
    else
        check_no_backsteps(problems, path, "path", source->path);
    if (source->type.p)
        dv_check_one_of(problems, path, "type", source->type, types, DV_COUNT(types));
}

void dv_check_volumes(struct dv_problems *problems, const struct dv_field_path *path,
                      struct dv_api_volume *volumes, size_t n_volumes, struct dv_map *names)
{
    for (size_t i = 0; i < n_volumes; i++) {
        struct dv_field_path item = dv_path_index(path, i);
        struct dv_field_path host_path = dv_path_name(&item, "hostPath");
        struct dv_api_volume *volume = &volumes[i];

        if (volume->volume_source.host_path)
            check_host_path(problems, &host_path, volume->volume_source.host_path);
        dv_check_required(problems, &item, "name", volume->name, dv_check_dns_label);
        if (volume->name.n > 0 && dv_map_set(names, volume->name, volume))
            dv_problem_add(problems, DV_PROBLEM_DUPLICATE, &item, "name", dv_bad_str(volume->name),
                           "%s", "");
    }
}

/* ---- mounts ---- */

/* The reference names the field of the list here, not that of the mount. */
static void check_descends(struct dv_problems *problems, const struct dv_field_path *mounts,
                           const char *name, dv_str value)
{
    if (value.p[0] == '/')
        dv_problem_add(problems, DV_PROBLEM_INVALID, mounts, name, dv_bad_str(value),
                       "must be a relative path");
    check_no_backsteps(problems, mounts, name, value);
}

static void check_propagation(struct dv_problems *problems, const struct dv_field_path *mounts,
                              dv_str value, bool is_privileged)
{
    static const dv_str modes[] = {
        DV_STR_INIT("Bidirectional"),
        DV_STR_INIT("HostToContainer"),
        DV_STR_INIT("None"),
    };

    dv_check_one_of(problems, mounts, "mountPropagation", value, modes, DV_COUNT(modes));
    if (dv_str_eq(value, modes[0]) && !is_privileged)
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, mounts, "mountPropagation", dv_bad_none(),
                       "Bidirectional mount propagation is available only to privileged "
                       "containers");
}

static void check_mount(struct dv_problems *problems, const struct dv_field_path *mounts,
                        const struct dv_field_path *path, const struct dv_api_volume_mount *mount,
                        const struct dv_map *volumes)
{
    if (mount->name.n == 0)
        dv_required(problems, path, "name");
    if (!dv_map_get(volumes, mount->name))
        dv_problem_add(problems, DV_PROBLEM_NOT_FOUND, path, "name", dv_bad_str(mount->name), "%s",
                       "");
    if (mount->mount_path.n == 0)
        dv_required(problems, path, "mountPath");
    if (mount->sub_path.n > 0)
        check_descends(problems, mounts, "subPath", mount->sub_path);
    if (mount->sub_path_expr.n == 0)
        return;
    if (mount->sub_path.n > 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "subPathExpr",
                       dv_bad_str(mount->sub_path_expr),
                       "subPathExpr and subPath are mutually exclusive");
    check_descends(problems, mounts, "subPathExpr", mount->sub_path_expr);
}

void dv_check_mounts(struct dv_problems *problems, const struct dv_field_path *path,
                     const struct dv_api_container *container, const struct dv_map *volumes)
{
    struct dv_field_path mounts = dv_path_name(path, "volumeMounts");
    const struct dv_api_security_context *security = container->security_context;
    bool is_privileged = security && security->privileged && *security->privileged;
    DV_CLEANUP(dv_map_fini) struct dv_map paths;

    dv_map_init(&paths);
    for (size_t i = 0; i < container->n_volume_mounts; i++) {
        struct dv_api_volume_mount *mount = &container->volume_mounts[i];
        struct dv_field_path item = dv_path_index(&mounts, i);

        check_mount(problems, &mounts, &item, mount, volumes);
        if (mount->mount_path.n > 0 && dv_map_set(&paths, mount->mount_path, mount))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &item, "mountPath",
                           dv_bad_str(mount->mount_path), "must be unique");
        if (mount->mount_propagation.p)
            check_propagation(problems, &mounts, mount->mount_propagation, is_privileged);
    }
}
