/* volume_files.h - the files of a configMap, secret, downwardAPI or projected volume. */
#ifndef DV_WORKLOAD_VOLUME_FILES_H
#define DV_WORKLOAD_VOLUME_FILES_H

#include <stdint.h>

#include "base/str.h"

struct dv_api_volume;
struct dv_arena;
struct dv_volume;
struct dv_volume_input;

/* What the volumes of one pod have in common: zeroed, with the first two set. */
struct dv_volume_filling {
    const struct dv_volume_input *input;
    struct dv_arena *arena;
    uint64_t n_bytes;   /* of all files so far */
    dv_str labels;      /* all of them, as a file has them: printed once for all files */
    dv_str annotations; /* likewise all of them, as a file has them */
};

/* Sets the files of a volume that has some, or its problem. */
void dv_volume_fill(struct dv_volume_filling *filling, const struct dv_api_volume *source,
                    struct dv_volume *volume);

#endif
