#include "pod/admission/runs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "loop/loop.h"
#include "pod/admission/pod_marks.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"
#include "pod/process.h"
#include "resource/resource.h"
#include "json/json.h"

#define PROCESS "process://"
/* How long after the end of a process its exit code may still be told: who started it has seen the
 * end at the same moment. */
#define CODE_WAIT_MS 5000u
/* The last words of a container, as long as the reference keeps them. */
#define MESSAGE_BYTES_MAX 4096u

/* One container. Its status is in an arena of its own, made anew with each change. */
struct run {
    struct dv_runs *runs;
    struct dv_arena *arena;
    struct dv_api_container_status status;
    struct dv_process process; /* watched while it runs */
    struct dv_timer timer;     /* set: its process has ended, and the code may still be told */
};

struct dv_runs {
    struct dv_pods *pods;
    char *uid;
    struct run **runs;                        /* in the order in which they were first named */
    struct dv_api_container_status *statuses; /* those of the runs; made anew with each change */
    size_t n;
    uint64_t version;
};

/* ---- memory ---- */

static void free_run(struct run *run)
{
    dv_process_stop(&run->process);
    dv_timer_cancel(&run->timer);
    dv_arena_free(run->arena);
    free(run);
}

static void free_runs(struct dv_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        free_run(runs->runs[i]);
    free(runs->runs);
    free(runs->statuses);
    free(runs->uid);
    free(runs);
}

void dv_runs_forget(struct dv_pods *pods, dv_str uid)
{
    struct dv_runs *runs = dv_map_get(&pods->runs, uid);

    if (!runs)
        return;
    (void)dv_map_remove(&pods->runs, uid);
    free_runs(runs);
}

void dv_runs_free_all(struct dv_pods *pods)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&pods->runs, &at)) != NULL;)
        free_runs(entry->value);
    dv_map_fini(&pods->runs);
}

static struct dv_runs *runs_of(struct dv_pods *pods, dv_str uid)
{
    struct dv_runs *runs = dv_map_get(&pods->runs, uid);

    if (runs)
        return runs;
    runs = DV_ALLOC(struct dv_runs);
    runs->pods = pods;
    runs->uid = dv_alloc(uid.n + 1);
    memcpy(runs->uid, uid.p, uid.n);
    (void)dv_map_set(&pods->runs, (dv_str){runs->uid, uid.n}, runs); /* there was none */
    return runs;
}

static struct run *find(const struct dv_runs *runs, dv_str container)
{
    for (size_t i = 0; runs && i < runs->n; i++)
        if (dv_str_eq(runs->runs[i]->status.name, container))
            return runs->runs[i];
    return NULL;
}

static struct run *add(struct dv_runs *runs)
{
    struct run *run = DV_ALLOC(struct run);

    run->runs = runs;
    run->arena = dv_arena_new();
    runs->runs = dv_realloc(runs->runs, (runs->n + 1) * sizeof(struct run *));
    runs->runs[runs->n++] = run;
    return run;
}

/* Notes that something has changed. */
static void touch(struct dv_runs *runs)
{
    free(runs->statuses);
    runs->statuses = dv_alloc((runs->n + 1) * sizeof(*runs->statuses));
    for (size_t i = 0; i < runs->n; i++)
        runs->statuses[i] = runs->runs[i]->status;
    runs->version++;
    dv_pods_tell_changed(runs->pods, dv_str_from_c(runs->uid));
}

/* Replaces the status by `status`, whose texts may be those of the old one. */
static void set(struct run *run, const struct dv_api_container_status *status)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_api_container_status copy;

    dv_message_copy(&dv_message_container_status, status, arena, &copy);
    run->status = copy;
    dv_arena_free(run->arena);
    run->arena = arena;
}

/* ---- the store ---- */

struct dv_store_change dv_runs_row(const struct dv_runs *runs, struct dv_arena *arena)
{
    struct dv_api_pod_status status = {.n_container_statuses = runs->n};
    struct dv_buf text;
    struct dv_store_change change = {.kind = DV_STORE_PUT, .table = DV_TABLE_RUNS};

    status.container_statuses = runs->statuses;
    dv_buf_init(&text, DV_STORE_VALUE_BYTES_MAX);
    dv_json_print(dv_encode_json(&dv_message_pod_status, &status, NULL, DV_STR(""), arena), NULL,
                  &text);
    change.key = dv_str_copy(dv_str_from_c(runs->uid), arena);
    change.value = dv_str_copy(dv_buf_str(&text), arena);
    dv_buf_fini(&text);
    return change;
}

/* A write that nobody waits for. */
struct lone_write {
    struct dv_pod_telling telling;
};

static void on_lone_written(struct dv_pod_telling *telling, const struct dv_err *err)
{
    /* the process is gone, which the next start finds out anew */
    if (err)
        dv_log(DV_LOG_WARN, "pod: the end of a container is not on the disk", DV_F_ERR(err));
    free(DV_CONTAINER(telling, struct lone_write, telling));
}

static void on_written(struct dv_store_write *write, const struct dv_err *err)
{
    struct dv_pod_telling *telling = DV_CONTAINER(write, struct dv_pod_telling, priv.write);

    dv_pods_end_one(telling->priv.pods);
    telling->done(telling, err); /* last: it may free the telling */
}

static void save(struct dv_runs *runs, struct dv_pod_telling *telling)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_store_change change = dv_runs_row(runs, arena);

    telling->priv.write.done = on_written;
    dv_store_write(runs->pods->options.store, &telling->priv.write, &change, 1);
}

/* ---- what happens to a container ---- */

static struct dv_time now_of(const struct dv_pods *pods)
{
    return dv_api_seconds_from_ns(dv_clock_wall_ns(dv_loop_clock(pods->loop)));
}

static void begin_run(struct run *run, dv_str container, uint32_t pid, dv_str start)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_container_state_running running = {.started_at = now_of(run->runs->pods)};
    struct dv_api_container_status status = {
        .name = container,
        .restart_count = run->status.restart_count,
        .state.running = &running,
    };

    if (run->status.state.terminated) {
        status.restart_count++;
        status.last_state.terminated = run->status.state.terminated;
    }
    if (pid > 0)
        status.container_id = dv_str_printf(arena, PROCESS "%u/%.*s", pid, DV_FMT(start));
    set(run, &status);
}

/* The beginning of the text that is kept; no character is cut through. */
static dv_str cut(dv_str text)
{
    size_t n = dv_u64_min(text.n, MESSAGE_BYTES_MAX);

    while (n > 0 && n < text.n && ((unsigned char)text.p[n] & 0xc0u) == 0x80u)
        n--; /* the next byte goes on with a character */
    return dv_str_slice(text, 0, n);
}

static void end_run(struct run *run, dv_str container, int32_t exit_code, const char *reason,
                    dv_str message)
{
    struct dv_api_container_state_terminated terminated = {
        .exit_code = exit_code,
        .reason = dv_str_from_c(reason),
        .message = cut(message),
        .finished_at = now_of(run->runs->pods),
        .container_id = run->status.container_id,
    };
    struct dv_api_container_status status = run->status;

    dv_process_stop(&run->process);
    dv_timer_cancel(&run->timer);
    if (status.state.running)
        terminated.started_at = status.state.running->started_at;
    else if (status.state.terminated) /* its code was not known until now */
        terminated.started_at = status.state.terminated->started_at;
    status.name = container;
    status.state = (struct dv_api_container_state){.terminated = &terminated};
    set(run, &status);
}

static void end_unknown(struct run *run)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    end_run(run, run->status.name, DV_POD_END_UNKNOWN_CODE, DV_POD_END_UNKNOWN,
            dv_str_printf(arena, "its process has ended, and nobody told its exit code"));
}

static void on_code_late(struct dv_timer *timer)
{
    struct run *run = DV_CONTAINER(timer, struct run, timer);
    struct dv_runs *runs = run->runs;
    struct lone_write *lone;

    end_unknown(run);
    touch(runs);
    if (runs->pods->is_closing)
        return;
    lone = DV_ALLOC(struct lone_write);
    lone->telling.done = on_lone_written;
    lone->telling.priv.pods = runs->pods;
    runs->pods->n_under_way++;
    save(runs, &lone->telling);
}

static void on_process_ended(struct dv_process *process)
{
    struct run *run = DV_CONTAINER(process, struct run, process);
    struct dv_loop *loop = run->runs->pods->loop;

    dv_timer_start(&run->timer, loop, dv_loop_now_ms(loop) + CODE_WAIT_MS, on_code_late);
    dv_pods_tell_changed(run->runs->pods, dv_str_from_c(run->runs->uid));
}

/* The process that the status names; false: it names none. */
static bool process_of(const struct run *run, uint32_t *pid, dv_str *start)
{
    dv_str id = run->status.container_id;
    dv_str number;

    if (!dv_str_starts_with(id, DV_STR(PROCESS)))
        return false;
    *start = dv_str_slice(id, sizeof(PROCESS) - 1, id.n);
    return dv_str_split(start, '/', &number) && dv_str_to_u32(number, pid);
}

static void watch(struct run *run)
{
    uint32_t pid;
    dv_str start;

    dv_process_stop(&run->process);
    dv_timer_cancel(&run->timer);
    if (run->status.state.running && process_of(run, &pid, &start))
        dv_process_watch(&run->process, run->runs->pods->loop, pid, start, on_process_ended);
}

bool dv_runs_load(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_pod_status status = {0};
    struct dv_json_opts opts = {.bytes_max = DV_STORE_VALUE_BYTES_MAX};
    const struct dv_json *doc = dv_json_parse(row->value, &opts, arena, err);
    struct dv_runs *runs;

    if (!doc ||
        !dv_decode_json(&dv_message_pod_status, doc, DV_UNKNOWN_DROP, arena, &status, NULL, err))
        return dv_wrap(err, "what was told about the containers of pod %.*s", DV_FMT(row->key));
    runs = runs_of(ctx, row->key);
    for (size_t i = 0; i < status.n_container_statuses; i++) {
        struct run *run = add(runs);

        set(run, &status.container_statuses[i]);
        watch(run);
    }
    touch(runs);
    return true;
}

/* ---- telling ---- */

static void on_refused(struct dv_task *task)
{
    struct dv_pod_telling *telling = DV_CONTAINER(task, struct dv_pod_telling, priv.task);
    struct dv_err err = telling->priv.err;

    dv_pods_end_one(telling->priv.pods);
    telling->done(telling, &err);
}

static void begin_telling(struct dv_pods *pods, struct dv_pod_telling *telling)
{
    memset(&telling->priv, 0, sizeof(telling->priv));
    telling->priv.pods = pods;
    pods->n_under_way++;
}

static void refuse(struct dv_pod_telling *telling)
{
    dv_task_post(&telling->priv.task, telling->priv.pods->loop, on_refused);
}

/* The pod that the container is of; NULL: there is no such pod or container. */
static struct dv_pod *find_pod(struct dv_pods *pods, const struct dv_pod_ref *ref, dv_str container,
                               struct dv_err *err)
{
    struct dv_pod *pod = dv_pods_get(pods, ref);

    if (pods->is_closing) {
        (void)dv_fail(err, DV_CANCELLED, "davitd is stopping");
        return NULL;
    }
    if (!pod || !pod->was_admitted) {
        dv_pods_fail_unknown(ref, err);
        return NULL;
    }
    if (pods->has_runtime && dv_pod_origin_is_agents(pod->spec.origin)) {
        (void)dv_fail(err, DV_FAILED_PRECONDITION,
                      "davitd starts the containers of pod %.*s itself, on its container runtime",
                      DV_FMT(pod->full_name));
        return NULL;
    }
    for (size_t i = 0; i < pod->spec.n_containers; i++)
        if (dv_str_eq(pod->spec.containers[i].name, container))
            return pod;
    (void)dv_fail(err, DV_NOT_FOUND, "pod %.*s has no container \"%.*s\"", DV_FMT(pod->full_name),
                  DV_FMT(container));
    return NULL;
}

/* Whether the container may be told to run as this process. A run that is told to go on as it is
 * known already is no new one: is_same is set. */
static bool may_start(struct run *run, uint32_t pid, dv_str start, bool *is_same,
                      struct dv_err *err)
{
    uint32_t known_pid;
    dv_str known_start;

    *is_same = false;
    if (!run || !run->status.state.running)
        return true;
    if (!process_of(run, &known_pid, &known_start)) {
        *is_same = pid == 0; /* else its process is told now */
        return true;
    }
    if (pid == 0 || (pid == known_pid && dv_str_eq(start, known_start))) {
        *is_same = true;
        return true;
    }
    if (dv_process_is_watched(&run->process))
        return dv_fail(err, DV_FAILED_PRECONDITION, "container %.*s runs as process %u already",
                       DV_FMT(run->status.name), known_pid);
    end_unknown(run);
    return true;
}

void dv_pods_tell_started(struct dv_pods *pods, struct dv_pod_telling *telling,
                          const struct dv_pod_ref *ref, dv_str container, uint32_t pid)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str start = pid > 0 ? dv_process_start(pid, arena) : DV_STR("");
    struct dv_err *err = &telling->priv.err;
    struct dv_runs *runs;
    struct dv_pod *pod;
    struct run *run;
    bool is_same;

    begin_telling(pods, telling);
    pod = find_pod(pods, ref, container, err);
    run = pod ? find(dv_map_get(&pods->runs, pod->spec.ref.uid), container) : NULL;
    if (pod && pid > 0 && start.n == 0) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "there is no process %u", pid);
        pod = NULL;
    }
    if (!pod || !may_start(run, pid, start, &is_same, err)) {
        refuse(telling);
        return;
    }
    if (!pod->may_run && !dv_pod_marks_remove(pods->marks, pod->spec.ref.uid, err)) {
        refuse(telling);
        return;
    }
    runs = runs_of(pods, pod->spec.ref.uid);
    pod->may_run = true;
    if (!is_same) {
        run = run ? run : add(runs);
        begin_run(run, container, pid, start);
        watch(run);
        touch(runs);
    }
    /* also what is known already: its write may have failed when it was first told */
    save(runs, telling);
}

/* Whether every container of the pod has been told to have ended. */
static bool has_all_ended(const struct dv_pod *pod, const struct dv_runs *runs)
{
    for (size_t i = 0; i < pod->spec.n_containers; i++) {
        const struct run *run = find(runs, pod->spec.containers[i].name);

        if (!run || run->status.state.running)
            return false;
    }
    return true;
}

void dv_pods_tell_ended(struct dv_pods *pods, struct dv_pod_telling *telling,
                        const struct dv_pod_ref *ref, dv_str container, int32_t exit_code,
                        dv_str message)
{
    struct dv_err *err = &telling->priv.err;
    const struct dv_api_container_state_terminated *known = NULL;
    struct dv_runs *runs;
    struct dv_pod *pod;
    struct run *run;

    begin_telling(pods, telling);
    pod = find_pod(pods, ref, container, err);
    if (!pod) {
        refuse(telling);
        return;
    }
    runs = runs_of(pods, pod->spec.ref.uid);
    run = find(runs, container);
    if (run)
        known = run->status.state.terminated;
    if (known && !dv_str_eq(known->reason, DV_STR(DV_POD_END_UNKNOWN)) &&
        known->exit_code != exit_code) {
        (void)dv_fail(err, DV_FAILED_PRECONDITION,
                      "container %.*s has ended with exit code %d already", DV_FMT(container),
                      (int)known->exit_code);
        refuse(telling);
        return;
    }
    if (!known || known->exit_code != exit_code) {
        run = run ? run : add(runs);
        end_run(run, container, exit_code, exit_code == 0 ? "Completed" : "Error", message);
        touch(runs);
    }
    if (has_all_ended(pod, runs))
        pod->may_run = false;
    save(runs, telling);
}

struct dv_pod_told dv_pods_told(const struct dv_pods *pods, dv_str uid)
{
    const struct dv_runs *runs = dv_map_get(&pods->runs, uid);
    struct dv_pod_told told = {0};

    if (!runs)
        return told;
    told.statuses = runs->statuses;
    told.n_statuses = runs->n;
    told.version = runs->version;
    for (size_t i = 0; i < runs->n; i++)
        told.is_running |= dv_process_is_watched(&runs->runs[i]->process);
    return told;
}
