#include <string.h>

#include "sample.h"

/* As many as a list of 16 MiB holds with ids as long as ours. */
#define VIRTUAL_MAX 100000u
#define INTERVAL_DEFAULT_S 5u

static const char help[] =
    "davit-sample-device-plugin - devices of this host for containers\n"
    "\n"
    "usage: davit-sample-device-plugin --resource NAME (--devices PATTERN | --virtual N) "
    "[OPTION...]\n"
    "\n"
    "  --resource NAME        what pods ask for: example.com/tty\n"
    "  --devices PATTERN      host device nodes: '/dev/ttyS*'; may be given several times\n"
    "  --virtual N            N devices that are only names: virtual-0, virtual-1, ...\n"
    "  --numa LIST            NUMA nodes, device after device and around: 0,1 or 0+1,-;\n"
    "                         sysfs: what the kernel says (the default for --devices)\n"
    "  --interval SECONDS     how often nodes are looked for, beside inotify (5)\n"
    "  --kubelet-dir DIR      (/var/lib/kubelet)\n"
    "  --socket-name NAME     of the plugin's socket (after the resource)\n"
    "  --register WAY         classic, watcher or both (classic)\n"
    "  --prestart             ask to be called before each start of a container\n"
    "  --preferred CHOICE     none, lowest, highest or packed, by NUMA node (none)\n"
    "  --cdi KIND             also give CDI names, KIND=ID: example.com/tty\n"
    "  --env NAME             also give the ids, separated by commas, in this variable\n"
    "  --control SOCKET       listen there for commands\n"
    "  --fault NAME           make a mistake on purpose, for tests of davit verify\n"
    "  --log LEVEL            error, warn, info, debug or trace, on stderr (nothing)\n"
    "  --version, --help\n"
    "\n"
    "It prints `ready` when it serves and `registered` each time that an agent has accepted it.\n"
    "A node that disappears turns unhealthy, and heals when it comes back.\n"
    "\n"
    "SIGUSR1 turns the health of the next device, the first one first; SIGUSR2 heals all.\n"
    "\n"
    "Commands are lines, each answered with a line `ok ...` or `error ...`:\n"
    "  health ID healthy|unhealthy   add ID [NUMA]   remove ID   list   quit\n"
    "  fail-allocate N    the next N calls of Allocate fail\n"
    "  hang               Allocate, PreStartContainer and GetPreferredAllocation are not answered\n"
    "  hang off           they are again, and those that wait now\n"
    "\n"
    "Exit codes: 0 after SIGTERM, SIGINT or quit; 1 when it cannot start; 2 for the command "
    "line.\n";

bool sample_numa_parse(const char *text, struct sample_numa *numa)
{
    struct sample_numa read = {.n = 0};

    if (strcmp(text, "-") == 0) {
        *numa = read;
        return true;
    }
    for (;;) {
        size_t n = strcspn(text, "+");
        char piece[8] = "";
        unsigned long node;

        if (n >= sizeof(piece) || read.n == SAMPLE_NUMA_MAX)
            return false;
        memcpy(piece, text, n);
        if (!sample_number_parse(piece, SAMPLE_NODES_MAX - 1, &node))
            return false;
        read.nodes[read.n++] = (int)node;
        if (text[n] == '\0')
            break;
        text += n + 1;
    }
    *numa = read;
    return true;
}

static bool set_numas(void *ctx, const char *text)
{
    struct sample_options *options = ctx;

    if (strcmp(text, "sysfs") == 0) {
        options->n_numas = 0;
        return true;
    }
    for (;;) {
        size_t n = strcspn(text, ",");
        char piece[64] = "";

        if (n >= sizeof(piece) || options->n_numas == SAMPLE_NUMAS_MAX)
            return false;
        memcpy(piece, text, n);
        if (!sample_numa_parse(piece, &options->numas[options->n_numas++]))
            return false;
        if (text[n] == '\0')
            return true;
        text += n + 1;
    }
}

static bool set_pattern(void *ctx, const char *text)
{
    struct sample_options *options = ctx;

    if (text[0] != '/' || options->n_patterns == SAMPLE_PATTERNS_MAX)
        return false;
    options->patterns[options->n_patterns++] = text;
    return true;
}

static bool set_virtual(void *ctx, const char *text)
{
    struct sample_options *options = ctx;
    unsigned long number;

    if (!sample_number_parse(text, VIRTUAL_MAX, &number))
        return false;
    options->n_virtual = number;
    options->has_virtual = true;
    return true;
}

static bool set_interval(void *ctx, const char *text)
{
    struct sample_options *options = ctx;
    unsigned long number;

    if (!sample_number_parse(text, 86400, &number) || number == 0)
        return false;
    options->interval_s = (unsigned)number;
    return true;
}

static bool set_ways(void *ctx, const char *text)
{
    struct sample_options *options = ctx;
    static const char *const words[] = {"classic", "watcher", "both"}; /* as their bits */
    int at = sample_choose(text, words, 3);

    options->register_through = (unsigned)(at + 1);
    return at >= 0;
}

static bool set_preference(void *ctx, const char *text)
{
    struct sample_options *options = ctx;
    static const char *const words[] = {"none", "lowest", "highest", "packed"};
    int at = sample_choose(text, words, 4);

    if (at >= 0)
        options->preference = (enum sample_preference)at;
    return at >= 0;
}

static bool set_log(void *ctx, const char *text)
{
    struct sample_options *options = ctx;

    options->has_log = sample_log_parse(text, &options->log);
    return options->has_log;
}

static bool set_fault(void *ctx, const char *text)
{
    ((struct sample_options *)ctx)->fault = text;
    return sample_fault_check(text);
}

static bool set_prestart(void *ctx, const char *text)
{
    struct sample_options *options = ctx;

    (void)text; /* has none */
    options->wants_prestart = true;
    return true;
}

#define AT(member) offsetof(struct sample_options, member)

static const struct sample_option table[] = {
    {"--resource",    true,  NULL,           AT(resource)   },
    {"--devices",     true,  set_pattern,    0              },
    {"--virtual",     true,  set_virtual,    0              },
    {"--numa",        true,  set_numas,      0              },
    {"--interval",    true,  set_interval,   0              },
    {"--kubelet-dir", true,  NULL,           AT(kubelet_dir)},
    {"--socket-name", true,  NULL,           AT(socket_name)},
    {"--register",    true,  set_ways,       0              },
    {"--prestart",    false, set_prestart,   0              },
    {"--preferred",   true,  set_preference, 0              },
    {"--cdi",         true,  NULL,           AT(cdi_kind)   },
    {"--env",         true,  NULL,           AT(env)        },
    {"--control",     true,  NULL,           AT(control)    },
    {"--fault",       true,  set_fault,      0              },
    {"--log",         true,  set_log,        0              },
};

/* What only shows when all is read. */
static bool settle(const struct sample_options *options)
{
    if (!options->resource)
        sample_complain("--resource is missing; --help tells more");
    else if (options->n_patterns == 0 && !options->has_virtual)
        sample_complain("there is neither --devices nor --virtual; --help tells more");
    else if (options->n_patterns > 0 && options->has_virtual)
        sample_complain("--devices and --virtual do not go together");
    else
        return true;
    return false;
}

int sample_options_parse(int argc, char **argv, struct sample_options *options)
{
    static const struct sample_usage usage = {
        .name = "davit-sample-device-plugin",
        .help = help,
        .table = table,
        .n_table = sizeof(table) / sizeof(table[0]),
    };
    int code;

    *options = (struct sample_options){
        .kubelet_dir = "/var/lib/kubelet",
        .register_through = DAVIT_REGISTER_CLASSIC,
        .interval_s = INTERVAL_DEFAULT_S,
    };
    code = sample_usage_parse(&usage, argc, argv, options);
    if (code >= 0)
        return code;
    return settle(options) ? -1 : SAMPLE_EXIT_USAGE;
}
