/* cmd_help.c - the verbs by name, and what they say of themselves. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"

#define HELP_BYTES_MAX (1u << 20)

int dv_cli_verb_place(const struct dv_cli *cli, int argc, char *const *argv)
{
    for (int i = 2; argv[1][0] == '-' && i < argc; i++)
        for (size_t k = 0; k < dv_n_verbs; k++) {
            struct dv_cli trial = *cli;
            bool wants_help = false;
            struct dv_err err;

            /* a word like a verb may be the value of an option: what is before must be options of
             * the verb, and nothing else */
            if (strcmp(argv[i], dv_verbs[k].name) == 0 &&
                dv_cli_parse(&trial, &dv_verbs[k], i - 1, argv + 1, &wants_help, &err) &&
                trial.n_words == 0 && !trial.has_command)
                return i;
        }
    return 1;
}

const struct dv_cli_verb *dv_cli_verb_find(const char *name)
{
    const struct dv_cli_verb *nearest = NULL;
    size_t best = dv_str_distance_max(dv_str_from_c(name));

    for (size_t i = 0; i < dv_n_verbs; i++) {
        size_t d = dv_str_distance(dv_str_from_c(name), dv_str_from_c(dv_verbs[i].name));

        if (d == 0)
            return &dv_verbs[i];
        if (d < best) {
            best = d;
            nearest = &dv_verbs[i];
        }
    }
    if (nearest)
        (void)dv_cli_complain("no verb \"%s\"; did you mean %s?", name, nearest->name);
    else
        (void)dv_cli_complain("no verb \"%s\"; davit help lists them", name);
    return NULL;
}

static void print_options(const struct dv_cli_verb *verb)
{
    struct dv_buf buf;

    dv_buf_init(&buf, HELP_BYTES_MAX);
    dv_cli_print_options(verb, &buf);
    (void)fputs(dv_buf_c(&buf), stdout);
    dv_buf_fini(&buf);
}

void dv_cli_print_help(const struct dv_cli_verb *verb)
{
    (void)printf("davit %s%s%s - %s\n", verb->name, verb->words[0] ? " " : "", verb->words,
                 verb->summary);
    if (verb->help[0])
        (void)printf("\n%s\n", verb->help);
    (void)puts("");
    print_options(verb);
}

static void print_verbs(enum dv_cli_peer peer)
{
    for (size_t i = 0; i < dv_n_verbs; i++)
        if (dv_verbs[i].peer == peer)
            (void)printf("  %-12s %s\n", dv_verbs[i].name, dv_verbs[i].summary);
}

enum dv_exit dv_cmd_help(struct dv_cli *cli)
{
    const struct dv_cli_verb *verb;

    if (cli->n_words > 0) {
        verb = dv_cli_verb_find(dv_str_to_c(cli->words[0], cli->arena));
        if (!verb)
            return DV_EXIT_USAGE;
        dv_cli_print_help(verb);
        return DV_EXIT_OK;
    }
    (void)puts(
        "davit - devices and dynamic resources of a node\n\nusage: davit VERB [OPTION...]\n\n"
        "Objects, over the API:");
    print_verbs(DV_PEER_API);
    (void)puts("\nThis node, over davitd's socket:");
    print_verbs(DV_PEER_DAEMON);
    (void)puts("\nEvery verb of the second group has:");
    print_options(NULL);
    (void)puts("\nFiles of this node, and davit itself:");
    print_verbs(DV_PEER_NONE);
    (void)puts(
        "\nExit status: 0 done, 1 failed, 2 wrong usage, 3 pod refused, 4 no daemon answers;\n"
        "of explain 3: it cannot be allocated.\n"
        "davit help VERB tells more.");
    return DV_EXIT_OK;
}
