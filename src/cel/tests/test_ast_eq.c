#include "cel/tests/test_ast_eq.h"

#include <math.h>
#include <stdint.h>

#include "base/str.h"
#include "cel/read/ast.h"
#include "cel/value/cel_value.h"

static bool literal_eq(const struct dv_cel_val *a, const struct dv_cel_val *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == DV_CEL_DOUBLE) /* -0.0 is another literal than 0.0 */
        return a->d == b->d && signbit(a->d) == signbit(b->d);
    return dv_cel_eq(a, b);
}

static bool is_optional_at(const struct dv_cel_ast *ast, uint32_t i)
{
    uint32_t at = ast->kind == DV_CEL_AST_MAP ? i / 2 : i;

    return ast->optionals && ast->optionals[at];
}

static bool children_eq(const struct dv_cel_ast *a, const struct dv_cel_ast *b)
{
    if ((a->target == NULL) != (b->target == NULL) || a->n_args != b->n_args)
        return false;
    if (a->target && !ast_eq(a->target, b->target))
        return false;
    for (uint32_t i = 0; i < a->n_args; i++) {
        if (!ast_eq(a->args[i], b->args[i]) || is_optional_at(a, i) != is_optional_at(b, i))
            return false;
        if (a->names && !dv_str_eq(a->names[i], b->names[i]))
            return false;
    }
    return true;
}

bool ast_eq(const struct dv_cel_ast *a, const struct dv_cel_ast *b)
{
    if (a->kind != b->kind || a->is_member != b->is_member || a->is_absolute != b->is_absolute ||
        !dv_str_eq(a->name, b->name))
        return false;
    if (a->kind == DV_CEL_AST_LITERAL)
        return literal_eq(&a->literal, &b->literal);
    return children_eq(a, b);
}
