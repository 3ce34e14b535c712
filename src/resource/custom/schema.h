/* schema.h - structural schemas: compiled once, then followed beside documents.
 *
 * A schema says which members an object may have and of which type they are; what it says beside
 * that (`checks`) is only looked at when a value is checked. Compiled schemas are immutable. They
 * are no deeper than DV_SCHEMA_DEPTH_MAX, so functions may recurse along them. */
#ifndef DV_RESOURCE_SCHEMA_H
#define DV_RESOURCE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_arena;
struct dv_cel_pattern;
struct dv_cel_policy;
struct dv_cel_rule;
struct dv_decode_notes;
struct dv_err;
struct dv_field_path;
struct dv_json;
struct dv_problems;
struct dv_schema_rule;

/* How deep a schema may be, and how many schemas may be in one, all parts counted. The largest that
 * are in use have some ten thousand. */
#define DV_SCHEMA_DEPTH_MAX 64u
#define DV_SCHEMA_NODES_MAX 50000u

enum dv_schema_type {
    DV_SCHEMA_ANY, /* nothing is said: int-or-string, or whatever there is */
    DV_SCHEMA_OBJECT,
    DV_SCHEMA_ARRAY,
    DV_SCHEMA_STRING,
    DV_SCHEMA_INTEGER,
    DV_SCHEMA_NUMBER,
    DV_SCHEMA_BOOLEAN,
};

enum dv_schema_list {
    DV_SCHEMA_LIST_ATOMIC,
    DV_SCHEMA_LIST_SET,
    DV_SCHEMA_LIST_MAP,
};

struct dv_schema_property {
    dv_str name;
    const struct dv_structural *schema;
};

/* A rule of x-kubernetes-validations. */
struct dv_schema_rule {
    dv_str text;
    dv_str message;       /* empty: none */
    dv_str path;          /* "a.b", where a problem is told, below the value; empty: at the value */
    uint8_t reason;       /* enum dv_problem_type */
    bool uses_old;        /* it names oldSelf, so it is for updates alone */
    bool is_old_optional; /* unless it takes oldSelf as an optional value */
    const struct dv_cel_policy *policy;
    const struct dv_cel_rule *compiled;
    const struct dv_cel_rule *message_expression; /* NULL: none */
};

/* A limit of numbers; the text is as it was written. */
struct dv_schema_bound {
    dv_str text;
    double value;
    bool is_set;
    bool is_exclusive;
};

/* A limit of lengths; -1: there is none. */
struct dv_schema_range {
    int64_t min;
    int64_t max;
};

struct dv_schema_checks {
    struct dv_schema_bound minimum;
    struct dv_schema_bound maximum;
    struct dv_schema_bound multiple_of;
    struct dv_schema_range length;     /* in characters */
    struct dv_schema_range items;      /* of a list */
    struct dv_schema_range properties; /* of an object */
    dv_str pattern;                    /* empty: none */
    const struct dv_cel_pattern *regex;
    dv_str format;                     /* empty: none */
    const struct dv_json *enumeration; /* an array; NULL: none */
    const dv_str *required;
    size_t n_required;
    const struct dv_structural *const *all_of;
    size_t n_all_of;
    const struct dv_structural *const *any_of;
    size_t n_any_of;
    const struct dv_structural *const *one_of;
    size_t n_one_of;
    const struct dv_structural *not_of; /* NULL: none */
    const struct dv_schema_rule *rules;
    size_t n_rules;
};

struct dv_structural {
    uint8_t type; /* enum dv_schema_type */
    uint8_t list; /* enum dv_schema_list */
    bool is_nullable;
    bool is_int_or_string;
    bool keeps_unknown;  /* members that it does not name stay */
    bool is_embedded;    /* an object of the API, with apiVersion, kind and metadata */
    bool is_atomic_map;  /* apply replaces it as a whole */
    bool takes_any_more; /* additionalProperties: true */
    bool has_rules;      /* this schema, or one under it */
    const struct dv_schema_property *properties; /* sorted by name */
    size_t n_properties;
    const struct dv_structural *more;  /* of members that are not named; NULL: nothing is said */
    const struct dv_structural *items; /* NULL: nothing is said */
    const dv_str *keys;                /* of a list that is a map */
    size_t n_keys;
    const struct dv_json *default_value;   /* with what is filled in inside of it; NULL: none */
    size_t default_bytes;                  /* about what it takes as text */
    const struct dv_schema_checks *checks; /* NULL: there are none */
};

/* Compiles the schema of an object, a document of JSON, into `arena`; adds what makes it none to
 * `problems`, below `path`. NULL: there were problems, or (`err` is set) it is too large or too
 * deep. Reads as little of `doc` later as of any text: it must live as long as the schema. */
const struct dv_structural *dv_schema_new(const struct dv_json *doc,
                                          const struct dv_field_path *path, struct dv_arena *arena,
                                          struct dv_problems *problems);

/* The schema of a member; NULL: the schema does not have it. */
const struct dv_structural *dv_schema_property(const struct dv_structural *schema, dv_str name);
/* Like dv_schema_property, or that of all other members. */
const struct dv_structural *dv_schema_member(const struct dv_structural *schema, dv_str name);
/* What a type is called, "object". */
const char *dv_schema_type_name(enum dv_schema_type type);

/* What defaults may add to a document: small ones inside of each other, or in each item of a long
 * list, would otherwise take all memory. */
#define DV_SCHEMA_DEFAULT_BYTES_MAX (4u * 1024u * 1024u)

/* A copy of `doc` in `arena`, without the members that the schema does not have and with its
 * defaults. Members that are null where that is not allowed count as absent. What is removed is
 * noted as `unknown field "spec.x"` (`notes` may be NULL). At the root of an object apiVersion,
 * kind and metadata stay as they are. NULL: defaults would add more than
 * DV_SCHEMA_DEFAULT_BYTES_MAX. */
struct dv_json *dv_schema_prune(const struct dv_structural *schema, const struct dv_json *doc,
                                bool is_root, struct dv_arena *arena,
                                struct dv_decode_notes *notes);

/* How many parts of a value may be looked at, each of which takes about a tenth of a microsecond:
 * schemas with many alternatives would otherwise hold the loop with a small object. */
#define DV_SCHEMA_STEPS_MAX 400000u

/* Adds what is wrong with the value. With `old` (may be NULL), what is stored, problems of parts
 * that have not changed do not count. `steps_max` is how many parts may be looked at; when that is
 * not enough, that is a problem. */
void dv_schema_check(const struct dv_structural *schema, const struct dv_json *value,
                     const struct dv_json *old, const struct dv_field_path *path,
                     uint64_t steps_max, struct dv_problems *problems);
/* Adds what the rules of the schema say against the value, which has no other problems; and to
 * `warnings` (may be NULL) what they say against values that are as they were before. */
void dv_schema_check_rules(const struct dv_structural *schema, const struct dv_json *value,
                           const struct dv_json *old, const struct dv_field_path *path,
                           struct dv_problems *problems, struct dv_problems *warnings);
/* Whether the item of a list that is a map has the keys of the other. */
bool dv_schema_is_same_item(const struct dv_structural *list, const struct dv_json *a,
                            const struct dv_json *b);
#endif
