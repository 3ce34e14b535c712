/* files.h - the files of a corpus' folder and what kind each is of, whatever it is called. */
#ifndef DV_GOLDEN_FILES_H
#define DV_GOLDEN_FILES_H

#include <stddef.h>
#include <stdio.h>

/* Files of JSON Lines. One whose name does not fit any kind's pattern is known by the members of
 * its first record. */
struct golden_kind {
    const char *name;     /* a shell pattern */
    const char *has[3];   /* up to the first NULL; with none it is known by its name alone */
    const char *lacks[2]; /* likewise */
};

typedef void golden_use_fn(size_t kind, const char *name, FILE *file, void *ctx);

/* Calls `use` for all files that end in .jsonl and are of one of the kinds: kind by kind in their
 * order, within one by name. Returns how many could not be opened, which it says. */
unsigned golden_files(const char *dir, const struct golden_kind *kinds, size_t n_kinds,
                      golden_use_fn *use, void *ctx);

#endif
