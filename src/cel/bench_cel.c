/* bench_cel.c - what compiling and evaluating selectors costs, and beside it a floor: what is left
 * when there is nothing to compute. */
#include "cel/cel.h"

#include <malloc.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"

/* Each is measured this often, and its best run counts: the rest is other programs. */
#define RUNS 15
#define EVALUATIONS 20000
#define COMPILATIONS 200

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
    struct dv_err err;
    bool is_match;

    if (dv_cel_eval(work->expr, work->device, work->arena, &is_match, &err))
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

static bool bench(const char *text)
{
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
    printf("%10.0f %8.1f %7s  %s\n", compile_ns, eval_ns,
           mallinfo2().uordblks == in_use ? "none" : "some", text);
    return true;
}

int main(void)
{
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

    printf("%10s %8s %7s   ns each; memory from the system while evaluating\n", "compile", "eval",
           "memory");
    for (size_t i = 0; i < DV_COUNT(texts); i++)
        if (!bench(texts[i]))
            return 1;
    return 0;
}
