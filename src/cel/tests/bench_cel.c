/* bench_cel.c - what compiling and evaluating selectors costs, and beside it a floor: what is left
 * when there is nothing to compute.
 *
 *     bench_cel               the table; instructions are counted by callgrind, where there is one
 *     bench_cel --eval I N    evaluates selector I N times: what callgrind runs */
#include "cel/cel.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "number/number.h"

/* Each is measured this often, and its best run counts: the rest is other programs. */
#define RUNS 15
#define EVALUATIONS 20000
#define COMPILATIONS 200
/* Evaluations under callgrind: twice, and the difference is what as many cost. */
#define COUNTED 1000

struct work {
    dv_str text;
    const struct dv_cel_expr *expr;
    const struct dv_cel_device *device;
    struct dv_arena *arena;
    unsigned n_matches; /* so that nothing is optimized away */
};

static void run_compile(struct work *work)
{
    struct dv_err err;

    work->n_matches += dv_cel_compile(work->text, NULL, work->arena, &err) != NULL;
    dv_arena_reset(work->arena);
}

static void run_eval(struct work *work)
{
    struct dv_cel_budget budget = {.cost_max = DV_CEL_COST_MAX};
    struct dv_err err;
    bool is_match;

    if (dv_cel_eval(work->expr, work->device, &budget, work->arena, &is_match, &err))
        work->n_matches += is_match;
    dv_arena_reset(work->arena);
}

static double measure(void (*run)(struct work *work), struct work *work, int n)
{
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < RUNS; i++) {
        uint64_t start = dv_clock_now_ns(dv_clock_real());
        uint64_t took;

        for (int k = 0; k < n; k++)
            run(work);
        took = dv_clock_now_ns(dv_clock_real()) - start;
        best = took < best ? took : best;
    }
    return (double)best / n;
}

static struct dv_cel_device *make_device(struct dv_arena *arena)
{
    static const struct dv_cel_attribute attributes[] = {
        {.name = DV_STR_INIT("model"),
         .kind = DV_CEL_ATTRIBUTE_STRING,
         .s = DV_STR_INIT("A100-SXM4")                                                                   },
        {.name = DV_STR_INIT("cores"),                           .kind = DV_CEL_ATTRIBUTE_INT,  .i = 108 },
        {.name = DV_STR_INIT("healthy"),                         .kind = DV_CEL_ATTRIBUTE_BOOL, .b = true},
        {.name = DV_STR_INIT("driverVersion"),
         .kind = DV_CEL_ATTRIBUTE_VERSION,
         .s = DV_STR_INIT("550.54.15")                                                                   },
        {.name = DV_STR_INIT("numa"),                            .kind = DV_CEL_ATTRIBUTE_INT,  .i = 1   },
        {.name = DV_STR_INIT("resource.kubernetes.io/pcieRoot"),
         .kind = DV_CEL_ATTRIBUTE_STRING,
         .s = DV_STR_INIT("pci0000:01")                                                                  },
    };
    struct dv_cel_capacity *capacity = DV_NEW(arena, struct dv_cel_capacity);
    struct dv_cel_device_input input = {.driver = DV_STR("gpu.example.com"),
                                        .attributes = attributes,
                                        .n_attributes = DV_COUNT(attributes),
                                        .capacities = capacity,
                                        .n_capacities = 1};

    capacity->name = DV_STR("memory");
    capacity->value = dv_quantity_from_i64(80LL << 30, DV_QUANTITY_BINARY_SI);
    return dv_cel_device_new(&input, arena);
}

static const char *const texts[] = {
    "true",
    "device.driver == \"gpu.example.com\"",
    "device.attributes[\"gpu.example.com\"].model == \"A100-SXM4\"",
    "device.capacity[\"gpu.example.com\"].memory.compareTo(quantity(\"40Gi\")) >= 0",
    "device.driver == \"gpu.example.com\" && device.attributes[\"gpu.example.com\"].healthy && "
    "device.attributes[\"gpu.example.com\"].cores >= 64",
    "device.attributes[\"gpu.example.com\"].driverVersion.isGreaterThan(semver(\"535.0.0\"))",
    "\"model\" in device.attributes[\"gpu.example.com\"] && "
    "device.attributes[\"gpu.example.com\"].model.matches(\"^A100\")",
    "device.attributes[\"gpu.example.com\"].exists(k, k.startsWith(\"num\"))",
};

/* Instructions of a whole run with n evaluations; 0: callgrind does not say. */
static unsigned long long count(const char *self, size_t i, int n)
{
    unsigned long long counted = 0;
    char command[4096];
    char line[512];
    FILE *output;

    (void)snprintf(command, sizeof(command),
                   "valgrind --tool=callgrind --callgrind-out-file=/dev/null '%s' --eval %zu %d "
                   "2>&1",
                   self, i, n);
    output = popen(command, "re");
    if (!output)
        return 0;
    while (fgets(line, sizeof(line), output)) {
        const char *at = strstr(line, "Collected : ");

        if (at)
            counted = strtoull(at + strlen("Collected : "), NULL, 10);
    }
    return pclose(output) == 0 ? counted : 0;
}

/* Instructions of one evaluation. */
static void print_instructions(const char *self, size_t i)
{
    unsigned long long less = count(self, i, COUNTED);
    unsigned long long more = less ? count(self, i, 2 * COUNTED) : 0;

    if (more > less)
        printf(" %12.0f", (double)(more - less) / COUNTED);
    else
        printf(" %12s", "-");
}

/* For callgrind: nothing but evaluations. */
static int evaluate(size_t i, long n)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *kept = dv_arena_new();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct work work = {.text = dv_str_from_c(texts[i]), .arena = arena};
    struct dv_err err;

    work.device = make_device(kept);
    work.expr = dv_cel_compile(work.text, NULL, kept, &err);
    if (!work.expr)
        return 1;
    for (long k = 0; k < n; k++)
        run_eval(&work);
    return work.n_matches == 0;
}

static bool bench(const char *self, size_t i)
{
    const char *text = texts[i];
    DV_CLEANUP(dv_arena_freep) struct dv_arena *kept = dv_arena_new();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct work work = {.text = dv_str_from_c(text), .arena = arena};
    struct dv_err err;
    size_t in_use;
    double compile_ns;
    double eval_ns;

    work.device = make_device(kept);
    work.expr = dv_cel_compile(work.text, NULL, kept, &err);
    if (!work.expr) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return false;
    }
    compile_ns = measure(run_compile, &work, COMPILATIONS);
    run_eval(&work);
    in_use = mallinfo2().uordblks;
    eval_ns = measure(run_eval, &work, EVALUATIONS);
    in_use = mallinfo2().uordblks - in_use;
    printf("%10.0f %8.1f", compile_ns, eval_ns);
    (void)fflush(stdout);
    print_instructions(self, i);
    printf(" %7s  %s\n", in_use == 0 ? "none" : "some", text);
    return true;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--eval") == 0) {
        size_t i = strtoul(argv[2], NULL, 10);

        return i < DV_COUNT(texts) ? evaluate(i, strtol(argv[3], NULL, 10)) : 2;
    }
    printf("%10s %8s %12s %7s   ns each, instructions an eval; memory from the system while "
           "evaluating\n",
           "compile", "eval", "instructions", "memory");
    for (size_t i = 0; i < DV_COUNT(texts); i++)
        if (!bench(argv[0], i))
            return 1;
    return 0;
}
