/* sample_device_plugin.c - a device plugin on libdavit-driver, for demonstration and for tests. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "davit/driver.h"
#include "sample.h"

/* A pod's admission waits for each of them: more do not come. */
#define HELD_MAX 1024u

enum held_kind {
    HELD_ALLOCATE,
    HELD_PRESTART,
    HELD_PREFER,
};

/* A call that gets no answer for now; its request lives as long as it. */
struct sample_held {
    enum held_kind kind;
    struct davit_call *call;
    const struct davit_allocate_request *allocate;
    const struct davit_prefer_request *prefer;
};

/* ---- answering ---- */

static void push(struct sample *sample)
{
    struct davit_error error;

    if (!sample_devices_push(&sample->devices, sample->plugin, &error))
        sample_complain("devices: %s", error.message);
}

/* A CDI name has only these characters. */
static void add_cdi(const struct sample *sample, struct davit_call *call, const char *id)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:";
    char name[512];
    int n = snprintf(name, sizeof(name), "%s=", sample->options.cdi_kind);

    if (n < 0 || (size_t)n + strlen(id) >= sizeof(name)) {
        davit_allocate_add_cdi(call, ""); /* fails the call */
        return;
    }
    for (size_t i = 0; i <= strlen(id); i++)
        name[(size_t)n + i] = id[i] == '\0' || strchr(plain, id[i]) ? id[i] : '-';
    davit_allocate_add_cdi(call, name);
}

static void add_env(const struct sample *sample, struct davit_call *call,
                    const struct davit_allocate_request *request)
{
    char *ids = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&ids, &n);

    if (!out)
        abort(); /* no memory */
    for (size_t i = 0; i < request->n_ids; i++)
        (void)fprintf(out, "%s%s", i > 0 ? "," : "", request->ids[i]);
    if (fclose(out) != 0)
        abort(); /* no memory */
    davit_allocate_add_env(call, sample->options.env, ids);
    free(ids);
}

/* The node itself under the name that matched: the container may not have what links lead over. */
static void add_node(struct davit_call *call, const struct sample_device *device)
{
    char *real = realpath(device->path, NULL);

    if (real)
        davit_allocate_add_device(call, real, device->path, "rw");
    free(real);
}

static void answer_allocate(struct sample *sample, struct davit_call *call,
                            const struct davit_allocate_request *request)
{
    if (sample->n_failures > 0) {
        sample->n_failures--;
        davit_call_fail(call, DAVIT_INTERNAL, "told to fail; %zu more times", sample->n_failures);
        return;
    }
    if (sample_fault_allocate(sample, call, request))
        return;
    if (sample->options.n_patterns > 0) { /* what is gone by now is not given away */
        sample_scan(&sample->devices);
        push(sample);
    }
    for (size_t i = 0; i < request->n_ids; i++) {
        const struct sample_device *device = sample_devices_find(&sample->devices, request->ids[i]);

        if (!device || !sample_device_is_healthy(device)) {
            davit_call_fail(call, DAVIT_FAILED_PRECONDITION, "device %s is %s", request->ids[i],
                            !device || device->is_gone ? "gone" : "unhealthy");
            return;
        }
        if (device->path)
            add_node(call, device);
        if (sample->options.cdi_kind)
            add_cdi(sample, call, device->id);
    }
    if (sample->options.env)
        add_env(sample, call, request);
    davit_call_finish(call);
}

static void answer_held(struct sample *sample, const struct sample_held *held)
{
    switch (held->kind) {
    case HELD_ALLOCATE:
        answer_allocate(sample, held->call, held->allocate);
        break;
    case HELD_PRESTART:
        if (!sample_fault_prestart(sample, held->call))
            davit_call_finish(held->call);
        break;
    case HELD_PREFER:
        sample_prefer(&sample->devices, held->call, held->prefer);
        break;
    }
}

/* Answers, unless it hangs. */
static void handle(struct sample *sample, const struct sample_held *call)
{
    if (!sample->is_hanging)
        answer_held(sample, call);
    else if (sample->n_held < HELD_MAX)
        sample->held[sample->n_held++] = *call;
    else
        davit_call_fail(call->call, DAVIT_RESOURCE_EXHAUSTED, "%zu calls hang", sample->n_held);
}

void sample_hang(struct sample *sample, bool is_hanging)
{
    size_t n = sample->n_held;

    sample->is_hanging = is_hanging;
    if (is_hanging)
        return;
    sample->n_held = 0;
    for (size_t i = 0; i < n; i++)
        answer_held(sample, &sample->held[i]);
}

static void on_allocate(void *ctx, struct davit_call *call,
                        const struct davit_allocate_request *request)
{
    handle(ctx, &(struct sample_held){.kind = HELD_ALLOCATE, .call = call, .allocate = request});
}

static void on_prestart(void *ctx, struct davit_call *call, const char *const *ids, size_t n_ids)
{
    (void)ids;
    (void)n_ids;
    handle(ctx, &(struct sample_held){.kind = HELD_PRESTART, .call = call});
}

static void on_prefer(void *ctx, struct davit_call *call,
                      const struct davit_prefer_request *request)
{
    handle(ctx, &(struct sample_held){.kind = HELD_PREFER, .call = call, .prefer = request});
}

/* ---- what happens ---- */

static void on_event(void *ctx, const struct davit_event *event)
{
    struct sample *sample = ctx;

    switch (event->kind) {
    case DAVIT_SERVING:
        sample->serving |= event->through;
        if (sample->serving == sample->options.register_through && !sample->was_ready) {
            sample->was_ready = true;
            sample_say("ready");
        }
        break;
    case DAVIT_REGISTERED:
        sample_say("registered");
        break;
    case DAVIT_LOST:
        break;
    case DAVIT_PROBLEM:
        sample_complain("%s; %s", event->error.message,
                        event->retry_ms > 0 ? "trying again" : "the agent tries again");
        break;
    }
}

static void on_signal(void *ctx, int signum)
{
    struct sample *sample = ctx;

    if (sample_fault_signal(sample, signum))
        return;
    if (signum == SIGUSR1)
        sample_devices_toggle_next(&sample->devices);
    else if (signum == SIGUSR2)
        sample_devices_heal(&sample->devices);
    else
        davit_driver_stop(sample->driver);
    push(sample);
}

struct rescan {
    struct sample *sample;
    int fd; /* whose bytes say that it is time */
    int watch_fd;
};

static void on_rescan(void *ctx, unsigned events)
{
    struct rescan *rescan = ctx;
    char bytes[4096];

    (void)events;
    if (read(rescan->fd, bytes, sizeof(bytes)) <= 0)
        return; /* nothing after all */
    sample_scan_watch(rescan->watch_fd, &rescan->sample->options);
    sample_scan(&rescan->sample->devices);
    push(rescan->sample);
}

/* ---- life ---- */

static bool watch_nodes(struct sample *sample, struct rescan *changes, struct rescan *times,
                        struct davit_error *error)
{
    struct itimerspec every = {.it_interval = {.tv_sec = sample->options.interval_s},
                               .it_value = {.tv_sec = sample->options.interval_s}};

    if (sample->options.n_patterns == 0)
        return true;
    *changes = (struct rescan){sample, sample_scan_open(), -1};
    changes->watch_fd = changes->fd;
    *times = (struct rescan){sample, timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
                             changes->fd};
    if (times->fd < 0 || timerfd_settime(times->fd, 0, &every, NULL) != 0) {
        *error = (struct davit_error){DAVIT_INTERNAL, "no timer for the scans"};
        return false;
    }
    sample_scan_watch(changes->fd, &sample->options); /* before the scan: nothing is missed */
    if (changes->fd >= 0 &&
        !davit_poll_open(sample->driver, changes->fd, DAVIT_READABLE, on_rescan, changes, error))
        return false;
    return davit_poll_open(sample->driver, times->fd, DAVIT_READABLE, on_rescan, times, error);
}

static bool catch_signals(struct sample *sample, struct davit_error *error)
{
    static const int signums[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};

    for (size_t i = 0; i < sizeof(signums) / sizeof(signums[0]); i++)
        if (!davit_driver_on_signal(sample->driver, signums[i], on_signal, sample, error))
            return false;
    return true;
}

static bool open_plugin(struct sample *sample, struct davit_error *error)
{
    const struct sample_options *from = &sample->options;
    char socket_dir[512];
    char registry_dir[512];
    struct davit_device_plugin_options options = {
        .resource = from->resource,
        .socket_dir = socket_dir,
        .socket_name = from->socket_name,
        .registry_dir = registry_dir,
        .register_through = from->register_through,
        .ctx = sample,
        .allocate = on_allocate,
        .prestart = from->wants_prestart ? on_prestart : NULL,
        .prefer = from->preference != SAMPLE_PREFER_NONE ? on_prefer : NULL,
        .event = on_event,
    };

    /* What is too long for these is too long for a socket's path, too. */
    (void)snprintf(socket_dir, sizeof(socket_dir), "%s/device-plugins", from->kubelet_dir);
    (void)snprintf(registry_dir, sizeof(registry_dir), "%s/plugins_registry", from->kubelet_dir);
    sample->plugin = davit_device_plugin_open(sample->driver, &options, error);
    return sample->plugin && sample_devices_push(&sample->devices, sample->plugin, error);
}

static void close_fd(int fd)
{
    if (fd >= 0)
        (void)close(fd); /* were only read */
}

static int run(struct sample *sample)
{
    struct rescan changes = {.fd = -1};
    struct rescan times = {.fd = -1};
    struct davit_error error;
    bool is_good;
    int code;

    sample->driver = davit_driver_new(&error);
    is_good = sample->driver && catch_signals(sample, &error) &&
              watch_nodes(sample, &changes, &times, &error);
    sample_scan(&sample->devices);
    is_good = is_good && open_plugin(sample, &error);
    if (is_good && sample->options.control) {
        sample->control = sample_control_open(sample->driver, sample->options.control,
                                              sample_commands, sample_n_commands, sample, &error);
        is_good = sample->control;
    }
    code = sample_program_run(sample->driver, sample->control, is_good, &error);
    close_fd(changes.fd);
    close_fd(times.fd);
    return code;
}

int main(int argc, char **argv)
{
    struct sample sample = {.driver = NULL};
    int code = sample_options_parse(argc, argv, &sample.options);

    if (code >= 0)
        return code;
    if (sample.options.has_log)
        davit_log_to(sample.options.log, NULL, NULL);
    sample.held = sample_alloc(HELD_MAX * sizeof(sample.held[0]));
    sample_devices_init(&sample.devices, &sample.options);
    sample_fault_start(&sample);
    code = run(&sample);
    sample_devices_fini(&sample.devices);
    free(sample.held);
    return code;
}
