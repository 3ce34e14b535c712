/* cdidir.h - the directories with CDI specs: read, watched, and always at hand as an index.
 *
 *     inotify events --> settle --> a look on a worker thread --.
 *     a name that is not there --> a look, now -----------------+--> what differs --> index
 *                                                                                 \-> changed()
 *
 * An event names a file, and only that one is looked at: what is new, changed or gone costs what is
 * in it, however many files there are. A look at all of them follows when events were lost, or are
 * about directories; it reads those files whose inode, size or times differ from the last look. A
 * directory need not exist; it is watched for from the nearest directory above it that does. What a
 * link points to, elsewhere, is not watched: the next look finds it changed. */
#ifndef DV_CDIDIR_H
#define DV_CDIDIR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "loop/loop.h"

struct dv_arena;
struct dv_cdi_edits;
struct dv_cdi_index;
struct dv_cdi_spec;
struct dv_err;

/* Files in all directories together, and their bytes. Drivers write a file for each claim that they
 * prepare: that is more than the claims of the largest machines. What is over it is a problem
 * of its file. */
#define DV_CDI_DIRS_FILES_MAX 16384u
#define DV_CDI_DIRS_BYTES_MAX (64u * 1024u * 1024u)

/* A file or a directory that cannot be used, and why. */
struct dv_cdi_problem {
    dv_str path;
    dv_str reason;
};

/* "/etc/cdi:/var/run/cdi" into its parts, in `arena`; empty ones are left out. */
size_t dv_cdi_dirs_split(dv_str text, struct dv_arena *arena, dv_str **dirs);

/* -- Reading once --------------------------------------------------------------------------- */

struct dv_cdi_reading {
    struct dv_cdi_spec **specs; /* a reference each; those that are refused too */
    size_t n_specs;
    struct dv_cdi_problem *problems; /* of directories; those of files are in their specs */
    size_t n_problems;
};

/* The *.json and *.yaml files of the directories, by name; later directories win. One that is not
 * there has none. A spec is a regular file, or a link: one to nothing, or to what is no file (a
 * pipe, a device: never opened), is refused. Other entries are passed over. Blocks: for start-up,
 * tools and jobs. */
void dv_cdi_dirs_read(const dv_str *dirs, size_t n_dirs, struct dv_arena *arena,
                      struct dv_cdi_reading *reading);
void dv_cdi_reading_fini(struct dv_cdi_reading *reading);

/* -- On the loop ---------------------------------------------------------------------------- */

struct dv_cdi_dirs;

struct dv_cdi_dirs_options {
    /* There are other specs, or other problems. Never called from within a function of
     * this header. May be NULL. */
    void (*changed)(void *ctx);
    void *ctx;
};

/* Reads them before it returns. Keeps copies of the texts. Fails when nothing can be watched at
 * all; a single directory that cannot be is a problem, and looked at from time to time. */
struct dv_cdi_dirs *dv_cdi_dirs_open(struct dv_loop *loop, const dv_str *dirs, size_t n_dirs,
                                     const struct dv_cdi_dirs_options *options, struct dv_err *err);
void dv_cdi_dirs_close(struct dv_cdi_dirs *dirs, dv_closed_fn *closed, void *ctx);

/* Never NULL, and always the same one: it changes with the files. Its specs, entries and all that
 * is resolved from it stay until the callback of the loop that runs now has returned. */
const struct dv_cdi_index *dv_cdi_dirs_index(const struct dv_cdi_dirs *dirs);
/* Directories first, then files in the order of the index; a file may have several. They stay as
 * long as the index. */
size_t dv_cdi_dirs_problems(const struct dv_cdi_dirs *dirs, const struct dv_cdi_problem **problems);

/* Looks at everything now. Costs a look at each file, and the reading of those that differ. True
 * when there are other specs or problems; `changed` is called then, too. */
bool dv_cdi_dirs_refresh(struct dv_cdi_dirs *dirs);

/* dv_cdi_resolve. When a name is not there, or had by two, once more after a look at the files that
 * the kernel has told of by now, as after a driver has answered that a device is ready. Should that
 * not help, after a refresh, unless there was one for such a name a moment ago. The error says
 * where was looked and what is there. */
DV_CHECKED bool dv_cdi_dirs_resolve(struct dv_cdi_dirs *dirs, const dv_str *names, size_t n_names,
                                    struct dv_arena *arena, struct dv_cdi_edits *edits,
                                    struct dv_err *err);

#endif
