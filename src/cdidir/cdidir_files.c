#include "cdidir/cdidir_files.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/log.h"
#include "cdi/cdi.h"
#include "cdidir/cdidir.h"
#include "cdidir/cdidir_scan.h"

struct file {
    struct dv_cdi_look look; /* its path is the spec's */
    struct dv_cdi_spec *spec;
    uint64_t seen; /* the last look at everything that found it */
    char key[];
};

struct problems {
    struct dv_link link; /* among those retired */
    struct dv_arena *arena;
    struct dv_cdi_problem *v;
    size_t n;
    size_t n_dirs; /* the first of them */
};

/* ---- problems ---- */

static struct problems *problems_new(size_t n)
{
    struct dv_arena *arena = dv_arena_new();
    struct problems *problems = DV_NEW(arena, struct problems);

    problems->arena = arena;
    problems->v = DV_NEW_ARRAY(arena, struct dv_cdi_problem, n);
    return problems;
}

static void problems_free(struct problems *problems)
{
    dv_link_remove(&problems->link);
    dv_arena_free(problems->arena);
}

static void log_problem(dv_str path, dv_str reason)
{
    dv_log(DV_LOG_WARN, "cdi: left out", DV_F_STR("path", path), DV_F_STR("reason", reason));
}

static bool had_problem(const struct dv_cdi_spec *spec, dv_str reason)
{
    for (size_t i = 0; spec && i < spec->n_problems; i++) {
        if (dv_str_eq(spec->problems[i], reason))
            return true;
    }
    return false;
}

static void log_new_problems(const struct dv_cdi_spec *spec, const struct dv_cdi_spec *before)
{
    for (size_t i = 0; i < spec->n_problems; i++) {
        if (!had_problem(before, spec->problems[i]))
            log_problem(spec->path, spec->problems[i]);
    }
}

static bool had_dir_problem(const struct problems *before, const struct dv_cdi_problem *problem)
{
    for (size_t i = 0; i < before->n_dirs; i++) {
        if (dv_str_eq(before->v[i].path, problem->path) &&
            dv_str_eq(before->v[i].reason, problem->reason))
            return true;
    }
    return false;
}

static bool are_dirs_same(const struct problems *before, const struct dv_cdi_scan *scan)
{
    if (before->n_dirs != scan->problems.n)
        return false;
    for (size_t i = 0; i < before->n_dirs; i++) {
        if (!dv_str_eq(before->v[i].path, scan->problems.v[i].path) ||
            !dv_str_eq(before->v[i].reason, scan->problems.v[i].reason))
            return false;
    }
    return true;
}

/* Lists the problems of directories, and then those of the specs that the index has now. */
static void list_problems(struct dv_cdi_files *files, const struct dv_cdi_problem *dirs,
                          size_t n_dirs)
{
    const struct dv_cdi_spec *spec;
    struct problems *problems;
    size_t n = n_dirs;

    for (size_t at = 0; (spec = dv_cdi_index_refused(files->index, &at)) != NULL;)
        n += spec->n_problems;
    problems = problems_new(n);
    for (; problems->n_dirs < n_dirs; problems->n_dirs++)
        problems->v[problems->n++] =
            (struct dv_cdi_problem){dv_str_copy(dirs[problems->n_dirs].path, problems->arena),
                                    dv_str_copy(dirs[problems->n_dirs].reason, problems->arena)};
    for (size_t at = 0; (spec = dv_cdi_index_refused(files->index, &at)) != NULL;) {
        for (size_t i = 0; i < spec->n_problems; i++)
            problems->v[problems->n++] = (struct dv_cdi_problem){spec->path, spec->problems[i]};
    }
    dv_list_push(&files->retired, &files->problems->link);
    files->problems = problems;
}

/* ---- files ---- */

/* What a look has changed. */
struct outcome {
    bool is_changed;
    bool has_problems; /* a file that had some, or has some now */
};

static struct file *file_new(struct dv_cdi_files *files, dv_str key)
{
    struct file *file = dv_alloc(sizeof(*file) + key.n);

    memcpy(file->key, key.p, key.n);
    file->look.key = (dv_str){file->key, key.n};
    (void)dv_map_set(&files->by_key, file->look.key, file); /* it was absent */
    return file;
}

static void drop_spec(struct dv_cdi_files *files, struct file *file, struct outcome *outcome)
{
    if (!file->spec)
        return;
    outcome->has_problems = outcome->has_problems || file->spec->n_problems > 0;
    dv_cdi_index_remove(files->index, file->spec);
    dv_cdi_spec_unref(file->spec); /* the index keeps it for a while */
}

static void remove_file(struct dv_cdi_files *files, struct file *file, struct outcome *outcome)
{
    outcome->is_changed = true;
    drop_spec(files, file, outcome);
    files->n_bytes -= file->look.n_counted;
    (void)dv_map_remove(&files->by_key, file->look.key);
    free(file);
}

/* When and where it was written may differ without its spec. */
static void note_look(struct dv_cdi_files *files, struct file *file, const struct dv_cdi_look *look)
{
    dv_str key = file->look.key;

    files->n_bytes += look->n_counted - file->look.n_counted;
    file->look = *look;
    file->look.key = key;
    file->look.path = file->spec->path;
    file->seen = files->n_looks;
}

static void take_found(struct dv_cdi_files *files, struct dv_cdi_found *found,
                       struct outcome *outcome)
{
    struct file *file = dv_map_get(&files->by_key, found->look.key);

    if (found->is_gone) {
        if (file)
            remove_file(files, file, outcome);
        return;
    }
    if (found->spec) {
        log_new_problems(found->spec, file ? file->spec : NULL);
        if (!file)
            file = file_new(files, found->look.key);
        drop_spec(files, file, outcome); /* first: the index has a path once */
        file->spec = found->spec;
        found->spec = NULL;
        dv_cdi_index_add(files->index, file->spec);
        outcome->is_changed = true;
        outcome->has_problems = outcome->has_problems || file->spec->n_problems > 0;
    }
    assert(file); /* what is as before was told to the scan */
    note_look(files, file, &found->look);
}

static void remove_unseen(struct dv_cdi_files *files, struct outcome *outcome)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&files->by_key, &at)) != NULL;) {
        struct file *file = entry->value;

        if (file->seen != files->n_looks)
            remove_file(files, file, outcome);
    }
}

static void take_dirs(struct dv_cdi_files *files, const struct dv_cdi_scan *scan)
{
    for (size_t i = 0; i < scan->problems.n; i++) {
        if (!had_dir_problem(files->problems, &scan->problems.v[i]))
            log_problem(scan->problems.v[i].path, scan->problems.v[i].reason);
    }
    list_problems(files, scan->problems.v, scan->problems.n);
}

bool dv_cdi_files_take(struct dv_cdi_files *files, struct dv_cdi_scan *scan)
{
    struct outcome outcome = {0};
    bool is_whole = !scan->is_named;

    files->n_looks++;
    for (size_t i = 0; i < scan->found.n; i++)
        take_found(files, &scan->found.v[i], &outcome);
    if (is_whole) {
        remove_unseen(files, &outcome);
        files->is_over = scan->is_over;
    }
    if (is_whole && !are_dirs_same(files->problems, scan)) {
        outcome.is_changed = true;
        take_dirs(files, scan);
    } else if (outcome.has_problems) {
        list_problems(files, files->problems->v, files->problems->n_dirs);
    }
    if (outcome.is_changed)
        dv_log(DV_LOG_DEBUG, "cdi: specs read", DV_F_U64("files", files->by_key.n),
               DV_F_U64("problems", files->problems->n));
    return outcome.is_changed;
}

/* ---- for scans ---- */

void dv_cdi_files_tell(const struct dv_cdi_files *files, struct dv_cdi_scan *scan)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&files->by_key, &at)) != NULL;)
        dv_cdi_scan_know(scan, &((const struct file *)entry->value)->look);
}

void dv_cdi_files_name(const struct dv_cdi_files *files, struct dv_cdi_scan *scan, dv_str key,
                       dv_str path, uint32_t priority)
{
    const struct file *file = dv_map_get(&files->by_key, key);

    if (!scan->is_named)
        scan->n_bytes = files->n_bytes;
    dv_cdi_scan_name(scan, path, priority);
    if (file) {
        struct dv_cdi_look look = file->look;

        look.is_sure = false;
        scan->n_bytes -= look.n_counted;
        dv_cdi_scan_know(scan, &look);
    }
}

bool dv_cdi_files_doubts(const struct dv_cdi_files *files, const struct dv_cdi_scan *scan)
{
    return files->is_over || scan->is_over ||
           files->by_key.n + scan->found.n > DV_CDI_DIRS_FILES_MAX;
}

/* ---- life ---- */

void dv_cdi_files_init(struct dv_cdi_files *files)
{
    *files = (struct dv_cdi_files){.index = dv_cdi_index_new(NULL, 0)};
    dv_map_init(&files->by_key);
    dv_list_init(&files->retired);
    files->problems = problems_new(0);
}

void dv_cdi_files_sweep(struct dv_cdi_files *files)
{
    struct dv_link *link;

    dv_cdi_index_sweep(files->index);
    while ((link = dv_list_first(&files->retired)) != NULL)
        problems_free(DV_CONTAINER(link, struct problems, link));
}

void dv_cdi_files_fini(struct dv_cdi_files *files)
{
    const struct dv_map_entry *entry;

    dv_cdi_files_sweep(files);
    problems_free(files->problems);
    dv_cdi_index_free(files->index);
    for (size_t at = 0; (entry = dv_map_next(&files->by_key, &at)) != NULL;) {
        struct file *file = entry->value;

        dv_cdi_spec_unref(file->spec);
        free(file);
    }
    dv_map_fini(&files->by_key);
}

size_t dv_cdi_files_problems(const struct dv_cdi_files *files,
                             const struct dv_cdi_problem **problems)
{
    *problems = files->problems->v;
    return files->problems->n;
}
