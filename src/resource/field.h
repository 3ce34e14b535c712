/* field.h - field tables: what a message of the API has, where its struct keeps it, and how it is
 * written.
 *
 * The tables are made from schema/ by tools/schema-to-c. Everything that walks an object (JSON,
 * protobuf, copies, comparison, patches, apply, OpenAPI) does it by them. */
#ifndef DV_RESOURCE_FIELD_H
#define DV_RESOURCE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_message;

enum dv_type {
    DV_TYPE_STRING,     /* dv_str */
    DV_TYPE_BOOL,       /* bool */
    DV_TYPE_INT32,      /* int64_t, but no larger than 32 bits */
    DV_TYPE_INT64,      /* int64_t */
    DV_TYPE_TIME,       /* struct dv_time: "2006-01-02T15:04:05Z" */
    DV_TYPE_MICROTIME,  /* struct dv_time: "2006-01-02T15:04:05.000000Z" */
    DV_TYPE_QUANTITY,   /* struct dv_quantity */
    DV_TYPE_BYTES,      /* dv_str; base64 in JSON */
    DV_TYPE_RAW,        /* dv_str: a JSON text, as it was sent */
    DV_TYPE_INT_OR_STR, /* struct dv_int_or_str */
    DV_TYPE_STRINGS,    /* struct dv_strs; in maps only */
    DV_TYPE_MESSAGE,    /* the struct of `message` */
};

enum dv_shape {
    DV_SHAPE_ONE,     /* the value itself */
    DV_SHAPE_POINTER, /* may be absent: a pointer, or a text or time that says so itself */
    DV_SHAPE_LIST,    /* a pointer to the first, and how many at n_offset */
    DV_SHAPE_MAP,     /* like a list, with entries of key and value, sorted by key */
    DV_SHAPE_INLINE,  /* a struct whose fields stand in the parent's JSON object */
    DV_SHAPE_VIEW,    /* the same struct again, one object deeper in JSON; always written */
};

enum dv_field_flag {
    DV_FIELD_ALWAYS = 1,     /* written even when it is empty */
    DV_FIELD_PLAIN = 2,      /* DV_SHAPE_POINTER in the struct, but empty in the text is unset */
    DV_FIELD_SET = 4,        /* a list without repetitions, merged as a set by apply */
    DV_FIELD_ATOMIC = 8,     /* replaced as a whole; lists are, unless they have keys or are sets */
    DV_FIELD_PATCH_SET = 16, /* a strategic merge patch adds to the list */
    DV_FIELD_RETAIN_KEYS = 32, /* a strategic merge patch may say which keys stay */
    DV_FIELD_OMITZERO = 64,    /* a time that is left out when it is not set; others are null */
    DV_FIELD_POINTS = 128,     /* begins with a pointer: there is nothing when that is NULL */
};

/* Fields that are kept in a struct behind a pointer, made when one of them is set. */
struct dv_field_into {
    size_t offset; /* of the pointer */
    size_t size;   /* of what it points to */
};

struct dv_field {
    dv_str name; /* in JSON; empty when inline */
    uint16_t number;
    uint8_t type;  /* enum dv_type */
    uint8_t shape; /* enum dv_shape */
    uint8_t flags; /* enum dv_field_flag */
    uint8_t n_keys;
    uint16_t offset;
    uint16_t n_offset;
    uint16_t entry_size; /* of maps of messages */
    uint16_t value_offset;
    const struct dv_message *message;
    const struct dv_field_into *into; /* NULL: in the struct itself */
    const dv_str *keys;               /* that tell the items of a list apart for apply */
    dv_str patch_key;                 /* and for strategic merge patches; empty: it is replaced */
};

struct dv_message {
    dv_str name;    /* "ResourceSlice" */
    dv_str package; /* "io.k8s.api.resource.v1" */
    const struct dv_field *fields;
    size_t n_fields;
    const uint8_t *names; /* indices of `fields` sorted by name, for dv_message_field */
    size_t n_names;
    const uint8_t *numbers; /* indices of `fields` sorted by number, all n_fields */
    const uint8_t *places;  /* by number: the index in `fields`, counted from 1; 0: there is none */
    size_t n_places;        /* no number is above 63 */
    uint64_t lists;         /* a bit for each number whose field is a list or a map */
    bool has_maps;
    bool has_into; /* some fields are kept behind a pointer */
    uint16_t size;
    uint16_t align;
    /* Where the struct has a const dv_str * with the members that the table lacks, as JSON text:
     * "a":1,"b":{} */
    uint16_t unknown_offset;
    bool is_atomic; /* apply replaces it as a whole */
};

/* The field of that JSON name, inline ones included; NULL when there is none. For a field that was
 * found in an inline struct, *base is moved there (base may be NULL). */
const struct dv_field *dv_message_field(const struct dv_message *message, dv_str name,
                                        size_t *base);

#endif
