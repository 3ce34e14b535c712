/* schema_read.h - the parts of compiling a schema: for the files that read one. */
#ifndef DV_RESOURCE_SCHEMA_READ_H
#define DV_RESOURCE_SCHEMA_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "resource/custom/schema.h"
#include "resource/validate/checks.h"

struct dv_json;

/* A schema that is being compiled. */
struct dv_schema_reader {
    struct dv_arena *arena;
    struct dv_problems *problems;
    size_t n_nodes;
    size_t n_rules;
    bool is_over; /* too large or too deep, which has been told */
};

/* What a schema stands in, which decides what it may say. */
enum dv_schema_place {
    DV_SCHEMA_ROOT,
    DV_SCHEMA_PROPERTY,
    DV_SCHEMA_ITEM,
    DV_SCHEMA_MORE,
    DV_SCHEMA_JUNCTOR, /* inside of allOf, anyOf, oneOf, not: it restricts values, and no more */
};

/* A schema's place in the one that it is part of. */
struct dv_schema_part {
    const struct dv_json *doc;
    const struct dv_field_path *path;
    enum dv_schema_place place;
    size_t depth;
    bool is_uncorrelated; /* it is in a list whose items cannot be told apart */
};

/* Shows a value of a schema in a problem. */
struct dv_bad_value dv_schema_shown(const struct dv_json *node, struct dv_arena *arena);
/* schema_lists.c: reads how the items of a list are told apart, and the default of a member. */
void dv_schema_read_list_type(struct dv_schema_reader *reader, const struct dv_schema_part *part,
                              struct dv_structural *schema);
void dv_schema_read_default(struct dv_schema_reader *reader, const struct dv_schema_part *part,
                            struct dv_structural *schema);
/* schema_limits.c: reads what values are checked by; NULL: nothing is. */
struct dv_schema_checks *dv_schema_read_checks(struct dv_schema_reader *reader,
                                               const struct dv_json *doc,
                                               const struct dv_field_path *path);
/* schema_rules.c: reads x-kubernetes-validations. `is_correlated`: the value can be found again in
 * what was there before, so that rules may compare the two. */
void dv_schema_read_rules(struct dv_schema_reader *reader, const struct dv_json *doc,
                          const struct dv_field_path *path, bool is_correlated,
                          struct dv_schema_checks *checks);
/* The member as what it has to be. False: it is absent, or something else, which is a problem. */
bool dv_schema_read_text(struct dv_schema_reader *reader, const struct dv_json *doc,
                         const struct dv_field_path *path, const char *name, dv_str *text);
bool dv_schema_read_flag(struct dv_schema_reader *reader, const struct dv_json *doc,
                         const struct dv_field_path *path, const char *name);
const dv_str *dv_schema_read_texts(struct dv_schema_reader *reader, const struct dv_json *doc,
                                   const struct dv_field_path *path, const char *name, size_t *n);

#endif
