#include <string.h>

#include "sample_dra.h"

#define PARTITIONS_MAX 64u
#define MEMORY_MIB_MAX (1ul << 40)
#define SECONDS_MAX 86400u

static const char help[] =
    "davit-sample-dra-driver - virtual devices for pods that claim them\n"
    "\n"
    "usage: davit-sample-dra-driver [OPTION...]\n"
    "\n"
    "  --driver NAME          (sample.davit.example)\n"
    "  --node NAME            whose devices they are ($NODE_NAME, or the host's name)\n"
    "  --kubeconfig FILE      where the API is (as pods find it)\n"
    "  --kubelet-dir DIR      (/var/lib/kubelet)\n"
    "  --plugin-dir DIR       for the DRA socket and the records of prepared claims\n"
    "                         (KUBELET-DIR/plugins/DRIVER)\n"
    "  --cdi-dir DIR          for CDI specs (/var/run/cdi)\n"
    "  --instance UID         for rolling updates: goes into the names of the sockets\n"
    "  --versions WHICH       both, v1 or v1beta1 (both)\n"
    "  --one-socket           the socket in plugins_registry/ serves all\n"
    "  --parallel             calls about different claims do not wait for each other\n"
    "  --no-health            do not offer the health of devices\n"
    "  --devices N            device-0, device-1, ... (4)\n"
    "  --partitions N         each device also comes in N parts, on shared counters (0)\n"
    "  --numa LIST            NUMA nodes, device after device and around: 0,1; -: none (0)\n"
    "  --model TEXT           (virtual)\n"
    "  --memory MIB           of each device (16384)\n"
    "  --shareable            several claims may have the same device\n"
    "  --taint TAINT          of all devices, KEY[=VALUE]:EFFECT (none)\n"
    "  --correct SECONDS      after which slices that others changed are put right (30)\n"
    "  --control SOCKET       listen there for commands\n"
    "  --fault NAME           make a mistake on purpose, for tests of davit verify\n"
    "  --log LEVEL            error, warn, info, debug or trace, on stderr (nothing)\n"
    "  --version, --help\n"
    "\n"
    "It prints `ready` when it can be registered, `registered` each time that an agent has\n"
    "accepted it, and `published POOL` when the slices in the API are as they should be.\n"
    "Each prepared claim has a CDI spec in the CDI directory and a record in PLUGIN-DIR/claims;\n"
    "both are there when it starts again.\n"
    "\n"
    "Commands are lines, each answered with a line `ok ...` or `error ...`:\n"
    "  devices N    list    prepared    calls    counts    quit\n"
    "  health DEVICE healthy|unhealthy|unknown [MESSAGE]\n"
    "  taint DEVICE TAINT|off\n"
    "  hang [prepare|unprepare]   calls are not answered; hang off: they are, those held too\n"
    "  fail CLAIM|*|off           preparing and unpreparing claims of this name fails\n"
    "  crash start|before|after|off   it dies in the next call: before anything is done, before\n"
    "                             the answer, after it\n"
    "\n"
    "Exit codes: 0 after SIGTERM, SIGINT or quit; 1 when it cannot start; 2 for the command "
    "line.\n";

static bool set_versions(void *ctx, const char *text)
{
    static const char *const words[] = {"both", "v1beta1", "v1"}; /* as the flags for the other */
    struct sample_dra_options *options = ctx;
    int at = sample_choose(text, words, 3);

    options->flags &= ~(DAVIT_DRA_NO_V1 | DAVIT_DRA_NO_V1BETA1);
    options->flags |= (unsigned)(at > 0 ? at : 0);
    return at >= 0;
}

static bool set_one_socket(void *ctx, const char *text)
{
    (void)text; /* has none */
    ((struct sample_dra_options *)ctx)->flags |= DAVIT_DRA_ONE_SOCKET;
    return true;
}

static bool set_parallel(void *ctx, const char *text)
{
    (void)text; /* has none */
    ((struct sample_dra_options *)ctx)->flags |= DAVIT_DRA_PARALLEL;
    return true;
}

static bool set_no_health(void *ctx, const char *text)
{
    (void)text; /* has none */
    ((struct sample_dra_options *)ctx)->flags &= ~DAVIT_DRA_HEALTH;
    return true;
}

static bool set_shareable(void *ctx, const char *text)
{
    (void)text; /* has none */
    ((struct sample_dra_options *)ctx)->is_shareable = true;
    return true;
}

static bool set_devices(void *ctx, const char *text)
{
    unsigned long number;

    if (!sample_number_parse(text, SAMPLE_DRA_DEVICES_MAX, &number))
        return false;
    ((struct sample_dra_options *)ctx)->n_devices = number;
    return true;
}

static bool set_partitions(void *ctx, const char *text)
{
    unsigned long number;

    if (!sample_number_parse(text, PARTITIONS_MAX, &number))
        return false;
    ((struct sample_dra_options *)ctx)->n_partitions = number;
    return true;
}

static bool set_memory(void *ctx, const char *text)
{
    struct sample_dra_options *options = ctx;

    return sample_number_parse(text, MEMORY_MIB_MAX, &options->memory_mib) &&
           options->memory_mib > 0;
}

static bool set_correct(void *ctx, const char *text)
{
    struct sample_dra_options *options = ctx;

    return sample_number_parse(text, SECONDS_MAX, &options->correct_s) && options->correct_s > 0;
}

static bool set_numas(void *ctx, const char *text)
{
    struct sample_dra_options *options = ctx;

    options->n_numas = 0;
    for (;;) {
        size_t n = strcspn(text, ",");
        char piece[8] = "";
        unsigned long node;

        if (n >= sizeof(piece) || options->n_numas == SAMPLE_DRA_NUMAS_MAX)
            return false;
        memcpy(piece, text, n);
        if (strcmp(piece, "-") == 0)
            options->numas[options->n_numas++] = -1;
        else if (sample_number_parse(piece, 1023, &node))
            options->numas[options->n_numas++] = (int)node;
        else
            return false;
        if (text[n] == '\0')
            return true;
        text += n + 1;
    }
}

static bool set_taint(void *ctx, const char *text)
{
    ((struct sample_dra_options *)ctx)->taint = text;
    return sample_dra_taint_check(text);
}

static bool set_fault(void *ctx, const char *text)
{
    ((struct sample_dra_options *)ctx)->fault = text;
    return sample_dra_fault_check(text);
}

static bool set_log(void *ctx, const char *text)
{
    struct sample_dra_options *options = ctx;

    options->has_log = sample_log_parse(text, &options->log);
    return options->has_log;
}

#define AT(member) offsetof(struct sample_dra_options, member)

static const struct sample_option table[] = {
    {"--driver",      true,  NULL,           AT(driver)     },
    {"--node",        true,  NULL,           AT(node)       },
    {"--kubeconfig",  true,  NULL,           AT(kubeconfig) },
    {"--kubelet-dir", true,  NULL,           AT(kubelet_dir)},
    {"--plugin-dir",  true,  NULL,           AT(plugin_dir) },
    {"--cdi-dir",     true,  NULL,           AT(cdi_dir)    },
    {"--instance",    true,  NULL,           AT(instance)   },
    {"--versions",    true,  set_versions,   0              },
    {"--one-socket",  false, set_one_socket, 0              },
    {"--parallel",    false, set_parallel,   0              },
    {"--no-health",   false, set_no_health,  0              },
    {"--devices",     true,  set_devices,    0              },
    {"--partitions",  true,  set_partitions, 0              },
    {"--numa",        true,  set_numas,      0              },
    {"--model",       true,  NULL,           AT(model)      },
    {"--memory",      true,  set_memory,     0              },
    {"--shareable",   false, set_shareable,  0              },
    {"--taint",       true,  set_taint,      0              },
    {"--correct",     true,  set_correct,    0              },
    {"--control",     true,  NULL,           AT(control)    },
    {"--fault",       true,  set_fault,      0              },
    {"--log",         true,  set_log,        0              },
};

int sample_dra_options_parse(int argc, char **argv, struct sample_dra_options *options)
{
    static const struct sample_usage usage = {
        .name = "davit-sample-dra-driver",
        .help = help,
        .table = table,
        .n_table = sizeof(table) / sizeof(table[0]),
    };

    *options = (struct sample_dra_options){
        .driver = "sample.davit.example",
        .kubelet_dir = "/var/lib/kubelet",
        .cdi_dir = "/var/run/cdi",
        .model = "virtual",
        .flags = DAVIT_DRA_HEALTH,
        .n_devices = 4,
        .memory_mib = 16384,
        .n_numas = 1,
    };
    return sample_usage_parse(&usage, argc, argv, options);
}
