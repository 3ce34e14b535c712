/* fuzz_accept.c - an Accept header.
 *
 * A header can be met when one of its parts can be met alone; without qualities it is the first of
 * those that decides, whatever stands before it that is unknown. What a part is without its
 * parameters has none itself. */
#include "serve/wire/kube_accept.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"

#define BYTES_MAX 4096u
/* As many parts as are looked at, with the unknown one before them. */
#define PARTS_MAX 15u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_same(const struct dv_rendering *a, const struct dv_rendering *b)
{
    return a->media == b->media && a->form == b->form && a->is_beta == b->is_beta;
}

static void check_rendering(const struct dv_rendering *rendering, enum dv_answer_kind answer)
{
    assert(rendering->media <= DV_MEDIA_PROTOBUF && rendering->form <= DV_FORM_DISCOVERY);
    assert(rendering->form != DV_FORM_TABLE || rendering->media != DV_MEDIA_PROTOBUF);
    assert(answer == DV_ANSWER_DISCOVERY || rendering->form != DV_FORM_DISCOVERY);
    assert(answer == DV_ANSWER_OBJECTS || rendering->form != DV_FORM_TABLE);
    assert(answer != DV_ANSWER_PAGE || rendering->form == DV_FORM_OBJECT);
}

/* What the parts say, each alone; false: none can be had. Blank ones would accept everything. */
static bool first_alone(dv_str accept, enum dv_answer_kind answer, struct dv_rendering *rendering)
{
    dv_str rest = accept;
    dv_str part;

    while (rest.n > 0 && dv_str_split(&rest, ',', &part))
        if (dv_str_trim(part).n > 0 && dv_accept_negotiate(part, answer, rendering))
            return true;
    return false;
}

static size_t count_parts(dv_str accept)
{
    size_t n = 1;

    for (size_t i = 0; i < accept.n; i++)
        n += accept.p[i] == ',';
    return n;
}

static void check_header(dv_str accept, enum dv_answer_kind answer)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf longer;
    struct dv_rendering whole;
    struct dv_rendering other;
    bool is_met = dv_accept_negotiate(accept, answer, &whole);

    dv_buf_init(&longer, 2 * BYTES_MAX);
    if (is_met) {
        check_rendering(&whole, answer);
        assert(dv_accept_has_ours(accept));
    }
    if (dv_str_trim(accept).n == 0 || count_parts(accept) > PARTS_MAX)
        return;
    assert(is_met == first_alone(accept, answer, &other));
    if (is_met && dv_str_find_char(accept, 'q') == accept.n)
        assert(is_same(&whole, &other));
    dv_buf_add_c(&longer, "application/x-unknown,");
    dv_buf_add(&longer, accept);
    assert(dv_accept_negotiate(dv_buf_str(&longer), answer, &other) == is_met);
    assert(!is_met || is_same(&whole, &other));
}

static void check_content_type(dv_str type)
{
    dv_str bare = dv_media_bare(type);
    enum dv_media media;
    enum dv_media again;
    bool is_ours = dv_content_type_parse(type, &media);

    assert(dv_str_eq(dv_media_bare(bare), bare));
    assert(dv_str_find_char(bare, ';') == bare.n);
    assert(is_ours == dv_content_type_parse(bare, &again));
    assert(!is_ours || media == again);
    if (is_ours && bare.n > 0)
        assert(dv_str_eq_nocase(bare, dv_str_from_c(dv_media_name(media))));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dv_str accept = {(const char *)data, size};

    if (size > BYTES_MAX)
        return 0;
    for (int answer = DV_ANSWER_OBJECTS; answer <= DV_ANSWER_DISCOVERY; answer++)
        check_header(accept, (enum dv_answer_kind)answer);
    check_content_type(accept);
    return 0;
}
