/* scratch.h - directories that tests work in, and remove with all that is in them. */
#ifndef DV_TESTS_SCRATCH_H
#define DV_TESTS_SCRATCH_H

#include <stddef.h>

/* Makes "/tmp/davit-NAME-xxxxxx" and writes its path into `path`. */
void scratch_make(const char *name, char *path, size_t size);
/* The same in memory where the system has such a place: how long a disk takes is no part of a test
 * that only wants files. */
void scratch_make_in_memory(const char *name, char *path, size_t size);
void scratch_remove(const char *path);

#endif
