/* openapi_schema.h - makes schemas of messages, which openapi.c puts into its documents. */
#ifndef DV_SERVE_OPENAPI_SCHEMA_H
#define DV_SERVE_OPENAPI_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

struct dv_arena;
struct dv_buf;
struct dv_custom_version;
struct dv_message;

/* A schema that a document needs: of a message, or of the list of a kind. */
struct dv_schema {
    dv_str name;  /* "io.k8s.api.core.v1.Pod" */
    dv_str title; /* "Pod": descriptions are found by it */
    const struct dv_message *message;
    bool is_list;                           /* it is the list of that message's kind */
    const struct dv_custom_version *custom; /* of a kind that a definition made; NULL: built in */
    dv_str kind; /* not empty: it is an object of this kind, group and version */
    dv_str group;
    dv_str version;
};

/* The schemas of one document, in the order in which they were asked for. */
struct dv_schemas {
    struct dv_arena *arena;
    const char *root; /* precedes names in references: "#/definitions/" */
    bool is_v3;
    dv_str group; /* messages of this group are named by `version` */
    dv_str version;
    struct dv_map known;
    DV_VEC(struct dv_schema *) list;
};

void dv_schemas_init(struct dv_schemas *schemas, bool is_v3, struct dv_arena *arena);
void dv_schemas_fini(struct dv_schemas *schemas);
/* Returns the name of a message's schema, and has it printed. With a kind it is the schema of an
 * object. */
dv_str dv_schemas_add(struct dv_schemas *schemas, const struct dv_message *message, dv_str kind);
dv_str dv_schemas_add_list(struct dv_schemas *schemas, const struct dv_message *message,
                           dv_str kind);
/* Like these two, of a kind that a definition made. */
dv_str dv_schemas_add_custom(struct dv_schemas *schemas, const struct dv_custom_version *version,
                             bool is_list);
/* openapi_custom.c: prints the schema that a definition says, with the API's metadata. */
void dv_schemas_print_custom(struct dv_schemas *schemas, const struct dv_custom_version *version,
                             struct dv_buf *buf);
/* Prints the i-th schema as a JSON object, and adds those that it refers to. */
void dv_schemas_print(struct dv_schemas *schemas, size_t i, struct dv_buf *buf);

/* Returns the description of a message or of a field of it; NULL: there is none. */
const char *dv_openapi_text(dv_str message, dv_str field);

#endif
