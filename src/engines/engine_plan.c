/* engine_plan.c - what was granted, gathered; the words of the command with what it becomes. */
#include "engines/engines.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "cdi/cdi.h"
#include "engines/engine_parts.h"
#include "oci/oci.h"

/* ---- gathering ---- */

static dv_str env_name(dv_str variable)
{
    return dv_str_slice(variable, 0, dv_str_find_char(variable, '='));
}

static void put_env(struct dv_engine_words *env, dv_str variable, struct dv_arena *arena)
{
    for (size_t i = 0; i < env->n; i++)
        if (dv_str_eq(env_name(env->v[i]), env_name(variable))) {
            env->v[i] = variable;
            return;
        }
    *dv_vec_add_in(env, arena) = variable;
}

static void put_node(struct dv_engine_parts *parts, const struct dv_cdi_node *node,
                     struct dv_arena *arena)
{
    for (size_t i = 0; i < parts->nodes.n; i++)
        if (dv_str_eq(parts->nodes.v[i].path, node->path)) {
            parts->nodes.v[i] = *node;
            return;
        }
    *dv_vec_add_in(&parts->nodes, arena) = *node;
}

static void put_mount(struct dv_engine_parts *parts, const struct dv_cdi_mount *mount,
                      struct dv_arena *arena)
{
    for (size_t i = 0; i < parts->mounts.n; i++)
        if (dv_str_eq(parts->mounts.v[i].container_path, mount->container_path)) {
            parts->mounts.v[i] = *mount;
            return;
        }
    *dv_vec_add_in(&parts->mounts, arena) = *mount;
}

static void put_gid(struct dv_engine_parts *parts, uint32_t gid, struct dv_arena *arena)
{
    for (size_t i = 0; i < parts->gids.n; i++)
        if (parts->gids.v[i] == gid)
            return;
    if (gid != 0) /* which CDI ignores */
        *dv_vec_add_in(&parts->gids, arena) = gid;
}

static void gather_options(const struct dv_oci_options *options, struct dv_arena *arena,
                           struct dv_engine_parts *parts)
{
    for (size_t i = 0; i < options->n_env; i++)
        put_env(&parts->env,
                dv_str_printf(arena, "%.*s=%.*s", DV_FMT(options->env[i].key),
                              DV_FMT(options->env[i].value)),
                arena);
    for (size_t i = 0; i < options->n_devices; i++)
        put_node(parts,
                 &(struct dv_cdi_node){.path = options->devices[i].container_path,
                                       .host_path = options->devices[i].host_path,
                                       .permissions = options->devices[i].permissions},
                 arena);
    for (size_t i = 0; i < options->n_mounts; i++) {
        struct dv_cdi_mount mount = {.host_path = options->mounts[i].host_path,
                                     .container_path = options->mounts[i].container_path,
                                     .options = DV_NEW(arena, dv_str),
                                     .n_options = 1};

        mount.options[0] = options->mounts[i].is_read_only ? DV_STR("ro") : DV_STR("rw");
        put_mount(parts, &mount, arena);
    }
    parts->annotations = options->annotations;
    parts->n_annotations = options->n_annotations;
}

static void gather_edits(const struct dv_cdi_part *part, struct dv_arena *arena,
                         struct dv_engine_parts *parts)
{
    const struct dv_cdi_container_edits *edits = part->edits;
    bool is_first = parts->n_hooks + parts->n_net_devices == 0 && !parts->has_rdt;

    for (size_t i = 0; i < edits->n_env; i++)
        put_env(&parts->env, edits->env[i], arena);
    for (size_t i = 0; i < edits->n_nodes; i++)
        put_node(parts, &edits->nodes[i], arena);
    for (size_t i = 0; i < edits->n_mounts; i++)
        put_mount(parts, &edits->mounts[i], arena);
    for (size_t i = 0; i < edits->n_gids; i++)
        put_gid(parts, edits->gids[i], arena);
    if (edits->n_hooks > 0 && parts->n_hooks == 0) {
        parts->hook = edits->hooks[0].path;
        parts->hook_name = dv_str_from_c(dv_cdi_hook_name_text(edits->hooks[0].name));
    }
    parts->n_hooks += edits->n_hooks;
    parts->n_net_devices += edits->n_net_devices;
    parts->has_rdt |= edits->rdt != NULL;
    if (is_first && part->spec)
        parts->spec = part->spec->path;
}

/* Gathers what was granted. has_cdi: CDI devices stay names. */
static void gather(const struct dv_engine_grant *grant, bool has_cdi, struct dv_arena *arena,
                   struct dv_engine_parts *parts)
{
    *parts = (struct dv_engine_parts){0};
    gather_options(grant->options, arena, parts);
    for (size_t i = 0; has_cdi && i < grant->n_names; i++)
        *dv_vec_add_in(&parts->names, arena) = grant->names[i];
    for (size_t i = 0; !has_cdi && grant->n_names > 0 && i < grant->edits->n_parts; i++)
        gather_edits(&grant->edits->parts[i], arena, parts);
}

dv_str dv_engine_node_host(const struct dv_cdi_node *node)
{
    return node->host_path.n > 0 ? node->host_path : node->path;
}

dv_str dv_engine_node_permissions(const struct dv_cdi_node *node)
{
    return node->permissions.n > 0 ? node->permissions : DV_STR("rwm");
}

bool dv_engine_mount_has(const struct dv_cdi_mount *mount, dv_str option)
{
    for (size_t i = 0; i < mount->n_options; i++)
        if (dv_str_eq(mount->options[i], option))
            return true;
    return false;
}

bool dv_engine_mount_is_bind(const struct dv_cdi_mount *mount)
{
    return mount->type.n == 0 || dv_str_eq(mount->type, DV_STR("bind")) ||
           dv_str_eq(mount->type, DV_STR("none")) || dv_engine_mount_has(mount, DV_STR("bind")) ||
           dv_engine_mount_has(mount, DV_STR("rbind"));
}

void dv_engine_add(struct dv_engine_making *making, dv_str word)
{
    *dv_vec_add_in(&making->added, making->arena) = word;
}

void dv_engine_note(struct dv_engine_making *making, dv_str note)
{
    *dv_vec_add_in(&making->notes, making->arena) = note;
}

/* ---- CDI by name ---- */

static bool is_since(struct dv_engine_version version, uint32_t major, uint32_t minor)
{
    return version.major > major || (version.major == major && version.minor >= minor);
}

/* Whether the command takes a name of a CDI device whose spec is in a folder where engines look. */
static bool takes_cdi(const struct dv_engine_command *command, const struct dv_engine_facts *facts)
{
    switch (command->kind) {
    case DV_ENGINE_PODMAN:
        return is_since(facts->version, 4, 1);
    case DV_ENGINE_DOCKER: /* 25 has it, and switched on since 28.2: its daemon was asked */
        return facts->has_cdi;
    case DV_ENGINE_NERDCTL:
        return is_since(facts->version, 2, 1);
    case DV_ENGINE_APPTAINER: /* SingularityCE's, which is at 4; apptainer is at 1 and has no --oci
                               */
        return command->is_oci && is_since(facts->version, 4, 0);
    case DV_ENGINE_PLAIN:
    case DV_ENGINE_RUNC:
    case DV_ENGINE_SYSTEMD_RUN:
    case DV_N_ENGINES:
        break;
    }
    return false;
}

const char *dv_engine_cdi_need(enum dv_engine_kind kind)
{
    static const char *const needs[DV_N_ENGINES] = {
        [DV_ENGINE_PODMAN] = "podman 4.1 or newer, and the spec in /etc/cdi or /var/run/cdi",
        [DV_ENGINE_DOCKER] = "Docker 25 or newer with \"features\": {\"cdi\": true} in "
                             "/etc/docker/daemon.json, and the spec in one of its cdi-spec-dirs",
        [DV_ENGINE_NERDCTL] = "nerdctl 2.1 or newer, and the spec in one of cdi_spec_dirs of "
                              "nerdctl.toml",
        [DV_ENGINE_APPTAINER] = "SingularityCE 4 or newer with --oci, and the spec in /etc/cdi or "
                                "/var/run/cdi",
    };

    return needs[kind] ? needs[kind] : "a container engine: podman, docker, nerdctl, runc or crun";
}

/* Refuses what only a config of a container can say, where the engine has to be told by options. */
static bool check_expressible(const struct dv_engine_making *making, struct dv_err *err)
{
    const struct dv_engine_parts *parts = making->parts;
    const char *what = parts->n_net_devices > 0 ? "a network device"
                       : parts->has_rdt         ? "Intel RDT settings"
                                                : NULL;

    if (parts->n_hooks > 0 && making->command->kind != DV_ENGINE_PLAIN)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "%.*s wants the hook %.*s (%.*s), which %s takes only with a CDI device by "
                       "name: that needs %s",
                       DV_FMT(parts->spec), DV_FMT(parts->hook), DV_FMT(parts->hook_name),
                       dv_engine_name(making->command->kind),
                       dv_engine_cdi_need(making->command->kind));
    if (what)
        return dv_fail(err, DV_FAILED_PRECONDITION, "%.*s wants %s, which needs %s",
                       DV_FMT(parts->spec), what, dv_engine_cdi_need(making->command->kind));
    return true;
}

/* ---- a process ---- */

static bool check_paths(const struct dv_engine_making *making, struct dv_err *err)
{
    const struct dv_engine_parts *parts = making->parts;

    for (size_t i = 0; i < parts->nodes.n; i++)
        if (!dv_str_eq(parts->nodes.v[i].path, dv_engine_node_host(&parts->nodes.v[i])))
            return dv_fail(err, DV_FAILED_PRECONDITION,
                           "the device %.*s is to be seen as %.*s: a process sees it so with "
                           "--isolate, or in a container",
                           DV_FMT(dv_engine_node_host(&parts->nodes.v[i])),
                           DV_FMT(parts->nodes.v[i].path));
    for (size_t i = 0; i < parts->mounts.n; i++)
        if (!dv_str_eq(parts->mounts.v[i].container_path, parts->mounts.v[i].host_path))
            return dv_fail(err, DV_FAILED_PRECONDITION,
                           "%.*s is to be mounted on %.*s: a process sees it so with --isolate, or "
                           "in a container",
                           DV_FMT(parts->mounts.v[i].host_path),
                           DV_FMT(parts->mounts.v[i].container_path));
    return true;
}

static bool list_mounts(struct dv_engine_making *making, struct dv_err *err)
{
    const struct dv_engine_parts *parts = making->parts;
    struct dv_engine_plan *plan = making->plan;

    plan->mounts = DV_NEW_ARRAY(making->arena, struct dv_engine_mount, parts->mounts.n);
    for (size_t i = 0; i < parts->mounts.n; i++) {
        const struct dv_cdi_mount *mount = &parts->mounts.v[i];

        if (!dv_engine_mount_is_bind(mount))
            return dv_fail(err, DV_FAILED_PRECONDITION,
                           "a mount of type %.*s on %.*s needs a container engine",
                           DV_FMT(mount->type), DV_FMT(mount->container_path));
        plan->mounts[plan->n_mounts++] = (struct dv_engine_mount){
            mount->container_path, mount->host_path, dv_engine_mount_has(mount, DV_STR("ro"))};
    }
    return true;
}

/* CUDA looks at another variable than containers' tools do. "void" and "none" mean that the devices
 * come by their nodes. */
static void add_cuda(struct dv_engine_making *making, struct dv_engine_words *env)
{
    static const char cuda[] = "CUDA_VISIBLE_DEVICES";
    static const char nvidia[] = "NVIDIA_VISIBLE_DEVICES";
    dv_str found = DV_STR_NONE;

    for (size_t i = 0; i < env->n; i++) {
        if (dv_str_eq(env_name(env->v[i]), dv_str_from_c(cuda)))
            return;
        if (dv_str_eq(env_name(env->v[i]), dv_str_from_c(nvidia)))
            found = dv_str_slice(env->v[i], sizeof(nvidia), env->v[i].n);
    }
    if (found.n > 0 && !dv_str_eq(found, DV_STR("void")) && !dv_str_eq(found, DV_STR("none")) &&
        !dv_str_eq(found, DV_STR("all")))
        *dv_vec_add_in(env, making->arena) =
            dv_str_printf(making->arena, "%s=%.*s", cuda, DV_FMT(found));
}

static bool plan_process(struct dv_engine_making *making, struct dv_err *err)
{
    const struct dv_engine_parts *parts = making->parts;
    struct dv_engine_plan *plan = making->plan;
    struct dv_engine_words env = {0};

    if ((!making->settings->is_isolated && !check_paths(making, err)) || !list_mounts(making, err))
        return false;
    for (size_t i = 0; i < parts->env.n; i++)
        *dv_vec_add_in(&env, making->arena) = parts->env.v[i];
    add_cuda(making, &env);
    plan->env = env.v;
    plan->n_env = env.n;
    plan->nodes = DV_NEW_ARRAY(making->arena, struct dv_engine_node, parts->nodes.n);
    for (size_t i = 0; i < parts->nodes.n; i++)
        plan->nodes[plan->n_nodes++] =
            (struct dv_engine_node){parts->nodes.v[i].path, dv_engine_node_host(&parts->nodes.v[i]),
                                    dv_engine_node_permissions(&parts->nodes.v[i])};
    plan->gids = parts->gids.v;
    plan->n_gids = parts->gids.n;
    if (parts->n_hooks > 0)
        dv_engine_note(making,
                       dv_str_printf(making->arena,
                                     "%zu hook%s of %.*s (%.*s) %s not run: they prepare the file "
                                     "system of a container",
                                     parts->n_hooks, parts->n_hooks == 1 ? "" : "s",
                                     DV_FMT(parts->spec), DV_FMT(parts->hook_name),
                                     parts->n_hooks == 1 ? "is" : "are"));
    if (making->command->loses_env && env.n > 0) { /* what clears it must not clear this */
        dv_engine_add(making, DV_STR("env"));
        for (size_t i = 0; i < env.n; i++)
            dv_engine_add(making, env.v[i]);
    }
    return true;
}

/* ---- the words ---- */

/* The words with what was added behind the verb; of runc the bundle's words are replaced. */
static void join_words(struct dv_engine_making *making)
{
    const struct dv_engine_command *command = making->command;
    struct dv_engine_words words = {0};
    size_t skips = making->settings->bundle.n > 0 ? command->bundle_word : command->n_words;

    for (size_t i = 0; i < command->n_words; i++) {
        for (size_t k = 0; i == command->options && k < making->added.n; k++)
            *dv_vec_add_in(&words, making->arena) = making->added.v[k];
        if (i < skips || i >= skips + command->n_bundle_words)
            *dv_vec_add_in(&words, making->arena) = command->words[i];
    }
    making->plan->words = words.v;
    making->plan->n_words = words.n;
    making->plan->notes = making->notes.v;
    making->plan->n_notes = making->notes.n;
}

bool dv_engine_plan(const struct dv_engine_command *command, const struct dv_engine_facts *facts,
                    const struct dv_engine_grant *grant, const struct dv_engine_settings *settings,
                    struct dv_arena *arena, struct dv_engine_plan *plan, struct dv_err *err)
{
    bool (*const adders[DV_N_ENGINES])(struct dv_engine_making *, struct dv_err *) = {
        [DV_ENGINE_PLAIN] = plan_process,
        [DV_ENGINE_PODMAN] = dv_engine_add_container,
        [DV_ENGINE_DOCKER] = dv_engine_add_container,
        [DV_ENGINE_NERDCTL] = dv_engine_add_container,
        [DV_ENGINE_RUNC] = dv_engine_add_runc,
        [DV_ENGINE_APPTAINER] = dv_engine_add_apptainer,
        [DV_ENGINE_SYSTEMD_RUN] = dv_engine_add_systemd_run,
    };
    bool has_cdi = grant->are_names_found && takes_cdi(command, facts);
    struct dv_engine_plan made = {0};
    struct dv_engine_parts parts;
    struct dv_engine_making making = {command, facts, settings, &parts, arena, &made, {0}, {0}};

    gather(grant, has_cdi, arena, &parts);
    if (command->kind != DV_ENGINE_RUNC && !check_expressible(&making, err))
        return false;
    if (!adders[command->kind](&making, err))
        return false;
    join_words(&making);
    *plan = made;
    return true;
}

/* ---- printing ---- */

static bool is_shell_safe(dv_str word)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "-_./:=,@%+";

    for (size_t i = 0; i < word.n; i++)
        if (!memchr(safe, word.p[i], sizeof(safe) - 1))
            return false;
    return word.n > 0;
}

void dv_engine_print_words(const dv_str *words, size_t n_words, struct dv_buf *buf)
{
    for (size_t i = 0; i < n_words; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ' ');
        if (is_shell_safe(words[i])) {
            dv_buf_add(buf, words[i]);
            continue;
        }
        dv_buf_add_char(buf, '\'');
        for (size_t k = 0; k < words[i].n; k++)
            if (words[i].p[k] == '\'')
                dv_buf_add_c(buf, "'\\''");
            else
                dv_buf_add_char(buf, words[i].p[k]);
        dv_buf_add_char(buf, '\'');
    }
}
