/* cmd_version.c - the version, and the libraries that were there at the build. */
#include <stdio.h>

#include "base/defs.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/libraries.h"
#include "json/json.h"

static const struct {
    const char *name;
    const char *version;
} libraries[] = {DV_LIBRARIES};

enum dv_exit dv_cmd_version(struct dv_cli *cli)
{
    const struct dv_json_style style = {.indent = 4};
    struct dv_json *doc = dv_json_new_object(cli->arena);
    struct dv_json *list = dv_json_new_array(cli->arena);

    if (cli->n_words > 0)
        return dv_cli_complain_usage("version", "it takes no words");
    if (cli->output == DV_OUTPUT_TABLE) {
        (void)puts("davit " DV_VERSION);
        return DV_EXIT_OK;
    }
    for (size_t i = 0; i < DV_COUNT(libraries); i++) {
        struct dv_json *library = dv_json_new_object(cli->arena);

        dv_json_set(library, DV_STR("name"),
                    dv_json_new_str(dv_str_from_c(libraries[i].name), cli->arena), cli->arena);
        dv_json_set(library, DV_STR("version"),
                    dv_json_new_str(dv_str_from_c(libraries[i].version), cli->arena), cli->arena);
        dv_json_append(list, library);
    }
    dv_json_set(doc, DV_STR("version"), dv_json_new_str(DV_STR(DV_VERSION), cli->arena),
                cli->arena);
    dv_json_set(doc, DV_STR("compiler"), dv_json_new_str(DV_STR(DV_COMPILER), cli->arena),
                cli->arena);
    dv_json_set(doc, DV_STR("built_with"), list, cli->arena);
    dv_cli_print_json(cli, doc, &style);
    return DV_EXIT_OK;
}
