#include "upgrade/wire/words.h"

#include "base/err.h"
#include "upgrade/upgrade.h"

#define SHOWN_BYTES_MAX 128u

/* Whether a list has this word, in any case of letters. */
static bool has_word(dv_str list, dv_str word)
{
    dv_str piece;

    while (list.p && dv_str_split(&list, ',', &piece)) {
        if (dv_str_eq_nocase(dv_str_trim(piece), word))
            return true;
    }
    return false;
}

static size_t find(dv_str word, const dv_str *texts, size_t n)
{
    size_t i = 0;

    while (i < n && !dv_str_eq(word, texts[i]))
        i++;
    return i;
}

size_t dv_words_find_common(const dv_str *lists, size_t n_lists, const dv_str *texts, size_t n,
                            bool *is_empty)
{
    *is_empty = true;
    for (size_t i = 0; i < n_lists; i++) {
        dv_str rest = lists[i];
        dv_str word;

        while (rest.p && dv_str_split(&rest, ',', &word)) {
            size_t found = n;

            word = dv_str_trim(word);
            if (word.n > 0) {
                *is_empty = false;
                found = find(word, texts, n);
            }
            if (found < n)
                return found;
        }
    }
    return n;
}

bool dv_upgrade_is_asked(dv_str connection, dv_str upgrade, dv_str protocol)
{
    return has_word(connection, DV_STR("upgrade")) && has_word(upgrade, protocol);
}

bool dv_upgrade_negotiate(const dv_str *offers, size_t n_offers, const dv_str *served,
                          size_t n_served, dv_str *version, struct dv_err *err)
{
    bool is_empty;
    size_t i = dv_words_find_common(offers, n_offers, served, n_served, &is_empty);

    if (is_empty)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "unable to upgrade: X-Stream-Protocol-Version is required");
    if (i == n_served)
        return dv_fail(err, DV_PERMISSION_DENIED,
                       "unable to upgrade: no version of streams in \"%.*s\" is served",
                       DV_FMT(dv_str_slice(offers[0], 0, SHOWN_BYTES_MAX)));
    *version = served[i];
    return true;
}
