/* sample_dra_fault.c - mistakes that DRA drivers make, one at a time, on purpose: `davit verify`
 * has to find each. */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample_dra.h"

#define LEAK_BYTES 65536u
/* As long as a kill needs to come in between. */
#define SLOW_US 300000u

static const char *const names[] = {
    "never-registers",
    "leaves-lock",
    "keeps-stale",
    "names-of-the-process",
    "other-node",
    "prepare-fails",
    "drops-device",
    "no-request-names",
    "no-cdi",
    "cdi-missing",
    "remembers-one",
    "prepare-once",
    "refuses-config",
    "memory-only",
    "lock-per-claim",
    "trusts-checkpoint",
    "unprepare-fails",
    "unprepare-once",
    "unprepare-keeps-spec",
    "unprepare-leaves-file",
    "unprepare-removes-all",
    "prepare-again-fails",
    "leaks-memory",
    "leaks-descriptors",
    "ignores-sigterm",
    "leaves-sockets",
    "removes-specs-at-end",
    "health-other-names",
    "owner-pod",
};

bool sample_dra_fault_check(const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is(const struct sample_dra *sample, const char *name)
{
    return sample_is_fault(sample->options.fault, name);
}

static bool fail(struct davit_error *error, const char *text)
{
    error->code = DAVIT_INTERNAL;
    (void)snprintf(error->message, sizeof(error->message), "%s", text);
    return false;
}

/* A file in the driver's directory. True: it was there already. */
static bool leave_file(const struct sample_dra *sample, const char *name)
{
    char *path = sample_printf("%s/%s", sample->plugin_dir, name);
    bool was_there = access(path, F_OK) == 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd >= 0)
        (void)close(fd); /* is only there */
    free(path);
    return was_there;
}

static void remove_file(const struct sample_dra *sample, const char *name)
{
    char *path = sample_printf("%s/%s", sample->plugin_dir, name);

    (void)unlink(path); /* gone is what we want */
    free(path);
}

static void remove_specs(const struct sample_dra *sample)
{
    char *pattern = sample_printf("%s/*.json", sample->options.cdi_dir);
    glob_t found;

    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            (void)unlink(found.gl_pathv[i]); /* gone is what we want */
    globfree(&found);
    free(pattern);
}

void sample_dra_fault_start(struct sample_dra *sample)
{
    struct davit_error error;
    char *sockets = sample_printf("%s/dra*.sock", sample->plugin_dir);
    glob_t found;

    if (is(sample, "never-registers"))
        for (;;)
            (void)pause();
    (void)sample_dir_make(sample->plugin_dir, &error); /* told of when it is needed */
    if (is(sample, "leaves-lock") && leave_file(sample, "driver.lock"))
        exit(SAMPLE_EXIT_START);
    if (is(sample, "keeps-stale") && glob(sockets, 0, NULL, &found) == 0)
        exit(SAMPLE_EXIT_START);
    free(sockets);
    for (size_t i = 0; is(sample, "names-of-the-process") && i < sample->devices.n; i++) {
        free(sample->devices.v[i].name);
        sample->devices.v[i].name = sample_printf("device-%d-%zu", (int)getpid(), i);
    }
    if (is(sample, "other-node")) {
        free(sample->node);
        sample->node = sample_copy("other-node");
    }
}

/* Claims that this process has prepared, in their order. */
static struct {
    char uids[1024][48];
    size_t n;
} seen;

static bool was_seen(const char *uid)
{
    for (size_t i = 0; i < seen.n; i++)
        if (strcmp(seen.uids[i], uid) == 0)
            return true;
    return false;
}

static bool has_record(const struct sample_dra *sample, const char *uid)
{
    char *path = sample_printf("%s/%s", sample->claims.dir, uid);
    bool is_there = access(path, F_OK) == 0;

    free(path);
    return is_there;
}

static bool before_prepare(struct sample_dra *sample, const struct sample_dra_held *held,
                           struct davit_error *error)
{
    const char *uid = held->ref.uid;
    bool is_known = has_record(sample, uid);

    if (is(sample, "leaks-memory"))
        memset(sample_alloc(LEAK_BYTES), 1, LEAK_BYTES);
    if (is(sample, "leaks-descriptors"))
        (void)open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (is(sample, "prepare-fails") || (is(sample, "prepare-once") && is_known) ||
        (is(sample, "refuses-config") && held->claim->n_configs > 0) ||
        (is(sample, "memory-only") && is_known && !was_seen(uid)) ||
        (is(sample, "prepare-again-fails") && !is_known && was_seen(uid)))
        return fail(error, "cannot prepare this claim");
    if (is(sample, "lock-per-claim")) {
        if (leave_file(sample, "claim.lock"))
            return fail(error, "another call is under way");
        (void)usleep(SLOW_US);
        remove_file(sample, "claim.lock");
    }
    if (!was_seen(uid) && seen.n < 1024)
        (void)snprintf(seen.uids[seen.n++], sizeof(seen.uids[0]), "%s", uid);
    return true;
}

bool sample_dra_fault_before(struct sample_dra *sample, const struct sample_dra_held *held,
                             struct davit_error *error)
{
    if (held->claim)
        return before_prepare(sample, held, error);
    if (is(sample, "unprepare-fails") ||
        (is(sample, "unprepare-once") && !has_record(sample, held->ref.uid)))
        return fail(error, "cannot unprepare this claim");
    return true;
}

void sample_dra_fault_after(struct sample_dra *sample, const struct sample_dra_held *held)
{
    if (held->claim && is(sample, "cdi-missing"))
        remove_specs(sample);
    if (!held->claim && is(sample, "unprepare-removes-all"))
        remove_specs(sample);
    if (!held->claim && is(sample, "unprepare-leaves-file"))
        (void)leave_file(sample, sample_printf("left-%s-%zu", held->ref.uid, sample->n_unprepares));
}

bool sample_dra_fault_answer(const struct sample_dra *sample, struct davit_dra_prepared *prepared)
{
    static char pool[256];
    static char device[256];

    if (is(sample, "no-request-names"))
        prepared->n_requests = 0;
    if (is(sample, "no-cdi"))
        prepared->n_cdi = 0;
    if (is(sample, "remembers-one")) {
        if (!pool[0]) {
            (void)snprintf(pool, sizeof(pool), "%s", prepared->pool);
            (void)snprintf(device, sizeof(device), "%s", prepared->device);
        }
        prepared->pool = pool;
        prepared->device = device;
    }
    return !is(sample, "drops-device");
}

bool sample_dra_fault_signal(const struct sample_dra *sample)
{
    if (is(sample, "leaves-sockets"))
        _exit(0);
    if (is(sample, "removes-specs-at-end"))
        remove_specs(sample);
    return is(sample, "ignores-sigterm");
}
