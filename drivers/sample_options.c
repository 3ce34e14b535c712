#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

#define EXIT_START 1
#define EXIT_USAGE 2
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

void sample_complain(const char *format, ...)
{
    va_list args;

    (void)fputs("davit-sample-device-plugin: ", stderr);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

void *sample_alloc(size_t n)
{
    void *p = calloc(1, n ? n : 1);

    if (!p)
        abort();
    return p;
}

char *sample_copy(const char *text)
{
    size_t n = strlen(text) + 1;

    return memcpy(sample_alloc(n), text, n);
}

/* A number that is the whole text. */
static bool parse_number(const char *text, unsigned long max, unsigned long *number)
{
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return false;
    *number = strtoul(text, &end, 10);
    return *end == '\0' && *number <= max;
}

/* Its place among the words; -1: none of them. */
static int choose(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, words[i]) == 0)
            return (int)i;
    return -1;
}

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
        if (!parse_number(piece, SAMPLE_NODES_MAX - 1, &node))
            return false;
        read.nodes[read.n++] = (int)node;
        if (text[n] == '\0')
            break;
        text += n + 1;
    }
    *numa = read;
    return true;
}

static bool set_numas(struct sample_options *options, const char *text)
{
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

static bool set_pattern(struct sample_options *options, const char *text)
{
    if (text[0] != '/' || options->n_patterns == SAMPLE_PATTERNS_MAX)
        return false;
    options->patterns[options->n_patterns++] = text;
    return true;
}

static bool set_virtual(struct sample_options *options, const char *text)
{
    unsigned long number;

    if (!parse_number(text, VIRTUAL_MAX, &number))
        return false;
    options->n_virtual = number;
    options->has_virtual = true;
    return true;
}

static bool set_interval(struct sample_options *options, const char *text)
{
    unsigned long number;

    if (!parse_number(text, 86400, &number) || number == 0)
        return false;
    options->interval_s = (unsigned)number;
    return true;
}

static bool set_ways(struct sample_options *options, const char *text)
{
    static const char *const words[] = {"classic", "watcher", "both"}; /* as their bits */
    int at = choose(text, words, 3);

    options->register_through = (unsigned)(at + 1);
    return at >= 0;
}

static bool set_preference(struct sample_options *options, const char *text)
{
    static const char *const words[] = {"none", "lowest", "highest", "packed"};
    int at = choose(text, words, 4);

    if (at >= 0)
        options->preference = (enum sample_preference)at;
    return at >= 0;
}

static bool set_log(struct sample_options *options, const char *text)
{
    static const char *const words[] = {"error", "warn", "info", "debug", "trace"};
    int at = choose(text, words, 5);

    if (at >= 0)
        options->log = (enum davit_log_level)at;
    options->has_log = at >= 0;
    return at >= 0;
}

static bool set_prestart(struct sample_options *options, const char *text)
{
    (void)text; /* has none */
    options->wants_prestart = true;
    return true;
}

#define AT(member) offsetof(struct sample_options, member)

static const struct option {
    const char *name;
    bool has_value;
    bool (*set)(struct sample_options *options, const char *value); /* NULL: it is a text */
    size_t at;                                                      /* where that goes */
} table[] = {
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
    {"--log",         true,  set_log,        0              },
};

/* By its first n characters. */
static const struct option *find(const char *word, size_t n)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strlen(table[i].name) == n && strncmp(table[i].name, word, n) == 0)
            return &table[i];
    return NULL;
}

static bool set(struct sample_options *options, const struct option *option, const char *value)
{
    if (option->set)
        return option->set(options, value);
    memcpy((char *)options + option->at, &value, sizeof(value));
    return value[0] != '\0';
}

/* "--name value" or "--name=value"; *at is moved past what was used. */
static bool parse_word(struct sample_options *options, int argc, char **argv, int *at)
{
    const char *word = argv[(*at)++];
    size_t n = strcspn(word, "=");
    const struct option *option = find(word, n);
    const char *given = word[n] == '=' ? word + n + 1 : NULL;

    if (!option) {
        sample_complain("unexpected word \"%s\"; --help tells more", word);
        return false;
    }
    if (option->has_value && !given && *at < argc)
        given = argv[(*at)++];
    if (option->has_value != (given != NULL)) {
        sample_complain("%s %s; --help tells more", option->name,
                        given ? "takes no value" : "needs a value");
        return false;
    }
    if (!set(options, option, given ? given : "")) {
        sample_complain("%s: \"%s\" is not right; --help tells more", option->name, given);
        return false;
    }
    return true;
}

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
    static const char version[] = "davit-sample-device-plugin " DV_VERSION "\n";

    *options = (struct sample_options){
        .kubelet_dir = "/var/lib/kubelet",
        .register_through = DAVIT_REGISTER_CLASSIC,
        .interval_s = INTERVAL_DEFAULT_S,
    };
    for (int at = 1; at < argc;) {
        bool wants_version = strcmp(argv[at], "--version") == 0;

        if (wants_version || strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            (void)fputs(wants_version ? version : help, stdout);
            return fflush(stdout) == 0 ? 0 : EXIT_START;
        }
        if (!parse_word(options, argc, argv, &at))
            return EXIT_USAGE;
    }
    return settle(options) ? -1 : EXIT_USAGE;
}
