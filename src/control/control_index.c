/* control_index.c - an index of things by words, many to many. A thing and its references to words
 * are one block of memory, and every reference is linked into its word: so setting a thing costs
 * its own words only, and nothing is searched. There are several indexes of each pod and claim:
 * lengths and counts are halves of words, and the tables find texts in the blocks themselves. */
#include "control/control_index.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/defs.h"

struct word {
    struct dv_list refs;
    uint32_t n_refs;
    uint32_t n_text;
    char text[];
};

/* A thing under one of its words. */
struct ref {
    struct dv_link link; /* of the word */
    struct word *word;
    const struct thing *thing;
};

struct thing {
    uint32_t n_refs;
    uint32_t n_text;   /* of the text, which is behind the last reference that there is room for */
    uint32_t n_room;   /* of refs: words that are there twice leave some unused */
    struct ref refs[]; /* pointers to them are in the lists of words */
};

static dv_str text_of(const struct thing *thing)
{
    return (dv_str){(const char *)&thing->refs[thing->n_room], thing->n_text};
}

static struct dv_name name_of_thing(const void *item)
{
    return (struct dv_name){.name = text_of(item)};
}

static struct dv_name name_of_word(const void *item)
{
    const struct word *word = item;

    return (struct dv_name){
        .name = {word->text, word->n_text}
    };
}

void dv_index_init(struct dv_index *index)
{
    dv_names_init(&index->things, name_of_thing);
    dv_names_init(&index->words, name_of_word);
    dv_slabs_init(&index->memory);
}

static struct word *want_word(struct dv_index *index, dv_str text)
{
    struct word *word = dv_names_get(&index->words, DV_STR(""), text);

    if (word)
        return word;
    word = dv_slab_alloc(&index->memory, sizeof(*word) + text.n);
    word->n_text = (uint32_t)text.n;
    if (text.n > 0)
        memcpy(word->text, text.p, text.n);
    dv_list_init(&word->refs);
    (void)dv_names_put(&index->words, word); /* looked up above: there was none */
    return word;
}

static size_t thing_bytes(size_t n_words, size_t n_text)
{
    return sizeof(struct thing) + n_words * sizeof(struct ref) + n_text;
}

static struct thing *new_thing(struct dv_index *index, dv_str text, size_t n_words)
{
    struct thing *thing = dv_slab_alloc(&index->memory, thing_bytes(n_words, text.n));

    assert(n_words <= UINT32_MAX && text.n <= UINT32_MAX);
    thing->n_room = (uint32_t)n_words;
    thing->n_text = (uint32_t)text.n;
    if (text.n > 0)
        memcpy(&thing->refs[n_words], text.p, text.n);
    return thing;
}

static void forget(struct dv_index *index, struct thing *thing)
{
    for (size_t i = 0; i < thing->n_refs; i++) {
        struct word *word = thing->refs[i].word;

        dv_link_remove(&thing->refs[i].link);
        if (--word->n_refs > 0)
            continue;
        (void)dv_names_remove(&index->words, DV_STR(""), (dv_str){word->text, word->n_text});
        dv_slab_free(&index->memory, word, sizeof(*word) + word->n_text);
    }
    dv_slab_free(&index->memory, thing, thing_bytes(thing->n_room, thing->n_text));
}

void dv_index_fini(struct dv_index *index)
{
    struct thing *thing;
    size_t at = 0;

    while ((thing = dv_names_next(&index->things, &at)) != NULL)
        forget(index, thing);
    dv_names_fini(&index->things);
    dv_names_fini(&index->words);
    dv_slabs_fini(&index->memory);
}

/* Whether the thing that is being set has the word already: nothing else was linked to it since. */
static bool has_word(const struct thing *thing, const struct word *word)
{
    struct dv_link *last = word->refs.head.prev;

    return !dv_list_is_empty(&word->refs) && DV_CONTAINER(last, struct ref, link)->thing == thing;
}

void dv_index_set(struct dv_index *index, dv_str text, const dv_str *words, size_t n_words)
{
    struct thing *old = NULL;

    if (n_words > 0) {
        struct thing *thing = new_thing(index, text, n_words);

        for (size_t i = 0; i < n_words; i++) {
            struct word *word = want_word(index, words[i]);
            struct ref *ref = &thing->refs[thing->n_refs];

            if (has_word(thing, word))
                continue;
            *ref = (struct ref){.word = word, .thing = thing};
            dv_list_push(&word->refs, &ref->link);
            word->n_refs++;
            thing->n_refs++;
        }
        old = dv_names_put(&index->things, thing);
    } else {
        old = dv_names_remove(&index->things, DV_STR(""), text);
    }
    if (old)
        forget(index, old);
}

const struct dv_list *dv_index_find(const struct dv_index *index, dv_str text)
{
    const struct word *word = dv_names_get(&index->words, DV_STR(""), text);

    return word ? &word->refs : NULL;
}

dv_str dv_index_thing(struct dv_link *link)
{
    return text_of(DV_CONTAINER(link, struct ref, link)->thing);
}
