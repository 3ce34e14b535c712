/* option_values.h - what the values of davitd's options may be: a function for each. */
#ifndef DV_DAEMON_OPTION_VALUES_H
#define DV_DAEMON_OPTION_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_arena;
struct dv_err;
struct dv_daemon_option;
struct dv_options;

/* The reference's age of an image that may be removed. */
#define DV_DAEMON_IMAGE_AGE_S 120u

/* What is being filled, and what the command line has set. */
struct dv_daemon_option_parse {
    struct dv_options *options;
    struct dv_arena *arena;
    uint64_t set_on_command_line; /* a bit for each row of the table */
};

/* Checks the value and sets it. DV_INVALID_ARGUMENT names the option and what it may be. */
typedef bool dv_daemon_set_fn(struct dv_daemon_option_parse *parse,
                              const struct dv_daemon_option *option, dv_str value,
                              struct dv_err *err);

/* A row of the table of options. */
struct dv_daemon_option {
    const char *name;  /* without "--" */
    const char *value; /* in the help: "DIR"; NULL: a switch without a value */
    dv_daemon_set_fn *set;
    size_t at; /* of a text, a switch or a choice: where it is in struct dv_options */
    const char *help;
    const char *choices; /* separated by '|'; NULL: it is not one of a few words */
};

/* Each sets the member of struct dv_options that the row names: to any text, an absolute path, true
 * or false. */
dv_daemon_set_fn dv_daemon_set_text;
dv_daemon_set_fn dv_daemon_set_dir;
dv_daemon_set_fn dv_daemon_set_switch;
/* "ADDRESS:PORT", or one of the choices. */
dv_daemon_set_fn dv_daemon_set_address;
/* What one option alone has. */
dv_daemon_set_fn dv_daemon_set_node_name;
dv_daemon_set_fn dv_daemon_set_policy;
dv_daemon_set_fn dv_daemon_set_scope;
dv_daemon_set_fn dv_daemon_set_ledger;
dv_daemon_set_fn dv_daemon_set_cri;
dv_daemon_set_fn dv_daemon_set_cgroup_root;
dv_daemon_set_fn dv_daemon_set_image_gc;
dv_daemon_set_fn dv_daemon_set_roles;
dv_daemon_set_fn dv_daemon_set_log_format;
dv_daemon_set_fn dv_daemon_set_wait;
dv_daemon_set_fn dv_daemon_add_offer;
dv_daemon_set_fn dv_daemon_set_record_file_size;
dv_daemon_set_fn dv_daemon_set_record_files;
dv_daemon_set_fn dv_daemon_set_record_blank;
dv_daemon_set_fn dv_daemon_set_log_level;

#endif
