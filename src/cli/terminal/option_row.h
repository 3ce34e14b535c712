/* option_row.h - a row of the table of options, for those who read command lines. */
#ifndef DV_CLI_OPTION_ROW_H
#define DV_CLI_OPTION_ROW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct dv_cli;
struct dv_cli_verb;

struct dv_option_row {
    /* Who has it: "node" all verbs of the daemon, "api" all verbs of the API server, else those
     * that name it among their options. */
    const char *group;
    char letter; /* 0: none */
    const char *name;
    const char *value; /* NULL: a switch; "[=...]": may be left out */
    const char *help;
    bool (*set)(struct dv_cli *cli, dv_str value);
    size_t at; /* with set == NULL: a dv_str in struct dv_cli */
};

/* The verb's option of that name, without its dashes, or of that letter; NULL: it has none. */
const struct dv_option_row *dv_option_find_name(const struct dv_cli_verb *verb, dv_str name);
const struct dv_option_row *dv_option_find_letter(const struct dv_cli_verb *verb, char letter);

#endif
