/* fuzz_offers.c - what is read as an offer, option or file, and printed, is read as the same offer;
 * and no pattern of one leads out of /dev. */
#include "offer/offer.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define TEXT_BYTES_MAX (1024u * 1024u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct dv_offer *offer)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_offers again = {0};
    struct dv_buf first, second;
    struct dv_err err;

    dv_buf_init(&first, TEXT_BYTES_MAX);
    dv_buf_init(&second, TEXT_BYTES_MAX);
    dv_offer_print(offer, &first);
    for (size_t i = 0; i < offer->n_matches; i++)
        if (offer->matches[i].kind == DV_OFFER_PATH) {
            assert(dv_str_starts_with(offer->matches[i].pattern, DV_STR("/dev/")));
            assert(!dv_offer_glob(offer->matches[i].pattern, DV_STR("/etc/passwd")));
            assert(!dv_offer_glob(offer->matches[i].pattern, DV_STR("/dev/../etc/passwd")));
        }
    if (first.n <= DV_OFFER_TEXT_BYTES_MAX) {
        bool is_read = dv_offers_add_text(&again, dv_buf_str(&first), arena, &err);

        assert(is_read);
        dv_offer_print(&again.v[0], &second);
        assert(dv_str_eq(dv_buf_str(&first), dv_buf_str(&second)));
    }
    dv_buf_fini(&first);
    dv_buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str text = {(const char *)data, size};
    struct dv_offers option = {0};
    struct dv_offers file = {0};
    struct dv_err err;

    if (size > 0 && dv_offers_add_text(&option, text, arena, &err))
        check(&option.v[0]);
    if (size > 0 && dv_offers_add_file(&file, DV_STR("fuzz.yaml"), text, arena, &err))
        for (size_t i = 0; i < file.n; i++)
            check(&file.v[i]);
    return 0;
}
