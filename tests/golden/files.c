#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "json/json.h"

enum { PATH_BYTES = 4096 };

static bool has_member(const struct dv_json *record, const char *name)
{
    return dv_json_get(record, dv_str_from_c(name)) != NULL;
}

static bool is_like(const struct golden_kind *kind, const struct dv_json *record)
{
    for (size_t i = 0; i < DV_COUNT(kind->has) && kind->has[i]; i++) {
        if (!has_member(record, kind->has[i]))
            return false;
    }
    for (size_t i = 0; i < DV_COUNT(kind->lacks) && kind->lacks[i]; i++) {
        if (has_member(record, kind->lacks[i]))
            return false;
    }
    return kind->has[0] != NULL;
}

/* The first kind that the first record of a file is like; n_kinds when it is like none. */
static size_t kind_by_content(const char *path, const struct golden_kind *kinds, size_t n_kinds)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_json *record = NULL;
    FILE *file = fopen(path, "r");
    size_t kind = 0;
    char *text = NULL;
    size_t size = 0;
    struct dv_err err;
    ssize_t n;

    if (!file)
        return n_kinds;
    n = getline(&text, &size, file);
    if (n > 0)
        record = dv_json_parse((dv_str){text, (size_t)n}, NULL, arena, &err);
    while (kind < n_kinds && !(record && is_like(&kinds[kind], record)))
        kind++;
    free(text);
    (void)fclose(file); /* was only read */
    return kind;
}

static size_t kind_of(const char *dir, const char *name, const struct golden_kind *kinds,
                      size_t n_kinds)
{
    char path[PATH_BYTES];

    for (size_t i = 0; i < n_kinds; i++) {
        if (fnmatch(kinds[i].name, name, 0) == 0)
            return i;
    }
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return kind_by_content(path, kinds, n_kinds);
}

static int is_jsonl(const struct dirent *entry)
{
    return dv_str_ends_with(dv_str_from_c(entry->d_name), DV_STR(".jsonl"));
}

static unsigned use_file(const char *dir, const char *name, size_t kind, golden_use_fn *use,
                         void *ctx)
{
    char path[PATH_BYTES];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "r");
    if (!file) {
        printf("%s: %s\n", path, strerror(errno));
        return 1;
    }
    use(kind, name, file, ctx);
    (void)fclose(file); /* was only read */
    return 0;
}

unsigned golden_files(const char *dir, const struct golden_kind *kinds, size_t n_kinds,
                      golden_use_fn *use, void *ctx)
{
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, is_jsonl, alphasort);
    unsigned n_failed = 0;

    if (n < 0) {
        printf("%s: %s\n", dir, strerror(errno));
        return 1;
    }
    for (size_t kind = 0; kind < n_kinds; kind++) {
        for (int i = 0; i < n; i++) {
            if (kind_of(dir, entries[i]->d_name, kinds, n_kinds) == kind)
                n_failed += use_file(dir, entries[i]->d_name, kind, use, ctx);
        }
    }
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    return n_failed;
}
