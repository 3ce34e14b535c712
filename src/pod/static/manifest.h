/* manifest.h - a pod that a file of the node describes (a static pod), read from its text. Pure.
 *
 * The pod gets what an API would have given it: its name with the node's behind it, so that the
 * same file on many nodes makes many pods; its namespace, its node, defaults; a uid that is another
 * one when the file says something else. It may refer to no object of the API. */
#ifndef DV_POD_MANIFEST_H
#define DV_POD_MANIFEST_H

#include "base/str.h"
#include "number/number.h"
#include "resource/values.h"

struct dv_err;
struct dv_object;

#define DV_STATIC_HASH "kubernetes.io/config.hash"
#define DV_STATIC_SOURCE "kubernetes.io/config.source"
#define DV_STATIC_SEEN "kubernetes.io/config.seen"

struct dv_manifest_place {
    dv_str path; /* of the file */
    dv_str node_name;
    struct dv_time seen; /* when the file was first read so */
};

/* Reads a core/v1 Pod from YAML or JSON. NULL: `err` says what is wrong with it, without the path.
 */
struct dv_object *dv_manifest_read(dv_str text, const struct dv_manifest_place *place,
                                   struct dv_err *err);
/* Whether two pods of the same file say the same. */
bool dv_manifest_eq(const struct dv_object *a, const struct dv_object *b);

#endif
