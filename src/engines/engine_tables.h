/* engine_tables.h - what is known of the words of engines, and of programs that run others. */
#ifndef DV_ENGINE_TABLES_H
#define DV_ENGINE_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "engines/engines.h"

/* Options of a program, as getopt or Go's flag packages read them. */
struct dv_engine_syntax {
    const char *letters; /* of one letter: those without a value, or (are_valued) those with one */
    const char *names;   /* the same for long ones, blank separated, without dashes */
    bool are_valued; /* the lists are of those that take a value; else of those that take none */
};

/* An option that was read. */
struct dv_engine_option {
    size_t at;      /* its word */
    size_t n_words; /* 2: its value is a word of its own */
    dv_str name;    /* "detach", "d" */
    dv_str value;
    bool has_value;
};

/* Reads the word at *at. Letters that stand together ("-itd") come one by one: `letter` is the
 * place in the word, 0 at first. False: it is no option; "--" is taken, and no option either. */
bool dv_engine_read_option(const dv_str *words, size_t n_words,
                           const struct dv_engine_syntax *syntax, size_t *at, size_t *letter,
                           struct dv_engine_option *option);

/* A program that runs the rest of its words. */
struct dv_engine_wrapper {
    const char *name;
    struct dv_engine_syntax syntax;
    size_t n_operands; /* words of its own before the command: timeout's duration */
    bool has_assignments;
    bool loses_env;         /* always, but for the option that keeps it */
    const char *clears_env; /* options that clear it: "i ignore-environment"; NULL: none */
    const char *keeps_env;  /* options that keep it; NULL: none */
    const char *stops;      /* options after which we do not understand the rest; NULL: none */
};
const struct dv_engine_wrapper *dv_engine_wrapper_find(dv_str program);

/* An engine's own words. */
struct dv_engine_grammar {
    enum dv_engine_kind kind;
    const char *programs; /* blank separated */
    struct dv_engine_syntax globals;
    const char *groups; /* words that may stand before a verb: "container" */
    const char *verbs;  /* that start something; NULL: the program does, without a verb */
    const char *makers; /* that make something which is started later */
    struct dv_engine_syntax options; /* of these verbs */
};
const struct dv_engine_grammar *dv_engine_grammar_find(dv_str program);
const struct dv_engine_grammar *
dv_engine_grammar(enum dv_engine_kind kind); /* NULL: of a process */

/* Whether `word` is one of `list`, which is blank separated or NULL. */
bool dv_engine_is_listed(const char *list, dv_str word);

#endif
