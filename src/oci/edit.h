/* edit.h - what the edits have in common: places in the document, and whose edit it is. */
#ifndef DV_OCI_EDIT_H
#define DV_OCI_EDIT_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_cdi_edits;
struct dv_cdi_part;
struct dv_err;
struct dv_json;
struct dv_oci_host;

/* One application of edits. `config` is the copy that is being edited. */
struct dv_oci_edit {
    struct dv_json *config;
    const struct dv_cdi_edits *edits;
    const struct dv_oci_host *host;
    struct dv_arena *arena;
};

/* The steps, in the order in which the reference has them; each is a file's. */
DV_CHECKED bool dv_oci_add_nodes(struct dv_oci_edit *edit, struct dv_err *err);
DV_CHECKED bool dv_oci_add_net_devices(struct dv_oci_edit *edit, struct dv_err *err);
DV_CHECKED bool dv_oci_add_mounts(struct dv_oci_edit *edit, struct dv_err *err);
DV_CHECKED bool dv_oci_add_hooks(struct dv_oci_edit *edit, struct dv_err *err);

/* The member of that kind, made when it is absent or null. NULL: it is of another kind. */
struct dv_json *dv_oci_object(struct dv_json *parent, dv_str key, struct dv_arena *arena,
                              struct dv_err *err);
struct dv_json *dv_oci_array(struct dv_json *parent, dv_str key, struct dv_arena *arena,
                             struct dv_err *err);
/* Puts the text as the member of that name; empty text is left out. */
void dv_oci_put(struct dv_json *object, dv_str key, dv_str text, struct dv_arena *arena);
/* The text of a member that must be there. */
DV_CHECKED bool dv_oci_member(const struct dv_json *object, dv_str key, dv_str *text,
                              struct dv_err *err);

/* Puts the device and its spec before the message. Returns false. */
bool dv_oci_blame(const struct dv_cdi_part *part, struct dv_err *err);

#endif
