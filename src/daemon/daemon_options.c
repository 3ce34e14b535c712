#include "daemon/daemon_options.h"

#include <string.h>
#include <unistd.h>

#include "base/ascii.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "offer/offer.h"
#include "pod/pod.h"
#include "record/message.h"
#include "json/json.h"

/* The limit of a configuration file, which has a screen or two. */
#define CONFIG_BYTES_MAX (1u << 20)

/* The kernel's limit of a host name is 64, and there is the NUL. */
#define HOST_NAME_BYTES 65

/* The reference's age of an image that may be removed. */
#define IMAGE_AGE_S 120u

/* Readers take a file whole into memory; nobody keeps more than a terabyte. */
#define RECORD_FILE_MIB_MAX 1024u
#define RECORD_FILES_MAX 1000u

#define ROLES_ALL (DV_ROLE_API | DV_ROLE_CONTROL | DV_ROLE_SCHED | DV_ROLE_NODE)

/* What is being filled, and what the command line has set. */
struct parse {
    struct dv_options *options;
    struct dv_arena *arena;
    uint64_t set_on_command_line; /* a bit for each row of the table */
};

struct option {
    const char *name;  /* without "--" */
    const char *value; /* in the help: "DIR"; NULL: a switch without a value */
    const char *help;
    bool (*set)(struct parse *parse, const struct option *option, dv_str value, struct dv_err *err);
    size_t at;           /* for set_text and set_switch: where in struct dv_options */
    const char *choices; /* for policy and scope: separated by '|' */
};

static bool set_text(struct parse *parse, const struct option *option, dv_str value,
                     struct dv_err *err)
{
    if (value.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s needs a value (%s)", option->name,
                       option->value);
    memcpy((char *)parse->options + option->at, &value, sizeof(value));
    return true;
}

static bool set_dir(struct parse *parse, const struct option *option, dv_str value,
                    struct dv_err *err)
{
    if (value.n == 0 || value.p[0] != '/')
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s: \"%.*s\" is not an absolute path",
                       option->name, DV_FMT(value));
    return set_text(parse, option, value, err);
}

static bool set_switch(struct parse *parse, const struct option *option, dv_str value,
                       struct dv_err *err)
{
    bool on = dv_str_eq(value, DV_STR("true"));

    if (!on && !dv_str_eq(value, DV_STR("false")))
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s is true or false, not \"%.*s\"",
                       option->name, DV_FMT(value));
    memcpy((char *)parse->options + option->at, &on, sizeof(on));
    return true;
}

/* Sets an option that has choices; any other value is refused with the reference's text. */
static bool set_choice(struct parse *parse, const struct option *option, dv_str value,
                       const char *what, struct dv_err *err)
{
    dv_str rest = dv_str_from_c(option->choices);
    dv_str choice;

    while (dv_str_split(&rest, '|', &choice))
        if (dv_str_eq(choice, value))
            return set_text(parse, option, value, err);
    return dv_fail(err, DV_INVALID_ARGUMENT, "--%s: unknown %s: \"%.*s\"; there are %s",
                   option->name, what, DV_FMT(value), option->choices);
}

static bool set_policy(struct parse *parse, const struct option *option, dv_str value,
                       struct dv_err *err)
{
    return set_choice(parse, option, value, "policy", err);
}

static bool set_scope(struct parse *parse, const struct option *option, dv_str value,
                      struct dv_err *err)
{
    return set_choice(parse, option, value, "scope", err);
}

static bool set_ledger(struct parse *parse, const struct option *option, dv_str value,
                       struct dv_err *err)
{
    if (dv_str_eq(value, DV_STR("true")) || dv_str_eq(value, DV_STR("false"))) /* YAML's on, off */
        value = dv_str_eq(value, DV_STR("true")) ? DV_STR("on") : DV_STR("off");
    return set_choice(parse, option, value, "mode", err);
}

static bool set_cri(struct parse *parse, const struct option *option, dv_str value,
                    struct dv_err *err)
{
    const dv_str scheme = DV_STR("unix://");

    if (!dv_str_eq(value, DV_STR("auto")) && !dv_str_eq(value, DV_STR("none")) &&
        !dv_str_starts_with(value, DV_STR("unix:///")))
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s: \"%.*s\" is not auto, none or unix:///PATH",
                       option->name, DV_FMT(value));
    if (dv_str_starts_with(value, scheme) &&
        !dv_socket_path_check(dv_str_slice(value, scheme.n, value.n), err))
        return dv_wrap(err, "--%s", option->name);
    return set_text(parse, option, value, err);
}

/* Whether each part of an absolute path is a name that cgroups can have, and leads down. */
static bool is_cgroup(dv_str path)
{
    dv_str part;

    if (!dv_str_take(&path, '/'))
        return false;
    while (path.n > 0 && dv_str_split(&path, '/', &part)) {
        if (part.n == 0 || part.p[0] == '.')
            return false;
        for (size_t i = 0; i < part.n; i++)
            if (!dv_is_alphanumeric(part.p[i]) && !strchr("-_.", part.p[i]))
                return false;
    }
    return true;
}

static bool set_cgroup_root(struct parse *parse, const struct option *option, dv_str value,
                            struct dv_err *err)
{
    if (!dv_str_eq(value, DV_STR("auto")) && !dv_str_eq(value, DV_STR("none")) && !is_cgroup(value))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--%s: \"%.*s\" is not auto, none or the path of a cgroup", option->name,
                       DV_FMT(value));
    return set_text(parse, option, value, err);
}

/* "85:80" and "85:80:120": from how much of the disk down to how much, and after how many seconds.
 */
static bool set_image_gc(struct parse *parse, const struct option *option, dv_str value,
                         struct dv_err *err)
{
    uint32_t numbers[] = {0, 0, IMAGE_AGE_S};
    dv_str rest = value;
    dv_str part;
    size_t n = 0;

    if (dv_str_eq(value, DV_STR("off"))) {
        parse->options->image_gc = (struct dv_image_policy){0};
        return true;
    }
    while (rest.n > 0 && n < DV_COUNT(numbers) && dv_str_split(&rest, ':', &part))
        if (!dv_str_to_u32(part, &numbers[n++]))
            n = DV_COUNT(numbers) + 1;
    if (rest.n > 0 || n < 2 || n > DV_COUNT(numbers) || numbers[0] > 100 ||
        numbers[1] >= numbers[0])
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--%s: \"%.*s\" is not off or HIGH:LOW[:SECONDS], in percent", option->name,
                       DV_FMT(value));
    parse->options->image_gc = (struct dv_image_policy){
        .high_percent = numbers[0],
        .low_percent = numbers[1],
        .min_age_ns = numbers[2] * DV_NS_PER_S,
    };
    return true;
}

static bool set_roles(struct parse *parse, const struct option *option, dv_str value,
                      struct dv_err *err)
{
    static const struct {
        dv_str name;
        enum dv_role role;
    } roles[] = {
        {DV_STR_INIT("api"),     DV_ROLE_API    },
        {DV_STR_INIT("control"), DV_ROLE_CONTROL},
        {DV_STR_INIT("sched"),   DV_ROLE_SCHED  },
        {DV_STR_INIT("node"),    DV_ROLE_NODE   },
    };
    dv_str rest = value;
    dv_str name;
    uint32_t set = 0;

    while (dv_str_split(&rest, ',', &name)) {
        size_t i = 0;

        while (i < DV_COUNT(roles) && !dv_str_eq(roles[i].name, name))
            i++;
        if (i == DV_COUNT(roles))
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "--%s: \"%.*s\" is no role; there are api, control, sched, node",
                           option->name, DV_FMT(name));
        set |= roles[i].role;
    }
    parse->options->roles = set;
    return true;
}

static bool set_log_format(struct parse *parse, const struct option *option, dv_str value,
                           struct dv_err *err)
{
    if (dv_str_eq(value, DV_STR("text")))
        parse->options->log_format = DV_LOG_TEXT;
    else if (dv_str_eq(value, DV_STR("json")))
        parse->options->log_format = DV_LOG_JSON;
    else
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s is text or json, not \"%.*s\"", option->name,
                       DV_FMT(value));
    return true;
}

static bool set_wait(struct parse *parse, const struct option *option, dv_str value,
                     struct dv_err *err)
{
    uint32_t seconds;

    if (!dv_str_to_u32(value, &seconds))
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s: \"%.*s\" is not a number of seconds",
                       option->name, DV_FMT(value));
    parse->options->wait_ms = (uint64_t)seconds * 1000;
    return true;
}

/* Sets a number of whole units that is in the range. */
static bool parse_range(const struct option *option, dv_str value, uint32_t max, uint32_t *number,
                        struct dv_err *err)
{
    uint32_t parsed;

    if (!dv_str_to_u32(value, &parsed) || parsed == 0 || parsed > max)
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s: \"%.*s\" is not a number from 1 to %u",
                       option->name, DV_FMT(value), max);
    *number = parsed;
    return true;
}

/* Adds an offer: the one option that may be given several times. */
static bool add_offer(struct parse *parse, const struct option *option, dv_str value,
                      struct dv_err *err)
{
    struct dv_offers read = {0};
    DV_VEC(dv_str)
    all = {parse->options->offers, parse->options->n_offers, parse->options->n_offers};

    (void)option;
    if (!dv_offers_add_text(&read, value, parse->arena, err))
        return false;
    *dv_vec_add_in(&all, parse->arena) = value;
    parse->options->offers = all.v;
    parse->options->n_offers = all.n;
    return true;
}

static bool set_record_file_size(struct parse *parse, const struct option *option, dv_str value,
                                 struct dv_err *err)
{
    uint32_t mib = 0;

    if (!parse_range(option, value, RECORD_FILE_MIB_MAX, &mib, err))
        return false;
    parse->options->record_file_bytes = (uint64_t)mib * 1024 * 1024;
    return true;
}

static bool set_record_files(struct parse *parse, const struct option *option, dv_str value,
                             struct dv_err *err)
{
    return parse_range(option, value, RECORD_FILES_MAX, &parse->options->record_files, err);
}

static bool set_record_blank(struct parse *parse, const struct option *option, dv_str value,
                             struct dv_err *err)
{
    return dv_record_blanks_parse(value, &parse->options->record_blanks, err) ||
           dv_wrap(err, "--%s", option->name);
}

static bool set_log_level(struct parse *parse, const struct option *option, dv_str value,
                          struct dv_err *err)
{
    if (dv_log_level_parse(value, &parse->options->log_level))
        return true;
    return dv_fail(err, DV_INVALID_ARGUMENT,
                   "-%s is error, warn, info, debug or trace, not \"%.*s\"", option->name,
                   DV_FMT(value));
}

#define AT(member) offsetof(struct dv_options, member)

static const struct option table[] = {
    {"kubelet-dir",       "DIR",          "where plugins look for a kubelet (/var/lib/kubelet)",           set_dir,
     AT(kubelet_dir),                                                                                                                             NULL                                          },
    {"state-dir",         "DIR",          "durable state (/var/lib/davit)",                                set_dir,          AT(state_dir),       NULL                                          },
    {"runtime-dir",       "DIR",          "our own socket, davit.sock (/run/davit)",                       set_dir,          AT(runtime_dir),
     NULL                                                                                                                                                                                       },
    {"cdi-dirs",          "DIR[:DIR]",    "CDI specs (/etc/cdi:/var/run/cdi)",                             set_dir,          AT(cdi_dirs),        NULL                                          },
    {"node-name",         "NAME",         "this node's name (the host name)",                              set_text,         AT(node_name),       NULL                                          },
    {"listen",            "ADDRESS:PORT", "of the API; none: no TCP (127.0.0.1:6443)",                     set_text,         AT(listen),
     NULL                                                                                                                                                                                       },
    {"insecure-http",     NULL,           "plain HTTP on loopback, for tests",                             set_switch,       AT(insecure_http),
     NULL                                                                                                                                                                                       },
    {"kubeconfig",        "FILE",         "be the node agent of this cluster",                             set_dir,          AT(kubeconfig),      NULL                                          },
    {"node-listen",       "ADDRESS:PORT", "of the node's own API, none or auto (auto)",                    set_text,
     AT(node_listen),                                                                                                                             NULL                                          },
    {"node-healthz",      "ADDRESS:PORT", "of the node's /healthz without TLS, none or auto (auto)",
     set_text,                                                                                                               AT(node_healthz),    NULL                                          },
    {"node-cert",         "FILE",         "certificate of the node's own API (its own)",                   set_dir,          AT(node_cert),
     NULL                                                                                                                                                                                       },
    {"node-key",          "FILE",         "the key of --node-cert",                                        set_dir,          AT(node_key),        NULL                                          },
    {"client-ca",         "FILE",         "CA of those who use the node's own API (none)",                 set_dir,          AT(client_ca),
     NULL                                                                                                                                                                                       },
    {"roles",             "LIST",         "of api,control,sched,node (all; node with --kubeconfig)",       set_roles,        0,
     NULL                                                                                                                                                                                       },
    {"scheduler-name",    "NAME",         "of the role sched in a cluster: pods name it (davit)",          set_text,
     AT(scheduler_name),                                                                                                                          NULL                                          },
    {"topology-policy",   "POLICY",       "none, best-effort, restricted or single-numa-node (none)",
     set_policy,                                                                                                             AT(topology_policy), "none|best-effort|restricted|single-numa-node"},
    {"topology-scope",    "SCOPE",        "container or pod (container)",                                  set_scope,        AT(topology_scope),
     "container|pod"                                                                                                                                                                            },
    {"topology-options",  "LIST",
     "prefer-closest-numa-nodes=true, max-allowable-numa-nodes=N (none)",                                  set_text,
     AT(topology_options),                                                                                                                        NULL                                          },
    {"sys-dir",           "DIR",          "where NUMA nodes are looked up (/sys)",                         set_dir,          AT(sys_dir),         NULL                                          },
    {"boot-id-file",      "FILE",         "what tells one boot from another (the kernel's boot_id)",       set_dir,
     AT(boot_id_file),                                                                                                                            NULL                                          },
    {"wait",              "SECONDS",      "how long an admission waits for a plugin to come back (60)",    set_wait,         0,
     NULL                                                                                                                                                                                       },
    {"ledger",            "MODE",
     "a device that another pod has by another way: on refuses, warn tells, off (on)",                     set_ledger,
     AT(ledger),                                                                                                                                  "on|warn|off"                                 },
    {"policy",            "FILE",         "YAML: which peers may register and call what (none)",           set_dir,          AT(policy),
     NULL                                                                                                                                                                                       },
    {"offer",             "NAME=WHAT",
     "devices without a driver, as serial=/dev/ttyUSB*; may be repeated (none)",                           add_offer,
     AT(offers),                                                                                                                                  NULL                                          },
    {"offer-file",        "FILE",         "YAML: more offers, read again on SIGHUP (none)",                set_dir,
     AT(offer_file),                                                                                                                              NULL                                          },
    {"dev-dir",           "DIR",          "where device nodes are looked up (/dev)",                       set_dir,          AT(dev_dir),         NULL                                          },
    {"record",            "DIR",          "record all that plugins and davitd say to each other (no)",     set_dir,
     AT(record),                                                                                                                                  NULL                                          },
    {"record-file-size",  "MIB",          "of a file of the recording at most, in MiB (16)",
     set_record_file_size,                                                                                                   0,                   NULL                                          },
    {"record-files",      "N",            "of the recording are kept, the newest (8)",                     set_record_files, 0,                   NULL                                          },
    {"record-blank",      "LIST",         "of env,annotations,config,unknown or all: not recorded (none)",
     set_record_blank,                                                                                                       0,                   NULL                                          },
    {"group",             "GROUP",        "who may look and lease on davit.sock, beside root (none)",      set_text,
     AT(group),                                                                                                                                   NULL                                          },
    {"cri",               "RUNTIME",      "what runs containers: auto, none or unix:///PATH (auto)",       set_cri,          AT(cri),
     NULL                                                                                                                                                                                       },
    {"pod-manifest-path", "DIR",          "static pods: a YAML or JSON file each, watched (none)",         set_dir,
     AT(pod_manifest_path),                                                                                                                       NULL                                          },
    {"pod-logs-dir",      "DIR",          "what containers print (/var/log/pods)",                         set_dir,          AT(pod_logs_dir),
     NULL                                                                                                                                                                                       },
    {"cgroup-root",       "PATH",         "the cgroup above those of pods: auto, none or /PATH (auto)",
     set_cgroup_root,                                                                                                        AT(cgroup_root),     NULL                                          },
    {"image-gc",          "HIGH:LOW",
     "remove unused images from HIGH % of their disk down to LOW %, or off (85:80)",                       set_image_gc,
     0,                                                                                                                                           NULL                                          },
    {"strict",            NULL,           "decide as the kubelet does, also where davit would do better",  set_switch,
     AT(is_strict),                                                                                                                               NULL                                          },
    {"log-format",        "FORMAT",       "text or json (text)",                                           set_log_format,   0,                   NULL                                          },
    {"v",                 "LEVEL",        "what is logged: error, warn, info, debug, trace (info)",        set_log_level,    0,
     NULL                                                                                                                                                                                       },
    {"config",            "FILE",         "YAML with these names; the command line wins",                  set_dir,          AT(config),          NULL                                          },
    {"version",           NULL,           "print the version and end",                                     set_switch,       AT(wants_version),   NULL                                          },
    {"help",              NULL,           "print this and end",                                            set_switch,       AT(wants_help),      NULL                                          },
};

static const struct option *find(dv_str name)
{
    for (size_t i = 0; i < DV_COUNT(table); i++)
        if (dv_str_eq(dv_str_from_c(table[i].name), name))
            return &table[i];
    return NULL;
}

static bool set_once(struct parse *parse, const struct option *option, dv_str value,
                     struct dv_err *err)
{
    uint64_t bit = UINT64_C(1) << (option - table);

    if ((parse->set_on_command_line & bit) && option->set != add_offer)
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s is given twice", option->name);
    parse->set_on_command_line |= bit;
    return option->set(parse, option, value, err);
}

/* Parses "--name" and "--name=value"; names of one letter also with one dash. */
static bool parse_words(struct parse *parse, int argc, char *const *argv, struct dv_err *err)
{
    for (int i = 1; i < argc; i++) {
        dv_str word = dv_str_from_c(argv[i]);
        size_t dashes = dv_str_starts_with(word, DV_STR("--")) ? 2 : 1;
        size_t equals = dv_str_find_char(word, '=');
        dv_str name = dv_str_slice(word, dashes, equals);
        const struct option *option;
        dv_str value = dv_str_slice(word, equals + 1, word.n);

        if (word.n < 2 || word.p[0] != '-')
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "unexpected word \"%s\"; davitd --help lists the options", argv[i]);
        option = find(dashes == 1 && dv_str_eq(name, DV_STR("h")) ? DV_STR("help") : name);
        if (!option || (dashes == 1) != (strlen(option->name) == 1 || dv_str_eq(name, DV_STR("h"))))
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "no option \"%s\"; davitd --help lists the options", argv[i]);
        if (equals == word.n && !option->value)
            value = DV_STR("true");
        else if (equals == word.n && i + 1 == argc)
            return dv_fail(err, DV_INVALID_ARGUMENT, "%s needs a value (%s)", argv[i],
                           option->value);
        else if (equals == word.n)
            value = dv_str_from_c(argv[++i]);
        if (!set_once(parse, option, value, err))
            return false;
    }
    return true;
}

/* Returns a scalar's text: strings as they are, numbers and booleans as printed. */
static bool scalar_text(const struct dv_json *node, dv_str *text, struct dv_err *err)
{
    bool on;

    if (dv_json_is(node, DV_JSON_NUMBER)) {
        *text = dv_json_number_text(node);
        return true;
    }
    if (dv_json_is(node, DV_JSON_BOOL)) {
        if (!dv_json_as_bool(node, &on, err))
            return false;
        *text = on ? DV_STR("true") : DV_STR("false");
        return true;
    }
    return dv_json_as_str(node, text, err);
}

static bool set_from_file(struct parse *parse, const struct option *option,
                          const struct dv_json *node, struct dv_err *err)
{
    dv_str value;

    if (!scalar_text(node, &value, err))
        return false;
    if (dv_str_find_char(value, '\0') < value.n) /* a path would end there */
        return dv_json_fail(node, err, "has a zero byte");
    return option->set(parse, option, value, err);
}

static bool parse_file(struct parse *parse, dv_str path, struct dv_err *err)
{
    struct dv_json_opts opts = {.refuse_duplicates = true};
    const struct dv_json *doc;
    const struct dv_json *member;
    dv_str text;

    if (!dv_file_read(path, CONFIG_BYTES_MAX, parse->arena, &text, err))
        return false;
    doc = dv_yaml_parse(text, &opts, parse->arena, err);
    if (doc && dv_json_is(doc, DV_JSON_NULL))
        return true; /* all lines are comments */
    if (!doc || !dv_json_expect(doc, DV_JSON_OBJECT, err))
        return dv_wrap(err, "%.*s", DV_FMT(path));
    for (member = dv_json_first(doc); member; member = dv_json_next(member)) {
        const struct option *option = find(dv_json_key(member));

        if (!option || option->at == AT(config) || option->at == AT(wants_help)) {
            (void)dv_json_fail(member, err, "no such option");
            return dv_wrap(err, "%.*s", DV_FMT(path));
        }
        if (parse->set_on_command_line & UINT64_C(1) << (option - table))
            continue;
        if (option->set == add_offer && dv_json_is(member, DV_JSON_ARRAY)) {
            for (const struct dv_json *item = dv_json_first(member); item;
                 item = dv_json_next(item))
                if (!set_from_file(parse, option, item, err))
                    return dv_wrap(err, "%.*s", DV_FMT(path));
        } else if (!set_from_file(parse, option, member, err)) {
            return dv_wrap(err, "%.*s", DV_FMT(path));
        }
    }
    return true;
}

static dv_str host_name(struct dv_arena *arena)
{
    char name[HOST_NAME_BYTES] = "";

    if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0')
        return DV_STR("localhost");
    return dv_str_copy(dv_str_from_c(name), arena);
}

/* Checks what can only be checked when everything has been read. */
static bool settle(struct dv_options *options, struct dv_err *err)
{
    bool is_agent = options->kubeconfig.n > 0;
    /* Who has the kubelet's own directory in a cluster is the machine's kubelet, and has its ports;
     * any other agent leaves them alone. */
    bool is_kubelet = is_agent && dv_str_eq(options->kubelet_dir, DV_STR(DV_KUBELET_DIR));

    if (dv_str_eq(options->node_listen, DV_STR("auto")))
        options->node_listen = is_kubelet ? DV_STR("0.0.0.0:10250") : DV_STR("none");
    if (dv_str_eq(options->node_healthz, DV_STR("auto")))
        options->node_healthz = is_kubelet ? DV_STR("127.0.0.1:10248") : DV_STR("none");
    if ((options->node_cert.n > 0) != (options->node_key.n > 0))
        return dv_fail(err, DV_INVALID_ARGUMENT, "--node-cert and --node-key go together");

    if (options->roles == 0)
        options->roles = is_agent ? DV_ROLE_NODE : ROLES_ALL;
    if (is_agent && (options->roles & DV_ROLE_API))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--kubeconfig goes without the role api: the cluster has one");
    if (is_agent && options->scheduler_name.n == 0)
        options->scheduler_name = DV_STR("davit");
    if (!is_agent && !(options->roles & DV_ROLE_API))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--roles without api needs --kubeconfig: which API should it use?");
    return true;
}

bool dv_options_parse(int argc, char *const *argv, struct dv_arena *arena,
                      struct dv_options *options, struct dv_err *err)
{
    struct dv_options read = {
        .kubelet_dir = DV_STR(DV_KUBELET_DIR),
        .state_dir = DV_STR("/var/lib/davit"),
        .runtime_dir = DV_STR("/run/davit"),
        .cdi_dirs = DV_STR("/etc/cdi:/var/run/cdi"),
        .node_name = host_name(arena),
        .listen = DV_STR("127.0.0.1:6443"),
        .node_listen = DV_STR("auto"),
        .node_healthz = DV_STR("auto"),
        .topology_policy = DV_STR("none"),
        .topology_scope = DV_STR("container"),
        .sys_dir = DV_STR("/sys"),
        .dev_dir = DV_STR("/dev"),
        .boot_id_file = DV_STR("/proc/sys/kernel/random/boot_id"),
        .cri = DV_STR("auto"),
        .pod_logs_dir = DV_STR("/var/log/pods"),
        .cgroup_root = DV_STR("auto"),
        .image_gc = {.high_percent = 85,
                     .low_percent = 80,
                     .min_age_ns = IMAGE_AGE_S * DV_NS_PER_S},
        .wait_ms = DV_POD_WAIT_MS,
        .ledger = DV_STR("on"),
        .log_format = DV_LOG_TEXT,
        .log_level = DV_LOG_INFO,
    };
    struct parse parse = {.options = &read, .arena = arena};

    if (!parse_words(&parse, argc, argv, err))
        return false;
    if (read.config.n > 0 && !parse_file(&parse, read.config, err))
        return false;
    if (!read.wants_help && !read.wants_version && !settle(&read, err))
        return false;
    *options = read;
    return true;
}

void dv_options_print_help(struct dv_buf *buf)
{
    dv_buf_add_c(
        buf, "davitd - devices and dynamic resources of a node\n\nusage: davitd [OPTION...]\n\n");
    for (size_t i = 0; i < DV_COUNT(table); i++) {
        const struct option *option = &table[i];
        size_t start = buf->n;

        dv_buf_printf(buf, "  %s%s%s%s", strlen(option->name) == 1 ? "-" : "--", option->name,
                      option->value ? " " : "", option->value ? option->value : "");
        while (buf->n < start + 28)
            dv_buf_add_char(buf, ' ');
        dv_buf_printf(buf, "  %s\n", option->help);
    }
}
