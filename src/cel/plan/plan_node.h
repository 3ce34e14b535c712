/* plan_node.h - a planned expression: what is evaluated.
 *
 * Names are resolved: a variable is a number, a function is a pointer, a constant key is hashed. A
 * chain such as device.attributes["d"].x is one node with qualifiers. What is constant has been
 * computed. */
#ifndef DV_CEL_PLAN_NODE_H
#define DV_CEL_PLAN_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "cel/value/cel_value.h"

struct dv_arena;
struct dv_cel_ast;
struct dv_cel_decls;
struct dv_cel_issues;
struct dv_cel_map;
struct dv_cel_overload;
struct dv_cel_regex;
struct dv_cel_run;

enum dv_cel_node_kind {
    DV_CEL_NODE_CONST,
    DV_CEL_NODE_ATTR, /* a variable or another value, and qualifiers on it */
    DV_CEL_NODE_CHOOSE,
    DV_CEL_NODE_CALL,
    DV_CEL_NODE_AND,
    DV_CEL_NODE_OR,
    DV_CEL_NODE_EQ,
    DV_CEL_NODE_NE,
    DV_CEL_NODE_LIST,
    DV_CEL_NODE_MAP,
    DV_CEL_NODE_STRUCT,
    DV_CEL_NODE_FOLD,
    DV_CEL_NODE_IN_SET, /* in a constant list */
    DV_CEL_NODE_OPT_OR,
    DV_CEL_NODE_OPT_OR_VALUE,
};

/* What an attribute begins with. */
enum dv_cel_root {
    DV_CEL_ROOT_VAR,
    DV_CEL_ROOT_SLOT,
    DV_CEL_ROOT_NODE, /* args[0] */
};

struct dv_cel_qualifier {
    struct dv_cel_val key;
    uint32_t hash;                  /* of a string key */
    bool is_optional;               /* .?x, [?x] */
    const struct dv_cel_node *node; /* the key is computed; NULL: it is constant */
};

/* Comprehensions that end as soon as one round decides. */
enum dv_cel_search {
    DV_CEL_SEARCH_NONE,
    DV_CEL_SEARCH_EXISTS, /* accu || condition */
    DV_CEL_SEARCH_ALL,    /* accu && condition */
};

struct dv_cel_node_fold {
    const struct dv_cel_node *range;
    const struct dv_cel_node *init;
    const struct dv_cel_node *cond;
    const struct dv_cel_node *step;
    const struct dv_cel_node *result;
    uint32_t iter; /* slots */
    uint32_t iter2;
    uint32_t accu;
    bool has_iter2;
    uint8_t search; /* enum dv_cel_search */
};

struct dv_cel_node {
    uint8_t kind;
    uint8_t root;
    uint8_t cost; /* enum dv_cel_cost of a call */
    bool is_test; /* the last qualifier is only looked for */
    bool is_strict;
    bool is_variadic; /* the first error ends it before the arguments behind are looked at */
    uint32_t index;   /* of a variable or slot */
    uint32_t n_args;
    uint32_t n_qualifiers;
    const struct dv_cel_node *const *args;
    const struct dv_cel_qualifier *qualifiers;
    void (*fn)(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out);
    const struct dv_cel_overload *const *overloads; /* to choose from, when there is no fn */
    uint32_t n_overloads;
    dv_str name; /* of a function */
    struct dv_cel_val value;
    const bool *optionals;
    const struct dv_cel_regex *regex;
    const struct dv_cel_map *set;
    const dv_str *names; /* of a struct's fields */
    const struct dv_cel_node_fold *fold;
    const struct dv_cel_ast *ast;
};

/* What can be evaluated in a shorter way, in plan_shapes.c: a set of the elements, NULL when one
 * cannot be a key; and whether the comprehension is one of exists() or all(). */
const struct dv_cel_map *dv_cel_set_of(const struct dv_cel_list *list, struct dv_arena *arena);
enum dv_cel_search dv_cel_search_of(const struct dv_cel_node_fold *fold);

/* Plans an expression that has been checked, or that shall not be. NULL, with issues: a constant
 * part fails. *n_slots is the number of slots that evaluating needs. */
const struct dv_cel_node *dv_cel_plan(struct dv_cel_ast *ast, const struct dv_cel_decls *decls,
                                      struct dv_arena *arena, struct dv_cel_issues *issues,
                                      uint32_t *n_slots);

#endif
