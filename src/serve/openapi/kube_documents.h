/* kube_documents.h - documents about the API: each is made when it is first asked for, and kept
 * until what it tells of changes. */
#ifndef DV_SERVE_KUBE_DOCUMENTS_H
#define DV_SERVE_KUBE_DOCUMENTS_H

#include <stdbool.h>

#include "base/str.h"

struct dv_document {
    dv_str text;
    dv_str tag; /* an ETag, which changes with the text */
};

struct dv_custom_set;
struct dv_documents;

struct dv_documents *dv_documents_new(void);
void dv_documents_free(struct dv_documents *documents); /* NULL is fine */

/* Return the document, borrowed until one of `customs`, the kinds that definitions make (NULL:
 * none), changes; NULL when there is none. */
const struct dv_document *dv_documents_openapi_v2(struct dv_documents *documents,
                                                  const struct dv_custom_set *customs);
const struct dv_document *dv_documents_openapi_v2_protobuf(struct dv_documents *documents,
                                                           const struct dv_custom_set *customs);
const struct dv_document *dv_documents_openapi_v3_index(struct dv_documents *documents,
                                                        const struct dv_custom_set *customs);
/* `name`: "api/v1", "apis/GROUP", "apis/GROUP/VERSION", "version". */
const struct dv_document *dv_documents_openapi_v3(struct dv_documents *documents,
                                                  const struct dv_custom_set *customs, dv_str name);
const struct dv_document *dv_documents_discovery(struct dv_documents *documents,
                                                 const struct dv_custom_set *customs, bool is_core);

#endif
