/* offer_file.c - offers as a YAML file:
 *
 *     offers:
 *     - name: serial
 *       devices: [/dev/ttyUSB*, /dev/ttyACM*]
 *     - name: kvm
 *       devices: /dev/kvm
 *       shared: true
 *
 * It is strict: an offer that is not understood would hand out other devices than was meant. */
#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "base/visible.h"
#include "offer/offer.h"
#include "offer/offer_words.h"
#include "json/json.h"

/* Returns a scalar as text: strings as they are, numbers and booleans as printed. */
static bool read_text(const struct dv_json *node, dv_str *text, struct dv_err *err)
{
    bool is_on;

    if (dv_json_is(node, DV_JSON_NUMBER)) {
        *text = dv_json_number_text(node);
        return true;
    }
    if (dv_json_is(node, DV_JSON_BOOL)) {
        if (!dv_json_as_bool(node, &is_on, err))
            return false;
        *text = is_on ? DV_STR("true") : DV_STR("false");
        return true;
    }
    if (!dv_json_as_str(node, text, err))
        return false;
    if (text->n == 0 || text->n > DV_OFFER_TEXT_BYTES_MAX)
        return dv_json_fail(node, err, "is empty, or longer than %u bytes",
                            DV_OFFER_TEXT_BYTES_MAX);
    return dv_str_is_visible(*text) ||
           dv_json_fail(node, err, "has a character that cannot be seen");
}

/* Puts the place in the file before the reason. */
static bool fail_at(const struct dv_json *node, struct dv_err *err)
{
    struct dv_err reason = *err;

    return dv_json_fail(node, err, "%s", reason.msg);
}

static bool read_match(const struct dv_json *node, struct dv_offer *offer, struct dv_arena *arena,
                       struct dv_err *err)
{
    dv_str text;

    if (!read_text(node, &text, err))
        return false;
    /* A comma would be read as the end of a selector when the offer is printed as an option. */
    if (dv_str_find_char(text, ',') < text.n)
        return dv_json_fail(node, err, "has a comma; several selectors are a list");
    return dv_offer_add_match(offer, text, arena, err) || fail_at(node, err);
}

static bool read_matches(const struct dv_json *node, struct dv_offer *offer, struct dv_arena *arena,
                         struct dv_err *err)
{
    if (!dv_json_is(node, DV_JSON_ARRAY))
        return read_match(node, offer, arena, err);
    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item))
        if (!read_match(item, offer, arena, err))
            return false;
    return true;
}

static bool read_member(const struct dv_json *member, struct dv_offer *offer,
                        struct dv_arena *arena, struct dv_err *err)
{
    dv_str key = dv_json_key(member);
    dv_str text;

    if (dv_str_eq(key, DV_STR("devices")))
        return read_matches(member, offer, arena, err);
    if (!read_text(member, &text, err))
        return false;
    if (dv_str_eq(key, DV_STR("name"))) {
        offer->name = dv_str_copy(text, arena);
        return true;
    }
    if (dv_str_find_char(text, ',') < text.n)
        return dv_json_fail(member, err, "has a comma");
    /* YAML reads 0660 as a number in octal digits; whoever writes the bits means the digits. */
    if (dv_str_eq(key, DV_STR("mode")) && dv_json_is(member, DV_JSON_NUMBER))
        return dv_json_fail(member, err, "needs quotes: \"0660\"");
    return dv_offer_set(offer, key, text, arena, err) || fail_at(member, err);
}

static bool read_offer(struct dv_offers *offers, const struct dv_json *node, dv_str path,
                       struct dv_arena *arena, struct dv_err *err)
{
    struct dv_offer offer = {.origin =
                                 dv_str_printf(arena, "%.*s:%u", DV_FMT(path), dv_json_line(node))};
    DV_VEC(struct dv_offer) all = {offers->v, offers->n, offers->n};

    if (!dv_json_expect(node, DV_JSON_OBJECT, err))
        return false;
    for (const struct dv_json *member = dv_json_first(node); member; member = dv_json_next(member))
        if (!read_member(member, &offer, arena, err))
            return false;
    if (!dv_offer_finish(offers, &offer, arena, err))
        return fail_at(node, err);
    *dv_vec_add_in(&all, arena) = offer;
    *offers = (struct dv_offers){all.v, all.n};
    return true;
}

static bool read_doc(struct dv_offers *offers, const struct dv_json *doc, dv_str path,
                     struct dv_arena *arena, struct dv_err *err)
{
    const struct dv_json *list = dv_json_get(doc, DV_STR("offers"));

    if (!dv_json_expect(doc, DV_JSON_OBJECT, err))
        return false;
    for (const struct dv_json *member = dv_json_first(doc); member; member = dv_json_next(member))
        if (member != list)
            return dv_json_fail(member, err, "no such key; there is offers");
    if (list && !dv_json_expect(list, DV_JSON_ARRAY, err))
        return false;
    for (const struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item))
        if (!read_offer(offers, item, path, arena, err))
            return false;
    return true;
}

bool dv_offers_add_file(struct dv_offers *offers, dv_str path, dv_str text, struct dv_arena *arena,
                        struct dv_err *err)
{
    const struct dv_json_opts opts = {.bytes_max = DV_OFFER_FILE_BYTES_MAX,
                                      .refuse_duplicates = true};
    const struct dv_json *doc = dv_yaml_parse(text, &opts, arena, err);

    if (doc && dv_json_is(doc, DV_JSON_NULL))
        return true; /* all lines are comments */
    if (!doc || !read_doc(offers, doc, path, arena, err))
        return dv_wrap(err, "%.*s", DV_FMT(path));
    return true;
}
