#include "lease/state/lease_word.h"

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"

/* The longest list of names in an error: it is a line that somebody reads. */
#define NAMES_BYTES_MAX 160u
#define WORD_BYTES_MAX 64u

bool dv_lease_is_word(dv_str text)
{
    return text.n > 0 && dv_str_find_char(text, '/') == text.n &&
           dv_str_find_char(text, '.') == text.n;
}

static bool is_last_part(dv_str text, char before, dv_str word)
{
    return text.n > word.n && dv_str_ends_with(text, word) && text.p[text.n - word.n - 1] == before;
}

bool dv_lease_word_fits(dv_str word, const struct dv_lease_candidate *candidate)
{
    dv_str name = candidate->name;

    if (!candidate->is_class)
        return is_last_part(name, '/', word);
    return dv_str_eq(name, word) ||
           dv_str_eq(dv_str_slice(name, 0, dv_str_find_char(name, '.')), word) ||
           is_last_part(name, '.', word) || is_last_part(candidate->resource, '/', word);
}

/* Names those that fit, or all; what does not find room is counted. */
static void print_names(dv_str word, const struct dv_lease_candidate *candidates, size_t n,
                        bool only_fitting, struct dv_buf *buf)
{
    size_t n_named = 0;
    size_t n_more = 0;

    for (size_t i = 0; i < n; i++) {
        const struct dv_lease_candidate *one = &candidates[i];
        dv_str before = n_named == 0 ? DV_STR("") : DV_STR(", ");

        if (only_fitting && !dv_lease_word_fits(word, one))
            continue;
        if (dv_buf_str(buf).n + before.n + one->name.n + sizeof("class ") > NAMES_BYTES_MAX) {
            n_more++;
            continue;
        }
        dv_buf_add(buf, before);
        dv_buf_add_c(buf, one->is_class ? "class " : "");
        dv_buf_add(buf, one->name);
        n_named++;
    }
    if (n_more > 0)
        dv_buf_printf(buf, "%s%zu more", n_named > 0 ? " and " : "", n_more);
}

static void fail(dv_str word, const struct dv_lease_candidate *candidates, size_t n,
                 size_t n_fitting, size_t n_unfit, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf names;

    dv_buf_init(&names, 2 * NAMES_BYTES_MAX);
    print_names(word, candidates, n, n_fitting + n_unfit > 0, &names);
    if (n_fitting > 1)
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" may be %.*s: say which", DV_FMT(word),
                      DV_FMT(dv_buf_str(&names)));
    else if (n_unfit > 0)
        (void)dv_fail(err, DV_INVALID_ARGUMENT,
                      "conditions are about devices of classes, and \"%.*s\" is %.*s here",
                      DV_FMT(word), DV_FMT(dv_buf_str(&names)));
    else if (n > 0)
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "nothing here is called \"%.*s\"; there is %.*s",
                      DV_FMT(word), DV_FMT(dv_buf_str(&names)));
    else
        (void)dv_fail(err, DV_INVALID_ARGUMENT,
                      "nothing here is called \"%.*s\": there are no resources and no classes",
                      DV_FMT(word));
}

const struct dv_lease_candidate *dv_lease_word_find(dv_str word,
                                                    const struct dv_lease_candidate *candidates,
                                                    size_t n, bool needs_class, struct dv_err *err)
{
    const struct dv_lease_candidate *found = NULL;
    size_t n_fitting = 0;
    size_t n_unfit = 0;

    for (size_t i = 0; i < n; i++) {
        if (!dv_lease_word_fits(word, &candidates[i]))
            continue;
        if (needs_class && !candidates[i].is_class) {
            n_unfit++;
            continue;
        }
        found = &candidates[i];
        n_fitting++;
    }
    if (n_fitting == 1)
        return found;
    fail(dv_str_slice(word, 0, WORD_BYTES_MAX), candidates, n, n_fitting, n_unfit, err);
    return NULL;
}
