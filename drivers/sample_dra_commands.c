/* sample_dra_commands.c - what davit-sample-dra-driver does on command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample_dra.h"

static const char *const healths[] = {"unknown", "healthy", "unhealthy"}; /* as their numbers */

static void push(struct sample_dra *sample, FILE *out)
{
    struct davit_error error;

    if (sample_dra_push(sample, &error))
        sample_answer(out, "ok");
    else
        sample_answer(out, "error %s", error.message);
}

static void run_devices(void *ctx, FILE *out, char **words)
{
    struct sample_dra *sample = ctx;
    unsigned long n;

    if (!sample_number_parse(words[1], SAMPLE_DRA_DEVICES_MAX, &n)) {
        sample_answer(out, "error %s is no number up to %u", words[1], SAMPLE_DRA_DEVICES_MAX);
        return;
    }
    sample_dra_devices_resize(&sample->devices, n);
    push(sample, out);
}

/* ok N NAME=HEALTH[@TAINT] ... */
static void run_list(void *ctx, FILE *out, char **words)
{
    const struct sample_dra_devices *devices = &((const struct sample_dra *)ctx)->devices;

    (void)words;
    (void)fprintf(out, "ok %zu", devices->n);
    for (size_t i = 0; i < devices->n; i++) {
        const struct sample_dra_device *device = &devices->v[i];

        (void)fprintf(out, " %s=%s%s%s", device->name, healths[device->health],
                      device->taint ? "@" : "", device->taint ? device->taint : "");
    }
    (void)fputc('\n', out);
}

static void run_health(void *ctx, FILE *out, char **words)
{
    struct sample_dra *sample = ctx;
    struct sample_dra_device *device = sample_dra_devices_find(&sample->devices, words[1]);
    int health = sample_choose(words[2], healths, 3);

    if (!device) {
        sample_answer(out, "error no device %s", words[1]);
    } else if (health < 0) {
        sample_answer(out, "error health is healthy, unhealthy or unknown, not %s", words[2]);
    } else {
        device->health = (enum davit_dra_health)health;
        free(device->message);
        device->message = words[3] ? sample_copy(words[3]) : NULL;
        push(sample, out);
    }
}

static void run_taint(void *ctx, FILE *out, char **words)
{
    struct sample_dra *sample = ctx;
    struct sample_dra_device *device = sample_dra_devices_find(&sample->devices, words[1]);
    bool is_off = strcmp(words[2], "off") == 0;

    if (!device) {
        sample_answer(out, "error no device %s", words[1]);
    } else if (!is_off && !sample_dra_taint_check(words[2])) {
        sample_answer(out, "error a taint is like KEY[=VALUE]:EFFECT, not %s", words[2]);
    } else {
        free(device->taint);
        device->taint = is_off ? NULL : sample_copy(words[2]);
        push(sample, out);
    }
}

static void run_prepared(void *ctx, FILE *out, char **words)
{
    (void)words;
    sample_dra_claims_list(&((const struct sample_dra *)ctx)->claims, out);
}

static void run_calls(void *ctx, FILE *out, char **words)
{
    const struct sample_dra *sample = ctx;

    (void)words;
    sample_answer(out, "ok prepare=%zu unprepare=%zu held=%zu", sample->n_prepares,
                  sample->n_unprepares, sample->n_held);
}

static void run_counts(void *ctx, FILE *out, char **words)
{
    struct davit_dra_counts counts = davit_dra_count(((const struct sample_dra *)ctx)->dra);

    (void)words;
    sample_answer(out, "ok created=%llu updated=%llu deleted=%llu failed=%llu",
                  (unsigned long long)counts.n_created, (unsigned long long)counts.n_updated,
                  (unsigned long long)counts.n_deleted, (unsigned long long)counts.n_failed);
}

static void run_hang(void *ctx, FILE *out, char **words)
{
    static const char *const kinds[] = {"off", "prepare", "unprepare"}; /* as their bits */
    int at = words[1] ? sample_choose(words[1], kinds, 3)
                      : (int)(SAMPLE_HANG_PREPARE | SAMPLE_HANG_UNPREPARE);

    if (at < 0) {
        sample_answer(out, "error hang takes prepare, unprepare, off or nothing, not %s", words[1]);
        return;
    }
    sample_dra_hang(ctx, (unsigned)at);
    sample_answer(out, "ok");
}

static void run_fail(void *ctx, FILE *out, char **words)
{
    struct sample_dra *sample = ctx;

    free(sample->fails);
    sample->fails = strcmp(words[1], "off") == 0 ? NULL : sample_copy(words[1]);
    sample_answer(out, "ok");
}

static void run_crash(void *ctx, FILE *out, char **words)
{
    static const char *const times[] = {"off", "start", "before", "after"}; /* as their numbers */
    int at = sample_choose(words[1], times, 4);

    if (at < 0) {
        sample_answer(out, "error crash takes start, before, after or off, not %s", words[1]);
        return;
    }
    ((struct sample_dra *)ctx)->crash = (enum sample_dra_crash)at;
    sample_answer(out, "ok");
}

static void run_quit(void *ctx, FILE *out, char **words)
{
    (void)words;
    sample_control_quit(((const struct sample_dra *)ctx)->control);
    sample_answer(out, "ok");
}

const struct sample_command sample_dra_commands[] = {
    {"devices",  2, 2, run_devices,  false},
    {"list",     1, 1, run_list,     false},
    {"health",   3, 4, run_health,   true },
    {"taint",    3, 3, run_taint,    false},
    {"prepared", 1, 1, run_prepared, false},
    {"calls",    1, 1, run_calls,    false},
    {"counts",   1, 1, run_counts,   false},
    {"hang",     1, 2, run_hang,     false},
    {"fail",     2, 2, run_fail,     false},
    {"crash",    2, 2, run_crash,    false},
    {"quit",     1, 1, run_quit,     false},
};
const size_t sample_dra_n_commands = sizeof(sample_dra_commands) / sizeof(sample_dra_commands[0]);
