/* store_files.h - the files of a store: who holds them, how a new database takes its place, how a
 * damaged one leaves it.
 *
 *     path            the database          path-wal     its log, while it is open
 *     path.lock       held for the store's life; says who holds it
 *     path.mark       how far path-wal has been acknowledged; see wal.h
 *     path.tmp        a new database being made; worthless after a crash
 *     path.next       a new database, complete. While it is there, path and path-wal are to be set
 *                     aside under the name that it notes, and it is to take their place.
 *     path.copying    a copy that is being made for somebody; worthless after a crash
 *
 * So a database at `path` is always a complete one, and a crash between any two steps of a
 * replacement is finished by the next open: the damaged file is never used again, and its name is
 * never lost. */
#ifndef DV_STORE_FILES_H
#define DV_STORE_FILES_H

#include <limits.h>
#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;
struct dv_store_schema;

/* What becomes of the rows of a damaged database. */
enum dv_store_rest {
    DV_STORE_DROP_ROWS,
    DV_STORE_KEEP_ROWS, /* keep the rows that can be read */
};

struct dv_store_files {
    const char *path;
    const char *wal;
    const char *journal;
    const char *lock;
    const char *mark;
    const char *tmp;
    const char *next;
    const char *dir;
    int lock_fd; /* negative: not held */
    /* The first of the files that others could read or write, and the mode that it had; 0: there
     * was none. */
    const char *fixed;
    unsigned old_mode;
};

/* Sets the names of the files, in `arena`, and takes the lock. DV_ALREADY_EXISTS: another process
 * holds it. */
DV_CHECKED bool dv_store_files_open(struct dv_store_files *files, dv_str path,
                                    struct dv_arena *arena, struct dv_err *err);
void dv_store_files_close(struct dv_store_files *files);

/* Makes sure that there is a database at files->path: finishes a replacement that was cut off,
 * makes a database where there is none, and replaces one that nothing can be read of. */
DV_CHECKED bool dv_store_files_prepare(const struct dv_store_files *files,
                                       const struct dv_store_schema *schema,
                                       enum dv_store_rest rest, struct dv_err *err);
/* Replaces the database, which must be closed, by one that notes where the old one is. */
DV_CHECKED bool dv_store_files_replace(const struct dv_store_files *files,
                                       const struct dv_store_schema *schema,
                                       enum dv_store_rest rest, struct dv_err *err);

/* Prints a name under which the files can be kept when another database takes their place. */
void dv_store_files_name_former(const struct dv_store_files *files, char name[PATH_MAX]);
/* Lets the database at files->tmp, which is complete and notes `set_aside`, take the place of the
 * present one, which must be closed and is kept under that name. */
DV_CHECKED bool dv_store_files_take_tmp(const struct dv_store_files *files, const char *set_aside,
                                        struct dv_err *err);

/* Moves the log alone out of the way; `name` is set to where it is then. */
DV_CHECKED bool dv_store_files_drop_wal(const struct dv_store_files *files, char name[PATH_MAX],
                                        struct dv_err *err);

#endif
