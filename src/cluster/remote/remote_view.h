/* remote_view.h - a view by list and watch, from inside: who fetches, and who tells. */
#ifndef DV_CLUSTER_REMOTE_VIEW_H
#define DV_CLUSTER_REMOTE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "cluster/remote/remote_event.h"
#include "cluster/shared/cluster_view.h"
#include "loop/loop.h"
#include "rest/rest.h"

struct dv_arena;
struct dv_object;
struct dv_remote;

enum dv_remote_state {
    KUBE_LISTING,
    KUBE_SWEEPING, /* tells what a list no longer has */
    KUBE_WATCHING,
    KUBE_CHECKING, /* whether the server still has what was told */
    KUBE_BREAKING, /* a watch said something bad, and is being broken off */
    KUBE_PAUSING,
    KUBE_ENDED, /* only its memory is left */
};

struct dv_remote_view {
    struct dv_view view;
    struct dv_remote *remote;
    struct dv_link link;
    enum dv_remote_state state;
    enum dv_remote_state next; /* of BREAKING and PAUSING */
    struct dv_rest_fetch fetch;
    bool is_fetching;
    const struct dv_api_version *api_version; /* of the fetch */
    struct dv_rest_field field;
    struct dv_buf target;
    struct dv_remote_lines lines;
    struct dv_arena *scratch; /* of one event or page */
    struct dv_timer timer;
    uint64_t pause_ms;
    uint64_t started_ms;
    bool has_progress; /* this watch has told something */
    bool is_expired;   /* of BREAKING: the server has forgotten our version */
    uint64_t version;  /* up to which all was told */

    /* A list, page by page. */
    size_t n_page_objects;
    uint64_t list_version;
    bool is_older; /* than what was told: of a database that was replaced */
    struct dv_buf more;
    struct dv_names listed; /* references */
    DV_VEC(struct dv_object *) gone;
    size_t n_gone_told;
    struct dv_task sweep;

    enum dv_code trouble; /* that was told last; DV_OK: none */
    bool is_in_callback;
    bool is_closed; /* by its owner */
};

/* How long a server is asked to keep a watch: from five to ten minutes, so that not all of them end
 * at once. */
#define DV_REMOTE_WATCH_S_MIN 300u

/* ---- remote_target.c ---- */

/* Prints the target of the request that the state needs. */
void dv_remote_view_target(struct dv_remote_view *view);

/* ---- remote_show.c: telling. All of them may find the view closed or ended afterwards. ---- */

static inline bool dv_remote_view_is_live(const struct dv_remote_view *view)
{
    return !view->is_closed && view->state != KUBE_ENDED;
}

/* Whether the view shows another object of that name. Of one database a watch tells the end of that
 * first. */
bool dv_remote_view_has_another(const struct dv_remote_view *view, const struct dv_object *now);
/* The object is there, or has gone. One that the view shows in the same version is told again only
 * when the list is of another database, whose versions mean something else. */
void dv_remote_view_tell(struct dv_remote_view *view, struct dv_object *now);
void dv_remote_view_tell_gone(struct dv_remote_view *view, const struct dv_object *old);
void dv_remote_view_tell_synced(struct dv_remote_view *view);
/* Tells the view's owner of a kind of trouble, once; NULL: that it is over, once. */
void dv_remote_view_tell_trouble(struct dv_remote_view *view, const struct dv_err *err);

/* ---- remote_list.c: a list, read page by page ---- */

void dv_remote_list_init(struct dv_remote_view *view);
void dv_remote_list_forget(struct dv_remote_view *view);
/* Tells the objects of a page to the view. */
DV_CHECKED bool dv_remote_list_take(struct dv_remote_view *view, dv_str text, struct dv_err *err);
/* To be called when the list is whole: what the view shows and the list has not is gone. */
void dv_remote_list_end(struct dv_remote_view *view);
/* Whether the database that a list of one object came from is the one that the view knows: its
 * version did not go back, and what it has of before that version is shown, with that UID. Changes
 * that were made meanwhile are left to the watch, which tells each of them. */
DV_CHECKED bool dv_remote_list_check(struct dv_remote_view *view, dv_str text, bool *is_same,
                                     struct dv_err *err);
/* Tells a portion of that. False: there is more, or the view is not live any more. */
bool dv_remote_list_tell_gone(struct dv_remote_view *view);

#endif
