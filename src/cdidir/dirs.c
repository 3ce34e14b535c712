/* dirs.c - the directories with CDI specs, opened, watched and closed: events and lost names lead
 * to scans (cdidir_scan.c), what scans find goes into the files and their index (cdidir_files.c),
 * and who waits for a name is answered from the index. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cdidir/cdidir.h"
#include "cdidir/cdidir_files.h"
#include "cdidir/cdidir_places.h"
#include "cdidir/cdidir_scan.h"
#include "loop/loop.h"

/* A vendor's tool writes several files at a time: one look for all of them. */
#define SETTLE_MS 20u
/* Between looks at what cannot be watched. */
#define POLL_MS 10000u
/* Between looks at everything for names that are not there: with ten thousand files one takes some
 * 20 ms, and who asks for such a name asks again and again. */
#define MISS_MS 100u
/* For messages, which are cut anyway. */
#define DIRS_TEXT_BYTES_MAX 4096u

/* A file that events have named. */
struct named_file {
    dv_str key;
    dv_str path;
    uint32_t priority;
};

struct named_files {
    struct dv_arena *arena;
    struct dv_map by_key; /* struct named_file */
};

struct job {
    struct dv_work work;
    struct dv_cdi_dirs *dirs;
    struct dv_cdi_scan *scan;
    struct named_files named; /* what it looks at; none: everything */
    uint64_t number;          /* of the looks begun: the last one counts */
};

struct dv_cdi_dirs {
    struct dv_loop *loop;
    struct dv_arena *arena;
    dv_str *paths;
    struct dv_cdi_place *places;
    size_t n_paths;
    dv_str text;
    struct dv_cdi_dirs_options options;
    struct dv_watch *watch;
    struct dv_timer timer;    /* until the next look */
    struct job *job;          /* a look that is under way */
    struct named_files named; /* what to look at next; those of the job are not in it */
    bool wants_all;           /* all of it, that is */
    bool is_whole;            /* all that should be is watched */
    uint64_t n_looks;
    uint64_t n_whole_looks;
    uint64_t missed_ms; /* when everything was last looked at for a name; 0: never */
    struct dv_cdi_files files;
    struct dv_task sweep;
    struct dv_task tell;
    bool is_closing;
    size_t n_open; /* what closing waits for */
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* ---- files that events have named ---- */

static void named_files_init(struct named_files *named)
{
    named->arena = dv_arena_new();
    dv_map_init(&named->by_key);
}

static void named_files_fini(struct named_files *named)
{
    dv_arena_free(named->arena);
    dv_map_fini(&named->by_key);
}

static void named_files_clear(struct named_files *named)
{
    dv_map_clear(&named->by_key);
    dv_arena_reset(named->arena);
}

static void add_named_file(struct named_files *named, dv_str path, uint32_t priority)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str key = dv_cdi_file_key(path, priority, scratch);
    struct named_file *file;

    if (dv_map_get(&named->by_key, key))
        return; /* thousands of events may be about one file */
    file = DV_NEW(named->arena, struct named_file);
    file->key = dv_str_copy(key, named->arena);
    file->path = dv_str_copy(path, named->arena);
    file->priority = priority;
    (void)dv_map_set(&named->by_key, file->key, file); /* it was absent */
}

static void add_named_files(struct named_files *named, const struct named_files *more)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&more->by_key, &at)) != NULL;) {
        const struct named_file *file = entry->value;

        add_named_file(named, file->path, file->priority);
    }
}

/* ---- looking ---- */

static void on_sweep(struct dv_task *task)
{
    dv_cdi_files_sweep(&DV_CONTAINER(task, struct dv_cdi_dirs, sweep)->files);
}

static void on_tell(struct dv_task *task)
{
    struct dv_cdi_dirs *dirs = DV_CONTAINER(task, struct dv_cdi_dirs, tell);

    dirs->options.changed(dirs->options.ctx);
}

static void tell(struct dv_cdi_dirs *dirs)
{
    if (dirs->options.changed)
        dv_task_post(&dirs->tell, dirs->loop, on_tell);
}

/* True when something differs. */
static bool apply(struct dv_cdi_dirs *dirs, struct dv_cdi_scan *scan)
{
    bool is_changed = dv_cdi_files_take(&dirs->files, scan);

    if (is_changed)
        dv_task_post(&dirs->sweep, dirs->loop, on_sweep);
    return is_changed;
}

/* Watches first: what changes from now on brings another look. */
static struct dv_cdi_scan *begin_all(struct dv_cdi_dirs *dirs)
{
    struct dv_cdi_scan *scan = dv_cdi_scan_new(dirs->paths, dirs->n_paths);

    dirs->n_looks++;
    dirs->n_whole_looks++;
    dirs->wants_all = false;
    named_files_clear(&dirs->named);
    dirs->is_whole = dv_cdi_places_watch(dirs->places, dirs->n_paths, dirs->watch, scan);
    dv_cdi_files_tell(&dirs->files, scan);
    return scan;
}

static struct dv_cdi_scan *begin_named(struct dv_cdi_dirs *dirs, const struct named_files *named)
{
    struct dv_cdi_scan *scan = dv_cdi_scan_new(NULL, 0); /* no directory is listed */
    const struct dv_map_entry *entry;

    dirs->n_looks++;
    for (size_t at = 0; (entry = dv_map_next(&named->by_key, &at)) != NULL;) {
        const struct named_file *file = entry->value;

        dv_cdi_files_name(&dirs->files, scan, file->key, file->path, file->priority);
    }
    return scan;
}

static void schedule(struct dv_cdi_dirs *dirs, uint64_t delay_ms);
static void end_one(struct dv_cdi_dirs *dirs);

static void end_look(struct dv_cdi_dirs *dirs, struct dv_cdi_scan *scan)
{
    if (scan->is_named && dv_cdi_files_doubts(&dirs->files, scan))
        dirs->wants_all = true;
    else if (apply(dirs, scan))
        tell(dirs);
}

static void on_looked(struct dv_work *work, const struct dv_err *err)
{
    struct job *job = DV_CONTAINER(work, struct job, work);
    struct dv_cdi_dirs *dirs = job->dirs;

    dirs->job = NULL;
    /* A look that began later has seen more: it was at everything, or at these files, too. */
    if (!err && !dirs->is_closing && job->number == dirs->n_looks)
        end_look(dirs, job->scan);
    dv_cdi_scan_free(job->scan);
    named_files_fini(&job->named);
    free(job);
    if (dirs->is_closing)
        end_one(dirs);
    else if (dirs->wants_all || dirs->named.by_key.n > 0)
        schedule(dirs, SETTLE_MS);
    else if (!dirs->is_whole)
        schedule(dirs, POLL_MS);
}

static void run_scan(struct dv_work *work)
{
    dv_cdi_scan_run(DV_CONTAINER(work, struct job, work)->scan);
}

static void on_timer(struct dv_timer *timer)
{
    struct dv_cdi_dirs *dirs = DV_CONTAINER(timer, struct dv_cdi_dirs, timer);
    bool is_all = dirs->wants_all || !dirs->is_whole;
    struct job *job;

    if (!is_all && dirs->named.by_key.n == 0)
        return; /* somebody could not wait for it */
    job = DV_ALLOC(struct job);
    job->work.run = run_scan;
    job->work.done = on_looked;
    job->dirs = dirs;
    if (is_all) {
        named_files_init(&job->named);
        job->scan = begin_all(dirs);
    } else {
        job->named = dirs->named;
        named_files_init(&dirs->named);
        job->scan = begin_named(dirs, &job->named);
    }
    job->number = dirs->n_looks;
    dirs->job = job;
    dv_work_start(&job->work, dirs->loop);
}

/* When a look is under way, its end sees what is to come. */
static void schedule(struct dv_cdi_dirs *dirs, uint64_t delay_ms)
{
    uint64_t at_ms = dv_loop_now_ms(dirs->loop) + delay_ms;

    if (!dirs->job && (!dv_timer_is_set(&dirs->timer) || dirs->timer.at_ms > at_ms))
        dv_timer_start(&dirs->timer, dirs->loop, at_ms, on_timer);
}

static void on_event(void *ctx, const struct dv_watch_event *event)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_cdi_dirs *dirs = ctx;
    enum dv_cdi_heed heed = dv_cdi_places_heed(dirs->places, dirs->n_paths, event);

    if (heed == DV_CDI_HEED_NOTHING)
        return;
    if (heed == DV_CDI_HEED_ALL)
        dirs->wants_all = true;
    for (size_t i = 0; heed == DV_CDI_HEED_FILE && i < dirs->n_paths; i++) {
        if (dv_str_eq(dirs->places[i].self.path, event->dir))
            add_named_file(&dirs->named, dv_cdi_file_path(dirs->paths[i], event->name, scratch),
                           (uint32_t)i);
    }
    schedule(dirs, SETTLE_MS);
}

static bool look_at_all(struct dv_cdi_dirs *dirs)
{
    struct dv_cdi_scan *scan = begin_all(dirs);
    bool is_changed;

    dv_cdi_scan_run(scan);
    is_changed = apply(dirs, scan);
    dv_cdi_scan_free(scan);
    if (!dirs->is_whole)
        schedule(dirs, POLL_MS);
    return is_changed;
}

/* The one under way, unless a later look was faster. */
static const struct job *job_that_counts(const struct dv_cdi_dirs *dirs)
{
    return dirs->job && dirs->job->number == dirs->n_looks ? dirs->job : NULL;
}

/* Looks at what events have named, and at what a job is looking at: the job's answer does not count
 * then. */
static bool look_at_named(struct dv_cdi_dirs *dirs)
{
    const struct job *job = job_that_counts(dirs);
    struct dv_cdi_scan *scan;
    bool has_doubts;
    bool is_changed = false;

    if (job)
        add_named_files(&dirs->named, &job->named);
    if (dirs->named.by_key.n == 0)
        return false;
    scan = begin_named(dirs, &dirs->named);
    named_files_clear(&dirs->named);
    dv_cdi_scan_run(scan);
    has_doubts = dv_cdi_files_doubts(&dirs->files, scan);
    if (!has_doubts)
        is_changed = apply(dirs, scan);
    dv_cdi_scan_free(scan);
    return has_doubts ? look_at_all(dirs) : is_changed;
}

/* What was done until now, as far as events tell. */
static bool catch_up(struct dv_cdi_dirs *dirs)
{
    const struct job *job = job_that_counts(dirs);
    bool is_changed;

    dv_watch_drain(dirs->watch);
    if (dirs->wants_all || (job && job->named.by_key.n == 0))
        is_changed = look_at_all(dirs);
    else
        is_changed = look_at_named(dirs);
    if (is_changed)
        tell(dirs);
    return is_changed;
}

/* ---- life ---- */

static dv_str join(const dv_str *paths, size_t n_paths, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, DIRS_TEXT_BYTES_MAX);
    for (size_t i = 0; i < n_paths; i++)
        dv_buf_printf(&buf, "%s%.*s", i > 0 ? ", " : "", DV_FMT(paths[i]));
    text = n_paths > 0 ? dv_str_copy(dv_buf_str(&buf), arena) : DV_STR("no directory");
    dv_buf_fini(&buf);
    return text;
}

static void dirs_free(struct dv_cdi_dirs *dirs)
{
    dv_cdi_files_fini(&dirs->files);
    named_files_fini(&dirs->named);
    dv_arena_free(dirs->arena);
    free(dirs);
}

struct dv_cdi_dirs *dv_cdi_dirs_open(struct dv_loop *loop, const dv_str *paths, size_t n_paths,
                                     const struct dv_cdi_dirs_options *options, struct dv_err *err)
{
    struct dv_cdi_dirs *dirs = DV_ALLOC(struct dv_cdi_dirs);

    dirs->loop = loop;
    dirs->arena = dv_arena_new();
    dirs->paths = DV_NEW_ARRAY(dirs->arena, dv_str, n_paths);
    dirs->places = DV_NEW_ARRAY(dirs->arena, struct dv_cdi_place, n_paths);
    dirs->n_paths = n_paths;
    for (size_t i = 0; i < n_paths; i++) {
        dirs->paths[i] = dv_str_copy(paths[i], dirs->arena);
        dv_cdi_place_init(&dirs->places[i], dirs->paths[i]);
    }
    dirs->text = join(dirs->paths, n_paths, dirs->arena);
    dirs->options = *options;
    dv_cdi_files_init(&dirs->files);
    named_files_init(&dirs->named);
    dirs->watch = dv_watch_open(loop, on_event, dirs, err);
    if (!dirs->watch) {
        (void)dv_wrap(err, "CDI specs in %.*s", DV_FMT(dirs->text));
        dirs_free(dirs);
        return NULL;
    }
    (void)look_at_all(dirs); /* all is new */
    return dirs;
}

static void end_one(struct dv_cdi_dirs *dirs)
{
    dv_closed_fn *closed = dirs->closed;
    void *ctx = dirs->closed_ctx;

    if (--dirs->n_open > 0)
        return;
    dirs_free(dirs);
    if (closed)
        closed(ctx);
}

static void on_watch_closed(void *ctx)
{
    end_one(ctx);
}

void dv_cdi_dirs_close(struct dv_cdi_dirs *dirs, dv_closed_fn *closed, void *ctx)
{
    dirs->closed = closed;
    dirs->closed_ctx = ctx;
    dirs->is_closing = true;
    dirs->n_open = dirs->job ? 2 : 1;
    dv_timer_cancel(&dirs->timer);
    dv_task_cancel(&dirs->sweep);
    dv_task_cancel(&dirs->tell);
    if (dirs->job)
        dv_work_cancel(&dirs->job->work);
    dv_watch_close(dirs->watch, on_watch_closed, dirs);
}

/* ---- what is there ---- */

const struct dv_cdi_index *dv_cdi_dirs_index(const struct dv_cdi_dirs *dirs)
{
    return dirs->files.index;
}

size_t dv_cdi_dirs_problems(const struct dv_cdi_dirs *dirs, const struct dv_cdi_problem **problems)
{
    return dv_cdi_files_problems(&dirs->files, problems);
}

bool dv_cdi_dirs_refresh(struct dv_cdi_dirs *dirs)
{
    bool is_changed = look_at_all(dirs);

    if (is_changed)
        tell(dirs);
    return is_changed;
}

/* Events tell nothing of what is written through a link, or from above. */
static bool may_look_for_missing(struct dv_cdi_dirs *dirs, uint64_t *ago_ms)
{
    uint64_t now_ms = dv_loop_now_ms(dirs->loop);

    *ago_ms = now_ms - dirs->missed_ms;
    if (dirs->missed_ms > 0 && *ago_ms < MISS_MS && dirs->is_whole)
        return false;
    dirs->missed_ms = now_ms;
    return true;
}

bool dv_cdi_dirs_resolve(struct dv_cdi_dirs *dirs, const dv_str *names, size_t n_names,
                         struct dv_arena *arena, struct dv_cdi_edits *edits, struct dv_err *err)
{
    const struct dv_cdi_index *index = dirs->files.index;
    uint64_t n_whole_looks = dirs->n_whole_looks;
    bool is_found = dv_cdi_resolve(index, names, n_names, arena, edits, err);
    uint64_t ago_ms;

    if (is_found || (err->code != DV_NOT_FOUND && err->code != DV_FAILED_PRECONDITION))
        return is_found;
    if (catch_up(dirs) && dv_cdi_resolve(index, names, n_names, arena, edits, err))
        return true;
    if (dirs->n_whole_looks == n_whole_looks) {
        if (!may_look_for_missing(dirs, &ago_ms))
            return dv_wrap(err, "CDI specs in %.*s, all of them looked at %llu ms ago",
                           DV_FMT(dirs->text), (unsigned long long)ago_ms);
        if (dv_cdi_dirs_refresh(dirs) && dv_cdi_resolve(index, names, n_names, arena, edits, err))
            return true;
    }
    return dv_wrap(err, "CDI specs in %.*s", DV_FMT(dirs->text));
}
