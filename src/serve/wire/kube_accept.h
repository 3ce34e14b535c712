/* kube_accept.h - content negotiation: in which form an answer goes out, and a body came in. Pure.
 */
#ifndef DV_SERVE_KUBE_ACCEPT_H
#define DV_SERVE_KUBE_ACCEPT_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

enum dv_media {
    DV_MEDIA_JSON,
    DV_MEDIA_YAML,
    DV_MEDIA_PROTOBUF,
};

enum dv_form {
    DV_FORM_OBJECT,
    DV_FORM_TABLE,        /* as=Table */
    DV_FORM_PARTIAL,      /* as=PartialObjectMetadata */
    DV_FORM_PARTIAL_LIST, /* as=PartialObjectMetadataList */
    DV_FORM_DISCOVERY,    /* as=APIGroupDiscoveryList */
};

struct dv_rendering {
    enum dv_media media;
    enum dv_form form;
    bool is_beta; /* the form is of meta.k8s.io/v1beta1, not v1 */
};

/* Whether one of the accepted types is one of ours, whatever its parameters. An empty header
 * accepts everything. */
bool dv_accept_has_ours(dv_str accept);
/* What an answer is, and so which forms it has beside its own. */
enum dv_answer_kind {
    DV_ANSWER_OBJECTS,   /* a table, or the metadata alone */
    DV_ANSWER_REVIEW,    /* what is answered once and not kept: the metadata alone */
    DV_ANSWER_PAGE,      /* none */
    DV_ANSWER_DISCOVERY, /* the lists of groups: all groups with their resources */
};

/* Finds the first form that the answer has, in the client's order. */
DV_CHECKED bool dv_accept_negotiate(dv_str accept, enum dv_answer_kind answer,
                                    struct dv_rendering *rendering);
/* Parses the body's media type; it is JSON when the request names none. */
DV_CHECKED bool dv_content_type_parse(dv_str content_type, enum dv_media *media);
/* Returns the type without parameters: "application/json" for "application/json; charset=utf-8". */
dv_str dv_media_bare(dv_str type);

#define DV_MEDIA_TYPES "application/json, application/yaml, application/vnd.kubernetes.protobuf"
const char *dv_media_name(enum dv_media media);

#endif
