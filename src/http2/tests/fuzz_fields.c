/* fuzz_fields.c - the texts of gRPC's header fields.
 *
 * A message that is encoded can stand in a field and comes back, but for its zero bytes; one that
 * is decoded has not grown. A timeout that is taken, printed and taken again is not shorter. */
#include "http2/http2_fields.h"

#include <assert.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define BYTES_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_message(dv_str text)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf encoded;
    DV_CLEANUP(dv_buf_fini) struct dv_buf decoded;
    DV_CLEANUP(dv_buf_fini) struct dv_buf other;

    dv_buf_init(&encoded, 3 * BYTES_MAX);
    dv_buf_init(&decoded, 3 * BYTES_MAX);
    dv_buf_init(&other, 3 * BYTES_MAX);
    dv_h2_percent_encode(text, &encoded);
    for (size_t i = 0; i < encoded.n; i++)
        assert(encoded.p[i] >= ' ' && encoded.p[i] <= '~');
    dv_h2_percent_decode(dv_buf_str(&encoded), &decoded);
    if (dv_str_find_char(text, '\0') == text.n)
        assert(dv_str_eq(dv_buf_str(&decoded), text));
    dv_h2_percent_decode(text, &other);
    assert(!other.is_over && other.n <= text.n);
}

static void check_timeout(dv_str text)
{
    char printed[DV_H2_TIMEOUT_BYTES];
    uint64_t once;
    uint64_t twice;

    if (!dv_h2_timeout_parse(text, &once))
        return;
    assert(text.n >= 2 && text.n <= 9);
    assert(dv_h2_timeout_parse((dv_str){printed, dv_h2_timeout_print(once, printed)}, &twice));
    assert(twice >= once);
    /* Rounded up by less than one of what is printed: never by as much as itself. */
    assert(once == 0 || twice - once <= once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dv_str text = {(const char *)data, size};

    if (size > BYTES_MAX)
        return 0;
    check_message(text);
    check_timeout(text);
    if (dv_h2_is_grpc_content_type(text))
        assert(dv_str_eq_nocase(dv_str_slice(text, 0, 16), DV_STR("application/grpc")));
    if (dv_h2_code_parse(text) == DV_OK)
        assert(text.n > 0 && text.p[text.n - 1] == '0');
    return 0;
}
