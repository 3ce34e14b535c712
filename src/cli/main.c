/* main.c - davit: finds the verb, reads its options, runs it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"

/* Longer than an admission waits for a plugin by default. */
#define TIMEOUT_DEFAULT_MS 90000u
#define HELP_BYTES_MAX (1u << 20)

#define KINDS                                                                                      \
    "KIND is pods, nodes, claims, templates, slices, classes, taintrules, events, leases,\n"       \
    "namespaces, configmaps, secrets or serviceaccounts; the API's own names (resourceclaims,\n"   \
    "ResourceClaim, po) do as well. "

const struct dv_cli_verb dv_verbs[] = {
    {.name = "get",
     .words = "KIND[,KIND...] [NAME...] | KIND/NAME...",
     .summary = "objects of the API, as a table or whole",
     .help = KINDS "all is pods, claims, templates, slices and classes.\n\n"
                   "  davit get claims                     in the namespace default\n"
                   "  davit get pods,claims -A -o wide     in all namespaces, with all columns\n"
                   "  davit get slices -l tier=fast\n"
                   "  davit get claim/gpu-claim -o yaml\n"
                   "  davit get pods -w                    and what changes, until Ctrl-C", .options = "output everywhere select w managed",
     .run = dv_cmd_get,
     .is_api = true},
    {.name = "watch",
     .words = "KIND [NAME]",
     .summary = "get -w: objects, and every change of them",
     .help = KINDS "\n\n"
                   "  davit watch claims -A\n"
                   "  davit watch pod train-0 -o yaml",                                .options = "output everywhere select managed",
     .run = dv_cmd_watch,
     .is_api = true},
    {.name = "describe",
     .words = "KIND [NAME...] | KIND/NAME...",
     .summary = "all that matters of an object, and its events",
     .help = KINDS "Without a name: all of the namespace.\n\n"
                   "  davit describe claim gpu-claim\n"
                   "  davit describe node/n1",                                              .options = "everywhere select",
     .run = dv_cmd_describe,
     .is_api = true},
    {.name = "apply",
     .words = "-f FILE|DIR|-...",
     .summary = "make objects as files say",
     .help = "Objects that are there are changed where the file says otherwise (server-side apply, "
             "by the\n"
             "field manager davit); others are made. A folder is its *.yaml, *.yml and *.json "
             "files, by name.\n"
             "What fails is told with its file, document and line; the rest is applied, and the "
             "exit status\n"
             "is 1.\n\n"
             "  davit apply -f claim.yaml -f pods/\n"
             "  davit apply -f - --dry-run < claim.yaml\n"
             "  davit apply -f claim.yaml --force-conflicts",                                                      .options = "files apply dry",
     .run = dv_cmd_apply,
     .is_api = true},
    {.name = "delete",
     .words = "KIND NAME... | KIND/NAME... | KIND -l LABELS | KIND --all | -f FILE",
     .summary = "remove objects, and wait until they are gone",
     .help = KINDS "\n\n"
                   "  davit delete claim a b\n"
                   "  davit delete pods -l app=train --wait=false\n"
                   "  davit delete -f pods/ --ignore-not-found\n"
                   "  davit delete pod stuck --force           also when its node does not answer",                                                                      .options = "everywhere select files delete gone dry",
     .run = dv_cmd_delete,
     .is_api = true},
    {.name = "devices",
     .words = "[RESOURCE]",
     .summary = "devices, their health, and who holds them",
     .help = "With -w the list comes again after every change.",
     .options = "w",
     .run = dv_cmd_devices                                                                                             },
    {.name = "plugins",
     .words = "",
     .summary = "plugins, and why one fails",
     .help = "",
     .options = "",
     .run = dv_cmd_plugins},
    {.name = "admit",
     .words = "-f FILE",
     .summary = "give a pod its devices",
     .help = "FILE holds a Pod as YAML or JSON; - is standard input. The pod is admitted when it "
             "has all\n"
             "that its limits ask for. While a plugin that is known here has not come back, the "
             "call waits;\n"
             "--wait SECONDS says for how long. Exit status 3: the pod was refused.",                                                                 .options = "f wait",
     .run = dv_cmd_admit                                                                                               },
    {.name = "release",
     .words = "[NAMESPACE/]POD",
     .summary = "take back all that a pod holds",
     .help = "",
     .options = "n uid",
     .run = dv_cmd_release},
    {.name = "options",
     .words = "[NAMESPACE/]POD -c CONTAINER",
     .summary = "what to start a container with",
     .help = "Plugins that want to be asked before a start are asked now.",
     .options = "n uid c",
     .run = dv_cmd_options                                                                                             },
    {.name = "status",
     .words = "",
     .summary = "the node at a glance, and what pods wait for",
     .help = "",
     .options = "",
     .run = dv_cmd_status},
    {.name = "state",
     .words = "import|export",
     .summary = "move a node's allocations from a kubelet to davit and back",
     .help = "export writes kubelet_internal_checkpoint into --kubelet-dir from the state in "
             "--state-dir;\n"
             "import reads it from there. davitd must not be running.",                                                                  .options = "kubelet-dir state-dir",
     .run = dv_cmd_state                                                                                               },
    {.name = "version",
     .words = "",
     .summary = "the version",
     .help = "",
     .options = "",
     .run = dv_cmd_version},
    {.name = "help",
     .words = "[VERB]",
     .summary = "this, or more about a verb",
     .help = "",
     .options = "",
     .run = dv_cmd_help                                                                                                },
};
const size_t dv_n_verbs = DV_COUNT(dv_verbs);

static const struct dv_cli_verb *find_verb(const char *name)
{
    const struct dv_cli_verb *nearest = NULL;
    size_t best = DV_DISTANCE_MAX;

    for (size_t i = 0; i < dv_n_verbs; i++) {
        size_t d = dv_cli_distance(dv_str_from_c(name), dv_str_from_c(dv_verbs[i].name));

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

static void print_help(const struct dv_cli_verb *verb)
{
    (void)printf("davit %s%s%s - %s\n", verb->name, verb->words[0] ? " " : "", verb->words,
                 verb->summary);
    if (verb->help[0])
        (void)printf("\n%s\n", verb->help);
    (void)puts("");
    print_options(verb);
}

static void print_verbs(bool is_api)
{
    for (size_t i = 0; i < dv_n_verbs; i++)
        if (dv_verbs[i].is_api == is_api)
            (void)printf("  %-10s %s\n", dv_verbs[i].name, dv_verbs[i].summary);
}

enum dv_exit dv_cmd_help(struct dv_cli *cli)
{
    const struct dv_cli_verb *verb;

    if (cli->n_words > 0) {
        verb = find_verb(dv_str_to_c(cli->words[0], cli->arena));
        if (!verb)
            return DV_EXIT_USAGE;
        print_help(verb);
        return DV_EXIT_OK;
    }
    (void)puts(
        "davit - devices and dynamic resources of a node\n\nusage: davit VERB [OPTION...]\n\n"
        "Objects, over the API:");
    print_verbs(true);
    (void)puts("\nThis node, over davitd's socket:");
    print_verbs(false);
    (void)puts("\nEvery verb of the second group has:");
    print_options(NULL);
    (void)puts(
        "\nExit status: 0 done, 1 failed, 2 wrong usage, 3 pod refused, 4 no daemon answers.\n"
        "davit help VERB tells more.");
    return DV_EXIT_OK;
}

/* What could not be written was not done. Who stops reading knows. */
static int finish(enum dv_exit exit)
{
    int errnum = fflush(stdout) == 0 ? 0 : errno;

    if (errnum == 0 && !ferror(stdout))
        return (int)exit;
    if (errnum != 0 && errnum != EPIPE)
        (void)dv_cli_complain("standard output: %s", strerror(errnum));
    return (int)(exit == DV_EXIT_OK ? DV_EXIT_FAILED : exit);
}

int main(int argc, char **argv)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cli cli = {
        .arena = arena,
        .socket = DV_STR("/run/davit/davit.sock"),
        .has_headers = true,
        .timeout_ms = TIMEOUT_DEFAULT_MS,
        .kubelet_dir = DV_STR("/var/lib/kubelet"),
        .state_dir = DV_STR("/var/lib/davit"),
    };
    const struct dv_cli_verb *verb;
    bool wants_help = false;
    struct dv_err err;

    if (argc < 2) {
        (void)dv_cmd_help(&cli); /* cannot fail without words */
        return DV_EXIT_USAGE;
    }
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)
        return (int)dv_cmd_help(&cli);
    if (strcmp(argv[1], "--version") == 0)
        return (int)dv_cmd_version(&cli);
    verb = find_verb(argv[1]);
    if (!verb)
        return DV_EXIT_USAGE;
    if (!dv_cli_parse(&cli, verb, argc - 2, argv + 2, &wants_help, &err))
        return (int)dv_cli_complain_usage(verb->name, "%s", err.msg);
    if (wants_help) {
        print_help(verb);
        return DV_EXIT_OK;
    }
    return finish(verb->run(&cli));
}
