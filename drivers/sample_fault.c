/* sample_fault.c - mistakes that device plugins make, one at a time, on purpose: `davit verify` has
 * to find each. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample.h"

#define LEAK_BYTES 65536u

static const char *const names[] = {
    "never-registers",   "leaves-lock",       "ids-of-the-process", "fails-allocate",
    "one-at-a-time",     "refuses-last",      "gives-nothing",      "counts-for-itself",
    "missing-node",      "ignores-ids",       "answers-by-process", "leaks-memory",
    "leaks-descriptors", "file-per-allocate", "prestart-fails",     "prestart-once",
    "ignores-sigterm",   "leaves-socket",     "leaves-child",       "silent-health",
    "never-heals",       "keeps-stale",
};

bool sample_fault_check(const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is(const struct sample *sample, const char *name)
{
    return sample_is_fault(sample->options.fault, name);
}

static void stop_at_file(const struct sample *sample, const char *name, int flags)
{
    char *path = sample_printf("%s/%s", sample->options.kubelet_dir, name);
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if ((flags & O_EXCL) ? fd < 0 : access(path, F_OK) == 0) {
        sample_complain("%s is there", path);
        exit(SAMPLE_EXIT_START);
    }
    if (fd >= 0)
        (void)close(fd); /* is only there */
    free(path);
}

void sample_fault_start(struct sample *sample)
{
    if (is(sample, "never-registers"))
        for (;;)
            (void)pause();
    if (is(sample, "leaves-lock"))
        stop_at_file(sample, "plugin.lock", O_WRONLY | O_CREAT | O_EXCL);
    if (is(sample, "keeps-stale"))
        stop_at_file(sample, "device-plugins/example.com_dev.sock", O_RDONLY);
    if (is(sample, "ids-of-the-process"))
        for (size_t i = 0; i < sample->options.n_virtual; i++) {
            char *id = sample_printf("virtual-%d-%zu", (int)getpid(), i);

            (void)sample_devices_add(&sample->devices, id, NULL);
            free(id);
        }
    if (is(sample, "leaves-child")) {
        void (*before)(int) = signal(SIGTERM, SIG_IGN);

        if (fork() == 0)
            for (;;)
                (void)pause();
        (void)signal(SIGTERM, before);
    }
}

/* What is remembered from call to call. */
static const char *refused(const struct sample *sample,
                           const struct davit_allocate_request *request)
{
    static char held[64][64];
    static size_t n_held;

    if (is(sample, "fails-allocate"))
        return "cannot";
    if (is(sample, "one-at-a-time") && request->n_ids > 1)
        return "one at a time";
    for (size_t i = 0; i < request->n_ids; i++) {
        if (is(sample, "refuses-last") && strstr(request->ids[i], "3"))
            return "not this one";
        for (size_t j = 0; is(sample, "counts-for-itself") && j < n_held; j++)
            if (strcmp(held[j], request->ids[i]) == 0)
                return "in use";
        if (n_held < 64)
            (void)snprintf(held[n_held++], sizeof(held[0]), "%s", request->ids[i]);
    }
    return NULL;
}

static void waste(const struct sample *sample)
{
    static unsigned n_files;
    char *path;
    int fd;

    if (is(sample, "leaks-memory"))
        memset(sample_alloc(LEAK_BYTES), 1, LEAK_BYTES);
    if (is(sample, "leaks-descriptors"))
        (void)open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (!is(sample, "file-per-allocate"))
        return;
    path = sample_printf("%s/allocated-%u", sample->options.kubelet_dir, n_files++);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void)close(fd); /* is only there */
    free(path);
}

bool sample_fault_allocate(struct sample *sample, struct davit_call *call,
                           const struct davit_allocate_request *request)
{
    const char *why = refused(sample, request);
    char pid[16];

    waste(sample);
    if (why) {
        davit_call_fail(call, DAVIT_INTERNAL, "%s", why);
        return true;
    }
    if (is(sample, "missing-node"))
        davit_allocate_add_device(call, "/dev/no-such-node", "/dev/no-such-node", "rw");
    if (is(sample, "answers-by-process")) {
        (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
        davit_allocate_add_env(call, "PLUGIN_PID", pid);
    }
    if (is(sample, "ignores-ids"))
        davit_allocate_add_env(call, "DEVICE", "0");
    if (!is(sample, "gives-nothing") && !is(sample, "ignores-ids"))
        return false;
    davit_call_finish(call);
    return true;
}

bool sample_fault_prestart(struct sample *sample, struct davit_call *call)
{
    static unsigned n_starts;

    if (!is(sample, "prestart-fails") && !(is(sample, "prestart-once") && n_starts++ > 0))
        return false;
    davit_call_fail(call, DAVIT_INTERNAL, "cannot");
    return true;
}

bool sample_fault_signal(struct sample *sample, int signum)
{
    if (signum == SIGTERM && is(sample, "leaves-socket"))
        _exit(0);
    return (signum == SIGTERM && is(sample, "ignores-sigterm")) ||
           (signum == SIGUSR1 && is(sample, "silent-health")) ||
           (signum == SIGUSR2 && is(sample, "never-heals"));
}
