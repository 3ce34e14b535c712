/* control_index.c - an index of things by words, many to many. A thing and its references to words
 * are one block of memory, and every reference is linked into its word: so setting a thing costs
 * its own words only, and nothing is searched. */
#include "control/control_index.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"

struct dv_index_word {
    struct dv_list refs;
    size_t n_refs;
    dv_str text;
};

struct thing {
    dv_str text;
    size_t n_refs;
    struct dv_index_ref refs[];
};

void dv_index_init(struct dv_index *index)
{
    dv_map_init(&index->things);
    dv_map_init(&index->words);
}

static void *new_with_text(size_t n, dv_str from, dv_str *text)
{
    char *p = dv_alloc(n + from.n);

    if (from.n > 0)
        memcpy(p + n, from.p, from.n);
    *text = (dv_str){p + n, from.n};
    return p;
}

static struct dv_index_word *want_word(struct dv_index *index, dv_str text)
{
    struct dv_index_word *word = dv_map_get(&index->words, text);
    dv_str own;

    if (word)
        return word;
    word = new_with_text(sizeof(*word), text, &own);
    word->text = own;
    dv_list_init(&word->refs);
    (void)dv_map_set(&index->words, own, word); /* the caller has looked: there was none */
    return word;
}

static void forget(struct dv_index *index, struct thing *thing)
{
    for (size_t i = 0; i < thing->n_refs; i++) {
        struct dv_index_word *word = thing->refs[i].word;

        dv_link_remove(&thing->refs[i].link);
        if (--word->n_refs > 0)
            continue;
        (void)dv_map_remove(&index->words, word->text);
        free(word);
    }
    free(thing);
}

void dv_index_fini(struct dv_index *index)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    while ((entry = dv_map_next(&index->things, &at)) != NULL)
        forget(index, entry->value);
    dv_map_fini(&index->things);
    dv_map_fini(&index->words);
}

/* Whether the thing that is being set has the word already: nothing else was linked to it since. */
static bool has_word(const struct thing *thing, const struct dv_index_word *word)
{
    struct dv_link *last = word->refs.head.prev;

    return !dv_list_is_empty(&word->refs) &&
           DV_CONTAINER(last, struct dv_index_ref, link)->thing.p == thing->text.p;
}

void dv_index_set(struct dv_index *index, dv_str text, const dv_str *words, size_t n_words)
{
    struct thing *old = dv_map_get(&index->things, text);
    struct thing *thing;
    dv_str own;

    if (n_words > 0) {
        thing = new_with_text(sizeof(*thing) + n_words * sizeof(thing->refs[0]), text, &own);
        thing->text = own;
        for (size_t i = 0; i < n_words; i++) {
            struct dv_index_word *word = want_word(index, words[i]);
            struct dv_index_ref *ref = &thing->refs[thing->n_refs];

            if (has_word(thing, word))
                continue;
            *ref = (struct dv_index_ref){.word = word, .thing = own};
            dv_list_push(&word->refs, &ref->link);
            word->n_refs++;
            thing->n_refs++;
        }
        (void)dv_map_set(&index->things, own, thing); /* returns `old`, which is freed below */
    } else {
        (void)dv_map_remove(&index->things, text);
    }
    if (old)
        forget(index, old);
}

const struct dv_list *dv_index_find(const struct dv_index *index, dv_str text)
{
    const struct dv_index_word *word = dv_map_get(&index->words, text);

    return word ? &word->refs : NULL;
}
