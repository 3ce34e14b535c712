/* davit.c - davit: finds the verb, reads its options, runs it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"

/* Longer than an admission waits for a plugin by default. */
#define TIMEOUT_DEFAULT_MS 90000u

/* Fails when the output could not be written. A reader that has closed the pipe knows that, so
 * only other errors are printed. */
static int finish(enum dv_exit exit)
{
    int errnum = fflush(stdout) == 0 ? 0 : errno;

    if (errnum == 0 && !ferror(stdout))
        return (int)exit;
    if (errnum != 0 && errnum != EPIPE)
        (void)dv_cli_complain("standard output: %s", strerror(errnum));
    return (int)(exit == DV_EXIT_OK ? DV_EXIT_FAILED : exit);
}

/* Whether kubectl runs us, as it runs any program called kubectl-WORD. */
static bool is_plugin(const char *program)
{
    const char *slash = program ? strrchr(program, '/') : NULL;

    return program && strcmp(slash ? slash + 1 : program, "kubectl-davit") == 0;
}

/* Refuses what a tool for any cluster must not do: change it, or look for a node's daemon. */
static bool may_run(const struct dv_cli *cli, const char *verb)
{
    static const char *const reading[] = {"explain", "get", "describe", "help", "version"};

    for (size_t i = 0; cli->is_plugin && i < DV_COUNT(reading); i++)
        if (strcmp(reading[i], verb) == 0)
            return true;
    if (cli->is_plugin)
        (void)dv_cli_complain("kubectl davit only looks: explain, get, describe; for %s use davit",
                              verb);
    return !cli->is_plugin;
}

/* Where davitd is unless --socket says otherwise. */
static dv_str default_socket(void)
{
    const char *socket = getenv("DAVIT_SOCKET");

    return socket && socket[0] ? dv_str_from_c(socket) : DV_STR("/run/davit/davit.sock");
}

/* The words but for the verb: options may stand before it. */
static char **other_words(int argc, char **argv, int place, struct dv_arena *arena)
{
    char **words = DV_NEW_ARRAY(arena, char *, (size_t)argc);
    int n = 0;

    for (int i = 1; i < argc; i++)
        if (i != place)
            words[n++] = argv[i];
    return words;
}

int main(int argc, char **argv)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cli cli = {
        .arena = arena,
        .socket = default_socket(),
        .has_headers = true,
        .timeout_ms = TIMEOUT_DEFAULT_MS,
        .kubelet_dir = DV_STR("/var/lib/kubelet"),
        .state_dir = DV_STR("/var/lib/davit"),
        .cdi_dirs = DV_STR("/etc/cdi:/var/run/cdi"),
        .is_plugin = is_plugin(argv[0]),
    };
    const struct dv_cli_verb *verb;
    bool wants_help = false;
    struct dv_err err;
    int place;

    if (argc < 2) {
        (void)dv_cmd_help(&cli); /* cannot fail without words */
        return DV_EXIT_USAGE;
    }
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)
        return (int)dv_cmd_help(&cli);
    if (strcmp(argv[1], "--version") == 0)
        return (int)dv_cmd_version(&cli);
    place = dv_cli_verb_place(&cli, argc, argv);
    verb = dv_cli_verb_find(argv[place]);
    if (!verb || !may_run(&cli, verb->name))
        return DV_EXIT_USAGE;
    if (!dv_cli_parse(&cli, verb, argc - 2, other_words(argc, argv, place, arena), &wants_help,
                      &err))
        return (int)dv_cli_complain_usage(verb->name, "%s", err.msg);
    if (wants_help) {
        dv_cli_print_help(verb);
        return DV_EXIT_OK;
    }
    return finish(verb->run(&cli));
}
