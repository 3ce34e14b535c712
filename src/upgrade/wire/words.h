/* words.h - lists of words in header fields: "keep-alive, Upgrade". */
#ifndef DV_UPGRADE_WORDS_H
#define DV_UPGRADE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Finds the first word of all lists that is among the texts; n when there is none. *is_empty: there
 * is no word at all. */
size_t dv_words_find_common(const dv_str *lists, size_t n_lists, const dv_str *texts, size_t n,
                            bool *is_empty);

#endif
