/* run_folder.h - a folder of a command that runs: its bundle, and where its engine writes numbers.
 */
#ifndef DV_CLI_RUN_FOLDER_H
#define DV_CLI_RUN_FOLDER_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;

struct dv_run_folder {
    dv_str path; /* empty: there is none */
    int fd;      /* locked for as long as we live; -1: none */
};

/* Makes one that only this user can read. Folders of davits that were killed are removed. */
DV_CHECKED bool dv_run_folder_make(struct dv_arena *arena, struct dv_run_folder *folder,
                                   struct dv_err *err);
void dv_run_folder_remove(struct dv_run_folder *folder);

#endif
