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

/* The limit of sockets and directories that one listing reports; more are left out, with an
 * error. */
#define DV_PLUGIN_SCAN_FOUND_MAX 20000u

/* Tells a socket file from one that takes its place. The inode's number alone is not enough: it is
 * used again, often at once. */
struct dv_plugin_file_id {
    uint64_t dev;
    uint64_t ino;
    uint64_t born_ns; /* time of the last change where the file system knows no time of birth */
};

enum dv_plugin_scan_kind {
    DV_PLUGIN_SCAN_MAKE, /* makes the directory and those above it */
    DV_PLUGIN_SCAN_LIST, /* lists the directory; links to directories are not followed */
    DV_PLUGIN_SCAN_LOOK, /* looks at the paths; links are followed */
};

enum dv_plugin_found_kind {
    /* DV_PLUGIN_SCAN_LOOK: there is nothing, or nothing that can be looked at. */
    DV_PLUGIN_FOUND_NOTHING,
    DV_PLUGIN_FOUND_OTHER, /* DV_PLUGIN_SCAN_LOOK: a file of no interest */
    DV_PLUGIN_FOUND_SOCKET,
    DV_PLUGIN_FOUND_DIR,
    DV_PLUGIN_FOUND_DIR_LINK, /* DV_PLUGIN_SCAN_LOOK: a link to a directory */
};

struct dv_plugin_found {
    dv_str path;
    enum dv_plugin_found_kind kind;
    struct dv_plugin_file_id file_id; /* for a socket */
};

struct dv_plugin_scan {
    struct dv_work work; /* the owner sets `done`, dv_plugin_scan_new all else */
    void *owner;         /* for the owner's use */
    enum dv_plugin_scan_kind kind;
    struct dv_arena *arena; /* holds all texts here, also those that the owner adds */
    DV_VEC(dv_str) paths;   /* in the arena; only DV_PLUGIN_SCAN_LOOK may have more than one */
    DV_VEC(struct dv_plugin_found) found;
    struct dv_err err; /* DV_OK: there is none */
};

/* Copies the path. */
struct dv_plugin_scan *dv_plugin_scan_new(enum dv_plugin_scan_kind kind, dv_str path);
void dv_plugin_scan_add(struct dv_plugin_scan *scan, dv_str path); /* to DV_PLUGIN_SCAN_LOOK */
void dv_plugin_scan_free(struct dv_plugin_scan *scan);             /* NULL is fine */

#endif
