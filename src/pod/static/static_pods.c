#include "pod/static_pods.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "pod/static/manifest.h"
#include "resource/resource.h"

/* How often the folder is read without an event, as in the reference. */
#define READ_MS 20000u
/* How often a folder is looked for that is not there, or cannot be watched. */
#define LOOK_MS 2000u
/* Events come one by one while a file is written: they are gathered. */
#define GATHER_MS 50u
#define FILE_BYTES_MAX (10u << 20) /* as in the reference */
/* More static pods than a node runs; what comes after them is told. */
#define N_FILES_MAX 512u
#define FAULTS_BYTES_MAX (1u << 20)

/* A file that was found: a pod, or why it is none. */
struct found {
    dv_str path;
    struct dv_object *pod; /* NULL: `err` */
    struct dv_err err;
};

/* One reading of the folder, by a job. */
struct reading {
    struct dv_work work;
    struct dv_static_pods *pods;
    struct dv_arena *arena;
    dv_str dir;
    dv_str node_name;
    struct dv_time now;
    DV_VEC(struct found) found; /* by name, in the arena */
    struct dv_err err;          /* of the folder itself; code DV_OK: none */
};

/* A file whose pod is known. */
struct file {
    struct dv_object *pod;
    char path[];
};

struct dv_static_pods {
    struct dv_loop *loop;
    struct dv_static_pods_options options;
    struct dv_watch *watch; /* NULL: only the timer tells when to read */
    struct dv_map files;    /* struct file, by path */
    struct dv_timer timer;  /* of the next reading */
    struct reading reading;
    char *faults; /* what is wrong, as it was last told; a line each */
    bool is_watched;
    bool is_reading;
    bool is_again; /* something changed while the folder was read */
    bool is_synced;
    bool is_closing;
    size_t
        n_open; /* the reading and, when it closes, the watch and the task: those are waited for */
    struct dv_task close_task;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* ---- reading, on a worker ---- */

static int compare_found(const void *a, const void *b)
{
    return dv_str_cmp(((const struct found *)a)->path, ((const struct found *)b)->path);
}

/* Lists the files. A folder that is not there has none. */
static void list(struct reading *reading)
{
    DIR *dir = opendir(dv_str_to_c(reading->dir, reading->arena));
    int errnum = errno;
    const struct dirent *entry;

    if (!dir && errnum != ENOENT)
        (void)dv_fail_errno(&reading->err, errnum, "%.*s", DV_FMT(reading->dir));
    while (dir && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        if (reading->found.n == N_FILES_MAX) {
            (void)dv_fail(&reading->err, DV_RESOURCE_EXHAUSTED, "%.*s: more than %u files",
                          DV_FMT(reading->dir), N_FILES_MAX);
            break;
        }
        dv_vec_add_in(&reading->found, reading->arena)->path =
            dv_str_printf(reading->arena, "%.*s/%s", DV_FMT(reading->dir), entry->d_name);
    }
    if (dir)
        (void)closedir(dir); /* nothing was written */
    if (reading->found.n > 0)
        qsort(reading->found.v, reading->found.n, sizeof(struct found), compare_found);
}

/* Reads one file. False: it is none of ours (a folder), or is gone already. */
static bool read_file(const struct reading *reading, struct found *found)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_manifest_place place = {found->path, reading->node_name, reading->now};
    struct stat about;
    int errnum = stat(dv_str_to_c(found->path, arena), &about) < 0 ? errno : 0;
    dv_str text;

    if (errnum == ENOENT || (errnum == 0 && S_ISDIR(about.st_mode)))
        return false;
    if (errnum != 0) {
        (void)dv_fail_errno(&found->err, errnum, "%.*s", DV_FMT(found->path));
    } else if (!S_ISREG(about.st_mode)) { /* a pipe would be waited for, for ever */
        (void)dv_fail(&found->err, DV_INVALID_ARGUMENT, "%.*s: is no file", DV_FMT(found->path));
    } else if (dv_file_read(found->path, FILE_BYTES_MAX, arena, &text, &found->err)) {
        found->pod = dv_manifest_read(text, &place, &found->err);
        if (!found->pod)
            (void)dv_wrap(&found->err, "%.*s", DV_FMT(found->path));
    }
    return true;
}

/* The second file that describes a pod is at fault. */
static void refuse_twins(struct reading *reading)
{
    DV_CLEANUP(dv_map_fini) struct dv_map names;

    dv_map_init(&names);
    for (size_t i = 0; i < reading->found.n; i++) {
        struct found *found = &reading->found.v[i];
        const struct found *first;
        dv_str name;

        if (!found->pod)
            continue;
        name = dv_str_printf(reading->arena, "%.*s/%.*s", DV_FMT(found->pod->meta->namespace),
                             DV_FMT(found->pod->meta->name));
        first = dv_map_get(&names, name);
        if (!first) {
            (void)dv_map_set(&names, name, found);
            continue;
        }
        (void)dv_fail(&found->err, DV_ALREADY_EXISTS, "%.*s: pod %.*s is that of %.*s already",
                      DV_FMT(found->path), DV_FMT(name), DV_FMT(first->path));
        dv_object_unref(found->pod);
        found->pod = NULL;
    }
}

static void run_reading(struct dv_work *work)
{
    struct reading *reading = DV_CONTAINER(work, struct reading, work);
    size_t n = 0;

    list(reading);
    for (size_t i = 0; i < reading->found.n; i++)
        if (read_file(reading, &reading->found.v[i]))
            reading->found.v[n++] = reading->found.v[i];
    reading->found.n = n;
    refuse_twins(reading);
}

/* ---- telling ---- */

static const struct found *find(const struct reading *reading, dv_str path)
{
    for (size_t i = 0; i < reading->found.n; i++)
        if (dv_str_eq(reading->found.v[i].path, path))
            return &reading->found.v[i];
    return NULL;
}

static void remove_gone(struct dv_static_pods *pods, const struct reading *reading)
{
    struct dv_arena *arena = dv_arena_new();
    struct file **gone = DV_NEW_ARRAY(arena, struct file *, pods->files.n);
    const struct dv_map_entry *entry;
    size_t n = 0;

    for (size_t at = 0; (entry = dv_map_next(&pods->files, &at)) != NULL;)
        if (!find(reading, entry->key))
            gone[n++] = entry->value;
    for (size_t i = 0; i < n; i++) {
        (void)dv_map_remove(&pods->files, dv_str_from_c(gone[i]->path));
        dv_log(DV_LOG_INFO, "pod: a static pod's file is gone", DV_F_C("file", gone[i]->path));
        pods->options.changed(pods->options.ctx, gone[i]->pod, NULL);
        dv_object_unref(gone[i]->pod);
        free(gone[i]);
    }
    dv_arena_free(arena);
}

static void take(struct dv_static_pods *pods, const struct found *found)
{
    struct file *file = dv_map_get(&pods->files, found->path);
    struct dv_object *old;

    if (!file) {
        file = dv_alloc(sizeof(*file) + found->path.n + 1);
        memcpy(file->path, found->path.p, found->path.n);
        (void)dv_map_set(&pods->files, (dv_str){file->path, found->path.n}, file);
    }
    old = file->pod;
    if (old && dv_manifest_eq(old, found->pod))
        return;
    file->pod = dv_object_ref(found->pod);
    dv_log(DV_LOG_INFO, "pod: a file describes a static pod", DV_F_STR("file", found->path),
           DV_F_STR("pod", found->pod->meta->name), DV_F_STR("uid", found->pod->meta->uid));
    pods->options.changed(pods->options.ctx, old, found->pod);
    dv_object_unref(old);
}

static void tell_faults(struct dv_static_pods *pods, const struct reading *reading)
{
    dv_str *texts = DV_NEW_ARRAY(reading->arena, dv_str, reading->found.n + 1);
    DV_CLEANUP(dv_buf_fini) struct dv_buf all;
    size_t n = 0;

    if (reading->err.code != DV_OK)
        texts[n++] = dv_str_from_c(reading->err.msg);
    for (size_t i = 0; i < reading->found.n; i++)
        if (!reading->found.v[i].pod)
            texts[n++] = dv_str_from_c(reading->found.v[i].err.msg);
    dv_buf_init(&all, FAULTS_BYTES_MAX);
    for (size_t i = 0; i < n; i++)
        dv_buf_printf(&all, "%.*s\n", DV_FMT(texts[i]));
    if (strcmp(dv_buf_c(&all), pods->faults ? pods->faults : "") == 0)
        return;
    free(pods->faults);
    pods->faults = dv_alloc(all.n + 1);
    memcpy(pods->faults, dv_buf_c(&all), all.n);
    for (size_t i = 0; i < n; i++)
        dv_log(DV_LOG_WARN, "pod: a file is no static pod", DV_F_STR("why", texts[i]));
    pods->options.faulty(pods->options.ctx, texts, n);
}

/* ---- when ---- */

static void read_soon(struct dv_static_pods *pods, uint64_t ms);

static void end_one(struct dv_static_pods *pods)
{
    dv_closed_fn *closed = pods->closed;
    void *ctx = pods->closed_ctx;
    const struct dv_map_entry *entry;

    pods->n_open--;
    if (pods->n_open > 0 || !pods->is_closing)
        return;
    for (size_t at = 0; (entry = dv_map_next(&pods->files, &at)) != NULL;) {
        dv_object_unref(((struct file *)entry->value)->pod);
        free(entry->value);
    }
    dv_map_fini(&pods->files);
    free(pods->faults);
    free(pods);
    if (closed)
        closed(ctx);
}

static void drop(struct reading *reading)
{
    for (size_t i = 0; i < reading->found.n; i++)
        dv_object_unref(reading->found.v[i].pod);
    dv_arena_free(reading->arena);
}

static void on_read(struct dv_work *work, const struct dv_err *err)
{
    struct reading *reading = DV_CONTAINER(work, struct reading, work);
    struct dv_static_pods *pods = reading->pods;

    pods->is_reading = false;
    if (!err && !pods->is_closing) {
        /* a folder that cannot be read is no empty folder */
        if (reading->err.code == DV_OK)
            remove_gone(pods, reading);
        for (size_t i = 0; i < reading->found.n; i++)
            if (reading->found.v[i].pod)
                take(pods, &reading->found.v[i]);
        tell_faults(pods, reading);
        if (!pods->is_synced)
            pods->options.synced(pods->options.ctx);
        pods->is_synced = true;
    }
    drop(reading);
    if (!pods->is_closing)
        read_soon(pods, pods->is_again ? GATHER_MS : pods->is_watched ? READ_MS : LOOK_MS);
    end_one(pods);
}

static void on_timer(struct dv_timer *timer)
{
    struct dv_static_pods *pods = DV_CONTAINER(timer, struct dv_static_pods, timer);
    struct dv_err absent;
    uint64_t now_ns = dv_clock_wall_ns(dv_loop_clock(pods->loop));

    /* before it is read, so that nothing is missed; again each time, since it may be made anew */
    pods->is_watched = pods->watch && dv_watch_add(pods->watch, pods->options.dir, &absent);
    pods->is_reading = true;
    pods->is_again = false;
    pods->n_open++;
    pods->reading = (struct reading){
        .work = {.run = run_reading, .done = on_read},
        .pods = pods,
        .arena = dv_arena_new(),
        .dir = pods->options.dir,
        .node_name = pods->options.node_name,
        .now = dv_api_seconds_from_ns(now_ns),
    };
    dv_work_start(&pods->reading.work, pods->loop);
}

static void read_soon(struct dv_static_pods *pods, uint64_t ms)
{
    if (pods->is_reading)
        pods->is_again = true;
    else
        dv_timer_start(&pods->timer, pods->loop, dv_loop_now_ms(pods->loop) + ms, on_timer);
}

static void on_event(void *ctx, const struct dv_watch_event *event)
{
    (void)event; /* whatever it is: the folder is read */
    read_soon(ctx, GATHER_MS);
}

static void on_watch_closed(void *ctx)
{
    end_one(ctx);
}

static void on_close_task(struct dv_task *task)
{
    end_one(DV_CONTAINER(task, struct dv_static_pods, close_task));
}

/* ---- life ---- */

struct dv_static_pods *dv_static_pods_open(struct dv_loop *loop,
                                           const struct dv_static_pods_options *options)
{
    struct dv_static_pods *pods = DV_ALLOC(struct dv_static_pods);
    struct dv_err err;

    pods->loop = loop;
    pods->options = *options;
    dv_map_init(&pods->files);
    pods->watch = dv_watch_open(loop, on_event, pods, &err);
    if (!pods->watch)
        dv_log(DV_LOG_WARN, "pod: the folder of static pods is read every 20 seconds only",
               DV_F_ERR(&err));
    read_soon(pods, 0);
    return pods;
}

void dv_static_pods_close(struct dv_static_pods *pods, dv_closed_fn *closed, void *ctx)
{
    pods->is_closing = true;
    pods->closed = closed;
    pods->closed_ctx = ctx;
    dv_timer_cancel(&pods->timer);
    pods->n_open++;
    dv_task_post(&pods->close_task, pods->loop, on_close_task);
    if (pods->watch) {
        pods->n_open++;
        dv_watch_close(pods->watch, on_watch_closed, pods);
    }
    if (pods->is_reading)
        dv_work_cancel(&pods->reading.work);
}
