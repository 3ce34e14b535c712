/* plugin_scan.h - looks at directories and files, as jobs on a worker thread.
 *
 * One job makes the root, lists one directory, or looks at some paths. It gets copies, shares
 * nothing, and is read by the loop when it is done. */
#ifndef DV_PLUGIN_SCAN_H
#define DV_PLUGIN_SCAN_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "loop/loop.h"

struct dv_arena;

/* Sockets and directories that one listing tells of; what is more is left out, as an error. */
#define DV_PLUGIN_SCAN_FOUND_MAX 20000u

/* Tells a socket file from one that takes its place: inode numbers are used again, often at once.
 */
struct dv_plugin_identity {
    uint64_t dev;
    uint64_t ino;
    uint64_t born_ns; /* of its last change, where the file system knows no birth */
};

enum dv_plugin_scan_kind {
    DV_PLUGIN_SCAN_MAKE, /* the directory, and those above it */
    DV_PLUGIN_SCAN_LIST, /* what is in it, links not followed to directories */
    DV_PLUGIN_SCAN_LOOK, /* what the paths are, links followed */
};

enum dv_plugin_found_kind {
    DV_PLUGIN_FOUND_NOTHING, /* DV_PLUGIN_SCAN_LOOK: none there, or none that can be looked at */
    DV_PLUGIN_FOUND_OTHER,   /* DV_PLUGIN_SCAN_LOOK: a file of no interest */
    DV_PLUGIN_FOUND_SOCKET,
    DV_PLUGIN_FOUND_DIR,
    DV_PLUGIN_FOUND_DIR_LINK, /* DV_PLUGIN_SCAN_LOOK: a link to a directory */
};

struct dv_plugin_found {
    dv_str path;
    enum dv_plugin_found_kind kind;
    struct dv_plugin_identity identity; /* of a socket */
};

struct dv_plugin_scan {
    struct dv_work work; /* `done` is the owner's; the rest is set by new */
    void *owner;         /* the owner's */
    enum dv_plugin_scan_kind kind;
    struct dv_arena *arena; /* of all texts here, also those that the owner adds */
    DV_VEC(dv_str) paths;   /* one, but for DV_PLUGIN_SCAN_LOOK; in the arena */
    DV_VEC(struct dv_plugin_found) found;
    struct dv_err err; /* DV_OK: none */
};

/* Copies the path. */
struct dv_plugin_scan *dv_plugin_scan_new(enum dv_plugin_scan_kind kind, dv_str path);
void dv_plugin_scan_add(struct dv_plugin_scan *scan, dv_str path); /* to DV_PLUGIN_SCAN_LOOK */
void dv_plugin_scan_free(struct dv_plugin_scan *scan);             /* NULL is fine */

#endif
