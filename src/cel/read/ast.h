/* ast.h - expressions as they were parsed, and as macros, checker and planner see them.
 *
 * The parser makes a tree without macros expanded: that one is printed and compared. Expansion
 * makes a second tree, which the checker fills with types and overloads. */
#ifndef DV_CEL_AST_H
#define DV_CEL_AST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "base/vec.h"
#include "cel/value/cel_value.h"

struct dv_arena;
struct dv_buf;
struct dv_cel_node;
struct dv_cel_overload;
struct dv_cel_type;

enum dv_cel_ast_kind {
    DV_CEL_AST_LITERAL,
    DV_CEL_AST_IDENT,
    DV_CEL_AST_SELECT, /* target.name; with is_test, whether it is there */
    DV_CEL_AST_CALL,   /* name(args) or target.name(args); operators have names such as _+_ */
    DV_CEL_AST_LIST,
    DV_CEL_AST_MAP,    /* args: key, value, key, value */
    DV_CEL_AST_STRUCT, /* name{names[i]: args[i]} */
    DV_CEL_AST_FOLD,   /* a comprehension */
};

struct dv_cel_ast;

/* accu = init; for iter (and iter2) in range while cond: accu = step; then result. */
struct dv_cel_fold {
    dv_str iter;
    dv_str iter2; /* empty: one variable */
    dv_str accu;
    struct dv_cel_ast *range;
    struct dv_cel_ast *init;
    struct dv_cel_ast *cond;
    struct dv_cel_ast *step;
    struct dv_cel_ast *result;
};

/* The estimator's bounds for the size of a value. */
struct dv_cel_size {
    uint64_t min;
    uint64_t max;
};
struct dv_cel_entry_size {
    bool is_map;
    struct dv_cel_size key;
    struct dv_cel_size value;
};
/* device, attributes, @values, ...: from the last to the first. */
struct dv_cel_path {
    const struct dv_cel_path *up;
    dv_str name;
};

struct dv_cel_ast {
    enum dv_cel_ast_kind kind;
    uint32_t at; /* byte offset of what errors point to */
    bool is_member;
    bool is_test;
    bool is_absolute; /* .name */
    dv_str name;
    struct dv_cel_val literal;
    struct dv_cel_ast *target;
    struct dv_cel_ast **args;
    uint32_t n_args;
    const bool *optionals; /* for each element or entry; NULL: none is optional */
    const dv_str *names;   /* of a struct's fields */
    struct dv_cel_fold *fold;
    const struct dv_cel_ast *source; /* what it was before macros were expanded */

    /* Set by the checker. */
    const struct dv_cel_type *type;
    bool is_finished;
    const struct dv_cel_overload **overloads; /* of a call */
    uint32_t n_overloads;
    dv_str resolved; /* the full name of an identifier or function; empty: as written */

    /* Set by the estimator. */
    const struct dv_cel_size *size;
    const struct dv_cel_entry_size *entry_size;
    const struct dv_cel_path *path;
    const struct dv_cel_size *cost;

    const struct dv_cel_node *node; /* the planner's */
};

/* A problem; they are in the order in which they were found. */
struct dv_cel_issue {
    uint32_t at; /* UINT32_MAX: nowhere in particular */
    dv_str text;
};
struct dv_cel_issues {
    dv_str source;
    struct dv_arena *arena;
    DV_VEC(struct dv_cel_issue) list;
};

/* Problems beyond this number are not reported. */
#define DV_CEL_ISSUES_MAX 100u

void dv_cel_issue_add(struct dv_cel_issues *issues, uint32_t at, const char *fmt, ...)
    DV_PRINTF(3, 4);
/* "ERROR: <input>:1:7: text" and the line with a caret, for each. */
void dv_cel_issues_print(const struct dv_cel_issues *issues, struct dv_buf *buf);

/* Parses an expression. NULL, with issues: it is none. */
struct dv_cel_ast *dv_cel_parse(dv_str text, struct dv_arena *arena, struct dv_cel_issues *issues);
/* Expands all macros of the tree; `skip_bind`: cel.bind() is none. */
struct dv_cel_ast *dv_cel_expand(const struct dv_cel_ast *ast, struct dv_arena *arena,
                                 struct dv_cel_issues *issues, bool skip_bind);

void dv_cel_ast_print(const struct dv_cel_ast *ast, struct dv_buf *buf);

#endif
