/* diff_lines.c - differences of two texts, line by line.
 *
 * The longest run of lines that both have stays, and so on to its left and right; lines that are
 * very frequent in a long text are not looked for. That is how the reference compares, and its
 * messages show the result. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "resource/validate/pod_checks.h"

#define CONTEXT 3u
/* In texts of so many lines and more, a line that makes up more than a hundredth of the text counts
 * as frequent. */
#define LONG_TEXT 200u
/* What one comparison may look at: pairs of lines, and lines of runs. The reference has no limit,
 * and takes minutes for texts of megabytes. */
#define STEPS_MAX 4000000u
/* A text that takes more steps is shown by this many lines, from the first that differs. */
#define SHOWN_MAX 20u

struct lines {
    dv_str *v;
    size_t n;
};

/* The places of a line in the second text: in order, from `first` on by `next`. */
struct place {
    size_t first;
    size_t last;
    size_t n;
};

struct match {
    size_t a;
    size_t b;
    size_t n;
};

struct range {
    size_t a_from;
    size_t a_to;
    size_t b_from;
    size_t b_to;
};

/* A run of lines that stay, or that are replaced. */
struct step {
    struct range range;
    bool is_same;
};

struct steps {
    struct step *v;
    size_t n;
    size_t size;
};

struct diff {
    struct dv_arena *arena;
    struct lines a;
    struct lines b;
    struct place **places; /* of each line of `a`; NULL when `b` has none, or too many */
    size_t *next;          /* of each line of `b`, plus one; 0 at the end */
    size_t *runs; /* how long a run ends at a line of `b`, by the row before and this one */
    size_t *new_runs;
    DV_VEC(struct match) matches;
    size_t n_steps;
};

static struct lines split_lines(dv_str text, struct dv_arena *arena)
{
    struct lines lines = {NULL, 1};

    for (size_t i = 0; i < text.n; i++)
        lines.n += text.p[i] == '\n';
    lines.v = DV_NEW_ARRAY(arena, dv_str, lines.n);
    for (size_t i = 0; dv_str_split(&text, '\n', &lines.v[i]);)
        i++;
    return lines;
}

static void index_lines(struct diff *diff)
{
    struct dv_map map;

    dv_map_init(&map);
    diff->places = DV_NEW_ARRAY(diff->arena, struct place *, diff->a.n);
    diff->next = DV_NEW_ARRAY(diff->arena, size_t, diff->b.n);
    diff->runs = DV_NEW_ARRAY(diff->arena, size_t, diff->b.n + 1);
    diff->new_runs = DV_NEW_ARRAY(diff->arena, size_t, diff->b.n + 1);
    for (size_t i = 0; i < diff->b.n; i++) {
        struct place *place = dv_map_get(&map, diff->b.v[i]);

        if (!place) {
            place = DV_NEW(diff->arena, struct place);
            place->first = i;
            (void)dv_map_set(&map, diff->b.v[i], place);
        } else {
            diff->next[place->last] = i + 1;
        }
        place->last = i;
        place->n++;
    }
    for (size_t i = 0; i < diff->a.n; i++) {
        struct place *place = dv_map_get(&map, diff->a.v[i]);
        bool is_frequent = place && diff->b.n >= LONG_TEXT && place->n > diff->b.n / 100 + 1;

        diff->places[i] = is_frequent ? NULL : place;
    }
    dv_map_fini(&map);
}

/* Extends the match by the frequent lines around it. */
static struct match extend(const struct diff *diff, struct range in, struct match best)
{
    while (best.a > in.a_from && best.b > in.b_from &&
           dv_str_eq(diff->a.v[best.a - 1], diff->b.v[best.b - 1])) {
        best.a--;
        best.b--;
        best.n++;
    }
    while (best.a + best.n < in.a_to && best.b + best.n < in.b_to &&
           dv_str_eq(diff->a.v[best.a + best.n], diff->b.v[best.b + best.n]))
        best.n++;
    return best;
}

/* Extends the runs that end at the line `i` of the first text; with `best` NULL, forgets them. */
static void extend_runs(struct diff *diff, struct range in, size_t i, struct match *best)
{
    const struct place *place = diff->places[i];

    for (size_t j = place ? place->first + 1 : 0; j > 0; j = diff->next[j - 1]) {
        size_t at = j - 1;
        size_t n;

        diff->n_steps++;
        if (at < in.b_from)
            continue;
        if (at >= in.b_to)
            break;
        if (!best) {
            diff->runs[at + 1] = 0;
            continue;
        }
        n = diff->runs[at] + 1; /* runs[at] is that of the line before */
        diff->new_runs[at + 1] = n;
        if (n > best->n)
            *best = (struct match){i + 1 - n, at + 1 - n, n};
    }
}

static struct match longest(struct diff *diff, struct range in)
{
    struct match best = {in.a_from, in.b_from, 0};

    for (size_t i = in.a_from; i < in.a_to && diff->n_steps < STEPS_MAX; i++) {
        size_t *before = diff->runs;

        extend_runs(diff, in, i, &best);
        if (i > in.a_from) /* both rows are all zero but for the runs of the last two lines */
            extend_runs(diff, in, i - 1, NULL);
        diff->runs = diff->new_runs;
        diff->new_runs = before;
        diff->n_steps++;
    }
    if (in.a_to > in.a_from)
        extend_runs(diff, in, in.a_to - 1, NULL);
    return extend(diff, in, best);
}

static int compare_matches(const void *a, const void *b)
{
    const struct match *one = a;
    const struct match *other = b;

    return one->a < other->a ? -1 : one->a > other->a;
}

static void find_matches(struct diff *diff)
{
    DV_VEC(struct range) open = {0};

    *(struct range *)dv_vec_add_in(&open, diff->arena) = (struct range){0, diff->a.n, 0, diff->b.n};
    while (open.n > 0 && diff->n_steps < STEPS_MAX) {
        struct range in = open.v[--open.n];
        struct match match = longest(diff, in);

        if (match.n == 0)
            continue;
        *(struct match *)dv_vec_add_in(&diff->matches, diff->arena) = match;
        if (in.a_from < match.a && in.b_from < match.b)
            *(struct range *)dv_vec_add_in(&open, diff->arena) =
                (struct range){in.a_from, match.a, in.b_from, match.b};
        if (match.a + match.n < in.a_to && match.b + match.n < in.b_to)
            *(struct range *)dv_vec_add_in(&open, diff->arena) =
                (struct range){match.a + match.n, in.a_to, match.b + match.n, in.b_to};
    }
    if (diff->matches.n > 0)
        qsort(diff->matches.v, diff->matches.n, sizeof(diff->matches.v[0]), compare_matches);
}

static void add_step(struct diff *diff, struct steps *steps, struct range range, bool is_same)
{
    struct step *last = steps->n > 0 ? &steps->v[steps->n - 1] : NULL;

    if (range.a_from == range.a_to && range.b_from == range.b_to)
        return;
    if (last && is_same && last->is_same) { /* two runs that touch become one */
        last->range.a_to = range.a_to;
        last->range.b_to = range.b_to;
        return;
    }
    *(struct step *)dv_vec_add_in(steps, diff->arena) = (struct step){range, is_same};
}

static struct steps find_steps(struct diff *diff)
{
    struct steps steps = {0};
    size_t a = 0;
    size_t b = 0;

    for (size_t i = 0; i < diff->matches.n; i++) {
        struct match match = diff->matches.v[i];

        add_step(diff, &steps, (struct range){a, match.a, b, match.b}, false);
        a = match.a + match.n;
        b = match.b + match.n;
        add_step(diff, &steps, (struct range){match.a, a, match.b, b}, true);
    }
    add_step(diff, &steps, (struct range){a, diff->a.n, b, diff->b.n}, false);
    return steps;
}

static void print_span(struct dv_buf *buf, char sign, size_t from, size_t to)
{
    if (to - from == 1)
        dv_buf_printf(buf, "%c%zu", sign, from + 1);
    else
        dv_buf_printf(buf, "%c%zu,%zu", sign, to > from ? from + 1 : from, to - from);
}

static void print_lines(struct dv_buf *buf, char sign, const struct lines *lines, size_t from,
                        size_t to)
{
    for (size_t i = from; i < to; i++)
        dv_buf_printf(buf, "%c%.*s\n", sign, DV_FMT(lines->v[i]));
}

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The part of an unchanged run that is shown in a hunk of the steps [from, to). */
static struct range shown_range(const struct steps *steps, size_t i, size_t from, size_t to)
{
    struct range range = steps->v[i].range;
    size_t n = range.a_to - range.a_from;

    if (steps->v[i].is_same && i == from) {
        range.a_from = range.a_to - min(n, CONTEXT);
        range.b_from = range.b_to - min(n, CONTEXT);
    }
    if (steps->v[i].is_same && i + 1 == to) {
        range.a_to = min(range.a_to, steps->v[i].range.a_from + CONTEXT);
        range.b_to = min(range.b_to, steps->v[i].range.b_from + CONTEXT);
    }
    return range;
}

static void print_hunk(const struct diff *diff, const struct steps *steps, size_t from, size_t to,
                       struct dv_buf *buf)
{
    struct range first = shown_range(steps, from, from, to);
    struct range last = shown_range(steps, to - 1, from, to);

    dv_buf_add_c(buf, "@@ ");
    print_span(buf, '-', first.a_from, last.a_to);
    dv_buf_add_char(buf, ' ');
    print_span(buf, '+', first.b_from, last.b_to);
    dv_buf_add_c(buf, " @@\n");
    for (size_t i = from; i < to; i++) {
        struct range range = shown_range(steps, i, from, to);

        if (steps->v[i].is_same) {
            print_lines(buf, ' ', &diff->a, range.a_from, range.a_to);
            continue;
        }
        print_lines(buf, '-', &diff->a, range.a_from, range.a_to);
        print_lines(buf, '+', &diff->b, range.b_from, range.b_to);
    }
}

/* Whether a run is so long that a hunk ends in it and the next one begins there. */
static bool parts_hunks(const struct step *step)
{
    return step->is_same && step->range.a_to - step->range.a_from > 2 * CONTEXT;
}

/* Prints where two texts begin to differ, with a few lines of both. */
static void print_beginning(const struct diff *diff, struct dv_buf *buf)
{
    size_t at = 0;
    size_t from;

    while (at < diff->a.n && at < diff->b.n && dv_str_eq(diff->a.v[at], diff->b.v[at]))
        at++;
    from = at - min(at, CONTEXT);
    dv_buf_printf(buf, "@@ -%zu +%zu @@ the first of many differences\n", from + 1, from + 1);
    print_lines(buf, ' ', &diff->a, from, at);
    print_lines(buf, '-', &diff->a, at, min(diff->a.n, at + SHOWN_MAX));
    print_lines(buf, '+', &diff->b, at, min(diff->b.n, at + SHOWN_MAX));
}

void dv_diff_lines(dv_str from, dv_str to, struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct diff diff = {.arena = arena};
    struct steps steps;
    size_t start = 0;

    diff.a = split_lines(from, arena);
    diff.b = split_lines(to, arena);
    index_lines(&diff);
    find_matches(&diff);
    if (diff.n_steps >= STEPS_MAX) {
        print_beginning(&diff, buf);
        return;
    }
    steps = find_steps(&diff);
    for (size_t i = 1; i + 1 < steps.n; i++)
        if (parts_hunks(&steps.v[i])) {
            print_hunk(&diff, &steps, start, i + 1, buf);
            start = i;
        }
    if (steps.n > start && !(steps.n == 1 && steps.v[0].is_same))
        print_hunk(&diff, &steps, start, steps.n, buf);
}
