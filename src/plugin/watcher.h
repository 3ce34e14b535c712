/* watcher.h - the sockets under a directory: which are there, which come, which go.
 *
 *     inotify event, or the start --> queue of looks --> job on a worker thread --> found, lost
 *
 * A directory is watched before it is listed, so nothing falls between. One job runs at a time, and
 * what it says of a path that was removed meanwhile does not count: if something came back there,
 * another event says so. When events are lost, or something cannot be watched, all is scanned
 * again; a socket that is still the same is not told again. */
#ifndef DV_PLUGIN_WATCHER_H
#define DV_PLUGIN_WATCHER_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"

struct dv_plugin_watcher;

/* None of these is called from within a function of this header. */
struct dv_plugin_watcher_owner {
    /* A socket is there that was not, or another one took its place. False: there is no room for it
     * now, and it is told again later. */
    bool (*found)(struct dv_plugin_watcher_owner *owner, dv_str path);
    void (*lost)(struct dv_plugin_watcher_owner *owner, dv_str path);
};

/* Begins to watch. `root` need not exist; `owner` is kept until close. */
struct dv_plugin_watcher *dv_plugin_watcher_open(struct dv_loop *loop, dv_str root,
                                                 struct dv_plugin_watcher_owner *owner,
                                                 struct dv_err *err);
void dv_plugin_watcher_close(struct dv_plugin_watcher *watcher, dv_closed_fn *closed, void *ctx);

/* Whether everything has been looked at once. */
bool dv_plugin_watcher_has_scanned(const struct dv_plugin_watcher *watcher);
/* Why the last scan was not complete; DV_OK: it was. */
const struct dv_err *dv_plugin_watcher_err(const struct dv_plugin_watcher *watcher);
/* Whether nothing waits to be looked at. */
bool dv_plugin_watcher_is_idle(const struct dv_plugin_watcher *watcher);

#endif
