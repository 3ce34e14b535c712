#include "cli/run/run_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cli/cli.h"
#include "cli/client/cdi_specs.h"
#include "cli/client/container_options.h"
#include "cli/client/oci_host.h"
#include "cli/run/lease_text.h"
#include "cli/run/run_folder.h"
#include "engines/engines.h"
#include "oci/oci.h"
#include "proto/davit_node_v1.pb-c.h"
#include "json/json.h"

/* What an engine says about itself, and numbers of processes. */
#define OUTPUT_BYTES_MAX (64u << 10)
#define CONFIG_BYTES_MAX (64u << 20)
#define TEXT_BYTES_MAX (64u << 10)

extern char **environ;

/* ---- asking engines ---- */

/* What the program prints; its complaints are nobody's business here. False: it failed. */
static bool capture(const dv_str *words, size_t n_words, struct dv_arena *arena, dv_str *output)
{
    char **argv = DV_NEW_ARRAY(arena, char *, n_words + 1);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none; /* blocked signals: Ctrl-C ends an engine that does not answer */
    int pipe_fds[2];
    struct dv_err err;
    int status = -1;
    pid_t pid;
    int failed;

    for (size_t i = 0; i < n_words; i++) {
        argv[i] = DV_NEW_ARRAY(arena, char, words[i].n + 1);
        memcpy(argv[i], words[i].p, words[i].n);
    }
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return false;
    (void)sigemptyset(&none);
    failed = posix_spawn_file_actions_init(&actions);
    failed |= posix_spawnattr_init(&attributes);
    failed |= posix_spawnattr_setsigmask(&attributes, &none);
    failed |= posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    failed |= posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
    failed |= posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    failed |= posix_spawnp(&pid, argv[0], &actions, &attributes, argv, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(pipe_fds[1]);
    if (failed == 0) {
        bool is_read = dv_file_read_fd(pipe_fds[0], OUTPUT_BYTES_MAX, arena, output, &err);

        (void)close(pipe_fds[0]);
        pipe_fds[0] = -1;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        return is_read && status == 0;
    }
    (void)close(pipe_fds[0]);
    return false;
}

/* Asks the engine as the command calls it, with its wrappers; has_globals: with what stands before
 * its verb, too. */
static bool ask_engine(const struct dv_engine_command *command, bool has_globals,
                       const dv_str *question, size_t n_question, struct dv_arena *arena,
                       dv_str *answer)
{
    size_t n_kept = has_globals ? command->options - 1 : command->program + 1;
    dv_str *words = DV_NEW_ARRAY(arena, dv_str, n_kept + n_question);

    while (has_globals && dv_str_eq(command->words[n_kept - 1], DV_STR("container")))
        n_kept--;
    for (size_t i = 0; i < n_kept; i++)
        words[i] = command->words[i];
    for (size_t i = 0; i < n_question; i++)
        words[n_kept + i] = question[i];
    return capture(words, n_kept + n_question, arena, answer);
}

/* Where engines look for CDI specs unless they are told otherwise; the last one is the same folder
 * as the one before on nearly every system. */
static const char *const engine_dirs[] = {"/etc/cdi", "/var/run/cdi", "/run/cdi"};

struct places {
    dv_str *v;
    size_t n;
};

static void list_default_places(struct dv_arena *arena, struct places *places)
{
    places->v = DV_NEW_ARRAY(arena, dv_str, DV_COUNT(engine_dirs));
    for (size_t i = 0; i < DV_COUNT(engine_dirs); i++)
        places->v[places->n++] = dv_str_from_c(engine_dirs[i]);
}

/* The daemon of docker tells where it looks; nowhere, when CDI is switched off or it is too old. */
static void ask_docker(const struct dv_engine_command *command, struct dv_arena *arena,
                       struct dv_engine_facts *facts, struct places *places)
{
    static const dv_str question[] = {DV_STR_INIT("info"), DV_STR_INIT("--format"),
                                      DV_STR_INIT("{{json .CDISpecDirs}}")};
    struct dv_err err;
    const struct dv_json *dirs;
    dv_str answer;

    if (!ask_engine(command, true, question, DV_COUNT(question), arena, &answer))
        return;
    dirs = dv_json_parse(answer, NULL, arena, &err);
    if (!dirs || !dv_json_is(dirs, DV_JSON_ARRAY))
        return;
    places->v = DV_NEW_ARRAY(arena, dv_str, dv_json_n(dirs));
    for (const struct dv_json *at = dv_json_first(dirs); at; at = dv_json_next(at))
        if (dv_json_as_str(at, &places->v[places->n], &err))
            places->n++;
    facts->has_cdi = places->n > 0;
}

static void ask_facts(const struct dv_engine_command *command, struct dv_arena *arena,
                      struct dv_engine_facts *facts, struct places *places)
{
    static const dv_str question = DV_STR_INIT("--version");
    dv_str answer;

    if (command->kind == DV_ENGINE_PLAIN || command->kind == DV_ENGINE_RUNC ||
        command->kind == DV_ENGINE_SYSTEMD_RUN)
        return;
    if (ask_engine(command, false, &question, 1, arena, &answer))
        facts->version = dv_engine_version_parse(answer);
    if (command->kind == DV_ENGINE_DOCKER)
        ask_docker(command, arena, facts, places);
    else
        list_default_places(arena, places);
}

/* ---- CDI ---- */

static bool is_found(const struct dv_cdi_index *index, dv_str name, const struct places *places)
{
    const struct dv_cdi_entry *entry = dv_cdi_index_find(index, name);

    for (size_t i = 0; entry && i < places->n; i++)
        if (dv_str_starts_with(entry->spec->path, places->v[i]) &&
            entry->spec->path.n > places->v[i].n && entry->spec->path.p[places->v[i].n] == '/')
            return true;
    return false;
}

/* Resolves the names; `specs` must live as long as the edits. */
static bool resolve(struct dv_cli *cli, struct dv_cli_specs *specs, const struct places *places,
                    struct dv_cdi_edits *edits, struct dv_engine_grant *given, struct dv_err *err)
{
    if (given->n_names == 0)
        return true;
    if (!dv_cli_specs_load(cli->cdi_dirs, cli->arena, specs, err))
        return false;
    if (!dv_cli_specs_resolve(specs, cli->cdi_dirs, given->names, given->n_names, cli->arena, edits,
                              err))
        return false;
    given->are_names_found = true;
    for (size_t i = 0; i < given->n_names; i++)
        given->are_names_found &= is_found(specs->index, given->names[i], places);
    return true;
}

/* ---- what was granted ---- */

static void read_options(const NodeV1__LeaseGrant *grant, struct dv_arena *arena,
                         struct dv_oci_options *options)
{
    NodeV1__ContainerOptionsResponse response = NODE_V1__CONTAINER_OPTIONS_RESPONSE__INIT;
    DV_CLEANUP(dv_buf_fini) struct dv_buf devices;
    struct dv_cdi_annotation *env =
        DV_NEW_ARRAY(arena, struct dv_cdi_annotation, grant->n_envs + 2);

    response.envs = grant->envs;
    response.n_envs = grant->n_envs;
    response.mounts = grant->mounts;
    response.n_mounts = grant->n_mounts;
    response.devices = grant->devices;
    response.n_devices = grant->n_devices;
    response.annotations = grant->annotations;
    response.n_annotations = grant->n_annotations;
    dv_cli_options_read(&response, arena, options);
    dv_buf_init(&devices, TEXT_BYTES_MAX);
    dv_lease_print_devices(grant->lease, &devices);
    env[0] = (struct dv_cdi_annotation){DV_STR("DAVIT_LEASE"), dv_str_from_c(grant->lease->id)};
    env[1] = (struct dv_cdi_annotation){DV_STR("DAVIT_DEVICES"),
                                        dv_str_copy(dv_buf_str(&devices), arena)};
    for (size_t i = 0; i < options->n_env; i++)
        env[i + 2] = options->env[i];
    options->env = env;
    options->n_env += 2;
}

/* ---- bundles ---- */

static bool write_bundle(struct dv_cli *cli, const struct dv_engine_command *command,
                         const struct dv_engine_grant *given, const struct dv_run_folder *folder,
                         struct dv_err *err)
{
    static const struct dv_json_style style = {.indent = 4};
    const struct dv_json_opts opts = {.bytes_max = CONFIG_BYTES_MAX};
    const char *bundle = command->bundle.n > 0 ? dv_str_to_c(command->bundle, cli->arena) : ".";
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf = {0};
    char *real = realpath(bundle, NULL);
    dv_str from = dv_str_copy(dv_str_from_c(real), cli->arena);
    dv_str path = dv_str_printf(cli->arena, "%s/config.json", real ? real : bundle);
    struct dv_json *config;
    dv_str text;

    free(real);
    if (from.n == 0)
        return dv_fail_errno(err, errno, "the bundle %s", bundle);
    if (!dv_file_read(path, CONFIG_BYTES_MAX, cli->arena, &text, err))
        return false;
    config = dv_json_parse(text, &opts, cli->arena, err);
    if (config)
        config = dv_engine_bundle_config(config, from, given, &dv_cli_machine, cli->arena, err);
    if (!config)
        return dv_wrap(err, "%.*s", DV_FMT(path));
    dv_buf_init(&buf, CONFIG_BYTES_MAX);
    dv_json_print(config, &style, &buf);
    return dv_buf_check(&buf, "the edited config", err) &&
           dv_file_replace(dv_str_printf(cli->arena, "%.*s/config.json", DV_FMT(folder->path)),
                           dv_buf_str(&buf), 0600, err);
}

/* ---- the plan ---- */

/* What outlives the command that starts it, or may: its number is wanted. */
static bool needs_folder(const struct dv_engine_command *command)
{
    return command->kind != DV_ENGINE_PLAIN && command->kind != DV_ENGINE_SYSTEMD_RUN &&
           (command->kind != DV_ENGINE_APPTAINER || command->is_detached);
}

static bool make_folder(struct dv_cli *cli, const struct dv_engine_command *command,
                        const struct dv_engine_grant *given, struct dv_run_folder *folder,
                        struct dv_engine_settings *settings, struct dv_err *err)
{
    if (!folder || !needs_folder(command))
        return true;
    if (!dv_run_folder_make(cli->arena, folder, err))
        return false;
    if (command->kind == DV_ENGINE_DOCKER)
        settings->cid_file = dv_str_printf(cli->arena, "%.*s/cid", DV_FMT(folder->path));
    else
        settings->pid_file = dv_str_printf(cli->arena, "%.*s/pid", DV_FMT(folder->path));
    if (command->kind != DV_ENGINE_RUNC)
        return true;
    settings->bundle = folder->path;
    return write_bundle(cli, command, given, folder, err);
}

bool dv_run_plan_make(struct dv_cli *cli, const struct dv_engine_command *command,
                      const NodeV1__LeaseGrant *grant, struct dv_run_folder *folder,
                      struct dv_cli_specs *specs, struct dv_engine_plan *plan, struct dv_err *err)
{
    struct dv_engine_settings settings = {.is_isolated = cli->is_isolated};
    dv_str *names = DV_NEW_ARRAY(cli->arena, dv_str, grant->n_cdi_devices);
    struct dv_cdi_edits edits = {0};
    struct dv_oci_options options;
    struct dv_engine_grant given = {&options, names, grant->n_cdi_devices, &edits, false};
    struct dv_engine_facts facts = {0};
    struct places places = {0};

    read_options(grant, cli->arena, &options);
    for (size_t i = 0; i < grant->n_cdi_devices; i++)
        names[i] = dv_str_from_c(grant->cdi_devices[i]);
    if (grant->n_cdi_devices + grant->n_annotations > 0)
        ask_facts(command, cli->arena, &facts, &places);
    if (command->kind == DV_ENGINE_SYSTEMD_RUN && folder && !command->is_scope)
        settings.unit = dv_str_printf(cli->arena, "davit-run-%s", grant->lease->id);
    return resolve(cli, specs, &places, &edits, &given, err) &&
           make_folder(cli, command, &given, folder, &settings, err) &&
           dv_engine_plan(command, &facts, &given, &settings, cli->arena, plan, err);
}

/* ---- what was started ---- */

static bool read_number(dv_str text, uint32_t *pid)
{
    return dv_str_to_u32(dv_str_trim(text), pid) && *pid > 0;
}

bool dv_run_started_pid(const struct dv_engine_command *command, const struct dv_run_folder *folder,
                        uint32_t *pid)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    bool is_docker = command->kind == DV_ENGINE_DOCKER;
    dv_str named = is_docker ? command->cid_file : command->pid_file;
    dv_str path = named.n > 0 ? named
                              : dv_str_printf(arena, "%.*s/%s", DV_FMT(folder->path),
                                              is_docker ? "cid" : "pid");
    dv_str question[] = {DV_STR("inspect"), DV_STR("--format"), DV_STR("{{.State.Pid}}"),
                         DV_STR_NONE};
    struct dv_err err;
    dv_str text;

    if (!dv_file_read(path, OUTPUT_BYTES_MAX, arena, &text, &err) || dv_str_trim(text).n == 0)
        return false;
    if (!is_docker)
        return read_number(text, pid);
    question[3] = dv_str_trim(text);
    return ask_engine(command, true, question, DV_COUNT(question), arena, &text) &&
           read_number(text, pid);
}
