/* validate.h - what the API refuses in an object: field by field, as the reference reports it. */
#ifndef DV_RESOURCE_VALIDATE_H
#define DV_RESOURCE_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct dv_api_delete_options;
struct dv_api_object_meta;
struct dv_api_version;
struct dv_arena;
struct dv_kind;

enum dv_problem_type {
    DV_PROBLEM_REQUIRED,      /* FieldValueRequired */
    DV_PROBLEM_INVALID,       /* FieldValueInvalid */
    DV_PROBLEM_NOT_SUPPORTED, /* FieldValueNotSupported */
    DV_PROBLEM_DUPLICATE,     /* FieldValueDuplicate */
    DV_PROBLEM_FORBIDDEN,     /* FieldValueForbidden */
    DV_PROBLEM_TOO_LONG,      /* FieldValueTooLong */
    DV_PROBLEM_TOO_MANY,      /* FieldValueTooMany */
    DV_PROBLEM_NOT_FOUND,     /* FieldValueNotFound */
};

struct dv_problem {
    enum dv_problem_type type;
    dv_str field;  /* "spec.devices[0].name" */
    dv_str detail; /* what stands behind the path in the reference's message:
                      `Invalid value: "X": must be ...` */
};

/* The most problems of an answer: more of them help nobody, and what comes after them is not looked
 * at. Some problems show a whole list, once for each of its items that is wrong: so their texts are
 * limited, too. */
#define DV_PROBLEMS_MAX 2048u
#define DV_PROBLEMS_BYTES_MAX (1024u * 1024u)

/* Zeroed but for the arena to begin with. */
struct dv_problems {
    struct dv_problem *v; /* in `arena` */
    size_t n;
    size_t size;
    size_t n_bytes; /* of all their texts */
    struct dv_arena *arena;
};

enum dv_operation {
    DV_CREATE,
    DV_UPDATE,        /* of the object but for its status */
    DV_UPDATE_STATUS, /* of the status subresource */
};

const char *dv_problem_reason(enum dv_problem_type type); /* "FieldValueRequired" */

/* What is checked. Values are decoded and have their defaults. */
struct dv_validation {
    const struct dv_kind *kind;
    enum dv_operation operation;
    const struct dv_api_version *version; /* of the request; NULL: the preferred one */
    const void *value;
    const void *old; /* what is stored; NULL for DV_CREATE */
};

/* Adds what is wrong with the value in that operation, its metadata included. */
void dv_validate(const struct dv_validation *validation, struct dv_problems *problems);

/* Adds what the reference's server finds before that in updates. It checks some things twice and
 * answers with a cause for each, so a server that wants the same answer asks both. */
void dv_validate_before_update(const struct dv_validation *validation,
                               struct dv_problems *problems);

/* Adds what the object's namespace (its metadata; NULL: unknown) does not let it ask for: admin
 * access to devices, in a new claim or template, or newly granted in a claim's status. */
void dv_validate_admin_access(const struct dv_validation *validation,
                              const struct dv_api_object_meta *namespace,
                              struct dv_problems *problems);

/* Adds what is wrong with the options of a deletion. */
void dv_validate_delete_options(const struct dv_api_delete_options *options,
                                struct dv_problems *problems);
/* Adds that the option dryRun, which all that writes has, is not empty and not "All". */
void dv_validate_dry_run(const dv_str *values, size_t n, struct dv_problems *problems);

/* The formats that names have: each is also a question that other modules ask. */
bool dv_is_driver_name(dv_str name);
bool dv_is_pool_name(dv_str name);
bool dv_is_extended_resource_name(dv_str name);
bool dv_is_native_resource_name(dv_str name);

#endif
