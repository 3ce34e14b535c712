/* control_index.h - things and the words under which they are found, many to many.
 *
 * Setting a thing costs its own words, finding costs what is found; neither grows with what else is
 * in the index. */
#ifndef DV_CONTROL_INDEX_H
#define DV_CONTROL_INDEX_H

#include <stddef.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

struct dv_index {
    struct dv_names things;
    struct dv_names words;
    struct dv_slabs memory; /* of both */
};

void dv_index_init(struct dv_index *index);
void dv_index_fini(struct dv_index *index);

/* The thing has these words and no others; with none it is forgotten. Copies all texts. Words that
 * are there twice count once. */
void dv_index_set(struct dv_index *index, dv_str thing, const dv_str *words, size_t n_words);
/* The things that have the word, a link each (see dv_index_thing); NULL: nothing is found. Valid
 * until the index is changed. */
const struct dv_list *dv_index_find(const struct dv_index *index, dv_str word);
/* The thing of a link that dv_index_find has found. */
dv_str dv_index_thing(struct dv_link *link);

#endif
