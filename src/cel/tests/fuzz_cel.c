/* fuzz_cel.c - an expression: what parses is printed and parsed again as the same; what compiles
 * gives, on several devices, twice the same result within its cost, and can be explained. */
#include "cel/cel.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cel/read/ast.h"
#include "cel/tests/test_ast_eq.h"
#include "number/number.h"

/* Each character may become an escape of four, and each operator may get parentheses and blanks. */
#define PRINT_BYTES_MAX (DV_CEL_EXPRESSION_BYTES_MAX * 8u)
/* So that one input does not take long. */
#define COST_MAX 20000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t ints[] = {3, 1, 2};
static const dv_str strings[] = {DV_STR_INIT("red"), DV_STR_INIT("green")};

/* How a table of these is laid out is beyond clang-format 14. */
/* clang-format off */
static const struct dv_cel_attribute attributes[] = {
    {.name = DV_STR_INIT("model"), .kind = DV_CEL_ATTRIBUTE_STRING, .s = DV_STR_INIT("A100")},
    {.name = DV_STR_INIT("ok"), .kind = DV_CEL_ATTRIBUTE_BOOL, .b = true},
    {.name = DV_STR_INIT("cores"), .kind = DV_CEL_ATTRIBUTE_INT, .i = 8},
    {.name = DV_STR_INIT("ver"), .kind = DV_CEL_ATTRIBUTE_VERSION, .s = DV_STR_INIT("1.2.3")},
    {.name = DV_STR_INIT("o.x/name"), .kind = DV_CEL_ATTRIBUTE_STRING, .s = DV_STR_INIT("\xc3\xa9")},
    {.name = DV_STR_INIT("nums"), .kind = DV_CEL_ATTRIBUTE_INTS, .ints = ints, .n = 3},
    {.name = DV_STR_INIT("names"), .kind = DV_CEL_ATTRIBUTE_STRINGS, .strings = strings, .n = 2},
};
/* clang-format on */

static void check_eval(const struct dv_cel_expr *expr, const struct dv_cel_device *device)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_cel_budget budget = {.cost_max = COST_MAX};
    struct dv_cel_budget again = {.cost_max = COST_MAX};
    struct dv_cel_report report;
    struct dv_err err;
    bool is_match = false;
    bool is_match_again = false;
    bool is_ok = dv_cel_eval(expr, device, &budget, scratch, &is_match, &err);

    assert(!is_ok || budget.cost <= COST_MAX);
    assert(is_ok || err.code == DV_INVALID_ARGUMENT || err.code == DV_RESOURCE_EXHAUSTED);
    dv_arena_reset(scratch);
    assert(dv_cel_eval(expr, device, &again, scratch, &is_match_again, &err) == is_ok);
    assert(is_match == is_match_again && budget.cost == again.cost);
    if (budget.cost * 10 > COST_MAX)
        return;
    dv_arena_reset(scratch);
    dv_cel_explain(expr, device, scratch, &report);
    assert((report.verdict == DV_CEL_FAILS) == !is_ok);
    assert(!is_ok || (report.verdict == DV_CEL_MATCHES) == is_match);
}

static void check_compiled(dv_str text, bool has_lists, struct dv_arena *arena)
{
    struct dv_cel_options options = {
        .features = {true, has_lists}
    };
    struct dv_cel_device_input input = {.driver = DV_STR("dra.example.com"),
                                        .list_type_attributes = has_lists};
    struct dv_cel_capacity capacity = {.name = DV_STR("memory")};
    struct dv_err err;
    const struct dv_cel_expr *expr = dv_cel_compile(text, &options, arena, &err);

    if (!expr)
        return;
    check_eval(expr, dv_cel_device_new(&input, arena));
    capacity.value = dv_quantity_from_i64(1LL << 34, DV_QUANTITY_BINARY_SI);
    input.capacities = &capacity;
    input.n_capacities = 1;
    input.attributes = attributes;
    input.n_attributes = has_lists ? DV_COUNT(attributes) : DV_COUNT(attributes) - 2;
    check_eval(expr, dv_cel_device_new(&input, arena));
}

static void check_print(const struct dv_cel_ast *ast, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_cel_issues issues = {.arena = arena};
    struct dv_err err;
    const struct dv_cel_ast *again;

    dv_buf_init(&text, PRINT_BYTES_MAX);
    dv_cel_ast_print(ast, &text);
    assert(dv_buf_check(&text, "expression", &err));
    again = dv_cel_parse(dv_buf_str(&text), arena, &issues);
    assert(again && ast_eq(ast, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str text = {(const char *)data, size};
    struct dv_cel_issues issues = {.source = text, .arena = arena};
    const struct dv_cel_ast *ast;

    if (size > DV_CEL_EXPRESSION_BYTES_MAX)
        return 0;
    ast = dv_cel_parse(text, arena, &issues);
    if (!ast)
        return 0;
    check_print(ast, arena);
    check_compiled(text, false, arena);
    check_compiled(text, true, arena);
    return 0;
}
