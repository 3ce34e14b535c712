/* vap_document.h - what expressions see: objects and the request as values of CEL. */
#ifndef DV_VAP_DOCUMENT_H
#define DV_VAP_DOCUMENT_H

#include "base/str.h"

struct dv_api_version;
struct dv_arena;
struct dv_cel_val;
struct dv_message;
struct dv_vap_write;

/* An object as it reads in the version. */
const struct dv_cel_val *dv_vap_from_object(const struct dv_message *message, const void *value,
                                            const struct dv_api_version *version, dv_str kind,
                                            struct dv_arena *arena);
/* The request without its objects, for who is to be shown `version`. */
struct dv_json *dv_vap_request(const struct dv_vap_write *write,
                               const struct dv_api_version *version, struct dv_arena *arena);

#endif
