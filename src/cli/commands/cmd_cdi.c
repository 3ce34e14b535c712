/* cmd_cdi.c - the CDI specs of this machine, and what they add to containers. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cli/cli.h"
#include "cli/client/cdi_specs.h"
#include "cli/client/container_options.h"
#include "cli/client/oci_host.h"
#include "cli/client/pod_ref.h"
#include "oci/oci.h"
#include "proto/davit_node_v1.pb-c.h"
#include "json/json.h"

#define OUTPUT_BYTES_MAX (256u << 20)
/* A config with thousands of mounts and devices is a megabyte. */
#define CONFIG_BYTES_MAX (64u << 20)

static const struct dv_json_style style = {.indent = 4};

/* ---- list ---- */

static struct dv_json *entry_node(const struct dv_cdi_entry *entry, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    dv_json_set(object, DV_STR("name"), dv_json_new_str(entry->device->full_name, arena), arena);
    dv_json_set(object, DV_STR("spec"), dv_json_new_str(entry->spec->path, arena), arena);
    if (entry->rival)
        dv_json_set(object, DV_STR("conflictsWith"), dv_json_new_str(entry->rival->path, arena),
                    arena);
    return object;
}

/* Specs with faults are left out of everything; who misses something wants to know. */
static void warn(const struct dv_cli_specs *specs)
{
    for (size_t i = 0; i < specs->n; i++)
        if (specs->v[i]->n_problems > 0)
            (void)dv_cli_complain("warning: %.*s is left out: %.*s", DV_FMT(specs->v[i]->path),
                                  DV_FMT(specs->v[i]->problems[0]));
}

static enum dv_exit list(struct dv_cli *cli, const struct dv_cli_specs *specs)
{
    /* The device's name is wanted whole; of a claim's device it is long, and its spec's longer. */
    static const char *const headers[] = {"DEVICE", "STATE", "+SPEC", "+CONFLICTS WITH"};
    size_t n;
    const struct dv_cdi_entry **entries = dv_cdi_index_list(specs->index, cli->arena, &n);
    struct dv_json *devices = dv_json_new_array(cli->arena);
    struct dv_table table;

    warn(specs);
    dv_cli_table_init(cli, &table, headers, DV_COUNT(headers));
    for (size_t i = 0; i < n; i++) {
        const struct dv_cdi_entry *entry = entries[i];

        dv_json_append(devices, entry_node(entry, cli->arena));
        dv_table_add(&table, dv_cli_plain(entry->device->full_name, cli->arena));
        dv_table_add(&table, entry->rival ? "conflict" : "usable");
        dv_table_add(&table, dv_cli_plain(entry->spec->path, cli->arena));
        dv_table_add(&table,
                     dv_cli_plain(entry->rival ? entry->rival->path : DV_STR_NONE, cli->arena));
    }
    if (!dv_cli_is_table(cli))
        dv_cli_print_json(cli, devices, &style);
    else
        dv_cli_print_table(cli, &table, 1,
                           dv_str_to_c(dv_str_printf(cli->arena, "no devices in the specs of %.*s",
                                                     DV_FMT(cli->cdi_dirs)),
                                       cli->arena));
    return DV_EXIT_OK;
}

/* ---- resolve ---- */

static enum dv_exit resolve(struct dv_cli *cli, const struct dv_cli_specs *specs)
{
    struct dv_cdi_edits edits;
    struct dv_err err;

    if (!dv_cli_specs_resolve(specs, cli->cdi_dirs, cli->words + 1, cli->n_words - 1, cli->arena,
                              &edits, &err))
        return dv_cli_complain("%s", err.msg); /* with the specs that were refused */
    if (cli->output == DV_OUTPUT_TABLE)
        cli->output = DV_OUTPUT_YAML; /* edits are no table */
    dv_cli_print_json(cli, dv_cdi_edits_to_json(&edits, cli->arena), &style);
    return DV_EXIT_OK;
}

/* ---- check ---- */

static size_t count_devices(const struct dv_cli_specs *specs)
{
    size_t n = 0;

    for (size_t i = 0; i < specs->n; i++)
        n += specs->v[i]->n_devices;
    return n;
}

static enum dv_exit check(struct dv_cli *cli, const struct dv_cli_specs *specs)
{
    struct dv_json *problems = dv_json_new_array(cli->arena);
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    size_t n;
    dv_str rest;
    dv_str line;

    dv_buf_init(&buf, OUTPUT_BYTES_MAX);
    n = dv_cdi_check_print(specs->index, &buf);
    if (cli->output != DV_OUTPUT_TABLE) {
        rest = dv_buf_str(&buf);
        while (dv_str_split(&rest, '\n', &line))
            if (line.n)
                dv_json_append(problems,
                               dv_json_new_str(dv_str_copy(line, cli->arena), cli->arena));
        dv_cli_print_json(cli, problems, &style);
    } else if (n > 0) {
        (void)fputs(dv_buf_c(&buf), stdout);
    } else {
        (void)printf("%zu spec%s with %zu device%s: nothing is wrong\n", specs->n,
                     specs->n == 1 ? "" : "s", count_devices(specs),
                     count_devices(specs) == 1 ? "" : "s");
    }
    return n > 0 ? DV_EXIT_FAILED : DV_EXIT_OK;
}

/* ---- inject ---- */

/* Whether the options of a pod's container are wanted, too. */
static bool names_pod(const struct dv_cli *cli)
{
    return cli->pod.n > 0 || cli->uid.n > 0;
}

/* What goes into a config: CDI devices and, when a pod is named, what its plugins want. */
struct injection {
    const dv_str *names;
    size_t n_names;
    struct dv_oci_options options;
    bool has_options;
};

/* The names of the command line, or those that the config itself asks for. */
static bool find_names(struct dv_cli *cli, const struct dv_json *config,
                       struct injection *injection, struct dv_err *err)
{
    dv_str *asked;

    if (injection->n_names > 0 || injection->has_options)
        return true;
    if (!dv_oci_requested(config, cli->arena, &asked, &injection->n_names, err))
        return false;
    injection->names = asked;
    return injection->n_names > 0 ||
           dv_fail(err, DV_INVALID_ARGUMENT,
                   "its annotations ask for no devices, and none are named");
}

static bool edit(struct dv_cli *cli, const struct dv_cli_specs *specs, const struct dv_json *config,
                 struct injection *injection, struct dv_json **edited, struct dv_err *err)
{
    struct dv_cdi_edits edits;

    if (!find_names(cli, config, injection, err) ||
        !dv_cli_specs_resolve(specs, cli->cdi_dirs, injection->names, injection->n_names,
                              cli->arena, &edits, err))
        return false;
    *edited =
        dv_oci_apply_options(config, &injection->options, &edits, &dv_cli_machine, cli->arena, err);
    return *edited != NULL;
}

static bool inject_into(struct dv_cli *cli, const struct dv_cli_specs *specs, dv_str path,
                        struct injection *injection, struct dv_err *err)
{
    const struct dv_json_opts opts = {.bytes_max = CONFIG_BYTES_MAX};
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf = {0};
    struct dv_json *config;
    struct stat about;
    dv_str text;

    if (stat(dv_str_to_c(path, cli->arena), &about) < 0)
        return dv_fail_errno(err, errno, "%.*s", DV_FMT(path));
    if (!dv_file_read(path, CONFIG_BYTES_MAX, cli->arena, &text, err))
        return false;
    config = dv_json_parse(text, &opts, cli->arena, err);
    if (!config || !edit(cli, specs, config, injection, &config, err))
        return dv_wrap(err, "%.*s", DV_FMT(path));
    dv_buf_init(&buf, CONFIG_BYTES_MAX);
    dv_json_print(config, &style, &buf);
    dv_buf_add_char(&buf, '\n');
    return dv_buf_check(&buf, "the edited config", err) &&
           dv_file_replace(path, dv_buf_str(&buf), about.st_mode & 07777, err);
}

/* Asks davitd for all that the container of the pod is to be started with. */
static bool ask_options(struct dv_cli *cli, struct injection *injection, enum dv_exit *exit)
{
    const NodeV1__ContainerOptionsResponse *response;
    NodeV1__ContainerOptionsRequest request = NODE_V1__CONTAINER_OPTIONS_REQUEST__INIT;
    NodeV1__PodRef ref = NODE_V1__POD_REF__INIT;
    dv_str *names;

    dv_cli_pod_ref(cli, cli->pod, &ref);
    request.pod = &ref;
    request.container = dv_str_to_c(cli->container, cli->arena);
    response = dv_cli_call(cli, "/davit.node.v1.Node/ContainerOptions", &request.base,
                           &node_v1__container_options_response__descriptor, exit);
    if (!response)
        return false;
    injection->has_options = true;
    dv_cli_options_read(response, cli->arena, &injection->options);
    names = DV_NEW_ARRAY(cli->arena, dv_str, injection->n_names + response->n_cdi_devices);
    for (size_t i = 0; i < response->n_cdi_devices; i++)
        names[i] = dv_str_from_c(response->cdi_devices[i]);
    for (size_t i = 0; i < injection->n_names; i++)
        names[response->n_cdi_devices + i] = injection->names[i];
    injection->names = names;
    injection->n_names += response->n_cdi_devices;
    return true;
}

static enum dv_exit inject(struct dv_cli *cli, const struct dv_cli_specs *specs)
{
    dv_str path = dv_str_printf(cli->arena, "%.*s/config.json", DV_FMT(cli->bundle));
    struct injection injection = {.names = cli->words + 1, .n_names = cli->n_words - 1};
    enum dv_exit exit;
    struct dv_err err;

    if (names_pod(cli) && !ask_options(cli, &injection, &exit))
        return exit;
    if (!inject_into(cli, specs, path, &injection, &err))
        return dv_cli_complain("%s", err.msg);
    if (injection.has_options)
        (void)printf(
            "%.*s: %zu env, %zu mount%s, %zu device node%s and %zu CDI device%s injected\n",
            DV_FMT(path), injection.options.n_env, injection.options.n_mounts,
            injection.options.n_mounts == 1 ? "" : "s", injection.options.n_devices,
            injection.options.n_devices == 1 ? "" : "s", injection.n_names,
            injection.n_names == 1 ? "" : "s");
    else
        (void)printf("%.*s: %zu device%s injected\n", DV_FMT(path), injection.n_names,
                     injection.n_names == 1 ? "" : "s");
    return DV_EXIT_OK;
}

/* ---- the verb ---- */

static const struct action {
    const char *word;
    enum dv_exit (*run)(struct dv_cli *cli, const struct dv_cli_specs *specs);
    bool needs_names;
    bool takes_names;
    bool takes_bundle;
} actions[] = {
    {"list",    list,    false, false, false},
    {"resolve", resolve, true,  true,  false},
    {"check",   check,   false, true,  false},
    {"inject",  inject,  false, true,  true },
};

static const struct action *find_action(const struct dv_cli *cli, struct dv_err *err)
{
    const struct action *action = NULL;

    for (size_t i = 0; cli->n_words > 0 && i < DV_COUNT(actions); i++)
        if (dv_str_eq(cli->words[0], dv_str_from_c(actions[i].word)))
            action = &actions[i];
    if (!action)
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "say list, resolve, check or inject");
    else if (action->needs_names && cli->n_words < 2)
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "%s needs names: vendor.com/class=device",
                      action->word);
    else if (!action->takes_names && cli->n_words > 1)
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "%s takes no words", action->word);
    else if (action->run != list && dv_cli_is_table(cli) && cli->output != DV_OUTPUT_TABLE)
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "-o wide and -o name are for list");
    else if (action->takes_bundle != (cli->bundle.n > 0))
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "%s %s --bundle DIR", action->word,
                      action->takes_bundle ? "needs" : "takes no");
    else if (names_pod(cli) != (cli->container.n > 0) || (names_pod(cli) && !action->takes_bundle))
        (void)dv_fail(err, DV_INVALID_ARGUMENT,
                      "inject takes --pod POD or --uid UID with -c "
                      "CONTAINER");
    else if (cli->pod.n > 0 && cli->uid.n > 0)
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "name the pod by --pod or by --uid");
    else
        return action;
    return NULL;
}

enum dv_exit dv_cmd_cdi(struct dv_cli *cli)
{
    const struct action *action;
    struct dv_cli_specs specs;
    struct dv_err err;
    enum dv_exit exit;

    action = find_action(cli, &err);
    if (!action)
        return dv_cli_complain_usage("cdi", "%s", err.msg);
    if (action->run == check && cli->n_words > 1)
        dv_cli_specs_load_files(cli->words + 1, cli->n_words - 1, cli->arena, &specs);
    else if (!dv_cli_specs_load(cli->cdi_dirs, cli->arena, &specs, &err))
        return dv_cli_complain("%s", err.msg);
    exit = action->run(cli, &specs);
    dv_cli_specs_fini(&specs);
    return exit;
}
