/* type.h - static types, and which fits where. */
#ifndef DV_CEL_TYPE_H
#define DV_CEL_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_cel_var;

enum dv_cel_type_kind {
    DV_CEL_T_ERROR, /* something else was wrong before: fits everywhere */
    DV_CEL_T_DYN,
    DV_CEL_T_ANY,
    DV_CEL_T_NULL,
    DV_CEL_T_BOOL,
    DV_CEL_T_INT,
    DV_CEL_T_UINT,
    DV_CEL_T_DOUBLE,
    DV_CEL_T_STRING,
    DV_CEL_T_BYTES,
    DV_CEL_T_TIMESTAMP,
    DV_CEL_T_DURATION,
    DV_CEL_T_TYPE, /* of types; one parameter, or none */
    DV_CEL_T_LIST,
    DV_CEL_T_MAP,
    DV_CEL_T_OPAQUE,  /* by its name; optional_type has a parameter */
    DV_CEL_T_OBJECT,  /* a message, by its name */
    DV_CEL_T_WRAPPER, /* null, or its parameter */
    DV_CEL_T_VAR,     /* to be found out */
};

struct dv_cel_type {
    enum dv_cel_type_kind kind;
    uint32_t var;
    dv_str name;
    const struct dv_cel_type *params[2];
    uint8_t n_params;
    const struct dv_cel_var *fields; /* of an object whose fields are known one by one */
    size_t n_fields;
};

/* A name with its type: a variable of the environment, or a field of an object. */
struct dv_cel_var {
    dv_str name;
    const struct dv_cel_type *type;
};

extern const struct dv_cel_type dv_cel_t_error, dv_cel_t_dyn, dv_cel_t_any, dv_cel_t_null,
    dv_cel_t_bool, dv_cel_t_int, dv_cel_t_uint, dv_cel_t_double, dv_cel_t_string, dv_cel_t_bytes,
    dv_cel_t_timestamp, dv_cel_t_duration, dv_cel_t_type, dv_cel_t_list, dv_cel_t_map,
    dv_cel_t_optional, dv_cel_t_quantity, dv_cel_t_version, dv_cel_t_url, dv_cel_t_ip,
    dv_cel_t_cidr, dv_cel_t_format, dv_cel_t_device, dv_cel_t_authorizer, dv_cel_t_path_check,
    dv_cel_t_group_check, dv_cel_t_resource_check, dv_cel_t_decision;

const struct dv_cel_type *dv_cel_list_of(const struct dv_cel_type *element, struct dv_arena *arena);
const struct dv_cel_type *dv_cel_map_of(const struct dv_cel_type *key,
                                        const struct dv_cel_type *value, struct dv_arena *arena);
const struct dv_cel_type *dv_cel_optional_of(const struct dv_cel_type *value,
                                             struct dv_arena *arena);
const struct dv_cel_type *dv_cel_type_of(const struct dv_cel_type *type, struct dv_arena *arena);
const struct dv_cel_type *dv_cel_wrapper_of(const struct dv_cel_type *type, struct dv_arena *arena);

bool dv_cel_type_is_optional(const struct dv_cel_type *type);
bool dv_cel_type_eq(const struct dv_cel_type *a, const struct dv_cel_type *b);
/* Prints a type as the API writes that of a result: "map(string, google.protobuf.Any)". With
 * `short_names`, as error messages do: "map(string, any)". */
void dv_cel_type_print(const struct dv_cel_type *type, bool short_names, struct dv_buf *buf);

/* What is known so far of the variables. A binding that did not work out is undone with the trail:
 * see type.c. */
struct dv_cel_binding {
    uint32_t var;
    const struct dv_cel_type *type;
};
struct dv_cel_unifier {
    struct dv_arena *arena;
    const struct dv_cel_type **bound; /* by number of the variable; NULL: free */
    uint32_t n_vars;
    uint32_t room;
    struct dv_cel_binding *trail; /* what bindings were before, for taking them back */
    uint32_t n_trail;
    uint32_t trail_room;
    uint32_t n_visits; /* of types inside types: past DV_CEL_TYPE_VISITS_MAX all is refused */
};

/* This takes some milliseconds. A selector makes a few hundred visits; lists of lists of lists, 230
 * deep, 50,000. */
#define DV_CEL_TYPE_VISITS_MAX 500000u

const struct dv_cel_type *dv_cel_var_new(struct dv_cel_unifier *unifier);
/* Whether all of the first types fit where the second are expected; binds variables, or leaves them
 * as they were. */
bool dv_cel_assignable(struct dv_cel_unifier *unifier, const struct dv_cel_type *const *from,
                       const struct dv_cel_type *const *to, size_t n);
const struct dv_cel_type *dv_cel_most_general(const struct dv_cel_type *a,
                                              const struct dv_cel_type *b);
/* Replaces the variables in a type by what is known; free ones stay, or become dyn. */
const struct dv_cel_type *dv_cel_substitute(struct dv_cel_unifier *unifier,
                                            const struct dv_cel_type *type, bool free_is_dyn);

#endif
