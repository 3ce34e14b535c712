#include "support/dvtest.h"

#include <string.h>

#include <zlib.h>

#include "base/buf.h"
#include "base/defs.h"
#include "zip/zip.h"

#define PACKED_BYTES_MAX (1u << 20)

static void what_was_packed_is_unpacked(void **state)
{
    const dv_str dictionary = DV_STR("a dictionary of words that both know");
    const dv_str parts[] = {DV_STR("words that both know"), DV_STR(""), DV_STR("other words")};
    struct dv_zip_packer *packer = dv_zip_packer_new(DV_ZIP_ZLIB, dictionary);
    struct dv_zip_unpacker *unpacker = dv_zip_unpacker_new(dictionary);
    struct dv_buf packed, unpacked;
    struct dv_err err;

    (void)state;
    dv_buf_init(&packed, PACKED_BYTES_MAX);
    dv_buf_init(&unpacked, PACKED_BYTES_MAX);
    for (size_t i = 0; i < DV_COUNT(parts); i++) {
        dv_buf_clear(&packed);
        dv_buf_clear(&unpacked);
        dv_zip_pack(packer, parts[i], DV_ZIP_FLUSH, &packed);
        for (size_t k = 0; k < packed.n; k++) /* a byte at a time */
            assert_ok(dv_zip_unpack(unpacker, dv_str_slice(dv_buf_str(&packed), k, k + 1),
                                    &unpacked, &err),
                      &err);
        assert_true(dv_str_eq(dv_buf_str(&unpacked), parts[i]));
    }
    dv_buf_fini(&packed);
    dv_buf_fini(&unpacked);
    dv_zip_packer_free(packer);
    dv_zip_unpacker_free(unpacker);
}

static void files_are_gzip(void **state)
{
    struct dv_zip_packer *packer = dv_zip_packer_new(DV_ZIP_GZIP, DV_STR(""));
    z_stream stream = {0};
    struct dv_buf packed;
    char text[3000];
    char got[sizeof(text) * 2 + 1];

    (void)state;
    memset(text, 'x', sizeof(text));
    dv_buf_init(&packed, PACKED_BYTES_MAX);
    dv_zip_pack(packer, (dv_str){text, sizeof(text)}, DV_ZIP_MORE, &packed);
    dv_zip_pack(packer, (dv_str){text, sizeof(text)}, DV_ZIP_END, &packed);
    assert_true(packed.n > 2 && packed.n < 100);
    assert_memory_equal(packed.p, "\x1f\x8b", 2);
    stream.next_in = (unsigned char *)packed.p;
    stream.avail_in = (unsigned)packed.n;
    stream.next_out = (unsigned char *)got;
    stream.avail_out = sizeof(got);
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.total_out, 2 * sizeof(text));
    assert_int_equal(inflateEnd(&stream), Z_OK);
    dv_buf_fini(&packed);
    dv_zip_packer_free(packer);
}

static void what_is_too_large_or_broken_is_refused(void **state)
{
    struct dv_zip_packer *packer = dv_zip_packer_new(DV_ZIP_ZLIB, DV_STR(""));
    struct dv_zip_unpacker *unpacker = dv_zip_unpacker_new(DV_STR(""));
    struct dv_buf packed, unpacked;
    char text[100000];
    struct dv_err err;

    (void)state;
    memset(text, 'x', sizeof(text));
    dv_buf_init(&packed, PACKED_BYTES_MAX);
    dv_buf_init(&unpacked, 1000);
    dv_zip_pack(packer, (dv_str){text, sizeof(text)}, DV_ZIP_FLUSH, &packed);
    assert_true(packed.n < 1000);
    assert_false(dv_zip_unpack(unpacker, dv_buf_str(&packed), &unpacked, &err));
    assert_int_equal(err.code, DV_RESOURCE_EXHAUSTED);
    dv_zip_unpacker_free(unpacker);
    unpacker = dv_zip_unpacker_new(DV_STR(""));
    assert_false(dv_zip_unpack(unpacker, DV_STR("nothing of the kind"), &unpacked, &err));
    assert_int_equal(err.code, DV_INVALID_ARGUMENT);
    dv_buf_fini(&packed);
    dv_buf_fini(&unpacked);
    dv_zip_packer_free(packer);
    dv_zip_unpacker_free(unpacker);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_is_unpacked),
        cmocka_unit_test(files_are_gzip),
        cmocka_unit_test(what_is_too_large_or_broken_is_refused),
    };

    return cmocka_run_group_tests_name("zip", tests, NULL, NULL);
}
