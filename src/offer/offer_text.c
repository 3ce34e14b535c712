/* offer_text.c - an offer as an option: "serial=/dev/ttyUSB*,/dev/ttyACM*,access=rw". */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "base/visible.h"
#include "offer/offer.h"
#include "offer/offer_words.h"

static bool read_word(struct dv_offer *offer, dv_str word, struct dv_arena *arena,
                      struct dv_err *err)
{
    size_t equals = dv_str_find_char(word, '=');

    if (word.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "nothing stands before or behind a comma");
    if (dv_offer_is_match(word))
        return dv_offer_add_match(offer, word, arena, err);
    if (dv_str_eq(word, DV_STR("shared")))
        return dv_offer_set(offer, word, DV_STR("true"), arena, err);
    if (equals == word.n)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "\"%.*s\" is neither devices (/dev/PATTERN, usb:, pci:, cdi:) nor a setting "
                       "(KEY=VALUE)",
                       DV_FMT(word));
    return dv_offer_set(offer, dv_str_slice(word, 0, equals),
                        dv_str_slice(word, equals + 1, word.n), arena, err);
}

static bool read_offer(dv_str text, struct dv_arena *arena, struct dv_offer *offer,
                       struct dv_err *err)
{
    size_t equals = dv_str_find_char(text, '=');
    dv_str rest = dv_str_slice(text, equals + 1, text.n);
    dv_str word;

    if (text.n > DV_OFFER_TEXT_BYTES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "is longer than %u bytes; a file may have more",
                       DV_OFFER_TEXT_BYTES_MAX);
    if (!dv_str_is_visible(text))
        return dv_fail(err, DV_INVALID_ARGUMENT, "has a character that cannot be seen");
    if (equals == text.n)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "is not NAME=DEVICES, as serial=/dev/ttyUSB* or gpu=cdi:nvidia.com/gpu");
    offer->name = dv_str_copy(dv_str_slice(text, 0, equals), arena);
    while (rest.p && dv_str_split(&rest, ',', &word))
        if (!read_word(offer, word, arena, err))
            return false;
    return true;
}

bool dv_offers_add_text(struct dv_offers *offers, dv_str text, struct dv_arena *arena,
                        struct dv_err *err)
{
    struct dv_offer offer = {.origin = DV_STR("--offer")};
    DV_VEC(struct dv_offer) all = {offers->v, offers->n, offers->n};

    if (!read_offer(text, arena, &offer, err) || !dv_offer_finish(offers, &offer, arena, err))
        return dv_wrap(err, "--offer \"%.*s\"", DV_FMT(dv_str_slice(text, 0, 80)));
    *dv_vec_add_in(&all, arena) = offer;
    *offers = (struct dv_offers){all.v, all.n};
    return true;
}

void dv_offer_print(const struct dv_offer *offer, struct dv_buf *buf)
{
    static const char *const groups[] = {
        [DV_OFFER_GROUP_AUTO] = "",
        [DV_OFFER_GROUP_NODE] = ",group=node",
        [DV_OFFER_GROUP_USB] = ",group=usb",
        [DV_OFFER_GROUP_PCI] = ",group=pci",
    };

    dv_buf_printf(buf, "%.*s=", DV_FMT(offer->name));
    for (size_t i = 0; i < offer->n_matches; i++)
        dv_buf_printf(buf, "%s%.*s", i > 0 ? "," : "", DV_FMT(offer->matches[i].text));
    if (offer->is_shared && offer->n_shares > 0)
        dv_buf_printf(buf, ",shared=%u", offer->n_shares);
    else if (offer->is_shared)
        dv_buf_add_c(buf, ",shared");
    dv_buf_add_c(buf, groups[offer->group]);
    dv_buf_printf(buf, ",access=%.*s", DV_FMT(offer->permissions));
    if (offer->as.n > 0)
        dv_buf_printf(buf, ",as=%.*s", DV_FMT(offer->as));
    dv_buf_printf(buf, ",env=%.*s", DV_FMT(offer->env));
    if (offer->mode.is_set)
        dv_buf_printf(buf, ",mode=%04o", offer->mode.value);
    if (offer->uid.is_set && offer->gid.is_set)
        dv_buf_printf(buf, ",owner=%u:%u", offer->uid.value, offer->gid.value);
    else if (offer->uid.is_set)
        dv_buf_printf(buf, ",owner=%u", offer->uid.value);
    dv_buf_printf(buf, ",resource=%.*s,class=%.*s", DV_FMT(offer->resource),
                  DV_FMT(offer->class_name));
}
