/* bench_validate.c - what it costs to check a large slice and a claim that are good, and a slice in
 * which everything is wrong. */
#include "resource/validate.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "json/json.h"

/* Each case runs until this long, several times, and its best run counts: the rest is other
 * programs. */
#define RUN_NS (20u * 1000u * 1000u)
#define RUNS 7
#define TEXT_BYTES_MAX (16u * 1024u * 1024u)

struct subject {
    struct dv_validation what;
    const char *name;
};

static const void *decode(const struct dv_kind *kind, dv_str text, struct dv_arena *arena)
{
    const struct dv_message *message = kind->versions[0].message;
    const struct dv_time now = {.seconds = 1767225600, .is_set = true};
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *json = dv_json_parse(dv_str_copy(text, arena), NULL, arena, &err);

    if (!json || !dv_decode_json(message, json, DV_UNKNOWN_DROP, arena, value, NULL, &err)) {
        (void)fprintf(stderr, "bench_validate: %s\n", err.msg);
        exit(1);
    }
    dv_default(kind, &kind->versions[0], value, now, arena);
    return value;
}

static const void *make_slice(unsigned n_devices, const char *device, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_add_c(&buf, "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"gpu.example.com\","
                       "\"nodeName\":\"node-a\",\"pool\":{\"name\":\"node-a\",\"generation\":1,"
                       "\"resourceSliceCount\":1},\"devices\":[");
    for (unsigned i = 0; i < n_devices; i++)
        dv_buf_printf(&buf, "%s{\"name\":\"gpu-%u\",%s}", i > 0 ? "," : "", i, device);
    dv_buf_add_c(&buf, "]}}");
    return decode(dv_kind(DV_KIND_SLICE), dv_buf_str(&buf), arena);
}

static uint64_t run(const struct subject *subject, struct dv_arena *scratch, size_t *n_problems)
{
    uint64_t start = dv_clock_now_ns(dv_clock_real());
    uint64_t n = 0;

    do {
        struct dv_problems problems = {.arena = scratch};

        dv_arena_reset(scratch);
        dv_validate(&subject->what, &problems);
        *n_problems = problems.n;
        n++;
    } while (dv_clock_now_ns(dv_clock_real()) - start < RUN_NS);
    return (dv_clock_now_ns(dv_clock_real()) - start) / n;
}

static void bench(const struct subject *subject)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    uint64_t best = UINT64_MAX;
    size_t n_problems = 0;

    for (int i = 0; i < RUNS; i++) {
        uint64_t ns = run(subject, scratch, &n_problems);

        best = ns < best ? ns : best;
    }
    printf("%-40s%10.2f us  %zu problems\n", subject->name, (double)best / 1000, n_problems);
}

int main(void)
{
    static const char plain[] =
        "\"attributes\":{\"model\":{\"string\":\"A9\"},\"numa\":{\"int\":0},\"firmware\":"
        "{\"version\":\"2.1.0\"},\"resource.kubernetes.io/"
        "pciBusID\":{\"string\":\"0000:65:00.0\"}},"
        "\"capacity\":{\"memory\":{\"value\":\"40Gi\"},\"cores\":{\"value\":\"108\"}}";
    static const char bad[] =
        "\"attributes\":{\"a b\":{},\"1\":{\"version\":\"x\"}},\"taints\":[{}]";
    static const char claim[] =
        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\",\"labels\":{\"app\":\"x\"}},\"spec\":"
        "{\"devices\":{\"requests\":[{\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"gpu\"}},"
        "{\"name\":\"f\",\"firstAvailable\":[{\"name\":\"s\",\"deviceClassName\":\"gpu\"}]}],"
        "\"constraints\":[{\"requests\":[\"r\",\"f/s\"],\"matchAttribute\":\"a.b/c\"}]}}}";
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_validation slice = {.kind = dv_kind(DV_KIND_SLICE), .operation = DV_CREATE};
    struct subject subjects[] = {
        {slice,                                                    "slice of 128 devices"        },
        {slice,                                                    "slice of 64 devices, all bad"},
        {{.kind = dv_kind(DV_KIND_CLAIM), .operation = DV_CREATE}, "claim with two requests"     },
    };

    subjects[0].what.value = make_slice(128, plain, arena);
    subjects[1].what.value = make_slice(64, bad, arena);
    subjects[2].what.value = decode(dv_kind(DV_KIND_CLAIM), dv_str_from_c(claim), arena);
    for (size_t i = 0; i < DV_COUNT(subjects); i++)
        bench(&subjects[i]);
    return 0;
}
