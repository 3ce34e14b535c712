#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cdidir/cdidir.h"
#include "cdidir/places.h"
#include "cdidir/scan.h"
#include "loop/loop.h"

/* A vendor's tool writes several files at a time: one look for all of them. */
#define SETTLE_MS 20u
/* Between looks at what cannot be watched. */
#define POLL_MS 10000u
/* For messages, which are cut anyway. */
#define DIRS_TEXT_BYTES_MAX 4096u

struct file {
    struct dv_cdi_look look;
    struct dv_cdi_spec *spec;
};

/* What one look found; replaced as a whole. */
struct snapshot {
    struct dv_link link; /* among those replaced in this turn */
    struct dv_arena *arena;
    struct file *files;
    size_t n_files;
    struct dv_map by_key; /* struct file */
    struct dv_cdi_problem *problems;
    size_t n_problems;
    size_t n_dir_problems; /* the first of these */
    struct dv_cdi_index *index;
};

struct job {
    struct dv_work work;
    struct dv_cdi_dirs *dirs;
    struct dv_cdi_scan *scan;
    uint64_t number; /* of the looks begun: the last one counts */
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
    struct dv_timer timer; /* until the next look */
    struct job *job;       /* a look that is under way */
    bool is_dirty;         /* there were events since it began */
    bool is_whole;         /* all that should be is watched */
    uint64_t n_looks;
    struct snapshot *now;
    struct dv_list retired;
    struct dv_task sweep;
    struct dv_task tell;
    bool is_closing;
    size_t n_open; /* what closing waits for */
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* ---- snapshots ---- */

static void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    dv_link_remove(&snapshot->link);
    for (size_t i = 0; i < snapshot->n_files; i++)
        dv_cdi_spec_unref(snapshot->files[i].spec);
    dv_cdi_index_free(snapshot->index);
    dv_map_fini(&snapshot->by_key);
    dv_arena_free(snapshot->arena);
}

static void sweep(struct dv_cdi_dirs *dirs)
{
    struct dv_link *link;

    while ((link = dv_list_first(&dirs->retired)) != NULL)
        snapshot_free(DV_CONTAINER(link, struct snapshot, link));
}

static void on_sweep(struct dv_task *task)
{
    sweep(DV_CONTAINER(task, struct dv_cdi_dirs, sweep));
}

static void add_file(struct snapshot *snapshot, const struct snapshot *before,
                     struct dv_cdi_found *found)
{
    struct file *file = &snapshot->files[snapshot->n_files++];
    const struct file *old;

    file->look = found->look;
    file->look.key = dv_str_copy(found->look.key, snapshot->arena);
    if (found->spec) {
        file->spec = found->spec;
        found->spec = NULL;
    } else {
        old = dv_map_get(&before->by_key, found->look.key);
        file->spec = dv_cdi_spec_ref(old->spec);
    }
    file->look.path = file->spec->path;
    (void)dv_map_set(&snapshot->by_key, file->look.key, file); /* keys are distinct */
}

static void list_problems(struct snapshot *snapshot, const struct dv_cdi_scan *scan)
{
    struct dv_arena *arena = snapshot->arena;
    size_t n = scan->problems.n;

    for (size_t i = 0; i < snapshot->n_files; i++)
        n += snapshot->files[i].spec->n_problems;
    snapshot->problems = DV_NEW_ARRAY(arena, struct dv_cdi_problem, n);
    snapshot->n_dir_problems = scan->problems.n;
    for (size_t i = 0; i < scan->problems.n; i++)
        snapshot->problems[snapshot->n_problems++] =
            (struct dv_cdi_problem){dv_str_copy(scan->problems.v[i].path, arena),
                                    dv_str_copy(scan->problems.v[i].reason, arena)};
    for (size_t i = 0; i < snapshot->n_files; i++) {
        const struct dv_cdi_spec *spec = snapshot->files[i].spec;

        for (size_t k = 0; k < spec->n_problems; k++)
            snapshot->problems[snapshot->n_problems++] =
                (struct dv_cdi_problem){spec->path, spec->problems[k]};
    }
}

/* Takes the new specs of the scan. */
static struct snapshot *snapshot_new(const struct snapshot *before, struct dv_cdi_scan *scan)
{
    struct dv_arena *arena = dv_arena_new();
    struct snapshot *snapshot = DV_NEW(arena, struct snapshot);
    struct dv_cdi_spec **specs = DV_NEW_ARRAY(arena, struct dv_cdi_spec *, scan->found.n);

    snapshot->arena = arena;
    snapshot->files = DV_NEW_ARRAY(arena, struct file, scan->found.n);
    dv_map_init(&snapshot->by_key);
    for (size_t i = 0; i < scan->found.n; i++) {
        add_file(snapshot, before, &scan->found.v[i]);
        specs[i] = snapshot->files[i].spec;
    }
    list_problems(snapshot, scan);
    snapshot->index = dv_cdi_index_new(specs, snapshot->n_files);
    return snapshot;
}

static bool is_same(const struct snapshot *snapshot, const struct dv_cdi_scan *scan)
{
    if (snapshot->n_files != scan->found.n || snapshot->n_dir_problems != scan->problems.n)
        return false;
    for (size_t i = 0; i < scan->found.n; i++) {
        if (scan->found.v[i].spec ||
            !dv_str_eq(scan->found.v[i].look.key, snapshot->files[i].look.key))
            return false;
    }
    for (size_t i = 0; i < scan->problems.n; i++) {
        if (!dv_str_eq(scan->problems.v[i].path, snapshot->problems[i].path) ||
            !dv_str_eq(scan->problems.v[i].reason, snapshot->problems[i].reason))
            return false;
    }
    return true;
}

/* What a file says is the same; when and where it was written need not be. */
static void note_stamps(struct snapshot *snapshot, const struct dv_cdi_scan *scan)
{
    for (size_t i = 0; i < scan->found.n; i++) {
        snapshot->files[i].look.stamp = scan->found.v[i].look.stamp;
        snapshot->files[i].look.is_sure = scan->found.v[i].look.is_sure;
    }
}

static bool has_problem(const struct snapshot *snapshot, const struct dv_cdi_problem *problem)
{
    for (size_t i = 0; snapshot && i < snapshot->n_problems; i++) {
        if (dv_str_eq(snapshot->problems[i].path, problem->path) &&
            dv_str_eq(snapshot->problems[i].reason, problem->reason))
            return true;
    }
    return false;
}

/* ---- looking ---- */

static void on_tell(struct dv_task *task)
{
    struct dv_cdi_dirs *dirs = DV_CONTAINER(task, struct dv_cdi_dirs, tell);

    dirs->options.changed(dirs->options.ctx);
}

static void log_change(const struct snapshot *now, const struct snapshot *before)
{
    dv_log(DV_LOG_DEBUG, "cdi: specs read", DV_F_U64("files", now->n_files),
           DV_F_U64("problems", now->n_problems));
    for (size_t i = 0; i < now->n_problems; i++) {
        if (!has_problem(before, &now->problems[i]))
            dv_log(DV_LOG_WARN, "cdi: left out", DV_F_STR("path", now->problems[i].path),
                   DV_F_STR("reason", now->problems[i].reason));
    }
}

/* True when something differs. */
static bool apply(struct dv_cdi_dirs *dirs, struct dv_cdi_scan *scan)
{
    struct snapshot *before = dirs->now;

    if (before && is_same(before, scan)) {
        note_stamps(before, scan);
        return false;
    }
    dirs->now = snapshot_new(before, scan);
    log_change(dirs->now, before);
    if (before) {
        dv_list_push(&dirs->retired, &before->link);
        dv_task_post(&dirs->sweep, dirs->loop, on_sweep);
    }
    return true;
}

static void tell(struct dv_cdi_dirs *dirs)
{
    if (dirs->options.changed)
        dv_task_post(&dirs->tell, dirs->loop, on_tell);
}

/* Watches first: what changes from now on brings another look. */
static struct dv_cdi_scan *begin_look(struct dv_cdi_dirs *dirs)
{
    struct dv_cdi_scan *scan = dv_cdi_scan_new(dirs->paths, dirs->n_paths);

    dirs->n_looks++;
    dirs->is_whole = dv_cdi_places_watch(dirs->places, dirs->n_paths, dirs->watch, scan);
    for (size_t i = 0; dirs->now && i < dirs->now->n_files; i++)
        dv_cdi_scan_know(scan, &dirs->now->files[i].look);
    return scan;
}

static void schedule(struct dv_cdi_dirs *dirs, uint64_t delay_ms);
static void end_one(struct dv_cdi_dirs *dirs);

static void on_looked(struct dv_work *work, const struct dv_err *err)
{
    struct job *job = DV_CONTAINER(work, struct job, work);
    struct dv_cdi_dirs *dirs = job->dirs;

    dirs->job = NULL;
    /* A look that began later has seen more. */
    if (!err && !dirs->is_closing && job->number == dirs->n_looks && apply(dirs, job->scan))
        tell(dirs);
    dv_cdi_scan_free(job->scan);
    free(job);
    if (dirs->is_closing)
        end_one(dirs);
    else if (dirs->is_dirty)
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
    struct job *job = DV_ALLOC(struct job);

    dirs->is_dirty = false;
    job->work.run = run_scan;
    job->work.done = on_looked;
    job->dirs = dirs;
    job->scan = begin_look(dirs);
    job->number = dirs->n_looks;
    dirs->job = job;
    dv_work_start(&job->work, dirs->loop);
}

static void schedule(struct dv_cdi_dirs *dirs, uint64_t delay_ms)
{
    uint64_t at_ms = dv_loop_now_ms(dirs->loop) + delay_ms;

    if (dirs->job)
        dirs->is_dirty = true;
    else if (!dv_timer_is_set(&dirs->timer) || dirs->timer.at_ms > at_ms)
        dv_timer_start(&dirs->timer, dirs->loop, at_ms, on_timer);
}

static void on_event(void *ctx, const struct dv_watch_event *event)
{
    struct dv_cdi_dirs *dirs = ctx;

    if (dv_cdi_places_heed(dirs->places, dirs->n_paths, event))
        schedule(dirs, SETTLE_MS);
}

static bool look_now(struct dv_cdi_dirs *dirs)
{
    struct dv_cdi_scan *scan = begin_look(dirs);
    bool is_changed;

    dv_cdi_scan_run(scan);
    is_changed = apply(dirs, scan);
    dv_cdi_scan_free(scan);
    if (!dirs->is_whole)
        schedule(dirs, POLL_MS);
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
    sweep(dirs);
    snapshot_free(dirs->now);
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
    dv_list_init(&dirs->retired);
    dirs->watch = dv_watch_open(loop, on_event, dirs, err);
    if (!dirs->watch) {
        (void)dv_wrap(err, "CDI specs in %.*s", DV_FMT(dirs->text));
        dirs_free(dirs);
        return NULL;
    }
    (void)look_now(dirs); /* all is new */
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
    return dirs->now->index;
}

size_t dv_cdi_dirs_problems(const struct dv_cdi_dirs *dirs, const struct dv_cdi_problem **problems)
{
    *problems = dirs->now->problems;
    return dirs->now->n_problems;
}

dv_str dv_cdi_dirs_text(const struct dv_cdi_dirs *dirs)
{
    return dirs->text;
}

bool dv_cdi_dirs_refresh(struct dv_cdi_dirs *dirs)
{
    bool is_changed = look_now(dirs);

    if (is_changed)
        tell(dirs);
    return is_changed;
}

bool dv_cdi_dirs_resolve(struct dv_cdi_dirs *dirs, const dv_str *names, size_t n_names,
                         struct dv_arena *arena, struct dv_cdi_edits *edits, struct dv_err *err)
{
    bool is_found = dv_cdi_resolve(dirs->now->index, names, n_names, arena, edits, err);

    if (is_found || (err->code != DV_NOT_FOUND && err->code != DV_FAILED_PRECONDITION))
        return is_found;
    if (dv_cdi_dirs_refresh(dirs) &&
        dv_cdi_resolve(dirs->now->index, names, n_names, arena, edits, err))
        return true;
    return dv_wrap(err, "CDI specs in %.*s", DV_FMT(dirs->text));
}
