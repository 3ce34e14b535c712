/* volume_files.h - the files of a configMap, secret, downwardAPI or projected volume. */
#ifndef DV_WORKLOAD_VOLUME_FILES_H
#define DV_WORKLOAD_VOLUME_FILES_H

#include "base/str.h"

struct dv_api_volume;
struct dv_arena;
struct dv_volume;
struct dv_volume_input;

/* Sets the files of a volume that has some, or its problem. */
void dv_volume_fill(const struct dv_volume_input *input, const struct dv_api_volume *source,
                    struct dv_arena *arena, struct dv_volume *volume);

#endif
