/* openapi_schema.h - messages as schemas: what openapi.c puts into its documents. */
#ifndef DV_SERVE_OPENAPI_SCHEMA_H
#define DV_SERVE_OPENAPI_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

struct dv_arena;
struct dv_buf;
struct dv_message;

/* A schema that is wanted: of a message, or of the list of a kind. */
struct dv_schema {
    dv_str name;  /* "io.k8s.api.core.v1.Pod" */
    dv_str title; /* "Pod": what descriptions are found by */
    const struct dv_message *message;
    bool is_list; /* of that message's kind */
    dv_str kind;  /* not empty: an object of this kind, group, version */
    dv_str group;
    dv_str version;
};

/* The schemas of one document, in the order in which they were asked for. */
struct dv_schemas {
    struct dv_arena *arena;
    const char *root; /* before names in references: "#/definitions/" */
    bool is_v3;
    dv_str group; /* whose version all messages of the group are named by */
    dv_str version;
    struct dv_map known;
    DV_VEC(struct dv_schema *) list;
};

void dv_schemas_init(struct dv_schemas *schemas, bool is_v3, struct dv_arena *arena);
void dv_schemas_fini(struct dv_schemas *schemas);
/* The name of a message's schema, which will be there. With a kind it is an object. */
dv_str dv_schemas_add(struct dv_schemas *schemas, const struct dv_message *message, dv_str kind);
dv_str dv_schemas_add_list(struct dv_schemas *schemas, const struct dv_message *message,
                           dv_str kind);
/* Prints the i-th as a JSON object; adds those it refers to. */
void dv_schemas_print(struct dv_schemas *schemas, size_t i, struct dv_buf *buf);

/* What a message, or a field of it, is; NULL: nothing is said. */
const char *dv_openapi_text(dv_str message, dv_str field);

#endif
