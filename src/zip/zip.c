#include "zip/zip.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include <zlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"

#define CHUNK_BYTES 4096u
/* zlib's own values for files: who unpacks must not need to know others. */
#define FILE_WINDOW_BITS 15
#define FILE_MEMORY_LEVEL 8
#define GZIP_BITS 16 /* added to the window's: a gzip header */
/* For many streams at a time, of little text: a window of 2 KiB. */
#define SMALL_WINDOW_BITS 11
#define SMALL_MEMORY_LEVEL 2

struct dv_zip_packer {
    z_stream stream;
};

struct dv_zip_unpacker {
    z_stream stream;
    dv_str dictionary;
};

/* zlib does not write to its input; its type only lacks the const. */
static unsigned char *input(dv_str bytes)
{
    return (unsigned char *)(uintptr_t)bytes.p;
}

struct dv_zip_packer *dv_zip_packer_new(enum dv_zip_form form, dv_str dictionary)
{
    struct dv_zip_packer *packer = DV_ALLOC(struct dv_zip_packer);
    bool is_gzip = form == DV_ZIP_GZIP;

    /* These fail only when out of memory. */
    if (deflateInit2(&packer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                     is_gzip ? FILE_WINDOW_BITS + GZIP_BITS : SMALL_WINDOW_BITS,
                     is_gzip ? FILE_MEMORY_LEVEL : SMALL_MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    if (dictionary.n > 0 &&
        deflateSetDictionary(&packer->stream, input(dictionary), (unsigned)dictionary.n) != Z_OK)
        abort();
    return packer;
}

void dv_zip_packer_free(struct dv_zip_packer *packer)
{
    if (!packer)
        return;
    (void)deflateEnd(&packer->stream); /* says that something was left unsaid: it need not end */
    free(packer);
}

void dv_zip_pack(struct dv_zip_packer *packer, dv_str bytes, enum dv_zip_flush flush,
                 struct dv_buf *packed)
{
    static const int modes[] = {
        [DV_ZIP_MORE] = Z_NO_FLUSH, [DV_ZIP_FLUSH] = Z_SYNC_FLUSH, [DV_ZIP_END] = Z_FINISH};
    z_stream *stream = &packer->stream;
    unsigned char chunk[CHUNK_BYTES];

    do {
        size_t n = dv_size_min(bytes.n, UINT_MAX / 2);

        stream->next_in = input(bytes);
        stream->avail_in = (unsigned)n;
        bytes = dv_str_slice(bytes, n, bytes.n);
        do {
            stream->next_out = chunk;
            stream->avail_out = sizeof(chunk);
            /* Fails only where there is nothing to do. */
            (void)deflate(stream, bytes.n > 0 ? Z_NO_FLUSH : modes[flush]);
            dv_buf_add(packed, (dv_str){(const char *)chunk, sizeof(chunk) - stream->avail_out});
        } while (stream->avail_out == 0);
    } while (bytes.n > 0);
}

struct dv_zip_unpacker *dv_zip_unpacker_new(dv_str dictionary)
{
    struct dv_zip_unpacker *unpacker = DV_ALLOC(struct dv_zip_unpacker);

    unpacker->dictionary = dictionary;
    if (inflateInit(&unpacker->stream) != Z_OK) /* fails only when out of memory */
        abort();
    return unpacker;
}

void dv_zip_unpacker_free(struct dv_zip_unpacker *unpacker)
{
    if (!unpacker)
        return;
    (void)inflateEnd(&unpacker->stream); /* the stream need not be at its end */
    free(unpacker);
}

bool dv_zip_unpack(struct dv_zip_unpacker *unpacker, dv_str bytes, struct dv_buf *unpacked,
                   struct dv_err *err)
{
    z_stream *stream = &unpacker->stream;
    unsigned char chunk[CHUNK_BYTES];

    stream->next_in = input(bytes);
    stream->avail_in = (unsigned)dv_size_min(bytes.n, UINT_MAX);
    do {
        int status;

        stream->next_out = chunk;
        stream->avail_out = sizeof(chunk);
        status = inflate(stream, Z_SYNC_FLUSH);
        if (status == Z_NEED_DICT) /* at the beginning of the stream */
            status = inflateSetDictionary(stream, input(unpacker->dictionary),
                                          (unsigned)unpacker->dictionary.n);
        else if (status == Z_BUF_ERROR)
            status = Z_OK; /* there was nothing left to do */
        if (status != Z_OK)
            return dv_fail(err, DV_INVALID_ARGUMENT, "%s", stream->msg ? stream->msg : "it ends");
        dv_buf_add(unpacked, (dv_str){(const char *)chunk, sizeof(chunk) - stream->avail_out});
        if (unpacked->is_over)
            return dv_fail(err, DV_RESOURCE_EXHAUSTED, "it is larger than %zu bytes",
                           unpacked->max);
    } while (stream->avail_in > 0 || stream->avail_out == 0);
    return true;
}

uint32_t dv_zip_crc32(uint32_t crc, dv_str bytes)
{
    /* With no bytes zlib takes the call for a question, and answers 0. */
    return bytes.n == 0 ? crc : (uint32_t)crc32_z(crc, (const unsigned char *)bytes.p, bytes.n);
}
