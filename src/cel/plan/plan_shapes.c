/* plan_shapes.c - recognizes what can be evaluated in a shorter way. */
#include <math.h>

#include "base/str.h"
#include "cel/plan/plan_node.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_value.h"

const struct dv_cel_map *dv_cel_set_of(const struct dv_cel_list *list, struct dv_arena *arena)
{
    struct dv_cel_map *set;
    struct dv_cel_val yes = dv_cel_bool(true);

    for (uint32_t i = 0; i < list->n; i++)
        if (!dv_cel_is_key(&list->v[i]))
            return NULL;
    set = dv_cel_map_new(list->n, arena);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct dv_cel_val *element = &list->v[i];

        dv_cel_map_set(set, element, &yes, arena);
        /* A lookup of 1 does not find the key 1.0. */
        if (element->kind == DV_CEL_DOUBLE && element->d >= -0x1p63 && element->d < 0x1p63 &&
            trunc(element->d) == element->d)
            dv_cel_map_set(set, &(struct dv_cel_val){.kind = DV_CEL_INT, .i = (int64_t)element->d},
                           &yes, arena);
    }
    return set;
}

static bool is_slot(const struct dv_cel_node *node, uint32_t slot)
{
    return node->kind == DV_CEL_NODE_ATTR && node->root == DV_CEL_ROOT_SLOT &&
           node->index == slot && node->n_qualifiers == 0 && !node->is_test;
}

/* Nobody can write the conditions of these macros by hand: their names begin with @. */
enum dv_cel_search dv_cel_search_of(const struct dv_cel_node_fold *fold)
{
    const struct dv_cel_node *cond = fold->cond;

    if (cond->kind != DV_CEL_NODE_CALL || !dv_str_eq(cond->name, DV_STR("@not_strictly_false")) ||
        (fold->step->kind != DV_CEL_NODE_OR && fold->step->kind != DV_CEL_NODE_AND) ||
        !is_slot(fold->step->args[0], fold->accu))
        return DV_CEL_SEARCH_NONE;
    return fold->step->kind == DV_CEL_NODE_OR ? DV_CEL_SEARCH_EXISTS : DV_CEL_SEARCH_ALL;
}
