/* remote_list.c - the listing of a view: pages are told as they come, and at the end everything
 * that the view still shows and the list did not have is told to be gone. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "cluster/remote/remote_event.h"
#include "cluster/remote/remote_view.h"
#include "cluster/shared/cluster_view.h"
#include "loop/loop.h"
#include "resource/resource.h"

/* How many objects are told in one turn: about a millisecond of whoever listens. */
#define PORTION 500u
/* The ceiling of a continue token: those of servers have some hundred bytes. */
#define MORE_BYTES_MAX 16384u

static struct dv_name name_of(const void *item)
{
    const struct dv_object *object = item;

    return (struct dv_name){object->meta->namespace, object->meta->name};
}

void dv_remote_list_init(struct dv_remote_view *view)
{
    dv_names_init(&view->listed, name_of);
    dv_buf_init(&view->more, MORE_BYTES_MAX);
}

void dv_remote_list_forget(struct dv_remote_view *view)
{
    struct dv_object *object;
    size_t at = 0;

    while ((object = dv_names_next(&view->listed, &at)) != NULL)
        dv_object_unref(object);
    dv_names_fini(&view->listed);
    for (size_t i = 0; i < view->gone.n; i++)
        dv_object_unref(view->gone.v[i]);
    dv_vec_fini(&view->gone);
    view->n_gone_told = 0;
    view->is_older = false;
    dv_buf_fini(&view->more);
    dv_task_cancel(&view->sweep);
}

bool dv_remote_list_take(struct dv_remote_view *view, dv_str text, struct dv_err *err)
{
    struct dv_remote_page page;

    dv_arena_reset(view->scratch);
    if (!dv_remote_page_read(view->view.options.kind, view->api_version, text, view->scratch, &page,
                             err))
        return false;
    dv_buf_clear(&view->more);
    dv_buf_add(&view->more, page.more);
    if (!dv_buf_check(&view->more, "the token for the next page", err)) {
        dv_remote_page_drop(&page);
        return false;
    }
    view->list_version = page.version;
    view->is_older = page.version < view->version;
    for (size_t i = 0; i < page.n_objects && dv_remote_view_is_live(view); i++) {
        dv_object_unref(dv_names_put(&view->listed, dv_object_ref(page.objects[i])));
        dv_remote_view_tell(view, page.objects[i]);
    }
    dv_remote_page_drop(&page);
    return true;
}

/* Whether the view shows the object that a list begins with, unless that is newer than all that was
 * told: a watch is about to tell it then. If the list is empty, whether the view shows nothing. */
static bool has_first(const struct dv_remote_view *view, const struct dv_remote_page *page)
{
    const struct dv_object *shown;

    if (page->n_objects == 0)
        return dv_view_n(&view->view) == 0;
    if (page->objects[0]->version > view->version)
        return true;
    shown =
        dv_view_get(&view->view, page->objects[0]->meta->namespace, page->objects[0]->meta->name);
    return shown && dv_str_eq(shown->meta->uid, page->objects[0]->meta->uid);
}

bool dv_remote_list_check(struct dv_remote_view *view, dv_str text, bool *is_same,
                          struct dv_err *err)
{
    const struct dv_kind *kind = view->view.options.kind;
    struct dv_remote_page page;

    dv_arena_reset(view->scratch);
    if (!dv_remote_page_read(kind, view->api_version, text, view->scratch, &page, err))
        return false;
    if (page.version < view->version)
        dv_log(DV_LOG_WARN,
               "cluster: the API server's data is older than what was seen; listing anew",
               DV_F_STR("kind", kind->plural), DV_F_U64("version", page.version),
               DV_F_U64("seen", view->version));
    *is_same = page.version >= view->version && has_first(view, &page);
    dv_remote_page_drop(&page);
    return true;
}

void dv_remote_list_end(struct dv_remote_view *view)
{
    struct dv_object *object;
    size_t at = 0;

    while ((object = dv_view_next(&view->view, &at)) != NULL)
        if (!dv_names_get(&view->listed, object->meta->namespace, object->meta->name))
            *dv_vec_add(&view->gone) = dv_object_ref(object);
}

bool dv_remote_list_tell_gone(struct dv_remote_view *view)
{
    for (size_t i = 0; i < PORTION && view->n_gone_told < view->gone.n; i++) {
        dv_remote_view_tell_gone(view, view->gone.v[view->n_gone_told++]);
        if (!dv_remote_view_is_live(view))
            return false;
    }
    return view->n_gone_told == view->gone.n;
}
