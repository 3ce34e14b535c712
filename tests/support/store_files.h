/* store_files.h - removes a store's files: for benchmarks and fuzzers, which open stores of their
 * own. */
#ifndef DV_TESTS_STORE_FILES_H
#define DV_TESTS_STORE_FILES_H

#include <stdio.h>
#include <unistd.h>

#include "base/defs.h"

static inline void store_files_remove(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".lock", ".mark"};

    for (size_t i = 0; i < DV_COUNT(suffixes); i++) {
        char name[220];

        (void)snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        (void)unlink(name); /* not all are there */
    }
}

#endif
