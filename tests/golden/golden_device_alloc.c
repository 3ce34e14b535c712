/* golden_device_alloc.c - replays golden/device-alloc: sequences of operations on a node, step by
 * step, with the outcome of each compared.
 *
 *     golden_device_alloc DIR      DIR holds sequences.jsonl
 *
 * Exact steps are compared exactly, and those with counts by counts. All steps, those too that
 * depend on free choices, are held against the README's rules (device_alloc_rules.c). Where the
 * reference crashed the sequence ends. */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "device_alloc_json.h"
#include "device_alloc_rules.h"
#include "device_alloc_world.h"
#include "files.h"
#include "json/json.h"

struct score {
    unsigned n_exact;
    unsigned n_counted;
    unsigned n_by_rules;
    unsigned n_crashes;
    unsigned n_failed;
};

static void print_json(const char *what, const struct dv_json *node)
{
    static const struct dv_json_style style = {.sort_keys = true};
    struct dv_buf buf;

    dv_buf_init(&buf, SIZE_MAX);
    dv_json_print(node, &style, &buf);
    printf("    %s %s\n", what, dv_buf_c(&buf));
    dv_buf_fini(&buf);
}

/* Resources without a healthy device: the reference gives an empty list, we give nothing. */
static void drop_empty_lists(struct dv_json *expected)
{
    struct dv_json *devices =
        dv_json_get(dv_json_get(expected, DV_STR("result")), DV_STR("devices"));
    struct dv_json *next;

    for (struct dv_json *one = devices ? dv_json_first(devices) : NULL; one; one = next) {
        next = dv_json_next(one);
        if (dv_json_n(one) == 0)
            dv_json_remove(one);
    }
}

static bool compare(const char *what, const struct dv_json *got, struct dv_json *expected)
{
    drop_empty_lists(expected);
    if (dv_json_eq(got, expected))
        return true;
    printf("%s: differs\n", what);
    print_json("got ", got);
    print_json("want", expected);
    return false;
}

static bool is_crash(const struct dv_json *step)
{
    return dv_json_get(dv_json_get(dv_json_get(step, DV_STR("expect")), DV_STR("result")),
                       DV_STR("panic")) != NULL;
}

/* One step; false ends the sequence. */
static bool replay_step(struct world *world, struct rules *rules, const struct dv_json *step,
                        const char *what, struct score *score)
{
    const struct dv_json *op = dv_json_get(step, DV_STR("op"));
    struct dv_json *exact = dv_json_get(step, DV_STR("expect"));
    struct dv_json *counts = dv_json_get(step, DV_STR("expectCounts"));
    struct dv_json *outcome = world_step(world, op);
    struct dv_err err;
    bool is_right;

    if (is_crash(step)) {
        score->n_crashes++;
        return false;
    }
    is_right = rules_check(rules, op, outcome, &err);
    if (!is_right) {
        printf("%s: %s\n", what, err.msg);
        print_json("op  ", op);
        print_json("got ", outcome);
    }
    if (exact)
        is_right &= compare(what, outcome, exact);
    else if (counts)
        is_right &= compare(what, outcome_to_counts(outcome, world->arena), counts);
    if (!is_right)
        score->n_failed++;
    else if (exact)
        score->n_exact++;
    else if (counts)
        score->n_counted++;
    else
        score->n_by_rules++;
    return is_right; /* what follows a disagreement would differ, too */
}

static void replay_sequence(const struct dv_json *sequence, struct dv_arena *arena,
                            struct score *score)
{
    const struct dv_json *steps = dv_json_get(sequence, DV_STR("steps"));
    struct world world;
    struct rules *rules = rules_new(arena);
    unsigned n = 0;

    world_init(&world, sequence, arena);
    for (const struct dv_json *step = dv_json_first(steps); step; step = dv_json_next(step)) {
        char what[128];

        (void)snprintf(what, sizeof(what), "%.*s step %u", DV_FMT(text_of(sequence, "id")), n++);
        if (!replay_step(&world, rules, step, what, score))
            break;
    }
    world_fini(&world);
}

static void replay_file(size_t kind, const char *name, FILE *file, void *ctx)
{
    struct score *score = ctx;
    char *text = NULL;
    size_t size = 0;
    ssize_t n;

    (void)kind;
    for (unsigned line = 1; (n = getline(&text, &size, file)) > 0; line++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        const struct dv_json *sequence;
        struct dv_err err;

        sequence = dv_json_parse((dv_str){text, (size_t)n}, NULL, arena, &err);
        if (sequence) {
            replay_sequence(sequence, arena, score);
            continue;
        }
        printf("%s:%u: %s\n", name, line, err.msg);
        score->n_failed++;
    }
    free(text);
}

int main(int argc, char **argv)
{
    static const struct golden_kind kind = {
        "sequences.jsonl", {"steps",      "mode", "numaNodes"},
         {NULL}
    };
    struct score score = {0};
    unsigned n_lost;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: golden_device_alloc DIR\n");
        return 2;
    }
    n_lost = golden_files(argv[1], &kind, 1, replay_file, &score);
    score.n_failed += n_lost;
    printf("%u steps exact, %u by counts, %u by rules; %u left out: the reference crashed there\n",
           score.n_exact, score.n_counted, score.n_by_rules, score.n_crashes);
    printf("%u passed, %u failed\n", score.n_exact + score.n_counted + score.n_by_rules,
           score.n_failed);
    return score.n_failed > 0;
}
