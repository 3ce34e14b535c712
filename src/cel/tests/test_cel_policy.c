/* test_cel_policy.c - expressions of admission policies: what they may name, what they give, and
 * what they cost. */
#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "cel/cel_policy.h"

#define TEXT_BYTES_MAX 100000u

static bool decide(void *ctx, const struct dv_cel_check *check, struct dv_arena *arena,
                   struct dv_cel_decision *decision)
{
    bool *is_unknown = ctx;

    (void)arena;
    if (is_unknown && *is_unknown)
        return false;
    decision->is_allowed = dv_str_eq(check->verb, DV_STR("use")) ||
                           dv_str_eq(check->path, DV_STR("/open")) ||
                           dv_str_eq(check->account_name, DV_STR("trusted")) ||
                           dv_str_eq(check->label_selector, DV_STR("a=b"));
    decision->reason = dv_str_eq(check->resource, DV_STR("pods")) ? DV_STR("pods") : check->name;
    return true;
}

/* {"metadata": {"name": "x"}, "n": 3, "half": 0.5, "yes": true, "none": null, "list": ["a", "b"]}
 */
static const struct dv_cel_val *make_object(struct dv_arena *arena)
{
    struct dv_cel_tree *tree = dv_cel_tree_new(arena);

    dv_cel_tree_begin_map(tree, 6);
    dv_cel_tree_key(tree, DV_STR("metadata"));
    dv_cel_tree_begin_map(tree, 1);
    dv_cel_tree_key(tree, DV_STR("name"));
    dv_cel_tree_string(tree, DV_STR("x"));
    dv_cel_tree_end(tree);
    dv_cel_tree_key(tree, DV_STR("n"));
    dv_cel_tree_int(tree, 3);
    dv_cel_tree_key(tree, DV_STR("half"));
    dv_cel_tree_double(tree, 0.5);
    dv_cel_tree_key(tree, DV_STR("yes"));
    dv_cel_tree_bool(tree, true);
    dv_cel_tree_key(tree, DV_STR("none"));
    dv_cel_tree_null(tree);
    dv_cel_tree_key(tree, DV_STR("list"));
    dv_cel_tree_begin_list(tree, 2);
    dv_cel_tree_string(tree, DV_STR("a"));
    dv_cel_tree_string(tree, DV_STR("b"));
    dv_cel_tree_end(tree);
    dv_cel_tree_end(tree);
    return dv_cel_tree_value(tree);
}

static struct dv_cel_policy *make_policy(struct dv_arena *arena)
{
    static const char *const variables[][2] = {
        {"three",   "object.n"                   },
        {"six",     "int(variables.three) * 2"   },
        {"bad",     "object.missing"             },
        {"worse",   "variables.bad + 'x'"        },
        {"names",   "object.list.map(x, x + '!')"},
        {"checker", "authorizer.group('g')"      },
        {"size",    "quantity('1Gi')"            },
    };
    struct dv_cel_policy_options options = {.has_params = true, .has_variables = true};
    struct dv_cel_policy *policy = dv_cel_policy_new(&options, arena);
    DV_CLEANUP(dv_buf_fini) struct dv_buf problem;

    dv_buf_init(&problem, TEXT_BYTES_MAX);
    for (size_t i = 0; i < DV_COUNT(variables); i++)
        assert_true(dv_cel_policy_add_variable(policy, dv_str_from_c(variables[i][0]),
                                               dv_str_from_c(variables[i][1]), &problem));
    return policy;
}

struct fixture {
    struct dv_arena *arena;
    struct dv_cel_policy *policy;
    struct dv_cel_authorizer authorizer;
    struct dv_cel_inputs inputs;
};

static struct fixture make(void)
{
    struct dv_arena *arena = dv_arena_new();
    struct fixture f = {.arena = arena, .policy = make_policy(arena)};

    f.authorizer = (struct dv_cel_authorizer){
        .decide = decide, .request = {.resource = DV_STR("pods"), .name = DV_STR("p")}
    };
    f.inputs.object = make_object(arena);
    f.inputs.old_object = NULL;
    f.inputs.request = f.inputs.object; /* any map */
    return f;
}

static enum dv_cel_outcome eval(struct fixture *f, const char *text, enum dv_cel_wanted wanted,
                                struct dv_cel_gave *gave)
{
    const struct dv_cel_rule_options how = {wanted, true};
    const struct dv_cel_rule *rule;
    DV_CLEANUP(dv_buf_fini) struct dv_buf problem;

    dv_buf_init(&problem, TEXT_BYTES_MAX);
    rule = dv_cel_policy_compile(f->policy, dv_str_from_c(text), how, f->arena, &problem);
    if (!rule)
        fail_msg("%s: %s", text, dv_buf_c(&problem));
    f->inputs.authorizer = &f->authorizer;
    return dv_cel_session_eval(dv_cel_session_new(f->policy, &f->inputs, f->arena), rule, gave);
}

static void computes_over_objects_of_any_shape(void **state)
{
    static const char *const cases[] = {
        "object.metadata.name == 'x' && object.n == 3 && object.half < 1 && object.yes == true",
        "object.none == null && oldObject == null && namespaceObject == null && params == null",
        "object.list.all(i, v, v == 'ab'.charAt(i)) && 'a' in object.list",
        "!has(object.other) && object.?other.orValue('y') == 'y'",
        "object.?a.?b[?0] == optional.none()",
        "object.list[?5].orValue('z') == 'z' && object['n'] == 3",
        "object.list.isSorted() && sets.contains(object.list, ['a']) && isQuantity('1Gi')",
        "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.1.1')",
        "variables.six == 6 && variables.three == 3 && variables.names == ['a!', 'b!']",
        "variables.?six.orValue(0) == 6 && has(variables.six) && variables.size.isInteger()",
        "true || variables.bad == 1",
        "authorizer.group('apps').resource('x').namespace('n').name('d').check('use').allowed()",
        "!authorizer.group('apps').resource('deployments').check('get').allowed()",
        "authorizer.path('/open').check('get').allowed()",
        "!authorizer.path('/x').check('get').errored()",
        "authorizer.serviceAccount('ns', 'trusted').group('').resource('x').check('get').allowed()",
        "authorizer.group('').resource('x').labelSelector('a=b').check('get').allowed()",
        "authorizer.requestResource.check('get').reason() == 'pods'",
        "authorizer.requestResource.subresource('status').check('use').error() == ''",
        "variables.checker.resource('things').check('use').allowed()",
    };
    struct fixture f = make();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_cel_gave gave;
        enum dv_cel_outcome outcome = eval(&f, cases[i], DV_CEL_WANTS_BOOL, &gave);

        if (outcome != DV_CEL_GAVE_BOOL || !gave.b)
            fail_msg("%s: outcome %d: %.*s", cases[i], (int)outcome, DV_FMT(gave.s));
    }
    dv_arena_free(f.arena);
}

static void tells_what_fails_when_it_runs(void **state)
{
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"object.missing == 1",                                                 "no such key: missing"                           },
        {"object.none.x == 1",                                                  "no such key: x"                                 },
        {"1 / int(object.n - 3) == 1",                                          "division by zero"                               },
        {"object.list[2] == 'a'",                                               "index out of bounds: 2"                         },
        {"authorizer.path('').check('get').allowed()",                          "path must not be empty"                         },
        {"authorizer.group('').resource('').check('x').allowed()",              "resource must not be empty"                     },
        {"variables.bad == 1",
         "composited variable \"bad\" fails to evaluate: no such key: missing"                                                   },
        {"variables.worse == 'x'",
         "composited variable \"worse\" fails to evaluate: composited variable \"bad\" fails to "
         "evaluate: no such key: missing"                                                                                        },
        {"[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, "
         "[1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, a + b "
         "+ c + d + e + f > 0))))))",                                  "operation cancelled: actual cost limit exceeded"},
        {"[1, 2, 3].all(x, authorizer.requestResource.check('use').allowed())",
         "operation cancelled: actual cost limit exceeded"                                                                       },
    };
    struct fixture f = make();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_cel_gave gave;

        assert_int_equal(eval(&f, cases[i].text, DV_CEL_WANTS_BOOL, &gave), DV_CEL_GAVE_ERROR);
        assert_str(gave.s, cases[i].error);
    }
    dv_arena_free(f.arena);
}

static void refuses_what_does_not_compile(void **state)
{
    static const struct {
        const char *text;
        struct dv_cel_rule_options how;
        const char *problem; /* a part of it */
    } cases[] = {
        {"object.x ==",                                                 {DV_CEL_WANTS_BOOL, true},   "Syntax error"                       },
        {"1 + 1",                                                       {DV_CEL_WANTS_BOOL, true},   "must evaluate to bool but got int"  },
        {"object.x",                                                    {DV_CEL_WANTS_STRING, true}, "must evaluate to string but got dyn"},
        {"1",
         {DV_CEL_WANTS_STRING_OR_NULL, true},
         "must evaluate to one of [string null_type] but got int"                                                                         },
        {"nope == 1",
         {DV_CEL_WANTS_BOOL, true},
         "1:1: undeclared reference to 'nope' (in container '')"                                                                          },
        {"variables.nope == 1",                                         {DV_CEL_WANTS_BOOL, true},   "1:10: undefined field 'nope'"       },
        {"request.nope == ''",                                          {DV_CEL_WANTS_BOOL, true},   "undefined field 'nope'"             },
        {"request.name == 1",
         {DV_CEL_WANTS_BOOL, true},
         "found no matching overload for '_==_' applied to '(string, int)'"                                                               },
        {"object.data.size() == 'a'",
         {DV_CEL_WANTS_BOOL, true},
         "found no matching overload for '_==_' applied to '(int, string)'"                                                               },
        {"authorizer.group('').resource('pods').check('get').reason()",
         {DV_CEL_WANTS_STRING, false},
         "reference to 'authorizer'"                                                                                                      },
        {"authorizer.group('').resource('pods').check('get').denied()",
         {DV_CEL_WANTS_BOOL, true},
         "reference to 'denied'"                                                                                                          },
        {"cel.bind(x, 1, x == 1)",                                      {DV_CEL_WANTS_BOOL, true},   "reference to 'bind'"                },
        {"[1, 'a'] == []",                                              {DV_CEL_WANTS_BOOL, true},   "expected type 'int' but found"      },
    };
    struct fixture f = make();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf problem;

        dv_buf_init(&problem, TEXT_BYTES_MAX);
        assert_null(dv_cel_policy_compile(f.policy, dv_str_from_c(cases[i].text), cases[i].how,
                                          f.arena, &problem));
        if (!strstr(dv_buf_c(&problem), cases[i].problem))
            fail_msg("%s: %s", cases[i].text, dv_buf_c(&problem));
    }
    dv_arena_free(f.arena);
}

static void declares_what_the_policy_has(void **state)
{
    struct dv_cel_policy_options options = {.has_params = false};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cel_policy *policy = dv_cel_policy_new(&options, arena);
    const struct dv_cel_rule_options how = {DV_CEL_WANTS_BOOL, true};
    DV_CLEANUP(dv_buf_fini) struct dv_buf problem;

    (void)state;
    dv_buf_init(&problem, TEXT_BYTES_MAX);
    assert_null(dv_cel_policy_compile(policy, DV_STR("params == null"), how, arena, &problem));
    assert_null(dv_cel_policy_compile(policy, DV_STR("variables.x == 1"), how, arena, &problem));
    assert_non_null(strstr(dv_buf_c(&problem), "undeclared reference to 'params'"));
    assert_non_null(strstr(dv_buf_c(&problem), "undeclared reference to 'variables'"));
}

static void declares_a_variable_that_does_not_compile(void **state)
{
    struct dv_cel_policy_options options = {.has_variables = true};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct fixture f = {.arena = arena, .policy = dv_cel_policy_new(&options, arena)};
    struct dv_cel_gave gave;
    DV_CLEANUP(dv_buf_fini) struct dv_buf problem;

    (void)state;
    dv_buf_init(&problem, TEXT_BYTES_MAX);
    assert_false(
        dv_cel_policy_add_variable(f.policy, DV_STR("a"), DV_STR("variables.b"), &problem));
    assert_non_null(strstr(dv_buf_c(&problem), "1:10: undefined field 'b'"));
    f.authorizer.decide = decide;
    assert_int_equal(eval(&f, "variables.a == 1", DV_CEL_WANTS_BOOL, &gave), DV_CEL_GAVE_ERROR);
}

static void limits_how_deep_variables_use_each_other(void **state)
{
    struct dv_cel_policy_options options = {.has_variables = true};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct fixture f = {.arena = arena, .policy = dv_cel_policy_new(&options, arena)};
    struct dv_cel_gave gave;
    DV_CLEANUP(dv_buf_fini) struct dv_buf problem;

    (void)state;
    dv_buf_init(&problem, TEXT_BYTES_MAX);
    assert_true(dv_cel_policy_add_variable(f.policy, DV_STR("v0"), DV_STR("1"), &problem));
    for (int i = 1; i < 100; i++)
        assert_true(dv_cel_policy_add_variable(f.policy, dv_str_printf(arena, "v%d", i),
                                               dv_str_printf(arena, "variables.v%d + 1", i - 1),
                                               &problem));
    assert_int_equal(eval(&f, "variables.v20 == 21", DV_CEL_WANTS_BOOL, &gave), DV_CEL_GAVE_BOOL);
    assert_true(gave.b);
    assert_int_equal(eval(&f, "variables.v99 == 100", DV_CEL_WANTS_BOOL, &gave), DV_CEL_GAVE_ERROR);
}

static bool stop(void *ctx)
{
    ++*(int *)ctx;
    return true;
}

static void stops_when_it_is_told(void **state)
{
    struct fixture f = make();
    struct dv_cel_gave gave;
    bool is_unknown = true;
    int n_asked = 0;

    (void)state;
    f.inputs.is_stopped = stop;
    f.inputs.ctx = &n_asked;
    assert_int_equal(eval(&f, "lists.range(1000).all(x, x >= 0) || true", DV_CEL_WANTS_BOOL, &gave),
                     DV_CEL_STOPPED);
    assert_int_equal(n_asked, 1);
    f.authorizer.ctx = &is_unknown;
    assert_int_equal(eval(&f, "authorizer.requestResource.check('x').allowed() || true",
                          DV_CEL_WANTS_BOOL, &gave),
                     DV_CEL_STOPPED);
    dv_arena_free(f.arena);
}

static void evaluates_a_variable_once(void **state)
{
    struct fixture f = make();
    struct dv_cel_gave once;
    struct dv_cel_gave twice;

    (void)state;
    assert_int_equal(eval(&f, "variables.names.size() == 2", DV_CEL_WANTS_BOOL, &once),
                     DV_CEL_GAVE_BOOL);
    assert_int_equal(eval(&f, "variables.names.size() == 2 && variables.names.size() == 2",
                          DV_CEL_WANTS_BOOL, &twice),
                     DV_CEL_GAVE_BOOL);
    assert_true(twice.cost < 2 * once.cost);
    assert_int_equal(
        eval(&f, "string(variables.six) + object.metadata.name", DV_CEL_WANTS_STRING, &once),
        DV_CEL_GAVE_STRING);
    assert_str(once.s, "6x");
    dv_arena_free(f.arena);
}

static void knows_identifiers(void **state)
{
    static const struct {
        const char *text;
        bool is_one;
    } cases[] = {
        {"a",     true },
        {"_x9",   true },
        {"1x",    false},
        {"a.b",   false},
        {"in",    false},
        {"true",  false},
        {"while", false},
        {"a b",   false},
        {" a",    false},
        {"",      false},
        {"a-b",   false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        if (dv_cel_is_identifier(dv_str_from_c(cases[i].text)) != cases[i].is_one)
            fail_msg("'%s'", cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_over_objects_of_any_shape),
        cmocka_unit_test(tells_what_fails_when_it_runs),
        cmocka_unit_test(refuses_what_does_not_compile),
        cmocka_unit_test(declares_what_the_policy_has),
        cmocka_unit_test(declares_a_variable_that_does_not_compile),
        cmocka_unit_test(limits_how_deep_variables_use_each_other),
        cmocka_unit_test(stops_when_it_is_told),
        cmocka_unit_test(evaluates_a_variable_once),
        cmocka_unit_test(knows_identifiers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
