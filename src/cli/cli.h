/* cli.h - davit's command line: one file a verb, all in one table, over what they share. */
#ifndef DV_CLI_H
#define DV_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;
struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_json;
struct dv_json_style;

/* The exit codes, on which a script can branch. */
enum dv_exit {
    DV_EXIT_OK = 0,
    DV_EXIT_FAILED = 1,      /* the daemon or the system said no */
    DV_EXIT_USAGE = 2,       /* the command line is wrong */
    DV_EXIT_REFUSED = 3,     /* a pod was not admitted, a claim cannot be allocated */
    DV_EXIT_UNREACHABLE = 4, /* no daemon answers */
};

enum dv_output {
    DV_OUTPUT_TABLE,
    DV_OUTPUT_WIDE, /* a table with all its columns */
    DV_OUTPUT_JSON,
    DV_OUTPUT_YAML,
    DV_OUTPUT_NAME,     /* "pod/a" */
    DV_OUTPUT_JSONPATH, /* what a template chooses */
};

/* Devices of one class that a lease is to have: --class or --gpu with the options behind it. */
struct dv_cli_wanted {
    dv_str class;   /* empty: none was named yet */
    bool is_gpu;    /* by --gpu: whichever class or resource that is here */
    uint32_t count; /* 0: 1 */
    dv_str *where;
    size_t n_where;
    dv_str *same;
    size_t n_same;
};

/* A verb's call: its words, and what all verbs understand. */
struct dv_cli {
    struct dv_arena *arena; /* for the life of the program */
    dv_str socket;
    enum dv_output output;
    dv_str template; /* of DV_OUTPUT_JSONPATH */
    bool has_headers;
    uint64_t timeout_ms;
    const dv_str *words; /* that are no options */
    size_t n_words;
    void *verb_ctx; /* the verb's own, for its callbacks */
    /* Says an error of the daemon in the verb's own words; NULL: as it came. */
    const char *(*reword)(struct dv_cli *cli, const char *message);
    /* Options of single verbs, where the verb says it has them. */
    dv_str file;   /* the last one */
    dv_str *files; /* all, in their order */
    size_t n_files;
    dv_str namespace;
    dv_str uid;
    dv_str container;
    dv_str pid;       /* a number; empty: none */
    dv_str exit_code; /* a number; empty: none */
    dv_str message;
    dv_str kubelet_dir;
    dv_str state_dir;
    dv_str wait; /* seconds; empty: the daemon's */
    dv_str reason;
    dv_str shape; /* of pods that are simulated */
    dv_str dir;
    size_t n_nodes; /* 0: as many as it thinks good; so the others */
    size_t n_devices;
    size_t n_pods;
    size_t n_clients;
    bool watches;
    bool follows; /* a log, until its container has ended */
    bool is_previous;
    bool has_timestamps;
    bool is_all_containers;
    bool has_stdin; /* ours is that of the process */
    bool has_tty;
    dv_str tail; /* a number; empty: all lines */
    dv_str limit_bytes;
    dv_str since_time;
    uint64_t since_ms; /* 0: from the beginning */
    dv_str kubeconfig;
    dv_str context;
    dv_str node;
    dv_str driver;
    dv_str claim;         /* in a recording: its UID or name */
    dv_str call;          /* in a recording: a method */
    dv_str status;        /* in a recording: of a call */
    dv_str until_time;    /* of a recording */
    dv_str as;            /* whose part is played */
    dv_str driver_socket; /* a driver's own */
    dv_str *pools;        /* that a driver's token is for, besides its node's */
    size_t n_pools;
    dv_str *also; /* what a driver's token may read besides */
    size_t n_also;
    bool is_all_nodes;     /* a driver of devices without a node */
    dv_str admin;          /* a name */
    dv_str kubeconfig_out; /* a file to write */
    uint64_t ttl_ms;       /* 0: for ever */
    dv_str cdi_dirs;       /* with ':' between; the later ones win */
    dv_str bundle;         /* a folder with a config.json */
    dv_str pod;            /* whose container's options go into it; empty: none */
    dv_str goal;           /* of wait */
    dv_str labels;         /* a selector */
    dv_str fields;         /* a selector */
    bool is_everywhere;    /* in all namespaces */
    bool is_all;           /* all objects of the kind; all there is to say */
    bool is_all_pending;   /* about all pods that wait */
    bool is_plugin;        /* kubectl runs it: the server is that of kubectl */
    bool is_forced;
    bool is_dry_run;
    bool is_once;       /* one frame, not a live one */
    bool opens_nothing; /* only prints a link */
    bool ignores_absent;
    bool shows_managed_fields;
    bool skips_waiting;
    bool has_grace;
    uint32_t grace_s; /* for a pod to end */
    uint64_t gone_ms; /* for deleted objects to be gone; 0: the default */
    /* The options of `davit verify`. */
    dv_str exec;
    dv_str attach;
    dv_str setup;
    dv_str teardown;
    dv_str claim_file;
    dv_str bad_claim_file;
    dv_str release;
    dv_str tap;
    dv_str junit;
    dv_str json;
    dv_str *hooks; /* NAME=COMMAND */
    size_t n_hooks;
    dv_str *only;
    size_t n_only;
    dv_str *skip;
    size_t n_skip;
    dv_str *required;
    size_t n_required;
    size_t n_jobs;
    uint64_t wait_ms; /* 0: the default, and so the next */
    uint64_t verify_grace_ms;
    uint64_t recover_ms;
    uint64_t case_ms;
    bool lists;
    /* Leases. */
    size_t n_own_words; /* those before "--"; all of them when there was none */
    bool has_command;   /* there was a "--" */
    size_t n_args;      /* of the command line: the room of the lists below */
    struct dv_cli_wanted *wanted;
    size_t n_wanted;
    bool has_wait;
    uint64_t turn_ms; /* to wait for the turn; 0: not at all */
    uint64_t max_ms;  /* 0: as long as may be */
    bool has_priority;
    int32_t priority;
    dv_str engine; /* empty: what the command looks like */
    bool is_isolated;
    bool is_printed; /* show the command, do not run it */
    bool is_quiet;
    dv_str env_file;
    dv_str unit;
    dv_str cgroup;
};

/* The server that a verb talks to. */
enum dv_cli_peer {
    DV_PEER_DAEMON, /* davitd, over its socket */
    DV_PEER_API,    /* the API server */
    DV_PEER_NONE,   /* nobody: it works on files */
};

struct dv_cli_verb {
    const char *name;
    const char *words;   /* in its usage line: "[RESOURCE]" */
    const char *summary; /* one line */
    const char *help;    /* more lines, for davit help VERB */
    const char *options; /* its groups of options (args.c), blank separated */
    enum dv_exit (*run)(struct dv_cli *cli);
    enum dv_cli_peer peer;
};

/* The verbs, in the order of the help: verbs.c. */
extern const struct dv_cli_verb dv_verbs[];
extern const size_t dv_n_verbs;

/* ---- cmd_help.c ---- */

/* Finds the verb among the words of a command line, behind options that it has: its place; 1: none
 * is there, or it is the first word. */
int dv_cli_verb_place(const struct dv_cli *cli, int argc, char *const *argv);
/* Finds a verb. NULL: there is none, which is printed with the verb that was perhaps meant. */
const struct dv_cli_verb *dv_cli_verb_find(const char *name);
/* Prints all about one verb on standard output. */
void dv_cli_print_help(const struct dv_cli_verb *verb);

/* ---- args.c: the command line ---- */

/* Reads the words after the verb into `cli`, whose defaults stay where nothing is said.
 * *wants_help: -h was there. DV_INVALID_ARGUMENT says what is wrong, for dv_cli_complain_usage. */
DV_CHECKED bool dv_cli_parse(struct dv_cli *cli, const struct dv_cli_verb *verb, int n_args,
                             char *const *args, bool *wants_help, struct dv_err *err);
/* Prints one line for each option; NULL: those that most verbs have. */
void dv_cli_print_options(const struct dv_cli_verb *verb, struct dv_buf *buf);

/* An option, as its verb has it. */
struct dv_cli_option {
    char letter; /* 0: none */
    const char *name;
    const char *value; /* NULL: a switch; "[=...]": may be left out */
    const char *help;
};
/* The verb's options by number, in the order of the help. False: there are no more. */
bool dv_cli_option_get(const struct dv_cli_verb *verb, size_t index, struct dv_cli_option *option);

/* ---- cli_client.c: calls to the daemon ---- */

/* Makes the call and waits. The answer is in cli->arena; NULL: the error is printed, and *exit says
 * how to end. */
void *dv_cli_call(struct dv_cli *cli, const char *method, const struct ProtobufCMessage *request,
                  const struct ProtobufCMessageDescriptor *response, enum dv_exit *exit);
/* Like dv_cli_call, but says nothing when it fails: for what is only good to know. */
void *dv_cli_ask(struct dv_cli *cli, const char *method, const struct ProtobufCMessage *request,
                 const struct ProtobufCMessageDescriptor *response);
/* Makes a call whose answer is a stream: `each` gets every message, until the daemon ends it. */
enum dv_exit dv_cli_watch(struct dv_cli *cli, const char *method,
                          const struct ProtobufCMessage *request,
                          const struct ProtobufCMessageDescriptor *response,
                          void (*each)(struct dv_cli *cli, const void *message));

/* Says that nobody answers on the socket, or that it is not for this user. Returns
 * DV_EXIT_UNREACHABLE. */
enum dv_exit dv_cli_complain_unreachable(const struct dv_cli *cli, const char *reason);

/* ---- cli_print.c ---- */

/* Columns, each as wide as its widest cell; the last one is not padded. */
struct dv_table {
    struct dv_arena *arena;
    size_t n_columns;
    const char **cells; /* headers first */
    size_t n_cells;
    size_t size;
    size_t *widths; /* of all that was printed so far */
    /* For a table of dv_cli_table_init: which columns are left out, and how many are given. */
    bool *is_hidden;
    size_t n_given;
    size_t at; /* the column that comes next */
};
void dv_table_init(struct dv_table *table, struct dv_arena *arena, const char *const *headers,
                   size_t n_columns);
void dv_table_add(struct dv_table *table, const char *cell); /* empty: "-"; else dv_cli_plain */
void dv_table_print(struct dv_table *table, bool has_headers);
void dv_table_print_to(struct dv_table *table, bool has_headers, unsigned indent,
                       struct dv_buf *buf);
/* Like dv_table_init, for lists that people see: a column whose header begins with '+' is there
 * only with -o wide, so that the others fit into a hundred columns as a rule. */
void dv_cli_table_init(const struct dv_cli *cli, struct dv_table *table, const char *const *headers,
                       size_t n_columns);
/* Prints the table; with -o name its first n_names columns, as A/B. When it has no rows, it prints
 * `empty` on standard error: scripts read nothing then, and people see why. */
void dv_cli_print_table(const struct dv_cli *cli, struct dv_table *table, size_t n_names,
                        const char *empty);
/* Whether the output is made of a table: not data. */
bool dv_cli_is_table(const struct dv_cli *cli);
/* Drops the rows; columns stay at least as wide as they were printed. */
void dv_table_restart(struct dv_table *table);

/* A copy on one line: ends of lines and tabs are blanks, what else would steer a terminal or cannot
 * be seen is escaped (base/visible.h). */
const char *dv_cli_plain(dv_str text, struct dv_arena *arena);

/* The document on standard output, as JSON or YAML. */
void dv_cli_print_json(const struct dv_cli *cli, const struct dv_json *node,
                       const struct dv_json_style *style);

/* The message in the output's format, with the field names of the .proto. */
void dv_cli_print_message(struct dv_cli *cli, const struct ProtobufCMessage *message);
/* "davit: " + the message on standard error. Returns DV_EXIT_FAILED. */
enum dv_exit dv_cli_complain(const char *fmt, ...) DV_PRINTF(1, 2);
enum dv_exit dv_cli_complain_usage(const char *verb, const char *fmt, ...) DV_PRINTF(2, 3);
/* "3m", "2h5m", "4d": since this time. */
const char *dv_cli_age(struct dv_cli *cli, int64_t since_ms);
const char *dv_cli_age_at(int64_t since_ms, int64_t now_ms, struct dv_arena *arena);
/* "in 3.5 s", "now": at this time; empty for 0. */
const char *dv_cli_until(struct dv_cli *cli, int64_t at_ms);

/* ---- colour.c ---- */

/* Whether the descriptor's reader sees colours: a terminal that has them, of someone who has not
 * set NO_COLOR. */
bool dv_cli_has_colours(int fd);
/* The decision of dv_cli_has_colours, without its environment. Unset variables are NULL. */
bool dv_cli_may_colour(bool is_terminal, const char *no_color, const char *term);
/* The escape code that a terminal gets before a cell with this text; "" for most. */
const char *dv_cli_colour_of(const char *cell);
#define DV_COLOUR_HEADER "\033[1m"
#define DV_COLOUR_TROUBLE "\033[31m"
#define DV_COLOUR_END "\033[0m"

/* ---- complete.c ---- */

/* Prints what may stand at the end of a command line, a line each with its meaning after a tab;
 * words[0] is the verb, the last word is begun or empty. Or one line for the shell: ":files",
 * ":folders", or ":names" and how to call davit for "KIND/NAME" lines. */
void dv_cli_complete(const dv_str *words, size_t n_words, struct dv_arena *arena,
                     struct dv_buf *buf);

/* ---- the verbs ---- */

enum dv_exit dv_cmd_get(struct dv_cli *cli);
enum dv_exit dv_cmd_watch(struct dv_cli *cli);
enum dv_exit dv_cmd_wait(struct dv_cli *cli);
enum dv_exit dv_cmd_describe(struct dv_cli *cli);
enum dv_exit dv_cmd_apply(struct dv_cli *cli);
enum dv_exit dv_cmd_delete(struct dv_cli *cli);
enum dv_exit dv_cmd_logs(struct dv_cli *cli);
enum dv_exit dv_cmd_exec(struct dv_cli *cli);
enum dv_exit dv_cmd_attach(struct dv_cli *cli);
enum dv_exit dv_cmd_port_forward(struct dv_cli *cli);
enum dv_exit dv_cmd_explain(struct dv_cli *cli);
enum dv_exit dv_cmd_token(struct dv_cli *cli);
enum dv_exit dv_cmd_cdi(struct dv_cli *cli);
enum dv_exit dv_cmd_devices(struct dv_cli *cli);
enum dv_exit dv_cmd_offers(struct dv_cli *cli);
enum dv_exit dv_cmd_plugins(struct dv_cli *cli);
enum dv_exit dv_cmd_record(struct dv_cli *cli);
enum dv_exit dv_cmd_admit(struct dv_cli *cli);
enum dv_exit dv_cmd_release(struct dv_cli *cli);
enum dv_exit dv_cmd_options(struct dv_cli *cli);
enum dv_exit dv_cmd_container(struct dv_cli *cli);
enum dv_exit dv_cmd_claim(struct dv_cli *cli);
enum dv_exit dv_cmd_status(struct dv_cli *cli);
enum dv_exit dv_cmd_top(struct dv_cli *cli);
enum dv_exit dv_cmd_ui(struct dv_cli *cli);
enum dv_exit dv_cmd_state(struct dv_cli *cli);
enum dv_exit dv_cmd_simulate(struct dv_cli *cli);
enum dv_exit dv_cmd_verify(struct dv_cli *cli);
enum dv_exit dv_cmd_version(struct dv_cli *cli);
enum dv_exit dv_cmd_completion(struct dv_cli *cli);
enum dv_exit dv_cmd_help(struct dv_cli *cli);
enum dv_exit dv_cmd_run(struct dv_cli *cli);
enum dv_exit dv_cmd_lease(struct dv_cli *cli);
enum dv_exit dv_cmd_leases(struct dv_cli *cli);

#endif
