/* cli_kinds.c - kinds by their names, and what was meant by a name that is none. */
#include "cli/client/cli_kinds.h"

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

/* Longer than any name of a kind with its group. */
#define WORD_BYTES_MAX 128u

/* Shorter than the API's names, for those who type them. */
static const struct {
    dv_str word;
    enum dv_kind_id id;
} own_words[] = {
    {DV_STR_INIT("claims"),     DV_KIND_CLAIM     },
    {DV_STR_INIT("claim"),      DV_KIND_CLAIM     },
    {DV_STR_INIT("templates"),  DV_KIND_TEMPLATE  },
    {DV_STR_INIT("template"),   DV_KIND_TEMPLATE  },
    {DV_STR_INIT("slices"),     DV_KIND_SLICE     },
    {DV_STR_INIT("slice"),      DV_KIND_SLICE     },
    {DV_STR_INIT("classes"),    DV_KIND_CLASS     },
    {DV_STR_INIT("class"),      DV_KIND_CLASS     },
    {DV_STR_INIT("taintrules"), DV_KIND_TAINT_RULE},
    {DV_STR_INIT("taintrule"),  DV_KIND_TAINT_RULE},
};

static const enum dv_kind_id all_kinds[] = {DV_KIND_POD, DV_KIND_CLAIM, DV_KIND_TEMPLATE,
                                            DV_KIND_SLICE, DV_KIND_CLASS};

static bool has_name(const struct dv_kind *kind, dv_str word)
{
    for (size_t i = 0; i < kind->n_short_names; i++)
        if (dv_str_eq_nocase(kind->short_names[i], word))
            return true;
    return dv_str_eq_nocase(kind->plural, word) || dv_str_eq_nocase(kind->singular, word);
}

static const struct dv_kind *find_plain(dv_str word)
{
    for (size_t i = 0; i < DV_COUNT(own_words); i++)
        if (dv_str_eq_nocase(own_words[i].word, word))
            return dv_kind(own_words[i].id);
    for (size_t i = 0; i < DV_N_KINDS; i++)
        if (has_name(dv_kind((enum dv_kind_id)i), word))
            return dv_kind((enum dv_kind_id)i);
    return NULL;
}

/* "resource.k8s.io", or with the version before it: "v1.resource.k8s.io". */
static bool is_in_group(const struct dv_kind *kind, dv_str group)
{
    for (size_t i = 0; i < kind->n_versions; i++) {
        const struct dv_api_version *version = &kind->versions[i];
        size_t n = version->version.n;

        if (dv_str_eq(group, version->group))
            return true;
        if (dv_str_starts_with(group, version->version) && group.n > n && group.p[n] == '.' &&
            dv_str_eq(dv_str_slice(group, n + 1, group.n), version->group))
            return true;
    }
    return false;
}

const struct dv_kind *dv_cli_kind_find(dv_str word)
{
    size_t dot = dv_str_find_char(word, '.');
    const struct dv_kind *kind = find_plain(dv_str_slice(word, 0, dot));

    if (kind && dot < word.n && !is_in_group(kind, dv_str_slice(word, dot + 1, word.n)))
        return NULL;
    return kind;
}

dv_str dv_cli_kind_word(const struct dv_kind *kind)
{
    for (size_t i = 0; i < DV_COUNT(own_words); i++)
        if (own_words[i].id == kind->id)
            return own_words[i].word; /* the plural is the first of them */
    return kind->plural;
}

static void look_at(dv_str word, dv_str name, dv_str *nearest, size_t *best)
{
    size_t distance = dv_str_distance(word, name);

    if (distance < *best) {
        *best = distance;
        *nearest = name;
    }
}

dv_str dv_cli_kind_suggest(dv_str word)
{
    char lower[WORD_BYTES_MAX];
    dv_str given = dv_str_slice(word, 0, dv_str_find_char(word, '.'));
    dv_str nearest = DV_STR_NONE;
    size_t best = dv_str_distance_max(given);

    if (given.n > sizeof(lower))
        return DV_STR_NONE;
    for (size_t i = 0; i < given.n; i++)
        lower[i] = (char)(given.p[i] >= 'A' && given.p[i] <= 'Z' ? given.p[i] + 32 : given.p[i]);
    given = (dv_str){lower, given.n};
    for (size_t i = 0; i < DV_COUNT(own_words); i++)
        look_at(given, own_words[i].word, &nearest, &best);
    for (size_t i = 0; i < DV_N_KINDS; i++) {
        const struct dv_kind *kind = dv_kind((enum dv_kind_id)i);

        look_at(given, kind->plural, &nearest, &best);
        look_at(given, kind->singular, &nearest, &best);
    }
    return nearest;
}

const struct dv_kind *dv_cli_kind_require(dv_str word, struct dv_err *err)
{
    const struct dv_kind *kind = dv_cli_kind_find(word);
    dv_str meant;

    if (kind)
        return kind;
    meant = dv_cli_kind_suggest(word);
    if (meant.n)
        (void)dv_fail(err, DV_NOT_FOUND, "there is no kind \"%.*s\" (did you mean %.*s?)",
                      DV_FMT(word), DV_FMT(meant));
    else
        (void)dv_fail(err, DV_NOT_FOUND, "there is no kind \"%.*s\"", DV_FMT(word));
    return NULL;
}

/* ---- targets ---- */

static void add(struct dv_cli_targets *targets, const struct dv_kind *kind, dv_str name,
                struct dv_arena *arena)
{
    for (size_t i = 0; i < targets->n; i++) {
        if (targets->v[i].kind == kind && dv_str_eq(targets->v[i].name, name))
            return; /* said twice */
        targets->are_of_kinds |= targets->v[i].kind != kind;
    }
    *dv_vec_add_in(targets, arena) = (struct dv_cli_target){kind, name};
}

/* Adds one of a list of kinds, with all the names after it. */
static bool add_kind(struct dv_cli_targets *targets, dv_str word, const dv_str *names,
                     size_t n_names, struct dv_arena *arena, struct dv_err *err)
{
    const struct dv_kind *kind;

    if (dv_str_eq(word, DV_STR("all"))) {
        if (n_names > 0)
            return dv_fail(err, DV_INVALID_ARGUMENT, "all takes no names");
        for (size_t i = 0; i < DV_COUNT(all_kinds); i++)
            add(targets, dv_kind(all_kinds[i]), DV_STR(""), arena);
        return true;
    }
    kind = dv_cli_kind_require(word, err);
    if (!kind)
        return false;
    for (size_t i = 0; i < n_names; i++) {
        if (names[i].n == 0 || dv_str_find_char(names[i], '/') < names[i].n)
            return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is no name of an object",
                           DV_FMT(names[i]));
        add(targets, kind, names[i], arena);
    }
    if (n_names == 0)
        add(targets, kind, DV_STR(""), arena);
    return true;
}

static bool parse_pair(struct dv_cli_targets *targets, dv_str word, struct dv_arena *arena,
                       struct dv_err *err)
{
    size_t slash = dv_str_find_char(word, '/');
    dv_str name = dv_str_slice(word, slash + 1, word.n);

    if (slash == word.n)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "\"%.*s\" stands among KIND/NAME words and is none", DV_FMT(word));
    if (name.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" has no name after the slash",
                       DV_FMT(word));
    return add_kind(targets, dv_str_slice(word, 0, slash), &name, 1, arena, err);
}

bool dv_cli_targets_parse(const dv_str *words, size_t n_words, struct dv_arena *arena,
                          struct dv_cli_targets *targets, struct dv_err *err)
{
    dv_str rest;
    dv_str word;

    *targets = (struct dv_cli_targets){0};
    if (n_words == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "name a kind");
    if (dv_str_find_char(words[0], '/') < words[0].n) {
        targets->has_names = true;
        for (size_t i = 0; i < n_words; i++)
            if (!parse_pair(targets, words[i], arena, err))
                return false;
        return true;
    }
    targets->has_names = n_words > 1;
    rest = words[0];
    while (dv_str_split(&rest, ',', &word))
        if (!add_kind(targets, word, words + 1, n_words - 1, arena, err))
            return false;
    return true;
}

bool dv_cli_pod_name(dv_str word, dv_str *name)
{
    size_t slash = dv_str_find_char(word, '/');
    const struct dv_kind *kind = dv_kind(DV_KIND_POD);

    *name = word;
    if (slash < word.n) {
        *name = dv_str_slice(word, slash + 1, word.n);
        kind = dv_cli_kind_find(dv_str_slice(word, 0, slash));
    }
    return kind && kind->id == DV_KIND_POD && name->n > 0;
}
