/* davit_cri.c - module cri against a real runtime: davit-cri [SOCKET]
 *
 * Reads commands, a line each, and prints a line for everything that it is told:
 *
 *     run UID IMAGE WORD...   a sandbox, and the container `main` in it     -> made UID CONTAINER
 *     exec UID SECONDS WORD... a command in its newest container   -> exec UID CODE OUTPUT
 *     end UID                 stops and removes the pod's sandboxes         -> ended UID
 *     cpu                     what this process has used so far             -> cpu MICROSECONDS
 *
 *     runtime NAME VERSION cdi=0|1          ready          not ready: TEXT
 *     pod UID READY main:RUNNING:0:         the states of sandboxes, then of containers
 *     failed METHOD CODE: TEXT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cri/cri.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "proto/cri_v1.pb-c.h"

#define LINE_BYTES 4096u
#define WORDS_MAX 64u

struct watch {
    struct dv_loop *loop;
    struct dv_cri *cri;
    struct dv_poll *input;
    char line[LINE_BYTES];
    size_t n;
};

/* What a line of input asks for, done call by call. */
struct job {
    struct watch *watch;
    struct dv_cri_call call;
    struct dv_arena *arena;
    dv_str uid;
    const char *image;
    char *words[WORDS_MAX];
    size_t n_words;
    CriV1__PodSandboxConfig *config;
    const char *sandbox;
    const char *container;
};

static const char *const sandbox_states[] = {"READY", "NOTREADY"};
static const char *const container_states[] = {"CREATED", "RUNNING", "EXITED", "UNKNOWN"};

static void on_state(void *ctx)
{
    struct watch *watch = ctx;
    const struct dv_cri_runtime *runtime = dv_cri_runtime(watch->cri);
    struct dv_err err;

    if (runtime)
        (void)printf("runtime %.*s %.*s cdi=%d\n", DV_FMT(runtime->name), DV_FMT(runtime->version),
                     runtime->has_cdi);
    if (dv_cri_check_runtime(watch->cri, &err) && dv_cri_check_network(watch->cri, &err))
        (void)printf("ready\n");
    else
        (void)printf("not ready: %s\n", err.msg);
}

static void on_pod(void *ctx, dv_str uid)
{
    struct watch *watch = ctx;
    const struct dv_cri_pod *pod = dv_cri_view_pod(watch->cri, uid);

    (void)printf("pod %.*s", DV_FMT(uid));
    for (size_t i = 0; pod && i < pod->n_sandboxes; i++)
        (void)printf(" %s", sandbox_states[pod->sandboxes[i]->state]);
    for (size_t i = 0; pod && i < pod->n_containers; i++)
        (void)printf(" %s:%s:%d:%s", pod->containers[i]->metadata->name,
                     container_states[pod->containers[i]->state], pod->containers[i]->exit_code,
                     pod->containers[i]->reason);
    (void)printf("\n");
}

/* ---- jobs ---- */

static void call(struct job *job, enum dv_cri_method method, const void *request,
                 void (*done)(struct dv_cri_call *, const void *, const struct dv_err *))
{
    job->call = (struct dv_cri_call){.method = method, .arena = job->arena, .done = done};
    dv_cri_call_start(job->watch->cri, &job->call, request);
}

/* Ends the job when the call has failed. */
static struct job *job_of(struct dv_cri_call *call, const struct dv_err *err)
{
    struct job *job = DV_CONTAINER(call, struct job, call);

    if (!err)
        return job;
    dv_cri_view_relist(job->watch->cri, job->uid); /* runtimes tell no event of a failed start */
    (void)printf("failed %s %s: %s\n", dv_cri_method_name(call->method), dv_code_name(err->code),
                 err->msg);
    dv_arena_free(job->arena);
    return NULL;
}

static void finish(struct job *job, const char *what)
{
    (void)printf("%s %.*s %s\n", what, DV_FMT(job->uid), job->container ? job->container : "");
    dv_cri_view_relist(job->watch->cri, job->uid);
    dv_arena_free(job->arena);
}

static void on_started(struct dv_cri_call *done, const void *answer, const struct dv_err *err)
{
    struct job *job = job_of(done, err);

    (void)answer;
    if (job)
        finish(job, "made");
}

static void on_created(struct dv_cri_call *done, const void *answer, const struct dv_err *err)
{
    struct job *job = job_of(done, err);
    const CriV1__CreateContainerResponse *response = answer;
    CriV1__StartContainerRequest request = CRI_V1__START_CONTAINER_REQUEST__INIT;

    if (!job)
        return;
    request.container_id = job->container = response->container_id;
    call(job, DV_CRI_START_CONTAINER, &request, on_started);
}

static void on_sandbox(struct dv_cri_call *done, const void *answer, const struct dv_err *err)
{
    struct job *job = job_of(done, err);
    const CriV1__RunPodSandboxResponse *response = answer;
    CriV1__ContainerMetadata metadata = CRI_V1__CONTAINER_METADATA__INIT;
    CriV1__ImageSpec image = CRI_V1__IMAGE_SPEC__INIT;
    CriV1__ContainerConfig config = CRI_V1__CONTAINER_CONFIG__INIT;
    CriV1__ContainerConfig__LabelsEntry *label;
    CriV1__CreateContainerRequest request = CRI_V1__CREATE_CONTAINER_REQUEST__INIT;
    const char *words[WORDS_MAX];

    if (!job)
        return;
    for (size_t i = 0; i < job->n_words; i++)
        words[i] = job->words[i];
    label = dv_pb_entry_new(&cri_v1__container_config__labels_entry__descriptor,
                            DV_CRI_LABEL_POD_UID, dv_str_to_c(job->uid, job->arena), job->arena);
    metadata.name = "main";
    image.image = job->image;
    config.metadata = &metadata;
    config.image = &image;
    config.command = words;
    config.n_command = job->n_words;
    config.labels = &label;
    config.n_labels = 1;
    request.pod_sandbox_id = response->pod_sandbox_id;
    request.config = &config;
    request.sandbox_config = job->config;
    call(job, DV_CRI_CREATE_CONTAINER, &request, on_created);
}

static void start_run(struct job *job)
{
    CriV1__PodSandboxConfig *config = DV_NEW(job->arena, CriV1__PodSandboxConfig);
    CriV1__PodSandboxMetadata *metadata = DV_NEW(job->arena, CriV1__PodSandboxMetadata);
    CriV1__PodSandboxConfig__LabelsEntry **label =
        DV_NEW(job->arena, CriV1__PodSandboxConfig__LabelsEntry *);
    CriV1__RunPodSandboxRequest request = CRI_V1__RUN_POD_SANDBOX_REQUEST__INIT;
    const char *uid = dv_str_to_c(job->uid, job->arena);

    cri_v1__pod_sandbox_config__init(config);
    cri_v1__pod_sandbox_metadata__init(metadata);
    *label = dv_pb_entry_new(&cri_v1__pod_sandbox_config__labels_entry__descriptor,
                             DV_CRI_LABEL_POD_UID, uid, job->arena);
    metadata->name = metadata->uid = uid;
    metadata->namespace_ = "default";
    config->metadata = metadata;
    config->labels = label;
    config->n_labels = 1;
    job->config = config;
    request.config = config;
    call(job, DV_CRI_RUN_POD_SANDBOX, &request, on_sandbox);
}

static void on_exec(struct dv_cri_call *done, const void *answer, const struct dv_err *err)
{
    struct job *job = job_of(done, err);
    const CriV1__ExecSyncResponse *response = answer;

    if (!job)
        return;
    (void)printf("exec %.*s %d %.*s\n", DV_FMT(job->uid), response->exit_code,
                 (int)response->stdout.len, (const char *)response->stdout.data);
    dv_arena_free(job->arena);
}

static void start_exec(struct job *job, const char *seconds)
{
    const struct dv_cri_pod *pod = dv_cri_view_pod(job->watch->cri, job->uid);
    CriV1__ExecSyncRequest request = CRI_V1__EXEC_SYNC_REQUEST__INIT;
    const char *words[WORDS_MAX];

    for (size_t i = 0; i < job->n_words; i++)
        words[i] = job->words[i];
    request.container_id = pod && pod->n_containers > 0 ? pod->containers[0]->id : "none";
    request.cmd = words;
    request.n_cmd = job->n_words;
    request.timeout = strtoll(seconds, NULL, 10);
    call(job, DV_CRI_EXEC_SYNC, &request, on_exec);
}

static void on_removed(struct dv_cri_call *done, const void *answer, const struct dv_err *err)
{
    struct job *job = job_of(done, err);

    (void)answer;
    if (job)
        finish(job, "ended");
}

static void on_stopped(struct dv_cri_call *done, const void *answer, const struct dv_err *err)
{
    struct job *job = job_of(done, err);
    CriV1__RemovePodSandboxRequest request = CRI_V1__REMOVE_POD_SANDBOX_REQUEST__INIT;

    (void)answer;
    if (!job)
        return;
    request.pod_sandbox_id = job->sandbox;
    call(job, DV_CRI_REMOVE_POD_SANDBOX, &request, on_removed);
}

static void start_end(struct job *job)
{
    const struct dv_cri_pod *pod = dv_cri_view_pod(job->watch->cri, job->uid);
    CriV1__StopPodSandboxRequest request = CRI_V1__STOP_POD_SANDBOX_REQUEST__INIT;

    if (!pod || pod->n_sandboxes == 0) {
        finish(job, "ended");
        return;
    }
    job->sandbox = dv_str_to_c(dv_str_from_c(pod->sandboxes[0]->id), job->arena);
    request.pod_sandbox_id = job->sandbox;
    call(job, DV_CRI_STOP_POD_SANDBOX, &request, on_stopped);
}

/* ---- input ---- */

static void handle_line(struct watch *watch, char *line)
{
    struct dv_arena *arena = dv_arena_new();
    struct job *job = DV_NEW(arena, struct job);
    char *place = NULL;
    char *copy = DV_NEW_ARRAY(arena, char, LINE_BYTES);
    const char *verb;
    const char *uid;

    (void)snprintf(copy, LINE_BYTES, "%s", line);
    verb = strtok_r(copy, " ", &place);
    uid = strtok_r(NULL, " ", &place);
    job->watch = watch;
    job->arena = arena;
    if (verb && uid && (strcmp(verb, "run") == 0 || strcmp(verb, "exec") == 0)) {
        const char *third = strtok_r(NULL, " ", &place); /* the image or the seconds */

        job->uid = dv_str_from_c(uid);
        job->image = third;
        while (job->n_words < WORDS_MAX &&
               (job->words[job->n_words] = strtok_r(NULL, " ", &place)) != NULL)
            job->n_words++;
        if (strcmp(verb, "run") == 0)
            start_run(job);
        else
            start_exec(job, third ? third : "0");
    } else if (verb && uid && strcmp(verb, "end") == 0) {
        job->uid = dv_str_from_c(uid);
        start_end(job);
    } else if (verb && strcmp(verb, "cpu") == 0) {
        struct timespec used;

        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used); /* exists on every Linux */
        (void)printf("cpu %lld\n", (long long)used.tv_sec * 1000000 + used.tv_nsec / 1000);
        dv_arena_free(arena);
    } else {
        (void)printf("failed: no command %s\n", line);
        dv_arena_free(arena);
    }
}

static void on_closed(void *ctx)
{
    dv_loop_stop(ctx);
}

static void on_input(void *ctx, unsigned events)
{
    struct watch *watch = ctx;
    ssize_t n = read(0, watch->line + watch->n, sizeof(watch->line) - 1 - watch->n);
    char *end;

    (void)events;
    if (n <= 0) {
        dv_poll_close(watch->input, NULL, NULL);
        dv_cri_close(watch->cri, on_closed, watch->loop);
        return;
    }
    watch->n += (size_t)n;
    watch->line[watch->n] = '\0';
    while ((end = strchr(watch->line, '\n')) != NULL) {
        *end = '\0';
        handle_line(watch, watch->line);
        watch->n -= (size_t)(end + 1 - watch->line);
        memmove(watch->line, end + 1, watch->n + 1);
    }
}

int main(int argc, char **argv)
{
    struct watch watch = {.n = 0};
    struct dv_cri_options options = {
        .path = argc > 1 ? dv_str_from_c(argv[1]) : dv_cri_find(),
        .state_changed = on_state,
        .pod_changed = on_pod,
        .ctx = &watch,
    };
    struct dv_err err;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    watch.loop = dv_loop_new(dv_clock_real(), &err);
    if (watch.loop)
        watch.cri = dv_cri_open(watch.loop, &options, &err);
    if (watch.cri)
        watch.input = dv_poll_open(watch.loop, 0, on_input, &watch, &err);
    if (!watch.input) {
        (void)fprintf(stderr, "davit-cri: %s\n", err.msg);
        return 1;
    }
    dv_poll_set(watch.input, DV_POLL_READ);
    dv_loop_run(watch.loop);
    dv_loop_free(watch.loop);
    return 0;
}
