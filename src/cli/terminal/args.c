/* args.c - the options of the command line: one table, each with the verbs that have it. */

#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/terminal/lease_options.h"
#include "cli/terminal/option_row.h"

/* The most simulated objects. */
#define NUMBER_MAX 1000000u

/* ---- values ---- */

/* "jsonpath=TEMPLATE" */
static bool set_template(struct dv_cli *cli, dv_str value)
{
    const dv_str prefix = DV_STR("jsonpath=");

    if (!dv_str_starts_with(value, prefix))
        return false;
    cli->output = DV_OUTPUT_JSONPATH;
    cli->template = dv_str_slice(value, prefix.n, value.n);
    return cli->template.n > 0;
}

static bool set_output(struct dv_cli *cli, dv_str value)
{
    if (set_template(cli, value))
        return true;
    cli->output = dv_str_eq(value, DV_STR("yaml")) ? DV_OUTPUT_YAML : DV_OUTPUT_JSON;
    return cli->output == DV_OUTPUT_YAML || dv_str_eq(value, DV_STR("json"));
}

static bool set_object_output(struct dv_cli *cli, dv_str value)
{
    static const struct {
        dv_str name;
        enum dv_output output;
    } outputs[] = {
        {DV_STR_INIT("table"), DV_OUTPUT_TABLE},
        {DV_STR_INIT("wide"),  DV_OUTPUT_WIDE },
        {DV_STR_INIT("json"),  DV_OUTPUT_JSON },
        {DV_STR_INIT("yaml"),  DV_OUTPUT_YAML },
        {DV_STR_INIT("name"),  DV_OUTPUT_NAME },
    };

    for (size_t i = 0; i < DV_COUNT(outputs); i++)
        if (dv_str_eq(value, outputs[i].name)) {
            cli->output = outputs[i].output;
            return true;
        }
    return set_template(cli, value);
}

static bool set_timeout(struct dv_cli *cli, dv_str value)
{
    return dv_option_duration(value, &cli->timeout_ms);
}

static bool set_gone_timeout(struct dv_cli *cli, dv_str value)
{
    return dv_option_duration(value, &cli->gone_ms);
}

static bool set_ttl(struct dv_cli *cli, dv_str value)
{
    return dv_option_duration(value, &cli->ttl_ms);
}

static bool set_since(struct dv_cli *cli, dv_str value)
{
    return dv_option_duration(value, &cli->since_ms);
}

static bool set_file(struct dv_cli *cli, dv_str value)
{
    cli->file = value;
    cli->files[cli->n_files++] = value;
    return true;
}

static bool set_pool(struct dv_cli *cli, dv_str value)
{
    cli->pools[cli->n_pools++] = value;
    return value.n > 0;
}

static bool set_also(struct dv_cli *cli, dv_str value)
{
    cli->also[cli->n_also++] = value;
    return value.n > 0;
}

static bool set_hook(struct dv_cli *cli, dv_str value)
{
    cli->hooks[cli->n_hooks++] = value;
    return dv_str_find_char(value, '=') < value.n;
}

static bool set_only(struct dv_cli *cli, dv_str value)
{
    cli->only[cli->n_only++] = value;
    return true;
}

static bool set_required(struct dv_cli *cli, dv_str value)
{
    static const dv_str names[] = {
        DV_STR_INIT("prefer"), DV_STR_INIT("prestart"), DV_STR_INIT("health"),
        DV_STR_INIT("slices"), DV_STR_INIT("classic"),  DV_STR_INIT("watcher"),
        DV_STR_INIT("two"),
    };

    cli->required[cli->n_required++] = value;
    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (dv_str_eq(names[i], value))
            return true;
    return dv_str_find_char(value, '.') < value.n; /* a case's id: looked up later */
}

static bool set_skip(struct dv_cli *cli, dv_str value)
{
    cli->skip[cli->n_skip++] = value;
    return true;
}

static bool set_case_timeout(struct dv_cli *cli, dv_str value)
{
    return dv_option_duration(value, &cli->case_ms);
}

static bool set_recover_ms(struct dv_cli *cli, dv_str value)
{
    return dv_option_duration(value, &cli->recover_ms);
}

static bool set_verify_grace(struct dv_cli *cli, dv_str value)
{
    return dv_option_duration(value, &cli->verify_grace_ms);
}

static bool set_wait_ms(struct dv_cli *cli, dv_str value)
{
    return dv_option_duration(value, &cli->wait_ms);
}

static bool set_grace(struct dv_cli *cli, dv_str value)
{
    cli->has_grace = true;
    return dv_str_to_u32(value, &cli->grace_s) && cli->grace_s <= DV_OPTION_DURATION_S_MAX;
}

/* Reads a flag; without a value it is true. */
static bool read_flag(dv_str value, bool *flag)
{
    *flag = value.n == 0 || dv_str_eq(value, DV_STR("true"));
    return *flag || dv_str_eq(value, DV_STR("false"));
}

static bool set_wait(struct dv_cli *cli, dv_str value)
{
    bool waits;

    if (!read_flag(value, &waits))
        return false;
    cli->skips_waiting = !waits;
    return true;
}

static bool set_ignore_not_found(struct dv_cli *cli, dv_str value)
{
    return read_flag(value, &cli->ignores_absent);
}

/* The server does all but the write. What kubectl calls "client" would tell nothing here. */
static bool set_dry_run(struct dv_cli *cli, dv_str value)
{
    cli->is_dry_run = value.n == 0 || dv_str_eq(value, DV_STR("server"));
    return cli->is_dry_run || dv_str_eq(value, DV_STR("none"));
}

/* A number of things, above zero. */
static bool read_number(dv_str value, size_t *n)
{
    size_t number;

    if (!dv_str_to_size(value, &number) || number == 0 || number > NUMBER_MAX)
        return false;
    *n = number;
    return true;
}

#define NUMBER(name, member)                                                                       \
    static bool name(struct dv_cli *cli, dv_str value)                                             \
    {                                                                                              \
        return read_number(value, &cli->member);                                                   \
    }
NUMBER(set_nodes, n_nodes)
NUMBER(set_devices, n_devices)
NUMBER(set_pods, n_pods)
NUMBER(set_clients, n_clients)
NUMBER(set_jobs, n_jobs)

#define SWITCH(name, member)                                                                       \
    static bool name(struct dv_cli *cli, dv_str value)                                             \
    {                                                                                              \
        (void)value;                                                                               \
        cli->member = true;                                                                        \
        return true;                                                                               \
    }

static bool set_json(struct dv_cli *cli, dv_str value)
{
    (void)value;
    cli->output = DV_OUTPUT_JSON;
    return true;
}

SWITCH(set_follow, follows)
SWITCH(set_previous, is_previous)
SWITCH(set_timestamps, has_timestamps)
SWITCH(set_all_containers, is_all_containers)
SWITCH(set_stdin, has_stdin)
SWITCH(set_tty, has_tty)
SWITCH(set_watch, watches)
SWITCH(set_everywhere, is_everywhere)
SWITCH(set_all, is_all)
SWITCH(set_all_pending, is_all_pending)
SWITCH(set_all_nodes, is_all_nodes)
SWITCH(set_force, is_forced)
SWITCH(set_managed, shows_managed_fields)
SWITCH(set_once, is_once)
SWITCH(set_no_open, opens_nothing)
SWITCH(set_list, lists)

SWITCH(set_isolate, is_isolated)
SWITCH(set_print, is_printed)
SWITCH(set_quiet, is_quiet)

static bool set_no_headers(struct dv_cli *cli, dv_str value)
{
    (void)value;
    cli->has_headers = false;
    return true;
}

/* ---- the table ---- */

#define AT(member) offsetof(struct dv_cli, member)

/* The values of -o: of lists, and of what is no table. */
#define LISTED "wide|json|yaml|name|jsonpath=TEMPLATE"
#define DATA "json|yaml|jsonpath=TEMPLATE"

/* The first row that a verb has under a name counts: what is special comes before what is general.
 */
static const struct dv_option_row options[] = {
    {"node",        0,   "socket",              "PATH",                       "of davitd (/run/davit/davit.sock)",                         NULL,               AT(socket)        },
    {"node",        'o', "output",              LISTED,                       "other than a table",                                        set_object_output,  0                 },
    {"here",        0,   "socket",              "PATH",
     "of the davitd that knows this node's part (/run/davit/davit.sock)",                                                                  NULL,               AT(socket)        },
    {"output",      'o', "output",              LISTED,                       "other than a table",                                        set_object_output,  0                 },
    {"data",        'o', "output",              DATA,                         "print all there is, for programs",                          set_output,         0                 },
    {"version",     'o', "output",              "json|yaml",                  "with the libraries it was built with",                      set_output,         0                 },
    {"version",     0,   "json",                NULL,                         "the same as -o json",                                       set_json,           0                 },
    {"data",        0,   "no-headers",          NULL,                         "no first line above a table",                               set_no_headers,     0                 },
    {"node",        0,   "no-headers",          NULL,                         "no first line above a table",                               set_no_headers,     0                 },
    {"output",      0,   "no-headers",          NULL,                         "no first line above a table",                               set_no_headers,     0                 },
    {"until",       0,   "for",                 "GOAL",                       "delete, condition=TYPE[=STATUS], jsonpath={PATH}[=VALUE]",  NULL,
     AT(goal)                                                                                                                                                                    },
    {"until",       0,   "timeout",             "SECONDS",                    "for all of it (30)",                                        set_gone_timeout,   0                 },
    {"as",          0,   "as",                  "podman|docker|nerdctl|runc", "in the words of this engine",                               NULL,               AT(as)            },
    {"as",          0,   "cdi-dirs",            "DIR[:DIR...]",               "the CDI specs, later ones win (/etc/cdi:/var/run/cdi)",
     NULL,                                                                                                                                                     AT(cdi_dirs)      },
    {"gone",        0,   "timeout",             "SECONDS",                    "for the objects to be gone (600)",                          set_gone_timeout,   0                 },
    {"node",        0,   "timeout",             "SECONDS",                    "for the daemon's answer (90)",                              set_timeout,        0                 },
    {"api",         0,   "timeout",             "SECONDS",                    "for an answer of the server (90)",                          set_timeout,        0                 },
    {"f",           'f', "filename",            "FILE",                       "the pod",                                                   set_file,           0                 },
    {"files",       'f', "filename",            "FILE|DIR|-",                 "the objects, YAML or JSON; may be given again",
     set_file,                                                                                                                                                 0                 },
    {"n",           'n', "namespace",           "NAMESPACE",                  "of the pod (default)",                                      NULL,               AT(namespace)     },
    {"api",         'n', "namespace",           "NAMESPACE",                  "of the objects (the context's, else default)",              NULL,
     AT(namespace)                                                                                                                                                               },
    {"everywhere",  'A', "all-namespaces",      NULL,                         "in all namespaces",                                         set_everywhere,     0                 },
    {"select",      'l', "selector",            "LABELS",                     "only objects with these: a=b,c!=d,e in (f,g)",              NULL,
     AT(labels)                                                                                                                                                                  },
    {"select",      0,   "field-selector",      "FIELDS",                     "only objects with these: spec.nodeName=n1",                 NULL,
     AT(fields)                                                                                                                                                                  },
    {"uid",         0,   "uid",                 "UID",                        "of the pod, instead of its name",                           NULL,               AT(uid)           },
    {"c",           'c', "container",           "CONTAINER",                  "its name",                                                  NULL,               AT(container)     },
    {"w",           'w', "watch",               NULL,                         "watch: print again after every change",                     set_watch,          0                 },
    {"logs",        'f', "follow",              NULL,                         "until the container has ended, or Ctrl-C",                  set_follow,         0                 },
    {"logs",        'p', "previous",            NULL,                         "of the instance before the present one",                    set_previous,       0                 },
    {"logs",        0,   "tail",                "N",                          "only the last N lines (all)",                               NULL,               AT(tail)          },
    {"logs",        0,   "since",               "DURATION",                   "only lines that are newer: 90s, 5m, 1h",                    set_since,          0                 },
    {"logs",        0,   "since-time",          "TIME",                       "only lines since then: 2026-01-31T08:00:00Z",               NULL,
     AT(since_time)                                                                                                                                                              },
    {"logs",        0,   "timestamps",          NULL,                         "each line with its time",                                   set_timestamps,     0                 },
    {"logs",        0,   "limit-bytes",         "N",                          "no more than N bytes",                                      NULL,               AT(limit_bytes)   },
    {"logs",        0,   "all-containers",      NULL,                         "of all containers, each line with its container",
     set_all_containers,                                                                                                                                       0                 },
    {"streams",     'i', "stdin",               NULL,                         "pass our standard input on",                                set_stdin,          0                 },
    {"streams",     't', "tty",                 NULL,                         "with a terminal, which needs -i",                           set_tty,            0                 },
    {"top",         0,   "once",                NULL,                         "print it once, as text, and end",                           set_once,           0                 },
    {"top",         0,   "kubeconfig",          "FILE",                       "of the API server, whose events are shown",                 NULL,
     AT(kubeconfig)                                                                                                                                                              },
    {"top",         0,   "context",             "NAME",                       "in the kubeconfig (its current one)",                       NULL,               AT(context)       },
    {"top",         0,   "state-dir",           "DIR",                        "where davitd's admin.kubeconfig is (/var/lib/davit)",       NULL,
     AT(state_dir)                                                                                                                                                               },
    {"ui",          0,   "no-open",             NULL,                         "only print the link",                                       set_no_open,        0                 },
    {"managed",     0,   "show-managed-fields", NULL,                         "with -o json|yaml: who set which field, too",
     set_managed,                                                                                                                                              0                 },
    {"apply",       0,   "force-conflicts",     NULL,                         "take fields that others have set",                          set_force,          0                 },
    {"run",         0,   "pid",                 "PID",                        "of started: its process, whose end is seen",                NULL,               AT(pid)           },
    {"run",         0,   "exit-code",           "CODE",                       "of ended: what it ended with",                              NULL,               AT(exit_code)     },
    {"run",         0,   "message",             "TEXT",                       "of ended: its last words, for its status",                  NULL,               AT(message)       },
    {"claim",       0,   "force",               NULL,                         "of release: without asking the claim's drivers",            set_force,          0                 },
    {"claim",       0,   "reason",              "TEXT",                       "of release: for the event that tells of it",                NULL,               AT(reason)        },
    {"simulate",    0,   "nodes",               "N",                          "nodes (100)",                                               set_nodes,          0                 },
    {"simulate",    0,   "devices",             "N",                          "devices of each node (10)",                                 set_devices,        0                 },
    {"simulate",    0,   "pods",                "N",                          "pods (1000)",                                               set_pods,           0                 },
    {"simulate",    0,   "clients",             "N",                          "that make pods at the same time (64)",                      set_clients,        0                 },
    {"simulate",    0,   "shape",               "SHAPE",                      "template, shared, cel, match or none (template)",           NULL,
     AT(shape)                                                                                                                                                                   },
    {"simulate",    0,   "dir",                 "DIR",                        "where its database is for a while (/tmp)",                  NULL,               AT(dir)           },
    {"simulate",    0,   "timeout",             "SECONDS",                    "for all pods to be bound (90)",                             set_timeout,        0                 },
    {"verify",      0,   "exec",                "COMMAND",                    "starts the driver; see PLACEHOLDERS",                       NULL,               AT(exec)          },
    {"verify",      0,   "attach",              "DIR",                        "a driver runs already, or will, with its paths in DIR",     NULL,
     AT(attach)                                                                                                                                                                  },
    {"verify",      0,   "only",                "CASE",                       "only this one, or those that begin so: list.*; again",      set_only,
     0                                                                                                                                                                           },
    {"verify",      0,   "skip",                "CASE",                       "not this one; may be given again",                          set_skip,           0                 },
    {"verify",      0,   "list",                NULL,                         "print the cases, and run none",                             set_list,           0                 },
    {"verify",      0,   "require",             "WHAT",                       "what must be there: slices, health...; or a CASE",
     set_required,                                                                                                                                             0                 },
    {"verify",      0,   "jobs",                "N",                          "cases at a time (two a core)",                              set_jobs,           0                 },
    {"verify",      0,   "setup",               "COMMAND",                    "before each case",                                          NULL,               AT(setup)         },
    {"verify",      0,   "teardown",            "COMMAND",                    "after each case",                                           NULL,               AT(teardown)      },
    {"verify",      0,   "hook",                "NAME=COMMAND",
     "does to the driver what the protocol cannot; see the page",                                                                          set_hook,           0                 },
    {"verify",      0,   "claim",               "FILE",                       "a ResourceClaim for the driver, and classes that it needs",
     NULL,                                                                                                                                                     AT(claim_file)    },
    {"verify",      0,   "bad-claim",           "FILE",                       "one that the driver must refuse to prepare",                NULL,
     AT(bad_claim_file)                                                                                                                                                          },
    {"verify",      0,   "driver",              "NAME",                       "the driver or resource, if several register (the first)",   NULL,
     AT(driver)                                                                                                                                                                  },
    {"verify",      0,   "node",                "NAME",                       "the node's name (verify-node)",                             NULL,               AT(node)          },
    {"verify",      0,   "also",                "RULE",                       "what its token may read besides, as of davit token; again",
     set_also,                                                                                                                                                 0                 },
    {"verify",      0,   "emulate",             "RELEASE",                    "offer what Kubernetes 1.31 to 1.36 has (1.36)",             NULL,
     AT(release)                                                                                                                                                                 },
    {"verify",      0,   "wait",                "SECONDS",                    "for what a driver has to do by itself (10, or 3 starts)",
     set_wait_ms,                                                                                                                                              0                 },
    {"verify",      0,   "grace",               "SECONDS",                    "from SIGTERM to the driver's end (30)",                     set_verify_grace,   0                 },
    {"verify",      0,   "recover",             "SECONDS",                    "until it is well again after trouble (90)",                 set_recover_ms,
     0                                                                                                                                                                           },
    {"verify",      0,   "timeout",             "SECONDS",                    "for a case as a whole (120)",                               set_case_timeout,   0                 },
    {"verify",      0,   "dir",                 "DIR",                        "keeps recordings and output of the driver (davit-verify)",  NULL,
     AT(dir)                                                                                                                                                                     },
    {"verify",      0,   "tap",                 "FILE",                       "a report as TAP; - is standard output",                     NULL,               AT(tap)           },
    {"verify",      0,   "junit",               "FILE",                       "a report as JUnit's XML; - is standard output",             NULL,
     AT(junit)                                                                                                                                                                   },
    {"verify",      0,   "json",                "FILE",                       "a report as JSON; - is standard output",                    NULL,               AT(json)          },
    {"dry",         0,   "dry-run",             "[=server|none]",             "all but the change",                                        set_dry_run,        0                 },
    {"explain",     0,   "node",                "NAME",                       "only what stands in the way on this node",                  NULL,               AT(node)          },
    {"explain",     0,   "all",                 NULL,                         "all nodes, and all devices of the nodes",                   set_all,            0                 },
    {"explain",     0,   "all-pending",         NULL,                         "a line for each pod that waits for its claims",
     set_all_pending,                                                                                                                                          0                 },
    {"token",       0,   "driver",              "NAME",                       "for this driver, on the node",                              NULL,               AT(driver)        },
    {"token",       0,   "node",                "NAME",                       "for the node, or for a driver there",                       NULL,               AT(node)          },
    {"token",       0,   "all-nodes",           NULL,                         "for a driver whose devices have no node",                   set_all_nodes,      0                 },
    {"token",       0,   "pool",                "NAME",                       "another pool of a driver; may be given again",              set_pool,           0                 },
    {"token",       0,   "also",                "RULE",                       "what a driver may read besides; may be given again",        set_also,           0                 },
    {"token",       0,   "admin",               "NAME",                       "for a person who may do everything",                        NULL,               AT(admin)         },
    {"token",       0,   "ttl",                 "DURATION",                   "how long it is good: 90m, 24h, 7d (for ever)",              set_ttl,            0                 },
    {"token",       0,   "write-kubeconfig",    "FILE",                       "put it there, with the server's address; mode 0600",
     NULL,                                                                                                                                                     AT(kubeconfig_out)},
    {"cdi",         0,   "cdi-dirs",            "DIR[:DIR...]",               "the specs, later ones win (/etc/cdi:/var/run/cdi)",
     NULL,                                                                                                                                                     AT(cdi_dirs)      },
    {"cdi",         0,   "bundle",              "DIR",                        "of inject: the folder of the config.json",                  NULL,               AT(bundle)        },
    {"cdi",         0,   "pod",                 "POD",                        "of inject: all options of its container -c, too",           NULL,               AT(pod)           },
    {"cdi",         'n', "namespace",           "NAMESPACE",                  "of that pod (default)",                                     NULL,               AT(namespace)     },
    {"cdi",         0,   "socket",              "PATH",                       "of the davitd that has it (/run/davit/davit.sock)",         NULL,
     AT(socket)                                                                                                                                                                  },
    {"record",      'o', "output",              "json",                       "a JSON object a line, for programs",                        set_output,         0                 },
    {"record",      0,   "driver",              "NAME",                       "only this driver or resource",                              NULL,               AT(driver)        },
    {"record",      0,   "claim",               "CLAIM",                      "only calls about it: UID, NAME or NAMESPACE/NAME",          NULL,
     AT(claim)                                                                                                                                                                   },
    {"record",      0,   "pod",                 "UID",                        "only calls for this pod",                                   NULL,               AT(pod)           },
    {"record",      0,   "call",                "METHOD",                     "only calls of it: NodePrepareResources",                    NULL,               AT(call)          },
    {"record",      0,   "status",              "STATUS",                     "only what ended so: DEADLINE_EXCEEDED, error",              NULL,
     AT(status)                                                                                                                                                                  },
    {"record",      0,   "since-time",          "TIME",                       "only from then on: 2026-01-31T08:00:00Z",                   NULL,
     AT(since_time)                                                                                                                                                              },
    {"record",      0,   "until-time",          "TIME",                       "only before then",                                          NULL,               AT(until_time)    },
    {"record",      'f', "follow",              NULL,                         "of show: go on with what comes, until Ctrl-C",              set_follow,         0                 },
    {"record",      0,   "as",                  "driver|kubelet",             "of replay: whose part is played",                           NULL,               AT(as)            },
    {"record",      0,   "socket",              "PATH",                       "of replay --as kubelet: where the driver serves",           NULL,
     AT(driver_socket)                                                                                                                                                           },
    {"record",      0,   "kubelet-dir",         "DIR",
     "of replay --as driver: where it registers (/var/lib/kubelet)",                                                                       NULL,               AT(kubelet_dir)   },
    {"delete",      0,   "all",                 NULL,                         "all objects of the kind in the namespace",                  set_all,            0                 },
    {"delete",      0,   "grace-period",        "SECONDS",                    "for a pod to end (the pod's own)",                          set_grace,          0                 },
    {"delete",      0,   "force",               NULL,                         "at once, without the node's consent; grace period 0",       set_force,
     0                                                                                                                                                                           },
    {"delete",      0,   "ignore-not-found",    "[=true|false]",              "what is not there is no failure",
     set_ignore_not_found,                                                                                                                                     0                 },
    {"gone",        0,   "wait",                "[=true|false]",              "until the objects are gone (true)",                         set_wait,           0                 },
    {"wait",        0,   "wait",                "SECONDS",                    "for what has not come back (the daemon's setting)",         NULL,
     AT(wait)                                                                                                                                                                    },
    {"want",        0,   "gpu",                 "N",                          "GPUs, of the one kind that is here",                        dv_lease_set_gpu,   0                 },
    {"want",        0,   "class",               "CLASS",                      "a device of this class; may be given again",                dv_lease_set_class,
     0                                                                                                                                                                           },
    {"want",        0,   "count",               "N",                          "so many of that class (1)",                                 dv_lease_set_count, 0                 },
    {"want",        0,   "where",               "CEL",                        "for which this is true: 'memory >= 40Gi'; again: all are",
     dv_lease_set_where,                                                                                                                                       0                 },
    {"want",        0,   "same",                "ATTRIBUTE",                  "devices of that class that agree in this",                  dv_lease_set_same,
     0                                                                                                                                                                           },
    {"want",        0,   "wait",                "DURATION|0",                 "for the turn: 90s, 30m, 2h; 0: not at all (for ever)",
     dv_lease_set_turn_wait,                                                                                                                                   0                 },
    {"want",        0,   "max-time",            "DURATION",                   "end after this time (as long as the policy allows)",
     dv_lease_set_max_time,                                                                                                                                    0                 },
    {"want",        0,   "priority",            "N",                          "higher ones come first (what the policy gives)",
     dv_lease_set_priority,                                                                                                                                    0                 },
    {"start",       0,   "engine",              "ENGINE",
     "podman, docker, plain, ...: what the command is (as it looks)",                                                                      NULL,               AT(engine)        },
    {"start",       0,   "isolate",             NULL,                         "a process sees no device nodes but its own",                set_isolate,        0                 },
    {"start",       0,   "print",               NULL,                         "show the command that would be run",                        set_print,          0                 },
    {"start",       'q', "quiet",               NULL,                         "no word about waiting, and no notes",                       set_quiet,          0                 },
    {"start",       0,   "cdi-dirs",            "DIR[:DIR...]",
     "the CDI specs, later ones win (/etc/cdi:/var/run/cdi)",                                                                              NULL,               AT(cdi_dirs)      },
    {"hold",        'q', "quiet",               NULL,                         "of take: no word about waiting",                            set_quiet,          0                 },
    {"hold",        0,   "env-file",            "FILE",                       "of take: put the variables there, print CDI names",         NULL,
     AT(env_file)                                                                                                                                                                },
    {"hold",        0,   "pid",                 "PID",                        "of take: the process that holds it (who called davit)",     NULL,
     AT(pid)                                                                                                                                                                     },
    {"hold",        0,   "unit",                "UNIT",                       "of take: the systemd unit that holds it",                   NULL,               AT(unit)          },
    {"hold",        0,   "cgroup",              "PATH",                       "of take: the control group that holds it",                  NULL,               AT(cgroup)        },
    {"hold",        0,   "reason",              "TEXT",                       "of end: why, for its owner and the log",                    NULL,               AT(reason)        },
    {"kubelet-dir", 0,   "kubelet-dir",         "DIR",                        "where the kubelet's files are (/var/lib/kubelet)",
     NULL,                                                                                                                                                     AT(kubelet_dir)   },
    {"state-dir",   0,   "state-dir",           "DIR",                        "davit's state (/var/lib/davit)",                            NULL,               AT(state_dir)     },
    {"api",         0,   "kubeconfig",          "FILE",                       "where the server is, and who asks",                         NULL,               AT(kubeconfig)    },
    {"api",         0,   "context",             "NAME",                       "in the kubeconfig (its current one)",                       NULL,               AT(context)       },
    {"api",         0,   "state-dir",           "DIR",                        "where davitd's admin.kubeconfig is (/var/lib/davit)",       NULL,
     AT(state_dir)                                                                                                                                                               },
};

static bool verb_has(const struct dv_cli_verb *verb, const struct dv_option_row *option)
{
    dv_str group = dv_str_from_c(option->group);
    dv_str rest = dv_str_from_c(verb->options);
    dv_str name;

    if (dv_str_eq(group, DV_STR("node")))
        return verb->peer == DV_PEER_DAEMON;
    if (dv_str_eq(group, DV_STR("api")))
        return verb->peer == DV_PEER_API;
    while (dv_str_split(&rest, ' ', &name))
        if (dv_str_eq(name, group))
            return true;
    return false;
}

const struct dv_option_row *dv_option_find_name(const struct dv_cli_verb *verb, dv_str name)
{
    for (size_t i = 0; i < DV_COUNT(options); i++)
        if (dv_str_eq(dv_str_from_c(options[i].name), name) && verb_has(verb, &options[i]))
            return &options[i];
    return NULL;
}

const struct dv_option_row *dv_option_find_letter(const struct dv_cli_verb *verb, char letter)
{
    for (size_t i = 0; i < DV_COUNT(options); i++)
        if (options[i].letter == letter && verb_has(verb, &options[i]))
            return &options[i];
    return NULL;
}

bool dv_cli_option_get(const struct dv_cli_verb *verb, size_t index, struct dv_cli_option *option)
{
    for (size_t i = 0; i < DV_COUNT(options); i++) {
        if (dv_option_find_name(verb, dv_str_from_c(options[i].name)) != &options[i] || index-- > 0)
            continue;
        *option = (struct dv_cli_option){options[i].letter, options[i].name, options[i].value,
                                         options[i].help};
        return true;
    }
    return false;
}
