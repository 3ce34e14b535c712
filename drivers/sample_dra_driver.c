/* sample_dra_driver.c - a DRA driver on libdavit-driver, for demonstration and for tests. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "davit/dra.h"
#include "sample_dra.h"

/* An agent asks for the claims of one pod after the other: more do not come. */
#define HELD_MAX 4096u
/* For an answer to get out of the process. */
#define CRASH_DELAY_NS 50000000

/* ---- faults ---- */

static void die(void)
{
    (void)kill(getpid(), SIGKILL); /* nothing is cleaned up: that is the point */
}

static void on_crash_time(void *ctx, unsigned events)
{
    (void)ctx;
    (void)events;
    die();
}

static void die_soon(const struct sample_dra *sample)
{
    struct itimerspec once = {.it_value = {.tv_nsec = CRASH_DELAY_NS}};

    (void)timerfd_settime(sample->crash_fd, 0, &once, NULL); /* cannot fail with these */
}

static bool is_to_fail(const struct sample_dra *sample, const char *name)
{
    return sample->fails && (strcmp(sample->fails, "*") == 0 || strcmp(sample->fails, name) == 0);
}

/* ---- answering ---- */

static void add_devices(const struct sample_dra *sample, const struct sample_dra_held *held)
{
    const struct davit_dra_claim *claim = held->claim;

    for (size_t i = 0; i < claim->n_results; i++) {
        const struct davit_dra_result *result = &claim->results[i];
        char *text = sample_dra_cdi_name(&sample->claims, claim, i);
        const char *cdi = text;
        struct davit_dra_prepared prepared = {
            .requests = &result->request,
            .n_requests = 1,
            .pool = result->pool,
            .device = result->device,
            .cdi = &cdi,
            .n_cdi = 1,
            .share_id = result->share_id,
        };

        if (sample_dra_fault_answer(sample, &prepared))
            davit_dra_add_device(held->call, &prepared);
        free(text);
    }
}

static bool do_it(const struct sample_dra *sample, const struct sample_dra_held *held,
                  struct davit_error *error)
{
    if (is_to_fail(sample, held->ref.name)) {
        error->code = DAVIT_INTERNAL;
        (void)snprintf(error->message, sizeof(error->message), "told to fail claim %.100s",
                       held->ref.name);
        return false;
    }
    return held->claim ? sample_dra_claims_prepare(&sample->claims, held->claim, error)
                       : sample_dra_claims_unprepare(&sample->claims, &held->ref, error);
}

static void answer(struct sample_dra *sample, const struct sample_dra_held *held)
{
    struct davit_error error;
    bool is_good;

    if (sample->crash == SAMPLE_CRASH_START)
        die();
    is_good = sample_dra_fault_before(sample, held, &error) && do_it(sample, held, &error);
    if (is_good)
        sample_dra_fault_after(sample, held);
    if (sample->crash == SAMPLE_CRASH_BEFORE)
        die();
    if (sample->crash == SAMPLE_CRASH_AFTER)
        die_soon(sample);
    if (!is_good) {
        davit_call_fail(held->call, error.code, "%s", error.message);
        return;
    }
    if (held->claim)
        add_devices(sample, held);
    davit_call_finish(held->call);
}

/* Answers, unless it hangs. */
static void handle(struct sample_dra *sample, const struct sample_dra_held *held)
{
    unsigned kind = held->claim ? SAMPLE_HANG_PREPARE : SAMPLE_HANG_UNPREPARE;

    if (!(sample->hangs & kind))
        answer(sample, held);
    else if (sample->n_held < HELD_MAX)
        sample->held[sample->n_held++] = *held;
    else
        davit_call_fail(held->call, DAVIT_RESOURCE_EXHAUSTED, "%zu calls hang", sample->n_held);
}

void sample_dra_hang(struct sample_dra *sample, unsigned hangs)
{
    size_t n = sample->n_held;

    sample->hangs = hangs;
    if (hangs)
        return;
    sample->n_held = 0;
    for (size_t i = 0; i < n; i++)
        answer(sample, &sample->held[i]);
}

static void on_prepare(void *ctx, struct davit_call *call, const struct davit_dra_claim *claim)
{
    struct sample_dra *sample = ctx;

    sample->n_prepares++;
    handle(sample, &(struct sample_dra_held){call, claim, claim->ref});
}

static void on_unprepare(void *ctx, struct davit_call *call,
                         const struct davit_dra_claim_ref *claim)
{
    struct sample_dra *sample = ctx;

    sample->n_unprepares++;
    handle(sample, &(struct sample_dra_held){call, NULL, *claim});
}

/* ---- what happens ---- */

bool sample_dra_push(struct sample_dra *sample, struct davit_error *error)
{
    return sample_dra_devices_publish(&sample->devices, sample->dra, sample->node, error) &&
           sample_dra_devices_tell(&sample->devices, sample->dra,
                                   sample_is_fault(sample->options.fault, "health-other-names")
                                       ? "other-pool"
                                       : sample->node,
                                   error);
}

static void on_event(void *ctx, const struct davit_dra_event *event)
{
    (void)ctx;
    switch (event->kind) {
    case DAVIT_DRA_SERVING:
        if (strstr(event->socket, "-reg.sock"))
            sample_say("ready");
        break;
    case DAVIT_DRA_REGISTERED:
        sample_say("registered");
        break;
    case DAVIT_DRA_PUBLISHED:
        sample_say("published %s", event->pool);
        break;
    case DAVIT_DRA_LOST:
        break;
    case DAVIT_DRA_DROPPED:
        sample_complain("%s", event->error.message);
        break;
    case DAVIT_DRA_PROBLEM:
        sample_complain("%s; %s", event->error.message,
                        event->retry_ms > 0 ? "trying again" : "it is tried again");
        break;
    }
}

static void on_signal(void *ctx, int signum)
{
    (void)signum;
    if (sample_dra_fault_signal(ctx))
        return;
    davit_driver_stop(((struct sample_dra *)ctx)->driver);
}

/* ---- life ---- */

static bool open_faults(struct sample_dra *sample, struct davit_error *error)
{
    sample->crash_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (sample->crash_fd < 0) {
        *error = (struct davit_error){DAVIT_INTERNAL, "no timer"};
        return false;
    }
    return davit_poll_open(sample->driver, sample->crash_fd, DAVIT_READABLE, on_crash_time, sample,
                           error);
}

static bool open_dra(struct sample_dra *sample, struct davit_error *error)
{
    const struct sample_dra_options *from = &sample->options;
    char *registry_dir = sample_printf("%s/plugins_registry", from->kubelet_dir);
    static const struct davit_dra_owner pod = {"v1", "Pod", "driver", "0"};
    struct davit_dra_options options = {
        .driver = from->driver,
        .owner = sample_is_fault(from->fault, "owner-pod") ? &pod : NULL,
        .node = sample->node,
        .kubeconfig = from->kubeconfig,
        .flags = from->flags,
        .plugin_dir = sample->plugin_dir,
        .registry_dir = registry_dir,
        .instance = from->instance,
        .correct_ms = from->correct_s * 1000,
        .ctx = sample,
        .prepare = on_prepare,
        .unprepare = on_unprepare,
        .event = on_event,
    };

    sample->dra = davit_dra_open(sample->driver, &options, error);
    free(registry_dir);
    return sample->dra && sample_dra_push(sample, error);
}

static int run(struct sample_dra *sample)
{
    struct davit_error error;
    bool is_good;
    int code;

    sample->driver = davit_driver_new(&error);
    is_good = sample->driver &&
              davit_driver_on_signal(sample->driver, SIGTERM, on_signal, sample, &error) &&
              davit_driver_on_signal(sample->driver, SIGINT, on_signal, sample, &error) &&
              open_faults(sample, &error) && open_dra(sample, &error);
    if (is_good && sample->options.control) {
        sample->control =
            sample_control_open(sample->driver, sample->options.control, sample_dra_commands,
                                sample_dra_n_commands, sample, &error);
        is_good = sample->control;
    }
    code = sample_program_run(sample->driver, sample->control, is_good, &error);
    if (sample->crash_fd >= 0)
        (void)close(sample->crash_fd); /* was only a timer */
    return code;
}

static char *find_node(const struct sample_dra_options *options)
{
    char host[256] = "";
    const char *name = options->node ? options->node : getenv("NODE_NAME");

    if (!name)
        (void)gethostname(host, sizeof(host) - 1); /* the empty name is refused later */
    return sample_copy(name ? name : host);
}

int main(int argc, char **argv)
{
    struct sample_dra sample = {.crash_fd = -1};
    int code = sample_dra_options_parse(argc, argv, &sample.options);

    if (code >= 0)
        return code;
    if (sample.options.has_log)
        davit_log_to(sample.options.log, NULL, NULL);
    sample.node = find_node(&sample.options);
    sample.plugin_dir =
        sample.options.plugin_dir
            ? sample_copy(sample.options.plugin_dir)
            : sample_printf("%s/plugins/%s", sample.options.kubelet_dir, sample.options.driver);
    sample.held = sample_alloc(HELD_MAX * sizeof(sample.held[0]));
    sample_dra_devices_init(&sample.devices, &sample.options);
    sample_dra_fault_start(&sample);
    code = sample_dra_claims_init(&sample.claims, &sample.options, sample.plugin_dir)
               ? run(&sample)
               : SAMPLE_EXIT_START;
    sample_dra_claims_fini(&sample.claims);
    sample_dra_devices_fini(&sample.devices);
    free(sample.held);
    free(sample.fails);
    free(sample.plugin_dir);
    free(sample.node);
    return code;
}
