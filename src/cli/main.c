/* main.c - davit: finds the verb, reads its options, runs it. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "cli/cli.h"

/* Longer than an admission waits for a plugin by default. */
#define TIMEOUT_DEFAULT_MS 90000u

const struct dv_verb dv_verbs[] = {
    {"devices", "[RESOURCE]",                   "devices, their health, and who holds them",
     "With -w the list comes again after every change.",                                                          "w",                     dv_cmd_devices},
    {"plugins", "",                             "plugins, and why one fails",                                 "", "",                      dv_cmd_plugins},
    {"admit",   "-f FILE",                      "give a pod its devices",
     "FILE holds a Pod as YAML or JSON; - is standard input. The pod is admitted when it has all\n"
     "that its limits ask for. While a plugin that is known here has not come back, the call "
     "waits;\n"
     "--wait SECONDS says for how long. Exit status 3: the pod was refused.",                                     "f wait",                dv_cmd_admit  },
    {"release", "[NAMESPACE/]POD",              "take back all that a pod holds",                             "", "n uid",                 dv_cmd_release},
    {"options", "[NAMESPACE/]POD -c CONTAINER", "what to start a container with",
     "Plugins that want to be asked before a start are asked now.",                                               "n uid c",               dv_cmd_options},
    {"status",  "",                             "the node at a glance, and what pods wait for",               "", "",                      dv_cmd_status },
    {"state",   "import|export",                "move a node's allocations from a kubelet to davit and back",
     "export writes kubelet_internal_checkpoint into --kubelet-dir from the state in --state-dir;\n"
     "import reads it from there. davitd must not be running.",                                                   "kubelet-dir state-dir", dv_cmd_state  },
    {"version", "",                             "the version",                                                "", "",                      dv_cmd_version},
    {"help",    "[VERB]",                       "this, or more about a verb",                                 "", "",                      dv_cmd_help   },
};
const size_t dv_n_verbs = DV_COUNT(dv_verbs);

struct option {
    const char *name;  /* without dashes */
    const char *value; /* NULL: a switch */
    const char *help;
    bool is_common; /* every verb has it */
    bool (*set)(struct dv_cli *cli, dv_str value);
    size_t at; /* with set == NULL: a dv_str in struct dv_cli */
};

static bool set_output(struct dv_cli *cli, dv_str value)
{
    cli->output = dv_str_eq(value, DV_STR("yaml")) ? DV_OUTPUT_YAML : DV_OUTPUT_JSON;
    return cli->output == DV_OUTPUT_YAML || dv_str_eq(value, DV_STR("json"));
}

static bool set_timeout(struct dv_cli *cli, dv_str value)
{
    uint32_t seconds;

    if (!dv_str_to_u32(value, &seconds) || seconds == 0)
        return false;
    cli->timeout_ms = (uint64_t)seconds * 1000;
    return true;
}

static bool set_no_headers(struct dv_cli *cli, dv_str value)
{
    (void)value;
    cli->has_headers = false;
    return true;
}

static bool set_watch(struct dv_cli *cli, dv_str value)
{
    (void)value;
    cli->watches = true;
    return true;
}

#define AT(member) offsetof(struct dv_cli, member)

static const struct option options[] = {
    {"socket",      "PATH",      "of davitd (/run/davit/davit.sock)",                 true,  NULL,           AT(socket)   },
    {"o",           "json|yaml", "print all there is, for programs",                  true,  set_output,     0            },
    {"no-headers",  NULL,        "no first line above a table",                       true,  set_no_headers, 0            },
    {"timeout",     "SECONDS",   "for the daemon's answer (90)",                      true,  set_timeout,    0            },
    {"f",           "FILE",      "the pod",                                           false, NULL,           AT(file)     },
    {"n",           "NAMESPACE", "of the pod (default)",                              false, NULL,           AT(space)    },
    {"uid",         "UID",       "of the pod, instead of its name",                   false, NULL,           AT(uid)      },
    {"c",           "CONTAINER", "its name",                                          false, NULL,           AT(container)},
    {"w",           NULL,        "watch: print again after every change",             false, set_watch,      0            },
    {"wait",        "SECONDS",   "for what has not come back (the daemon's setting)", false, NULL,           AT(wait)     },
    {"kubelet-dir", "DIR",       "where the kubelet's files are (/var/lib/kubelet)",  false, NULL,
     AT(kubelet_dir)                                                                                                      },
    {"state-dir",   "DIR",       "davit's state (/var/lib/davit)",                    false, NULL,           AT(state_dir)},
};

static bool verb_has(const struct dv_verb *verb, const struct option *option)
{
    dv_str rest = dv_str_from_c(verb->options);
    dv_str name;

    if (option->is_common)
        return true;
    while (dv_str_split(&rest, ' ', &name))
        if (dv_str_eq(name, dv_str_from_c(option->name)))
            return true;
    return false;
}

static const char *dashes(const struct option *option)
{
    return option->name[1] ? "--" : "-";
}

/* How many single changes make one word the other; for suggestions. */
static size_t distance(const char *a, const char *b)
{
    size_t row[32];
    size_t n = dv_size_min(strlen(b), DV_COUNT(row) - 1);

    for (size_t k = 0; k <= n; k++)
        row[k] = k;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];

        row[0] = i + 1;
        for (size_t k = 0; k < n; k++) {
            size_t next =
                dv_size_min(dv_size_min(row[k], row[k + 1]) + 1, diagonal + (a[i] != b[k]));

            diagonal = row[k + 1];
            row[k + 1] = next;
        }
    }
    return row[n];
}

static const struct dv_verb *find_verb(const char *name)
{
    const struct dv_verb *nearest = NULL;
    size_t best = 3; /* more is no typing mistake */

    for (size_t i = 0; i < dv_n_verbs; i++) {
        size_t d = distance(name, dv_verbs[i].name);

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

static void print_option(const struct option *option)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%s%s%s%s", dashes(option), option->name,
                   option->value ? " " : "", option->value ? option->value : "");
    (void)printf("  %-24s %s\n", text, option->help);
}

static void print_help(const struct dv_verb *verb)
{
    (void)printf("davit %s%s%s - %s\n", verb->name, verb->words[0] ? " " : "", verb->words,
                 verb->summary);
    if (verb->help[0])
        (void)printf("\n%s\n", verb->help);
    (void)puts("");
    for (size_t i = 0; i < DV_COUNT(options); i++)
        if (verb_has(verb, &options[i]))
            print_option(&options[i]);
}

enum dv_exit dv_cmd_help(struct dv_cli *cli)
{
    const struct dv_verb *verb;

    if (cli->n_words > 0) {
        verb = find_verb(dv_str_to_c(cli->words[0], cli->arena));
        if (!verb)
            return DV_EXIT_USAGE;
        print_help(verb);
        return DV_EXIT_OK;
    }
    (void)puts(
        "davit - devices and dynamic resources of a node\n\nusage: davit VERB [OPTION...]\n");
    for (size_t i = 0; i < dv_n_verbs; i++)
        (void)printf("  %-10s %s\n", dv_verbs[i].name, dv_verbs[i].summary);
    (void)puts("\nEvery verb has:");
    for (size_t i = 0; i < DV_COUNT(options); i++)
        if (options[i].is_common)
            print_option(&options[i]);
    (void)puts(
        "\nExit status: 0 done, 1 failed, 2 wrong usage, 3 pod refused, 4 no daemon answers.\n"
        "davit help VERB tells more.");
    return DV_EXIT_OK;
}

static const struct option *find_option(const struct dv_verb *verb, dv_str name)
{
    for (size_t i = 0; i < DV_COUNT(options); i++)
        if (dv_str_eq(dv_str_from_c(options[i].name), name) && verb_has(verb, &options[i]))
            return &options[i];
    return NULL;
}

static bool set_option(struct dv_cli *cli, const struct option *option, dv_str value)
{
    if (option->set)
        return option->set(cli, value);
    memcpy((char *)cli + option->at, &value, sizeof(value));
    return value.n > 0;
}

/* False: told. *wants_help: -h was there. */
static bool parse(struct dv_cli *cli, const struct dv_verb *verb, int argc, char **argv,
                  bool *wants_help)
{
    for (int i = 2; i < argc; i++) {
        dv_str word = dv_str_from_c(argv[i]);
        size_t n_dashes = dv_str_starts_with(word, DV_STR("--")) ? 2 : 1;
        size_t equals = dv_str_find_char(word, '=');
        const struct option *option;
        dv_str value = dv_str_slice(word, equals + 1, word.n);

        if (word.n < 2 || word.p[0] != '-') {
            if (cli->n_words == DV_COUNT(cli->words)) {
                (void)dv_cli_complain_usage(verb->name, "too many words");
                return false;
            }
            cli->words[cli->n_words++] = word;
            continue;
        }
        if (dv_str_eq(word, DV_STR("-h")) || dv_str_eq(word, DV_STR("--help"))) {
            *wants_help = true;
            continue;
        }
        option = find_option(verb, dv_str_slice(word, n_dashes, equals));
        if (!option || (strlen(option->name) == 1) != (n_dashes == 1)) {
            (void)dv_cli_complain_usage(verb->name, "it has no option %s", argv[i]);
            return false;
        }
        if (!option->value && equals < word.n) {
            (void)dv_cli_complain_usage(verb->name, "%s%s takes no value", dashes(option),
                                        option->name);
            return false;
        }
        if (option->value && equals == word.n && ++i < argc)
            value = dv_str_from_c(argv[i]);
        if ((option->value && value.n == 0) || !set_option(cli, option, value)) {
            (void)dv_cli_complain_usage(verb->name, "%s%s needs a value: %s", dashes(option),
                                        option->name, option->value);
            return false;
        }
    }
    return true;
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
    const struct dv_verb *verb;
    bool wants_help = false;

    if (argc < 2) {
        (void)dv_cmd_help(&cli); /* cannot fail without words */
        return DV_EXIT_USAGE;
    }
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)
        return (int)dv_cmd_help(&cli);
    if (strcmp(argv[1], "--version") == 0)
        return (int)dv_cmd_version(&cli);
    verb = find_verb(argv[1]);
    if (!verb || !parse(&cli, verb, argc, argv, &wants_help))
        return DV_EXIT_USAGE;
    if (wants_help) {
        print_help(verb);
        return DV_EXIT_OK;
    }
    return (int)verb->run(&cli);
}
