#include "cdidir/cdidir_places.h"

#include <sys/stat.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "cdi/cdi.h"
#include "cdidir/cdidir_scan.h"
#include "loop/loop.h"

static dv_str without_slashes(dv_str path)
{
    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    return path;
}

/* "/a" for "/a/b/", "/" for "/a", "." for "a". */
static dv_str dir_above(dv_str path, dv_str *entry)
{
    size_t n;

    path = without_slashes(path);
    n = path.n;
    while (n > 0 && path.p[n - 1] != '/')
        n--;
    *entry = dv_str_slice(path, n, path.n);
    return n > 0 ? without_slashes(dv_str_slice(path, 0, n)) : DV_STR(".");
}

static bool is_dir(dv_str path, struct stat *about)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();

    return stat(dv_str_to_c(path, scratch), about) == 0 && S_ISDIR(about->st_mode);
}

/* The root and "." are always there. */
static void find_above(const struct dv_cdi_place *place, struct dv_cdi_spot *above, dv_str *awaited)
{
    dv_str path = dir_above(place->self.path, awaited);
    struct stat about;

    while (path.n > 1 && !is_dir(path, &about))
        path = dir_above(path, awaited);
    *above = (struct dv_cdi_spot){.path = path};
}

void dv_cdi_place_init(struct dv_cdi_place *place, dv_str dir)
{
    *place = (struct dv_cdi_place){.self = {.path = dir}};
    find_above(place, &place->above, &place->awaited);
}

/* ---- setting watches ---- */

static void forget(struct dv_cdi_place *places, size_t n_places, dv_str path)
{
    for (size_t i = 0; i < n_places; i++) {
        if (dv_str_eq(places[i].self.path, path))
            places[i].self.is_watched = places[i].self.is_alias = false;
        if (dv_str_eq(places[i].above.path, path))
            places[i].above.is_watched = places[i].above.is_alias = false;
    }
}

static void unwatch(struct dv_cdi_place *places, size_t n_places, struct dv_watch *watch,
                    dv_str path)
{
    dv_watch_remove(watch, path);
    forget(places, n_places, path);
}

/* No watch on what is there no more, or is another directory by now: a watch follows the directory
 * when something above it is renamed. */
static void drop_stale(struct dv_cdi_place *places, size_t n_places, struct dv_watch *watch,
                       const struct dv_cdi_spot *spot)
{
    struct stat about;

    if (spot->is_watched &&
        (!is_dir(spot->path, &about) || about.st_dev != spot->dev || about.st_ino != spot->ino))
        unwatch(places, n_places, watch, spot->path);
}

static void move_above(struct dv_cdi_place *places, size_t n_places, struct dv_watch *watch,
                       struct dv_cdi_place *place)
{
    struct dv_cdi_spot above;
    dv_str awaited;

    find_above(place, &above, &awaited);
    if (dv_str_eq(above.path, place->above.path))
        return;
    /* Whoever else wants that one sets it again in a moment. */
    unwatch(places, n_places, watch, place->above.path);
    place->above = above;
    place->awaited = awaited;
}

static bool watch_spot(struct dv_cdi_spot *spot, struct dv_watch *watch, struct dv_cdi_scan *scan)
{
    struct stat about;
    struct dv_err err;

    if (spot->is_watched || !is_dir(spot->path, &about))
        return true;
    if (!dv_watch_add(watch, spot->path, &err)) {
        spot->is_alias = err.code == DV_ALREADY_EXISTS;
        if (!spot->is_alias && !is_dir(spot->path, &about))
            return true; /* it went meanwhile, of which the one above tells */
        if (!spot->is_alias) {
            dv_cdi_scan_add_problem(scan, spot->path, dv_str_from_c(err.msg));
            return false;
        }
    }
    spot->is_watched = true;
    spot->dev = about.st_dev;
    spot->ino = about.st_ino;
    return true;
}

bool dv_cdi_places_watch(struct dv_cdi_place *places, size_t n_places, struct dv_watch *watch,
                         struct dv_cdi_scan *scan)
{
    bool is_whole = true;

    for (size_t i = 0; i < n_places; i++) {
        drop_stale(places, n_places, watch, &places[i].self);
        drop_stale(places, n_places, watch, &places[i].above);
        move_above(places, n_places, watch, &places[i]);
    }
    for (size_t i = 0; i < n_places; i++) {
        is_whole = watch_spot(&places[i].above, watch, scan) && is_whole;
        is_whole = watch_spot(&places[i].self, watch, scan) && is_whole;
    }
    return is_whole;
}

/* ---- events ---- */

static enum dv_cdi_heed heed(const struct dv_cdi_place *place, const struct dv_watch_event *event)
{
    bool is_gone = event->kind == DV_WATCH_DIR_GONE;
    bool is_self = dv_str_eq(event->dir, place->self.path);
    bool is_above = dv_str_eq(event->dir, place->above.path);

    if (place->self.is_alias || place->above.is_alias) /* the event has the other name */
        return DV_CDI_HEED_ALL;
    if ((is_gone && (is_self || is_above)) || (is_above && dv_str_eq(event->name, place->awaited)))
        return DV_CDI_HEED_ALL;
    return is_self && dv_cdi_is_spec_path(event->name) ? DV_CDI_HEED_FILE : DV_CDI_HEED_NOTHING;
}

enum dv_cdi_heed dv_cdi_places_heed(struct dv_cdi_place *places, size_t n_places,
                                    const struct dv_watch_event *event)
{
    enum dv_cdi_heed most = DV_CDI_HEED_NOTHING;

    if (event->kind == DV_WATCH_OVERFLOW)
        return DV_CDI_HEED_ALL;
    for (size_t i = 0; i < n_places; i++) {
        enum dv_cdi_heed one = heed(&places[i], event);

        most = one > most ? one : most;
    }
    if (event->kind == DV_WATCH_DIR_GONE)
        forget(places, n_places, event->dir);
    return most;
}
