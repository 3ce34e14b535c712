/* volume_files.h - the files of a configMap, secret, downwardAPI or projected volume. */
#ifndef DV_WORKLOAD_VOLUME_FILES_H
#define DV_WORKLOAD_VOLUME_FILES_H

#include <stdint.h>

#include "base/str.h"

struct dv_api_volume;
struct dv_arena;
struct dv_volume;
struct dv_volume_input;

/* Sets the files of a volume that has some, or its problem. */
void dv_volume_fill(const struct dv_volume_input *input, const struct dv_api_volume *source,
                    struct dv_arena *arena, struct dv_volume *volume);

/* The user that all containers of the pod run as; NULL: they say none, or several. Files that only
 * their owner reads belong to that user. */
const int64_t *dv_volume_user(const struct dv_volume_input *input);

/* Cleans the path of a file in a volume: "a//./b" is "a/b". Returns what is wrong with it, or
 * NULL. */
const char *dv_volume_path_fault(dv_str path, struct dv_arena *arena, dv_str *clean);

#endif
