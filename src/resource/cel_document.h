/* cel_document.h - documents as values that expressions see. */
#ifndef DV_RESOURCE_CEL_DOCUMENT_H
#define DV_RESOURCE_CEL_DOCUMENT_H

struct dv_arena;
struct dv_cel_val;
struct dv_json;
struct dv_structural;

/* A document as a value. */
const struct dv_cel_val *dv_cel_from_json(const struct dv_json *doc, struct dv_arena *arena);
/* A document as a rule of its schema sees it: names that CEL could not say are escaped, and what
 * the schema calls a number is a double. */
const struct dv_cel_val *dv_cel_from_schema(const struct dv_structural *schema,
                                            const struct dv_json *doc, struct dv_arena *arena);

#endif
