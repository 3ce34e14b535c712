/* kube_accept.c - parses Accept and Content-Type as the reference does. */
#include "serve/wire/kube_accept.h"

#include <stdlib.h>

/* The limit of clauses: more than any client sends; further ones are ignored. */
#define CLAUSES_MAX 16u

struct clause {
    dv_str type;
    dv_str params;
    unsigned quality; /* thousandths */
    size_t place;
};

static const struct {
    const char *name;
    dv_str type;
    enum dv_media media;
} medias[] = {
    {"application/json",                    DV_STR_INIT("application/json"),                    DV_MEDIA_JSON},
    {"application/yaml",                    DV_STR_INIT("application/yaml"),                    DV_MEDIA_YAML},
    {"application/vnd.kubernetes.protobuf", DV_STR_INIT("application/vnd.kubernetes.protobuf"),
     DV_MEDIA_PROTOBUF                                                                                       },
};

const char *dv_media_name(enum dv_media media)
{
    return medias[media].name;
}

static bool find_media(dv_str type, enum dv_media *media)
{
    for (size_t i = 0; i < DV_COUNT(medias); i++)
        if (dv_str_eq_nocase(medias[i].type, type)) {
            *media = medias[i].media;
            return true;
        }
    return false;
}

dv_str dv_media_bare(dv_str type)
{
    return dv_str_trim(dv_str_slice(type, 0, dv_str_find_char(type, ';')));
}

bool dv_content_type_parse(dv_str content_type, enum dv_media *media)
{
    dv_str type = dv_media_bare(content_type);

    if (type.n)
        return find_media(type, media);
    *media = DV_MEDIA_JSON;
    return true;
}

bool dv_accept_has_ours(dv_str accept)
{
    dv_str rest = accept;
    dv_str piece;
    enum dv_media media;

    if (!dv_str_trim(accept).n)
        return true;
    while (rest.n && dv_str_split(&rest, ',', &piece)) {
        dv_str type = dv_media_bare(piece);

        if (dv_str_eq(type, DV_STR("*/*")) || find_media(type, &media))
            return true;
    }
    return false;
}

/* ---- clauses ---- */

/* Parses "0.8" into thousandths; what is no number counts as 1. */
static unsigned parse_quality(dv_str text)
{
    unsigned value = 0;
    unsigned scale = 1000;
    bool is_fraction = false;

    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '.' && !is_fraction) {
            is_fraction = true;
        } else if (text.p[i] >= '0' && text.p[i] <= '9') {
            scale /= is_fraction ? 10 : 1;
            value += (unsigned)(text.p[i] - '0') * scale;
        } else {
            return 1000;
        }
    }
    return value > 1000 ? 1000 : value;
}

static bool next_param(dv_str *rest, dv_str *name, dv_str *value)
{
    dv_str piece;
    size_t at;

    if (!rest->n || !dv_str_split(rest, ';', &piece))
        return false;
    piece = dv_str_trim(piece);
    at = dv_str_find_char(piece, '=');
    *name = dv_str_trim(dv_str_slice(piece, 0, at));
    *value = dv_str_trim(dv_str_slice(piece, at + 1, piece.n));
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct clause *x = a;
    const struct clause *y = b;

    if (x->quality != y->quality)
        return x->quality > y->quality ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

static size_t parse(dv_str accept, struct clause clauses[CLAUSES_MAX])
{
    dv_str rest = accept;
    dv_str piece;
    size_t n = 0;

    while (n < CLAUSES_MAX && rest.n && dv_str_split(&rest, ',', &piece)) {
        struct clause *clause = &clauses[n];
        dv_str params, name, value;

        clause->type = dv_media_bare(piece);
        clause->params = dv_str_slice(piece, dv_str_find_char(piece, ';') + 1, piece.n);
        clause->quality = 1000;
        clause->place = n++;
        params = clause->params;
        while (next_param(&params, &name, &value))
            if (dv_str_eq(name, DV_STR("q")))
                clause->quality = parse_quality(value);
    }
    if (n)
        qsort(clauses, n, sizeof(clauses[0]), compare);
    return n;
}

/* ---- forms ---- */

struct as {
    dv_str kind;
    dv_str group;
    dv_str version;
    dv_str stream;
};

static void parse_as(dv_str params, struct as *as)
{
    dv_str name, value;

    while (next_param(&params, &name, &value)) {
        if (dv_str_eq(name, DV_STR("as")))
            as->kind = value;
        else if (dv_str_eq(name, DV_STR("g")))
            as->group = value;
        else if (dv_str_eq(name, DV_STR("v")))
            as->version = value;
        else if (dv_str_eq(name, DV_STR("stream")))
            as->stream = value;
    }
}

static bool find_form(const struct as *as, struct dv_rendering *rendering)
{
    static const struct {
        dv_str kind;
        enum dv_form form;
    } forms[] = {
        {DV_STR_INIT("Table"),                     DV_FORM_TABLE       },
        {DV_STR_INIT("PartialObjectMetadata"),     DV_FORM_PARTIAL     },
        {DV_STR_INIT("PartialObjectMetadataList"), DV_FORM_PARTIAL_LIST},
    };

    rendering->is_beta = dv_str_eq(as->version, DV_STR("v1beta1"));
    if (!dv_str_eq(as->group, DV_STR("meta.k8s.io")) ||
        (!rendering->is_beta && !dv_str_eq(as->version, DV_STR("v1"))))
        return false;
    for (size_t i = 0; i < DV_COUNT(forms); i++)
        if (dv_str_eq(as->kind, forms[i].kind)) {
            rendering->form = forms[i].form;
            return rendering->form != DV_FORM_TABLE || rendering->media != DV_MEDIA_PROTOBUF;
        }
    return false;
}

static bool is_aggregated(const struct as *as, const struct dv_rendering *rendering)
{
    return dv_str_eq(as->kind, DV_STR("APIGroupDiscoveryList")) &&
           dv_str_eq(as->group, DV_STR("apidiscovery.k8s.io")) &&
           dv_str_eq(as->version, DV_STR("v2")) && rendering->media == DV_MEDIA_JSON;
}

static bool has_form(enum dv_answer_kind answer, const struct as *as,
                     struct dv_rendering *rendering)
{
    switch (answer) {
    case DV_ANSWER_OBJECTS:
        return find_form(as, rendering);
    case DV_ANSWER_REVIEW:
        return find_form(as, rendering) && rendering->form != DV_FORM_TABLE;
    case DV_ANSWER_DISCOVERY:
        rendering->form = DV_FORM_DISCOVERY;
        return is_aggregated(as, rendering);
    case DV_ANSWER_PAGE:
        break;
    }
    return false;
}

static bool accepts(const struct clause *clause, enum dv_answer_kind answer,
                    struct dv_rendering *rendering)
{
    struct as as = {0};

    *rendering = (struct dv_rendering){0};
    if (!dv_str_eq(clause->type, DV_STR("*/*")) && !find_media(clause->type, &rendering->media))
        return false;
    parse_as(clause->params, &as);
    if (as.stream.n && !dv_str_eq(as.stream, DV_STR("watch")))
        return false;
    return !as.kind.n || has_form(answer, &as, rendering);
}

bool dv_accept_negotiate(dv_str accept, enum dv_answer_kind answer, struct dv_rendering *rendering)
{
    struct clause clauses[CLAUSES_MAX];
    size_t n;

    *rendering = (struct dv_rendering){0};
    if (!dv_str_trim(accept).n)
        return true;
    n = parse(accept, clauses);
    for (size_t i = 0; i < n; i++)
        if (accepts(&clauses[i], answer, rendering))
            return true;
    return false;
}
