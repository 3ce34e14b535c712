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

/* What a script can branch on. */
enum dv_exit {
    DV_EXIT_OK = 0,
    DV_EXIT_FAILED = 1,      /* the daemon or the system said no */
    DV_EXIT_USAGE = 2,       /* the command line is wrong */
    DV_EXIT_REFUSED = 3,     /* a pod was not admitted */
    DV_EXIT_UNREACHABLE = 4, /* no daemon answers */
};

enum dv_output {
    DV_OUTPUT_TABLE,
    DV_OUTPUT_JSON,
    DV_OUTPUT_YAML,
};

/* A verb's call: its words, and what all verbs understand. */
struct dv_cli {
    struct dv_arena *arena; /* for the life of the program */
    dv_str socket;
    enum dv_output output;
    bool has_headers;
    uint64_t timeout_ms;
    dv_str words[16]; /* that are no options */
    size_t n_words;
    /* Options of single verbs, where the verb says it has them. */
    dv_str file;
    dv_str space; /* the namespace */
    dv_str uid;
    dv_str container;
    dv_str kubelet_dir;
    dv_str state_dir;
    dv_str wait; /* seconds; empty: the daemon's */
    bool watches;
};

struct dv_verb {
    const char *name;
    const char *words;   /* in its usage line: "[RESOURCE]" */
    const char *summary; /* one line */
    const char *help;    /* more lines, for davit help VERB */
    const char *options; /* the letters or names of verb options that it has, blank separated */
    enum dv_exit (*run)(struct dv_cli *cli);
};

/* The verbs, in the order of the help. */
extern const struct dv_verb dv_verbs[];
extern const size_t dv_n_verbs;

/* ---- client.c: calls to the daemon ---- */

/* Makes the call and waits. The answer is in cli->arena; NULL: the error is printed, and *exit says
 * how to end. `each` (may be NULL) makes it a stream, and gets all answers; it returns false to end
 * it. */
void *dv_cli_call(struct dv_cli *cli, const char *method, const struct ProtobufCMessage *request,
                  const struct ProtobufCMessageDescriptor *response, enum dv_exit *exit);
enum dv_exit dv_cli_watch(struct dv_cli *cli, const char *method,
                          const struct ProtobufCMessage *request,
                          const struct ProtobufCMessageDescriptor *response,
                          void (*each)(struct dv_cli *cli, const void *message));

/* ---- print.c ---- */

/* Columns, each as wide as its widest cell; the last one is not padded. */
struct dv_table {
    struct dv_arena *arena;
    size_t n_columns;
    const char **cells; /* headers first */
    size_t n_cells;
    size_t size;
};
void dv_table_init(struct dv_table *table, struct dv_arena *arena, const char *const *headers,
                   size_t n_columns);
void dv_table_add(struct dv_table *table, const char *cell); /* empty: "-" */
void dv_table_print(const struct dv_table *table, bool has_headers);

/* The message in the output's format, with the field names of the .proto. */
void dv_cli_print_message(struct dv_cli *cli, const struct ProtobufCMessage *message);
/* "davit: " + the message on standard error. Returns DV_EXIT_FAILED. */
enum dv_exit dv_cli_complain(const char *fmt, ...) DV_PRINTF(1, 2);
enum dv_exit dv_cli_complain_usage(const char *verb, const char *fmt, ...) DV_PRINTF(2, 3);
/* "3m", "2h5m", "4d": since this time. */
const char *dv_cli_age(struct dv_cli *cli, int64_t since_ms);

/* ---- the verbs ---- */

enum dv_exit dv_cmd_devices(struct dv_cli *cli);
enum dv_exit dv_cmd_plugins(struct dv_cli *cli);
enum dv_exit dv_cmd_admit(struct dv_cli *cli);
enum dv_exit dv_cmd_release(struct dv_cli *cli);
enum dv_exit dv_cmd_options(struct dv_cli *cli);
enum dv_exit dv_cmd_status(struct dv_cli *cli);
enum dv_exit dv_cmd_state(struct dv_cli *cli);
enum dv_exit dv_cmd_version(struct dv_cli *cli);
enum dv_exit dv_cmd_help(struct dv_cli *cli);

#endif
