/* cluster_view.c - what the views of both engines have in common: the objects that a view shows, by
 * name, and how they are looked up and walked. */
#include "cluster/shared/cluster_view.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/select.h"

static struct dv_name name_of(const void *item)
{
    struct dv_object_names names = dv_object_names(item);

    return (struct dv_name){names.namespace, names.name};
}

bool dv_view_init(struct dv_view *view, struct dv_cluster *cluster,
                  const struct dv_view_options *options, struct dv_err *err)
{
    struct dv_arena *arena = dv_arena_new();

    *view = (struct dv_view){
        .engine = cluster->engine, .cluster = cluster, .options = *options, .arena = arena};
    view->options.namespace = dv_str_copy(options->namespace, arena);
    view->options.label_selector = dv_str_copy(options->label_selector, arena);
    view->options.field_selector = dv_str_copy(options->field_selector, arena);
    view->options.annotation = dv_str_copy(options->annotation, arena);
    view->labels = dv_label_selector_parse(view->options.label_selector, arena, err);
    if (view->labels)
        view->fields = dv_field_selector_parse(options->kind, options->kind->versions[0].group,
                                               view->options.field_selector, arena, err);
    if (!view->fields) {
        dv_arena_free(arena);
        return false;
    }
    dv_names_init(&view->objects, name_of);
    return true;
}

void dv_view_fini(struct dv_view *view)
{
    struct dv_object *object;
    size_t at = 0;

    while ((object = dv_names_next(&view->objects, &at)) != NULL)
        dv_object_unkeep(object);
    dv_names_fini(&view->objects);
    dv_arena_free(view->arena);
}

/* Whether the view shows objects like this one. */
static bool is_wanted(const struct dv_view *view, struct dv_object *object)
{
    return (view->options.namespace.n == 0 ||
            dv_str_eq(view->options.namespace, dv_object_names(object).namespace)) &&
           (view->options.annotation.n == 0 ||
            dv_object_has_annotation(object, view->options.annotation)) &&
           dv_object_is_selected(object, view->labels, view->fields);
}

void dv_view_change(struct dv_view *view, dv_str namespace, dv_str name, struct dv_object *now)
{
    struct dv_object *old;

    if (now && !is_wanted(view, now))
        now = NULL;
    if (now)
        old = dv_names_put(&view->objects, dv_object_keep(dv_object_unpack(now)));
    else
        old = dv_names_remove(&view->objects, namespace, name);
    if (old || now)
        view->options.changed(view->options.ctx, old ? dv_object_unpack(old) : NULL, now);
    dv_object_unkeep(old);
}

bool dv_view_is_synced(const struct dv_view *view)
{
    return view->is_synced;
}

size_t dv_view_n(const struct dv_view *view)
{
    return view->objects.n;
}

struct dv_object *dv_view_get_packed(const struct dv_view *view, dv_str namespace, dv_str name)
{
    return dv_names_get(&view->objects, namespace, name);
}

struct dv_object *dv_view_get(const struct dv_view *view, dv_str namespace, dv_str name)
{
    struct dv_object *object = dv_view_get_packed(view, namespace, name);

    return object ? dv_object_unpack(object) : NULL;
}

struct dv_object *dv_view_next(const struct dv_view *view, size_t *at)
{
    struct dv_object *object = dv_names_next(&view->objects, at);

    return object ? dv_object_unpack(object) : NULL;
}
