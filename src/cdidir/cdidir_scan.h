/* cdidir_scan.h - one look at all directories, or at some of their files: values in, values out,
 * and system calls between; it may run on a worker thread. */
#ifndef DV_CDIDIR_SCAN_H
#define DV_CDIDIR_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/str.h"

struct dv_arena;
struct dv_cdi_problem;
struct dv_cdi_spec;

/* What tells a file from what it was. */
struct dv_cdi_stamp {
    uint64_t dev;
    uint64_t ino;
    uint64_t size;
    int64_t mtime_ns;
    int64_t ctime_ns;
};

/* A file as a look found it. */
struct dv_cdi_look {
    dv_str key; /* of dv_cdi_file_key */
    dv_str path;
    uint32_t priority;
    struct dv_cdi_stamp stamp;
    bool is_sure;       /* the stamp tells of every change from now on */
    uint64_t hash;      /* of its text, or of why there is none */
    uint64_t n_counted; /* its bytes, as far as they count for the limit */
};

struct dv_cdi_found {
    struct dv_cdi_look look;
    struct dv_cdi_spec *spec; /* NULL: the one of the look before */
    bool is_gone;             /* it was named, and no spec is there */
};

struct dv_cdi_named_file {
    dv_str path;
    uint32_t priority;
};

struct dv_cdi_scan {
    struct dv_arena *arena; /* of all that follows */
    const dv_str *dirs;
    size_t n_dirs;
    struct dv_map known; /* struct dv_cdi_look, by key: of the look before */
    bool is_named;       /* only those, and no directory is listed: */
    struct {
        struct dv_cdi_named_file *v;
        size_t n;
        size_t size;
    } named;
    /* results */
    struct {
        struct dv_cdi_found *v; /* by priority and name */
        size_t n;
        size_t size;
    } found;
    struct {
        struct dv_cdi_problem *v; /* of directories */
        size_t n;
        size_t size;
    } problems;
    uint64_t n_bytes; /* of all files */
    bool is_over;     /* some are left out, or refused, for a limit on all of them */
};

/* "<dir>/<name>" */
dv_str dv_cdi_file_path(dv_str dir, dv_str name, struct dv_arena *arena);
/* "<priority>:<path>" */
dv_str dv_cdi_file_key(dv_str path, uint32_t priority, struct dv_arena *arena);

struct dv_cdi_scan *dv_cdi_scan_new(const dv_str *dirs, size_t n_dirs);
/* Frees the scan, with the specs that nobody took. NULL is fine. */
void dv_cdi_scan_free(struct dv_cdi_scan *scan);
void dv_cdi_scan_know(struct dv_cdi_scan *scan, const struct dv_cdi_look *look);
/* Has the scan look at this file, and at others that are named, instead of at everything. */
void dv_cdi_scan_name(struct dv_cdi_scan *scan, dv_str path, uint32_t priority);
/* Looks at the directories or files, as a job does: it blocks. */
void dv_cdi_scan_run(struct dv_cdi_scan *scan);
void dv_cdi_scan_add_problem(struct dv_cdi_scan *scan, dv_str path, dv_str reason);

#endif
