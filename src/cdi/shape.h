/* shape.h - the fields of a CDI spec as tables: one description for reading, for the version that a
 * field needs, and for writing. */
#ifndef DV_CDI_SHAPE_H
#define DV_CDI_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_cdi_reader;
struct dv_arena;
struct dv_json;

/* The released versions of the specification, by age. */
enum dv_cdi_release {
    DV_CDI_0_3_0,
    DV_CDI_0_4_0,
    DV_CDI_0_5_0,
    DV_CDI_0_6_0,
    DV_CDI_0_7_0,
    DV_CDI_0_8_0,
    DV_CDI_1_0_0,
    DV_CDI_1_1_0,
    DV_CDI_UNRELEASED, /* how many there are; what is not removed yet is removed here */
};

const char *dv_cdi_release_text(enum dv_cdi_release release); /* "0.3.0" */
/* Parses a release, with or without a "v" before it. */
DV_CHECKED bool dv_cdi_release_parse(dv_str text, enum dv_cdi_release *release);

enum dv_cdi_field_kind {
    DV_CDI_TEXT,    /* dv_str */
    DV_CDI_TEXTS,   /* dv_str *, n */
    DV_CDI_ENV,     /* dv_str *, n; each is "NAME=value" */
    DV_CDI_CHOICE,  /* an enum that begins with 0 */
    DV_CDI_COUNT,   /* uint32_t; 0 when absent */
    DV_CDI_NUMBER,  /* struct dv_cdi_number */
    DV_CDI_NUMBERS, /* uint32_t *, n */
    DV_CDI_FLAG,    /* bool */
    DV_CDI_PAIRS,   /* struct dv_cdi_annotation *, n */
    DV_CDI_LIST,    /* structs of `shape` *, n */
    DV_CDI_POINTER, /* struct of `shape` *; NULL when absent */
    DV_CDI_INLINE,  /* struct of `shape` */
};

struct dv_cdi_field {
    dv_str key;
    enum dv_cdi_field_kind kind;
    bool is_required;
    size_t at;   /* in the struct */
    size_t n_at; /* of the number of elements */
    const struct dv_cdi_shape *shape;
    const char *const *choices;
    size_t n_choices;
    enum dv_cdi_release since;
    enum dv_cdi_release removed; /* DV_CDI_0_3_0: never */
};

struct dv_cdi_shape {
    const struct dv_cdi_field *fields;
    size_t n_fields;
    size_t size_bytes;
    size_t align;
    /* Checks what no field can tell alone; NULL: nothing. `value` is the struct, read as far as it
     * could be. */
    void (*check)(struct dv_cdi_reader *reader, const struct dv_json *node, const void *value);
};

extern const struct dv_cdi_shape dv_cdi_spec_shape;
extern const struct dv_cdi_shape dv_cdi_edits_shape;

/* cdi_write.c: a struct of that shape as a document, in `arena`. What is empty is left out. */
struct dv_json *dv_cdi_write(const struct dv_cdi_shape *shape, const void *value,
                             struct dv_arena *arena);

/* The checks, in cdi_check.c. */
void dv_cdi_check_node(struct dv_cdi_reader *reader, const struct dv_json *node, const void *value);
void dv_cdi_check_hook(struct dv_cdi_reader *reader, const struct dv_json *node, const void *value);
void dv_cdi_check_rdt(struct dv_cdi_reader *reader, const struct dv_json *node, const void *value);
void dv_cdi_check_edits(struct dv_cdi_reader *reader, const struct dv_json *node,
                        const void *value);
void dv_cdi_check_device(struct dv_cdi_reader *reader, const struct dv_json *node,
                         const void *value);
void dv_cdi_check_spec(struct dv_cdi_reader *reader, const struct dv_json *node, const void *value);

#endif
