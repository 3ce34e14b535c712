/* cdidir_files.h - the files as the last looks found them, and the index of what they say. */
#ifndef DV_CDIDIR_FILES_H
#define DV_CDIDIR_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

struct dv_cdi_index;
struct dv_cdi_problem;
struct dv_cdi_scan;

struct dv_cdi_files {
    struct dv_map by_key; /* struct file */
    struct dv_cdi_index *index;
    struct problems *problems; /* replaced as a whole */
    struct dv_list retired;    /* those replaced, until they are swept */
    uint64_t n_bytes;          /* of all files that count */
    uint64_t n_looks;
    bool is_over; /* there is more than the limits allow: what comes first decides */
};

void dv_cdi_files_init(struct dv_cdi_files *files);
void dv_cdi_files_fini(struct dv_cdi_files *files);

/* Tells a scan of everything what is known. */
void dv_cdi_files_tell(const struct dv_cdi_files *files, struct dv_cdi_scan *scan);
/* Has a scan look at one file, whatever is known of its stamps: something was done to it. */
void dv_cdi_files_name(const struct dv_cdi_files *files, struct dv_cdi_scan *scan, dv_str key,
                       dv_str path, uint32_t priority);
/* Whether that may show something else than a scan of everything would. */
bool dv_cdi_files_doubts(const struct dv_cdi_files *files, const struct dv_cdi_scan *scan);
/* Takes what the scan found, with its new specs; what it replaces stays until it is swept. True
 * when specs or problems differ. */
bool dv_cdi_files_take(struct dv_cdi_files *files, struct dv_cdi_scan *scan);
void dv_cdi_files_sweep(struct dv_cdi_files *files);

/* Directories first, then files in the order of the index. */
size_t dv_cdi_files_problems(const struct dv_cdi_files *files,
                             const struct dv_cdi_problem **problems);

#endif
