/* fuzz_cel_policy.c - an expression of a policy, over an object: what compiles gives twice the same
 * within its cost, or fails with a text. The input's first line is a variable, the rest uses it. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "cel/cel_policy.h"

#define BYTES_MAX 4096u
#define PROBLEM_BYTES_MAX 65536u
/* So that one input does not take long: rounds of comprehensions, in hundreds. */
#define PATIENCE 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_stopped(void *ctx)
{
    return ++*(int *)ctx > PATIENCE;
}

static bool decide(void *ctx, const struct dv_cel_check *check, struct dv_arena *arena,
                   struct dv_cel_decision *decision)
{
    (void)ctx;
    (void)arena;
    decision->is_allowed = check->verb.n % 2 == 0;
    decision->reason = check->name;
    return check->verb.n != 7;
}

static void add_member(struct dv_cel_tree *tree, const char *key, int64_t value)
{
    dv_cel_tree_key(tree, dv_str_from_c(key));
    dv_cel_tree_int(tree, value);
}

static const struct dv_cel_val *make_object(struct dv_arena *arena)
{
    struct dv_cel_tree *tree = dv_cel_tree_new(arena);

    dv_cel_tree_begin_map(tree, 4);
    add_member(tree, "n", 3);
    dv_cel_tree_key(tree, DV_STR("name"));
    dv_cel_tree_string(tree, DV_STR("x\xc3\xa9"));
    dv_cel_tree_key(tree, DV_STR("list"));
    dv_cel_tree_begin_list(tree, 3);
    dv_cel_tree_null(tree);
    dv_cel_tree_double(tree, 1.5);
    dv_cel_tree_bool(tree, true);
    dv_cel_tree_end(tree);
    dv_cel_tree_key(tree, DV_STR("data"));
    dv_cel_tree_begin_map(tree, 2);
    add_member(tree, "a", 1);
    add_member(tree, "b", -1);
    dv_cel_tree_end(tree);
    dv_cel_tree_end(tree);
    return dv_cel_tree_value(tree);
}

static enum dv_cel_outcome eval(const struct dv_cel_policy *policy, const struct dv_cel_rule *rule,
                                struct dv_arena *arena, struct dv_cel_gave *gave)
{
    int n_asked = 0;
    struct dv_cel_authorizer authorizer = {.decide = decide};
    struct dv_cel_inputs inputs = {.object = make_object(arena),
                                   .request = make_object(arena),
                                   .authorizer = &authorizer,
                                   .is_stopped = is_stopped,
                                   .ctx = &n_asked};

    return dv_cel_session_eval(dv_cel_session_new(policy, &inputs, arena), rule, gave);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_cel_policy_options options = {true, true};
    const struct dv_cel_rule_options how = {DV_CEL_WANTS_ANYTHING, true};
    struct dv_cel_policy *policy = dv_cel_policy_new(&options, arena);
    dv_str text = {(const char *)data, size};
    size_t line = dv_str_find_char(text, '\n');
    const struct dv_cel_rule *rule;
    struct dv_cel_gave gave;
    struct dv_cel_gave again;
    enum dv_cel_outcome outcome;
    DV_CLEANUP(dv_buf_fini) struct dv_buf problem;

    if (size > BYTES_MAX)
        return 0;
    dv_buf_init(&problem, PROBLEM_BYTES_MAX);
    if (line < size) {
        bool is_good =
            dv_cel_policy_add_variable(policy, DV_STR("v"), dv_str_slice(text, 0, line), &problem);

        assert(is_good == (problem.n == 0));
        text = dv_str_slice(text, line + 1, size);
    }
    problem.n = 0;
    rule = dv_cel_policy_compile(policy, text, how, arena, &problem);
    assert((rule != NULL) == (problem.n == 0));
    if (!rule)
        return 0;
    outcome = eval(policy, rule, arena, &gave);
    assert(outcome != DV_CEL_GAVE_ERROR || gave.s.n > 0);
    assert(eval(policy, rule, arena, &again) == outcome);
    assert(gave.b == again.b && gave.cost == again.cost && dv_str_eq(gave.s, again.s));
    return 0;
}
