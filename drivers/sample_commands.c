/* sample_commands.c - what davit-sample-device-plugin does on command. */
#include <stdio.h>
#include <string.h>

#include "davit/driver.h"
#include "sample.h"
#include "sample_program.h"

#define FAILURES_MAX 1000000u

static void push(const struct sample *sample, FILE *out)
{
    struct davit_error error;

    if (sample_devices_push(&sample->devices, sample->plugin, &error))
        sample_answer(out, "ok");
    else
        sample_answer(out, "error %s", error.message);
}

static void run_health(void *ctx, FILE *out, char **words)
{
    struct sample *sample = ctx;
    struct sample_device *device = sample_devices_find(&sample->devices, words[1]);

    if (!device) {
        sample_answer(out, "error no device %s", words[1]);
    } else if (strcmp(words[2], "healthy") != 0 && strcmp(words[2], "unhealthy") != 0) {
        sample_answer(out, "error health is healthy or unhealthy, not %s", words[2]);
    } else {
        device->is_broken = strcmp(words[2], "unhealthy") == 0;
        push(sample, out);
    }
}

static void run_add(void *ctx, FILE *out, char **words)
{
    struct sample *sample = ctx;
    struct sample_devices *devices = &sample->devices;
    struct sample_numa numa = {.n = 0};
    struct sample_device *device;

    if (words[2] && !sample_numa_parse(words[2], &numa)) {
        sample_answer(out, "error NUMA nodes are like 0 or 0+1, not %s", words[2]);
        return;
    }
    device = sample_devices_find_any(devices, words[1]);
    if (device && !device->is_removed) {
        sample_answer(out, "error there is a device %s", words[1]);
        return;
    }
    if (!device)
        device = sample_devices_add(devices, words[1], NULL);
    device->is_removed = device->is_broken = false;
    if (words[2])
        device->numa = numa;
    push(sample, out);
}

static void run_remove(void *ctx, FILE *out, char **words)
{
    struct sample *sample = ctx;
    struct sample_device *device = sample_devices_find(&sample->devices, words[1]);

    if (!device) {
        sample_answer(out, "error no device %s", words[1]);
        return;
    }
    device->is_removed = true;
    push(sample, out);
}

/* ok N ID=HEALTH[@NODE[+NODE...]] ... */
static void run_list(void *ctx, FILE *out, char **words)
{
    const struct sample_devices *devices = &((const struct sample *)ctx)->devices;
    size_t n = 0;

    (void)words;
    for (size_t i = 0; i < devices->n; i++)
        n += !devices->v[i]->is_removed;
    (void)fprintf(out, "ok %zu", n);
    for (size_t i = 0; i < devices->n; i++) {
        const struct sample_device *device = devices->v[i];

        if (device->is_removed)
            continue;
        (void)fprintf(out, " %s=%s", device->id,
                      sample_device_is_healthy(device) ? "healthy" : "unhealthy");
        for (size_t k = 0; k < device->numa.n; k++)
            (void)fprintf(out, "%c%d", k ? '+' : '@', device->numa.nodes[k]);
    }
    (void)fputc('\n', out);
}

static void run_fail_allocate(void *ctx, FILE *out, char **words)
{
    struct sample *sample = ctx;
    unsigned long n;

    if (!sample_number_parse(words[1], FAILURES_MAX, &n)) {
        sample_answer(out, "error %s is no number up to %u", words[1], FAILURES_MAX);
        return;
    }
    sample->n_failures = n;
    sample_answer(out, "ok");
}

static void run_hang(void *ctx, FILE *out, char **words)
{
    if (words[1] && strcmp(words[1], "off") != 0) {
        sample_answer(out, "error hang takes off or nothing, not %s", words[1]);
        return;
    }
    sample_hang(ctx, !words[1]);
    sample_answer(out, "ok");
}

static void run_quit(void *ctx, FILE *out, char **words)
{
    (void)words;
    sample_control_quit(((const struct sample *)ctx)->control);
    sample_answer(out, "ok");
}

const struct sample_command sample_commands[] = {
    {"health",        3, 3, run_health,        false},
    {"add",           2, 3, run_add,           false},
    {"remove",        2, 2, run_remove,        false},
    {"list",          1, 1, run_list,          false},
    {"fail-allocate", 2, 2, run_fail_allocate, false},
    {"hang",          1, 2, run_hang,          false},
    {"quit",          1, 1, run_quit,          false},
};
const size_t sample_n_commands = sizeof(sample_commands) / sizeof(sample_commands[0]);
