/* version.c - semantic versions as CEL's semver library has them: parsed strictly or tolerantly,
 * compared and printed. */
#include "number/number.h"

#include "base/ascii.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"

#define N_NUMBERS 3u

static const char *const number_names[N_NUMBERS] = {"major", "minor", "patch"};

/* The texts between the marks of major.minor.patch-pre+build. */
struct parts {
    dv_str numbers[N_NUMBERS];
    size_t n_numbers; /* the rest is missing */
    dv_str pre;
    dv_str build;
    bool has_pre;
    bool has_build;
};

static struct parts split(dv_str text)
{
    struct parts parts = {0};
    size_t plus = dv_str_find_char(text, '+');
    dv_str rest = dv_str_slice(text, 0, plus);
    size_t minus = dv_str_find_char(rest, '-');
    dv_str piece;

    parts.has_build = plus < text.n;
    parts.build = dv_str_slice(text, plus + 1, text.n);
    parts.has_pre = minus < rest.n;
    parts.pre = dv_str_slice(rest, minus + 1, rest.n);
    rest = dv_str_slice(rest, 0, minus);
    while (dv_str_split(&rest, '.', &piece)) {
        if (parts.n_numbers < N_NUMBERS)
            parts.numbers[parts.n_numbers] = piece;
        parts.n_numbers++;
    }
    return parts;
}

static bool is_identifier(dv_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!dv_is_digit(s.p[i]) && !dv_is_letter(s.p[i]) && s.p[i] != '-')
            return false;
    return s.n > 0;
}

static bool has_leading_zero(dv_str digits)
{
    return digits.n > 1 && digits.p[0] == '0';
}

/* What is wrong with a list of identifiers; NULL when nothing is. */
static const char *check_identifiers(dv_str list, bool is_pre)
{
    dv_str piece;

    while (dv_str_split(&list, '.', &piece)) {
        if (piece.n == 0)
            return "is empty";
        if (!is_identifier(piece))
            return "has something else than letters, digits and hyphens";
        if (is_pre && dv_str_is_digits(piece) && has_leading_zero(piece))
            return "is a number with a leading zero";
    }
    return NULL;
}

/* Which part is wrong, and what is wrong with it; NULL when nothing is. */
static const char *check_parts(const struct parts *parts, const char **part)
{
    const char *wrong = NULL;

    *part = "it";
    if (parts->n_numbers != N_NUMBERS)
        return "is not major.minor.patch";
    for (size_t i = 0; i < N_NUMBERS; i++) {
        *part = number_names[i];
        if (!dv_str_is_digits(parts->numbers[i]))
            return "is not a number";
        if (has_leading_zero(parts->numbers[i]))
            return "has a leading zero";
    }
    if (parts->has_pre) {
        *part = "an identifier of the pre-release";
        wrong = check_identifiers(parts->pre, true);
    }
    if (!wrong && parts->has_build) {
        *part = "an identifier of the build";
        wrong = check_identifiers(parts->build, false);
    }
    return wrong;
}

/* The text is last, where a long one may be cut. */
static bool fail(struct dv_err *err, const char *part, const char *wrong, dv_str text)
{
    return dv_fail(err, DV_INVALID_ARGUMENT, "version: %s %s: \"%.*s\"", part, wrong, DV_FMT(text));
}

static bool read_parts(dv_str text, const struct parts *parts, struct dv_version *version,
                       struct dv_err *err)
{
    struct dv_version read = {.pre = parts->pre, .build = parts->build};
    uint64_t *const numbers[N_NUMBERS] = {&read.major, &read.minor, &read.patch};
    const char *part;
    const char *wrong = check_parts(parts, &part);
    dv_str rest = parts->pre;
    dv_str piece;
    uint64_t number;

    if (wrong)
        return fail(err, part, wrong, text);
    for (size_t i = 0; i < N_NUMBERS; i++)
        if (!dv_str_to_u64(parts->numbers[i], numbers[i]))
            return fail(err, number_names[i], "is too large", text);
    while (parts->has_pre && dv_str_split(&rest, '.', &piece))
        if (dv_str_is_digits(piece) && !dv_str_to_u64(piece, &number))
            return fail(err, "a number of the pre-release", "is too large", text);
    *version = read;
    return true;
}

bool dv_version_parse(dv_str text, struct dv_version *version, struct dv_err *err)
{
    struct parts parts = split(text);

    return read_parts(text, &parts, version, err);
}

/* As the reference does it, odd as it is: zeros go off the front of every text longer than one
 * character, and come back when no digit follows. So an empty patch before a mark reads as 0, and
 * "1.2.-rc" as 1.2.0-rc; while "1.2." stays wrong. */
static dv_str normalize(dv_str number, bool has_mark)
{
    while (has_leading_zero(number))
        number = dv_str_slice(number, 1, number.n);
    return number.n == 0 && has_mark ? DV_STR("0") : number;
}

bool dv_version_parse_tolerant(dv_str text, struct dv_version *version, struct dv_err *err)
{
    bool has_v = dv_str_starts_with(text, DV_STR("v"));
    struct parts parts = split(dv_str_slice(text, has_v, text.n));
    bool has_mark = parts.has_pre || parts.has_build;

    if (parts.n_numbers < N_NUMBERS && has_mark)
        return fail(err, "it", "needs a patch number before a pre-release or a build", text);
    for (size_t i = 0; i < N_NUMBERS; i++) {
        bool is_last = i == N_NUMBERS - 1;

        if (i < parts.n_numbers)
            parts.numbers[i] = normalize(parts.numbers[i], is_last && has_mark);
        else
            parts.numbers[i] = DV_STR("0");
    }
    if (parts.n_numbers < N_NUMBERS)
        parts.n_numbers = N_NUMBERS;
    return read_parts(text, &parts, version, err);
}

bool dv_version_is_well_formed(dv_str text)
{
    struct parts parts = split(text);
    const char *part;

    return check_parts(&parts, &part) == NULL;
}

void dv_version_print(const struct dv_version *version, struct dv_buf *buf)
{
    dv_buf_add_u64(buf, version->major);
    dv_buf_add_char(buf, '.');
    dv_buf_add_u64(buf, version->minor);
    dv_buf_add_char(buf, '.');
    dv_buf_add_u64(buf, version->patch);
    if (version->pre.n > 0) {
        dv_buf_add_char(buf, '-');
        dv_buf_add(buf, version->pre);
    }
    if (version->build.n > 0) {
        dv_buf_add_char(buf, '+');
        dv_buf_add(buf, version->build);
    }
}

static int cmp_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Numbers by value and before words, words by their bytes. */
static int cmp_identifiers(dv_str a, dv_str b)
{
    uint64_t number_a;
    uint64_t number_b;
    bool is_number_a = dv_str_to_u64(a, &number_a);
    bool is_number_b = dv_str_to_u64(b, &number_b);

    if (is_number_a && is_number_b)
        return cmp_u64(number_a, number_b);
    if (is_number_a != is_number_b)
        return is_number_a ? -1 : 1;
    return dv_str_cmp(a, b);
}

/* Compares what follows the dash. A version without it is after all that have one; of two that
 * begin alike, the shorter is first. */
static int cmp_pre(dv_str a, dv_str b)
{
    dv_str piece_a;
    dv_str piece_b;

    if (a.n == 0 || b.n == 0)
        return (a.n == 0) - (b.n == 0);
    for (;;) {
        bool has_a = dv_str_split(&a, '.', &piece_a);
        bool has_b = dv_str_split(&b, '.', &piece_b);
        int order;

        if (!has_a || !has_b)
            return has_a - has_b;
        order = cmp_identifiers(piece_a, piece_b);
        if (order != 0)
            return order;
    }
}

int dv_version_cmp(const struct dv_version *a, const struct dv_version *b)
{
    int order = cmp_u64(a->major, b->major);

    if (order == 0)
        order = cmp_u64(a->minor, b->minor);
    if (order == 0)
        order = cmp_u64(a->patch, b->patch);
    return order != 0 ? order : cmp_pre(a->pre, b->pre);
}
