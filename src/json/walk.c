/* walk.c - what goes over whole trees: copy, compare, sort. Down by `first`, along by `next`, up by
 * the last child's `next`; so none of it needs a stack. */
#include "json/tree.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/num.h"
#include "base/vec.h"

/* -- Copy ----------------------------------------------------------------------------------- */

struct copying {
    struct dv_json_budget *budget; /* NULL: as much as there is, and the text is copied too */
    size_t depth;                  /* containers around the node that is copied now */
    struct dv_arena *arena;
};

static bool has_budget(const struct copying *copying, const struct dv_json *node)
{
    struct dv_json_budget *budget = copying->budget;

    if (!budget)
        return true;
    if (budget->nodes == 0 || (dv_json_is_container(node) && copying->depth >= budget->depth))
        return false;
    budget->nodes--;
    return true;
}

/* Copies one node; NULL when the budget does not suffice. */
static struct dv_json *copy_node(const struct copying *copying, const struct dv_json *node)
{
    dv_str key = dv_json_key(node);
    dv_str text;
    struct dv_json *copy;

    if (!has_budget(copying, node))
        return NULL;
    copy = dv_json_new(dv_json_kind(node), copying->arena);
    copy->line = node->line;
    copy->column = node->column;
    copy->is_repeated = node->is_repeated;
    if (key.p && !copying->budget)
        key = dv_str_copy(key, copying->arena);
    copy->key = key.p;
    copy->key_n = node->key_n;
    if (dv_json_is_container(node))
        return copy;
    text = (dv_str){node->text, node->n};
    if (text.p && !copying->budget)
        text = dv_str_copy(text, copying->arena);
    copy->text = text.p;
    copy->n = node->n;
    return copy;
}

static struct dv_json *copy_tree(struct copying *copying, const struct dv_json *root)
{
    const struct dv_json *from = root;
    struct dv_json *copy = copy_node(copying, root);
    struct dv_json *to = copy; /* always the copy of `from` */
    struct dv_json *into;

    while (to) {
        if (dv_json_first(from)) {
            into = to;
            from = from->first;
            copying->depth++;
        } else {
            while (from != root && from->is_last) {
                from = from->next;
                to = to->next;
                if (dv_json_is(to, DV_JSON_OBJECT))
                    dv_json_index_members(to, copying->arena);
                copying->depth--;
            }
            if (from == root)
                return copy;
            into = to->next;
            from = from->next;
        }
        to = copy_node(copying, from);
        if (to)
            dv_json_link(into, to);
    }
    return NULL;
}

static struct dv_json *without_key(struct dv_json *copy)
{
    if (copy) {
        copy->key = NULL;
        copy->key_n = 0;
    }
    return copy;
}

struct dv_json *dv_json_copy(const struct dv_json *node, struct dv_arena *arena)
{
    struct copying copying = {.arena = arena};

    return without_key(copy_tree(&copying, node));
}

struct dv_json *dv_json_copy_within(const struct dv_json *node, struct dv_json_budget *budget,
                                    struct dv_arena *arena)
{
    struct copying copying = {.budget = budget, .arena = arena};

    return without_key(copy_tree(&copying, node));
}

/* -- Compare -------------------------------------------------------------------------------- */

/* Parses an integer of 64 bits, signed or not. */
static bool to_integer(dv_str text, bool *is_negative, uint64_t *magnitude)
{
    int64_t value;

    *is_negative = false;
    if (dv_str_to_u64(text, magnitude))
        return true;
    if (!dv_str_to_i64(text, &value))
        return false;
    *is_negative = value < 0; /* -0 is 0 */
    *magnitude = 0 - (uint64_t)value;
    return true;
}

static bool is_same_number(dv_str a, dv_str b)
{
    bool is_a_negative, is_b_negative;
    uint64_t a_magnitude, b_magnitude;
    double a_value;

    if (dv_str_eq(a, b))
        return true;
    if (to_integer(a, &is_a_negative, &a_magnitude) && to_integer(b, &is_b_negative, &b_magnitude))
        return is_a_negative == is_b_negative && a_magnitude == b_magnitude;
    a_value = dv_json_text_to_double(a);
    return isfinite(a_value) && a_value == dv_json_text_to_double(b);
}

/* Compares two nodes that are not NULL, without their children. */
static bool is_same_node(const struct dv_json *a, const struct dv_json *b)
{
    dv_str a_text = {a->text, a->n};
    dv_str b_text = {b->text, b->n};

    if (a->kind != b->kind)
        return false;
    if (a->kind == DV_JSON_NUMBER)
        return is_same_number(a_text, b_text);
    if (a->kind == DV_JSON_STRING)
        return dv_str_eq(a_text, b_text);
    return a->n == b->n;
}

/* The child of `parent` that stands for `a`; `next` is a good guess, and for elements it is it. */
static const struct dv_json *counterpart(const struct dv_json *parent, const struct dv_json *a,
                                         const struct dv_json *next)
{
    if (dv_json_is(parent, DV_JSON_ARRAY))
        return next;
    if (next && dv_str_eq(dv_json_key(next), dv_json_key(a)))
        return next;
    return dv_json_get(parent, dv_json_key(a));
}

/* The containers of b's tree that the walk is in: a node does not know its parent without a walk
 * past its siblings. */
struct ancestors {
    const struct dv_json **v;
    size_t n;
    size_t size;
};

static bool is_same_tree(const struct dv_json *a, const struct dv_json *b,
                         struct ancestors *ancestors)
{
    const struct dv_json *root = a;

    for (;;) {
        if (!b || !is_same_node(a, b))
            return false;
        if (dv_json_first(a)) { /* both have the same number of children: find each of a's in b */
            *dv_vec_add(ancestors) = b;
            a = a->first;
            b = counterpart(b, a, b->first);
            continue;
        }
        while (a != root && a->is_last) {
            a = a->next;
            b = ancestors->v[--ancestors->n];
        }
        if (a == root)
            return true;
        a = a->next;
        b = counterpart(ancestors->v[ancestors->n - 1], a, dv_json_next(b));
    }
}

bool dv_json_eq(const struct dv_json *a, const struct dv_json *b)
{
    struct ancestors ancestors = {0};
    bool is_same = is_same_tree(a, b, &ancestors);

    dv_vec_fini(&ancestors);
    return is_same;
}

/* -- Sort ----------------------------------------------------------------------------------- */

static int compare_bytes(const void *a, const void *b)
{
    const struct dv_json *const *left = a;
    const struct dv_json *const *right = b;

    return dv_str_cmp(dv_json_key(*left), dv_json_key(*right));
}

/* Signs come before digits, and those before letters. Everything beyond ASCII counts as a letter:
 * close enough for keys, and it needs no tables. */
static int rank(char c)
{
    if (dv_is_digit(c))
        return 1;
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80 ? 2 : 0;
}

/* The digits that begin at `at`, perhaps none. */
static dv_str digits_at(dv_str s, size_t at)
{
    size_t end = at;

    while (end < s.n && dv_is_digit(s.p[end]))
        end++;
    return dv_str_slice(s, at, end);
}

/* Compares by the number; of the same number, the one with fewer leading zeros comes first. */
static int compare_digits(dv_str a, dv_str b)
{
    dv_str a_number = a;
    dv_str b_number = b;
    int order;

    while (a_number.n > 0 && a_number.p[0] == '0')
        a_number = dv_str_slice(a_number, 1, a_number.n);
    while (b_number.n > 0 && b_number.p[0] == '0')
        b_number = dv_str_slice(b_number, 1, b_number.n);
    if (a_number.n != b_number.n)
        return a_number.n < b_number.n ? -1 : 1;
    order = dv_str_cmp(a_number, b_number);
    return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

/* Character by character, where a row of digits counts as one: a2, a10, a10b, ab. kubectl has this
 * order too, except that a letter right after a digit there comes after any further digit, which
 * puts 1e in a circle with 21 and 112. */
static int compare_natural(const void *left, const void *right)
{
    const struct dv_json *const *left_node = left;
    const struct dv_json *const *right_node = right;
    dv_str a = dv_json_key(*left_node);
    dv_str b = dv_json_key(*right_node);
    size_t at = 0;
    size_t run;
    int order = 0;

    while (at < a.n && at < b.n && a.p[at] == b.p[at])
        at++;
    for (run = at; run > 0 && dv_is_digit(a.p[run - 1]);)
        run--;
    if (run < at || (at < a.n && at < b.n && rank(a.p[at]) == 1 && rank(b.p[at]) == 1))
        order = compare_digits(digits_at(a, run), digits_at(b, run));
    if (order != 0)
        return order;
    if (at == a.n || at == b.n)
        return (a.n > b.n) - (a.n < b.n);
    if (rank(a.p[at]) != rank(b.p[at]))
        return rank(a.p[at]) < rank(b.p[at]) ? -1 : 1;
    return (unsigned char)a.p[at] < (unsigned char)b.p[at] ? -1 : 1;
}

static void sort_members(struct dv_json *object, int (*compare)(const void *, const void *))
{
    size_t n = object->n;
    struct dv_json **members;
    struct dv_json *child;

    if (n < 2)
        return;
    members = dv_alloc(n * sizeof(struct dv_json *));
    n = 0;
    while ((child = dv_json_shift(object)) != NULL)
        members[n++] = child;
    qsort(members, n, sizeof(struct dv_json *), compare);
    for (size_t i = 0; i < n; i++)
        dv_json_link(object, members[i]);
    free(members);
}

void dv_json_sort(struct dv_json *node, enum dv_json_order order)
{
    struct dv_json *root = node;

    for (;;) {
        if (dv_json_is(node, DV_JSON_OBJECT))
            sort_members(node, order == DV_JSON_NATURAL ? compare_natural : compare_bytes);
        if (dv_json_first(node)) {
            node = node->first;
            continue;
        }
        while (node != root && node->is_last)
            node = node->next;
        if (node == root)
            return;
        node = node->next;
    }
}
