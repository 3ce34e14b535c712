/* schema_rules.c - the rules of schemas, x-kubernetes-validations: read, and evaluated beside a
 * value.
 *
 * What they may cost is bounded: a rule as every expression of the API is, and all rules of an
 * object together. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cel/cel_policy.h"
#include "resource/cel_document.h"
#include "resource/custom/schema.h"
#include "resource/custom/schema_read.h"
#include "resource/validate/checks.h"
#include "json/json.h"

/* What all rules of an object may cost. */
#define OBJECT_COST_MAX 10000000u
/* How many rules a schema may have. */
#define RULES_MAX 1000u
#define PROBLEM_BYTES_MAX 65536u
/* What messageExpression may give. */
#define MESSAGE_BYTES_MAX (5u * 1024u)

/* ---- reading ---- */

static const struct dv_json *member(const struct dv_json *doc, const char *name)
{
    const struct dv_json *node = dv_json_get(doc, dv_str_from_c(name));

    return dv_json_is(node, DV_JSON_NULL) ? NULL : node;
}

static const struct dv_cel_rule *compile(struct dv_schema_reader *reader,
                                         const struct dv_cel_policy *policy, dv_str text,
                                         enum dv_cel_wanted wanted, struct dv_buf *problem)
{
    return dv_cel_policy_compile(policy, text, (struct dv_cel_rule_options){wanted, false},
                                 reader->arena, problem);
}

/* Whether the rule names oldSelf: it does not compile where there is none. */
static bool uses_old(struct dv_schema_reader *reader, dv_str text)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf problem;

    dv_buf_init(&problem, PROBLEM_BYTES_MAX);
    return !compile(reader, dv_cel_policy_new_schema(false, reader->arena), text, DV_CEL_WANTS_BOOL,
                    &problem);
}

static uint8_t read_reason(struct dv_schema_reader *reader, const struct dv_json *doc,
                           const struct dv_field_path *path)
{
    static const dv_str names[] = {
        DV_STR_INIT("FieldValueRequired"), DV_STR_INIT("FieldValueInvalid"),
        DV_STR_INIT("FieldValueForbidden"), DV_STR_INIT("FieldValueDuplicate")};
    static const uint8_t types[] = {DV_PROBLEM_REQUIRED, DV_PROBLEM_INVALID, DV_PROBLEM_FORBIDDEN,
                                    DV_PROBLEM_DUPLICATE};
    dv_str text;

    if (!dv_schema_read_text(reader, doc, path, "reason", &text))
        return DV_PROBLEM_INVALID;
    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (dv_str_eq(names[i], text))
            return types[i];
    dv_not_supported(reader->problems, path, "reason", text, names, DV_COUNT(names));
    return DV_PROBLEM_INVALID;
}

static void compile_rule(struct dv_schema_reader *reader, const struct dv_field_path *path,
                         struct dv_schema_rule *rule, dv_str message_expression)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf problem;
    struct dv_cel_policy *policy = dv_cel_policy_new_schema(true, reader->arena);

    dv_buf_init(&problem, PROBLEM_BYTES_MAX);
    rule->policy = policy;
    rule->compiled = compile(reader, policy, rule->text, DV_CEL_WANTS_BOOL, &problem);
    if (!rule->compiled) {
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, path, "rule", dv_bad_str(rule->text),
                       "%.*s", DV_FMT(dv_buf_str(&problem)));
        return;
    }
    rule->uses_old = uses_old(reader, rule->text);
    if (message_expression.n == 0)
        return;
    rule->message_expression =
        compile(reader, policy, message_expression, DV_CEL_WANTS_STRING, &problem);
    if (!rule->message_expression)
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, path, "messageExpression",
                       dv_bad_str(message_expression), "%.*s", DV_FMT(dv_buf_str(&problem)));
}

static void read_rule(struct dv_schema_reader *reader, const struct dv_json *doc,
                      const struct dv_field_path *path, bool is_correlated,
                      struct dv_schema_rule *rule)
{
    dv_str message_expression = DV_STR_NONE;

    if (!dv_schema_read_text(reader, doc, path, "rule", &rule->text) || rule->text.n == 0) {
        dv_problem_add(reader->problems, DV_PROBLEM_REQUIRED, path, "rule", dv_bad_none(),
                       "rule is required");
        return;
    }
    (void)dv_schema_read_text(reader, doc, path, "message", &rule->message);
    (void)dv_schema_read_text(reader, doc, path, "messageExpression", &message_expression);
    if (dv_schema_read_text(reader, doc, path, "fieldPath", &rule->path) &&
        dv_str_starts_with(rule->path, DV_STR(".")))
        rule->path = dv_str_slice(rule->path, 1, rule->path.n);
    rule->reason = read_reason(reader, doc, path);
    rule->is_old_optional = dv_schema_read_flag(reader, doc, path, "optionalOldSelf");
    compile_rule(reader, path, rule, message_expression);
    if (rule->uses_old && !is_correlated)
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, path, "rule", dv_bad_str(rule->text),
                       "oldSelf cannot be used on the uncorrelatable portion of the schema");
}

void dv_schema_read_rules(struct dv_schema_reader *reader, const struct dv_json *doc,
                          const struct dv_field_path *up, bool is_correlated,
                          struct dv_schema_checks *checks)
{
    const struct dv_json *node = member(doc, "x-kubernetes-validations");
    struct dv_field_path path = dv_path_name(up, "x-kubernetes-validations");
    struct dv_schema_rule *rules;
    size_t n = 0;

    if (!node)
        return;
    reader->n_rules += dv_json_n(node);
    if (!dv_json_is(node, DV_JSON_ARRAY) || reader->n_rules > RULES_MAX) {
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, &path, NULL, dv_bad_none(),
                       "must be a list, and no schema may have more than %u rules", RULES_MAX);
        return;
    }
    rules = DV_NEW_ARRAY(reader->arena, struct dv_schema_rule, dv_json_n(node));
    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item), n++) {
        struct dv_field_path at = dv_path_index(&path, n);

        read_rule(reader, item, &at, is_correlated, &rules[n]);
    }
    checks->rules = rules;
    checks->n_rules = n;
}

/* ---- evaluating ---- */

/* A walk over a value and its schema. */
struct judging {
    struct dv_problems *problems;
    struct dv_problems *warnings; /* about what has been there before; NULL: nobody wants them */
    struct dv_arena *arena;       /* for values and evaluations */
    uint64_t cost_left;
    bool is_over;
};

struct value {
    const struct dv_structural *schema;
    const struct dv_json *node;
    const struct dv_json *old; /* NULL: there was none */
    const struct dv_field_path *path;
};

static void judge(struct judging *judging, const struct value *value);

static void refuse(struct dv_problems *problems, const struct value *value,
                   const struct dv_schema_rule *rule, dv_str message)
{
    struct dv_field_path below = {.up = value->path, .kind = PATH_TEXT, .key = rule->path};
    bool is_scalar = !dv_json_is(value->node, DV_JSON_OBJECT) &&
                     !dv_json_is(value->node, DV_JSON_ARRAY) && rule->path.n == 0;
    struct dv_bad_value bad = dv_bad_none();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_err err;
    dv_str text;

    dv_buf_init(&buf, PROBLEM_BYTES_MAX);
    if (is_scalar && rule->reason != DV_PROBLEM_FORBIDDEN && rule->reason != DV_PROBLEM_REQUIRED) {
        dv_json_print(value->node, NULL, &buf);
        bad = dv_json_as_str(value->node, &text, &err)
                  ? dv_bad_str(text)
                  : (struct dv_bad_value){.kind = BAD_JSON, .text = dv_buf_str(&buf)};
    }
    dv_problem_add(problems, (enum dv_problem_type)rule->reason,
                   rule->path.n > 0 ? &below : value->path, NULL, bad, "%.*s", DV_FMT(message));
}

/* Whether what an expression gives can be told. */
static bool is_message(dv_str text)
{
    return text.n > 0 && text.n <= MESSAGE_BYTES_MAX && dv_str_find_char(text, '\n') == text.n;
}

/* What a rule says that is not kept: what its expression gives, its message, or itself. */
static dv_str message_of(struct judging *judging, struct dv_cel_session *session,
                         const struct dv_schema_rule *rule)
{
    struct dv_cel_gave gave;

    if (rule->message_expression &&
        dv_cel_session_eval(session, rule->message_expression, &gave) == DV_CEL_GAVE_STRING &&
        is_message(dv_str_trim(gave.s)))
        return dv_str_trim(gave.s);
    if (rule->message.n > 0)
        return dv_str_trim(rule->message);
    return dv_str_printf(judging->arena, "failed rule: %.*s", DV_FMT(dv_str_trim(rule->text)));
}

/* What a rule is called that could not be evaluated. */
static dv_str name_of(const struct dv_schema_rule *rule)
{
    return dv_str_trim(rule->message.n > 0 ? rule->message : rule->text);
}

/* Of such a rule the type of the value is told instead of the value. */
static struct dv_bad_value type_of(const struct value *value)
{
    enum dv_schema_type type = (enum dv_schema_type)value->schema->type;

    return dv_bad_str(type == DV_SCHEMA_ANY ? DV_STR_NONE
                                            : dv_str_from_c(dv_schema_type_name(type)));
}

/* Says what went wrong with a rule. One that costs too much is the last. */
static void tell_error(struct judging *judging, const struct value *value,
                       const struct dv_schema_rule *rule, dv_str error)
{
    dv_str name = name_of(rule);

    if (dv_str_starts_with(error, DV_STR("no such overload"))) {
        dv_problem_add(judging->problems, DV_PROBLEM_INVALID, value->path, NULL, type_of(value),
                       "'%.*s': call arguments did not match a supported operator, function or "
                       "macro signature for rule: %.*s",
                       DV_FMT(error), DV_FMT(name));
    } else if (dv_str_starts_with(error,
                                  DV_STR("operation cancelled: actual cost limit exceeded"))) {
        judging->is_over = true;
        dv_problem_add(judging->problems, DV_PROBLEM_INVALID, value->path, NULL, type_of(value),
                       "'%.*s': no further validation rules will be run due to call cost exceeds "
                       "limit for rule: %.*s",
                       DV_FMT(error), DV_FMT(name));
    } else {
        dv_problem_add(judging->problems, DV_PROBLEM_INVALID, value->path, NULL, type_of(value),
                       "%.*s evaluating rule: %.*s", DV_FMT(error), DV_FMT(name));
    }
}

/* Counts what a rule has cost. False: there is nothing left. */
static bool pay(struct judging *judging, const struct value *value, uint64_t cost)
{
    if (cost < judging->cost_left) {
        judging->cost_left -= cost;
        return true;
    }
    judging->is_over = true;
    dv_problem_add(judging->problems, DV_PROBLEM_INVALID, value->path, NULL, type_of(value),
                   "validation failed due to running out of cost budget, no further validation "
                   "rules will be run");
    return false;
}

static void judge_rule(struct judging *judging, const struct value *value,
                       const struct dv_cel_inputs *inputs, const struct dv_schema_rule *rule)
{
    struct dv_cel_inputs own = *inputs;
    struct dv_cel_session *session;
    struct dv_problems *problems = judging->problems;
    enum dv_cel_outcome outcome;
    struct dv_cel_gave gave;

    if (rule->uses_old && !rule->is_old_optional && !value->old)
        return; /* a rule about a change, and nothing has been there before */
    own.is_old_optional = rule->is_old_optional;
    session = dv_cel_session_new(rule->policy, &own, judging->arena);
    outcome = dv_cel_session_eval(session, rule->compiled, &gave);
    if (!pay(judging, value, gave.cost) || (outcome == DV_CEL_GAVE_BOOL && gave.b))
        return;
    if (outcome != DV_CEL_GAVE_BOOL) {
        tell_error(judging, value, rule, gave.s);
        return;
    }
    /* A rule that came later than the value only warns of it as long as it stays. */
    if (!rule->uses_old && value->old && dv_json_eq(value->node, value->old))
        problems = judging->warnings;
    if (problems)
        refuse(problems, value, rule, message_of(judging, session, rule));
}

static void judge_rules(struct judging *judging, const struct value *value)
{
    const struct dv_schema_checks *checks = value->schema->checks;
    struct dv_cel_inputs inputs = {0};

    if (!checks || checks->n_rules == 0)
        return;
    inputs.object = dv_cel_from_schema(value->schema, value->node, judging->arena);
    if (value->old)
        inputs.old_object = dv_cel_from_schema(value->schema, value->old, judging->arena);
    for (size_t i = 0; i < checks->n_rules && !judging->is_over; i++)
        judge_rule(judging, value, &inputs, &checks->rules[i]);
}

/* The item that this one was before. */
static const struct dv_json *old_item(struct judging *judging, const struct value *list,
                                      const struct dv_json *item)
{
    if (list->schema->list != DV_SCHEMA_LIST_MAP)
        return NULL;
    for (const struct dv_json *old = dv_json_first(list->old); old; old = dv_json_next(old)) {
        judging->cost_left -= judging->cost_left > 0; /* looking for it takes time, too */
        if (dv_schema_is_same_item(list->schema, old, item))
            return old;
    }
    return NULL;
}

static void judge_items(struct judging *judging, const struct value *value)
{
    size_t i = 0;

    if (!value->schema->items || !value->schema->items->has_rules)
        return;
    for (const struct dv_json *item = dv_json_first(value->node); item && !judging->is_over;
         item = dv_json_next(item), i++) {
        struct dv_field_path at = dv_path_index(value->path, i);

        judge(judging, &(const struct value){value->schema->items, item,
                                             old_item(judging, value, item), &at});
    }
}

static void judge_members(struct judging *judging, const struct value *value)
{
    for (const struct dv_json *child = dv_json_first(value->node); child && !judging->is_over;
         child = dv_json_next(child)) {
        dv_str name = dv_json_key(child);
        const struct dv_structural *schema = dv_schema_member(value->schema, name);
        struct dv_field_path at = {.up = value->path, .kind = PATH_TEXT, .key = name};

        if (schema && schema->has_rules)
            judge(judging,
                  &(const struct value){schema, child, dv_json_get(value->old, name), &at});
    }
}

static void judge(struct judging *judging, const struct value *value)
{
    if (dv_json_is(value->node, DV_JSON_NULL))
        return;
    judge_rules(judging, value);
    if (dv_json_is(value->node, DV_JSON_ARRAY))
        judge_items(judging, value);
    else
        judge_members(judging, value);
}

void dv_schema_check_rules(const struct dv_structural *schema, const struct dv_json *value,
                           const struct dv_json *old, const struct dv_field_path *path,
                           struct dv_problems *problems, struct dv_problems *warnings)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct judging judging = {
        .problems = problems, .warnings = warnings, .arena = scratch, .cost_left = OBJECT_COST_MAX};

    if (schema->has_rules)
        judge(&judging, &(const struct value){schema, value, old, path});
}
