/* select_label.c - label selectors: "a=b,c in (d,e),!f". The words and the complaints are the
 * reference's, down to the quotes. */
#include "resource/select.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/name.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "base/visible.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"

#define MESSAGE_BYTES_MAX 65536u

enum token {
    T_END,
    T_NAME,
    T_COMMA,
    T_OPEN,
    T_CLOSE,
    T_NOT,
    T_EQ,
    T_EQ_EQ,
    T_NOT_EQ,
    T_GREATER,
    T_LESS,
    T_IN,
    T_NOT_IN,
};

enum label_op {
    OP_IN,
    OP_NOT_IN,
    OP_EXISTS,
    OP_ABSENT,
    OP_GREATER,
    OP_LESS,
};

struct requirement {
    dv_str key;
    enum label_op op;
    DV_VEC(dv_str) values;
    int64_t bound; /* of OP_GREATER and OP_LESS */
};

struct dv_label_selector {
    DV_VEC(struct requirement) all;
};

struct parser {
    dv_str rest;
    enum token token; /* that comes next */
    dv_str text;      /* its own */
    struct dv_arena *arena;
    dv_str why; /* it went wrong */
};

/* ---- tokens ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_symbol(char c)
{
    return c != '\0' && strchr("=!(),<>", c) != NULL;
}

static enum token symbol(dv_str rest, size_t *n)
{
    char second = rest.n > 1 ? rest.p[1] : '\0';

    *n = (rest.p[0] == '=' || rest.p[0] == '!') && second == '=' ? 2 : 1;
    switch (rest.p[0]) {
    case '=':
        return *n == 2 ? T_EQ_EQ : T_EQ;
    case '!':
        return *n == 2 ? T_NOT_EQ : T_NOT;
    case '(':
        return T_OPEN;
    case ')':
        return T_CLOSE;
    case '<':
        return T_LESS;
    case '>':
        return T_GREATER;
    default:
        return T_COMMA;
    }
}

static void scan(struct parser *parser)
{
    dv_str rest = parser->rest;
    size_t n = 0;

    while (rest.n > 0 && is_blank(rest.p[0]))
        rest = dv_str_slice(rest, 1, rest.n);
    if (rest.n == 0) {
        parser->token = T_END;
    } else if (is_symbol(rest.p[0])) {
        parser->token = symbol(rest, &n);
    } else {
        while (n < rest.n && !is_symbol(rest.p[n]) && !is_blank(rest.p[n]))
            n++;
        parser->token = T_NAME;
    }
    parser->text = dv_str_slice(rest, 0, n);
    parser->rest = dv_str_slice(rest, n, rest.n);
    if (parser->token == T_NAME && dv_str_eq(parser->text, DV_STR("in")))
        parser->token = T_IN;
    if (parser->token == T_NAME && dv_str_eq(parser->text, DV_STR("notin")))
        parser->token = T_NOT_IN;
}

/* The words of operators are names where no operator can stand. */
static enum token peek(const struct parser *parser)
{
    return parser->token == T_IN || parser->token == T_NOT_IN ? T_NAME : parser->token;
}

static enum token take(struct parser *parser, dv_str *text)
{
    enum token token = peek(parser);

    *text = parser->text;
    scan(parser);
    return token;
}

/* ---- complaints ---- */

static bool found(struct parser *parser, dv_str text, const char *expected)
{
    parser->why = dv_str_printf(parser->arena, "found '%.*s'%s", DV_FMT(text), expected);
    return false;
}

/* `<nil>: Invalid value: "x": one reason; another` */
static bool invalid(struct parser *parser, dv_str where, dv_str value,
                    const struct dv_problems *problems)
{
    struct dv_buf buf;
    size_t reason_at;

    dv_buf_init(&buf, MESSAGE_BYTES_MAX);
    dv_buf_add_c(&buf, "Invalid value: ");
    dv_go_quote(value, &buf);
    dv_buf_add_c(&buf, ": ");
    reason_at = buf.n;
    for (size_t i = 0; i < problems->n; i++) {
        dv_buf_add_c(&buf, i ? "; " : "");
        dv_buf_add(&buf, dv_str_slice(problems->v[i].detail, reason_at, SIZE_MAX));
    }
    parser->why =
        dv_str_printf(parser->arena, "%.*s: %.*s", DV_FMT(where), DV_FMT(dv_buf_str(&buf)));
    dv_buf_fini(&buf);
    return false;
}

static bool check_key(struct parser *parser, dv_str key)
{
    struct dv_problems problems = {.arena = parser->arena};

    if (dv_is_label_name(key))
        return true;
    dv_check_label_name(&problems, NULL, NULL, key);
    return invalid(parser, DV_STR("<nil>"), key, &problems);
}

static bool check_values(struct parser *parser, struct requirement *requirement)
{
    for (size_t i = 0; i < requirement->values.n; i++) {
        struct dv_problems problems = {.arena = parser->arena};
        dv_str value = requirement->values.v[i];
        bool is_number = requirement->op == OP_GREATER || requirement->op == OP_LESS;

        if (is_number && !dv_str_to_i64(value, &requirement->bound)) {
            parser->why = dv_str_printf(parser->arena,
                                        "values[%zu]: Invalid value: \"%.*s\": for 'Gt', 'Lt' "
                                        "operators, the value must be an integer",
                                        i, DV_FMT(value));
            return false;
        }
        if (dv_is_label_value(value))
            continue;
        dv_check_label_value(&problems, NULL, NULL, value);
        return invalid(
            parser, dv_str_printf(parser->arena, "values[%zu][%.*s]", i, DV_FMT(requirement->key)),
            value, &problems);
    }
    return true;
}

/* ---- requirements ---- */

static void add_value(struct parser *parser, struct requirement *requirement, dv_str value)
{
    *dv_vec_add_in(&requirement->values, parser->arena) = value;
}

/* Sorts the values, each once, for bisection: a selector with thousands of them is asked for each
 * object. */
static void sort_values(struct requirement *requirement)
{
    dv_str *v = requirement->values.v;
    size_t n = 0;

    if (requirement->values.n == 0)
        return;
    qsort(v, requirement->values.n, sizeof(v[0]), dv_str_compare);
    for (size_t i = 0; i < requirement->values.n; i++)
        if (n == 0 || !dv_str_eq(v[n - 1], v[i]))
            v[n++] = v[i];
    requirement->values.n = n;
}

/* Parses the values between parentheses; a comma next to nothing is an empty value. */
static bool parse_list(struct parser *parser, struct requirement *requirement)
{
    dv_str text;

    for (;;) {
        switch (take(parser, &text)) {
        case T_NAME:
            add_value(parser, requirement, text);
            if (peek(parser) == T_CLOSE)
                return true;
            if (peek(parser) != T_COMMA)
                return found(parser, parser->text, ", expected: ',' or ')'");
            break;
        case T_COMMA:
            if (requirement->values.n == 0 || peek(parser) == T_CLOSE || peek(parser) == T_COMMA)
                add_value(parser, requirement, DV_STR(""));
            if (peek(parser) == T_CLOSE)
                return true;
            if (peek(parser) == T_COMMA)
                (void)take(parser, &text);
            break;
        case T_END:
        case T_OPEN:
        case T_CLOSE:
        case T_NOT:
        case T_EQ:
        case T_EQ_EQ:
        case T_NOT_EQ:
        case T_GREATER:
        case T_LESS:
        case T_IN:
        case T_NOT_IN:
        default:
            return found(parser, text, ", expected: ',', or identifier");
        }
    }
}

static bool parse_set(struct parser *parser, struct requirement *requirement)
{
    dv_str text;

    if (take(parser, &text) != T_OPEN)
        return found(parser, text, " expected: '('");
    if (peek(parser) == T_CLOSE) {
        add_value(parser, requirement, DV_STR(""));
    } else if (peek(parser) == T_NAME || peek(parser) == T_COMMA) {
        if (!parse_list(parser, requirement))
            return false;
    } else {
        return found(parser, parser->text, ", expected: ',', ')' or identifier");
    }
    (void)take(parser, &text); /* it is the closing parenthesis */
    return true;
}

static bool parse_value(struct parser *parser, struct requirement *requirement)
{
    dv_str text = DV_STR("");

    if (peek(parser) != T_END && peek(parser) != T_COMMA && take(parser, &text) != T_NAME)
        return found(parser, text, ", expected: identifier");
    add_value(parser, requirement, text);
    return true;
}

static bool parse_operator(struct parser *parser, struct requirement *requirement)
{
    static const struct {
        enum token token;
        enum label_op op;
        bool is_set;
    } operators[] = {
        {T_IN,      OP_IN,      true },
        {T_NOT_IN,  OP_NOT_IN,  true },
        {T_EQ,      OP_IN,      false},
        {T_EQ_EQ,   OP_IN,      false},
        {T_NOT_EQ,  OP_NOT_IN,  false},
        {T_GREATER, OP_GREATER, false},
        {T_LESS,    OP_LESS,    false},
    };
    enum token token = parser->token;
    dv_str text;

    (void)take(parser, &text);
    for (size_t i = 0; i < DV_COUNT(operators); i++) {
        if (operators[i].token != token)
            continue;
        requirement->op = operators[i].op;
        return operators[i].is_set ? parse_set(parser, requirement)
                                   : parse_value(parser, requirement);
    }
    return found(parser, text, ", expected: in, notin, =, ==, !=, gt, lt");
}

static bool parse_requirement(struct parser *parser, struct requirement *requirement)
{
    bool is_absent = peek(parser) == T_NOT;
    dv_str text;

    if (is_absent)
        (void)take(parser, &text);
    if (take(parser, &text) != T_NAME)
        return found(parser, text, ", expected: identifier");
    requirement->key = text;
    if (!check_key(parser, text))
        return false;
    requirement->op = is_absent ? OP_ABSENT : OP_EXISTS;
    if (is_absent || peek(parser) == T_END || peek(parser) == T_COMMA)
        return true;
    if (!parse_operator(parser, requirement))
        return false;
    sort_values(requirement);
    return check_values(parser, requirement);
}

static bool parse(struct parser *parser, struct dv_label_selector *selector)
{
    dv_str text;

    scan(parser);
    if (peek(parser) == T_END)
        return true;
    if (peek(parser) != T_NAME && peek(parser) != T_NOT)
        return found(parser, parser->text, ", expected: !, identifier, or 'end of string'");
    for (;;) {
        enum token token;

        if (!parse_requirement(parser, dv_vec_add_in(&selector->all, parser->arena))) {
            parser->why = dv_str_printf(parser->arena, "unable to parse requirement: %.*s",
                                        DV_FMT(parser->why));
            return false;
        }
        token = take(parser, &text);
        if (token == T_END)
            return true;
        if (token != T_COMMA)
            return found(parser, text, ", expected: ',' or 'end of string'");
        if (peek(parser) != T_NAME && peek(parser) != T_NOT)
            return found(parser, parser->text, ", expected: identifier after ','");
    }
}

struct dv_label_selector *dv_label_selector_parse(dv_str text, struct dv_arena *arena,
                                                  struct dv_err *err)
{
    struct parser parser = {.rest = text, .arena = arena};
    struct dv_label_selector *selector = DV_NEW(arena, struct dv_label_selector);

    if (parse(&parser, selector))
        return selector;
    (void)dv_fail_in(err, arena, DV_INVALID_ARGUMENT, "%.*s", DV_FMT(parser.why));
    return NULL;
}

/* ---- selectors of objects ---- */

static bool add_expression(struct dv_label_selector *selector,
                           const struct dv_api_label_selector_requirement *from,
                           struct dv_arena *arena)
{
    static const struct {
        dv_str name;
        enum label_op op;
    } operators[] = {
        {DV_STR_INIT("In"),           OP_IN    },
        {DV_STR_INIT("NotIn"),        OP_NOT_IN},
        {DV_STR_INIT("Exists"),       OP_EXISTS},
        {DV_STR_INIT("DoesNotExist"), OP_ABSENT},
    };

    for (size_t i = 0; i < DV_COUNT(operators); i++) {
        struct requirement *requirement;

        if (!dv_str_eq(operators[i].name, from->operator))
            continue;
        requirement = dv_vec_add_in(&selector->all, arena);
        *requirement = (struct requirement){.key = from->key, .op = operators[i].op};
        for (size_t k = 0; k < from->n_values; k++)
            *dv_vec_add_in(&requirement->values, arena) = from->values[k];
        sort_values(requirement);
        return true;
    }
    return false;
}

struct dv_label_selector *dv_label_selector_of(const struct dv_api_label_selector *selector,
                                               struct dv_arena *arena)
{
    struct dv_label_selector *made = DV_NEW(arena, struct dv_label_selector);

    for (size_t i = 0; i < selector->n_match_labels; i++) {
        struct requirement *requirement = dv_vec_add_in(&made->all, arena);

        *requirement = (struct requirement){.key = selector->match_labels[i].key, .op = OP_IN};
        *dv_vec_add_in(&requirement->values, arena) = selector->match_labels[i].value;
    }
    for (size_t i = 0; i < selector->n_match_expressions; i++)
        if (!add_expression(made, &selector->match_expressions[i], arena))
            return NULL;
    return made;
}

/* ---- matching ---- */

static bool has_value(const struct requirement *requirement, dv_str value)
{
    return requirement->values.n > 0 &&
           bsearch(&value, requirement->values.v, requirement->values.n, sizeof(value),
                   dv_str_compare) != NULL;
}

static bool is_met(const struct requirement *requirement, const struct dv_str_entry *label)
{
    int64_t number;

    switch (requirement->op) {
    case OP_IN:
        return label && has_value(requirement, label->value);
    case OP_NOT_IN:
        return !label || !has_value(requirement, label->value);
    case OP_EXISTS:
        return label != NULL;
    case OP_ABSENT:
        return !label;
    case OP_GREATER:
        return label && dv_str_to_i64(label->value, &number) && number > requirement->bound;
    case OP_LESS:
        return label && dv_str_to_i64(label->value, &number) && number < requirement->bound;
    }
    return false;
}

bool dv_label_selector_matches(const struct dv_label_selector *selector,
                               const struct dv_str_entry *labels, size_t n_labels)
{
    for (size_t i = 0; i < selector->all.n; i++) {
        const struct requirement *requirement = &selector->all.v[i];

        if (!is_met(requirement, dv_entry_find(labels, n_labels, requirement->key)))
            return false;
    }
    return true;
}

bool dv_label_selector_is_empty(const struct dv_label_selector *selector)
{
    return selector->all.n == 0;
}
