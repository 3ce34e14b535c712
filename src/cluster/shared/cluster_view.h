/* cluster_view.h - what the views of both engines have: the objects that were told, by name. */
#ifndef DV_CLUSTER_VIEW_H
#define DV_CLUSTER_VIEW_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_err;
struct dv_field_selector;
struct dv_label_selector;
struct dv_object;

/* The first member of an engine's. */
struct dv_view {
    const struct dv_cluster_engine *engine;
    struct dv_cluster *cluster;     /* NULL: it has ended before the view */
    struct dv_view_options options; /* its texts are the view's */
    struct dv_arena *arena;
    struct dv_label_selector *labels;
    struct dv_field_selector *fields;
    struct dv_names objects; /* maybe packed */
    bool is_synced;
};

/* DV_INVALID_ARGUMENT: a selector that cannot be; nothing is left to be given back then. */
DV_CHECKED bool dv_view_init(struct dv_view *view, struct dv_cluster *cluster,
                             const struct dv_view_options *options, struct dv_err *err);
void dv_view_fini(struct dv_view *view);

/* The object of that name is now this one, or gone (NULL): changes what the view shows, and tells
 * it when it is a change. The view may be closed by its owner in the call. */
void dv_view_change(struct dv_view *view, dv_str namespace, dv_str name, struct dv_object *now);

#endif
