/* offer_words.h - the words of an offer, for both of its forms: the option and the file. */
#ifndef DV_OFFER_WORDS_H
#define DV_OFFER_WORDS_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;
struct dv_offer;
struct dv_offers;

/* Whether the word selects devices ("/dev/…", "usb:…"), and does not set something. */
bool dv_offer_is_match(dv_str word);
DV_CHECKED bool dv_offer_add_match(struct dv_offer *offer, dv_str word, struct dv_arena *arena,
                                   struct dv_err *err);
/* Sets what the file calls `key`. */
DV_CHECKED bool dv_offer_set(struct dv_offer *offer, dv_str key, dv_str value,
                             struct dv_arena *arena, struct dv_err *err);
/* Fills in what was not said, checks the whole, and that no offer before has its names. */
DV_CHECKED bool dv_offer_finish(const struct dv_offers *offers, struct dv_offer *offer,
                                struct dv_arena *arena, struct dv_err *err);

#endif
