/* cdidir_places.h - the watches on the directories, and on those above them. */
#ifndef DV_CDIDIR_PLACES_H
#define DV_CDIDIR_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_cdi_scan;
struct dv_watch;
struct dv_watch_event;

/* A directory that is watched, if it is. */
struct dv_cdi_spot {
    dv_str path;
    bool is_watched;
    bool is_alias; /* through the watch on the same directory under another name */
    uint64_t dev;  /* which one it was when its watch was set */
    uint64_t ino;
};

/* One of the directories with specs. */
struct dv_cdi_place {
    struct dv_cdi_spot self;
    struct dv_cdi_spot above; /* the nearest one above it that is there */
    dv_str awaited;           /* the entry of that one on the way to us */
};

/* `dir` is kept. */
void dv_cdi_place_init(struct dv_cdi_place *place, dv_str dir);
/* Sets the watches as things are now; before the scan, so that nothing falls between. What cannot
 * be watched is a problem of the scan. False: there is such a thing. */
bool dv_cdi_places_watch(struct dv_cdi_place *places, size_t n_places, struct dv_watch *watch,
                         struct dv_cdi_scan *scan);

/* What an event asks for. */
enum dv_cdi_heed {
    DV_CDI_HEED_NOTHING,
    DV_CDI_HEED_FILE, /* a look at the file that it names, of all places with that directory */
    DV_CDI_HEED_ALL,  /* a look at everything */
};
/* Notes which watches are gone, too. */
enum dv_cdi_heed dv_cdi_places_heed(struct dv_cdi_place *places, size_t n_places,
                                    const struct dv_watch_event *event);

#endif
