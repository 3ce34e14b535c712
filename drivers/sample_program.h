/* sample_program.h - what the sample drivers have in common as programs: a command line, a control
 * socket, complaints. Of davit only the public headers are used: this is how drivers of others
 * look. */
#ifndef SAMPLE_PROGRAM_H
#define SAMPLE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "davit/driver.h"

#define SAMPLE_EXIT_START 1
#define SAMPLE_EXIT_USAGE 2

/* ---- small things ---- */

/* An error on stderr, with the program's name before it. */
void sample_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line on stdout, at once. */
void sample_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *sample_alloc(size_t n); /* zeroed; aborts when there is none */
char *sample_copy(const char *text);
char *sample_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A number that is the whole text, up to max. */
bool sample_number_parse(const char *text, unsigned long max, unsigned long *number);
/* Its place among the words; -1: none of them. */
int sample_choose(const char *text, const char *const *words, size_t n);

/* ---- the command line ---- */

struct sample_option {
    const char *name; /* "--numa" */
    bool has_value;
    bool (*set)(void *options, const char *value); /* NULL: it is a text */
    size_t at;                                     /* where that goes in the options */
};

struct sample_usage {
    const char *name; /* of the program */
    const char *help;
    const struct sample_option *table;
    size_t n_table;
};

/* Returns -1 to go on, or the exit code: after --help and --version, and on mistakes. */
int sample_usage_parse(const struct sample_usage *usage, int argc, char **argv, void *options);

/* For --log. */
bool sample_log_parse(const char *text, enum davit_log_level *level);

/* ---- faults: mistakes that drivers make, for proving that `davit verify` finds them ---- */

/* Whether the fault that was asked for (NULL: none) is this one. */
bool sample_is_fault(const char *fault, const char *name);

/* ---- the control socket: commands over a Unix socket, one a line, each answered with one ---- */

struct sample_control;

struct sample_command {
    const char *name;
    int n_min; /* words, the command among them */
    int n_max;
    /* Those left out are NULL. Answers with one line. */
    void (*run)(void *ctx, FILE *out, char **words);
    bool has_sentence; /* the last of n_max words is the rest of the line */
};

/* `commands` are borrowed for its life. */
struct sample_control *sample_control_open(struct davit_driver *driver, const char *path,
                                           const struct sample_command *commands, size_t n_commands,
                                           void *ctx, struct davit_error *error);
void sample_control_close(struct sample_control *control); /* NULL is fine */
/* The life of a driver whose parts are open, or are not, for that error: runs it, or complains, and
 * closes the control socket and the driver. Returns the exit code. */
int sample_program_run(struct davit_driver *driver, struct sample_control *control, bool is_good,
                       const struct davit_error *error);
/* An answer. */
void sample_answer(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Stops the driver, after the answers of now have been sent. */
void sample_control_quit(struct sample_control *control);

#endif
