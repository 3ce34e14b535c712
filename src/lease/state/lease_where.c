#include "lease/state/lease_where.h"

#include "base/arena.h"
#include "base/ascii.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/vec.h"
#include "cel/cel.h"
#include "lease/state/lease_tokens.h"

/* How many names an error lists. */
#define LISTED_MAX 8u
#define ERRORS_BYTES_MAX 65536u

/* Where a piece of the CEL comes from. */
struct piece {
    size_t to; /* its first byte in the CEL */
    size_t at; /* in the source */
};

struct reading {
    dv_str source;
    const struct dv_lease_name *names;
    size_t n_names;
    struct dv_arena *arena;
    struct dv_lease_tokens tokens;
    DV_VEC(struct piece) pieces;
    DV_VEC(dv_str) bound; /* names that comprehensions bind */
    DV_VEC(const struct dv_lease_name *) used;
    struct dv_buf cel;
    bool is_whole;    /* it is CEL already */
    bool has_choices; /* it says || or ? */
};

/* ---- names ---- */

const struct dv_lease_name *dv_lease_name_find(const struct dv_lease_name *names, size_t n_names,
                                               dv_str text)
{
    size_t slash = dv_str_find_char(text, '/');
    dv_str domain = slash < text.n ? dv_str_slice(text, 0, slash) : DV_STR("");
    dv_str name = slash < text.n ? dv_str_slice(text, slash + 1, text.n) : text;

    for (size_t i = 0; i < n_names; i++)
        if (dv_str_eq(names[i].name, name) && (domain.n == 0 || dv_str_eq(names[i].domain, domain)))
            return &names[i];
    return NULL;
}

bool dv_lease_name_fail(const struct dv_lease_name *names, size_t n_names, dv_str text,
                        struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf all;
    const struct dv_lease_name *nearest = NULL;
    size_t least = 1 + text.n / 2;

    dv_buf_init(&all, DV_ERR_MSG_BYTES);
    for (size_t i = 0; i < n_names; i++) {
        size_t distance = dv_str_distance(names[i].name, text);

        if (distance < least) {
            least = distance;
            nearest = &names[i];
        }
        if (i < LISTED_MAX)
            dv_buf_printf(&all, "%s%.*s", i > 0 ? ", " : "", DV_FMT(names[i].name));
    }
    if (nearest)
        return dv_fail(err, DV_INVALID_ARGUMENT, "there is no \"%.*s\"; did you mean \"%.*s\"?",
                       DV_FMT(text), DV_FMT(nearest->name));
    if (n_names == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "there is no \"%.*s\": no device of the class is here, or they have no "
                       "attributes",
                       DV_FMT(text));
    return dv_fail(err, DV_INVALID_ARGUMENT, "there is no \"%.*s\"; there are %s%s", DV_FMT(text),
                   dv_buf_c(&all), n_names > LISTED_MAX ? ", ..." : "");
}

/* ---- tokens ---- */

static dv_str text_of(const struct reading *reading, size_t i)
{
    return i < reading->tokens.n ? reading->tokens.v[i].text : DV_STR("");
}

static enum dv_lease_token_kind kind_of(const struct reading *reading, size_t i)
{
    return i < reading->tokens.n ? reading->tokens.v[i].kind : DV_LEASE_TOKEN_OTHER;
}

/* ---- what words mean ---- */

static bool is_one_of(dv_str text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(text, dv_str_from_c(words[i])))
            return true;
    return false;
}

/* Whether a comprehension binds the word: `.exists(x, ...)`. */
static bool is_binding(const struct reading *reading, size_t i)
{
    static const char *const macros[] = {"all", "exists", "exists_one", "existsOne",    "filter",
                                         "map", "bind",   "sortBy",     "transformList"};

    return i >= 2 && dv_str_eq(text_of(reading, i - 1), DV_STR("(")) &&
           is_one_of(text_of(reading, i - 2), macros, DV_COUNT(macros)) &&
           dv_str_eq(text_of(reading, i + 1), DV_STR(","));
}

static bool is_bound(const struct reading *reading, dv_str word)
{
    for (size_t i = 0; i < reading->bound.n; i++)
        if (dv_str_eq(reading->bound.v[i], word))
            return true;
    return false;
}

/* Whether the word is CEL's own: a member, a function, a constant, or a variable that is bound. */
static bool is_plain(const struct reading *reading, size_t i)
{
    static const char *const constants[] = {"true", "false", "null", "in"};
    dv_str word = text_of(reading, i);
    dv_str next = text_of(reading, i + 1);

    return (i > 0 && dv_str_eq(text_of(reading, i - 1), DV_STR("."))) ||
           dv_str_eq(next, DV_STR("(")) || is_one_of(word, constants, DV_COUNT(constants)) ||
           is_bound(reading, word) ||
           /* a library's name, or a prefix of a text: cel.bind, math.greatest, r"..." */
           (dv_str_eq(next, DV_STR(".")) && dv_str_eq(text_of(reading, i + 3), DV_STR("(")) &&
            (dv_str_eq(word, DV_STR("cel")) || dv_str_eq(word, DV_STR("math")))) ||
           (word.n == 1 && kind_of(reading, i + 1) == DV_LEASE_TOKEN_TEXT);
}

static const struct dv_lease_name *name_at(const struct reading *reading, size_t i)
{
    if (kind_of(reading, i) != DV_LEASE_TOKEN_WORD || is_plain(reading, i))
        return NULL;
    return dv_lease_name_find(reading->names, reading->n_names, text_of(reading, i));
}

/* Whether CEL or a quantity can have the number: digits, a fraction, a u or an exponent behind it.
 */
static bool is_number(dv_str text)
{
    size_t n = 0;

    if (dv_str_starts_with(text, DV_STR("0x")))
        return true;
    while (n < text.n && (dv_is_digit(text.p[n]) || text.p[n] == '.'))
        n++;
    text = dv_str_slice(text, n, text.n);
    return text.n == 0 || dv_str_eq(text, DV_STR("u")) || dv_str_eq(text, DV_STR("e")) ||
           (text.p[0] == 'e' && dv_str_is_digits(dv_str_slice(text, 1, text.n)));
}

/* Finds the words that are no names, and those that make it whole CEL. */
static bool judge_words(struct reading *reading, struct dv_err *err)
{
    for (size_t i = 0; i < reading->tokens.n; i++) {
        const struct dv_lease_token *token = &reading->tokens.v[i];

        if (dv_str_eq(token->text, DV_STR("||")) || dv_str_eq(token->text, DV_STR("?")))
            reading->has_choices = true;
        if (token->kind != DV_LEASE_TOKEN_WORD)
            continue;
        if (is_binding(reading, i))
            *dv_vec_add_in(&reading->bound, reading->arena) = token->text;
        if (is_plain(reading, i))
            continue;
        if (dv_str_eq(token->text, DV_STR("device")))
            reading->is_whole = true;
    }
    for (size_t i = 0; i < reading->tokens.n && !reading->is_whole; i++) {
        const struct dv_lease_token *token = &reading->tokens.v[i];

        if (token->kind == DV_LEASE_TOKEN_NUMBER && !is_number(token->text))
            return dv_fail(
                err, DV_INVALID_ARGUMENT,
                "character %zu: \"%.*s\" is no amount; units are k, M, G, T, P, E and Ki, "
                "Mi, Gi, Ti, Pi, Ei",
                token->at + 1, DV_FMT(token->text));
        if (token->kind == DV_LEASE_TOKEN_WORD && !is_plain(reading, i) && !name_at(reading, i)) {
            (void)dv_lease_name_fail(reading->names, reading->n_names, token->text, err);
            return dv_wrap(err, "character %zu", token->at + 1);
        }
    }
    return true;
}

/* ---- printing CEL ---- */

static void add_piece(struct reading *reading, size_t at)
{
    *dv_vec_add_in(&reading->pieces, reading->arena) = (struct piece){reading->cel.n, at};
}

static void print_path(struct reading *reading, const struct dv_lease_name *name)
{
    bool is_new = true;

    for (size_t i = 0; i < reading->used.n; i++)
        is_new &= reading->used.v[i] != name;
    if (is_new)
        *dv_vec_add_in(&reading->used, reading->arena) = name;
    dv_buf_printf(&reading->cel, "device.%s[\"%.*s\"].%.*s",
                  name->kind == DV_LEASE_CAPACITY ? "capacity" : "attributes", DV_FMT(name->domain),
                  DV_FMT(name->name));
}

/* Whether the token can be compared with that name by compareTo. */
static bool is_comparable(const struct reading *reading, size_t i, const struct dv_lease_name *with)
{
    enum dv_lease_token_kind kind = kind_of(reading, i);
    const struct dv_lease_name *name = name_at(reading, i);

    /* what goes on behind the token, a call or a sum, is not compared as it stands */
    if (dv_str_eq(text_of(reading, i + 1), DV_STR(".")))
        return false;
    if (name)
        return name->kind == with->kind && with->kind != DV_LEASE_ATTRIBUTE;
    if (with->kind == DV_LEASE_CAPACITY)
        return kind == DV_LEASE_TOKEN_AMOUNT || kind == DV_LEASE_TOKEN_NUMBER;
    return with->kind == DV_LEASE_VERSION && kind == DV_LEASE_TOKEN_TEXT;
}

static void print_operand(struct reading *reading, size_t i)
{
    const struct dv_lease_token *token = &reading->tokens.v[i];
    const struct dv_lease_name *name = name_at(reading, i);

    if (name)
        print_path(reading, name);
    else if (token->kind == DV_LEASE_TOKEN_TEXT)
        dv_buf_printf(&reading->cel, "semver(%.*s)", DV_FMT(token->text));
    else
        dv_buf_printf(&reading->cel, "quantity(\"%.*s\")", DV_FMT(token->text));
}

/* Prints a comparison whose one side is a capacity or a version; true: it was one. */
static bool print_comparison(struct reading *reading, size_t i)
{
    const struct dv_lease_name *left = name_at(reading, i);
    const struct dv_lease_name *right = name_at(reading, i + 2);

    if (kind_of(reading, i + 1) != DV_LEASE_TOKEN_COMPARES ||
        !((left && is_comparable(reading, i + 2, left)) ||
          (right && is_comparable(reading, i + 2, right) && is_comparable(reading, i, right))))
        return false;
    add_piece(reading, reading->tokens.v[i].at);
    print_operand(reading, i);
    dv_buf_add_c(&reading->cel, ".compareTo(");
    add_piece(reading, reading->tokens.v[i + 2].at);
    print_operand(reading, i + 2);
    dv_buf_printf(&reading->cel, ") %.*s 0 ", DV_FMT(text_of(reading, i + 1)));
    return true;
}

/* Whether a blank stands between the token and the next: between words, but not within a member, a
 * call or a list, so that errors read well. */
static bool has_blank_behind(const struct reading *reading, size_t i)
{
    static const char *const tight[] = {".", "(", ")", "]", ",", "["};
    const struct dv_lease_token *token = &reading->tokens.v[i];

    if (token->kind == DV_LEASE_TOKEN_OTHER && token->text.n == 1 && token->text.p[0] != ',')
        return false;
    if (dv_str_eq(token->text, DV_STR("in")))
        return true;
    return i + 1 < reading->tokens.n &&
           !is_one_of(text_of(reading, i + 1), tight, DV_COUNT(tight)) &&
           !(token->kind == DV_LEASE_TOKEN_WORD && token->text.n == 1 &&
             kind_of(reading, i + 1) == DV_LEASE_TOKEN_TEXT);
}

static void print_token(struct reading *reading, size_t i)
{
    const struct dv_lease_token *token = &reading->tokens.v[i];
    const struct dv_lease_name *name = name_at(reading, i);

    add_piece(reading, token->at);
    if (name)
        print_path(reading, name);
    else if (token->kind == DV_LEASE_TOKEN_AMOUNT)
        dv_buf_printf(&reading->cel, "quantity(\"%.*s\")", DV_FMT(token->text));
    else
        dv_buf_add(&reading->cel, token->text);
    if (has_blank_behind(reading, i))
        dv_buf_add_char(&reading->cel, ' ');
}

/* Prints that a device has all the names, before the selector asks for their values. */
static dv_str guard(struct reading *reading, size_t *added)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    dv_str selector = dv_str_trim(dv_buf_str(&reading->cel));

    dv_buf_init(&text, DV_CEL_EXPRESSION_BYTES_MAX * 2);
    for (size_t i = 0; i < reading->used.n && !reading->has_choices; i++) {
        const struct dv_lease_name *name = reading->used.v[i];

        dv_buf_printf(&text, "\"%.*s\" in device.%s[\"%.*s\"] && ", DV_FMT(name->name),
                      name->kind == DV_LEASE_CAPACITY ? "capacity" : "attributes",
                      DV_FMT(name->domain));
    }
    *added = text.n;
    dv_buf_add(&text, selector);
    return dv_str_copy(dv_buf_str(&text), reading->arena);
}

/* ---- compiling ---- */

/* Where in the source a byte of the CEL comes from. */
static size_t source_of(const struct reading *reading, size_t to)
{
    size_t at = 0;

    for (size_t i = 0; i < reading->pieces.n && reading->pieces.v[i].to <= to; i++)
        at = reading->pieces.v[i].at;
    return at;
}

/* Takes "ERROR: <input>:1:7: undefined field" apart; false: it is of another form. */
static bool take_place(dv_str *line, size_t *column)
{
    const dv_str prefix = DV_STR("ERROR: <input>:1:");
    uint64_t number;
    dv_str digits;

    if (!dv_str_starts_with(*line, prefix))
        return false;
    *line = dv_str_slice(*line, prefix.n, line->n);
    if (!dv_str_split(line, ':', &digits) || !dv_str_to_u64(digits, &number) || number == 0)
        return false;
    *column = number - 1;
    *line = dv_str_trim(*line);
    return true;
}

static bool compile(const struct reading *reading, dv_str cel, size_t added, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_cel_options options = {.env = DV_CEL_ENV_NEW,
                                           .features = {.consumable_capacity = true}};
    DV_CLEANUP(dv_buf_fini) struct dv_buf all;
    dv_str text;
    dv_str line;
    size_t column;

    dv_buf_init(&all, ERRORS_BYTES_MAX);
    if (dv_cel_compile(cel, &options, scratch, err))
        return true;
    dv_cel_explain_error(cel, &options, &all);
    text = dv_buf_str(&all);
    if (text.n == 0 || !dv_str_split(&text, '\n', &line) || !take_place(&line, &column))
        return false;
    if (!reading->is_whole)
        column = column < added ? 0 : source_of(reading, column - added);
    return dv_fail(err, DV_INVALID_ARGUMENT, "character %zu: %.*s", column + 1, DV_FMT(line));
}

static bool expand(struct reading *reading, dv_str *cel, struct dv_err *err)
{
    size_t added = 0;

    if (!dv_lease_tokens_read(reading->source, reading->arena, &reading->tokens, err) ||
        !judge_words(reading, err))
        return false;
    if (reading->tokens.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "says nothing");
    if (reading->is_whole) {
        *cel = dv_str_copy(reading->source, reading->arena);
        return compile(reading, *cel, 0, err);
    }
    for (size_t i = 0; i < reading->tokens.n; i++) {
        if (print_comparison(reading, i))
            i += 2;
        else
            print_token(reading, i);
    }
    if (!dv_buf_check(&reading->cel, "the selector, written as CEL,", err))
        return false;
    *cel = guard(reading, &added);
    return compile(reading, *cel, added, err);
}

bool dv_lease_where_expand(dv_str text, const struct dv_lease_name *names, size_t n_names,
                           struct dv_arena *arena, dv_str *cel, struct dv_err *err)
{
    struct reading reading = {.source = text, .names = names, .n_names = n_names, .arena = arena};
    bool ok;

    if (text.n > DV_LEASE_WHERE_BYTES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "is longer than %u bytes",
                       DV_LEASE_WHERE_BYTES_MAX);
    if (!dv_str_is_utf8(text))
        return dv_fail(err, DV_INVALID_ARGUMENT, "is not UTF-8");
    dv_buf_init(&reading.cel, DV_CEL_EXPRESSION_BYTES_MAX);
    ok = expand(&reading, cel, err);
    dv_buf_fini(&reading.cel);
    return ok;
}
