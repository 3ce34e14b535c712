/* decls.h - what an expression may name: variables, types, fields, functions.
 *
 * Functions are rows of tables, one table a library beside its code. A signature is written with a
 * letter a type, operators before what they apply to: ".LAA>i" is a member of lists of A that takes
 * an A and gives an int.
 *
 *     b bool   i int   u uint   d double   s string   y bytes   n null   T timestamp   D duration
 *     ? dyn    Lx list   Mkv map   Ox optional   tx type   A B parameters
 *     Q quantity   V version   W URL   I IP   C CIDR   F format
 *     a authorizer   p check of a path   g of a group   r of a resource   e decision */
#ifndef DV_CEL_DECLS_H
#define DV_CEL_DECLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "cel/value/type.h" /* IWYU pragma: export */

struct dv_arena;
struct dv_cel_run;
struct dv_cel_type;
struct dv_cel_unifier;
struct dv_cel_val;

/* How calls are charged: see estimate.c and cost.c. The rules from TRAVERSE on are the API's own;
 * they depend on the name of the function, whatever its overload. */
enum dv_cel_cost {
    DV_CEL_COST_ONE,
    DV_CEL_COST_EQ,     /* the smaller side is walked */
    DV_CEL_COST_LESS,   /* the smaller side is walked, of strings and bytes */
    DV_CEL_COST_AFFIX,  /* startsWith, endsWith */
    DV_CEL_COST_ENCODE, /* bytes of a string */
    DV_CEL_COST_DECODE, /* a string of bytes */
    DV_CEL_COST_QUOTE,  /* a string of bytes, which becomes longer */
    DV_CEL_COST_IN_LIST,
    DV_CEL_COST_CONCAT,
    DV_CEL_COST_ADD_LIST,
    DV_CEL_COST_CONTAINS,
    DV_CEL_COST_MATCHES,
    DV_CEL_COST_CHOOSE,
    DV_CEL_COST_FORMAT,
    DV_CEL_COST_INDEX_LIST,
    DV_CEL_COST_INDEX_MAP,
    DV_CEL_COST_SETS,
    DV_CEL_COST_RANGE,
    DV_CEL_COST_SLICE,
    DV_CEL_COST_FLATTEN,
    DV_CEL_COST_REVERSE,
    DV_CEL_COST_PAIRWISE, /* sort, distinct: each element with each */
    DV_CEL_COST_PAIRWISE_TEXT,
    DV_CEL_COST_SETS_TWICE,
    DV_CEL_COST_TRAVERSE, /* isSorted, sum, min, max, indexOf, lastIndexOf */
    DV_CEL_COST_URL,      /* walks its argument */
    DV_CEL_COST_PARSE,    /* walks its argument, which counts with another size */
    DV_CEL_COST_STRING,   /* walks its target into something no longer */
    DV_CEL_COST_REPLACE,
    DV_CEL_COST_SPLIT,
    DV_CEL_COST_JOIN,
    DV_CEL_COST_FIND,
    DV_CEL_COST_CANONICAL,
    DV_CEL_COST_CONTAINS_IP,
    DV_CEL_COST_CONTAINS_IP_STRING,
    DV_CEL_COST_CONTAINS_CIDR,
    DV_CEL_COST_CONTAINS_CIDR_STRING,
    DV_CEL_COST_VALIDATE,
    DV_CEL_COST_MEMBER, /* one */
    DV_CEL_COST_INCLUDES,
    DV_CEL_COST_AUTHORIZE, /* a question to the authorizer: two of them fit into one expression */
    DV_CEL_COST_SELECTOR,  /* walks its argument */
};

enum {
    DV_CEL_FN_SELF_CHECKED = 1, /* the function checks the kinds of its arguments itself */
    DV_CEL_FN_NOT_STRICT = 2,   /* the function takes errors as arguments */
    DV_CEL_FN_LISTS = 4,        /* hidden with the gate for list attributes */
    /* The reference has one function for all overloads, and evaluates both arguments also when the
     * first is an error. */
    DV_CEL_FN_ONE_FOR_ALL = 8,
    DV_CEL_FN_POLICY = 16, /* of the environment of policies alone */
};

struct dv_cel_overload {
    const char *function;
    const char *signature;
    void (*fn)(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out);
    uint8_t cost;
    uint8_t flags;
};

struct dv_cel_lib {
    const struct dv_cel_overload *rows;
    size_t n_rows;
};
extern const struct dv_cel_lib dv_cel_lib_operators, dv_cel_lib_order, dv_cel_lib_conversions,
    dv_cel_lib_times, dv_cel_lib_optionals, dv_cel_lib_strings, dv_cel_lib_lists,
    dv_cel_lib_aggregates, dv_cel_lib_regex, dv_cel_lib_urls, dv_cel_lib_numbers, dv_cel_lib_net,
    dv_cel_lib_formats, dv_cel_lib_authorizer;

struct dv_cel_decls {
    dv_str container; /* names are also looked for in it */
    const struct dv_cel_var *vars;
    size_t n_vars;
    bool hide_includes;
    bool hide_multiple;  /* device.allowMultipleAllocations */
    bool dyn_attributes; /* attributes are dyn rather than any */
    bool allow_mixed;    /* literals of more than one type */
    bool is_policy;      /* with the authorizer's functions, and without cel.bind() */
};

/* The next overload of `function` after `last` (NULL: the first); NULL at the end. */
const struct dv_cel_overload *dv_cel_overload_next(const struct dv_cel_decls *decls,
                                                   dv_str function,
                                                   const struct dv_cel_overload *last);
bool dv_cel_overload_is_member(const struct dv_cel_overload *overload);
size_t dv_cel_overload_n_params(const struct dv_cel_overload *overload);
/* The types of the parameters and of the result, with type variables of their own. */
#define DV_CEL_PARAMS_MAX 4u
const struct dv_cel_type *dv_cel_overload_types(const struct dv_cel_overload *overload,
                                                struct dv_cel_unifier *unifier,
                                                const struct dv_cel_type **params);
/* Whether the overload takes values of these kinds. Of lists and maps only the first entry is
 * looked at. */
/* Whether parameter i is of a simple type, and that type. */
bool dv_cel_overload_suits(const struct dv_cel_overload *overload, size_t i,
                           const struct dv_cel_type *type);
bool dv_cel_overload_takes(const struct dv_cel_overload *overload, const struct dv_cel_val *args,
                           size_t n_args);

/* The type of that name, as a value: "int", "google.protobuf.Timestamp". NULL: there is none. */
const struct dv_cel_type *dv_cel_type_named(dv_str name);
/* The type of a field of the device; NULL: it has none of that name. */
const struct dv_cel_type *dv_cel_field_type(const struct dv_cel_decls *decls, dv_str name,
                                            struct dv_arena *arena);

/* The names that `name` may mean in a container, the most specific first. Start with *i = 0; false
 * at the end. */
bool dv_cel_candidate(dv_str container, dv_str name, size_t *i, struct dv_arena *arena,
                      dv_str *candidate);

#endif
