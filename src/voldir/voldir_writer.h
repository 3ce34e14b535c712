/* voldir_writer.h - the files of a volume, replaced all at once.
 *
 *     <volume>/..2026_11_16_14_00_00.1234567890/a, sub/b     the files
 *     <volume>/..data -> ..2026_11_16_14_00_00.1234567890    replaced in one rename
 *     <volume>/a -> ..data/a, <volume>/sub -> ..data/sub     what containers open */
#ifndef DV_VOLDIR_WRITER_H
#define DV_VOLDIR_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"

struct dv_arena;
struct dv_err;
struct dv_volume;

/* Makes the volume in directory `dir` hold exactly its files, for group `group` (NULL: root's).
 * What it holds already is not written. A crash at any point leaves the old files or the new ones,
 * and the next call finishes. A failure leaves the old ones. */
DV_CHECKED bool dv_voldir_write_files(int dir, const struct dv_volume *volume, const int64_t *group,
                                      struct dv_arena *arena, struct dv_err *err);

#endif
