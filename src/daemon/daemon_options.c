#include "daemon/daemon_options.h"

#include <string.h>
#include <unistd.h>

#include "base/ascii.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/name.h"
#include "daemon/option_values.h"
#include "pod/pod.h"
#include "rest/rest.h"
#include "json/json.h"

/* The limit of a configuration file, which has a screen or two. */
#define CONFIG_BYTES_MAX (1u << 20)

/* The kernel's limit of a host name is 64, and there is the NUL. */
#define HOST_NAME_BYTES 65

#define ROLES_ALL (DV_ROLE_API | DV_ROLE_CONTROL | DV_ROLE_SCHED | DV_ROLE_NODE)

#define AT(member) offsetof(struct dv_options, member)

/* clang-format off */
static const struct dv_daemon_option table[] = {
    {"kubelet-dir",       "DIR",          dv_daemon_set_dir,              AT(kubelet_dir),
     "where plugins look for a kubelet (/var/lib/kubelet)", NULL},
    {"state-dir",         "DIR",          dv_daemon_set_dir,              AT(state_dir),
     "durable state (/var/lib/davit)", NULL},
    {"runtime-dir",       "DIR",          dv_daemon_set_dir,              AT(runtime_dir),
     "our own socket, davit.sock (/run/davit)", NULL},
    {"cdi-dirs",          "DIR[:DIR]",    dv_daemon_set_dir,              AT(cdi_dirs),
     "CDI specs (/etc/cdi:/var/run/cdi)", NULL},
    {"node-name",         "NAME",         dv_daemon_set_node_name,        AT(node_name),
     "this node's name (the host name)", NULL},
    {"listen",            "ADDRESS:PORT", dv_daemon_set_address,          AT(listen),
     "of the API; none: no TCP (127.0.0.1:6443)", "none"},
    {"insecure-http",     NULL,           dv_daemon_set_switch,           AT(insecure_http),
     "plain HTTP on loopback, for tests", NULL},
    {"kubeconfig",        "FILE",         dv_daemon_set_dir,              AT(kubeconfig),
     "be the node agent of this cluster", NULL},
    {"node-listen",       "ADDRESS:PORT", dv_daemon_set_address,          AT(node_listen),
     "of the node's own API, none or auto (auto)", "none|auto"},
    {"node-healthz",      "ADDRESS:PORT", dv_daemon_set_address,          AT(node_healthz),
     "of the node's /healthz without TLS, none or auto (auto)", "none|auto"},
    {"node-cert",         "FILE",         dv_daemon_set_dir,              AT(node_cert),
     "certificate of the node's own API (its own)", NULL},
    {"node-key",          "FILE",         dv_daemon_set_dir,              AT(node_key),
     "the key of --node-cert", NULL},
    {"client-ca",         "FILE",         dv_daemon_set_dir,              AT(client_ca),
     "CA of those who use the node's own API (none)", NULL},
    {"roles",             "LIST",         dv_daemon_set_roles,            0,
     "of api,control,sched,node (all; node with --kubeconfig)", NULL},
    {"scheduler-name",    "NAME",         dv_daemon_set_text,             AT(scheduler_name),
     "of the role sched in a cluster: pods name it (davit)", NULL},
    {"topology-policy",   "POLICY",       dv_daemon_set_policy,           AT(topology_policy),
     "none, best-effort, restricted or single-numa-node (none)",
     "none|best-effort|restricted|single-numa-node"},
    {"topology-scope",    "SCOPE",        dv_daemon_set_scope,            AT(topology_scope),
     "container or pod (container)",
     "container|pod"},
    {"topology-options",  "LIST",         dv_daemon_set_text,             AT(topology_options),
     "prefer-closest-numa-nodes=true, max-allowable-numa-nodes=N (none)", NULL},
    {"sys-dir",           "DIR",          dv_daemon_set_dir,              AT(sys_dir),
     "where NUMA nodes are looked up (/sys)", NULL},
    {"boot-id-file",      "FILE",         dv_daemon_set_dir,              AT(boot_id_file),
     "what tells one boot from another (the kernel's boot_id)", NULL},
    {"wait",              "SECONDS",      dv_daemon_set_wait,             0,
     "how long an admission waits for a plugin to come back (60)", NULL},
    {"ledger",            "MODE",         dv_daemon_set_ledger,           AT(ledger),
     "a device that another pod has by another way: on refuses, warn tells, off (on)",
     "on|warn|off"},
    {"policy",            "FILE",         dv_daemon_set_dir,              AT(policy),
     "YAML: which peers may register and call what (none)", NULL},
    {"offer",             "NAME=WHAT",    dv_daemon_add_offer,            AT(offers),
     "devices without a driver, as serial=/dev/ttyUSB*; may be repeated (none)", NULL},
    {"offer-file",        "FILE",         dv_daemon_set_dir,              AT(offer_file),
     "YAML: more offers, read again on SIGHUP (none)", NULL},
    {"dev-dir",           "DIR",          dv_daemon_set_dir,              AT(dev_dir),
     "where device nodes are looked up (/dev)", NULL},
    {"record",            "DIR",          dv_daemon_set_dir,              AT(record),
     "record all that plugins and davitd say to each other (no)", NULL},
    {"record-file-size",  "MIB",          dv_daemon_set_record_file_size, 0,
     "of a file of the recording at most, in MiB (16)", NULL},
    {"record-files",      "N",            dv_daemon_set_record_files,     0,
     "of the recording are kept, the newest (8)", NULL},
    {"record-blank",      "LIST",         dv_daemon_set_record_blank,     0,
     "of env,annotations,config,unknown or all: not recorded (none)", NULL},
    {"group",             "GROUP",        dv_daemon_set_text,             AT(group),
     "who may look and lease on davit.sock, beside root (none)", NULL},
    {"cri",               "RUNTIME",      dv_daemon_set_cri,              AT(cri),
     "what runs containers: auto, none or unix:///PATH (auto)", NULL},
    {"pod-manifest-path", "DIR",          dv_daemon_set_dir,              AT(pod_manifest_path),
     "static pods: a YAML or JSON file each, watched (none)", NULL},
    {"pod-logs-dir",      "DIR",          dv_daemon_set_dir,              AT(pod_logs_dir),
     "what containers print (/var/log/pods)", NULL},
    {"cgroup-root",       "PATH",         dv_daemon_set_cgroup_root,      AT(cgroup_root),
     "the cgroup above those of pods: auto, none or /PATH (auto)", NULL},
    {"image-gc",          "HIGH:LOW",     dv_daemon_set_image_gc,         0,
     "remove unused images from HIGH % of their disk down to LOW %, or off (85:80)", NULL},
    {"preempt-devices",   NULL,           dv_daemon_set_switch,           AT(preempts_devices),
     "pods give up their devices for pods of higher priority that wait for some", NULL},
    {"strict",            NULL,           dv_daemon_set_switch,           AT(is_strict),
     "decide as the kubelet does, also where davit would do better", NULL},
    {"log-format",        "FORMAT",       dv_daemon_set_log_format,       0,
     "text or json (text)", NULL},
    {"v",                 "LEVEL",        dv_daemon_set_log_level,        0,
     "what is logged: error, warn, info, debug, trace (info)", NULL},
    {"config",            "FILE",         dv_daemon_set_dir,              AT(config),
     "YAML with these names; the command line wins", NULL},
    {"version",           NULL,           dv_daemon_set_switch,           AT(wants_version),
     "print the version and end", NULL},
    {"help",              NULL,           dv_daemon_set_switch,           AT(wants_help),
     "print this and end", NULL},
};
/* clang-format on */

static const struct dv_daemon_option *find(dv_str name)
{
    for (size_t i = 0; i < DV_COUNT(table); i++)
        if (dv_str_eq(dv_str_from_c(table[i].name), name))
            return &table[i];
    return NULL;
}

static bool set_once(struct dv_daemon_option_parse *parse, const struct dv_daemon_option *option,
                     dv_str value, struct dv_err *err)
{
    uint64_t bit = UINT64_C(1) << (option - table);

    if ((parse->set_on_command_line & bit) && option->set != dv_daemon_add_offer)
        return dv_fail(err, DV_INVALID_ARGUMENT, "--%s is given twice", option->name);
    parse->set_on_command_line |= bit;
    return option->set(parse, option, value, err);
}

/* Parses "--name" and "--name=value"; names of one letter also with one dash. */
static bool parse_words(struct dv_daemon_option_parse *parse, int argc, char *const *argv,
                        struct dv_err *err)
{
    for (int i = 1; i < argc; i++) {
        dv_str word = dv_str_from_c(argv[i]);
        size_t dashes = dv_str_starts_with(word, DV_STR("--")) ? 2 : 1;
        size_t equals = dv_str_find_char(word, '=');
        dv_str name = dv_str_slice(word, dashes, equals);
        const struct dv_daemon_option *option;
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

static bool set_from_file(struct dv_daemon_option_parse *parse,
                          const struct dv_daemon_option *option, const struct dv_json *node,
                          struct dv_err *err)
{
    dv_str value;

    if (!scalar_text(node, &value, err))
        return false;
    if (dv_str_find_char(value, '\0') < value.n) /* a path would end there */
        return dv_json_fail(node, err, "has a zero byte");
    return option->set(parse, option, value, err) || dv_wrap(err, "line %u", dv_json_line(node));
}

static bool parse_file(struct dv_daemon_option_parse *parse, dv_str path, struct dv_err *err)
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
        const struct dv_daemon_option *option = find(dv_json_key(member));

        if (!option || option->at == AT(config) || option->at == AT(wants_help)) {
            (void)dv_json_fail(member, err, "no such option");
            return dv_wrap(err, "%.*s", DV_FMT(path));
        }
        if (parse->set_on_command_line & UINT64_C(1) << (option - table))
            continue;
        if (option->set == dv_daemon_add_offer && dv_json_is(member, DV_JSON_ARRAY)) {
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

/* In small letters, as a kubelet takes it. */
static dv_str host_name(struct dv_arena *arena)
{
    char name[HOST_NAME_BYTES] = "";

    if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0')
        return DV_STR("localhost");
    for (char *at = name; *at; at++)
        *at = dv_to_lower(*at);
    return dv_str_copy(dv_str_from_c(name), arena);
}

/* Whether nobody else can listen in. */
static bool is_local(dv_str listen)
{
    struct dv_err err;
    bool is_local = false;

    return dv_str_eq(listen, DV_STR("none")) ||
           (dv_rest_address_check(listen, &is_local, &err) && is_local);
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
    if (options->insecure_http && !is_local(options->listen))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "--insecure-http is for loopback addresses, and --listen is %.*s",
                       DV_FMT(options->listen));
    if (!dv_is_dns_subdomain(options->node_name))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "this host is called \"%.*s\", as a node cannot be: --node-name NAME",
                       DV_FMT(options->node_name));

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
                     .min_age_ns = DV_DAEMON_IMAGE_AGE_S * DV_NS_PER_S},
        .wait_ms = DV_POD_WAIT_MS,
        .ledger = DV_STR("on"),
        .log_format = DV_LOG_TEXT,
        .log_level = DV_LOG_INFO,
    };
    struct dv_daemon_option_parse parse = {.options = &read, .arena = arena};

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
        const struct dv_daemon_option *option = &table[i];
        size_t start = buf->n;

        dv_buf_printf(buf, "  %s%s%s%s", strlen(option->name) == 1 ? "-" : "--", option->name,
                      option->value ? " " : "", option->value ? option->value : "");
        while (buf->n < start + 28)
            dv_buf_add_char(buf, ' ');
        dv_buf_printf(buf, "  %s\n", option->help);
    }
}
