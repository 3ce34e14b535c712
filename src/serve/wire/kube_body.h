/* kube_body.h - the bodies of requests: JSON, YAML or protobuf into the structs of the API. Pure.
 *
 * Failures are Status objects in the arena, with the reference's texts. */
#ifndef DV_SERVE_KUBE_BODY_H
#define DV_SERVE_KUBE_BODY_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "resource/resource.h"
#include "serve/wire/kube_accept.h"

struct dv_api_status;
struct dv_arena;
struct dv_json;

/* What a body has to be. */
struct dv_body_kind {
    dv_str kind;
    dv_str group;
    dv_str version;
    const struct dv_message *message;
};

/* Reads a body. *value is the message's struct, in `arena`; it points into `body`. *warnings are
 * notes for the client. */
DV_CHECKED bool dv_body_decode(dv_str body, enum dv_media media, const struct dv_body_kind *wanted,
                               enum dv_field_validation validation, struct dv_arena *arena,
                               void **value, struct dv_decode_notes *warnings,
                               struct dv_api_status **failure);
DV_CHECKED bool dv_body_delete_options(dv_str body, enum dv_media media, struct dv_arena *arena,
                                       struct dv_api_delete_options *options,
                                       struct dv_api_status **failure);
/* Reads the document of a patch. */
struct dv_json *dv_body_patch(dv_str body, enum dv_patch_type type, struct dv_arena *arena,
                              struct dv_api_status **failure);

#endif
