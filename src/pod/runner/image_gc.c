#include "pod/runner/image_gc.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/num.h"

struct seen {
    uint64_t first_ns;
    uint64_t used_ns; /* 0: never since it was seen first */
    uint64_t told_ns; /* the update that told of it last */
    dv_str id;
    char text[];
};

/* ---- use ---- */

static bool is_name(dv_str name, dv_str used)
{
    static const char *const defaults[] = {"", "docker.io/", "docker.io/library/"};

    for (size_t i = 0; i < DV_COUNT(defaults); i++) {
        dv_str prefix = dv_str_from_c(defaults[i]);

        if (dv_str_starts_with(name, prefix) &&
            dv_str_eq(dv_str_slice(name, prefix.n, name.n), used))
            return true;
    }
    return false;
}

bool dv_image_is_used(const struct dv_image *image, const dv_str *used, size_t n_used)
{
    for (size_t i = 0; i < n_used; i++) {
        if (dv_str_eq(image->id, used[i]))
            return true;
        for (size_t k = 0; k < image->n_names; k++)
            if (used[i].n > 0 && is_name(image->names[k], used[i]))
                return true;
    }
    return false;
}

/* ---- the book ---- */

void dv_image_book_init(struct dv_image_book *book)
{
    dv_map_init(&book->seen);
}

void dv_image_book_fini(struct dv_image_book *book)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&book->seen, &at)) != NULL;)
        free(entry->value);
    dv_map_fini(&book->seen);
}

static struct seen *add(struct dv_image_book *book, dv_str id, uint64_t now_ns)
{
    struct seen *seen = dv_alloc(sizeof(*seen) + id.n);

    memcpy(seen->text, id.p, id.n);
    seen->id = (dv_str){seen->text, id.n};
    seen->first_ns = now_ns;
    (void)dv_map_set(&book->seen, seen->id, seen);
    return seen;
}

/* Forgets what the update at `now_ns` did not tell of. */
static void forget(struct dv_image_book *book, uint64_t now_ns)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&book->seen, &at)) != NULL;) {
        struct seen *seen = entry->value;

        if (seen->told_ns == now_ns)
            continue;
        (void)dv_map_remove(&book->seen, seen->id);
        free(seen);
    }
}

void dv_image_book_update(struct dv_image_book *book, const struct dv_image *images,
                          size_t n_images, const dv_str *used, size_t n_used, uint64_t now_ns)
{
    for (size_t i = 0; i < n_images; i++) {
        struct seen *seen = dv_map_get(&book->seen, images[i].id);

        if (images[i].id.n == 0)
            continue; /* it could not be named to the runtime */
        if (!seen)
            seen = add(book, images[i].id, now_ns);
        if (dv_image_is_used(&images[i], used, n_used))
            seen->used_ns = now_ns;
        seen->told_ns = now_ns;
    }
    forget(book, now_ns);
}

/* ---- the choice ---- */

/* How much of a hundred `part` is of `whole`, rounded down. */
static uint64_t percent_of(uint64_t part, uint64_t whole)
{
    while (whole > UINT64_MAX / 100) {
        part /= 2;
        whole /= 2;
    }
    return part * 100 / whole;
}

uint64_t dv_image_gc_excess(const struct dv_image_policy *policy, uint64_t capacity,
                            uint64_t available)
{
    uint64_t free_percent = 100 - policy->low_percent;
    uint64_t wanted = capacity / 100 * free_percent + capacity % 100 * free_percent / 100;

    available = dv_u64_min(available, capacity);
    if (capacity == 0 || policy->high_percent >= 100 ||
        100 - percent_of(available, capacity) < policy->high_percent)
        return 0;
    return wanted > available ? wanted - available : 0;
}

struct candidate {
    const struct dv_image *image;
    const struct seen *seen;
};

static int compare(const void *a, const void *b)
{
    const struct seen *one = ((const struct candidate *)a)->seen;
    const struct seen *two = ((const struct candidate *)b)->seen;

    if (one->used_ns != two->used_ns)
        return one->used_ns < two->used_ns ? -1 : 1;
    if (one->first_ns != two->first_ns)
        return one->first_ns < two->first_ns ? -1 : 1;
    return dv_str_cmp(one->id, two->id);
}

size_t dv_image_gc_choose(const struct dv_image_book *book, const struct dv_image_policy *policy,
                          const struct dv_image *images, size_t n_images, uint64_t now_ns,
                          struct dv_arena *arena, const struct dv_image ***chosen)
{
    struct candidate *candidates = DV_NEW_ARRAY(arena, struct candidate, n_images);
    size_t n = 0;

    for (size_t i = 0; i < n_images; i++) {
        const struct seen *seen = dv_map_get(&book->seen, images[i].id);

        if (seen && !images[i].is_pinned && seen->used_ns < now_ns &&
            now_ns - seen->first_ns >= policy->min_age_ns)
            candidates[n++] = (struct candidate){&images[i], seen};
    }
    if (n > 0)
        qsort(candidates, n, sizeof(candidates[0]), compare);
    *chosen = DV_NEW_ARRAY(arena, const struct dv_image *, n);
    for (size_t i = 0; i < n; i++)
        (*chosen)[i] = candidates[i].image;
    return n;
}
