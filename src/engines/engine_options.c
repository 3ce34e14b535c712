/* engine_options.c - what was granted as the options of each engine. */
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "engines/engine_parts.h"
#include "engines/engines.h"

static const char *engine_of(const struct dv_engine_making *making)
{
    return dv_engine_name(making->command->kind);
}

static void add_pair(struct dv_engine_making *making, const char *option, dv_str value)
{
    dv_engine_add(making, dv_str_from_c(option));
    dv_engine_add(making, value);
}

static bool has_char(dv_str text, char c)
{
    return dv_str_find_char(text, c) < text.n;
}

/* Refuses a path with a character that parts an option's value. */
static bool check_path(const struct dv_engine_making *making, dv_str path, const char *separators,
                       struct dv_err *err)
{
    for (const char *c = separators; *c; c++)
        if (has_char(path, *c))
            return dv_fail(
                err, DV_FAILED_PRECONDITION,
                "%s cannot be told the path %.*s: '%c' separates paths in its options; a "
                "CDI device by name needs %s",
                engine_of(making), DV_FMT(path), *c, dv_engine_cdi_need(making->command->kind));
    return true;
}

/* ---- podman, docker, nerdctl ---- */

static bool add_node(struct dv_engine_making *making, const struct dv_cdi_node *node,
                     struct dv_err *err)
{
    dv_str host = dv_engine_node_host(node);
    dv_str permissions = dv_engine_node_permissions(node);

    if (!check_path(making, host, ":", err) || !check_path(making, node->path, ":", err))
        return false;
    if (dv_str_eq(permissions, DV_STR("none")))
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "%s cannot be told that %.*s is there without permissions",
                       engine_of(making), DV_FMT(node->path));
    if (node->file_mode.is_set || node->uid.is_set || node->gid.is_set)
        dv_engine_note(making, dv_str_printf(making->arena,
                                             "%.*s has the owner and mode that it has on this "
                                             "machine: %s has no option for others",
                                             DV_FMT(node->path), engine_of(making)));
    add_pair(making, "--device",
             dv_str_printf(making->arena, "%.*s:%.*s:%.*s", DV_FMT(host), DV_FMT(node->path),
                           DV_FMT(permissions)));
    return true;
}

/* Options of a mount that all three have without being told, or that only make it stricter than
 * what they can be told. */
static bool may_drop(dv_str option)
{
    static const dv_str droppable[] = {
        DV_STR_INIT("rw"),       DV_STR_INIT("ro"),      DV_STR_INIT("bind"),
        DV_STR_INIT("rbind"),    DV_STR_INIT("nosuid"),  DV_STR_INIT("nodev"),
        DV_STR_INIT("noexec"),   DV_STR_INIT("suid"),    DV_STR_INIT("dev"),
        DV_STR_INIT("exec"),     DV_STR_INIT("private"), DV_STR_INIT("rprivate"),
        DV_STR_INIT("relatime"), DV_STR_INIT("noatime"),
    };

    for (size_t i = 0; i < DV_COUNT(droppable); i++)
        if (dv_str_eq(option, droppable[i]))
            return true;
    return false;
}

static bool is_propagation(dv_str option)
{
    return dv_str_eq(option, DV_STR("shared")) || dv_str_eq(option, DV_STR("rshared")) ||
           dv_str_eq(option, DV_STR("slave")) || dv_str_eq(option, DV_STR("rslave"));
}

/* --mount, and not -v: a folder that is not there is an error, and none that docker makes. */
static bool add_mount(struct dv_engine_making *making, const struct dv_cdi_mount *mount,
                      struct dv_err *err)
{
    dv_str propagation = DV_STR_NONE;

    if (!dv_engine_mount_is_bind(mount))
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "%s cannot be told a mount of type %.*s on %.*s; a CDI device by name needs "
                       "%s",
                       engine_of(making), DV_FMT(mount->type), DV_FMT(mount->container_path),
                       dv_engine_cdi_need(making->command->kind));
    if (!check_path(making, mount->host_path, ",\"", err) ||
        !check_path(making, mount->container_path, ",\"", err))
        return false;
    for (size_t i = 0; i < mount->n_options; i++) {
        if (is_propagation(mount->options[i]))
            propagation = mount->options[i];
        else if (!may_drop(mount->options[i]))
            return dv_fail(err, DV_FAILED_PRECONDITION,
                           "%s cannot be told the option %.*s of the mount on %.*s",
                           engine_of(making), DV_FMT(mount->options[i]),
                           DV_FMT(mount->container_path));
    }
    add_pair(making, "--mount",
             dv_str_printf(making->arena, "type=bind,source=%.*s,target=%.*s%s%s%.*s",
                           DV_FMT(mount->host_path), DV_FMT(mount->container_path),
                           dv_engine_mount_has(mount, DV_STR("ro")) ? ",readonly" : "",
                           propagation.n > 0 ? ",bind-propagation=" : "", DV_FMT(propagation)));
    return true;
}

/* Where the number of the container's process will be found. */
static void add_files(struct dv_engine_making *making)
{
    const struct dv_engine_settings *settings = making->settings;

    if (settings->pid_file.n > 0 && making->command->pid_file.n == 0)
        add_pair(making,
                 making->command->kind == DV_ENGINE_RUNC ||
                         making->command->kind == DV_ENGINE_APPTAINER
                     ? "--pid-file"
                     : "--pidfile",
                 settings->pid_file);
    if (settings->cid_file.n > 0 && making->command->cid_file.n == 0)
        add_pair(making, "--cidfile", settings->cid_file);
}

/* --annotation is docker's since 24; the other two have had it for longer. */
static void add_annotations(struct dv_engine_making *making)
{
    const struct dv_engine_parts *parts = making->parts;
    uint32_t major = making->facts->version.major;
    bool is_old = making->command->kind == DV_ENGINE_DOCKER && major > 0 && major < 24;

    if (is_old && parts->n_annotations > 0)
        dv_engine_note(making, DV_STR("annotations are left out: docker takes them since 24"));
    for (size_t i = 0; !is_old && i < parts->n_annotations; i++)
        add_pair(making, "--annotation",
                 dv_str_printf(making->arena, "%.*s=%.*s", DV_FMT(parts->annotations[i].key),
                               DV_FMT(parts->annotations[i].value)));
}

static bool check_only_made(const struct dv_engine_making *making, struct dv_err *err)
{
    if (!making->command->is_only_made ||
        making->settings->pid_file.n + making->settings->cid_file.n == 0)
        return true;
    return dv_fail(
        err, DV_FAILED_PRECONDITION,
        "%s create starts nothing that could hold the devices: use %s run, or davit lease "
        "take for a container that a unit starts",
        engine_of(making), engine_of(making));
}

bool dv_engine_add_container(struct dv_engine_making *making, struct dv_err *err)
{
    const struct dv_engine_parts *parts = making->parts;

    if (!check_only_made(making, err))
        return false;
    for (size_t i = 0; i < parts->names.n; i++)
        add_pair(making, "--device", parts->names.v[i]);
    for (size_t i = 0; i < parts->nodes.n; i++)
        if (!add_node(making, &parts->nodes.v[i], err))
            return false;
    for (size_t i = 0; i < parts->mounts.n; i++)
        if (!add_mount(making, &parts->mounts.v[i], err))
            return false;
    for (size_t i = 0; i < parts->env.n; i++)
        add_pair(making, "--env", parts->env.v[i]);
    for (size_t i = 0; i < parts->gids.n; i++)
        add_pair(making, "--group-add", dv_str_printf(making->arena, "%u", parts->gids.v[i]));
    add_annotations(making);
    add_files(making);
    return true;
}

/* ---- runc, crun ---- */

bool dv_engine_add_runc(struct dv_engine_making *making, struct dv_err *err)
{
    (void)err;
    if (making->settings->bundle.n > 0)
        add_pair(making, "--bundle", making->settings->bundle);
    add_files(making);
    return true;
}

/* ---- apptainer, singularity ---- */

bool dv_engine_add_apptainer(struct dv_engine_making *making, struct dv_err *err)
{
    const struct dv_engine_parts *parts = making->parts;

    if (parts->gids.n > 0)
        return dv_fail(
            err, DV_FAILED_PRECONDITION,
            "apptainer runs with the caller's groups, and cannot add the group %u: let an "
            "admin make the caller a member of it",
            parts->gids.v[0]);
    for (size_t i = 0; i < parts->names.n; i++)
        add_pair(making, "--device", parts->names.v[i]);
    for (size_t i = 0; i < parts->nodes.n; i++) {
        dv_str host = dv_engine_node_host(&parts->nodes.v[i]);

        if (!check_path(making, host, ":,", err) ||
            !check_path(making, parts->nodes.v[i].path, ":,", err))
            return false;
        add_pair(making, "--bind",
                 dv_str_printf(making->arena, "%.*s:%.*s", DV_FMT(host),
                               DV_FMT(parts->nodes.v[i].path)));
    }
    for (size_t i = 0; i < parts->mounts.n; i++) {
        const struct dv_cdi_mount *mount = &parts->mounts.v[i];

        if (!dv_engine_mount_is_bind(mount))
            return dv_fail(err, DV_FAILED_PRECONDITION,
                           "apptainer cannot be told a mount of type %.*s on %.*s",
                           DV_FMT(mount->type), DV_FMT(mount->container_path));
        if (!check_path(making, mount->host_path, ":,", err) ||
            !check_path(making, mount->container_path, ":,", err))
            return false;
        add_pair(making, "--bind",
                 dv_str_printf(making->arena, "%.*s:%.*s:%s", DV_FMT(mount->host_path),
                               DV_FMT(mount->container_path),
                               dv_engine_mount_has(mount, DV_STR("ro")) ? "ro" : "rw"));
    }
    for (size_t i = 0; i < parts->env.n; i++)
        add_pair(making, "--env", parts->env.v[i]);
    if (making->command->is_detached)
        add_files(making);
    return true;
}

/* ---- systemd-run ---- */

static void add_property(struct dv_engine_making *making, dv_str property)
{
    add_pair(making, "--property", property);
}

/* Refuses what a scope has no setting for: its process is started by systemd-run itself. */
static bool check_scope(const struct dv_engine_making *making, struct dv_err *err)
{
    const struct dv_engine_parts *parts = making->parts;
    bool has_paths = parts->mounts.n > 0;

    for (size_t i = 0; i < parts->nodes.n; i++)
        has_paths |= !dv_str_eq(parts->nodes.v[i].path, dv_engine_node_host(&parts->nodes.v[i]));
    if (!making->command->is_scope || (!has_paths && parts->gids.n == 0))
        return true;
    return dv_fail(
        err, DV_FAILED_PRECONDITION,
        "systemd-run --scope can mount nothing and add no groups: leave --scope out, and "
        "the command runs as a service");
}

bool dv_engine_add_systemd_run(struct dv_engine_making *making, struct dv_err *err)
{
    const struct dv_engine_parts *parts = making->parts;

    if (!check_scope(making, err))
        return false;
    for (size_t i = 0; i < parts->nodes.n; i++) { /* with one, all that is not allowed is denied */
        const struct dv_cdi_node *node = &parts->nodes.v[i];
        dv_str host = dv_engine_node_host(node);

        if (!check_path(making, host, " :", err) || !check_path(making, node->path, " :", err))
            return false;
        add_property(making, dv_str_printf(making->arena, "DeviceAllow=%.*s %.*s", DV_FMT(host),
                                           DV_FMT(dv_engine_node_permissions(node))));
        if (!dv_str_eq(host, node->path))
            add_property(making, dv_str_printf(making->arena, "BindPaths=%.*s:%.*s", DV_FMT(host),
                                               DV_FMT(node->path)));
    }
    for (size_t i = 0; i < parts->mounts.n; i++) {
        const struct dv_cdi_mount *mount = &parts->mounts.v[i];

        if (!dv_engine_mount_is_bind(mount))
            return dv_fail(err, DV_FAILED_PRECONDITION,
                           "systemd-run cannot be told a mount of type %.*s on %.*s",
                           DV_FMT(mount->type), DV_FMT(mount->container_path));
        if (!check_path(making, mount->host_path, " :", err) ||
            !check_path(making, mount->container_path, " :", err))
            return false;
        add_property(making,
                     dv_str_printf(making->arena, "%s=%.*s:%.*s",
                                   dv_engine_mount_has(mount, DV_STR("ro")) ? "BindReadOnlyPaths"
                                                                            : "BindPaths",
                                   DV_FMT(mount->host_path), DV_FMT(mount->container_path)));
    }
    for (size_t i = 0; i < parts->gids.n; i++)
        add_property(making,
                     dv_str_printf(making->arena, "SupplementaryGroups=%u", parts->gids.v[i]));
    for (size_t i = 0; i < parts->env.n; i++)
        add_pair(making, "--setenv", parts->env.v[i]);
    if (making->settings->unit.n > 0 && making->command->unit.n == 0)
        add_pair(making, "--unit", making->settings->unit);
    return true;
}
