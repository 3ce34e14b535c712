/* test_validation.h - objects that differ from a good one, and what is wrong with them. */
#ifndef DV_RESOURCE_TEST_VALIDATION_H
#define DV_RESOURCE_TEST_VALIDATION_H

#include <stddef.h>

#include "base/str.h"
#include "resource/resource.h"
#include "resource/validate.h"

struct dv_arena;

struct refusal {
    const char *change; /* a merge patch, in YAML */
    const char *want;   /* "spec.driver:Required spec.pool:Invalid", in that order; "": none */
};

struct subject {
    enum dv_kind_id kind;
    enum dv_operation operation;
    const char *base; /* a good object, in YAML; what is stored, too, in updates */
};

/* Checks one change to the object, or every one of a table. */
void check_refusal(const struct subject *subject, const char *change, const char *want);
void check_refusals(const struct subject *subject, const struct refusal *rows, size_t n_rows);
/* "spec.driver: Required value", one a line. `old_change` is made to what is stored. */
dv_str problem_texts(const struct subject *subject, const char *change, const char *old_change,
                     struct dv_arena *arena);
/* A list of n times `item` in which every "#" is its number, in YAML. */
const char *repeated(const char *before, const char *item, size_t n, const char *after,
                     struct dv_arena *arena);

#endif
