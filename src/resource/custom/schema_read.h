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
