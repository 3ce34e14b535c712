#include "cli/commands/options_as.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cli/client/cdi_specs.h"
#include "cli/client/container_options.h"
#include "cli/client/oci_host.h"
#include "engines/engines.h"
#include "oci/oci.h"
#include "proto/davit_node_v1.pb-c.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (1u << 20)
/* What the engine's command line is made with, to be taken away again: `ENGINE run ... IMAGE`. */
#define N_BEFORE 2u
#define N_AROUND 3u

/* An engine that was not asked is taken for one that knows CDI: the options may be for another
 * machine than this. */
static bool print_words(struct dv_cli *cli, const struct dv_engine_grant *grant, struct dv_err *err)
{
    const dv_str words[N_AROUND] = {cli->as, DV_STR("run"), DV_STR("IMAGE")};
    const struct dv_engine_facts facts = {
        .version = {99, 0},
          .has_cdi = true
    };
    const struct dv_engine_settings settings = {0};
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_engine_command command;
    struct dv_engine_plan plan;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    if (!dv_engine_parse(words, DV_COUNT(words), DV_STR(""), &command, err))
        return false;
    if (!dv_engine_plan(&command, &facts, grant, &settings, cli->arena, &plan, err))
        return false;
    dv_engine_print_words(plan.words + N_BEFORE, plan.n_words - N_AROUND, &text);
    if (!dv_buf_check(&text, "the options", err))
        return false;
    (void)puts(dv_buf_c(&text));
    for (size_t i = 0; i < plan.n_notes; i++)
        (void)fprintf(stderr, "%s\n", dv_cli_plain(plan.notes[i], cli->arena));
    return true;
}

static bool print_config(struct dv_cli *cli, const struct dv_engine_grant *grant,
                         struct dv_err *err)
{
    static const struct dv_json_style style = {.indent = 4};
    const struct dv_json *empty = dv_json_parse(
        DV_STR("{\"ociVersion\":\"1.0.2\",\"process\":{},\"linux\":{}}"), NULL, cli->arena, err);
    const struct dv_json *config = empty ? dv_oci_apply_options(empty, grant->options, grant->edits,
                                                                &dv_cli_machine, cli->arena, err)
                                         : NULL;

    if (config)
        dv_cli_print_json(cli, config, &style);
    return config != NULL;
}

bool dv_cli_check_as(const struct dv_cli *cli)
{
    static const char *const engines[] = {"podman", "docker", "nerdctl", "runc"};

    for (size_t i = 0; i < DV_COUNT(engines); i++)
        if (dv_str_eq(cli->as, dv_str_from_c(engines[i])))
            return true;
    return false;
}

enum dv_exit dv_cli_print_options_as(struct dv_cli *cli,
                                     const NodeV1__ContainerOptionsResponse *response)
{
    dv_str *names = DV_NEW_ARRAY(cli->arena, dv_str, response->n_cdi_devices);
    struct dv_cli_specs specs = {0};
    struct dv_cdi_edits edits = {0};
    struct dv_oci_options options;
    struct dv_engine_grant grant = {&options, names, response->n_cdi_devices, &edits, true};
    struct dv_err err;
    bool ok = true;

    dv_cli_options_read(response, cli->arena, &options);
    for (size_t i = 0; i < response->n_cdi_devices; i++)
        names[i] = dv_str_from_c(response->cdi_devices[i]);
    if (grant.n_names > 0)
        ok = dv_cli_specs_load(cli->cdi_dirs, cli->arena, &specs, &err) &&
             dv_cli_specs_resolve(&specs, cli->cdi_dirs, names, grant.n_names, cli->arena, &edits,
                                  &err);
    if (ok)
        ok = dv_str_eq(cli->as, DV_STR("runc")) ? print_config(cli, &grant, &err)
                                                : print_words(cli, &grant, &err);
    dv_cli_specs_fini(&specs);
    return ok ? DV_EXIT_OK : dv_cli_complain("%s", err.msg);
}
