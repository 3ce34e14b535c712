/* cli_kinds.h - the words of a command line that mean kinds and objects. */
#ifndef DV_CLI_KINDS_H
#define DV_CLI_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;
struct dv_kind;

/* Finds a kind by plural, singular, short name, kind name, or our own short words, in any case of
 * letters; also with the API group: "resourceclaims.resource.k8s.io". NULL: there is none. */
const struct dv_kind *dv_cli_kind_find(dv_str word);
/* The word for a kind: our own, else its plural. */
dv_str dv_cli_kind_word(const struct dv_kind *kind);
/* The name that was perhaps meant; empty: none is near. */
dv_str dv_cli_kind_suggest(dv_str word);
/* DV_NOT_FOUND with the suggestion. */
const struct dv_kind *dv_cli_kind_require(dv_str word, struct dv_err *err);

/* Reads "POD" or "pod/POD". False: it is neither. */
bool dv_cli_pod_name(dv_str word, dv_str *name);

/* A target of a command: an object, or with an empty name all of a kind. */
struct dv_cli_target {
    const struct dv_kind *kind;
    dv_str name;
};

struct dv_cli_targets {
    struct dv_cli_target *v;
    size_t n;
    size_t size;
    bool has_names;    /* all of them, or none */
    bool are_of_kinds; /* more than one kind was asked for */
};

/* "KIND[,KIND...] [NAME...]" or "KIND/NAME...". `all` stands for some kinds.
 * DV_INVALID_ARGUMENT, DV_NOT_FOUND: what is wrong with the words. */
DV_CHECKED bool dv_cli_targets_parse(const dv_str *words, size_t n_words, struct dv_arena *arena,
                                     struct dv_cli_targets *targets, struct dv_err *err);

#endif
