/* yaml_scalar.h - what YAML scalars mean, for the reader and the printer of YAML. The rules are in
 * yaml_scalar.c. */
#ifndef DV_JSON_YAML_SCALAR_H
#define DV_JSON_YAML_SCALAR_H

#include "json/json.h"

/* A scalar as it stands in the text. */
struct dv_yaml_source {
    dv_str text; /* without quotes and escapes */
    dv_str tag;  /* in full ("tag:yaml.org,2002:int"); empty when there is none */
    bool is_plain;
};

/* The meaning of a scalar. */
struct dv_yaml_scalar {
    enum dv_json_kind kind; /* neither array nor object */
    bool truth;             /* of a boolean */
    bool is_float;          /* a number, `value`; otherwise an integer */
    bool is_negative;       /* the integer is -magnitude */
    bool is_huge;           /* a number beyond doubles: `text` */
    uint64_t magnitude;
    double value; /* may be infinite or not a number */
    dv_str text;  /* of a string; borrowed from the source unless it was decoded */
};

/* Resolves plain text without a tag. */
struct dv_yaml_scalar dv_yaml_resolve(dv_str text);
/* Fails when the text is not what its tag says. */
DV_CHECKED bool dv_yaml_resolve_tagged(const struct dv_yaml_source *source, struct dv_arena *arena,
                                       struct dv_yaml_scalar *scalar, struct dv_err *err);

/* Makes a node that is not a container of a scalar. The scalar must be finite; the node copies its
 * text. */
void dv_yaml_to_node(const struct dv_yaml_scalar *scalar, struct dv_arena *arena,
                     struct dv_json *node);
struct dv_yaml_scalar dv_yaml_from_node(const struct dv_json *node);
/* Makes the key of a member, copied. False: null cannot be one. */
DV_CHECKED bool dv_yaml_to_key(const struct dv_yaml_scalar *scalar, struct dv_arena *arena,
                               dv_str *key);

/* kubectl quotes strings that look like a date, or like a number in base 60 of YAML 1.1. */
bool dv_yaml_looks_like_date(dv_str text);
bool dv_yaml_looks_like_base60(dv_str text);

#endif
